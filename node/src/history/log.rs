//! The log of calls: every call that reached this node, whatever became of it.
//!
//! One truth: a call that the ledger records is told by the ledger, also while it is under way. Beside it stand the calls that
//! were refused, which the ledger does not know. Where it knows one of these after all, as of a call that its owner refused
//! once it was promised, the note only adds the problem's code and its next step.

mod entry;
mod key;
mod notes;
mod one;

use std::sync::Arc;

use farthing_control::types::{CallOutcome, CallRecord, CallShown, CallSide, CallsPage, LoggedCall};
use farthing_ledger::{CallRow, LedgerError, Position, Promise, Purchase, ServedRow, Stretch, Window};
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId};
use farthing_shared::{blocking::run_blocking, call_ends::Half};

use self::{
    entry::{CallFacts, LogEntry},
    notes::Notes,
};
pub use self::{key::CallKey, one::CallReader};
use super::{
    History, SCANNED_MAX, ServiceNames,
    place::{Place, merge},
};

pub type LogPosition = Place<CallRecord>;

/// The calls that are looked for.
#[derive(Clone, Debug)]
pub struct LogFilter {
    pub side: Option<CallSide>,
    pub outcome: Option<CallOutcome>,
    pub service: Option<ServiceId>,
    pub secret: Option<String>,
    pub call_id: Option<CallId>,
    pub from_secs: u64,
    pub before: LogPosition,
}

impl LogFilter {
    fn keeps(&self, facts: &CallFacts<'_>) -> bool {
        self.side.is_none_or(|side| facts.side == side)
            && self.service.is_none_or(|service| facts.service == Some(service))
            && self.secret.as_deref().is_none_or(|secret| facts.secret == Some(secret))
            && self.call_id.is_none_or(|id| facts.call_id == Some(id))
            && self.outcome.is_none_or(|outcome| facts.outcome == outcome)
    }

    /// The records in which such a call may stand.
    fn records(&self) -> impl Iterator<Item = CallRecord> {
        let is_needed = move |record: &CallRecord| match record {
            CallRecord::Bought => self.side != Some(CallSide::Served),
            // No secret of this node's ordered what it served.
            CallRecord::Served => self.side != Some(CallSide::Bought) && self.secret.is_none(),
            CallRecord::Refused => true,
        };
        CallRecord::ALL.into_iter().filter(is_needed)
    }
}

impl History {
    /// Reads up to `limit` calls, the newest first, and where to go on.
    pub async fn calls(&self, filter: LogFilter, limit: usize) -> Result<CallsPage, LedgerError> {
        // Who has called something wants to see it.
        self.ledger.catch_up().await;
        let history = self.clone();
        run_blocking(move || history.calls_now(&filter, limit)).await
    }

    fn calls_now(&self, filter: &LogFilter, limit: usize) -> Result<CallsPage, LedgerError> {
        let names = self.names();
        let now_secs = clock::now_secs();
        let reading = Reading { history: self, notes: Notes::read(&self.refused), now_secs };
        let mut stretches = Vec::new();
        for record in filter.records() {
            stretches.push((record, reading.stretch(filter, record, limit)?));
        }
        let (entries, next) = merge(stretches, limit);
        let wrong = self.refused.wrong_secrets();
        Ok(CallsPage {
            calls: entries.iter().map(|entry| self.logged(entry, &names)).collect(),
            next: next.map(|place| place.to_string()),
            wrong_secrets: wrong.count,
            wrong_secret_secs: (wrong.count > 0).then_some(wrong.last_secs),
        })
    }

    /// Reads one call with all that is kept of it; `None` when there is none of this name.
    pub async fn call(&self, key: CallKey, reader: CallReader) -> Result<Option<CallShown>, LedgerError> {
        self.ledger.catch_up().await;
        let history = self.clone();
        run_blocking(move || one::shown(&history, &key, &reader)).await
    }
}

