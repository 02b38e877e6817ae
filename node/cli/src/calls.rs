//! `farthing calls`: the log of calls, step by step from the node, and one call with all that is kept of it, or to cancel it.

use std::{collections::HashSet, fmt::Display};

use clap::Args;
use farthing_control::{
    ControlClient,
    endpoint::{self, Target},
    types::{CallOutcome, CallShown, CallSide, CancelStage, LoggedCall, Text},
};
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId};

use super::{
    Context,
    failure::Failure,
    input,
    output::{millis, pairs, table},
    pick::{self, ServiceName},
};

#[derive(Debug, Args)]
pub struct Calls {
    /// Show only this call: its call id or the first digits of it, or its key from --json
    #[arg(conflicts_with_all = ["side", "service", "outcome", "secret", "id", "from", "to", "limit"])]
    pub call: Option<String>,
    /// Verify the receipt of that call
    #[arg(long, requires = "call")]
    pub verify: bool,
    /// Cancel that call: the program that waits for it gets a problem; if it was sent, you may still be charged
    #[arg(long, requires = "call", conflicts_with = "verify")]
    pub cancel: bool,
    /// bought or served
    #[arg(long)]
    pub side: Option<CallSide>,
    /// Calls of one service: its name, its UUID, or the first digits of the UUID
    #[arg(long, value_name = "SERVICE")]
    pub service: Option<ServiceName>,
    /// under-way, answered, refused, timed-out, too-large, failed or undecided
    #[arg(long)]
    pub outcome: Option<CallOutcome>,
    /// Calls made with the secret of this name
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// Calls with this call id
    #[arg(long, value_name = "CALL_ID")]
    pub id: Option<CallId>,
    /// First day in UTC, such as 2026-11-21, or a Unix time in seconds
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Last day in UTC, or the second after the last
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Largest number of calls
    #[arg(long, default_value_t = 50, value_parser = input::at_least_one)]
    pub limit: u64,
}

/// The most calls that the node gives in one step.
const STEP_MAX: u64 = 500;
/// The newest 10,000 calls may be named by the beginning of their id.
const STEPS_BY_BEGINNING_MAX: usize = 20;

pub(super) async fn calls(context: &Context, arguments: Calls) -> Result<(), Failure> {
    let node = context.node()?;
    match &arguments.call {
        Some(call) if arguments.cancel => {
            let call = named(&node, call).await?;
            let cancelled = node.ask(endpoint::CancelCall.of(&call)).await?;
            context.output.data(&cancelled, |cancelled| told(cancelled.stage).to_owned())
        }
        Some(call) => {
            let at = endpoint::ShowCall.of(named(&node, call).await?).with("verify", arguments.verify);
            context.output.data(&node.ask(at).await?, one)
        }
        None => list(context, &node, &arguments).await,
    }
}

/// The name by which the node knows a call: its id if `text` is the beginning of one, else `text` as it is.
async fn named(node: &ControlClient, text: &str) -> Result<String, Failure> {
    let Some(digits) = pick::beginning_of_call(text) else { return Ok(text.to_owned()) };
    let (mut ids, mut cursor) = (HashSet::new(), None::<String>);
    for _ in 0..STEPS_BY_BEGINNING_MAX {
        let step = Target::from(endpoint::Calls).with_some("cursor", cursor.as_deref());
        let page = node.ask(step.with("limit", STEP_MAX)).await?;
        ids.extend(page.calls.iter().filter_map(|call| call.call_id).map(|id| id.0));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(pick::call_that_begins(&digits, ids)?.to_string())
}

/// The end of a call that was cancelled, as far as it is known.
const fn told(stage: CancelStage) -> &'static str {
    match stage {
        CancelStage::Unpromised => "Cancelled. Nothing was promised for the call, so you are not charged.",
        CancelStage::Promised => {
            "Cancelled. The call may have been sent: your node finds out how it ends. You may be charged, and never \
             twice."
        }
    }
}

