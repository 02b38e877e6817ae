//! Saved requests: all of them on one page, to be opened, renamed and deleted, and those of a service beside its operations.
//!
//! Names are the user's own and may be in any script; each is shown apart from what stands around it.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_control::{
    Local,
    endpoint::{self, Target},
    types::{SavedName, SavedTitle},
};
use farthing_os::clock;
use farthing_values::ServiceId;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::Form,
    frame::{Frame, Section, Visit},
    page::{answer, encoded},
    show,
    texts::Done,
};

use super::{
    register::{mendable, told},
    service::{Part, service_id},
};

const ADDRESS: &str = "/panel/saved";
/// Each has two forms' worth of fields, and a page is small.
const ROWS_SHOWN: usize = 16;
/// Beside the operations of a service; the page has all.
const LINKS_SHOWN: usize = 12;
const LINK_CHARS_MAX: usize = 48;
const OPERATION_CHARS_MAX: usize = 80;

#[derive(Template)]
#[template(path = "saved.html")]
struct SavedTemplate {
    frame: Frame,
    rows: Vec<SavedRow>,
    total: usize,
    /// The service whose requests are shown alone.
    service: String,
    service_name: String,
    earlier: Option<String>,
    later: Option<String>,
    problem: Option<String>,
}

struct SavedRow {
    id: String,
    name: String,
    open: String,
    service: String,
    service_link: String,
    operation: String,
    saved: String,
}

/// The saved requests of a service, as a part of a page.
#[derive(Debug, Default)]
pub(super) struct SavedLinks {
    pub(super) links: Vec<SavedLink>,
    pub(super) total: usize,
    /// The address of the page that has all of them.
    pub(super) all: String,
    /// One of them is open.
    pub(super) is_open: bool,
}

/// A saved request that can be opened.
#[derive(Debug)]
pub(super) struct SavedLink {
    pub(super) name: String,
    pub(super) link: String,
    pub(super) is_open: bool,
}

impl SavedLinks {
    /// The first of them by name, and the one that is open.
    pub(super) async fn of(node: &Local, service: ServiceId, open: Option<&str>) -> Result<Self, Failure> {
        let titles = node.ask(endpoint::SavedRequests.with("service", service)).await?;
        let is_open = |title: &SavedTitle| open == Some(title.id.as_str());
        let shown = titles.iter().enumerate().filter(|(at, title)| *at < LINKS_SHOWN || is_open(title));
        let links = shown.map(|(_, title)| SavedLink {
            name: show::beginning(&title.name, LINK_CHARS_MAX),
            link: opens(title),
            is_open: is_open(title),
        });
        let links: Vec<SavedLink> = links.collect();
        Ok(Self {
            is_open: links.iter().any(|link| link.is_open),
            links,
            total: titles.len(),
            all: address(Some(service)),
        })
    }
}

/// The address of the page that has all, or those of one service.
pub(super) fn address(service: Option<ServiceId>) -> String {
    service.map_or_else(|| ADDRESS.to_owned(), |service| format!("{ADDRESS}?service={service}"))
}

/// The address at which a saved request fills the form.
fn opens(title: &SavedTitle) -> String {
    format!("{}?saved={}", Part::Sandbox.address(&title.service.to_string()), encoded(&title.id))
}

impl SavedRow {
    fn new(title: &SavedTitle, now_secs: u64) -> Self {
        let service = title.service.to_string();
        Self {
            id: title.id.clone(),
            name: show::visible(&title.name),
            open: opens(title),
            service_link: Part::Overview.address(&service),
            service: name_of(title),
            operation: show::beginning(&title.operation, OPERATION_CHARS_MAX),
            saved: show::ago(title.saved_secs, now_secs),
        }
    }
}

/// The name of the service, or its id where the catalog has none.
fn name_of(title: &SavedTitle) -> String {
    let name = show::visible(&title.service_name);
    if name.trim().is_empty() { title.service.to_string() } else { name }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SavedParams {
    service: String,
    page: String,
}

impl SavedParams {
    fn service(&self) -> Result<Option<ServiceId>, Failure> {
        (!self.service.is_empty()).then(|| service_id(&self.service)).transpose()
    }
}

pub(super) async fn show(visit: Visit, Query(asked): Query<SavedParams>) -> Page {
    page(&visit, &asked, None).await
}

async fn page(visit: &Visit, asked: &SavedParams, problem: Option<String>) -> Page {
    let service = asked.service()?;
    let target = Target::from(endpoint::SavedRequests).with_some("service", service);
    let titles = visit.panel.node().ask(target).await?;
    let pages = titles.len().div_ceil(ROWS_SHOWN).max(1);
    let number = asked.page.parse().unwrap_or(1_usize).clamp(1, pages);
    let here = address(service);
    let sign = if service.is_some() { '&' } else { '?' };
    let link = |number: usize| format!("{here}{sign}page={number}");
    let now_secs = clock::now_secs();
    let shown = titles.iter().skip((number - 1) * ROWS_SHOWN).take(ROWS_SHOWN);
    let page = SavedTemplate {
        rows: shown.map(|title| SavedRow::new(title, now_secs)).collect(),
        total: titles.len(),
        service: service.map_or_else(String::new, |service| service.to_string()),
        service_name: titles.first().filter(|_| service.is_some()).map(name_of).unwrap_or_default(),
        earlier: (number > 1).then(|| link(number - 1)),
        later: (number < pages).then(|| link(number + 1)),
        frame: visit.frame(Section::Catalog).await?,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

/// A saved request, and the change to make.
#[derive(Deserialize)]
pub(super) struct SavedChange {
    request: String,
    #[serde(default)]
    act: String,
    #[serde(default)]
    name: String,
    /// The service whose requests the page shows alone.
    #[serde(default)]
    service: String,
}

pub(super) async fn change(form: Form<SavedChange>) -> Page {
    let Form { visit, fields, .. } = form;
    let SavedChange { request, act, name, service } = fields;
    let asked = SavedParams { service, page: String::new() };
    let here = address(asked.service()?);
    let node = visit.panel.node();
    let done = if act == "delete" {
        mendable(node.ask(endpoint::RemoveSavedRequest.of(&request)).await)?.map(|_| Done::RequestDeleted)
    } else {
        let renamed = told(node, endpoint::RenameSavedRequest.of(&request), Ok(SavedName { name })).await?;
        renamed.map(|_| Done::RequestRenamed)
    };
    match done {
        Ok(done) => Ok(done.at(&here).into_response()),
        Err(problem) => page(&visit, &asked, Some(problem)).await,
    }
}
