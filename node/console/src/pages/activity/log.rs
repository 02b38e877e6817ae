//! The log of calls: filtered, a page at a time, the newest first. The first page follows what happens.

use askama::Template;
use axum::extract::Query;
use farthing_control::{
    Local,
    endpoint::{self, Target},
    types::{CallOutcome, CallSide, CallsPage, LoggedCall},
};
use farthing_os::clock;
use farthing_values::ServiceId;
use serde::Deserialize;

use super::{can_be_cancelled, service_of};
use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    outcome::{self, ShownOutcome},
    page::answer,
    pages::{petnames::PeerNames, register::mendable},
    show,
};

const LISTED: usize = 50;
/// Short steps that are put together to one page, when little fits.
const STEPS_MAX: usize = 8;
/// Characters of a stranger's text in a row; a call's own page has all that is kept.
const TEXT_SHOWN: usize = 80;

#[derive(Template)]
#[template(path = "activity.html")]
struct LogTemplate {
    frame: Frame,
    asked: LogParams,
    sides: Vec<(&'static str, &'static str)>,
    outcomes: Vec<(&'static str, &'static str)>,
    /// UUID and name.
    services: Vec<(String, String)>,
    secrets: Vec<String>,
    rows: Vec<LogRow>,
    /// Calls without a secret, in a sentence.
    wrong_secrets: Option<String>,
    /// The first page is kept up to date.
    is_live: bool,
    /// Filters that are set.
    active: usize,
    newest: String,
    next: Option<String>,
    problem: Option<String>,
}

/// One call, as tables list it.
pub(in crate::pages) struct LogRow {
    pub(in crate::pages) link: String,
    pub(in crate::pages) bought: bool,
    pub(in crate::pages) name: String,
    pub(in crate::pages) operation: String,
    pub(in crate::pages) peer: String,
    pub(in crate::pages) secret: Option<String>,
    pub(in crate::pages) when: String,
    pub(in crate::pages) at: String,
    pub(in crate::pages) outcome: ShownOutcome,
    pub(in crate::pages) status: Option<u16>,
    /// The code of the problem, and how many more ended so.
    pub(in crate::pages) code: Option<String>,
    pub(in crate::pages) others: u64,
    pub(in crate::pages) took: String,
    pub(in crate::pages) can_be_cancelled: bool,
    pub(in crate::pages) charged: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct LogParams {
    side: String,
    outcome: String,
    service: String,
    secret: String,
    call_id: String,
    from: String,
    to: String,
    cursor: String,
}

impl LogParams {
    fn filters(&self) -> [(&'static str, &str); 7] {
        [
            ("side", &self.side),
            ("outcome", &self.outcome),
            ("service", &self.service),
            ("secret", &self.secret),
            ("call_id", &self.call_id),
            ("from", &self.from),
            ("to", &self.to),
        ]
        .map(|(name, value)| (name, value.trim()))
    }

    /// As the node takes it, and as addresses here have it.
    fn query(&self, cursor: &str) -> url::form_urlencoded::Serializer<'static, String> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let cursor = [("cursor", cursor)];
        for (name, value) in self.filters().into_iter().chain(cursor).filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        query
    }

    /// A step from `cursor` on, as the node is asked for it.
    fn step(&self, cursor: &str, limit: usize) -> Target<endpoint::Calls> {
        let query = self.query(cursor).append_pair("limit", &limit.to_string()).finish();
        Target::from(endpoint::Calls).with_query(&query)
    }

