//! The owner's services: add, show, read again, price, pause, remove.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::header,
    response::{IntoResponse, Response},
};
use farthing_bridge::{
    changes::changes,
    description::{ApiDescription, Operation, Parameter},
    openapi::Version,
};
use farthing_control::types::{
    Api, ApiOperation, ApiShown, ApiState, CatalogKind, Charge, DescriptionOrigin, EditRequest, Edited,
    Offer, OfferParameter, OperationName, PriceRequest, Rescan, RescanRequest, ServiceFile, Text,
    VersionNote,
};
use farthing_discovery::{UNSTORED, UNSTORED_NEXT, documents, method_of, time_of};
use farthing_gateway::services::address;
use farthing_node::{handles::Handles, history::tally::Count};
use farthing_owner::{edit::means_to_end, registry::Registered, samples, upstream::AddressClass};
use farthing_protocol::{ServiceId, Usdc, call::ChargePolicy};
use serde::Deserialize;

use super::{Failed, Reply};

answer!(Apis: apis);
async fn apis(State(node): State<Handles>) -> Reply<Vec<Api>> {
    let counts = node.tally.counts(&node.ledger).await?;
    let count = |service: &Registered| counts.get(&service.listing().service).copied().unwrap_or_default();
    Ok(Json(node.registry.all().iter().map(|service| api(&node, service, count(service))).collect()))
}

answer!(AddApi: add_api);
async fn add_api(State(node): State<Handles>, Json(file): Json<ServiceFile>) -> Reply<Api> {
    let new = node.previews.to_publish(&node.reader(), &file).await?;
    let service = node.registry.add(new).await?;
    node.previews.published(&file);
    node.publish().await;
    counted(&node, &service).await.map(Json)
}

