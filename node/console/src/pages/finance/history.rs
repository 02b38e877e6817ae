//! The history: everything that moved or earned money, filtered, added up, and as a file for a spreadsheet.
//!
//! A service or a wallet is chosen by name ([`picks`]) or given by its id. Entries stand one by one or put together
//! ([`sums`]); what is shown is added up in both cases.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::endpoint::{self, Endpoint, Target};
use farthing_control::types::{HistoryEntry, HistoryKind, HistoryPage, HistoryState, SettlementShown};
use farthing_os::clock;
use farthing_serve::attachment;
use farthing_values::{Address, ServiceId};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    page::{Rendered, answer},
    pages::{activity::named, petnames::PeerNames, register::mendable},
    show,
};

mod picks;
mod sums;

use picks::PickList;
use sums::{EntryGroup, Grouping, Sums};

const LISTED: usize = 40;
/// Entries that are added up in groups; more take long to read.
const GROUPED_MAX: usize = 4_000;
/// Groups on one page.
const GROUPS_SHOWN: usize = 100;
/// Entries that the node gives in one step.
const STEP_MAX: usize = 500;
/// Steps that are put together to one page; they are short when little fits.
const STEPS_MAX: usize = 8;
/// The newest calls of each side, whose services and wallets can be picked.
const PICKED_FROM: usize = 500;
/// Calls of a settlement on its page.
const CALLS_SHOWN: usize = 100;

const KINDS: [(&str, &str); 6] = [
    ("", "All types"),
    ("bought", "Calls bought"),
    ("served", "Calls served"),
    ("settlement", "Settlements"),
    ("transaction", "Transactions"),
    ("adjustment", "Adjustments"),
];
const STATES: [(&str, &str); 7] = [
    ("", "Any"),
    ("charged", "Paid"),
    ("free", "Free"),
    ("failed", "Failed"),
    ("pending", "Pending"),
    ("confirmed", "Confirmed"),
    ("returned", "Returned"),
];

#[derive(Template)]
#[template(path = "finance-history.html")]
struct HistoryTemplate {
    frame: Frame,
    asked: HistoryParams,
    kinds: [(&'static str, &'static str); 6],
    states: [(&'static str, &'static str); 7],
    services: Vec<PickList>,
    wallets: Vec<PickList>,
    grouping: Grouping,
    rows: Vec<HistoryRow>,
    groups: Vec<GroupRow>,
    groups_hidden: usize,
    totals: SumsShown,
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
    transaction: Option<TransactionShown>,
    amount: String,
}

/// A transaction on chain.
struct TransactionShown {
    hash: String,
    short: String,
    /// The chain's explorer, where there is one.
    link: Option<String>,
}

impl TransactionShown {
    fn new(hash: &str, explorer: Option<&str>) -> Self {
        Self {
            short: format!("{}…", hash.get(..12).unwrap_or(hash)),
            link: explorer.map(|site| format!("{site}/tx/{hash}")),
            hash: hash.to_owned(),
        }
    }
}

struct GroupRow {
    title: String,
    link: Option<String>,
    sums: SumsShown,
}

/// Sums as they are written.
struct SumsShown {
    bought: u64,
    spent: String,
    served: u64,
    earned: String,
    claimed: String,
    fees: String,
}

