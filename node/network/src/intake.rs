//! A limit on what one source offers in a minute: checking a signature costs more than sending one. Pure.

use std::{collections::HashMap, hash::Hash, net::IpAddr};

use farthing_protocol::Address;

/// Sources counted in a minute: four times as many as can be connected.
const SOURCES_MAX: usize = 1024;

/// The key that a neighbour is counted by: whoever has one wallet can have any number, but not as many address ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NeighbourOrigin {
    Range(IpAddr),
    Wallet(Address),
}

impl NeighbourOrigin {
    /// Of a neighbour in this range, unless that is private.
    pub(crate) fn of(wallet: Address, range: Option<IpAddr>) -> Self {
        range.map_or(Self::Wallet(wallet), Self::Range)
    }
}

/// Offers in the current minute.
#[derive(Debug)]
pub(crate) struct Intake<S> {
    per_minute_max: u32,
    minute: u64,
    by_source: HashMap<S, u32>,
}

impl<S: Copy + Eq + Hash> Intake<S> {
    pub(crate) fn new(per_minute_max: u32) -> Self {
        Self { per_minute_max, minute: 0, by_source: HashMap::new() }
    }

    /// Counts one more offer of `source`, and returns whether to look at it.
    pub(crate) fn admits(&mut self, source: S, now_secs: u64) -> bool {
        self.count(source, now_secs) <= self.per_minute_max
    }

    /// The number of this offer of `source` in the current minute.
    pub(crate) fn count(&mut self, source: S, now_secs: u64) -> u32 {
        let minute = now_secs / 60;
        if self.minute != minute {
            self.minute = minute;
            self.by_source.clear();
        }
        if self.by_source.len() >= SOURCES_MAX && !self.by_source.contains_key(&source) {
            // Who offered least gives way: many that offer little must not keep others from being heard.
            let least = self.by_source.iter().min_by_key(|(_, offers)| **offers).map(|(source, _)| *source);
            least.map(|least| self.by_source.remove(&least));
        }
        let offers = self.by_source.entry(source).or_default();
        *offers = offers.saturating_add(1);
        *offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::from_bytes([1; 20]);
    const B: Address = Address::from_bytes([2; 20]);

    #[test]
    fn a_source_is_heard_so_often_a_minute() {
        let mut intake = Intake::new(50);
        let heard = (0..1000).filter(|_| intake.admits(A, 61)).count();
        assert_eq!(heard, 50);
        assert!(intake.admits(B, 61), "others are not affected");
        assert!(intake.admits(A, 120), "the next minute begins");
    }

    #[test]
    fn the_count_of_sources_is_bounded_and_the_next_one_is_heard() {
        let mut intake = Intake::new(50);
        assert_eq!((0..100).filter(|_| intake.admits(A, 1)).count(), 50);
        for n in 0..2 * SOURCES_MAX {
            let mut source = [0; 20];
            source[..8].copy_from_slice(&n.to_be_bytes());
            assert!(intake.admits(Address::from_bytes(source), 1), "{n} was not heard");
        }
        assert_eq!(intake.by_source.len(), SOURCES_MAX);
        assert!(!intake.admits(A, 1), "who has had its share is not forgotten for that");
    }
}