async fn list(context: &Context, node: &ControlClient, arguments: &Calls) -> Result<(), Failure> {
    let service = match arguments.service.clone() {
        Some(service) => Some(pick::of_network(context, node, service).await?),
        None => None,
    };
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    let wrong_secrets = loop {
        let left = arguments.limit.saturating_sub(found.len() as u64);
        let at = target(arguments, service, cursor.as_deref()).with("limit", left.min(STEP_MAX));
        let page = node.ask(at).await?;
        found.extend(page.calls);
        cursor = page.next;
        if cursor.is_none() || found.len() as u64 >= arguments.limit {
            break page.wrong_secrets;
        }
    };
    if found.is_empty() {
        context.output.prose("No calls found.");
    } else if cursor.is_some() {
        context
            .output
            .prose("There are more calls. Raise --limit, or narrow the search with --from and --to.");
    }
    if wrong_secrets > 0 {
        context
            .output
            .prose(&format!("{wrong_secrets} more requests had no valid secret; these are only counted."));
    }
    context.output.data(&found, |found| rows(found))
}

fn target(arguments: &Calls, service: Option<ServiceId>, cursor: Option<&str>) -> Target<endpoint::Calls> {
    Target::from(endpoint::Calls)
        .with_some("side", arguments.side)
        .with_some("service", service)
        .with_some("outcome", arguments.outcome)
        .with_some("secret", arguments.secret.as_deref())
        .with_some("call_id", arguments.id)
        .with_some("from", arguments.from.as_deref())
        .with_some("to", arguments.to.as_deref())
        .with_some("cursor", cursor)
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn usdc<T: Display>(amount: Option<&T>) -> String {
    amount.map(|amount| format!("{amount} USDC")).unwrap_or_default()
}

/// The charge of a call; of an answer whose payment the chain has yet to tell of, that it is not known.
fn charged(call: &LoggedCall) -> String {
    match (&call.charged, call.outcome) {
        (None, CallOutcome::Answered) => "not known yet".to_owned(),
        (charged, _) => usdc(charged.as_ref()),
    }
}

/// The code of a problem, or where there is none what happened.
fn reason(call: &LoggedCall) -> String {
    let problem = call.problem.as_ref();
    problem
        .map(|problem| problem.code.as_deref().map_or_else(|| problem.detail.clone(), spoken))
        .unwrap_or_default()
}

/// A problem's or a refusal's code, as people read it: `service paused`.
fn spoken(code: &str) -> String {
    code.replace('_', " ")
}

/// The operation and the service of a call; one that could not be read that far names no service.
fn called(call: &LoggedCall) -> String {
    let name = if call.service.is_none() { "unknown service" } else { call.name.as_str() };
    format!("{} {name}", call.operation).trim().to_owned()
}

fn rows(calls: &[LoggedCall]) -> String {
    let rows = calls.iter().map(|call| {
        let others = if call.others > 0 { format!(" (and {} like it)", call.others) } else { String::new() };
        [
            clock::timestamp(call.time_secs),
            call.side.to_string(),
            call.outcome.to_string(),
            text(call.status.as_ref()),
            text(call.charged.as_ref()),
            call.took_us.map(millis).unwrap_or_default(),
            called(call),
            format!("{}{others}", reason(call)),
            text(call.secret.as_ref()),
            call.call_id.as_ref().map_or_else(|| call.key.clone(), Text::to_string),
        ]
    });
    table(["TIME", "SIDE", "OUTCOME", "STATUS", "USDC", "MS", "CALL", "REASON", "SECRET", "ID"], rows)
}

fn one(shown: &CallShown) -> String {
    let call = &shown.call;
    let parts = shown.parts.iter().map(|part| format!("{} {} ms", part.name, millis(part.took_us)));
    let problem = call.problem.as_ref();
    let receipt = shown.receipt.as_ref();
    let settlement = shown.settlement.as_ref();
    let facts = [
        ("Time", clock::timestamp(call.time_secs)),
        ("Side", call.side.to_string()),
        ("Outcome", call.outcome.to_string()),
        ("Status", text(call.status.as_ref())),
        ("Call", called(call)),
        ("Call id", text(call.call_id.as_ref())),
        ("Service", text(call.service.as_ref())),
        ("With", text(call.peer.as_ref())),
        ("Secret", text(call.secret.as_ref())),
        ("Price", usdc(shown.price.as_ref())),
        ("Charged", charged(call)),
        ("Took", took(call.took_us, call.outcome, clock::now_secs().saturating_sub(call.time_secs))),
        ("Parts", parts.collect::<Vec<_>>().join(", ")),
        ("Problem", problem.and_then(|problem| problem.code.as_deref()).map(spoken).unwrap_or_default()),
        ("Reason", text(problem.map(|problem| &problem.detail))),
        ("Next", text(problem.map(|problem| &problem.next))),
        ("Channel", text(shown.voucher.as_ref().map(|voucher| &voucher.channel))),
        ("Receipt", text(receipt.and_then(|receipt| receipt.signature.as_ref()))),
        ("Verdict", text(shown.verdict.as_ref().map(|verdict| &verdict.words))),
        ("Claim", text(settlement.filter(|claim| claim.seen_on_chain.is_none()).map(|claim| &claim.state))),
        (
            "Payment",
            settlement
                .and_then(|payment| payment.seen_on_chain)
                .map(|is_seen| taken(call.side, is_seen))
                .unwrap_or_default()
                .to_owned(),
        ),
        ("Transaction", text(settlement.and_then(|settlement| settlement.transaction.as_ref()))),
        ("Explorer", text(settlement.and_then(|settlement| settlement.explorer.as_ref()))),
    ];
    pairs(facts.into_iter().filter(|(_, value)| !value.is_empty()))
}

/// The time that a call took, or has taken so far.
fn took(took_us: Option<u64>, outcome: CallOutcome, since_secs: u64) -> String {
    match (took_us, outcome) {
        (Some(us), _) => format!("{} ms", millis(us)),
        (None, CallOutcome::UnderWay) => format!("{since_secs} s so far"),
        (None, _) => String::new(),
    }
}

/// The state of a payment over x402: one that this node made, or one that it got.
const fn taken(side: CallSide, is_seen: bool) -> &'static str {
    match (side, is_seen) {
        (CallSide::Bought, true) => "taken, as the chain shows",
        (CallSide::Bought, false) => "taken, as the server says; this node has not checked it on the chain",
        (CallSide::Served, true) => "paid by its client's transaction (x402)",
        (CallSide::Served, false) => "lost: the chain has taken back its client's transaction (x402)",
    }
}

#[cfg(test)]
mod tests {
    use super::{CallOutcome, CallSide, spoken, taken, took};

    #[test]
    fn a_call_that_is_under_way_shows_its_time_so_far() {
        assert_eq!(took(None, CallOutcome::UnderWay, 7), "7 s so far");
        assert_eq!(took(Some(1_500), CallOutcome::Answered, 7), "1.500 ms");
        assert_eq!(took(None, CallOutcome::Undecided, 7), "", "it has no time of its own");
    }

    #[test]
    fn a_payment_is_shown_as_the_chain_has_it_only_if_the_chain_showed_it() {
        assert!(taken(CallSide::Bought, true).contains("as the chain shows"));
        assert!(taken(CallSide::Bought, false).contains("as the server says"));
        assert!(taken(CallSide::Served, true).contains("its client's transaction"));
        assert!(taken(CallSide::Served, false).contains("taken back"));
    }

    #[test]
    fn a_code_is_told_to_people_without_an_underscore() {
        assert_eq!(spoken("service_paused"), "service paused");
        assert_eq!(spoken("price-above-cap"), "price-above-cap", "as docs/problems.md has it");
    }
}
