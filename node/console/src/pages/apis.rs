//! My APIs: what this node offers, what it served and earned, and what is done with it.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{Api, ApiState, SeriesRange, ServiceCalls},
};
use farthing_os::clock;
use farthing_values::Usdc;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    markup::{Markup, sparkline},
    page::Rendered,
    pages::service::service_id,
    show,
    texts::Done,
};

pub(super) mod edit;
pub(super) mod one;
pub(super) mod operations;

#[derive(Template)]
#[template(path = "apis.html")]
struct ApisTemplate {
    frame: Frame,
    /// Each with its calls of the last days.
    rows: Vec<(ApiRow, Markup)>,
    unfinished: Vec<(String, String)>,
    earned: String,
    calls: u64,
    /// Not registered any more, as of the action before.
    retired: bool,
}

/// One service, as the list shows it.
pub(super) struct ApiRow {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) state_class: &'static str,
    pub(super) paused: bool,
    pub(super) price: String,
    /// As it is typed.
    pub(super) price_plain: String,
    pub(super) calls: String,
    pub(super) earned: String,
    pub(super) errors: String,
    pub(super) last_call: String,
    /// The median time that the upstream takes.
    pub(super) took: String,
    pub(super) upstream: String,
    pub(super) upstream_class: String,
    /// `7 of 8`
    pub(super) seen: String,
    pub(super) seen_class: &'static str,
    /// The state of the server in a word: whether it takes connections.
    pub(super) server: &'static str,
    pub(super) server_class: &'static str,
}

#[derive(Deserialize)]
pub(super) struct ApisParams {
    retired: Option<String>,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<ApisParams>) -> Page {
    let node = visit.panel.node();
    let apis = node.ask(endpoint::Apis).await?;
    let served = node.ask(endpoint::ServedSeries.with("range", SeriesRange::Week)).await?;
    let now_secs = clock::now_secs();
    let earned = apis.iter().fold(Usdc::ZERO, |sum, api| sum.saturating_add(api.earned.0));
    let unfinished = visit.panel.drafts().unfinished(visit.session.id()).into_iter();
    let page = ApisTemplate {
        frame: visit.frame(Section::Apis).await?,
        rows: apis.iter().map(|api| (row(api, now_secs), lately(api, &served))).collect(),
        unfinished: unfinished.map(|(name, title)| (name, show::visible(&title))).collect(),
        earned: show::usdc(earned),
        calls: apis.iter().map(|api| api.calls).sum(),
        retired: asked.retired.is_some(),
    };
    Ok(Rendered(&page).into_response())
}

/// The calls of seven days as a small picture.
fn lately(api: &Api, served: &[ServiceCalls]) -> Markup {
    let Some(own) = served.iter().find(|one| one.service == api.id) else { return Markup::default() };
    let calls = own.served.iter().fold(0_u64, |sum, calls| sum.saturating_add(*calls));
    sparkline(&own.served, &format!("{} in 7 days", show::grouped(&calls.to_string())))
}

pub(super) fn row(api: &Api, now_secs: u64) -> ApiRow {
    let (state, state_class) = state(api.state);
    let health = api.health.as_ref();
    let asked = health.filter(|health| health.asked > 0);
    let (server, server_class) = match health.filter(|health| !health.upstream.is_empty()) {
        None => ("not checked yet", "plain"),
        Some(health) if health.upstream_good => ("accepts connections", "good"),
        Some(_) => ("accepts no connection", "bad"),
    };
    ApiRow {
        seen: asked
            .map_or_else(|| "–".to_owned(), |health| format!("{} of {}", health.current, health.asked)),
        seen_class: match asked {
            None => "plain",
            Some(health) if health.current * 2 > health.asked => "good",
            Some(_) => "bad",
        },
        server,
        server_class,
        id: api.id.to_string(),
        name: show::visible(&api.name),
        state,
        state_class,
        paused: api.state == ApiState::Paused,
        price: show::usdc(api.price.0),
        price_plain: api.price.to_string(),
        calls: show::grouped(&api.calls.to_string()),
        earned: show::usdc(api.earned.0),
        errors: show::grouped(&api.errors.to_string()),
        last_call: api.last_call_secs.map_or_else(|| "never".to_owned(), |secs| show::ago(secs, now_secs)),
        took: api.upstream_median_us.map_or_else(|| "–".to_owned(), show::duration),
        upstream: show::visible(&api.upstream),
        upstream_class: api.upstream_class.clone(),
    }
}

/// In words, and the class of its colour.
pub(super) const fn state(state: ApiState) -> (&'static str, &'static str) {
    match state {
        ApiState::Published => ("Live", "good"),
        ApiState::Unpublished => ("Not published", "bad"),
        ApiState::Paused => ("Paused", "bad"),
        ApiState::Removed => ("Retired", "plain"),
    }
}

#[derive(Deserialize)]
pub(super) struct StateFields {
    state: String,
    /// The list, rather than the service's own page.
    list: Option<String>,
}

/// Pauses or resumes.
pub(super) async fn set_state(
    Path(text): Path<String>,
    form: Form<StateFields>,
) -> Result<Redirect, Failure> {
    let id = service_id(&text)?;
    let node = form.visit.panel.node();
    let done = match form.fields.state.as_str() {
        "paused" => node.ask(endpoint::PauseApi.of(id)).await.map(|_| Done::Paused)?,
        "live" => node.ask(endpoint::ResumeApi.of(id)).await.map(|_| Done::Resumed)?,
        _ => return Err(Failure::unreadable("`state` is neither `live` nor `paused`.")),
    };
    let place =
        if form.fields.list.is_some() { "/panel/apis".to_owned() } else { format!("/panel/apis/{id}") };
    Ok(done.at(&place))
}

#[derive(Template)]
#[template(path = "api-retire.html")]
struct RetirePage {
    frame: Frame,
    row: ApiRow,
}

pub(super) async fn retire_page(visit: Visit, Path(text): Path<String>) -> Page {
    let shown = visit.panel.node().ask(endpoint::ShowApi.of(service_id(&text)?)).await?;
    let page =
        RetirePage { frame: visit.frame(Section::Apis).await?, row: row(&shown.api, clock::now_secs()) };
    Ok(Rendered(&page).into_response())
}

pub(super) async fn retire(Path(text): Path<String>, form: Form<NoFields>) -> Result<Redirect, Failure> {
    let id = service_id(&text)?;
    let _ = form.confirmed()?;
    form.visit.panel.node().ask(endpoint::RemoveApi.of(id)).await?;
    Ok(Redirect::to("/panel/apis?retired=1"))
}
