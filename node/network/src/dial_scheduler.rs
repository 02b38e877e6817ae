//! Whom to dial next, of all who are known, so that a node is never alone for long. Pure; never gives up.
//!
//! A node wants eight connections into distinct networks, because whoever owns all of its neighbours decides
//! what it hears. Configured peers are kept by [`crate::bootstrap`]; these are the others.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, keccak256};
use libp2p::PeerId;

/// Peers that a node keeps connected of its own accord, and the distinct networks among them.
const COMPANY: usize = 8;
/// Connections beyond which distinct networks are not sought any more.
const COMPANY_MAX: usize = 16;
/// Dials at a time by a node that has nobody: most of an old book may be gone.
const DIALS_WHEN_ALONE: usize = 4;
/// Until the same peer is tried again; doubling.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// The same for a node that has nobody: the fault may have been its own line.
const RETRY_ALONE_MAX: Duration = Duration::from_secs(15);
/// Peers whose tries are remembered: more than can be dialled until the first may be tried again.
const TRIES_MAX: usize = 12_000;

/// Somebody who could be dialled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DialCandidate {
    pub(crate) peer: PeerId,
    /// The network of its best address; nothing when that is private.
    pub(crate) network: Option<IpAddr>,
    /// Failures of its best address since the last success, and all successes.
    pub(crate) failures: u32,
    pub(crate) successes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Try {
    at: Instant,
    times: u32,
}

/// Remembers who was tried in vain.
#[derive(Debug)]
pub(crate) struct DialScheduler {
    own: Address,
    tries: HashMap<PeerId, Try>,
}

impl DialScheduler {
    pub(crate) fn new(own: Address) -> Self {
        Self { own, tries: HashMap::new() }
    }

    /// Returns the number of dials to make now, given the networks of those who are connected.
    pub(crate) fn wanted(connected: &[Option<IpAddr>]) -> usize {
        // Whoever has a private address counts as a network of its own: there is nothing better to be had.
        let private = connected.iter().filter(|network| network.is_none()).count();
        let networks = private + connected.iter().flatten().collect::<HashSet<_>>().len();
        match connected.len() {
            0 => DIALS_WHEN_ALONE,
            n => usize::from(n < COMPANY_MAX && networks < COMPANY),
        }
    }

    /// The best of those that are due. Once there are enough, only networks that are not yet among
    /// it are worth while.
    pub(crate) fn choose(
        &self,
        connected: &[Option<IpAddr>],
        candidates: impl Iterator<Item = DialCandidate>,
        now: Instant,
    ) -> Option<PeerId> {
        let is_new = |network: Option<IpAddr>| network.is_none() || !connected.contains(&network);
        let retry_max = if connected.is_empty() { RETRY_ALONE_MAX } else { RETRY_MAX };
        candidates
            .filter(|candidate| is_new(candidate.network) || connected.len() < COMPANY)
            .filter(|candidate| self.is_due(&candidate.peer, retry_max, now))
            .min_by_key(|candidate| {
                let times = self.tries.get(&candidate.peer).map_or(0, |tried| tried.times);
                let lot = keccak256(&[self.own.as_bytes(), &candidate.peer.to_bytes()]);
                let history = (candidate.failures, std::cmp::Reverse(candidate.successes));
                (times, !is_new(candidate.network), history, lot)
            })
            .map(|candidate| candidate.peer)
    }

    /// `peer` is being dialled.
    pub(crate) fn tried(&mut self, peer: PeerId, now: Instant) {
        if self.tries.len() >= TRIES_MAX && !self.tries.contains_key(&peer) {
            self.tries.retain(|_, tried| now.duration_since(tried.at) < RETRY_MAX);
        }
        if self.tries.len() < TRIES_MAX || self.tries.contains_key(&peer) {
            let tried = self.tries.entry(peer).or_insert(Try { at: now, times: 0 });
            *tried = Try { at: now, times: tried.times.saturating_add(1) };
        }
    }

