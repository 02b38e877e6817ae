//! A tally of what each service served and earned, counted without reading the ledger from its beginning every time.
//!
//! Calls are told from the newest to the oldest. What is older than some minutes does not change any more: it is
//! counted once and kept. What is newer is counted anew whenever somebody asks, so that the answer is exact.

use std::{collections::HashMap, sync::Arc};

use farthing_ledger::{CallRow, Ledger, LedgerError};
use farthing_os::clock;
use farthing_protocol::{Outcome, ServiceId, Usdc};
use farthing_shared::disk::aside;
use parking_lot::Mutex;

/// No clock is set back further than this without somebody noticing.
const SETTLED_AFTER_SECS: u64 = 600;
/// Newer calls that are looked through each time before the older of them are counted for good.
const RECENT_MAX: usize = 1_000;
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
pub struct Tally(Arc<Mutex<Settled>>);

/// The part of a call that counts.
#[derive(Debug, Clone, Copy)]
struct CountedCall {
    service: ServiceId,
    charged: Usdc,
    outcome: Outcome,
    time_secs: u64,
}

impl CountedCall {
    const fn new(row: &CallRow) -> Self {
        let call = &row.call;
        Self {
            service: call.service,
            charged: call.charged,
            outcome: call.outcome,
            time_secs: call.time_secs,
        }
    }
}

#[derive(Debug, Default)]
struct Settled {
    counts: Counts,
    /// Calls before this second are in `counts`.
    before_secs: u64,
}

impl Tally {
    /// Counts what every service served, exactly as the ledger has it now.
    pub async fn counts(&self, ledger: &Ledger) -> Result<Counts, LedgerError> {
        let (tally, ledger) = (self.clone(), ledger.clone());
        aside(move || {
            let mut settled = tally.0.lock();
            let newest =
                |limit| ledger.served_calls(limit).map(|rows| rows.iter().map(CountedCall::new).collect());
            settled.count(clock::now_secs(), newest)
        })
        .await
    }
}

impl Settled {
    /// `newest` gives that many calls at most, the newest first.
    fn count<E>(
        &mut self,
        now_secs: u64,
        newest: impl Fn(usize) -> Result<Vec<CountedCall>, E>,
    ) -> Result<Counts, E> {
        let mut limit = RECENT_MAX;
        let mut rows = newest(limit)?;
        while rows.len() == limit && limit < CALLS_MAX && rows.last().is_some_and(|row| self.is_new(row)) {
            limit *= 8;
            rows = newest(limit)?;
        }
        rows.retain(|row| self.is_new(row));
        if rows.len() >= RECENT_MAX {
            let before_secs = now_secs.saturating_sub(SETTLED_AFTER_SECS);
            for row in rows.iter().filter(|row| row.time_secs < before_secs) {
                add(&mut self.counts, row);
            }
            self.before_secs = self.before_secs.max(before_secs);
            rows.retain(|row| self.is_new(row));
        }
        let mut counts = self.counts.clone();
        rows.iter().for_each(|row| add(&mut counts, row));
        Ok(counts)
    }

    const fn is_new(&self, seen: &CountedCall) -> bool {
        seen.time_secs >= self.before_secs
    }
}

fn add(counts: &mut Counts, seen: &CountedCall) {
    let count = counts.entry(seen.service).or_default();
    count.calls += u64::from(!seen.charged.is_zero());
    count.earned = count.earned.saturating_add(seen.charged);
    count.errors += u64::from(!matches!(seen.outcome, Outcome::Answered | Outcome::Declined));
    count.last_secs = count.last_secs.max(Some(seen.time_secs));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(time_secs: u64, charged: u64, outcome: Outcome) -> CountedCall {
        let charged = Usdc::from_micros(charged);
        CountedCall { service: ServiceId::from_bytes([7; 16]), charged, outcome, time_secs }
    }

    #[test]
    fn what_was_counted_for_good_is_counted_once_and_new_calls_are_always_in() {
        let mut rows: Vec<CountedCall> = (1..=3_000).map(|secs| seen(secs, 2, Outcome::Answered)).collect();
        let mut settled = Settled::default();
        for extra in 1..=1_500_u64 {
            let now_secs = 3_000 + extra;
            let outcome = if extra.is_multiple_of(2) { Outcome::ServerError } else { Outcome::Answered };
            rows.push(seen(now_secs, extra % 2, outcome));
            if !extra.is_multiple_of(100) && extra > 3 {
                continue;
            }
            let newest = |limit: usize| Ok::<_, ()>(rows.iter().rev().take(limit).copied().collect());
            let count = settled.count(now_secs, newest).unwrap()[&rows[0].service];
            assert_eq!(count.calls, 3_000 + extra.div_ceil(2), "{extra}");
            assert_eq!(count.earned.micros(), 6_000 + extra.div_ceil(2), "{extra}");
            assert_eq!((count.errors, count.last_secs), (extra / 2, Some(now_secs)));
        }
        assert!(settled.before_secs > 3_000, "older calls were counted for good");
    }
}
