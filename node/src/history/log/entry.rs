//! A call of the log: from the record that has it to what is shown of it.

use std::sync::Arc;

use farthing_control::types::{CallOutcome, CallProblem, CallSide, LoggedCall, ProblemName};
use farthing_ledger::{CallRow, Promise, Purchase, PurchaseEnd};
use farthing_protocol::{CallId, Outcome, Refusal, RefusalCode, ServiceId, Usdc};
use farthing_shared::{call_ends::Half, refused::RefusedCall};

use super::CallKey;
use crate::{
    consumer::{BuyError, ForeignError, Unanswered, awaited::AwaitedOrder},
    history::{
        ServiceNames, outcome,
        read::{status_and_reason, why},
    },
};

/// A call that is older than its deadline by this is not under way any more.
const LATE_SECS: u64 = 10;

/// A call as it was read, with what was noted when its caller was refused.
#[derive(Debug)]
pub(super) enum LogEntry {
    /// Somebody waits for it, and its price is not promised yet.
    Begun(Arc<AwaitedOrder>),
    Open(Box<Promise>, Option<Arc<RefusedCall>>, CallOutcome),
    Bought(Box<Purchase>, Option<Arc<RefusedCall>>),
    Served(Box<CallRow>),
    Refused(Arc<RefusedCall>),
}

/// The facts of a call that filters ask for.
#[derive(Debug)]
pub(super) struct CallFacts<'a> {
    pub(super) side: CallSide,
    pub(super) service: Option<ServiceId>,
    pub(super) secret: Option<&'a str>,
    pub(super) call_id: Option<CallId>,
    pub(super) outcome: CallOutcome,
}

impl<'a> CallFacts<'a> {
    pub(super) fn of_begun(order: &'a AwaitedOrder) -> Self {
        Self {
            side: CallSide::Bought,
            service: Some(order.service),
            secret: Some(&order.secret),
            call_id: Some(order.call_id),
            outcome: CallOutcome::UnderWay,
        }
    }

    pub(super) fn of_promise(promise: &'a Promise, outcome: CallOutcome) -> Self {
        Self {
            side: CallSide::Bought,
            service: Some(promise.request.service),
            secret: Some(&promise.secret),
            call_id: Some(promise.request.call_id),
            outcome,
        }
    }

    pub(super) fn of_purchase(call: &'a Purchase, note: Option<&RefusedCall>) -> Self {
        let outcome = match (&call.end, note) {
            // It was not charged, whatever was known when its caller was told.
            (PurchaseEnd::Released { is_refused: false, status: None, .. }, Some(note))
                if !says_undecided(note) && !call.end.may_have_run() =>
            {
                CallOutcome::of_problem(&note.code, Some(false))
            }
            (end, _) => outcome::of_purchase(end),
        };
        Self {
            side: CallSide::Bought,
            service: Some(call.service),
            secret: Some(&call.secret),
            call_id: Some(call.call_id),
            outcome,
        }
    }

    pub(super) fn of_served(row: &'a CallRow) -> Self {
        Self {
            side: CallSide::Served,
            service: Some(row.call.service),
            secret: None,
            call_id: Some(row.call.call_id),
            outcome: outcome::of(row.call.outcome),
        }
    }

    pub(super) fn of_note(note: &'a RefusedCall) -> Self {
        Self {
            side: side_of(note.half),
            service: note.service,
            secret: note.secret.as_deref(),
            call_id: note.call_id,
            outcome: match note.half {
                Half::Consumer => CallOutcome::of_problem(&note.code, note.charged),
                Half::Owner => CallOutcome::Refused,
            },
        }
    }
}

/// The outcome of a call without an end. One that nobody waits for is under way only until its deadline: an earlier run may have begun it.
pub(super) fn open_outcome(
    promise: &Promise,
    is_awaited: bool,
    was_given_up: bool,
    now_secs: u64,
) -> CallOutcome {
    let waited_secs = now_secs.saturating_sub(promise.time_secs);
    let is_late = waited_secs > promise.request.deadline_ms / 1_000 + LATE_SECS;
    let is_under_way = is_awaited || !(was_given_up || is_late);
    if is_under_way { CallOutcome::UnderWay } else { CallOutcome::Undecided }
}

const fn side_of(half: Half) -> CallSide {
    match half {
        Half::Consumer => CallSide::Bought,
        Half::Owner => CallSide::Served,
    }
}

impl LogEntry {
    pub(super) fn shown(&self, names: &ServiceNames) -> LoggedCall {
        match self {
            Self::Begun(order) => begun(order, names),
            Self::Open(promise, note, outcome) => open(promise, note.as_deref(), *outcome, names),
            Self::Bought(call, note) => bought(call, note.as_deref(), names),
            Self::Served(row) => served(row, names),
            Self::Refused(note) => refused(note, names),
        }
    }
}