    /// `peer` is connected and of our network.
    pub(crate) fn met(&mut self, peer: &PeerId) {
        self.tries.remove(peer);
    }

    fn is_due(&self, peer: &PeerId, retry_max: Duration, now: Instant) -> bool {
        self.tries.get(peer).is_none_or(|tried| {
            let wait = RETRY_FIRST.saturating_mul(1 << (tried.times - 1).min(16)).min(retry_max);
            // Up to a half more, and different for every node, so that nobody is met by all at once.
            let lot = keccak256(&[self.own.as_bytes(), &peer.to_bytes(), &tried.times.to_be_bytes()]);
            now.duration_since(tried.at) >= wait + wait.mul_f64(f64::from(lot[0]) / 510.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Address = Address::from_bytes([1; 20]);

    fn candidate(network: u8, failures: u32) -> DialCandidate {
        DialCandidate {
            peer: PeerId::random(),
            network: Some([9, network, 0, 0].into()),
            failures,
            successes: 1,
        }
    }

    fn networks(names: &[u8]) -> Vec<Option<IpAddr>> {
        names.iter().map(|name| Some([9, *name, 0, 0].into())).collect()
    }

    #[test]
    fn eight_distinct_networks_are_enough() {
        for (connected, wanted) in [
            (networks(&[]), DIALS_WHEN_ALONE),
            (networks(&[1]), 1),
            (networks(&[1, 2, 3, 4, 5, 6, 7]), 1),
            (networks(&[1, 2, 3, 4, 5, 6, 7, 8]), 0),
            (networks(&[1; 8]), 1),
            (networks(&[1; COMPANY_MAX - 1]), 1),
            (networks(&[1; COMPANY_MAX]), 0),
            (vec![None; 7], 1),
            (vec![None; 8], 0),
        ] {
            assert_eq!(DialScheduler::wanted(&connected), wanted, "{connected:?}");
        }
    }

    #[test]
    fn another_network_comes_before_a_better_history() {
        let scheduler = DialScheduler::new(OWN);
        let (same, other, broken) = (candidate(1, 0), candidate(2, 3), candidate(2, 9));
        let now = Instant::now();
        let choose = |connected: &[u8], candidates: &[DialCandidate]| {
            scheduler.choose(&networks(connected), candidates.iter().copied(), now)
        };
        assert_eq!(choose(&[], &[broken, other, same]), Some(same.peer));
        assert_eq!(choose(&[1], &[broken, same, other]), Some(other.peer));
        assert_eq!(choose(&[1, 2], &[broken, other, same]), Some(same.peer), "better than nobody");
        assert_eq!(choose(&[1; 8], &[same]), None, "and not worth while with enough");
    }

    #[test]
    fn a_silent_peer_is_tried_for_ever_ever_more_slowly_and_never_in_front_of_others() {
        let mut scheduler = DialScheduler::new(OWN);
        let (silent, other) = (candidate(1, 0), candidate(2, 5));
        let mut now = Instant::now();
        for n in 0..100 {
            scheduler.tried(silent.peer, now);
            assert_eq!(scheduler.choose(&networks(&[3]), [silent].into_iter(), now), None, "{n}");
            now += RETRY_MAX * 2;
            assert_eq!(
                scheduler.choose(&networks(&[3]), [silent].into_iter(), now),
                Some(silent.peer),
                "{n}"
            );
        }
        assert_eq!(scheduler.choose(&networks(&[3]), [silent, other].into_iter(), now), Some(other.peer));
    }

    #[test]
    fn whoever_has_nobody_tries_everybody_soon_again() {
        let mut scheduler = DialScheduler::new(OWN);
        let silent = candidate(1, 0);
        let mut now = Instant::now();
        for _ in 0..20 {
            scheduler.tried(silent.peer, now);
            now += RETRY_ALONE_MAX * 2;
            assert_eq!(scheduler.choose(&[], [silent].into_iter(), now), Some(silent.peer));
        }
        scheduler.met(&silent.peer);
        assert!(scheduler.tries.is_empty());
    }
}
