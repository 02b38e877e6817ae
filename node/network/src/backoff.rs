//! The pause before something is tried again. Pure.

use std::time::Duration;

use farthing_protocol::{Address, keccak256};

/// Doubles `first` up to a maximum with each failure, and differs by up to a half between nodes, so that a place which
/// comes back is not met by everybody at once.
pub(crate) fn pause(own: Address, failures: u32, first: Duration, max: Duration) -> Duration {
    let base = first.saturating_mul(1 << failures.min(16)).min(max);
    let hash = keccak256(&[own.as_bytes(), &failures.to_be_bytes()]);
    base / 2 + base.mul_f64(f64::from(hash[0]) / 510.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_do_not_retry_in_step_and_wait_no_longer_than_the_longest_pause() {
        let [one, other] = [1, 2].map(|byte| Address::from_bytes([byte; 20]));
        let (first, max) = (Duration::from_millis(250), Duration::from_secs(30));
        let after = |own, failures| pause(own, failures, first, max);
        assert!((0..8).any(|failures| after(one, failures) != after(other, failures)));
        assert!((0..40).all(|failures| (first / 2..=max).contains(&after(one, failures))));
    }
}
