//! Chooses the peers that are asked to dial this node, and when. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, Hash, keccak256};

use super::place::Family;
use crate::addresses;

/// A peer that may be asked, and the IPs from which it is connected.
#[derive(Clone, Debug)]
pub(crate) struct Tester {
    pub(crate) peer: Address,
    pub(crate) ips: Vec<IpAddr>,
    /// Those of them that this node dialled.
    pub(crate) dialled: Vec<IpAddr>,
}

impl Tester {
    /// The IP from which it can judge addresses of `family`: not from our LAN, and not from behind our own
    /// router, unless the whole network is private.
    pub(super) fn outside(&self, family: Family, own: &[IpAddr], allow_private: bool) -> Option<IpAddr> {
        let is_outside = |ip: &&IpAddr| allow_private || (addresses::is_global(**ip) && !own.contains(*ip));
        self.ips.iter().filter(|ip| Family::of_ip(**ip) == family).find(is_outside).copied()
    }
}

/// The times at which peers may be asked again, so that none is asked more often than it answers.
#[derive(Debug)]
pub(super) struct AskSchedule {
    interval: Duration,
    free: HashMap<Address, Instant>,
}

impl AskSchedule {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, free: HashMap::new() }
    }

    /// Its interval begins when the question arrives, which is a little later.
    pub(super) fn asked(&mut self, peer: Address, now: Instant) {
        self.wait(peer, self.interval + self.interval / 20, now);
    }

    /// It says itself when it may be asked again. Nobody puts a test off for longer than an interval.
    pub(super) fn too_soon(&mut self, peer: Address, retry_after: Duration, now: Instant) {
        self.wait(peer, retry_after.min(self.interval), now);
    }

    fn wait(&mut self, peer: Address, duration: Duration, now: Instant) {
        self.free.retain(|_, at| *at > now);
        self.free.insert(peer, now + duration);
    }

    fn free_at(&self, peer: Address, now: Instant) -> Instant {
        self.free.get(&peer).map_or(now, |at| *at)
    }

    /// Up to `count` of these peers, of distinct networks as far as there are; the moment to try again when
    /// too many of them were asked lately. `salt` makes the choice one that nobody can prepare for.
    pub(super) fn choose(
        &self,
        peers: &[(Address, IpAddr)],
        count: usize,
        salt: &Hash,
        now: Instant,
    ) -> Result<Vec<Address>, Instant> {
        let mut free: Vec<Instant> = peers.iter().map(|(peer, _)| self.free_at(*peer, now)).collect();
        free.sort_unstable();
        let count = count.min(peers.len());
        if let Some(last) = free.get(count.saturating_sub(1)).filter(|at| **at > now) {
            return Err(*last);
        }
        let mut rest: Vec<_> = peers.iter().filter(|(peer, _)| self.free_at(*peer, now) <= now).collect();
        rest.sort_by_cached_key(|(peer, _)| Reverse(keccak256(&[salt, peer.as_bytes()])));
        let mut networks = BTreeSet::new();
        let (distinct, alike): (Vec<&(Address, IpAddr)>, Vec<_>) =
            rest.into_iter().partition(|(_, ip)| networks.insert(addresses::network_of(*ip)));
        Ok(distinct.into_iter().chain(alike).take(count).map(|(peer, _)| *peer).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn peer(n: u8, ip: &str) -> (Address, IpAddr) {
        (Address::from_bytes([n; 20]), ip.parse().unwrap())
    }

    #[test]
    fn distinct_networks_come_first() {
        let peers: Vec<_> = (1..=20)
            .map(|n| peer(n, &format!("8.1.0.{n}")))
            .chain([peer(30, "8.2.0.1"), peer(31, "8.3.0.1")])
            .collect();
        for salt in 0..16 {
            let chosen = AskSchedule::new(MINUTE).choose(&peers, 3, &[salt; 32], Instant::now()).unwrap();
            assert_eq!(chosen.len(), 3);
            assert!(chosen.contains(&peers[20].0) && chosen.contains(&peers[21].0), "salt {salt}");
        }
        let chosen = |salt| AskSchedule::new(MINUTE).choose(&peers, 3, &[salt; 32], Instant::now()).unwrap();
        assert!((0..16).any(|salt| chosen(salt) != chosen(16)), "and the choice varies");
    }

    #[test]
    fn nobody_is_asked_twice_in_a_minute() {
        let peers: Vec<_> = (1..=4).map(|n| peer(n, &format!("8.{n}.0.1"))).collect();
        let now = Instant::now();
        let mut turns = AskSchedule::new(MINUTE);
        let first = turns.choose(&peers, 3, &[0; 32], now).unwrap();
        for (n, peer) in (0..).zip(&first) {
            turns.asked(*peer, now + Duration::from_secs(n));
        }
        let soon = now + Duration::from_secs(5);
        let wait = turns.choose(&peers, 3, &[0; 32], soon).unwrap_err();
        let second = now + Duration::from_secs(1);
        assert_eq!(wait, second + MINUTE + MINUTE / 20, "the fourth is free, two more are needed");
        assert_eq!(turns.choose(&peers, 3, &[0; 32], wait).unwrap().len(), 3);
    }

    #[test]
    fn a_peer_that_was_asked_too_soon_is_left_alone_as_long_as_it_says_within_reason() {
        let peers = [peer(1, "8.1.0.1")];
        let now = Instant::now();
        for (says, waits) in [(MINUTE / 2, MINUTE / 2), (MINUTE, MINUTE), (MINUTE * 1000, MINUTE)] {
            let mut turns = AskSchedule::new(MINUTE);
            turns.too_soon(peers[0].0, says, now);
            assert_eq!(turns.choose(&peers, 3, &[0; 32], now), Err(now + waits));
        }
    }

    #[test]
    fn whoever_sits_behind_the_same_router_cannot_judge() {
        let own = ["9.9.9.9".parse().unwrap()];
        let tester = |ips: &[&str]| Tester {
            peer: Address::from_bytes([1; 20]),
            ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
            dialled: Vec::new(),
        };
        let outside = |ips: &[&str], private| tester(ips).outside(Family::V4, &own, private).is_some();
        assert!(outside(&["8.8.8.8"], false));
        assert!(!outside(&["192.168.1.7"], false) && outside(&["192.168.1.7"], true));
        assert!(!outside(&["9.9.9.9"], false), "through the router's hairpin");
        assert!(!outside(&["2620:fe::1"], true), "of the other family");
    }
}
