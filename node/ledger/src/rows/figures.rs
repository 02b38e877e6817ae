//! Figures of calls: how they ended, what was charged for them, and how long the answered ones took.
//!
//! They are made of a call's stored row alone, so that counting it at its end and counting it again later come to the same.

use farthing_values::{Address, Outcome, ServiceId, Usdc};
use minicbor::{Decode, Encode};

use super::{
    Side,
    payee::{StoredCall, StoredState},
    payer::{StoredEnd, StoredPurchase},
};

const OUTCOMES: usize = Outcome::ALL.len();

/// The times between which answers are told apart, in microseconds: the next is at most 1.7 times the one before.
const BOUNDS_US: [u64; 30] = [
    1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000,
    150_000, 200_000, 300_000, 500_000, 700_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 5_000_000,
    7_000_000, 10_000_000, 15_000_000, 20_000_000, 30_000_000, 50_000_000, 70_000_000,
];
const BINS: usize = BOUNDS_US.len() + 1;

/// Services of one side with figures of their own, in an hour, in a day, and in a part of the last hour.
pub(crate) const SERVICES_MAX: usize = 64;

/// The service whose calls are counted, on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    pub side: Side,
    /// The wallet that was paid; [`Address::ZERO`] for this node's own.
    pub owner: Address,
    pub service: ServiceId,
}

impl Subject {
    /// Stands for all services of a side that have no place of their own in an hour or a day.
    pub const fn others(side: Side) -> Self {
        Self { side, owner: Address::ZERO, service: ServiceId::from_bytes([0; 16]) }
    }
}

/// The end of one call, as it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedCall {
    pub(crate) subject: Subject,
    /// Of the promise, or of the end at the owner: the time by which its day is charged.
    pub(crate) time_secs: u64,
    /// `None` when it was released.
    pub(crate) outcome: Option<Outcome>,
    /// Released since the owner's node refused it.
    pub(crate) is_refused: bool,
    pub(crate) charged: Usdc,
    pub(crate) took_us: Option<u64>,
}

impl EndedCall {
    /// `None` for a call that has not ended.
    pub(crate) fn served(call: &StoredCall) -> Option<Self> {
        let StoredState::Done(done) = &call.state else { return None };
        Some(Self {
            subject: Subject { side: Side::Payee, owner: Address::ZERO, service: call.service },
            time_secs: call.time_secs,
            outcome: Some(done.outcome),
            is_refused: false,
            charged: done.earned(),
            took_us: done.upstream_us,
        })
    }

    pub(crate) fn bought(purchase: &StoredPurchase) -> Self {
        let (outcome, took_us) = match &purchase.end {
            // A receipt without an answer came late, and says nothing of the time.
            StoredEnd::Acknowledged { receipt, status, total_us, .. } => {
                (Some(receipt.outcome), Some(*total_us).filter(|_| *status != 0))
            }
            StoredEnd::Transferred { status, total_us, .. } => {
                (Some(Outcome::Answered), Some(*total_us).filter(|_| *status != 0))
            }
            StoredEnd::Released { .. } => (None, None),
        };
        Self {
            subject: Subject { side: Side::Payer, owner: purchase.owner, service: purchase.service },
            time_secs: purchase.promised_secs,
            outcome,
            is_refused: purchase.end.is_refused() == Some(true),
            charged: purchase.end.charged(),
            took_us,
        }
    }

    /// Returns whether the service itself answered: such an end is final.
    pub(crate) fn is_answered(&self) -> bool {
        self.outcome.is_some_and(Outcome::is_the_services_answer)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFigures {
    /// By the code of their outcome.
    outcomes: [u64; OUTCOMES],
    /// Refused by their owner's node, without a charge.
    pub refused: u64,
    /// Ended without an outcome and without a charge for another reason: never sent, or unknown to their owner. In rows of
    /// before, refused ones as well.
    pub released: u64,
    pub charged: Usdc,
    /// Of the calls that a service answered, where the time is known.
    pub latencies: Latencies,
}

impl CallFigures {
    /// An amount that no call explains.
    pub fn without_calls(charged: Usdc) -> Self {
        Self { charged, ..Self::default() }
    }

    /// Returns how many calls ended so.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(usize::from(outcome.code())).copied().unwrap_or_default()
    }

    /// Returns how many calls a service answered.
    pub fn answered(&self) -> u64 {
        let answers = Outcome::ALL.into_iter().filter(|outcome| outcome.is_the_services_answer());
        answers.map(|outcome| self.ended(outcome)).fold(0, u64::saturating_add)
    }

    /// Returns how many calls there were.
    pub fn calls(&self) -> u64 {
        let others = self.released.saturating_add(self.refused);
        self.outcomes.iter().fold(others, |sum, calls| sum.saturating_add(*calls))
    }

    pub fn add(&mut self, other: &Self) {
        add_each(&mut self.outcomes, &other.outcomes);
        add_each(&mut self.latencies.0, &other.latencies.0);
        self.refused = self.refused.saturating_add(other.refused);
        self.released = self.released.saturating_add(other.released);
        self.charged = self.charged.saturating_add(other.charged);
    }

    pub(crate) fn count(&mut self, ended: &EndedCall) {
        if let Some(calls) = self.calls_with(ended.outcome, ended.is_refused) {
            *calls = calls.saturating_add(1);
        }
        self.charged = self.charged.saturating_add(ended.charged);
        if let Some(took_us) = ended.took_us.filter(|_| ended.is_answered()) {
            self.latencies.count(took_us);
        }
    }

    /// Takes out an end that was counted and is replaced by another one. Such an end was no answer and cost nothing.
    /// Returns whether there was one.
    pub(crate) fn uncount(&mut self, ended: &EndedCall) -> bool {
        let Some(calls) = self.calls_with(ended.outcome, ended.is_refused) else { return false };
        let was_counted = *calls > 0;
        *calls = calls.saturating_sub(1);
        was_counted
    }

    /// Changes what an end that was counted has cost. Returns whether there was one.
    pub(crate) fn recharge(&mut self, ended: &EndedCall, charged: Usdc) -> bool {
        let was_counted = self.calls_with(ended.outcome, ended.is_refused).is_some_and(|calls| *calls > 0);
        if was_counted {
            self.charged = self.charged.saturating_sub(ended.charged).saturating_add(charged);
        }
        was_counted
    }

    fn calls_with(&mut self, outcome: Option<Outcome>, is_refused: bool) -> Option<&mut u64> {
        match outcome {
            Some(outcome) => self.outcomes.get_mut(usize::from(outcome.code())),
            None if is_refused => Some(&mut self.refused),
            None => Some(&mut self.released),
        }
    }
}

/// Numbers of answers by how long they took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies([u64; BINS]);

impl Latencies {
    /// Counts an answer.
    pub fn count(&mut self, took_us: u64) {
        let bin = BOUNDS_US.partition_point(|bound| *bound <= took_us);
        if let Some(answers) = self.0.get_mut(bin) {
            *answers = answers.saturating_add(1);
        }
    }

