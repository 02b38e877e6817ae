//! Judges this node's clock by what connected peers show. Pure.
//!
//! Nobody is asked for the time. A peer's own record that is dated ahead of this clock shows that this clock is behind;
//! a peer that refuses this node's record, because it is dated ahead of the peer's clock, shows that this one is ahead.
//! One peer may be wrong itself, or lie: of several it takes two.

use std::collections::HashMap;

use farthing_protocol::{Address, info::InfoResponse};

/// Records take a moment to arrive, and clocks that are set by the network differ by less.
const OFF_SECS_MIN: u64 = 60;
/// Beyond a year nobody cares how much it is.
const OFF_SECS_MAX: u64 = 366 * 24 * 3600;
/// As many as may be connected.
const PEERS_MAX: usize = 1024;

/// A clock that others contradict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// By how much this clock is ahead of theirs; negative when it is behind.
    pub ahead_secs: i64,
    /// Peers that show it.
    pub peers: usize,
}

/// By how much this clock is ahead of those of peers that contradict it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocks(HashMap<Address, i64>);

impl Clocks {
    /// `peer` gave its own record, which was issued then.
    pub(crate) fn dated(&mut self, peer: Address, issued_secs: u64, now_secs: u64) {
        match issued_secs.checked_sub(now_secs).filter(|behind| *behind >= OFF_SECS_MIN) {
            Some(behind) => self.note(peer, -signed(behind)),
            // A record may be hours old: the past shows nothing, but that this clock is not behind any more.
            None => self.forget_if(peer, |ahead| ahead < 0),
        }
    }

    /// `peer` did not take this node's record, which is dated so far ahead of its clock.
    pub(crate) fn refused(&mut self, peer: Address, ahead_secs: u64) {
        self.note(peer, signed(ahead_secs));
    }

    pub(crate) fn took(&mut self, peer: Address) {
        self.forget_if(peer, |ahead| ahead > 0);
    }

    /// Forgets the peers that are not connected any more.
    pub(crate) fn keep(&mut self, is_connected: impl Fn(Address) -> bool) {
        self.0.retain(|peer, _| is_connected(*peer));
    }

    pub(crate) fn says_ahead(&self, peer: Address) -> bool {
        self.0.get(&peer).is_some_and(|ahead| *ahead > 0)
    }

    /// Returns the median of what they show, when two agree that this clock is off, or one of two peers at most.
    pub(crate) fn skew(&self, connected: usize) -> Option<ClockSkew> {
        let mut ahead: Vec<i64> = self.0.values().copied().collect();
        let (fast, slow): (Vec<i64>, Vec<i64>) = ahead.iter().partition(|ahead| **ahead > 0);
        // Who contradicts the others is left out.
        ahead = if fast.len() >= slow.len() { fast } else { slow };
        if ahead.is_empty() || ahead.len() == 1 && connected > 2 {
            return None;
        }
        ahead.sort_unstable();
        Some(ClockSkew { ahead_secs: *ahead.get(ahead.len() / 2)?, peers: ahead.len() })
    }

    fn note(&mut self, peer: Address, ahead_secs: i64) {
        if self.0.len() < PEERS_MAX || self.0.contains_key(&peer) {
            self.0.insert(peer, ahead_secs);
        }
    }

    fn forget_if(&mut self, peer: Address, is_over: impl Fn(i64) -> bool) {
        if self.0.get(&peer).is_some_and(|ahead| is_over(*ahead)) {
            self.0.remove(&peer);
        }
    }
}

fn signed(secs: u64) -> i64 {
    i64::try_from(secs.min(OFF_SECS_MAX)).unwrap_or(i64::MAX)
}

/// The answer to another node that the record it gave of itself is dated ahead. Nodes of before read the seconds from its
/// words, so these stay.
pub(crate) fn refusal(ahead_secs: u64) -> InfoResponse {
    let words =
        format!("the record is dated {ahead_secs} s ahead of this node's clock; check both nodes' clocks");
    InfoResponse::Refused { words, ahead_secs: Some(ahead_secs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn peer(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_told_by_how_much_and_no_longer_than_it_is() {
        let mut clocks = Clocks::default();
        clocks.dated(peer(1), NOW + OFF_SECS_MIN - 1, NOW);
        clocks.dated(peer(1), NOW - 7200, NOW);
        assert_eq!(clocks.skew(1), None);
        clocks.dated(peer(1), NOW + OFF_SECS_MIN, NOW);
        assert_eq!(clocks.skew(1), Some(ClockSkew { ahead_secs: -60, peers: 1 }));
        clocks.took(peer(1));
        assert!(clocks.skew(1).is_some(), "behind is taken everywhere");
        clocks.dated(peer(1), NOW + 1, NOW);
        assert_eq!(clocks.skew(1), None);

        clocks.refused(peer(2), 3600);
        assert_eq!(clocks.skew(2), Some(ClockSkew { ahead_secs: 3600, peers: 1 }));
        assert!(clocks.says_ahead(peer(2)) && !clocks.says_ahead(peer(1)));
        clocks.took(peer(2));
        assert_eq!(clocks.skew(2), None);
    }

    #[test]
    fn one_of_many_peers_convinces_nobody_and_those_who_have_left_neither() {
        let mut clocks = Clocks::default();
        clocks.refused(peer(1), u64::MAX);
        assert_eq!(clocks.skew(3), None);
        clocks.refused(peer(2), 400);
        clocks.refused(peer(3), 500);
        clocks.dated(peer(4), NOW + 900, NOW);
        assert_eq!(clocks.skew(4), Some(ClockSkew { ahead_secs: 500, peers: 3 }));
        clocks.keep(|other| other == peer(4));
        assert_eq!(clocks.skew(4), None);
        assert_eq!(clocks.skew(1), Some(ClockSkew { ahead_secs: -900, peers: 1 }));
    }

    #[test]
    fn the_list_of_clocks_is_bounded() {
        let mut clocks = Clocks::default();
        for n in 0..2 * PEERS_MAX {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            clocks.refused(Address::from_bytes(bytes), 400);
        }
        assert_eq!(clocks.0.len(), PEERS_MAX);
    }
}
