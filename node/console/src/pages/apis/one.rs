//! One of my services: how it does, what it costs, what became of its description.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Redirect},
};
use farthing_bridge::changes::Changes;
use farthing_control::endpoint;
use farthing_control::types::{
    CatalogKind, DescriptionOrigin, EditRequest, Edited, ListingHealth, PriceRequest, Rescan, RescanRequest,
};
use farthing_os::clock;
use farthing_values::ServiceId;
use serde::Deserialize;

use super::{ApiRow, operations, row};
use crate::{
    access::Reauthenticated,
    failure::Page,
    form::{Form, upload::Upload},
    frame::{Frame, Section, Visit},
    markup::Markup,
    page::answer,
    pages::{
        activity::log::{LogRow, newest},
        register::{
            details::operation_sent,
            mendable, price,
            review::{Finding, report_findings},
            told,
        },
        service::{VersionShown, service_id},
    },
    series::{CallsOf, Charts, Ranges, range_named},
    show,
    texts::Done,
};

/// The newest calls of the service.
const CALLS_SHOWN: usize = 10;
/// Lines of what a newer description changes.
const CHANGES_SHOWN: usize = 60;

#[derive(Template)]
#[template(path = "api.html")]
struct ApiTemplate {
    frame: Frame,
    row: ApiRow,
    ranges: Ranges,
    outcomes: Markup,
    times: Markup,
    earned: Markup,
    registered: bool,
    kind: CatalogKind,
    summary: String,
    category: String,
    tags: Vec<String>,
    version: u64,
    source: String,
    /// Read again by its address alone; a file has to be given anew.
    source_is_url: bool,
    has_source: bool,
    needs_password: bool,
    secrets: String,
    findings: Vec<Finding>,
    offers_count: usize,
    hidden_count: usize,
    changed: bool,
    health: Option<HealthShown>,
    calls: Vec<LogRow>,
    rescan: Option<RescanShown>,
    versions: Vec<VersionShown>,
    problem: Option<String>,
}

/// The health of a service: whether others find it, and how its upstream is.
struct HealthShown {
    good: bool,
    /// `Seen by 7 of 8 connected nodes`
    headline: String,
    others: String,
    details: &'static str,
    when: String,
    upstream: String,
    upstream_good: bool,
}

pub(super) struct RescanShown {
    applied: bool,
    lines: Vec<String>,
    hidden: usize,
    findings: Vec<Finding>,
}

#[derive(Default, Deserialize)]
pub(in crate::pages) struct ApiParams {
    registered: Option<String>,
    /// By the action before.
    changed: Option<String>,
    /// Asks others now.
    check: Option<String>,
    range: Option<String>,
}

pub(in crate::pages) async fn show(
    visit: Visit,
    Path(text): Path<String>,
    Query(asked): Query<ApiParams>,
) -> Page {
    page(&visit, &text, asked, None, None).await
}

