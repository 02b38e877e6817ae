//! A limit on how often this node dials others back, so that it serves nobody for scanning or flooding. Pure.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::Address;

use farthing_bounds::{range, subscriber};

use crate::addresses;

/// Requests served in one interval (a minute): 8 dials each, so about 8 a second at the very most.
const REQUESTS_MAX: usize = 60;
/// Of these, the part of one address range: whoever has one of IPv6 has thousands of addresses.
const RANGE_MAX: usize = REQUESTS_MAX / 4;

/// Remembers whom it let ask.
#[derive(Debug)]
pub(super) struct Limiter {
    interval: Duration,
    peers: HashMap<Address, Instant>,
    /// Wallets cost nothing, addresses do: one request per public IP (IPv6: one /64).
    ips: HashMap<IpAddr, Instant>,
}

impl Limiter {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, peers: HashMap::new(), ips: HashMap::new() }
    }

    /// Lets `peer`, connected from `ips`, ask once in an interval. The error is how long to wait.
    pub(super) fn admit(&mut self, peer: Address, ips: &[IpAddr], now: Instant) -> Result<(), Duration> {
        let interval = self.interval;
        let is_recent = |at: &Instant| now.duration_since(*at) < interval;
        self.peers.retain(|_, at| is_recent(at));
        self.ips.retain(|_, at| is_recent(at));
        let public: Vec<IpAddr> =
            ips.iter().filter(|ip| addresses::is_global(**ip)).map(|ip| subscriber(*ip)).collect();
        let asked = self.peers.get(&peer).into_iter().chain(public.iter().filter_map(|ip| self.ips.get(ip)));
        let full = (self.peers.len() >= REQUESTS_MAX).then(|| self.peers.values().min()).flatten();
        let crowded = public.iter().filter_map(|ip| self.crowd_of(range(*ip)));
        if let Some(last) = asked.chain(full).chain(crowded).max() {
            return Err((*last + interval).duration_since(now));
        }
        self.peers.insert(peer, now);
        self.ips.extend(public.into_iter().map(|ip| (ip, now)));
        Ok(())
    }

    /// The time of the first request of this address range, if it has its part.
    fn crowd_of(&self, of: IpAddr) -> Option<&Instant> {
        let crowd = || self.ips.iter().filter(|(ip, _)| range(**ip) == of).map(|(_, at)| at);
        if crowd().count() >= RANGE_MAX { crowd().min() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn peer(n: u8) -> Address {
        Address::from_bytes([n; 20])
    }

    #[test]
    fn a_peer_is_served_once_a_minute() {
        let mut limiter = Limiter::new(MINUTE);
        let start = Instant::now();
        let ip = ["10.0.0.1".parse().unwrap()];
        assert_eq!(limiter.admit(peer(1), &ip, start), Ok(()));
        assert_eq!(limiter.admit(peer(1), &ip, start + MINUTE / 2), Err(MINUTE / 2));
        assert_eq!(limiter.admit(peer(2), &ip, start), Ok(()), "another peer of a private network");
        assert_eq!(limiter.admit(peer(1), &ip, start + MINUTE), Ok(()));
    }

    #[test]
    fn a_new_wallet_at_the_same_public_address_waits_as_well() {
        let mut limiter = Limiter::new(MINUTE);
        let start = Instant::now();
        let at = |ip: &str| [ip.parse::<IpAddr>().unwrap()];
        assert_eq!(limiter.admit(peer(1), &at("9.9.9.9"), start), Ok(()));
        assert!(limiter.admit(peer(2), &at("9.9.9.9"), start).is_err());
        assert_eq!(limiter.admit(peer(2), &at("9.9.9.10"), start), Ok(()));
        assert_eq!(limiter.admit(peer(3), &at("2620:fe::1"), start), Ok(()));
        assert!(limiter.admit(peer(4), &at("2620:fe::2"), start).is_err(), "the same subscriber");
    }

    #[test]
    fn all_together_are_bounded() {
        let mut limiter = Limiter::new(MINUTE);
        let start = Instant::now();
        let admitted = (0..=255).filter(|n| limiter.admit(peer(*n), &[], start).is_ok()).count();
        assert_eq!(admitted, REQUESTS_MAX);
        assert_eq!(limiter.peers.len(), REQUESTS_MAX);
        assert_eq!(limiter.admit(peer(200), &[], start + MINUTE), Ok(()));
    }

    #[test]
    fn one_address_range_leaves_others_most_of_the_requests() {
        let start = Instant::now();
        let mut limiter = Limiter::new(MINUTE);
        for n in 0..u8::try_from(RANGE_MAX).unwrap() {
            let ip = format!("2620:fe:0:{n:x}::1").parse().unwrap();
            assert_eq!(limiter.admit(peer(n), &[ip], start), Ok(()));
        }
        let again = ["2620:fe:0:ff::1".parse().unwrap()];
        assert_eq!(limiter.admit(peer(100), &again, start + MINUTE / 2), Err(MINUTE / 2));
        assert_eq!(
            limiter.admit(peer(101), &["2620:fe:1::1".parse().unwrap()], start),
            Ok(()),
            "another range"
        );
        assert_eq!(limiter.admit(peer(100), &again, start + MINUTE), Ok(()));
    }
}
