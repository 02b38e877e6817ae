//! One call: what was asked and answered, where its time went, what was promised, signed and paid, and what to do next.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::{
    endpoint,
    types::{
        CallOutcome, CallProblem, CallReceipt, CallSettlement, CallShown, CallSide, CancelStage,
        CancelledCall, HistoryState, LoggedCall, ReceiptVerdict, UsdcText,
    },
};
use farthing_os::clock;
use serde::Deserialize;

use super::{can_be_cancelled, log::took, service_of};
use crate::{
    failure::Page,
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    history::StoredExchange,
    outcome::{self, ShownOutcome},
    page::Rendered,
    pages::{
        petnames::PeerNames,
        sandbox::{self, under_way::ShownUnderWay},
    },
    show,
    texts::Done,
};

/// Characters of a header's or a parameter's value.
const VALUE_SHOWN: usize = 400;
/// Headers and parameters.
const VALUES_SHOWN: usize = 40;

#[derive(Template)]
#[template(path = "activity-call.html")]
struct OneCallTemplate {
    frame: Frame,
    bought: bool,
    /// Refused by this node. An x402 server may have been asked for its price.
    is_unbought: bool,
    key: String,
    name: String,
    service: Option<String>,
    /// Names and values, in the order of the page.
    facts: Vec<(&'static str, String)>,
    /// The same of what is copied and compared, not read.
    ids: Vec<(&'static str, String)>,
    outcome: ShownOutcome,
    /// Seconds since it began, as long as it is under way.
    elapsed_secs: Option<u64>,
    /// The same call, where this log-in's sandbox waits for it.
    waiting: Option<ShownUnderWay>,
    /// The address of that sandbox.
    here: String,
    can_be_cancelled: bool,
    status: Option<u16>,
    problem: Option<CallProblem>,
    /// The page that does something about it: words of the link, and address.
    page: Option<(&'static str, &'static str)>,
    others: u64,
    operation: String,
    parameters: Vec<(String, String)>,
    answer: Option<AnswerShown>,
    /// The sandbox of this log-in has the answer.
    sandbox: Option<String>,
    parts: Vec<(String, String)>,
    voucher: Option<(String, String)>,
    receipt: Option<ReceiptShown>,
    verdict: Option<ReceiptVerdict>,
    settlement: Option<ClaimShown>,
}

/// The answer as far as it is kept.
struct AnswerShown {
    headers: Vec<(String, String)>,
    size: String,
    text: Option<String>,
}

struct ReceiptShown {
    signer: String,
    charged: String,
    spent_total: String,
    at: String,
    request_hash: String,
    response_hash: String,
    signature: Option<String>,
}

/// The claim that pays for it.
struct ClaimShown {
    words: &'static str,
    number: Option<u64>,
    transaction: Option<String>,
    explorer: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::pages) struct OneCallParams {
    verify: Option<String>,
}

pub(in crate::pages) async fn show(
    visit: Visit,
    Path(key): Path<String>,
    Query(asked): Query<OneCallParams>,
) -> Page {
    let at = endpoint::ShowCall.of(&key).with("verify", asked.verify.is_some());
    let found: CallShown = visit.panel.node().ask(at).await?;
    let kept = kept_in_sandbox(&visit, &found);
    let names = PeerNames::of(visit.panel.node()).await?;
    let page = page(visit.frame(Section::Activity).await?, found, kept.as_ref(), &names);
    Ok(Rendered(&page).into_response())
}

/// Cancels a call that is under way, and shows what became of it: one that was not promised is among the refused calls.
pub(in crate::pages) async fn cancel(Path(key): Path<String>, form: Form<NoFields>) -> Page {
    let panel = form.visit.panel;
    let CancelledCall { key, call_id, stage } = panel.node().ask(endpoint::CancelCall.of(key)).await?;
    panel.changed();
    let place = match stage {
        CancelStage::Unpromised => format!("/panel/activity?call_id={call_id}"),
        CancelStage::Promised => format!("/panel/activity/{key}"),
    };
    Ok(Done::CallCancelled.at(&place).into_response())
}

/// The same call, where this log-in's sandbox still has it.
fn kept_in_sandbox(visit: &Visit, found: &CallShown) -> Option<StoredExchange> {
    let (service, call_id) = (found.call.service?.0, found.call.call_id?.0);
    let kept = visit.panel.0.history.of(visit.session.id(), service);
    kept.into_iter().find(|kept| kept.exchange.call_id == call_id)
}

/// Tells whether this node refused a call to buy. Of a call that it promised to pay, the ledger has a record.
fn is_unbought(call: &LoggedCall) -> bool {
    call.side == CallSide::Bought && call.outcome == CallOutcome::Refused && !call.has_record
}

fn page(frame: Frame, found: CallShown, kept: Option<&StoredExchange>, names: &PeerNames) -> OneCallTemplate {
    let CallShown { call, parameters, parts, answer, voucher, receipt, verdict, settlement, price } = found;
    let now_secs = clock::now_secs();
    let elapsed_secs =
        (call.outcome == CallOutcome::UnderWay).then(|| now_secs.saturating_sub(call.time_secs));
    let waiting = kept.filter(|_| elapsed_secs.is_some());
    let waiting = waiting.and_then(|kept| ShownUnderWay::of(&kept.exchange, None));
    let is_let_go = waiting.as_ref().is_some_and(|waiting| waiting.is_let_go);
    let here = kept.map(|kept| sandbox::page_of(&kept.exchange)).unwrap_or_default();
    let mut facts = vec![("Time", show::utc(call.time_secs))];
    // One that is under way has a clock instead.
    facts.extend(elapsed_secs.is_none().then(|| ("Took", took(&call, now_secs))));
    let charged = |charged: UsdcText| format!("{} USDC", show::usdc(charged.0));
    facts.push(("Charged", call.charged.map_or_else(|| "not known yet".to_owned(), charged)));
    facts.extend(price.map(|price| ("Price", format!("{} USDC", show::usdc(price.0)))));
    facts.extend(call.secret.as_ref().map(|secret| ("Secret", show::visible(secret))));
    let (wallet, wallets_name) = match call.side {
        CallSide::Bought => ("Owner", "Your name for the owner"),
        CallSide::Served => ("Caller", "Your name for the caller"),
    };
    let name = call.peer.and_then(|peer| names.get(peer.0));
    facts.extend(name.map(|name| (wallets_name, name.to_owned())));
    let ids = [
        call.peer.map(|peer| (wallet, peer.to_string())),
        call.call_id.map(|id| ("Call id", id.to_string())),
        call.service.map(|id| ("Service id", id.to_string())),
    ];
    let code = call.problem.as_ref().and_then(|problem| problem.code.as_deref());
    OneCallTemplate {
        frame,
        page: code.and_then(crate::texts::page_against),
        bought: call.side == CallSide::Bought,
        is_unbought: is_unbought(&call),
        name: service_of(&call),
        service: call.service.map(|id| format!("/panel/catalog/{id}")),
        facts,
        ids: ids.into_iter().flatten().collect(),
        outcome: waiting
            .as_ref()
            .map_or_else(|| outcome::shown(call.outcome, call.status), |waiting| waiting.outcome),
        sandbox: kept
            .filter(|_| elapsed_secs.is_none())
            .map(|kept| format!("{here}?call={}#answer", kept.exchange.call_id)),
        can_be_cancelled: can_be_cancelled(&call) && !is_let_go,
        elapsed_secs,
        waiting,
        here,
        status: call.status,
        problem: call.problem.map(|problem| CallProblem {
            detail: crate::texts::sentence(&show::visible(&problem.detail)),
            ..problem
        }),
        others: call.others,
        operation: show::visible(&call.operation),
        parameters: values(parameters),
        answer: answer.map(|answer| AnswerShown {
            headers: values(answer.headers),
            size: show::size(answer.body_bytes),
            text: answer.text.map(|text| show::visible_lines(&text)),
        }),
        // An x402 server has no node, and says nothing of its time.
        parts: parts
            .into_iter()
            .filter(|part| part.took_us > 0)
            .map(|part| (part.name, show::duration(part.took_us)))
            .collect(),
        voucher: voucher.map(|voucher| (voucher.channel.to_string(), show::usdc(voucher.covers.0))),
        receipt: receipt.map(receipt_shown),
        verdict,
        settlement: settlement.map(|claim| claim_shown(claim, call.side)),
        key: call.key,
    }
}

/// Strangers' names and values, each of bounded length.
fn values(values: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let short = |text: &str| show::visible(text).chars().take(VALUE_SHOWN).collect::<String>();
    values.into_iter().take(VALUES_SHOWN).map(|(name, value)| (short(&name), short(&value))).collect()
}

fn receipt_shown(receipt: CallReceipt) -> ReceiptShown {
    ReceiptShown {
        signer: receipt.signer.to_string(),
        charged: show::usdc(receipt.charged.0),
        spent_total: show::usdc(receipt.spent_total.0),
        at: show::utc(receipt.time_secs),
        request_hash: receipt.request_hash,
        response_hash: receipt.response_hash,
        signature: receipt.signature,
    }
}

fn claim_shown(claim: CallSettlement, side: CallSide) -> ClaimShown {
    let words = match (side, claim.state) {
        // An owner's claim pays many calls, and its transaction is not known here.
        (CallSide::Bought, _) if claim.seen_on_chain == Some(true) => {
            "The x402 server took this payment on chain."
        }
        (CallSide::Bought, _) if claim.seen_on_chain == Some(false) => {
            "The x402 server says that it took this payment. Your node has not checked this on the chain."
        }
        (CallSide::Bought, HistoryState::Confirmed) => "The owner has claimed it on chain.",
        (CallSide::Bought, _) => "The owner has not claimed it yet.",
        (CallSide::Served, _) if claim.seen_on_chain == Some(true) => {
            "Paid by its client's transaction (x402)."
        }
        (CallSide::Served, _) if claim.seen_on_chain == Some(false) => {
            "Lost: the chain has taken back its client's transaction (x402)."
        }
        (CallSide::Served, HistoryState::Confirmed) => "Claimed and confirmed on chain.",
        (CallSide::Served, HistoryState::Lost) => "Lost: the payer withdrew it before it was claimed.",
        (CallSide::Served, HistoryState::Failed) => "A claim failed. Your node tries again.",
        (CallSide::Served, _) if claim.number.is_some() => "Your node has sent a claim to the chain.",
        (CallSide::Served, _) => "Not claimed yet. Your node claims when the amount is worth the fee.",
    };
    let CallSettlement { number, transaction, explorer, .. } = claim;
    ClaimShown { words, number, transaction, explorer }
}