    /// Returns the time within which half of the answers came: what a tile says, and what a line shows.
    pub fn median_us(&self) -> Option<u64> {
        self.percentile_us(50)
    }

    /// Returns the time within which so many percent of the answers came, in microseconds, as if those between two bounds
    /// were spread evenly; beyond the last bound, that. `None` before the first answer.
    pub fn percentile_us(&self, percent: u8) -> Option<u64> {
        let all: u128 = self.0.iter().map(|answers| u128::from(*answers)).sum();
        let rank = (all * u128::from(percent)).div_ceil(100).max(1);
        let mut before = 0;
        for (bin, answers) in self.0.iter().enumerate() {
            let answers = u128::from(*answers);
            if answers > 0 && before + answers >= rank {
                let (from, to) = bounds_us(bin);
                let part = u128::from(to - from) * (rank - before) / answers;
                return Some(from.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)));
            }
            before += answers;
        }
        None
    }
}

impl FromIterator<u64> for Latencies {
    fn from_iter<T: IntoIterator<Item = u64>>(answers_us: T) -> Self {
        let mut latencies = Self::default();
        answers_us.into_iter().for_each(|took_us| latencies.count(took_us));
        latencies
    }
}

/// The times between which the answers of a bin took.
fn bounds_us(bin: usize) -> (u64, u64) {
    let from = bin.checked_sub(1).and_then(|below| BOUNDS_US.get(below)).copied().unwrap_or_default();
    (from, BOUNDS_US.get(bin).copied().unwrap_or(from))
}

fn add_each(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// The stored form. Counts are by number, without zeros at the end.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredFigures {
    #[n(0)]
    outcomes: Vec<u64>,
    #[n(1)]
    released: u64,
    #[n(2)]
    charged: Usdc,
    #[n(3)]
    latencies: Vec<u64>,
    /// `None` where there are none, as in rows of before.
    #[n(4)]
    refused: Option<u64>,
}

impl From<&CallFigures> for StoredFigures {
    fn from(figures: &CallFigures) -> Self {
        Self {
            outcomes: without_zeros(&figures.outcomes),
            released: figures.released,
            charged: figures.charged,
            latencies: without_zeros(&figures.latencies.0),
            refused: Some(figures.refused).filter(|refused| *refused > 0),
        }
    }
}

impl From<StoredFigures> for CallFigures {
    fn from(stored: StoredFigures) -> Self {
        let mut figures = Self {
            refused: stored.refused.unwrap_or_default(),
            released: stored.released,
            charged: stored.charged,
            ..Self::default()
        };
        add_each(&mut figures.outcomes, &stored.outcomes);
        add_each(&mut figures.latencies.0, &stored.latencies);
        figures
    }
}

fn without_zeros(counts: &[u64]) -> Vec<u64> {
    let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    counts.iter().take(end).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_between_the_bounds() {
        let of = |took_us: &[u64]| {
            let latencies: Latencies = took_us.iter().copied().collect();
            (latencies.median_us(), latencies.percentile_us(95))
        };
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[0]), (Some(1_000), Some(1_000)));
        assert_eq!(of(&[999]), of(&[0]));
        assert_eq!(of(&[1_000]), (Some(1_500), Some(1_500)), "a bound belongs to what is above it");
        assert_eq!(of(&[u64::MAX]), (Some(70_000_000), Some(70_000_000)), "and more");
        let mut many = vec![5_500; 10];
        assert_eq!(of(&many), (Some(6_000), Some(7_000)));
        many.extend([2_500_000; 2]);
        assert_eq!(of(&many), (Some(6_200), Some(3_000_000)));
    }

    #[test]
    fn figures_are_read_as_they_are_stored() {
        let mut figures =
            CallFigures { refused: 2, released: 3, charged: Usdc::MAX, ..CallFigures::default() };
        assert_eq!(without_zeros(&figures.outcomes), [0; 0]);
        for (number, outcome) in Outcome::ALL.into_iter().enumerate() {
            *figures.calls_with(Some(outcome), false).unwrap() = number as u64;
        }
        figures.latencies.count(40_000);
        let stored = crate::tables::encode(&StoredFigures::from(&figures));
        let read: StoredFigures = crate::tables::decode("service_hours", &stored).unwrap();
        assert_eq!(CallFigures::from(read), figures);
        assert_eq!(figures.calls(), 5 + (0..Outcome::ALL.len() as u64).sum::<u64>());
    }
}