    fn address(&self, cursor: &str) -> String {
        format!("/panel/activity?{}", self.query(cursor).finish())
    }
}

pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<LogParams>) -> Page {
    let (found, problem) = match calls(&visit, &asked).await? {
        Ok(found) => (found, None),
        Err(problem) => (CallsPage::default(), Some(problem)),
    };
    let now_secs = clock::now_secs();
    let secrets = visit.panel.node().ask(endpoint::Secrets).await?;
    let names = PeerNames::of(visit.panel.node()).await?;
    let page = LogTemplate {
        sides: vec![("", "Both"), (CallSide::Bought.name(), "Bought"), (CallSide::Served.name(), "Served")],
        outcomes: outcomes(),
        services: services(&visit, &asked, &found).await?,
        secrets: secrets.into_iter().map(|secret| secret.name).collect(),
        rows: found.calls.iter().map(|call| row(call, &names, now_secs)).collect(),
        wrong_secrets: wrong_secrets(&found, now_secs),
        is_live: asked.cursor.is_empty(),
        active: asked.filters().iter().filter(|(_, value)| !value.is_empty()).count(),
        newest: asked.address(""),
        next: found.next.map(|next| asked.address(&next)),
        problem,
        asked,
        frame: visit.frame(Section::Activity).await?,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

/// The newest calls in rows: of everything, or of those that were served by a service of this node's.
pub(in crate::pages) async fn newest(
    node: &Local,
    served_by: Option<ServiceId>,
    limit: usize,
) -> Result<Vec<LogRow>, Failure> {
    let side = served_by.map(|_| CallSide::Served);
    let asked = endpoint::Calls.with("limit", limit).with_some("service", served_by).with_some("side", side);
    let (found, now_secs) = (node.ask(asked).await?, clock::now_secs());
    let names = PeerNames::of(node).await?;
    Ok(found.calls.iter().map(|call| row(call, &names, now_secs)).collect())
}

fn outcomes() -> Vec<(&'static str, &'static str)> {
    let any = [("", "Any")].into_iter();
    any.chain(CallOutcome::ALL.map(|one| (one.name(), outcome::of(one).words))).collect()
}

/// A page full, when there is as much; a step of the node's may be short.
async fn calls(visit: &Visit, asked: &LogParams) -> Result<Result<CallsPage, String>, Failure> {
    let mut all = CallsPage { next: Some(asked.cursor.clone()), ..CallsPage::default() };
    for _ in 0..STEPS_MAX {
        let Some(cursor) = all.next.take() else { break };
        let step = asked.step(&cursor, LISTED - all.calls.len());
        match mendable(visit.panel.node().ask(step).await)? {
            Ok(step) => {
                let mut calls = std::mem::take(&mut all.calls);
                calls.extend(step.calls);
                let (next, wrong_secrets, wrong_secret_secs) =
                    (step.next, step.wrong_secrets, step.wrong_secret_secs);
                all = CallsPage { calls, next, wrong_secrets, wrong_secret_secs };
            }
            Err(problem) => return Ok(Err(problem)),
        }
        if all.calls.len() >= LISTED {
            break;
        }
    }
    Ok(Ok(all))
}

/// The services to choose from: one's own, those of this page, and the one that is chosen.
async fn services(
    visit: &Visit,
    asked: &LogParams,
    found: &CallsPage,
) -> Result<Vec<(String, String)>, Failure> {
    let own = visit.panel.node().ask(endpoint::Apis).await?;
    let mut services: Vec<(String, String)> =
        own.iter().map(|api| (api.id.to_string(), short(&api.name))).collect();
    for call in &found.calls {
        if let Some(service) = call.service.filter(|_| !call.name.is_empty()) {
            services.push((service.to_string(), short(&call.name)));
        }
    }
    services.sort_by(|(_, one), (_, other)| one.cmp(other));
    services.dedup();
    let chosen = asked.service.trim();
    if !chosen.is_empty() && !services.iter().any(|(id, _)| id == chosen) {
        services.push((chosen.to_owned(), short(chosen)));
    }
    Ok(services)
}

fn wrong_secrets(found: &CallsPage, now_secs: u64) -> Option<String> {
    let last = found.wrong_secret_secs?;
    let count = show::grouped(&found.wrong_secrets.to_string());
    let calls = if found.wrong_secrets == 1 { "call" } else { "calls" };
    let when = show::ago(last, now_secs);
    Some(format!(
        "{count} {calls} came without a valid secret, the last {when}. They are counted, not listed."
    ))
}

/// The beginning of a text, for a row.
fn short(text: &str) -> String {
    show::beginning(text, TEXT_SHOWN)
}

fn row(call: &LoggedCall, names: &PeerNames, now_secs: u64) -> LogRow {
    LogRow {
        link: format!("/panel/activity/{}", call.key),
        bought: call.side == CallSide::Bought,
        name: short(&service_of(call)),
        operation: short(&call.operation),
        peer: call.peer.map(|peer| names.short(peer.0)).unwrap_or_default(),
        secret: call.secret.as_ref().map(|secret| short(secret)),
        when: show::ago(call.time_secs, now_secs),
        at: show::utc(call.time_secs),
        outcome: outcome::shown(call.outcome, call.status),
        status: call.status,
        code: call.problem.as_ref().and_then(|problem| problem.code.clone()),
        others: call.others,
        took: took(call, now_secs),
        can_be_cancelled: can_be_cancelled(call),
        charged: call.charged.map_or_else(|| "–".to_owned(), |charged| show::usdc(charged.0)),
    }
}

/// The time that a call took, or has taken so far.
pub(super) fn took(call: &LoggedCall, now_secs: u64) -> String {
    match (call.took_us, call.outcome) {
        (Some(us), _) => show::duration(us),
        (None, CallOutcome::UnderWay) => {
            format!("{} so far", show::span(now_secs.saturating_sub(call.time_secs)))
        }
        (None, _) => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(short("short"), "short");
        let long = short(&"😀".repeat(200));
        assert_eq!((long.chars().count(), long.ends_with('…')), (TEXT_SHOWN + 1, true));
    }

    #[test]
    fn a_served_call_that_could_not_be_read_says_that_its_service_is_unknown() {
        let call = LoggedCall {
            key: "refused-1".to_owned(),
            has_record: false,
            side: CallSide::Served,
            time_secs: 1,
            call_id: None,
            service: None,
            name: String::new(),
            operation: String::new(),
            peer: None,
            secret: None,
            outcome: CallOutcome::Refused,
            status: None,
            charged: None,
            took_us: None,
            problem: None,
            others: 0,
        };
        let names = PeerNames::default();
        assert_eq!(row(&call, &names, 2).name, "Unknown service");
        let gone = LoggedCall { service: Some(ServiceId::from_bytes([1; 16]).into()), ..call };
        assert_eq!(row(&gone, &names, 2).name, "A service no longer known");
    }

    #[test]
    fn an_address_has_the_filters_that_are_set_and_the_place_to_go_on_at() {
        let asked = LogParams {
            side: "bought".to_owned(),
            secret: "a b&c".to_owned(),
            cursor: "old".to_owned(),
            ..LogParams::default()
        };
        assert_eq!(
            asked.address("7-bought-00"),
            "/panel/activity?side=bought&secret=a+b%26c&cursor=7-bought-00"
        );
        assert_eq!(asked.address(""), "/panel/activity?side=bought&secret=a+b%26c");
    }
}
