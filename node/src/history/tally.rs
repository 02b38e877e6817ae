//! A tally of what each service served and earned, counted without reading the ledger from its beginning every time.
//!
//! Calls are told from the newest to the oldest, a stretch at a time, and none of them is held. What is older than some minutes
//! does not change any more: it is counted once and kept. What is newer is counted anew whenever somebody asks, so that the answer
//! is exact. Where the clock was set back, calls come that are dated among those, and where the chain took back what paid a call, it
//! may be one of those: all of them are counted once more then.

use std::{collections::HashMap, sync::Arc};

use farthing_ledger::{CallRow, Cause, Ledger, LedgerError, Position, Window};
use farthing_os::clock;
use farthing_protocol::{Outcome, ServiceId, Usdc};
use farthing_shared::blocking::run_blocking;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A clock that is set back by half of this is noticed.
const SETTLED_AFTER_SECS: u64 = 600;
/// Calls that are read from one state of the ledger: some 50 ms of one core.
const STRETCH: usize = 20_000;
/// The newest calls that are counted at all.
const CALLS_MAX: usize = 1_000_000;

/// One service's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Charged.
    pub calls: u64,
    pub earned: Usdc,
    /// Not answered, or with a status of 500 and above.
    pub errors: u64,
    pub last_secs: Option<u64>,
}

type Counts = HashMap<ServiceId, Count>;

/// The count so far. A cheap handle.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<TallyState>>);

/// The part of a call that counts.
#[derive(Debug, Clone, Copy)]
struct CountedCall {
    service: ServiceId,
    charged: Usdc,
    outcome: Outcome,
    time_secs: u64,
}

impl CountedCall {
    fn new(row: &CallRow) -> Self {
        let call = &row.call;
        Self {
            service: call.service,
            charged: row.earned(),
            outcome: call.outcome,
            time_secs: call.time_secs,
        }
    }
}

#[derive(Debug, Default)]
struct TallyState {
    counts: Counts,
    /// Calls before this second are in `counts`.
    before_secs: u64,
    /// The clock when it was furthest ahead.
    clock: Option<(u64, Instant)>,
    /// The adjustments for calls that were lost when they were counted.
    lost: Vec<Position>,
}

impl Tally {
    /// Counts what every service served, exactly as the ledger has it now.
    pub async fn counts(&self, ledger: &Ledger) -> Result<Counts, LedgerError> {
        let (tally, ledger) = (self.clone(), ledger.clone());
        run_blocking(move || {
            let mut settled = tally.0.lock();
            let now = (clock::now_secs(), Instant::now());
            settled.note_lost(lost(&ledger)?);
            settled.count(now, |from_secs, each| served_since(&ledger, from_secs, each))
        })
        .await
    }
}

/// The places of the adjustments for calls whose payments the chain took back.
fn lost(ledger: &Ledger) -> Result<Vec<Position>, LedgerError> {
    let before = Position::start_of(u64::MAX);
    let window = Window { before, from_secs: 0, limit: STRETCH, scan_max: STRETCH };
    let found = ledger.adjustments_in(&window, |row| row.cause == Cause::TakenBack)?;
    Ok(found.rows.into_iter().map(|(position, _)| position).collect())
}

/// Tells the calls that were served in or after a second.
fn served_since(
    ledger: &Ledger,
    from_secs: u64,
    each: &mut dyn FnMut(&CountedCall),
) -> Result<(), LedgerError> {
    let mut before = Position::start_of(u64::MAX);
    for _ in 0..CALLS_MAX / STRETCH {
        // None is kept.
        let window = Window { before, from_secs, limit: 1, scan_max: STRETCH };
        let stretch = ledger.calls_in(&window, |row| {
            each(&CountedCall::new(row));
            false
        })?;
        let Some(next) = stretch.next else { break };
        before = next;
    }
    Ok(())
}

impl TallyState {
    /// Has all calls counted once more if another one was lost since, or is paid again.
    fn note_lost(&mut self, lost: Vec<Position>) {
        if self.lost != lost {
            *self = Self { clock: self.clock, lost, ..Self::default() };
        }
    }

    /// `served_since` tells the calls in and after a second.
    fn count<E>(
        &mut self,
        (now_secs, now): (u64, Instant),
        served_since: impl FnOnce(u64, &mut dyn FnMut(&CountedCall)) -> Result<(), E>,
    ) -> Result<Counts, E> {
        if self.is_set_back(now_secs, now) {
            *self = Self {
                clock: Some((now_secs, now)),
                lost: std::mem::take(&mut self.lost),
                ..Self::default()
            };
        }
        let before_secs = now_secs.saturating_sub(SETTLED_AFTER_SECS).max(self.before_secs);
        let (mut old, mut recent) = (Counts::new(), Counts::new());
        served_since(self.before_secs, &mut |call: &CountedCall| {
            add(if call.time_secs < before_secs { &mut old } else { &mut recent }, call);
        })?;
        merge(&mut self.counts, &old);
        self.before_secs = before_secs;
        let mut counts = self.counts.clone();
        merge(&mut counts, &recent);
        Ok(counts)
    }

