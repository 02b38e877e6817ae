//! The places of this node as a relay, and who has them. Pure but for the clock passed in.
//!
//! The library counts reservations and circuits as well, and refuses to renew a place once all are taken, nor does it know of
//! ranges: whoever has a range of addresses has as many wallets as it likes. So its own bounds lie above these. A few ranges can
//! fill all places all the same, so some are kept for those with whom channels are open.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use libp2p::PeerId;

use crate::{RelayConfig, identity, partners::Partners};

/// The longest time between the request for a circuit and its beginning.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Of all places, and of all circuits, one in so many is for partners alone.
const PARTNERS_PART: usize = 4;
/// Of the circuits to one guest, and of those that it has not taken yet, one in so many is the most of one peer, and of one
/// range: otherwise a single host that asks for such circuits again and again would leave the guest to nobody else.
const ASKERS_PART: usize = 4;

/// Reservations and circuits under way.
#[derive(Debug)]
pub(super) struct Guests {
    config: RelayConfig,
    partners: Partners,
    reservations: HashMap<PeerId, Reservation>,
    circuits: Vec<Circuit>,
}

#[derive(Debug)]
struct Reservation {
    range: Option<IpAddr>,
    ends: Instant,
}

#[derive(Debug)]
struct Circuit {
    from: PeerId,
    to: PeerId,
    /// The peer that it leads to has taken it.
    has_begun: bool,
    range: Option<IpAddr>,
    /// As it was when it was asked for: a wallet's address takes a while to compute.
    is_of_partner: bool,
    /// Nothing is left of it then, whatever was heard of its end.
    ends: Instant,
}

impl Guests {
    /// Of a node with channels with `partners`.
    pub(super) fn new(config: RelayConfig, partners: Partners) -> Self {
        Self { config, partners, reservations: HashMap::new(), circuits: Vec::new() }
    }

    /// Takes a place for `peer`, of this address range, or renews the one that it has.
    pub(super) fn reserve(&mut self, peer: PeerId, range: Option<IpAddr>, now: Instant) -> bool {
        self.reservations.retain(|_, held| held.ends > now);
        let has_room = self.reservations.contains_key(&peer)
            || self.reservations.len() < self.config.reservations_max
                && (self.is_partner(&peer) || self.has_room_for_stranger(range));
        if has_room {
            let ends = now + self.config.reservation_max;
            self.reservations.insert(peer, Reservation { range, ends });
        }
        has_room
    }

    fn has_room_for_stranger(&self, range: Option<IpAddr>) -> bool {
        let all_max = self.config.reservations_max;
        let strangers = || self.reservations.iter().filter(|(peer, _)| !self.is_partner(peer));
        let of_range = strangers().filter(|(_, held)| range.is_some() && held.range == range);
        strangers().count() < all_max - all_max / PARTNERS_PART
            && of_range.count() < self.config.reservations_per_range_max
    }

    fn is_partner(&self, peer: &PeerId) -> bool {
        identity::wallet(peer).is_some_and(|wallet| self.partners.contains(&wallet))
    }

    /// The peer is gone, or let its place run out.
    pub(super) fn leave(&mut self, peer: &PeerId) {
        self.reservations.remove(peer);
    }

    /// Takes a place for a circuit to `to` that `from`, of this address range, asks for.
    pub(super) fn ask(&mut self, from: PeerId, to: PeerId, range: Option<IpAddr>, now: Instant) -> bool {
        self.circuits.retain(|circuit| circuit.ends > now);
        let count =
            |is_of: &dyn Fn(&Circuit) -> bool| self.circuits.iter().filter(|held| is_of(held)).count();
        let is_its = |held: &Circuit| held.from == from || range.is_some() && held.range == range;
        let (config, is_of_partner) = (&self.config, self.is_partner(&from));
        let has_room = self.circuits.len() < config.circuits_max
            && (is_of_partner || self.has_circuit_for_stranger(range))
            && count(&|held| held.from == from) < config.circuits_per_peer_max
            && count(&|held| held.to == to) < config.circuits_per_guest_max
            && count(&|held| held.to == to && !held.has_begun) < config.circuits_awaited_per_guest_max
            && count(&|held| held.to == to && is_its(held))
                < config.circuits_per_guest_max.div_ceil(ASKERS_PART)
            && count(&|held| held.to == to && !held.has_begun && is_its(held))
                < config.circuits_awaited_per_guest_max.div_ceil(ASKERS_PART);
        if has_room {
            let ends = now + BEGINS_WITHIN;
            self.circuits.push(Circuit { from, to, has_begun: false, range, is_of_partner, ends });
        }
        has_room
    }

