//! SDK: client code for a service, in every language there are templates for: files, a preview, downloads.
//!
//! The code is made anew for each look, from the service's verified description; the same look gives the same bytes.

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::IntoResponse,
};
use bytes::Bytes;
use farthing_control::{
    Local, endpoint,
    types::sdk::{Sdk, SdkLanguage},
};
use farthing_serve::attachment;
use farthing_values::ServiceId;
use http::header;
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::Session,
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    icons::Icon,
    markup::{Markup, code_of},
    page::{Rendered, encoded},
    show,
};

use super::service::{Part, ServiceHead, service_id};

/// Files of a tree; no language has more.
const FILES_SHOWN: usize = 60;
const WARNINGS_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "sdk.html")]
struct SdkTemplate {
    frame: Frame,
    head: ServiceHead,
    here: String,
    languages: Vec<SdkLanguage>,
    made: Option<GeneratedClient>,
}

/// The client that was made in the chosen language.
struct GeneratedClient {
    language: SdkLanguage,
    single: bool,
    package: String,
    /// Path, its address here, and whether it is shown.
    files: Vec<(String, String, bool)>,
    warnings: Vec<String>,
    warnings_hidden: usize,
    shown: Option<FileShown>,
}

struct FileShown {
    path: String,
    download: String,
    code: Markup,
    is_cut: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SdkParams {
    language: String,
    file: String,
    /// Everything in one file.
    single: String,
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>, Query(asked): Query<SdkParams>) -> Page {
    let id = service_id(&id)?;
    let node = visit.panel.node();
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let languages = node.ask(endpoint::SdkLanguages).await?;
    let chosen = languages.iter().find(|language| language.name == asked.language).or(languages.first());
    let made = match chosen {
        Some(language) if service.details_missing.is_none() => {
            let single = !asked.single.is_empty();
            let sdk = make(node, id, &language.name, single).await?;
            Some(GeneratedClient::new(id, language.clone(), single, &sdk, &asked.file))
        }
        _ => None,
    };
    let page = SdkTemplate {
        frame: visit.frame(Section::Catalog).await?,
        head: ServiceHead::new(node, &service, Part::Sdk).await?,
        here: address(id),
        made,
        languages,
    };
    Ok(Rendered(&page).into_response())
}

impl GeneratedClient {
    fn new(id: ServiceId, language: SdkLanguage, single: bool, sdk: &Sdk, asked: &str) -> Self {
        let first = || sdk.files.iter().find(|file| file.path == "README.md").or(sdk.files.first());
        let found = sdk.files.iter().find(|file| file.path == asked).or_else(first);
        let one = if single { "&single=1" } else { "" };
        let query = |path: &str| format!("language={}{one}&file={}", language.name, encoded(path));
        let files = sdk.files.iter().take(FILES_SHOWN).map(|file| {
            let is_shown = found.is_some_and(|found| found.path == file.path);
            (file.path.clone(), format!("{}?{}", address(id), query(&file.path)), is_shown)
        });
        let shown = found.map(|file| {
            let (code, is_cut) = code_of(&file.path, &file.text);
            let download = format!("{}/file?{}", address(id), query(&file.path));
            FileShown { path: file.path.clone(), download, code, is_cut }
        });
        Self {
            files: files.collect(),
            package: sdk.package.clone(),
            warnings: sdk.warnings.iter().take(WARNINGS_SHOWN).map(|text| show::visible(text)).collect(),
            warnings_hidden: sdk.warnings.len().saturating_sub(WARNINGS_SHOWN),
            language,
            single,
            shown,
        }
    }
}

/// One file, to keep.
pub(super) async fn file(
    State(panel): State<ConsoleState>,
    _: Session,
    Path(id): Path<String>,
    Query(asked): Query<SdkParams>,
) -> Page {
    let sdk = make(panel.node(), service_id(&id)?, &asked.language, !asked.single.is_empty()).await?;
    let found = sdk.files.into_iter().find(|file| file.path == asked.file);
    let file = found.ok_or_else(Failure::not_found)?;
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect();
    Ok((attachment("application/octet-stream", &name), file.text).into_response())
}

/// All files, as an archive.
pub(super) async fn archive(
    State(panel): State<ConsoleState>,
    _: Session,
    Path(id): Path<String>,
    Query(asked): Query<SdkParams>,
) -> Page {
    let at = endpoint::Sdk.of(service_id(&id)?).of(&asked.language).with("form", "zip");
    let answer = panel.node().exchange(at, Bytes::new()).await?;
    if !answer.status.is_success() {
        return Err(farthing_control::ControlError::Refused(Box::new(answer.problem())).into());
    }
    let kept = [header::CONTENT_TYPE, header::CONTENT_DISPOSITION];
    let headers: http::HeaderMap = kept
        .into_iter()
        .filter_map(|name| Some((name.clone(), answer.headers.get(&name)?.clone())))
        .collect();
    Ok((headers, answer.body).into_response())
}

async fn make(node: &Local, id: ServiceId, language: &str, single: bool) -> Result<Sdk, Failure> {
    Ok(node.ask(endpoint::Sdk.of(id).of(language).with("single_file", single)).await?)
}

fn address(id: ServiceId) -> String {
    Part::Sdk.address(&id.to_string())
}
