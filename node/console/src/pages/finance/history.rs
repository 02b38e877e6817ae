//! The history: everything that moved or earned money, filtered, and as a file for a spreadsheet.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::endpoint::{self, Endpoint, Target};
use farthing_control::types::{HistoryEntry, HistoryKind, HistoryPage, HistoryState, SettlementShown};
use farthing_os::clock;
use farthing_serve::attachment;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    page::{Rendered, answer},
    pages::{activity::named, register::mendable},
    show,
};

const LISTED: usize = 60;
/// Short steps that are put together to one page, when little fits.
const STEPS_MAX: usize = 8;
/// Calls of a settlement on its page.
const CALLS_SHOWN: usize = 100;

const KINDS: [(&str, &str); 6] = [
    ("", "Everything"),
    ("bought", "Calls bought"),
    ("served", "Calls served"),
    ("settlement", "Settlements"),
    ("transaction", "Transactions"),
    ("adjustment", "Adjustments"),
];
const STATES: [(&str, &str); 6] = [
    ("", "Any"),
    ("charged", "Paid"),
    ("free", "Free"),
    ("failed", "Failed"),
    ("pending", "Pending"),
    ("confirmed", "Confirmed"),
];

#[derive(Template)]
#[template(path = "finance-history.html")]
struct HistoryTemplate {
    frame: Frame,
    asked: HistoryParams,
    kinds: [(&'static str, &'static str); 6],
    states: [(&'static str, &'static str); 6],
    /// My own services, to choose from.
    own: Vec<(String, String)>,
    rows: Vec<HistoryRow>,
    export: String,
    export_json: String,
    next: Option<String>,
    problem: Option<String>,
}

struct HistoryRow {
    at: String,
    when: String,
    kind: &'static str,
    what: String,
    with: String,
    link: Option<String>,
    state: &'static str,
    good: bool,
    detail: String,
    amount: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct HistoryParams {
    kind: String,
    state: String,
    service: String,
    from: String,
    to: String,
    cursor: String,
}

impl HistoryParams {
    /// As the node takes it, and as addresses here have it.
    fn query(&self, cursor: &str, limit: Option<usize>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("kind", self.kind.as_str()),
            ("state", &self.state),
            ("service", &self.service),
            ("from", &self.from),
            ("to", &self.to),
            ("cursor", cursor),
        ] {
            if !value.trim().is_empty() {
                query.append_pair(name, value.trim());
            }
        }
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        query.finish()
    }
}

pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<HistoryParams>) -> Page {
    let node = visit.panel.node();
    let (found, problem) = match entries(&visit, &asked).await? {
        Ok(found) => (found, None),
        Err(problem) => (HistoryPage::default(), Some(problem)),
    };
    let own = node.ask(endpoint::Apis).await?;
    let now_secs = clock::now_secs();
    let page = HistoryTemplate {
        kinds: KINDS,
        states: STATES,
        own: own.iter().map(|api| (api.id.to_string(), show::visible(&api.name))).collect(),
        rows: found.entries.iter().map(|entry| row(entry, now_secs)).collect(),
        export: format!("/panel/finance/history.csv?{}", asked.query("", None)),
        export_json: format!("/panel/finance/history.json?{}", asked.query("", None)),
        next: found.next.map(|next| format!("/panel/finance/history?{}", asked.query(&next, None))),
        problem,
        asked,
        frame: visit.frame(Section::Finance).await?,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

/// A page full, when there is as much; a step of the node's may be short.
async fn entries(visit: &Visit, asked: &HistoryParams) -> Result<Result<HistoryPage, String>, Failure> {
    let mut all = HistoryPage { entries: Vec::new(), next: Some(asked.cursor.clone()) };
    for _ in 0..STEPS_MAX {
        let Some(cursor) = all.next.take() else { break };
        let query = asked.query(&cursor, Some(LISTED - all.entries.len()));
        let step = visit.panel.node().ask(Target::from(endpoint::History).with_query(&query)).await;
        match mendable(step)? {
            Ok(step) => {
                all.entries.extend(step.entries);
                all.next = step.next;
            }
            Err(problem) => return Ok(Err(problem)),
        }
        if all.entries.len() >= LISTED {
            break;
        }
    }
    Ok(Ok(all))
}

fn row(entry: &HistoryEntry, now_secs: u64) -> HistoryRow {
    let (kind, what) = match entry.kind {
        HistoryKind::Bought => ("Bought", named(&entry.name)),
        HistoryKind::Served => ("Served", named(&entry.name)),
        HistoryKind::Settlement => ("Settlement", format!("Claim number {}", entry.id)),
        HistoryKind::Transaction => ("Transaction", crate::texts::capital(&entry.what)),
        HistoryKind::Adjustment => ("Adjustment", crate::texts::capital(&entry.what)),
    };
    let link = match entry.kind {
        HistoryKind::Bought => entry.service.map(|id| format!("/panel/catalog/{id}")),
        HistoryKind::Served => entry.service.map(|id| format!("/panel/apis/{id}")),
        HistoryKind::Settlement => Some(format!("/panel/finance/settlements/{}", entry.id)),
        HistoryKind::Transaction | HistoryKind::Adjustment => None,
    };
    let (state, good) = state(entry.state);
    let mut details = Vec::new();
    if matches!(entry.kind, HistoryKind::Bought | HistoryKind::Served) && !entry.what.is_empty() {
        details.push(show::visible(&entry.what));
    }
    details.extend(entry.status.map(|status| format!("status {status}")));
    details.extend(entry.reason.as_ref().map(|reason| show::visible(reason)));
    details.extend(entry.secret.as_ref().map(|secret| format!("secret {}", show::visible(secret))));
    details.extend(entry.eth.map(|eth| format!("{} ETH", show::eth(&eth.0))));
    details.extend(entry.fee.map(|fee| format!("fee {} ETH", show::eth(&fee.0))));
    details.extend(entry.transaction.as_ref().map(|hash| format!("{}…", hash.get(..12).unwrap_or(hash))));
    HistoryRow {
        at: show::utc(entry.time_secs),
        when: show::ago(entry.time_secs, now_secs),
        kind,
        what,
        with: entry.peer.map_or_else(String::new, |peer| show::short(peer.0)),
        link,
        state,
        good,
        detail: details.join(", "),
        amount: show::usdc(entry.amount.0),
    }
}

/// In words, and whether it went well.
const fn state(state: HistoryState) -> (&'static str, bool) {
    match state {
        HistoryState::Charged => ("Paid", true),
        HistoryState::Free => ("Free", true),
        HistoryState::Failed => ("Failed", false),
        HistoryState::Pending => ("Pending", true),
        HistoryState::Confirmed => ("Confirmed", true),
        HistoryState::Lost => ("Lost", false),
    }
}

/// The same as a file.
pub(in crate::pages) async fn export(visit: Visit, Query(asked): Query<HistoryParams>) -> Page {
    let at = Target::from(endpoint::HistoryCsv).with_query(&asked.query("", None));
    file(&visit, at, "text/csv; charset=utf-8", "csv").await
}

pub(in crate::pages) async fn export_json(visit: Visit, Query(asked): Query<HistoryParams>) -> Page {
    let at = Target::from(endpoint::HistoryJson).with_query(&asked.query("", None));
    file(&visit, at, "application/json", "json").await
}

async fn file<E: Endpoint>(visit: &Visit, at: Target<E>, kind: &str, extension: &str) -> Page {
    let answer = visit.panel.node().exchange(at, bytes::Bytes::new()).await?;
    if !answer.status.is_success() {
        return Err(Failure::unreadable(answer.problem().detail));
    }
    let headers = attachment(kind, &format!("farthing-history.{extension}"));
    Ok((headers, answer.body).into_response())
}

#[derive(Template)]
#[template(path = "finance-settlement.html")]
struct SettlementPage {
    frame: Frame,
    id: u64,
    at: String,
    state: &'static str,
    good: bool,
    amount: String,
    transaction: String,
    /// The fate of a claim whose transaction no block has any more.
    reason: Option<String>,
    /// Channel, payer, amount.
    channels: Vec<(String, String, String)>,
    /// Time, service, operation, amount.
    calls: Vec<(String, String, String, String)>,
    calls_hidden: usize,
    partial: bool,
}

pub(in crate::pages) async fn settlement(visit: Visit, Path(id): Path<u64>) -> Page {
    let at = endpoint::Settlement.of(id);
    let found: SettlementShown = visit.panel.node().ask(at).await?;
    let (state, good) = state(found.state);
    let page = SettlementPage {
        frame: visit.frame(Section::Finance).await?,
        id,
        at: show::utc(found.time_secs),
        state,
        good,
        amount: show::usdc(found.amount.0),
        transaction: found.transaction.unwrap_or_else(|| "not sent yet".to_owned()),
        reason: found.reason.map(|reason| show::visible(&reason)),
        channels: found
            .channels
            .iter()
            .map(|part| {
                let payer = part.payer.map_or_else(String::new, |payer| payer.to_string());
                (part.channel.to_string(), payer, show::usdc(part.amount.0))
            })
            .collect(),
        calls_hidden: found.calls.len().saturating_sub(CALLS_SHOWN),
        calls: found
            .calls
            .iter()
            .take(CALLS_SHOWN)
            .map(|call| {
                let (name, operation) = (show::visible(&call.name), show::visible(&call.operation));
                (show::utc(call.time_secs), name, operation, show::usdc(call.charged.0))
            })
            .collect(),
        partial: found.partial,
    };
    Ok(Rendered(&page).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stands_in_the_address() {
        let asked =
            HistoryParams { kind: "bought".into(), from: " 2026-11-21 ".into(), ..HistoryParams::default() };
        assert_eq!(asked.query("a&b", Some(7)), "kind=bought&from=2026-11-21&cursor=a%26b&limit=7");
        assert_eq!(HistoryParams::default().query("", None), "");
    }
}