impl SumsShown {
    fn new(sums: &Sums) -> Self {
        Self {
            bought: sums.bought,
            spent: show::usdc(sums.spent),
            served: sums.served,
            earned: show::usdc(sums.earned),
            claimed: show::usdc(sums.claimed),
            fees: show::eth(&sums.fees),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct HistoryParams {
    kind: String,
    state: String,
    service: String,
    with: String,
    from: String,
    to: String,
    cursor: String,
    group: String,
    /// A service or a wallet that is in no list, as it was typed.
    id: String,
}

impl HistoryParams {
    /// As the node takes it, and as addresses here have it.
    fn query(&self, cursor: &str, limit: Option<usize>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in [
            ("kind", self.kind.as_str()),
            ("state", &self.state),
            ("service", &self.service),
            ("with", &self.with),
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

    /// Has an id that was typed take the place of what was picked.
    fn take_id(&mut self) -> Result<(), String> {
        let id = std::mem::take(&mut self.id);
        if let Ok(service) = id.trim().parse::<ServiceId>() {
            self.service = service.to_string();
        } else if let Ok(wallet) = id.trim().parse::<Address>() {
            self.with = wallet.to_string();
        } else if !id.trim().is_empty() {
            let shown: String = show::visible(&id).chars().take(60).collect();
            self.id = id;
            return Err(format!("“{shown}” is neither the UUID of a service nor the address of a wallet."));
        }
        Ok(())
    }

    /// The address of this page with the same filters; `change` has those that differ.
    fn address(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = Self { cursor: String::new(), group: String::new(), ..self.clone() };
        change(&mut other);
        format!("/panel/finance/history?{}", other.query("", None))
    }
}

pub(in crate::pages) async fn show(visit: Visit, Query(mut asked): Query<HistoryParams>) -> Page {
    let node = visit.panel.node();
    let grouping = Grouping::named(&asked.group);
    let wanted = if grouping == Grouping::OneByOne { LISTED } else { GROUPED_MAX };
    let found = match asked.take_id() {
        Ok(()) => entries(&visit, &asked, wanted).await?,
        Err(problem) => Err(problem),
    };
    let (found, problem) =
        found.map_or_else(|problem| (HistoryPage::default(), Some(problem)), |found| (found, None));
    let own = node.ask(endpoint::Apis).await?;
    let activity = node.ask(endpoint::Activity.with("limit", PICKED_FROM)).await?;
    let names = PeerNames::of(node).await?;
    let frame = visit.frame(Section::Finance).await?;
    let explorer = frame.status.chain.explorer.as_deref();
    let (rows, groups) = match grouping {
        Grouping::OneByOne => (rows(&found.entries, explorer, &names), Vec::new()),
        Grouping::Service | Grouping::Day => (Vec::new(), sums::groups(&found.entries, grouping)),
    };
    let page = HistoryTemplate {
        kinds: KINDS,
        states: STATES,
        services: picks::services(&activity, &own, &asked.service),
        wallets: picks::wallets(&activity, &names, &asked.with),
        grouping,
        rows,
        groups_hidden: groups.len().saturating_sub(GROUPS_SHOWN),
        groups: groups
            .into_iter()
            .take(GROUPS_SHOWN)
            .map(|group| group_row(group, grouping, &asked))
            .collect(),
        totals: SumsShown::new(&Sums::of(&found.entries)),
        export: format!("/panel/finance/history.csv?{}", asked.query("", None)),
        export_json: format!("/panel/finance/history.json?{}", asked.query("", None)),
        next: found.next.map(|next| format!("/panel/finance/history?{}", asked.query(&next, None))),
        problem,
        asked,
        frame,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn rows(entries: &[HistoryEntry], explorer: Option<&str>, names: &PeerNames) -> Vec<HistoryRow> {
    let now_secs = clock::now_secs();
    entries.iter().map(|entry| row(entry, explorer, names, now_secs)).collect()
}

/// A group, which leads to its entries one by one.
fn group_row(group: EntryGroup, grouping: Grouping, asked: &HistoryParams) -> GroupRow {
    let EntryGroup { title, key, sums } = group;
    let link = (!key.is_empty()).then(|| {
        asked.address(|other| match grouping {
            Grouping::Day => (other.from, other.to) = (key.clone(), key),
            Grouping::Service | Grouping::OneByOne => other.service = key,
        })
    });
    GroupRow { title, link, sums: SumsShown::new(&sums) }
}

/// As many entries as are wanted, when there are as many; a step of the node's may be short.
async fn entries(
    visit: &Visit,
    asked: &HistoryParams,
    wanted: usize,
) -> Result<Result<HistoryPage, String>, Failure> {
    let mut all = HistoryPage { entries: Vec::new(), next: Some(asked.cursor.clone()) };
    for _ in 0..STEPS_MAX {
        let Some(cursor) = all.next.take() else { break };
        let query = asked.query(&cursor, Some((wanted - all.entries.len()).min(STEP_MAX)));
        let step = visit.panel.node().ask(Target::from(endpoint::History).with_query(&query)).await;
        match mendable(step)? {
            Ok(step) => {
                all.entries.extend(step.entries);
                all.next = step.next;
            }
            Err(problem) => return Ok(Err(problem)),
        }
        if all.entries.len() >= wanted {
            break;
        }
    }
    Ok(Ok(all))
}

fn row(entry: &HistoryEntry, explorer: Option<&str>, names: &PeerNames, now_secs: u64) -> HistoryRow {
    let (kind, what) = match entry.kind {
        HistoryKind::Bought => ("Bought", named(&entry.name)),
        HistoryKind::Served => ("Served", named(&entry.name)),
        HistoryKind::Settlement => ("Settlement", settlement_title(&entry.id, entry.state)),
        HistoryKind::Transaction => ("Transaction", crate::texts::capital(&entry.what)),
        HistoryKind::Adjustment => ("Adjustment", crate::texts::capital(&entry.what)),
    };
    let link = match entry.kind {
        HistoryKind::Bought => Some(format!("/panel/activity/bought-{}", entry.id)),
        HistoryKind::Served => entry.peer.map(|payer| format!("/panel/activity/served-{payer}-{}", entry.id)),
        HistoryKind::Settlement => Some(format!("/panel/finance/settlements/{}", entry.id)),
        HistoryKind::Transaction | HistoryKind::Adjustment => None,
    };
    let (state, good) = state(entry.state);
    let mut details = Vec::new();
    let is_titled = matches!(entry.kind, HistoryKind::Transaction | HistoryKind::Adjustment);
    if !is_titled && !entry.what.is_empty() {
        details.push(show::visible(&entry.what));
    }
    details.extend(entry.status.map(|status| format!("status {status}")));
    details.extend(entry.reason.as_ref().map(|reason| show::visible(reason)));
    details.extend(entry.secret.as_ref().map(|secret| format!("secret {}", show::visible(secret))));
    details.extend(entry.eth.map(|eth| format!("{} ETH", show::eth(&eth.0))));
    details.extend(entry.fee.map(|fee| format!("fee {} ETH", show::eth(&fee.0))));
    HistoryRow {
        at: show::utc(entry.time_secs),
        when: show::ago(entry.time_secs, now_secs),
        kind,
        what,
        with: entry.peer.map_or_else(String::new, |peer| names.short(peer.0)),
        link,
        state,
        good,
        detail: details.join(", "),
        transaction: entry.transaction.as_ref().map(|hash| TransactionShown::new(hash, explorer)),
        amount: show::usdc(entry.amount.0),
    }
}

/// The title of a settlement: what came back of a deposit is no claim.
fn settlement_title(id: &str, state: HistoryState) -> String {
    match state {
        HistoryState::Returned => "Deposit returned".to_owned(),
        _ => format!("Claim number {id}"),
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
        HistoryState::Returned => ("Returned", true),
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
    title: String,
    /// The rest of this wallet's own deposit that came back: neither a claim nor for calls.
    returned: bool,
    at: String,
    state: &'static str,
    good: bool,
    amount: String,
    /// None before it was sent.
    transaction: Option<TransactionShown>,
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
    let title = settlement_title(&id.to_string(), found.state);
    let returned = found.state == HistoryState::Returned;
    let (state, good) = state(found.state);
    let frame = visit.frame(Section::Finance).await?;
    let explorer = frame.status.chain.explorer.as_deref();
    let page = SettlementPage {
        title,
        returned,
        at: show::utc(found.time_secs),
        state,
        good,
        amount: show::usdc(found.amount.0),
        transaction: found.transaction.map(|hash| TransactionShown::new(&hash, explorer)),
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
        frame,
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
        let other = asked.address(|other| other.with = "0x1".into());
        assert_eq!(other, "/panel/finance/history?kind=bought&with=0x1&from=2026-11-21");
    }

    #[test]
    fn an_id_is_a_service_or_a_wallet_and_anything_else_is_told() {
        let taken = |id: &str| {
            let mut asked = HistoryParams { id: id.into(), ..HistoryParams::default() };
            asked.take_id().map(|()| (asked.service, asked.with))
        };
        let (service, wallet) =
            ("0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
        assert_eq!(taken(&format!(" {service} ")), Ok((service.into(), String::new())));
        assert_eq!(taken(wallet), Ok((String::new(), wallet.into())));
        assert_eq!(taken(" "), Ok((String::new(), String::new())));
        assert!(taken("Earthquakes").unwrap_err().contains("neither"));
    }

    #[test]
    fn an_entry_leads_to_the_page_of_its_call() {
        let (id, peer) =
            ("00000000-0000-4000-8000-000000000001", "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
        for (kind, link) in [
            ("bought", format!("/panel/activity/bought-{id}")),
            ("served", format!("/panel/activity/served-{peer}-{id}")),
        ] {
            let entry = serde_json::json!({ "kind": kind, "time_secs": 1, "state": "charged", "id": id, "amount": "0.002",
                "name": "", "peer": peer, "what": "GET /a" });
            let entry: HistoryEntry = serde_json::from_value(entry).unwrap();
            assert_eq!(row(&entry, None, &PeerNames::default(), 2).link, Some(link));
        }
    }

    #[test]
    fn a_transaction_is_linked_to_the_explorer_of_its_chain_where_there_is_one() {
        let link = |explorer| TransactionShown::new("0xabc", explorer).link;
        assert_eq!(link(Some("https://basescan.org")).as_deref(), Some("https://basescan.org/tx/0xabc"));
        assert_eq!(link(None), None);
    }
}
