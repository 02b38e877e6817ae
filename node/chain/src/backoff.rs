//! Delays between attempts: doubling, bounded, and jittered so that nodes that lost the same endpoint do not
//! return at the same moment.

use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

const FIRST_MS: u64 = 250;
const LAST_MS: u64 = 30_000;

impl Backoff {
    pub(crate) fn next_delay(&mut self) -> Duration {
        let full_ms = (FIRST_MS << self.attempts.min(16)).min(LAST_MS);
        self.attempts = self.attempts.saturating_add(1);
        // Between half and all of it. Without randomness the full delay is as good.
        let random = getrandom::u32().unwrap_or(u32::MAX);
        let half_ms = full_ms / 2;
        Duration::from_millis(half_ms + half_ms * u64::from(random) / u64::from(u32::MAX))
    }

    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_a_quarter_second_to_half_a_minute() {
        let mut backoff = Backoff::default();
        for full_ms in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let delay_ms = backoff.next_delay().as_millis();
            assert!(delay_ms >= full_ms / 2 && delay_ms <= full_ms, "{delay_ms} of {full_ms}");
        }
        backoff.reset();
        assert!(backoff.next_delay().as_millis() <= 250);
    }
}
