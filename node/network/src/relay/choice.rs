//! The choice of relays that this node is reached through. Pure but for the clock and the randomness passed in.
//!
//! Two that lie apart, so that one network or provider that fails does not take both. One that does not answer, or through
//! which this node does not reach itself, is left alone for a while, ever longer. One that has brought no partner for hours
//! makes room for another: it may know this node's own tests by where they come from, and drop everybody else.
//!
//! Invariant: an address through a relay is published only after a connection came in through it, under a key that this
//! node had made for that.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{Hash, keccak256};
use libp2p::{Multiaddr, PeerId, core::transport::ListenerId};

use crate::{
    ReachConfig, RelayConfig, RelayUse,
    addresses::{self, circuit},
    identity,
    partners::Partners,
};

/// Relays that are used at once.
const WANTED: usize = 2;
/// The longest wait for the answer to a request for a place, and for a test to arrive.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const ARRIVAL_WITHIN: Duration = Duration::from_secs(15);
/// The part of the time to the next test of an address in doubt for which a relay is left alone after its first failure, and
/// twice as long after each further one. The first may be this node's own, which has just started, and few relays may be known.
const FIRST_PAUSE_PART: u32 = 8;
/// The longest time that a relay which failed is left alone.
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// Relays whose failures are remembered.
const FAILED_MAX: usize = 256;

/// A peer that offers places, and where this node dialled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayCandidate {
    pub(crate) peer: PeerId,
    pub(crate) address: Multiaddr,
}

impl RelayCandidate {
    /// The address at which this node is reached through it.
    pub(crate) fn circuit(&self) -> Multiaddr {
        circuit::through(self.peer, &self.address)
    }

    /// The network that it lies in: a /16 of IPv4, a /48 of IPv6. Nothing in private ranges, where everybody is a neighbour.
    fn network(&self) -> Option<IpAddr> {
        let ip = addresses::ip(&self.address).filter(|ip| addresses::is_global(*ip))?;
        Some(match ip.to_canonical() {
            ip @ IpAddr::V4(_) => addresses::network_of(ip),
            ip @ IpAddr::V6(_) => farthing_bounds::range(ip),
        })
    }

    fn is_apart_from(&self, other: &Self) -> bool {
        let network = self.network();
        self.peer != other.peer && (network.is_none() || network != other.network())
    }
}

/// A relay at which this node has or wants a place.
#[derive(Debug)]
struct HeldRelay {
    relay: RelayCandidate,
    listener: ListenerId,
    /// The end of the wait for its answer; none once it gave a place.
    answer_due: Option<Instant>,
    test: Option<CircuitTest>,
    test_due: Instant,
    /// A test arrived.
    works: bool,
    /// The time since which it has brought nobody who is surely another: a partner, whose channel cost gas.
    unproven_since: Instant,
}

/// A connection of this node to itself that is under way.
#[derive(Debug)]
struct CircuitTest {
    key: PeerId,
    ends: Instant,
}

#[derive(Debug)]
struct RelayFailure {
    count: u32,
    until: Instant,
}

/// The relays in use, and those that failed.
#[derive(Debug)]
pub(crate) struct Relays {
    test_interval: Duration,
    retry: Duration,
    unproven_max: Duration,
    partners: Partners,
    held: Vec<HeldRelay>,
    failed: HashMap<PeerId, RelayFailure>,
    /// True while relays are wanted.
    seeks: bool,
}

impl Relays {
    pub(crate) fn new(reach: &ReachConfig, relay: &RelayConfig, partners: Partners) -> Self {
        Self {
            test_interval: reach.interval,
            retry: reach.retry,
            unproven_max: relay.unproven_max,
            partners,
            held: Vec::new(),
            failed: HashMap::new(),
            seeks: false,
        }
    }

