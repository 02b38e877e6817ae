//! Durations of the newest answers of an upstream: a few of them, in memory.

use std::{collections::VecDeque, time::Duration};

use farthing_ledger::Latencies;
use farthing_os::clock;
use parking_lot::Mutex;

/// Enough for a median that follows what the server does now.
const KEPT: usize = 128;

/// The newest durations, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Times(Mutex<VecDeque<u64>>);

impl Times {
    pub(super) fn add(&self, took: Duration) {
        let mut times = self.0.lock();
        if times.len() == KEPT {
            times.pop_front();
        }
        times.push_back(clock::micros(took));
    }

    /// The oldest first.
    pub(super) fn newest_us(&self) -> Vec<u64> {
        self.0.lock().iter().copied().collect()
    }

    pub(super) fn median_us(&self) -> Option<u64> {
        self.newest_us().into_iter().collect::<Latencies>().median_us()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_the_newest() {
        let times = Times::default();
        assert_eq!(times.median_us(), None);
        for millis in [1_000, 1, 2, 3] {
            times.add(Duration::from_millis(millis));
        }
        assert_eq!(times.median_us(), Some(3_000));
        (0..KEPT).for_each(|_| times.add(Duration::from_millis(7)));
        assert_eq!(times.median_us(), Some(8_500), "as in a chart: in the middle of 7 to 10 ms");
    }
}