pub(super) async fn page(
    visit: &Visit,
    text: &str,
    asked: ApiParams,
    rescan: Option<RescanShown>,
    problem: Option<String>,
) -> Page {
    let id = service_id(text)?;
    let node = visit.panel.node();
    let shown = node.ask(endpoint::ShowApi.of(id)).await?;
    let now_secs = clock::now_secs();
    let health: Option<ListingHealth> = match asked.check {
        Some(_) => Some(node.ask(endpoint::ApiHealth.of(id)).await?),
        None => shown.api.health.clone().filter(|health| health.asked_secs > 0),
    };
    let health = health.map(|health| health_shown(&health, now_secs));
    let notes = node.ask(endpoint::ApiVersions.of(id)).await?;
    let range = range_named(asked.range.as_deref());
    let charts = Charts::of(node, range, CallsOf::Service(id)).await?;
    let page = ApiTemplate {
        versions: VersionShown::all(&notes),
        frame: visit.frame(Section::Apis).await?,
        changed: asked.changed.is_some(),
        health,
        row: row(&shown.api, now_secs),
        ranges: Ranges::new(&format!("/panel/apis/{id}"), "figures", range),
        outcomes: charts.served_outcomes(),
        times: charts.served_times(),
        earned: charts.earned(),
        registered: asked.registered.is_some(),
        kind: shown.kind.0,
        summary: show::visible(&shown.summary),
        category: show::visible(&shown.category),
        tags: shown.tags.iter().map(|tag| show::visible(tag)).collect(),
        version: shown.api.listing_version,
        source_is_url: shown.origin == DescriptionOrigin::Url,
        has_source: shown.origin != DescriptionOrigin::ByHand,
        needs_password: visit.session.reauthenticated(now_secs).is_none(),
        source: show::visible(&shown.source),
        secrets: shown.secrets.iter().map(|name| show::visible(name)).collect::<Vec<_>>().join(", "),
        findings: report_findings(&shown.report),
        offers_count: shown.offers.len(),
        hidden_count: shown.hidden.len(),
        calls: newest(node, Some(id), CALLS_SHOWN).await?,
        rescan,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn health_shown(health: &ListingHealth, now_secs: u64) -> HealthShown {
    let ListingHealth { asked, current, earlier, missing, silent, .. } = *health;
    let headline = match asked {
        0 => "No other node is connected, so your node cannot tell".to_owned(),
        _ => format!("Seen by {current} of {asked} connected {}", if asked == 1 { "node" } else { "nodes" }),
    };
    let others = [
        (earlier, "with an earlier version that updates within seconds"),
        (missing, "without the listing"),
        (silent, "without an answer"),
    ];
    let others =
        others.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    HealthShown {
        good: asked > 0 && current * 2 > asked,
        headline,
        others: others.collect::<Vec<_>>().join(", "),
        details: match health.details_served {
            None => "Your node could not ask any node for its operations.",
            Some(true) => "Other nodes can provide its operations, even while your node is away.",
            Some(false) => "Other nodes do not have its operations yet. They ask your node for them.",
        },
        when: show::ago(health.asked_secs, now_secs),
        upstream: show::visible(&health.upstream),
        upstream_good: health.upstream_good,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct PriceFields {
    price: String,
    operation: String,
    page: usize,
    /// `hide` stops offering the operation instead.
    go: String,
}

/// The default price, or that of one operation; or that operation is not offered any more.
pub(in crate::pages) async fn set_price(Path(text): Path<String>, form: Form<PriceFields>) -> Page {
    let id = service_id(&text)?;
    let operation = match form.fields.operation.as_str() {
        "" => None,
        named => Some(operation_sent(named)?),
    };
    if form.fields.go == "hide" {
        let proof = form.reauthenticated()?;
        let hide = operation.into_iter().collect();
        return change(&form.visit, &text, EditRequest { hide, ..EditRequest::default() }, proof).await;
    }
    let Form { visit, fields, .. } = form;
    let price = price("Price", &fields.price).map_err(|wrong| wrong.words());
    let request = price.map(|price| PriceRequest { price: price.into(), operation });
    let outcome = told(visit.panel.node(), endpoint::PriceApi.of(id), request).await?;
    match (outcome, fields.operation.is_empty()) {
        (Ok(_), true) => Ok(Done::Price.at(&format!("/panel/apis/{id}")).into_response()),
        (Ok(_), false) => Ok(Done::Price.at(&operations::address(id, fields.page)).into_response()),
        (Err(problem), true) => page(&visit, &text, ApiParams::default(), None, Some(problem)).await,
        (Err(problem), false) => operations::page(&visit, &text, fields.page, Some(problem)).await,
    }
}

/// Reads the description again: from its address, or a newer file. Shows what is different, or publishes it.
///
/// A description decides which paths of the server others may call with the owner's keys.
pub(in crate::pages) async fn read_again(Path(text): Path<String>, mut upload: Upload) -> Page {
    let id = service_id(&text)?;
    let _ = upload.reauthenticated()?;
    let apply = upload.text("go") == "apply";
    let source = upload.source();
    let visit = upload.visit;
    let request = RescanRequest { source, apply };
    let outcome = mendable(visit.panel.node().tell(endpoint::RescanApi.of(id), &request).await)?;
    let asked = ApiParams::default();
    match outcome {
        Ok(rescan) => page(&visit, &text, asked, Some(rescan_shown(&rescan)), None).await,
        Err(problem) => page(&visit, &text, asked, None, Some(problem)).await,
    }
}

fn rescan_shown(rescan: &Rescan) -> RescanShown {
    let lines = changes(&rescan.changes);
    RescanShown {
        applied: rescan.applied,
        hidden: lines.len().saturating_sub(CHANGES_SHOWN),
        lines: lines.into_iter().take(CHANGES_SHOWN).collect(),
        findings: report_findings(&rescan.report),
    }
}

/// One line for each operation that is different.
fn changes(changes: &Changes) -> Vec<String> {
    let added = changes.added.iter().map(|operation| format!("Added: {operation}"));
    let removed = changes.removed.iter().map(|operation| format!("Removed: {operation}"));
    let changed =
        changes.changed.iter().map(|change| format!("{}: {}", change.operation, change.what.join("; ")));
    added.chain(removed).chain(changed).map(|line| show::visible(&line)).collect()
}

/// To the service, which says what came of the change.
pub(super) fn changed(id: ServiceId, edited: &Edited) -> Redirect {
    let place = format!("/panel/apis/{id}?changed=1");
    if edited.dropped_secrets.is_empty() { Redirect::to(&place) } else { Done::KeysDropped.at(&place) }
}

/// Publishes a change and shows the service again.
pub(super) async fn change(visit: &Visit, text: &str, request: EditRequest, _: Reauthenticated) -> Page {
    let id = service_id(text)?;
    match mendable(visit.panel.node().tell(endpoint::EditApi.of(id), &request).await)? {
        Ok(edited) => Ok(changed(id, &edited).into_response()),
        Err(problem) => page(visit, text, ApiParams::default(), None, Some(problem)).await,
    }
}