    /// Chooses a relay to ask for a place, as `salt` has it, if one more is wanted.
    pub(crate) fn choose(
        &mut self,
        candidates: Vec<RelayCandidate>,
        salt: &Hash,
        now: Instant,
    ) -> Option<RelayCandidate> {
        self.seeks = true;
        if self.held.len() >= WANTED {
            return None;
        }
        let is_free =
            |one: &RelayCandidate| self.failed.get(&one.peer).is_none_or(|failed| failed.until <= now);
        let is_apart = |one: &RelayCandidate| self.held.iter().all(|held| one.is_apart_from(&held.relay));
        let usable = candidates.into_iter().filter(|one| is_free(one) && is_apart(one));
        // One that never failed goes first.
        usable.min_by_key(|one| {
            let failures = self.failed.get(&one.peer).map_or(0, |failed| failed.count);
            (failures, keccak256(&[salt, &one.peer.to_bytes()]))
        })
    }

    /// A place at `relay` is being asked for, by this listener.
    pub(crate) fn asked(&mut self, relay: RelayCandidate, listener: ListenerId, now: Instant) {
        let answer_due = Some(now + ANSWER_WITHIN);
        let (test, test_due, unproven_since) = (None, now, now);
        self.held.push(HeldRelay {
            relay,
            listener,
            answer_due,
            test,
            test_due,
            works: false,
            unproven_since,
        });
    }

    /// The relay gave a place, or goes on giving it.
    pub(crate) fn given(&mut self, peer: &PeerId, now: Instant) {
        if let Some(held) = self.held.iter_mut().find(|held| held.relay.peer == *peer)
            && held.answer_due.take().is_some()
        {
            held.test_due = now;
        }
    }

    pub(crate) fn to_test(&self, now: Instant) -> Vec<RelayCandidate> {
        let is_due =
            |held: &&HeldRelay| held.answer_due.is_none() && held.test.is_none() && held.test_due <= now;
        self.held.iter().filter(is_due).map(|held| held.relay.clone()).collect()
    }

    /// A connection through `peer` to this node itself is being made under `key`.
    pub(crate) fn tested(&mut self, peer: &PeerId, key: PeerId, now: Instant) {
        if let Some(held) = self.held.iter_mut().find(|held| held.relay.peer == *peer) {
            held.test = Some(CircuitTest { key, ends: now + ARRIVAL_WITHIN });
        }
    }

    /// The keys under which this node may come to itself.
    pub(crate) fn expected(&self) -> impl Iterator<Item = PeerId> {
        self.held.iter().filter_map(|held| held.test.as_ref().map(|test| test.key))
    }

    /// Somebody came in under this key along `way`. True when it was a test; then it has done what it was for.
    pub(crate) fn arrived(&mut self, key: &PeerId, way: &Multiaddr, now: Instant) -> bool {
        let is_test = |held: &HeldRelay| held.test.as_ref().is_some_and(|test| test.key == *key);
        let Some(held) = self.held.iter_mut().find(|held| is_test(held)) else { return false };
        // Nobody else has the key, and it was taken to this relay alone.
        if circuit::is_circuit(way) {
            held.works = true;
            held.test = None;
            held.test_due = now + self.test_interval;
            self.failed.remove(&held.relay.peer);
        }
        true
    }

    /// Somebody else came in along `way`.
    pub(crate) fn brought(&mut self, peer: &PeerId, way: &Multiaddr, now: Instant) {
        let Some(relay) = circuit::relay(way) else { return };
        let is_partner = identity::wallet(peer).is_some_and(|wallet| self.partners.contains(&wallet));
        if let Some(held) = self.held.iter_mut().find(|held| is_partner && held.relay.peer == relay) {
            held.unproven_since = now;
        }
    }

