//! The commands described for programs: OpenAPI 3.1, generated from the handlers and the types they take and give.

use std::sync::{Arc, LazyLock};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use farthing_control::types::Problem;
use utoipa::{
    OpenApi,
    openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder, path::PathItem},
};

use super::{
    activity, alerts, audit, backup, catalog, health, history, inspect, money, sdk, secrets, services,
    settings, spending, status,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Farthing node", description = "Everything the console and the command line do."),
    servers((url = "/api/v1")),
    components(schemas(Problem)),
    paths(
        status::status,
        status::health,
        status::doctor,
        audit::audit,
        super::call,
        activity::activity,
        activity::figures,
        alerts::list,
        alerts::levels,
        alerts::set,
        alerts::test,
        backup::list,
        backup::create,
        backup::download,
        backup::upload,
        backup::verify,
        backup::automatic::show,
        backup::automatic::set,
        backup::automatic::make,
        backup::replaced::list,
        backup::replaced::remove,
        backup::wallet_backup,
        backup::phrase,
        backup::check_phrase,
        settings::restore,
        settings::restart,
        settings::chain,
        settings::set_chain,
        catalog::search,
        catalog::show,
        catalog::openapi,
        catalog::sample,
        catalog::form,
        catalog::versions,
        sdk::languages,
        sdk::snippets,
        sdk::download,
        sdk::generate,
        services::apis,
        services::add_api,
        inspect::inspect,
        inspect::preview,
        inspect::try_out,
        services::show_api,
        services::remove_api,
        services::rescan_api,
        services::openapi,
        services::edit_api,
        services::versions,
        health::health,
        services::price_api,
        services::pause_api,
        services::resume_api,
        money::wallet,
        money::send,
        money::channels,
        money::open_channel,
        money::close_channel,
        money::resume_channel,
        money::settle,
        history::history,
        history::csv,
        history::json,
        history::days,
        history::settled,
        spending::show,
        spending::stop,
        spending::resume,
        spending::limit,
        spending::accept,
        super::flagged::list,
        super::flagged::set,
        secrets::default,
        secrets::rotate_default,
        secrets::list,
        secrets::create,
        secrets::show,
        secrets::revoke,
        secrets::limit,
        secrets::rotate,
        settings::show,
        super::peers,
        super::ping,
        super::lookup,
        super::reached,
        super::test_reach,
        super::traffic::traffic,
        show,
    )
)]
struct Described;

/// The description of the commands and of what a port has beside them, made when it is first asked for. Cheap to clone.
#[derive(Clone)]
pub(super) struct Document(Arc<LazyLock<utoipa::openapi::OpenApi, Make>>);

type Make = Box<dyn FnOnce() -> utoipa::openapi::OpenApi + Send>;

impl Document {
    pub(super) fn new(beside: fn() -> utoipa::openapi::OpenApi) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(move || document(beside())))))
    }
}

fn document(beside: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let mut document = Described::openapi().merge_from(beside);
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            operation.responses.responses.insert("default".to_owned(), problem());
        }
    }
    document
}

#[utoipa::path(
    get,
    path = super::route::OPENAPI,
    summary = "This document",
    tag = "Node",
    operation_id = "document",
    responses((status = 200, description = "Done"))
)]
pub(super) async fn show(State(document): State<Document>) -> Response {
    Json(&**document.0).into_response()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut utoipa::openapi::path::Operation> {
    [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten()
}

/// Every operation may be refused.
fn problem() -> RefOr<utoipa::openapi::Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new()
        .description("Why it was not done, and what to do (RFC 9457)")
        .content("application/problem+json", content);
    response.build().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Of the socket alone: the way back in belongs to the owner of the machine.
    const SOCKET_ALONE: [&str; 2] = ["/console", "/console/reset"];

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let source = include_str!("../../control/src/types/route.rs");
        let routes = source.lines().filter_map(|line| {
            let path =
                line.trim().strip_prefix("pub const ")?.split_once(": &str = \"")?.1.strip_suffix("\";")?;
            path.starts_with('/').then_some(path)
        });
        let expected: BTreeSet<&str> = routes.filter(|path| !SOCKET_ALONE.contains(path)).collect();
        let document = document(utoipa::openapi::OpenApi::default());
        let described: BTreeSet<&str> = document.paths.paths.keys().map(String::as_str).collect();
        assert_eq!(described, expected);
        assert!(described.len() > 25, "the routes were not found in the source");
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_every_reference_leads_somewhere() {
        let document = serde_json::to_value(document(utoipa::openapi::OpenApi::default())).unwrap();
        let text = document.to_string();
        let mut names = BTreeSet::new();
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                let name = operation["operationId"].as_str().unwrap();
                assert!(names.insert(name.to_owned()), "{name} is there twice");
                assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}");
            }
        }
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name} is not described");
        }
    }
}