/// A call with nothing but its name, its time and what filters ask for.
fn of_facts(key: CallKey, time_secs: u64, facts: &CallFacts<'_>, names: &ServiceNames) -> LoggedCall {
    LoggedCall {
        key: key.to_string(),
        has_record: !matches!(key, CallKey::Refused(_)),
        side: facts.side,
        time_secs,
        call_id: facts.call_id.map(Into::into),
        service: facts.service.map(Into::into),
        name: facts.service.map(|service| names.of(service)).unwrap_or_default(),
        operation: String::new(),
        peer: None,
        secret: facts.secret.map(str::to_owned),
        outcome: facts.outcome,
        status: None,
        charged: None,
        took_us: None,
        problem: None,
        others: 0,
    }
}

fn begun(order: &AwaitedOrder, names: &ServiceNames) -> LoggedCall {
    LoggedCall {
        operation: format!("{} {}", order.method, order.path),
        ..of_facts(CallKey::Bought(order.call_id), order.time_secs, &CallFacts::of_begun(order), names)
    }
}

fn open(
    promise: &Promise,
    note: Option<&RefusedCall>,
    outcome: CallOutcome,
    names: &ServiceNames,
) -> LoggedCall {
    let facts = CallFacts::of_promise(promise, outcome);
    let request = &promise.request;
    LoggedCall {
        operation: format!("{} {}", request.method, request.path),
        peer: Some(promise.owner.into()),
        status: note.and_then(|note| note.status),
        took_us: note.map(|note| note.took_us),
        problem: note.map(problem_of),
        ..of_facts(CallKey::Bought(request.call_id), promise.time_secs, &facts, names)
    }
}

fn bought(call: &Purchase, note: Option<&RefusedCall>, names: &ServiceNames) -> LoggedCall {
    let facts = CallFacts::of_purchase(call, note);
    let (status, problem) = (status_and_reason(&call.end).0, problem_after(call, note));
    // A call that was answered, and asked for again without an answer, has a note that is not about this end.
    let note = note.filter(|_| problem.is_some());
    let measured_us = Some(call.end.timing().total_us).filter(|total_us| *total_us > 0);
    LoggedCall {
        operation: format!("{} {}", call.method, call.path),
        peer: Some(call.owner.into()),
        status: status.or_else(|| note.and_then(|note| note.status)),
        charged: Some(call.charged.into()),
        took_us: measured_us.or_else(|| note.map(|note| note.took_us)),
        problem,
        ..of_facts(CallKey::Bought(call.call_id), call.promised_secs, &facts, names)
    }
}

fn served(row: &CallRow, names: &ServiceNames) -> LoggedCall {
    let (call, facts) = (&row.call, CallFacts::of_served(row));
    let is_answered = call.outcome.is_the_services_answer();
    LoggedCall {
        operation: format!("{} {}", call.method, call.path),
        peer: Some(row.payer.into()),
        status: is_answered.then_some(call.status),
        charged: Some(row.earned().into()),
        took_us: call.upstream_us,
        problem: (!is_answered).then(|| CallProblem {
            code: Some(code_of(call.outcome).to_owned()),
            detail: why(call.fault, call.outcome).to_owned(),
            next: "`farthing api test` asks your server as a call does, and shows what it answers."
                .to_owned(),
        }),
        ..of_facts(CallKey::Served(row.payer, call.call_id), call.time_secs, &facts, names)
    }
}

fn refused(note: &RefusedCall, names: &ServiceNames) -> LoggedCall {
    let method = note.method.map(|method| format!("{method} ")).unwrap_or_default();
    LoggedCall {
        operation: format!("{method}{}", note.path),
        peer: note.peer.map(Into::into),
        status: note.status,
        charged: (note.charged == Some(false)).then(|| Usdc::ZERO.into()),
        took_us: Some(note.took_us),
        problem: Some(problem_of(note)),
        others: note.others,
        ..of_facts(CallKey::Refused(note.number), note.time_secs, &CallFacts::of_note(note), names)
    }
}

/// Returns whether a caller was told no more than that the end was not known: of a known end, this says nothing.
pub(super) fn says_undecided(note: &RefusedCall) -> bool {
    CallFacts::of_note(note).outcome == CallOutcome::Undecided
}

fn problem_of(note: &RefusedCall) -> CallProblem {
    CallProblem { code: Some(note.code.clone()), detail: note.detail.clone(), next: note.next.clone() }
}

/// The reason that nobody is asked how a call ends.
pub(super) fn undecided(error: &BuyError) -> CallProblem {
    CallProblem {
        code: Some("undecided".to_owned()),
        detail: error.to_string(),
        next: error.next_step().to_owned(),
    }
}

/// The problem of a purchase that has no answer: as its caller got it, unless that was before the end was known, or the end says more.
fn problem_after(call: &Purchase, note: Option<&RefusedCall>) -> Option<CallProblem> {
    let reason = status_and_reason(&call.end).1?;
    let told = note.filter(|note| !says_undecided(note));
    let is_told = told.is_some_and(|note| note.code == ProblemName::MayHaveRun.name());
    if call.end.may_have_run() && !is_told {
        return Some(interrupted());
    }
    Some(told.map_or_else(|| unnoted(call, reason), problem_of))
}