    /// Gives up the relay that has brought no partner for longest, if that is too long, both work and another can be asked.
    pub(crate) fn leave_unproven(
        &mut self,
        candidates: &[RelayCandidate],
        now: Instant,
    ) -> Option<(RelayCandidate, ListenerId)> {
        let (at, left) = self.held.iter().enumerate().min_by_key(|(_, held)| held.unproven_since)?;
        let is_due = left.unproven_since + self.unproven_max <= now;
        if !is_due || self.held.len() < WANTED || self.held.iter().any(|held| !held.works) {
            return None;
        }
        let is_unused = |one: &RelayCandidate| self.held.iter().all(|held| held.relay.peer != one.peer);
        let is_well =
            |one: &RelayCandidate| self.failed.get(&one.peer).is_none_or(|failed| failed.until <= now);
        let is_apart = |one: &RelayCandidate| {
            let mut staying = self.held.iter().filter(|held| held.listener != left.listener);
            staying.all(|held| one.is_apart_from(&held.relay))
        };
        if !candidates.iter().any(|one| is_unused(one) && is_well(one) && is_apart(one)) {
            return None;
        }
        let left = self.held.remove(at);
        // Not a failure: it is asked again when there is nobody else.
        let until = now + self.retry;
        self.failure_of(left.relay.peer, now).until = until;
        Some((left.relay, left.listener))
    }

    /// The listener ended: the relay is gone, or gives no place. Returns the relay, if it was one.
    pub(crate) fn ended(&mut self, listener: ListenerId, now: Instant) -> Option<RelayCandidate> {
        let at = self.held.iter().position(|held| held.listener == listener)?;
        let relay = self.held.remove(at).relay;
        self.note_failure(relay.peer, now);
        Some(relay)
    }

    /// Drops the relays that did not answer, or through which a test did not arrive.
    pub(crate) fn drop_overdue(&mut self, now: Instant) -> Vec<(RelayCandidate, ListenerId)> {
        let is_overdue = |held: &HeldRelay| {
            let test_ends = held.test.as_ref().map(|test| test.ends);
            [held.answer_due, test_ends].into_iter().flatten().any(|due| due <= now)
        };
        let (overdue, kept): (Vec<HeldRelay>, Vec<HeldRelay>) = self.held.drain(..).partition(is_overdue);
        self.held = kept;
        overdue.iter().for_each(|held| self.note_failure(held.relay.peer, now));
        overdue.into_iter().map(|held| (held.relay, held.listener)).collect()
    }

    /// None is wanted any more.
    pub(crate) fn drop_all(&mut self) -> Vec<ListenerId> {
        self.seeks = false;
        self.held.drain(..).map(|held| held.listener).collect()
    }

    fn note_failure(&mut self, peer: PeerId, now: Instant) {
        let first_pause = self.retry / FIRST_PAUSE_PART;
        let failed = self.failure_of(peer, now);
        let pause = first_pause.saturating_mul(1 << failed.count.min(16));
        failed.count = failed.count.saturating_add(1);
        failed.until = now + pause.min(PAUSE_MAX);
    }

    /// The note on a relay that is left alone.
    fn failure_of(&mut self, peer: PeerId, now: Instant) -> &mut RelayFailure {
        if self.failed.len() >= FAILED_MAX && !self.failed.contains_key(&peer) {
            self.failed.retain(|_, failed| failed.until > now);
            if self.failed.len() >= FAILED_MAX {
                self.failed.clear();
            }
        }
        self.failed.entry(peer).or_insert(RelayFailure { count: 0, until: now })
    }

    /// The addresses under which this node was reached through relays.
    pub(crate) fn published(&self) -> Vec<Multiaddr> {
        self.held.iter().filter(|held| held.works).map(|held| held.relay.circuit()).collect()
    }

    /// A report on them.
    pub(crate) fn report(&self) -> RelayUse {
        let wallets = self.held.iter().filter(|held| held.works);
        RelayUse {
            is_sought: self.seeks,
            through: wallets.filter_map(|held| identity::wallet(&held.relay.peer)).collect(),
            asked: self.held.iter().filter(|held| !held.works).count(),
            failed: self.failed.values().filter(|failed| failed.count > 0).count(),
        }
    }
}

#[cfg(test)]
mod tests;
