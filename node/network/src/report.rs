//! Reports of stream tasks about peers to the swarm's task, and when they get a peer blocked.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use farthing_protocol::Address;
use tokio::sync::mpsc;

/// Five of these in ten minutes are no accident.
const STRIKES_MAX: usize = 5;
const STRIKES_WINDOW: Duration = Duration::from_secs(600);
/// The length of a peer's first block; twice as long each time it comes to that again.
const BLOCK_MIN: Duration = Duration::from_secs(600);
const BLOCK_MAX: Duration = Duration::from_secs(24 * 3600);
/// Peers with strikes that are remembered.
const STRUCK_PEERS_MAX: usize = 1024;
/// Reports waiting for the swarm's task; more are dropped, a flood needs no exact count.
pub(crate) const REPORTS_MAX: usize = 64;

/// A fault that a well-behaved peer never commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    Malformed,
    TooLarge,
    BadSignature,
    /// Far more gossip than anybody has to tell.
    Flood,
}

/// Tells the swarm's task about strikes. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(mpsc::Sender<(Address, Strike)>);

impl Reporter {
    pub(crate) fn new() -> (Self, mpsc::Receiver<(Address, Strike)>) {
        let (sender, receiver) = mpsc::channel(REPORTS_MAX);
        (Self(sender), receiver)
    }

    pub(crate) fn strike(&self, peer: Address, strike: Strike) {
        let _ = self.0.try_send((peer, strike));
    }
}

/// Recent strikes by peer, and what they led to.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    recent: HashMap<Address, VecDeque<Instant>>,
    /// The end of a peer's last block, and how many it had.
    blocks: HashMap<Address, (Instant, u32)>,
}

impl Strikes {
    /// Notes one strike. When it is one too many, the peer is to be blocked for this long. What was under way when it was
    /// blocked does not count for the next block.
    ///
    /// Wallets are free, so a full list makes nobody immune: who has fewest strikes makes room, and of these the one
    /// whose last is the oldest.
    pub(crate) fn note(&mut self, peer: Address, now: Instant) -> Option<Duration> {
        if self.blocks.get(&peer).is_some_and(|(ends, _)| now < *ends) {
            return None;
        }
        let is_recent = |at: &Instant| now.duration_since(*at) < STRIKES_WINDOW;
        if self.recent.len() >= STRUCK_PEERS_MAX && !self.recent.contains_key(&peer) {
            self.recent.retain(|_, strikes| strikes.back().is_some_and(is_recent));
            if self.recent.len() >= STRUCK_PEERS_MAX {
                let weight = |strikes: &VecDeque<Instant>| (strikes.len(), strikes.back().copied());
                let least = self.recent.iter().min_by_key(|(_, strikes)| weight(strikes));
                if let Some(least) = least.map(|(peer, _)| *peer) {
                    self.recent.remove(&least);
                }
            }
        }
        let strikes = self.recent.entry(peer).or_default();
        strikes.retain(is_recent);
        strikes.push_back(now);
        if strikes.len() < STRIKES_MAX {
            return None;
        }
        self.recent.remove(&peer);
        Some(self.block(peer, now))
    }

    /// A peer that behaves for a day after its block begins anew.
    fn block(&mut self, peer: Address, now: Instant) -> Duration {
        self.blocks.retain(|_, (ended, _)| now.saturating_duration_since(*ended) < BLOCK_MAX);
        let times = self.blocks.get(&peer).map_or(0, |(_, times)| *times);
        let duration = BLOCK_MIN.saturating_mul(1 << times.min(16)).min(BLOCK_MAX);
        if self.blocks.len() < STRUCK_PEERS_MAX || times > 0 {
            self.blocks.insert(peer, (now + duration, times + 1));
        }
        duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Address = Address::from_bytes([1; 20]);

    #[test]
    fn the_fifth_strike_in_ten_minutes_blocks() {
        let mut strikes = Strikes::default();
        let start = Instant::now();
        for n in 0..4 {
            assert_eq!(strikes.note(PEER, start + Duration::from_secs(n)), None);
        }
        assert_eq!(strikes.note(PEER, start + Duration::from_secs(599)), Some(BLOCK_MIN));
        assert_eq!(strikes.note(PEER, start + Duration::from_secs(600)), None, "and counting starts again");
    }

    #[test]
    fn a_burst_of_bad_frames_is_one_block() {
        let mut strikes = Strikes::default();
        let start = Instant::now();
        let blocks: Vec<_> = (0..40).filter_map(|_| strikes.note(PEER, start)).collect();
        assert_eq!(blocks, [BLOCK_MIN]);
        let (during, after) = (start + BLOCK_MIN / 2, start + BLOCK_MIN);
        assert_eq!((0..40).find_map(|_| strikes.note(PEER, during)), None, "it is blocked already");
        assert_eq!((0..4).find_map(|_| strikes.note(PEER, after)), None, "counting begins anew");
        assert_eq!(strikes.note(PEER, after), Some(2 * BLOCK_MIN), "and the next block is twice as long");
    }

    #[test]
    fn old_strikes_are_forgotten() {
        let mut strikes = Strikes::default();
        let start = Instant::now();
        for n in 0..20 {
            assert_eq!(strikes.note(PEER, start + Duration::from_secs(n * 150)), None, "strike {n}");
        }
    }

    #[test]
    fn a_flood_of_wallets_with_a_strike_each_makes_nobody_immune() {
        let (mut strikes, mut now) = (Strikes::default(), Instant::now());
        let wallet = |n: usize| {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            Address::from_bytes(bytes)
        };
        let mut flood = (0..STRUCK_PEERS_MAX).map(wallet);
        for wallet in flood.by_ref() {
            now += Duration::from_millis(1);
            assert_eq!(strikes.note(wallet, now), None);
        }
        let (worse, mut others) = (wallet(usize::MAX), (STRUCK_PEERS_MAX..).map(wallet));
        assert_eq!(strikes.note(worse, now), None);
        assert_eq!(strikes.note(worse, now), None);
        for _ in 0..2 * STRUCK_PEERS_MAX {
            now += Duration::from_millis(1);
            strikes.note(others.next().unwrap(), now);
        }
        assert!(strikes.recent.len() <= STRUCK_PEERS_MAX, "bounded");
        assert_eq!(strikes.note(worse, now), None);
        assert_eq!(strikes.note(worse, now), None);
        assert_eq!(
            strikes.note(worse, now),
            Some(BLOCK_MIN),
            "those with one strike made room, and it did not"
        );
        let fresh = wallet(usize::MAX - 1);
        let blocked = (0..STRIKES_MAX).find_map(|_| strikes.note(fresh, now));
        assert_eq!(blocked, Some(BLOCK_MIN), "nor is a newcomer passed over");
    }

    #[test]
    fn every_block_is_twice_as_long_as_the_last_up_to_a_day() {
        let mut strikes = Strikes::default();
        let mut now = Instant::now();
        let mut block = |now| (0..5).find_map(|_| strikes.note(PEER, now)).unwrap();
        let mut minutes = Vec::new();
        for _ in 0..10 {
            let duration = block(now);
            minutes.push(duration.as_secs() / 60);
            now += duration;
        }
        assert_eq!(minutes, [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]);
        assert_eq!(block(now + BLOCK_MAX), BLOCK_MIN, "after a good day");
    }
}