impl History {
    /// A call as it is shown. An open one says if this node does not ask how its payment ends, and what its server answered.
    fn logged(&self, entry: &LogEntry, names: &ServiceNames) -> LoggedCall {
        let shown = entry.shown(names);
        match entry {
            LogEntry::Open(promise, _, outcome) if promise.is_by_transfer() => {
                let call_id = promise.request.call_id;
                let elsewhere = self.foreign.elsewhere(call_id);
                let problem = elsewhere.map(|error| entry::undecided(&error.into()));
                if *outcome == CallOutcome::Answered {
                    return LoggedCall { status: self.foreign.answered(call_id), problem, ..shown };
                }
                LoggedCall { problem: problem.or(shown.problem), ..shown }
            }
            _ => shown,
        }
    }

    /// The outcome of a call without an end: under way as long as somebody waits for it, however late the clock says that it is. An
    /// x402 server may have answered while the chain has yet to tell what that cost.
    fn open_outcome(&self, promise: &Promise, has_note: bool, now_secs: u64) -> CallOutcome {
        let call_id = promise.request.call_id;
        let is_awaited = self.awaited.has(call_id);
        if !is_awaited && promise.is_by_transfer() && self.foreign.answered(call_id).is_some() {
            return CallOutcome::Answered;
        }
        let was_given_up = has_note || self.awaited.was_cancelled(call_id);
        entry::open_outcome(promise, is_awaited, was_given_up, now_secs)
    }
}

/// One look at the log.
struct Reading<'a> {
    history: &'a History,
    notes: Notes,
    now_secs: u64,
}

impl Reading<'_> {
    fn stretch(
        &self,
        filter: &LogFilter,
        record: CallRecord,
        limit: usize,
    ) -> Result<Stretch<LogEntry>, LedgerError> {
        let window = Window {
            before: filter.before.among(record),
            from_secs: filter.from_secs,
            limit,
            scan_max: SCANNED_MAX,
        };
        match record {
            CallRecord::Bought => self.bought(filter, &window),
            CallRecord::Served => self.served(filter, &window),
            CallRecord::Refused => self.refused(filter, &window),
        }
    }

    /// Ended purchases, and among them those that are under way. Once promised, these have the place that they will have when they
    /// end.
    fn bought(&self, filter: &LogFilter, window: &Window) -> Result<Stretch<LogEntry>, LedgerError> {
        let ledger = &self.history.ledger;
        let window = &match filter.call_id {
            Some(call_id) => narrowed(window, self.bought_secs(call_id)?),
            None => window.clone(),
        };
        let note = |call_id, ended_secs| self.notes.of(call_id, ended_secs);
        let keep = |call: &Purchase| {
            let note = note(call.call_id, call.closed_secs).map(Arc::as_ref);
            filter.keeps(&CallFacts::of_purchase(call, note))
        };
        // One that goes on between two of the looks is in both, and told as it is later.
        let mut begun = self.history.awaited.all();
        let open = ledger.unresolved()?;
        let ended = ledger.purchases_in(window, keep)?;
        let is_within = |place: &Position| {
            *place < window.before
                && place.secs >= window.from_secs
                && !ended.rows.iter().any(|(other, _)| other == place)
        };
        begun.retain(|order| !open.iter().any(|promise| promise.request.call_id == order.call_id));
        let mut rows: Vec<(Position, LogEntry)> = Vec::new();
        for order in begun {
            let place = place_at(order.time_secs, order.call_id);
            let is_listed = is_within(&place) && filter.keeps(&CallFacts::of_begun(&order));
            // A repeat is told by the record of the first.
            if is_listed && ledger.purchase(order.call_id)?.is_none() {
                rows.push((place, LogEntry::Begun(order)));
            }
        }
        for promise in open {
            let place = place_at(promise.time_secs, promise.request.call_id);
            let note = note(promise.request.call_id, u64::MAX);
            let outcome = self.history.open_outcome(&promise, note.is_some(), self.now_secs);
            if is_within(&place) && filter.keeps(&CallFacts::of_promise(&promise, outcome)) {
                rows.push((place, LogEntry::Open(Box::new(promise), note.cloned(), outcome)));
            }
        }
        rows.extend(ended.rows.into_iter().map(|(place, call)| {
            let note = note(call.call_id, call.closed_secs).cloned();
            (place, LogEntry::Bought(Box::new(call), note))
        }));
        Ok(Stretch { rows, next: ended.next })
    }

    /// The second of the promise of a call.
    fn bought_secs(&self, call_id: CallId) -> Result<Option<u64>, LedgerError> {
        let ledger = &self.history.ledger;
        Ok(match ledger.promise_of(call_id)? {
            Some(promise) => Some(promise.time_secs),
            None => match ledger.purchase(call_id)? {
                Some(call) => Some(call.promised_secs),
                None => self.history.awaited.get(call_id).map(|order| order.time_secs),
            },
        })
    }

    /// The seconds of the calls with this id that were served: each payer chooses its own ids.
    fn served_secs(&self, call_id: CallId) -> Result<Vec<u64>, LedgerError> {
        let (ledger, mut seconds) = (&self.history.ledger, Vec::new());
        for payer in ledger.payers_of(call_id)? {
            if let Some(ServedRow::Done(row)) = ledger.served_head(payer, call_id)? {
                seconds.push(row.call.time_secs);
            }
        }
        Ok(seconds)
    }

    fn served(&self, filter: &LogFilter, window: &Window) -> Result<Stretch<LogEntry>, LedgerError> {
        let window = &match filter.call_id {
            Some(call_id) => narrowed(window, self.served_secs(call_id)?),
            None => window.clone(),
        };
        let keep = |row: &CallRow| filter.keeps(&CallFacts::of_served(row));
        let found = self.history.ledger.calls_in(window, keep)?;
        let rows = found.rows.into_iter().map(|(place, row)| (place, LogEntry::Served(Box::new(row))));
        Ok(Stretch { rows: rows.collect(), next: found.next })
    }

    fn refused(&self, filter: &LogFilter, window: &Window) -> Result<Stretch<LogEntry>, LedgerError> {
        let mut rows = Vec::new();
        for note in Half::ALL.into_iter().flat_map(|half| self.history.refused.of(half)) {
            let place = Position { secs: note.time_secs, key: note.number.to_be_bytes().to_vec() };
            let is_within = place < window.before && place.secs >= window.from_secs;
            if is_within
                && filter.keeps(&CallFacts::of_note(&note))
                && !self.notes.is_in_the_ledger(&self.history.ledger, &note)?
            {
                rows.push((place, LogEntry::Refused(note)));
            }
        }
        rows.sort_by(|(one, _), (other, _)| other.cmp(one));
        let more = rows.len() > window.limit;
        rows.truncate(window.limit);
        let next = rows.last().filter(|_| more).map(|(place, _)| place.clone());
        Ok(Stretch { rows, next })
    }
}

