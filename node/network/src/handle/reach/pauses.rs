//! Wallets that were tried in vain, and how long each is left alone. Pure.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use farthing_protocol::Address;

/// Wallets remembered.
const WALLETS_MAX: usize = 1024;

/// Pauses by wallet, each twice as long as the last.
#[derive(Debug)]
pub(super) struct Pauses {
    first: Duration,
    longest: Duration,
    wallets: HashMap<Address, Pause>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    until: Instant,
    times: u32,
    /// The newest record that was tried; 0 without one.
    seq: u64,
}

impl Pauses {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, wallets: HashMap::new() }
    }

    /// Returns how much longer to leave `wallet` alone. A record newer than those tried is worth a try at once.
    pub(super) fn wait(&self, wallet: Address, seq: u64, now: Instant) -> Option<Duration> {
        let pause = self.wallets.get(&wallet).filter(|pause| pause.seq >= seq)?;
        pause.until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Returns the time since `wallet` was last tried in vain.
    pub(super) fn since(&self, wallet: Address, now: Instant) -> Option<Duration> {
        self.wallets.get(&wallet).map(|pause| now.saturating_duration_since(pause.since))
    }

    pub(super) fn missed(&mut self, wallet: Address, seq: u64, now: Instant) {
        if self.wallets.len() >= WALLETS_MAX && !self.wallets.contains_key(&wallet) {
            self.wallets.retain(|_, pause| pause.until > now);
            if self.wallets.len() >= WALLETS_MAX {
                return;
            }
        }
        let last = self.wallets.get(&wallet);
        let times = last.map_or(0, |last| last.times + 1);
        let seq = last.map_or(seq, |last| last.seq.max(seq));
        let wait = self.first.saturating_mul(1 << times.min(8)).min(self.longest);
        self.wallets.insert(wallet, Pause { since: now, until: now + wait, times, seq });
    }

    pub(super) fn found(&mut self, wallet: Address) {
        self.wallets.remove(&wallet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLET: Address = Address::from_bytes([1; 20]);
    const FIRST: Duration = Duration::from_secs(30);

    fn pauses() -> Pauses {
        Pauses::new(FIRST, Duration::from_secs(600))
    }

    #[test]
    fn what_is_tried_in_vain_is_left_alone_ever_longer() {
        let mut pauses = pauses();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert_eq!(pauses.wait(WALLET, 0, now), None);
            pauses.missed(WALLET, 0, now);
            let wait = pauses.wait(WALLET, 0, now).unwrap();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [30, 60, 120, 240, 480, 600, 600, 600]);
        pauses.found(WALLET);
        pauses.missed(WALLET, 0, now);
        assert_eq!(pauses.wait(WALLET, 0, now), Some(FIRST));
    }

    #[test]
    fn a_newer_record_is_tried_once_and_does_not_begin_anew() {
        let (mut pauses, now) = (pauses(), Instant::now());
        pauses.missed(WALLET, 5, now);
        assert_eq!(pauses.wait(WALLET, 5, now), Some(FIRST));
        assert_eq!(pauses.wait(WALLET, 6, now), None);
        pauses.missed(WALLET, 6, now);
        assert_eq!(pauses.wait(WALLET, 6, now), Some(FIRST * 2));
        pauses.missed(WALLET, 5, now);
        assert_eq!(pauses.wait(WALLET, 6, now), Some(FIRST * 4), "an older one was tried beside it");
    }

    #[test]
    fn the_list_is_bounded() {
        let (mut pauses, now) = (pauses(), Instant::now());
        for n in 0..2 * WALLETS_MAX {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            pauses.missed(Address::from_bytes(bytes), 0, now);
        }
        assert_eq!(pauses.wallets.len(), WALLETS_MAX);
    }
}