    fn has_circuit_for_stranger(&self, range: Option<IpAddr>) -> bool {
        let circuits_max = self.config.circuits_max;
        let strangers = || self.circuits.iter().filter(|held| !held.is_of_partner);
        let of_range = strangers().filter(|held| range.is_some() && held.range == range);
        strangers().count() < circuits_max - circuits_max / PARTNERS_PART
            && of_range.count() < self.config.circuits_per_range_max
    }

    /// A circuit begins.
    pub(super) fn begin(&mut self, from: PeerId, to: PeerId, now: Instant) {
        let ends = now + self.config.circuit_max + BEGINS_WITHIN;
        if let Some(at) = self.position(from, to, false)
            && let Some(circuit) = self.circuits.get_mut(at)
        {
            (circuit.has_begun, circuit.ends) = (true, ends);
        }
    }

    /// A circuit that had begun ended, or one that had not was refused.
    pub(super) fn end(&mut self, from: PeerId, to: PeerId, had_begun: bool) {
        if let Some(at) = self.position(from, to, had_begun) {
            self.circuits.swap_remove(at);
        }
    }

    fn position(&self, from: PeerId, to: PeerId, has_begun: bool) -> Option<usize> {
        let is_it = |held: &Circuit| held.from == from && held.to == to && held.has_begun == has_begun;
        self.circuits.iter().position(is_it)
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;

    fn peer(n: u8) -> PeerId {
        identity::peer_id(&SecretKey::from_bytes(&[n; 32]).unwrap().public_key())
    }

    fn range(n: u8) -> Option<IpAddr> {
        Some([9, 9, n, 0].into())
    }

    #[test]
    fn places_are_few_and_one_range_gets_a_few_of_them() {
        let (now, config) = (Instant::now(), RelayConfig::default());
        let mut guests = Guests::new(config.clone(), Partners::default());
        let taken = (1..=100).filter(|n| guests.reserve(peer(*n), range(1), now)).count();
        assert_eq!(taken, config.reservations_per_range_max);
        let taken = (101..=200).filter(|n| guests.reserve(peer(*n), range(*n), now)).count();
        let strangers_max = config.reservations_max - config.reservations_max / PARTNERS_PART;
        assert_eq!(taken, strangers_max - config.reservations_per_range_max);
        assert!(!guests.reserve(peer(250), range(250), now));
        assert!(guests.reserve(peer(1), range(1), now), "who has a place keeps it");
        guests.leave(&peer(1));
        assert!(guests.reserve(peer(250), range(250), now));
        let later = now + config.reservation_max;
        assert!(guests.reserve(peer(251), range(251), later), "what is not renewed runs out");
        assert_eq!(guests.reservations.len(), 1);
    }

    #[test]
    fn however_many_ranges_ask_there_are_places_for_those_with_whom_channels_are_open() {
        let (now, config) = (Instant::now(), RelayConfig::default());
        let partners = Partners::default();
        let mut guests = Guests::new(config.clone(), partners.clone());
        let taken = (1..=100).filter(|n| guests.reserve(peer(*n), range(*n), now)).count();
        let kept = config.reservations_max - taken;
        assert_eq!(kept, config.reservations_max / PARTNERS_PART);
        let traders = 101..=200;
        partners.set(traders.clone().filter_map(|n| identity::wallet(&peer(n))).collect());
        // They may be in one range, as in a provider's.
        let got = traders.filter(|n| guests.reserve(peer(*n), range(1), now)).count();
        assert_eq!(got, kept, "and no more than there are");
    }

    #[test]
    fn circuits_are_few_for_all_for_a_peer_and_for_a_range() {
        let now = Instant::now();
        let config = RelayConfig {
            circuits_per_guest_max: 128,
            circuits_awaited_per_guest_max: 128,
            ..RelayConfig::default()
        };
        let mut guests = Guests::new(config.clone(), Partners::default());
        let to = peer(254);
        let of_peer = (0..100).filter(|_| guests.ask(peer(1), to, range(1), now)).count();
        assert_eq!(of_peer, config.circuits_per_peer_max);
        let of_range = (2..=100).filter(|n| guests.ask(peer(*n), to, range(1), now)).count();
        assert_eq!(of_peer + of_range, config.circuits_per_range_max);
        let others = (101..=250).filter(|n| guests.ask(peer(*n), to, range(*n), now)).count();
        let strangers_max = config.circuits_max - config.circuits_max / PARTNERS_PART;
        assert_eq!(of_peer + of_range + others, strangers_max);

        guests.begin(peer(1), to, now);
        guests.end(peer(1), to, true);
        assert!(guests.ask(peer(251), to, range(251), now), "one that ended makes room");
        guests.end(peer(251), to, false);
        assert!(guests.ask(peer(252), to, range(252), now), "and one that was refused");
        assert!(!guests.ask(peer(253), to, range(253), now));
        assert!(guests.ask(peer(253), to, range(253), now + BEGINS_WITHIN), "and those that never began");
    }

    #[test]
    fn however_many_ranges_ask_there_are_circuits_for_those_with_whom_channels_are_open() {
        let now = Instant::now();
        let config = RelayConfig {
            circuits_per_guest_max: 128,
            circuits_awaited_per_guest_max: 128,
            ..RelayConfig::default()
        };
        let partners = Partners::default();
        let mut guests = Guests::new(config.clone(), partners.clone());
        let to = peer(254);
        let taken = (1..=120).filter(|n| guests.ask(peer(*n), to, range(*n), now)).count();
        let kept = config.circuits_max - taken;
        assert_eq!(kept, config.circuits_max / PARTNERS_PART);
        let traders = 121..=200;
        partners.set(traders.clone().filter_map(|n| identity::wallet(&peer(n))).collect());
        // They may be in one range, as in a provider's.
        let got = traders.filter(|n| guests.ask(peer(*n), to, range(250), now)).count();
        assert_eq!(got, kept, "and no more than there are");
    }

    #[test]
    fn one_host_leaves_a_guest_to_others_whatever_wallets_it_asks_with() {
        let (now, config) = (Instant::now(), RelayConfig::default());
        let mut guests = Guests::new(config.clone(), Partners::default());
        let to = peer(254);
        let waiting = (1..=100).filter(|n| guests.ask(peer(*n), to, range(1), now)).count();
        assert_eq!(waiting, config.circuits_awaited_per_guest_max / ASKERS_PART);
        assert!(guests.ask(peer(101), to, range(2), now), "another host has its part");
        for n in 1..=100 {
            guests.ask(peer(n), to, range(1), now);
            guests.begin(peer(n), to, now);
        }
        let its = guests.circuits.iter().filter(|held| held.range == range(1));
        assert_eq!(its.count(), config.circuits_per_guest_max / ASKERS_PART);
        assert!(guests.ask(peer(102), to, range(2), now), "and keeps it");
    }

    #[test]
    fn circuits_to_one_guest_are_few_whoever_asks_and_fewer_wait_for_it() {
        let (now, config) = (Instant::now(), RelayConfig::default());
        let mut guests = Guests::new(config.clone(), Partners::default());
        let [to, other] = [253, 254].map(peer);
        let waiting = (1..=100).filter(|n| guests.ask(peer(*n), to, range(*n), now)).count();
        assert_eq!(waiting, config.circuits_awaited_per_guest_max);
        assert!(guests.ask(peer(200), other, range(200), now), "to others there is room");
        (1..=100).for_each(|n| guests.begin(peer(n), to, now));
        let mut begun = waiting;
        for n in 101..=199 {
            if guests.ask(peer(n), to, range(n), now) {
                guests.begin(peer(n), to, now);
                begun += 1;
            }
        }
        assert_eq!(begun, config.circuits_per_guest_max);
        assert!(guests.ask(peer(201), other, range(201), now));
        guests.end(peer(1), to, true);
        assert!(guests.ask(peer(202), to, range(202), now), "one that ended makes room");
    }
}
