//! Client code for a service of the network.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use farthing_control::types::{
    Text,
    sdk::{Sdk, SdkFile, SdkLanguage, SdkRequest, Snippet, SnippetRequest},
};
use farthing_discovery::{Queuer, sdk};
use farthing_node::handles::Handles;
use farthing_protocol::ServiceId;
use farthing_sdk::{Language, SdkError};
use farthing_serve::attachment;
use serde::Deserialize;

use super::{Failed, Reply, catalog::newest};

/// Query of the download.
#[derive(Deserialize)]
pub(super) struct Download {
    package: Option<String>,
    #[serde(default)]
    single_file: bool,
    /// `zip` for an archive.
    form: Option<String>,
}

answer!(SdkLanguages: languages);
async fn languages() -> Json<Vec<SdkLanguage>> {
    Json(SdkLanguage::all())
}

answer!(Sdk: download);
async fn download(
    State(node): State<Handles>,
    Path((id, language)): Path<(Text<ServiceId>, String)>,
    Query(query): Query<Download>,
) -> Result<Response, Failed> {
    let is_zip = match query.form.as_deref() {
        None | Some("json") => false,
        Some("zip") => true,
        Some(_) => {
            let detail = "`form` must be json or zip";
            return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, "Leave it out for JSON."));
        }
    };
    let wishes =
        SdkRequest { package: query.package, single_file: query.single_file, ..SdkRequest::default() };
    if !is_zip {
        return Ok(Json(make(&node, id.0, &language, wishes, shown).await?).into_response());
    }
    let zipped = |made: farthing_sdk::Sdk| (sdk::zip(&made), made.package);
    let (archive, package) = make(&node, id.0, &language, wishes, zipped).await?;
    let archive = archive
        .map_err(|error| Failed::new(StatusCode::INTERNAL_SERVER_ERROR, &error, "Ask for JSON instead."))?;
    let headers = attachment("application/zip", &format!("{package}-{language}.zip"));
    Ok((headers, archive).into_response())
}

answer!(SdkWithTemplates: generate);
async fn generate(
    State(node): State<Handles>,
    Path((id, language)): Path<(Text<ServiceId>, String)>,
    Json(request): Json<SdkRequest>,
) -> Reply<Sdk> {
    make(&node, id.0, &language, request, shown).await.map(Json)
}

/// Generates the code and packs it.
async fn make<T: Send + 'static>(
    node: &Handles,
    id: ServiceId,
    language: &str,
    wishes: SdkRequest,
    pack: impl FnOnce(farthing_sdk::Sdk) -> T + Send + 'static,
) -> Result<T, Failed> {
    let Some(language) = Language::parse(language) else {
        let names: Vec<&str> = Language::all().map(Language::name).collect();
        let detail = format!("this language does not exist; expected one of {}", names.join(", "));
        return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, "`farthing sdk languages` lists them."));
    };
    let origin = node.gateway_url();
    let Some((name, path)) = foreign(node, id) else {
        let known = newest(node, id).await?;
        let write = move || sdk::generate(&known, language, &origin, wishes).map(pack);
        return Ok(node.catalog.in_turn(Queuer::User, write).await??);
    };
    let write = move || sdk::generate_for_server((id, &name), &path, language, &origin, wishes).map(pack);
    Ok(node.catalog.in_turn(Queuer::User, write).await??)
}

/// The host of an x402 server, which is a name for a package, and its path that was asked last; `None` of a service of the network.
fn foreign(node: &Handles, id: ServiceId) -> Option<(String, String)> {
    let server = node.foreign.servers().into_iter().find(|server| server.id == id)?;
    let root = server.url.as_str().trim_end_matches('/');
    let terms = node.foreign.terms(id);
    let asked = terms.as_ref().and_then(|terms| terms.url.as_str().strip_prefix(root));
    let path = asked.filter(|path| path.starts_with('/')).unwrap_or("/");
    let host = server.url.host_str().unwrap_or_default();
    Some((host.to_owned(), path.to_owned()))
}

answer!(SdkSnippets: snippets);
async fn snippets(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(call): Json<SnippetRequest>,
) -> Reply<Vec<Snippet>> {
    let known = newest(&node, id.0).await?;
    let operations = &known.api().description().operations;
    let is_it = |method: &str, path: &str| method == call.method && path == call.path;
    let Some(index) =
        operations.iter().position(|operation| is_it(operation.method.as_str(), &operation.path))
    else {
        let detail = "there is no operation with this method and path";
        return Err(Failed::new(StatusCode::NOT_FOUND, &detail, "`farthing catalog show` lists them."));
    };
    let origin = node.gateway_url();
    let write = move |language: Language| {
        let (name, title) = (language.name().to_owned(), language.title().to_owned());
        let shown = |text| Snippet { language: name, title, text };
        sdk::snippet(&known, index, &call, language, &origin).transpose().map(|text| text.map(shown))
    };
    let written = move || Language::all().filter_map(write).collect::<Result<Vec<_>, SdkError>>();
    Ok(Json(node.catalog.in_turn(Queuer::User, written).await??))
}

fn shown(sdk: farthing_sdk::Sdk) -> Sdk {
    let file = |farthing_sdk::SdkFile { path, text }| SdkFile { path, text };
    Sdk { package: sdk.package, files: sdk.files.into_iter().map(file).collect(), warnings: sdk.warnings }
}

refused!(SdkError: BAD_REQUEST);
