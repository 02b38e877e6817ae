//! Service: what one service of the network is, what answers look like, what it costs and who answers for it.

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    ControlError, Local, endpoint,
    types::{CatalogService, SeriesRange, StarRequest, VersionNote},
};
use farthing_os::clock;
use farthing_serve::attachment;
use farthing_values::ServiceId;
use http::StatusCode;
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::Session,
    failure::{Failure, Page},
    form::Form,
    frame::{Frame, Section, Visit},
    icons::Icon,
    markup::{Markup, strangers_markdown},
    page::Rendered,
    series::{CallsOf, Charts, Ranges, range_named},
    show,
    texts::Done,
};

use super::catalog::{Card, by_service, card};

mod sample;

pub(super) use sample::{Sample, origin_words};

/// Versions on one page; the commands have all that are kept.
const VERSIONS_SHOWN: usize = 20;
/// Samples on one page.
const SAMPLES_SHOWN: usize = 6;

#[derive(Template)]
#[template(path = "service.html")]
struct ServiceTemplate {
    frame: Frame,
    head: ServiceHead,
    owner: String,
    fingerprint: String,
    address: String,
    description: Markup,
    version: u64,
    updated_at: String,
    versions: Vec<VersionShown>,
    is_own: bool,
    samples: Vec<Sample>,
    samples_hidden: usize,
    bought: Option<BoughtShown>,
}

/// The calls that this node bought of a service or from an owner, over time.
pub(super) struct BoughtShown {
    pub(super) ranges: Ranges,
    pub(super) spent: Markup,
    pub(super) outcomes: Markup,
    pub(super) times: Markup,
    /// Within a year, with those that failed.
    pub(super) calls: u64,
    /// USDC that they cost.
    pub(super) total: String,
}

impl BoughtShown {
    /// `None` if nothing was bought in a year. The page at `path` has a range by its name.
    pub(super) async fn of(
        node: &Local,
        calls: CallsOf,
        path: &str,
        named: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let year = Charts::of(node, SeriesRange::Year, calls).await?;
        if !year.has_bought() {
            return Ok(None);
        }
        let (count, total) = year.bought_sum();
        let range = range_named(named);
        let charts = if range == SeriesRange::Year { year } else { Charts::of(node, range, calls).await? };
        Ok(Some(Self {
            ranges: Ranges::new(path, "calls", range),
            spent: charts.spent(),
            outcomes: charts.bought_outcomes(),
            times: charts.bought_times(),
            calls: count,
            total: show::usdc(total),
        }))
    }
}

/// The head of the page, above every part of a service.
pub(super) struct ServiceHead {
    pub(super) card: Card,
    pub(super) part: Part,
    pub(super) offers_count: usize,
    pub(super) samples_count: usize,
    pub(super) missing: Option<String>,
    pub(super) is_starred: bool,
}

impl ServiceHead {
    pub(super) async fn new(node: &Local, service: &CatalogService, part: Part) -> Result<Self, Failure> {
        let figures = node.ask(endpoint::Figures).await?;
        let starred = node.ask(endpoint::Starred).await?;
        Ok(Self {
            is_starred: starred.iter().any(|one| one.id.0 == service.hit.id.0),
            card: card(&service.hit, &by_service(&figures), clock::now_secs()),
            part,
            offers_count: service.offers.len(),
            samples_count: service.samples,
            missing: service.details_missing.as_deref().map(crate::texts::sentence),
        })
    }
}

/// One version, as the page and that of an own service show it.
pub(super) struct VersionShown {
    pub(super) version: u64,
    pub(super) when: String,
    pub(super) at: String,
    pub(super) price: String,
    pub(super) what: Vec<String>,
    pub(super) seen_here: bool,
}

impl VersionShown {
    /// The newest so many.
    pub(super) fn all(notes: &[VersionNote]) -> Vec<Self> {
        let now_secs = clock::now_secs();
        let one = |note: &VersionNote| Self {
            version: note.version,
            when: show::ago(note.published_secs, now_secs),
            at: show::utc(note.published_secs),
            price: show::usdc(note.price.0),
            what: note.what.iter().map(|what| crate::texts::capital(&show::visible(what))).collect(),
            seen_here: note.seen_here,
        };
        notes.iter().take(VERSIONS_SHOWN).map(one).collect()
    }
}

crate::texts::words! {
    /// The parts of the page; each has an address of its own.
    pub(super) enum Part(name.0: &'static str, title.1: &'static str) {
        Overview = "overview", "Overview";
        Reference = "reference", "Reference";
        Samples = "samples", "Samples";
        Sandbox = "sandbox", "Sandbox";
        Sdk = "sdk", "SDK";
        Versions = "versions", "Versions";
    }
}

