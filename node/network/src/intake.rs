//! How much one source may offer in a minute: checking a signature costs more than sending one. Pure.

use std::collections::HashMap;

use farthing_protocol::Address;

/// Sources counted in a minute: four times as many as can be connected.
const SOURCES_MAX: usize = 1024;

/// Offers in the current minute.
#[derive(Debug)]
pub(crate) struct Intake {
    per_minute_max: u32,
    minute: u64,
    by_source: HashMap<Address, u32>,
}

impl Intake {
    pub(crate) fn new(per_minute_max: u32) -> Self {
        Self { per_minute_max, minute: 0, by_source: HashMap::new() }
    }

    /// Whether to look at one more offer of `source`.
    pub(crate) fn admits(&mut self, source: Address, now_secs: u64) -> bool {
        let minute = now_secs / 60;
        if self.minute != minute {
            self.minute = minute;
            self.by_source.clear();
        }
        if self.by_source.len() >= SOURCES_MAX && !self.by_source.contains_key(&source) {
            return false;
        }
        let offers = self.by_source.entry(source).or_default();
        *offers = offers.saturating_add(1);
        *offers <= self.per_minute_max
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
    fn the_count_of_sources_is_bounded() {
        let mut intake = Intake::new(50);
        for n in 0..2 * SOURCES_MAX {
            let mut source = [0; 20];
            source[..8].copy_from_slice(&n.to_be_bytes());
            intake.admits(Address::from_bytes(source), 1);
        }
        assert_eq!(intake.by_source.len(), SOURCES_MAX);
    }
}
