//! A limit on what one source offers in a minute: checking a signature costs more than sending one.

use std::{collections::HashMap, hash::Hash};

/// Sources counted in a minute: four times as many as can be connected.
const SOURCES_MAX: usize = 1024;

/// Offers in the current minute.
#[derive(Debug)]
pub struct Intake<S> {
    per_minute_max: u32,
    minute: u64,
    by_source: HashMap<S, u32>,
}

impl<S: Copy + Eq + Hash> Intake<S> {
    /// Looks at so many offers of each source in a minute.
    pub fn new(per_minute_max: u32) -> Self {
        Self { per_minute_max, minute: 0, by_source: HashMap::new() }
    }

    /// Counts one more offer of `source`, and returns whether to look at it.
    pub fn admits(&mut self, source: S, now_secs: u64) -> bool {
        self.count(source, now_secs) <= self.per_minute_max
    }

    /// The number of this offer of `source` in the current minute.
    pub fn count(&mut self, source: S, now_secs: u64) -> u32 {
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

    #[test]
    fn a_source_is_heard_so_often_a_minute() {
        let mut intake = Intake::new(50);
        assert_eq!((0..1000).filter(|_| intake.admits("a", 61)).count(), 50);
        assert!(intake.admits("b", 61), "others are not affected");
        assert!(intake.admits("a", 120), "the next minute begins");
    }

    #[test]
    fn many_sources_take_bounded_memory_and_who_had_its_share_is_not_forgotten_for_them() {
        let mut intake = Intake::new(50);
        (0..50).for_each(|_| assert!(intake.admits(0, 1)));
        for n in 1..=2 * SOURCES_MAX {
            assert!(intake.admits(n, 1), "{n} was not heard");
        }
        assert_eq!(intake.by_source.len(), SOURCES_MAX);
        assert!(!intake.admits(0, 1));
    }
}