impl Part {
    /// Of those on this page.
    fn named(name: &str) -> Self {
        let named = Self::ALL.into_iter().find(|part| part.name() == name);
        named
            .filter(|part| !matches!(part, Self::Reference | Self::Sandbox | Self::Sdk))
            .unwrap_or(Self::Overview)
    }

    pub(super) fn address(self, id: &str) -> String {
        match self {
            Self::Overview => format!("/panel/catalog/{id}"),
            Self::Reference | Self::Sandbox | Self::Sdk => format!("/panel/catalog/{id}/{}", self.name()),
            part => format!("/panel/catalog/{id}?part={}", part.name()),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct ServiceParams {
    #[serde(default)]
    part: String,
    range: Option<String>,
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>, Query(asked): Query<ServiceParams>) -> Page {
    let id = service_id(&id)?;
    let part = Part::named(&asked.part);
    let frame = visit.frame(Section::Catalog).await?;
    let node = visit.panel.node();
    let found = node.ask(endpoint::CatalogService.of(id)).await;
    if found.is_err() && is_foreign(node, id).await? {
        return Ok(Redirect::to(&format!("/panel/x402/{id}")).into_response());
    }
    let service = found?;
    let samples = if part == Part::Samples && service.samples > 0 {
        node.ask(endpoint::CatalogSamples.of(id)).await?.samples
    } else {
        Vec::new()
    };
    let versions: Vec<VersionNote> =
        if part == Part::Versions { node.ask(endpoint::CatalogVersions.of(id)).await? } else { Vec::new() };
    let bought = match part {
        Part::Overview => {
            let path = Part::Overview.address(&id.to_string());
            BoughtShown::of(node, CallsOf::Service(id), &path, asked.range.as_deref()).await?
        }
        _ => None,
    };
    let hit = &service.hit;
    let page = ServiceTemplate {
        versions: VersionShown::all(&versions),
        is_own: hit.owner.0 == frame.status.address.0,
        head: ServiceHead::new(node, &service, part).await?,
        owner: hit.owner.to_string(),
        fingerprint: show::fingerprint(hit.owner.0),
        address: service.address.clone(),
        description: if part == Part::Overview {
            strangers_markdown(&service.description)
        } else {
            Markup::default()
        },
        version: hit.version,
        updated_at: show::utc(hit.updated_secs),
        samples_hidden: samples.len().saturating_sub(SAMPLES_SHOWN),
        samples: samples.iter().take(SAMPLES_SHOWN).map(Sample::new).collect(),
        bought,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

/// The button of a star, which says what it does.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StarFields {
    starred: String,
}

/// Sets or removes the star of a service.
pub(super) async fn star(Path(id): Path<String>, form: Form<StarFields>) -> Page {
    let Form { visit, fields, .. } = form;
    let id = service_id(&id)?;
    let request = StarRequest { starred: fields.starred == "1" };
    visit.panel.node().tell(endpoint::StarService.of(id), &request).await?;
    let done = if request.starred { Done::Starred } else { Done::StarRemoved };
    Ok(done.at(&Part::Overview.address(&id.to_string())).into_response())
}

/// Returns whether this id is that of an x402 server. It has another page, and lists of calls link to the catalog for both.
async fn is_foreign(node: &Local, id: ServiceId) -> Result<bool, Failure> {
    Ok(node.ask(endpoint::X402Servers).await?.iter().any(|server| server.id.0 == id))
}

/// The service of an address; what is none has no page.
pub(super) fn service_id(text: &str) -> Result<ServiceId, Failure> {
    text.parse().map_err(|_| Failure::not_found())
}

#[derive(Deserialize)]
pub(super) struct DocumentQuery {
    version: Option<String>,
}

/// The OpenAPI document, as a file to keep.
pub(super) async fn openapi(
    State(panel): State<ConsoleState>,
    _: Session,
    Path(id): Path<String>,
    Query(asked): Query<DocumentQuery>,
) -> Page {
    let id = service_id(&id)?;
    let version = if asked.version.as_deref() == Some("3.0") { "3.0" } else { "3.1" };
    let at = endpoint::CatalogOpenapi.of(id).with("version", version);
    let answer = panel.node().exchange(at, bytes::Bytes::new()).await?;
    if answer.status != StatusCode::OK {
        return Err(ControlError::Refused(Box::new(answer.problem())).into());
    }
    let headers = attachment("application/json", &format!("{id}.openapi-{version}.json"));
    Ok((headers, answer.body).into_response())
}
