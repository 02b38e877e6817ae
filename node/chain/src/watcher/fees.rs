//! What gas used to cost: the median of samples taken every ten minutes over seven days.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::views::BaseFee;

const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// Seven days of samples.
const SAMPLES_MAX: usize = 7 * 24 * 6;

#[derive(Debug, Default)]
pub(super) struct FeeHistory {
    samples: VecDeque<u128>,
    sampled_at: Option<Instant>,
}

impl FeeHistory {
    pub(super) fn observe(&mut self, base_fee_wei: u128, now: Instant) -> BaseFee {
        if self.sampled_at.is_none_or(|at| now.saturating_duration_since(at) >= SAMPLE_EVERY) {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(base_fee_wei);
            self.sampled_at = Some(now);
        }
        BaseFee { current_wei: base_fee_wei, median_wei: self.median() }
    }

    fn median(&self) -> u128 {
        let mut sorted: Vec<u128> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_a_short_spike_and_forgets_after_seven_days() {
        let start = Instant::now();
        let mut history = FeeHistory::default();
        let at = |n: u64| start + SAMPLE_EVERY * u32::try_from(n).unwrap();
        for n in 0..20 {
            history.observe(100, at(n));
        }
        let spike = history.observe(9_000, at(20));
        assert_eq!(spike, BaseFee { current_wei: 9_000, median_wei: 100 });
        for n in 21..2_000 {
            history.observe(300, at(n));
        }
        assert_eq!(history.samples.len(), SAMPLES_MAX);
        assert_eq!(history.median(), 300);
    }

    #[test]
    fn blocks_between_two_samples_do_not_crowd_out_the_past() {
        let start = Instant::now();
        let mut history = FeeHistory::default();
        history.observe(100, start);
        let last = history.observe(500, start + SAMPLE_EVERY - Duration::from_millis(1));
        assert_eq!(last, BaseFee { current_wei: 500, median_wei: 100 });
        assert_eq!(history.samples.len(), 1);
    }
}