/// The problem of a call that the service may have carried out, although nobody has its answer.
fn interrupted() -> CallProblem {
    let what = "the owner's node was interrupted while this call ran";
    let error = BuyError::Refused(Refusal::new(RefusalCode::MayHaveRun, what));
    CallProblem {
        code: Some(ProblemName::MayHaveRun.to_string()),
        detail: error.to_string(),
        next: error.next_step().to_owned(),
    }
}

/// The problem of a purchase, as far as its record alone tells it.
fn unnoted(call: &Purchase, reason: String) -> CallProblem {
    let PurchaseEnd::Acknowledged { outcome, status, .. } = &call.end else {
        return CallProblem { code: None, detail: reason, next: next_after(call).to_owned() };
    };
    let error = BuyError::UpstreamFailed { why: Unanswered::of(*outcome, *status, false), status: *status };
    CallProblem {
        code: Some(code_of(*outcome).to_owned()),
        detail: reason,
        next: error.next_step().to_owned(),
    }
}

/// The next step after a call without a receipt; empty where the record alone does not tell it.
fn next_after(call: &Purchase) -> &'static str {
    match &call.end {
        PurchaseEnd::Transferred { .. } => {
            ForeignError::Withheld { charged: call.charged, why: String::new() }.next_step()
        }
        PurchaseEnd::Released { .. } if call.is_by_transfer() => ForeignError::Lapsed.next_step(),
        PurchaseEnd::Released { is_refused: false, .. } => {
            "Repeat the call with the same call_id: it is never charged twice."
        }
        PurchaseEnd::Released { .. } | PurchaseEnd::Acknowledged { .. } => "",
    }
}

/// The name of the problem that callers get for an outcome which is no answer.
const fn code_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::TimedOut => "upstream-timeout",
        Outcome::Oversize => "answer-too-large",
        _ => "upstream-failed",
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{
        Address, ChannelId,
        call::{ChargePolicy, Method},
    };

    use super::*;

    /// A call that ended without a charge, and the note of what its caller was told.
    fn released(reason: &str, code: &str, charged: Option<bool>) -> (Purchase, RefusedCall) {
        let purchase = Purchase {
            call_id: CallId::from_bytes([1; 16]),
            service: ServiceId::from_bytes([7; 16]),
            owner: Address::ZERO,
            channel: ChannelId::NONE,
            secret: String::new(),
            method: Method::Get,
            path: "/ok".to_owned(),
            request_hash: [0; 32],
            price: Usdc::from_micros(2),
            charge_policy: ChargePolicy::Answered,
            charged: Usdc::ZERO,
            promised_secs: 1,
            closed_secs: 9,
            end: PurchaseEnd::Released {
                reason: reason.to_owned(),
                is_refused: false,
                in_doubt: false,
                status: None,
            },
        };
        let note = RefusedCall { code: code.to_owned(), charged, ..RefusedCall::new(Half::Consumer, 1) };
        (purchase, note)
    }

    #[test]
    fn what_was_not_known_when_the_caller_was_told_says_nothing_of_the_end() {
        for code in ["undecided", "cancelled"] {
            let (purchase, note) = released("not taken", code, None);
            let facts = CallFacts::of_purchase(&purchase, Some(&note));
            assert_eq!(facts.outcome, CallOutcome::Failed, "{code}");
            let problem = problem_after(&purchase, Some(&note)).unwrap();
            assert_eq!((problem.code, &*problem.detail), (None, "not taken"), "{code}");
            assert!(problem.next.contains("with a new call_id"), "{}", problem.next);
        }
        let (purchase, note) = released("not taken", "owner-busy", Some(false));
        assert_eq!(CallFacts::of_purchase(&purchase, Some(&note)).outcome, CallOutcome::Refused);
        let problem = problem_after(&purchase, Some(&note)).unwrap();
        assert_eq!(problem.code.as_deref(), Some("owner-busy"));
    }

    #[test]
    fn a_call_that_may_have_run_says_what_is_to_be_checked_whatever_its_caller_was_told() {
        for (code, charged) in [("cancelled", None), ("undecided", None), ("owner-unreachable", Some(false))]
        {
            let (purchase, note) = released(RefusalCode::MayHaveRun.name(), code, charged);
            let facts = CallFacts::of_purchase(&purchase, Some(&note));
            assert_eq!(facts.outcome, CallOutcome::Failed, "{code}");
            let problem = problem_after(&purchase, Some(&note)).unwrap();
            assert_eq!(problem.code.as_deref(), Some("may-have-run"), "{code}");
            assert!(problem.next.starts_with("Check whether the call had its effect"), "{}", problem.next);
        }
    }
}