/// The part of a window that calls of these seconds can be in: however old they are, nothing outside of them is looked at. Without
/// a second, nothing is in it.
fn narrowed(window: &Window, seconds: impl IntoIterator<Item = u64>) -> Window {
    let (first, end) = seconds
        .into_iter()
        .fold((u64::MAX, 0), |(first, end), secs| (first.min(secs), end.max(secs.saturating_add(1))));
    let before = window.before.clone().min(Position::start_of(end));
    Window { before, from_secs: window.from_secs.max(first), ..*window }
}

/// The place that a purchase has by the time of its promise, and before that by the time at which it came.
fn place_at(secs: u64, call_id: CallId) -> Position {
    Position { secs, key: call_id.as_bytes().to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_id_leaves_of_a_window_only_the_seconds_of_its_calls() {
        let window = Window { before: Position::start_of(100), from_secs: 10, limit: 5, scan_max: 7 };
        let bounds = |seconds: &[u64]| {
            let narrowed = narrowed(&window, seconds.iter().copied());
            assert_eq!((narrowed.limit, narrowed.scan_max), (5, 7));
            (narrowed.from_secs, narrowed.before)
        };
        assert_eq!(bounds(&[50]), (50, Position::start_of(51)));
        assert_eq!(bounds(&[40, 20, 30]), (20, Position::start_of(41)));
        assert_eq!(bounds(&[5, 200]), (10, Position::start_of(100)), "no more than was asked for");
        let (from_secs, before) = bounds(&[]);
        assert!(from_secs >= before.secs, "without a call, nothing is looked at");
    }
}
