//! A wait as it is told to others.

use std::time::Duration;

/// A wait in whole seconds, rounded up: who comes back after as many does not come too early.
pub fn wait_secs(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_seconds_and_never_as_shorter_than_it_is() {
        for (wait, secs) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_millis(999), 1),
            (Duration::from_secs(1), 1),
            (Duration::from_millis(1_001), 2),
            (Duration::from_secs(86_400), 86_400),
            (Duration::MAX, u64::MAX),
        ] {
            assert_eq!(wait_secs(wait), secs, "{wait:?}");
        }
    }
}