answer!(ShowApi: show_api);
async fn show_api(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<ApiShown> {
    let service = node.registry.find(id.0)?;
    shown(&node, &service).await.map(Json)
}

answer!(RescanApi: rescan_api);
/// Reads the source of a service again, says what is different, and publishes it when asked to.
async fn rescan_api(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<RescanRequest>,
) -> Reply<Rescan> {
    if !request.apply {
        let service = node.registry.find(id.0)?;
        let new = node.reader().read_again(&service, request.source).await?;
        let changes = changes(service.known().api().description(), &new.api);
        let api = counted(&node, &service).await?;
        return Ok(Json(Rescan { changes, report: new.report, applied: false, api }));
    }
    // What is read with today's choices is published before anybody else may change them.
    let turn = node.registry.turn(id.0).await?;
    let new = node.reader().read_again(&turn, request.source).await?;
    let changes = changes(turn.known().api().description(), &new.api);
    let (report, applied) = (new.report.clone(), !changes.is_empty());
    let api = if applied {
        let service = node.registry.renew(turn, new).await?;
        node.publish().await;
        counted(&node, &service).await?
    } else {
        counted(&node, &turn).await?
    };
    Ok(Json(Rescan { changes, report, applied, api }))
}

answer!(EditApi: edit_api);
/// Changes texts, server and what is offered, as a new version.
async fn edit_api(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(mut edit): Json<EditRequest>,
) -> Reply<Edited> {
    let turn = node.registry.turn(id.0).await?;
    turn.is_still(edit.version)?;
    let before: Vec<String> = turn.secret_names().map(ToOwned::to_owned).collect();
    let source = edit.source.take();
    let new = node.reader().edit(&turn, &edit, source).await?;
    let service = node.registry.renew(turn, new).await?;
    node.publish().await;
    let ended = |name: &String| {
        !service.secret_names().any(|kept| kept == name.as_str()) && !means_to_end(&edit, name)
    };
    let dropped = before.into_iter().filter(ended).collect();
    Ok(Json(Edited { api: counted(&node, &service).await?, dropped_secrets: dropped }))
}

#[derive(Deserialize)]
pub(super) struct DocumentVersion {
    version: Option<String>,
}

impl DocumentVersion {
    /// 3.1 unless 3.0 is named.
    pub(super) fn version(&self) -> Version {
        if self.version.as_deref() == Some("3.0") { Version::V30 } else { Version::V31 }
    }
}

answer!(ApiOpenapi: openapi);
/// The document that consumers get, with the address of this node's own gateway.
async fn openapi(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Query(query): Query<DocumentVersion>,
) -> Result<Response, Failed> {
    let service = node.registry.find(id.0)?;
    let document = documents::openapi(service.known(), &address(&node.gateway_url(), id.0), query.version());
    Ok(([(header::CONTENT_TYPE, "application/json")], document).into_response())
}

answer!(ApiVersions: versions);
async fn versions(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<Vec<VersionNote>> {
    Ok(Json(node.registry.find(id.0)?.versions().into_iter().rev().collect()))
}

answer!(RemoveApi: remove_api);
async fn remove_api(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<Api> {
    let service = node.registry.find(id.0)?;
    let mut last = counted(&node, &service).await?;
    node.registry.remove(id.0).await?;
    node.publish().await;
    last.state = ApiState::Removed;
    Ok(Json(last))
}

answer!(PriceApi: price_api);
async fn price_api(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<PriceRequest>,
) -> Reply<Api> {
    let operation = request.operation.map(|operation| (operation.method.0, operation.path));
    let service = node.registry.set_price(id.0, operation, request.price.0).await?;
    node.publish().await;
    counted(&node, &service).await.map(Json)
}

answer!(PauseApi: pause_api);
async fn pause_api(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<Api> {
    set_paused(&node, id.0, true).await
}

answer!(ResumeApi: resume_api);
async fn resume_api(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<Api> {
    set_paused(&node, id.0, false).await
}

async fn set_paused(node: &Handles, id: ServiceId, paused: bool) -> Reply<Api> {
    let service = node.registry.set_paused(id, paused).await?;
    node.publish().await;
    counted(node, &service).await.map(Json)
}

async fn counted(node: &Handles, service: &Registered) -> Result<Api, Failed> {
    let counts = node.tally.counts(&node.ledger).await?;
    Ok(api(node, service, counts.get(&service.listing().service).copied().unwrap_or_default()))
}

fn api(node: &Handles, service: &Registered, count: Count) -> Api {
    let listing = service.listing();
    let is_unstored = node.catalog.storage().unstored.contains(&listing.service);
    Api {
        id: listing.service.into(),
        name: listing.name.clone(),
        state: match (listing.paused, is_unstored) {
            (true, _) => ApiState::Paused,
            (false, true) => ApiState::Unpublished,
            (false, false) => ApiState::Published,
        },
        upstream: service.upstream_url().to_owned(),
        upstream_class: distance(service.upstream().class()),
        price: listing.price.into(),
        listing_version: listing.seq,
        operations: service
            .known()
            .operations()
            .map(|(operation, price)| ApiOperation {
                method: method_of(operation).into(),
                path: operation.path.clone(),
                price: price.into(),
            })
            .collect(),
        calls: count.calls,
        earned: count.earned.into(),
        errors: count.errors,
        last_call_secs: count.last_secs,
        upstream_median_us: service.upstream().median_us(),
        health: node.health.last(listing.service),
        unpublished: is_unstored.then(|| format!("{UNSTORED}; {UNSTORED_NEXT}")),
    }
}

/// The distance of an owner's server, in words.
pub(super) fn distance(class: Option<AddressClass>) -> String {
    class.map_or_else(|| "not resolved yet".to_owned(), |class| class.to_string())
}

pub(super) async fn shown(node: &Handles, service: &Registered) -> Result<ApiShown, Failed> {
    let listing = service.listing();
    let description = service.known().api().description();
    let file = service.file();
    let hidden = file.iter().flat_map(|file| &file.operations).filter(|chosen| chosen.exclude);
    let hidden =
        hidden.map(|chosen| OperationName { method: chosen.method, path: chosen.path.clone() }).collect();
    let source = file.and_then(|file| file.source);
    Ok(ApiShown {
        api: counted(node, service).await?,
        kind: CatalogKind::from(listing.kind).into(),
        summary: listing.summary.clone(),
        category: listing.category.clone(),
        tags: listing.tags.clone(),
        description: description.description.clone(),
        origin: match &source {
            None => DescriptionOrigin::ByHand,
            Some(source) if source.url.is_none() => DescriptionOrigin::File,
            Some(_) => DescriptionOrigin::Url,
        },
        source: source.map_or_else(String::new, |source| source.url.unwrap_or(source.file)),
        secrets: service.secret_names().map(ToOwned::to_owned).collect(),
        report: service.report(),
        offers: service
            .known()
            .operations()
            .map(|(operation, price)| offer(description, operation, price))
            .collect(),
        samples: samples::read(service.samples()),
        hidden,
        charge: charge(listing.charge_policy),
    })
}

pub(super) const fn charge(policy: ChargePolicy) -> Charge {
    match policy {
        ChargePolicy::Success => Charge::Success,
        ChargePolicy::Answered => Charge::Answered,
    }
}

pub(super) fn offer(description: &ApiDescription, operation: &Operation, price: Usdc) -> Offer {
    Offer {
        method: method_of(operation).into(),
        path: operation.path.clone(),
        price: price.into(),
        summary: operation.summary.clone(),
        id: operation.id.clone(),
        tags: operation.tags.clone(),
        parameters: offer_parameters(description, operation),
        body: operation.body.as_ref().map(|body| description.type_name(&body.schema)),
        timeout_secs: time_of(operation).map(|time| time.as_secs()),
    }
}

pub(super) fn offer_parameters(description: &ApiDescription, operation: &Operation) -> Vec<OfferParameter> {
    let parameters = operation.parameters.iter();
    let one = |parameter: &Parameter| OfferParameter {
        name: parameter.name.clone(),
        place: parameter.place,
        kind: description.type_name(&parameter.schema),
        required: parameter.required,
    };
    parameters.map(one).collect()
}