    /// Returns whether the clock is behind where it was, and would be by now.
    fn is_set_back(&mut self, now_secs: u64, now: Instant) -> bool {
        let expected_secs = self
            .clock
            .map_or(0, |(secs, at)| secs.saturating_add(now.saturating_duration_since(at).as_secs()));
        if now_secs >= expected_secs {
            self.clock = Some((now_secs, now));
        }
        now_secs.saturating_add(SETTLED_AFTER_SECS / 2) < expected_secs
    }
}

fn add(counts: &mut Counts, seen: &CountedCall) {
    let count = counts.entry(seen.service).or_default();
    count.calls += u64::from(!seen.charged.is_zero());
    count.earned = count.earned.saturating_add(seen.charged);
    count.errors += u64::from(!matches!(seen.outcome, Outcome::Answered | Outcome::Declined));
    count.last_secs = count.last_secs.max(Some(seen.time_secs));
}

fn merge(counts: &mut Counts, more: &Counts) {
    for (service, more) in more {
        let count = counts.entry(*service).or_default();
        count.calls += more.calls;
        count.earned = count.earned.saturating_add(more.earned);
        count.errors += more.errors;
        count.last_secs = count.last_secs.max(more.last_secs);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seen(time_secs: u64, charged: u64, outcome: Outcome) -> CountedCall {
        let charged = Usdc::from_micros(charged);
        CountedCall { service: ServiceId::from_bytes([7; 16]), charged, outcome, time_secs }
    }

    /// The count of one service's calls, and how many of them were looked at.
    fn counted(settled: &mut TallyState, rows: &[CountedCall], now: (u64, Instant)) -> (Count, usize) {
        let mut looked_at = 0;
        let counts = settled.count(now, |from_secs, each| {
            for row in rows.iter().rev().filter(|row| row.time_secs >= from_secs) {
                looked_at += 1;
                each(row);
            }
            Ok::<_, ()>(())
        });
        (counts.unwrap()[&rows[0].service], looked_at)
    }

    #[test]
    fn what_was_counted_for_good_is_counted_once_and_new_calls_are_always_in() {
        let mut rows: Vec<CountedCall> = (1..=3_000).map(|secs| seen(secs, 2, Outcome::Answered)).collect();
        let (mut settled, start) = (TallyState::default(), Instant::now());
        let mut all_looked_at = 0;
        for extra in 1..=1_500_u64 {
            let now_secs = 3_000 + extra;
            let outcome = if extra.is_multiple_of(2) { Outcome::ServerError } else { Outcome::Answered };
            rows.push(seen(now_secs, extra % 2, outcome));
            if !extra.is_multiple_of(100) && extra > 3 {
                continue;
            }
            let now = (now_secs, start + Duration::from_secs(extra));
            let (count, looked_at) = counted(&mut settled, &rows, now);
            all_looked_at = looked_at;
            assert_eq!(count.calls, 3_000 + extra.div_ceil(2), "{extra}");
            assert_eq!(count.earned.micros(), 6_000 + extra.div_ceil(2), "{extra}");
            assert_eq!((count.errors, count.last_secs), (extra / 2, Some(now_secs)));
        }
        assert!(all_looked_at < 1_000, "older calls were counted for good: {all_looked_at}");
    }

    #[test]
    fn a_call_that_was_counted_for_good_is_counted_again_without_its_payment_if_that_is_lost() {
        let (mut settled, start) = (TallyState::default(), Instant::now());
        let paid = [seen(1, 2, Outcome::Answered), seen(2, 2, Outcome::Answered)];
        let taken_back = [paid[0], seen(2, 0, Outcome::Answered)];
        let place = vec![Position::start_of(9_999)];
        for (lost, rows, calls) in [(vec![], &paid, 2), (place, &taken_back, 1), (vec![], &paid, 2)] {
            settled.note_lost(lost);
            assert_eq!(counted(&mut settled, rows, (10_000, start)).0, count_of(calls, 2));
        }
    }

    #[test]
    fn calls_that_come_after_the_clock_was_set_back_are_counted() {
        let mut rows: Vec<CountedCall> = (1..=3_000).map(|secs| seen(secs, 2, Outcome::Answered)).collect();
        let (mut settled, start) = (TallyState::default(), Instant::now());
        let at = |after_secs| start + Duration::from_secs(after_secs);
        assert_eq!(counted(&mut settled, &rows, (10_000, at(0))).0.calls, 3_000);
        rows.push(seen(5_000, 2, Outcome::Answered));
        assert_eq!(counted(&mut settled, &rows, (5_000, at(1))), (count_of(3_001, 5_000), 3_001));
        rows.push(seen(5_001, 2, Outcome::Answered));
        assert_eq!(counted(&mut settled, &rows, (5_001, at(2))), (count_of(3_002, 5_001), 2));
        // A minute at a time, and the clock is watched again.
        for step in 1..=20 {
            counted(&mut settled, &rows, (5_001 - 60 * step, at(2 + step)));
        }
        rows.push(seen(3_801, 2, Outcome::Answered));
        assert_eq!(counted(&mut settled, &rows, (3_801, at(30))).0.calls, 3_003);
    }

    fn count_of(calls: u64, last_secs: u64) -> Count {
        Count { calls, earned: Usdc::from_micros(2 * calls), errors: 0, last_secs: Some(last_secs) }
    }
}
