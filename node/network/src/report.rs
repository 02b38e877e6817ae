//! What stream tasks tell the swarm's task about peers, and when that gets a peer blocked.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use farthing_protocol::Address;
use tokio::sync::mpsc;

/// Five of these in ten minutes are no accident.
const STRIKES_MAX: usize = 5;
const STRIKES_WINDOW: Duration = Duration::from_secs(600);
/// How long a peer stays blocked.
pub(crate) const BLOCK_DURATION: Duration = Duration::from_secs(600);
/// Peers with strikes that are remembered.
const STRUCK_PEERS_MAX: usize = 1024;
/// Reports waiting for the swarm's task; more are dropped, a flood needs no exact count.
pub(crate) const REPORTS_MAX: usize = 64;

/// What a well-behaved peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    Malformed,
    TooLarge,
    BadSignature,
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

/// Recent strikes by peer.
#[derive(Debug, Default)]
pub(crate) struct Strikes(HashMap<Address, VecDeque<Instant>>);

impl Strikes {
    /// Notes one strike; true when it is one too many and the peer is to be blocked.
    pub(crate) fn note(&mut self, peer: Address, now: Instant) -> bool {
        let recent = |at: &Instant| now.duration_since(*at) < STRIKES_WINDOW;
        if self.0.len() >= STRUCK_PEERS_MAX && !self.0.contains_key(&peer) {
            self.0.retain(|_, strikes| strikes.back().is_some_and(recent));
            if self.0.len() >= STRUCK_PEERS_MAX {
                return false;
            }
        }
        let strikes = self.0.entry(peer).or_default();
        strikes.retain(recent);
        strikes.push_back(now);
        let blocked = strikes.len() >= STRIKES_MAX;
        if blocked {
            self.0.remove(&peer);
        }
        blocked
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
            assert!(!strikes.note(PEER, start + Duration::from_secs(n)));
        }
        assert!(strikes.note(PEER, start + Duration::from_secs(599)));
        assert!(!strikes.note(PEER, start + Duration::from_secs(600)), "and counting starts again");
    }

    #[test]
    fn old_strikes_are_forgotten() {
        let mut strikes = Strikes::default();
        let start = Instant::now();
        for n in 0..20 {
            assert!(!strikes.note(PEER, start + Duration::from_secs(n * 150)), "strike {n}");
        }
    }
}
