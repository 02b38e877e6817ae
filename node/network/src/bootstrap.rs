//! The configured peers to begin with: when to dial which of them. Pure; never gives up.

mod state;

use std::time::{Duration, Instant};

use farthing_protocol::Address;
use libp2p::{
    Multiaddr, PeerId,
    swarm::{ConnectionId, DialError},
};

pub use self::state::{BootstrapPeer, BootstrapState};
use crate::{backoff::pause, identity};

/// The first retry comes soon, because nodes that start together miss each other by moments.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct BootstrapEntry {
    address: Multiaddr,
    /// The peer that answered there last, or the one that the address names.
    peer: Option<PeerId>,
    dialing: Option<ConnectionId>,
    failures: u32,
    due: Instant,
    state: BootstrapState,
}

/// Keeps a connection to every configured peer, as far as they let it.
#[derive(Debug)]
pub(crate) struct Bootstrap {
    own: Address,
    entries: Vec<BootstrapEntry>,
}

impl Bootstrap {
    /// An address that is named twice is one peer: each dial is noted with the entry of its address.
    pub(crate) fn new(own: Address, addresses: Vec<Multiaddr>, now: Instant) -> Self {
        let mut once: Vec<Multiaddr> = Vec::with_capacity(addresses.len());
        for address in addresses {
            if !once.contains(&address) {
                once.push(address);
            }
        }
        let entry = |address: Multiaddr| BootstrapEntry {
            peer: crate::addresses::peer(&address),
            address,
            dialing: None,
            failures: 0,
            due: now,
            state: BootstrapState::Trying,
        };
        Self { own, entries: once.into_iter().map(entry).collect() }
    }

    /// Returns the time of the next look; `None` while every entry is connected or being dialled.
    pub(crate) fn next_due(&self, is_connected: impl Fn(&PeerId) -> bool) -> Option<Instant> {
        self.entries.iter().filter(|entry| entry.is_wanted(&is_connected)).map(|entry| entry.due).min()
    }

    /// One address to dial now. Name the dial with [`Self::dialing`].
    pub(crate) fn due(&self, now: Instant, is_connected: impl Fn(&PeerId) -> bool) -> Option<Multiaddr> {
        let due = |entry: &&BootstrapEntry| entry.is_wanted(&is_connected) && entry.due <= now;
        self.entries.iter().find(due).map(|entry| entry.address.clone())
    }

    pub(crate) fn dialing(&mut self, address: &Multiaddr, connection: ConnectionId) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.address == *address) {
            entry.dialing = Some(connection);
        }
    }

    /// This node listens there itself: it is not tried again.
    pub(crate) fn is_own(&mut self, address: &Multiaddr) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.address == *address) {
            entry.state = BootstrapState::OwnWallet;
        }
    }

    pub(crate) fn connected(&mut self, connection: ConnectionId, peer: PeerId) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.dialing == Some(connection)) {
            entry.dialing = None;
            entry.peer = Some(peer);
        }
    }

    /// The peer proved to be of our network: its next loss starts from a short delay again.
    pub(crate) fn confirmed(&mut self, peer: &PeerId) {
        for entry in self.of_peer(peer) {
            entry.failures = 0;
            if let Some(wallet) = identity::wallet(peer) {
                entry.state = BootstrapState::Connected { wallet };
            }
        }
    }

    /// The peer is not of our network, and says so by naming `network`, if any.
    pub(crate) fn is_foreign(&mut self, peer: &PeerId, network: Option<&str>) {
        for entry in self.of_peer(peer) {
            entry.state = BootstrapState::OtherNetwork { name: network.map(str::to_owned) };
        }
    }

    /// A dial failed. An address that turned out to be this node itself is not tried again. `peer` is who answered:
    /// one to whom there are connections enough is no less there for it, and need not be dialled while they last.
    pub(crate) fn failed(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        error: &DialError,
        now: Instant,
    ) {
        let own = self.own;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.dialing == Some(connection)) {
            entry.dialing = None;
            if matches!(error, DialError::Denied { .. }) {
                entry.peer = peer.or(entry.peer);
            }
            entry.retry(own, now);
            let expected = crate::addresses::peer(&entry.address).as_ref().and_then(identity::wallet);
            entry.state = BootstrapState::of(error, expected).unwrap_or_else(|| entry.state.clone());
        }
    }

    /// The last connection to `peer` closed.
    pub(crate) fn lost(&mut self, peer: &PeerId, now: Instant) {
        let own = self.own;
        for entry in self.of_peer(peer) {
            entry.retry(own, now);
            if matches!(entry.state, BootstrapState::Trying | BootstrapState::Connected { .. }) {
                entry.state = BootstrapState::Closed;
            }
        }
    }

    /// Every configured address, and what came of it last.
    pub(crate) fn report(&self) -> Vec<BootstrapPeer> {
        let peer = |entry: &BootstrapEntry| BootstrapPeer {
            address: entry.address.to_string(),
            state: entry.state.clone(),
        };
        self.entries.iter().map(peer).collect()
    }

    fn of_peer(&mut self, peer: &PeerId) -> impl Iterator<Item = &mut BootstrapEntry> {
        self.entries.iter_mut().filter(move |entry| entry.peer.as_ref() == Some(peer))
    }
}

impl BootstrapEntry {
    fn is_wanted(&self, is_connected: impl Fn(&PeerId) -> bool) -> bool {
        self.state != BootstrapState::OwnWallet
            && self.dialing.is_none()
            && !self.peer.as_ref().is_some_and(is_connected)
    }

    fn retry(&mut self, own: Address, now: Instant) {
        self.due = now + pause(own, self.failures, RETRY_FIRST, RETRY_MAX);
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use libp2p::swarm::ConnectionDenied;

    use super::*;

    const OWN: Address = Address::from_bytes([1; 20]);
    const NOBODY: fn(&PeerId) -> bool = |_| false;

    #[test]
    fn a_silent_peer_is_tried_for_ever_and_ever_more_slowly() {
        let mut now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone()], now);
        for n in 0..1000 {
            assert_eq!(bootstrap.due(now, NOBODY), Some(address.clone()), "attempt {n}");
            let connection = ConnectionId::new_unchecked(n);
            bootstrap.dialing(&address, connection);
            assert_eq!(bootstrap.due(now, NOBODY), None, "one dial at a time");
            bootstrap.failed(connection, None, &DialError::NoAddresses, now);
            let next = bootstrap.next_due(NOBODY).unwrap();
            assert!(next - now <= RETRY_MAX && next - now >= RETRY_FIRST / 2);
            now = next;
        }
    }

    #[test]
    fn an_address_named_twice_is_dialled_once() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone(), address.clone()], now);
        bootstrap.dialing(&address, ConnectionId::new_unchecked(1));
        assert_eq!(bootstrap.due(now, NOBODY), None);
    }

    #[test]
    fn a_connected_peer_is_left_alone_until_it_is_lost() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone()], now);
        let (connection, peer) = (ConnectionId::new_unchecked(1), PeerId::random());
        bootstrap.dialing(&address, connection);
        bootstrap.connected(connection, peer);
        let later = now + Duration::from_secs(3600);
        assert_eq!(bootstrap.due(later, |p| *p == peer), None);
        bootstrap.lost(&peer, later);
        assert_eq!(bootstrap.due(later + RETRY_MAX, NOBODY), Some(address));
    }

    #[test]
    fn what_came_of_an_address_is_known_until_something_else_does() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone()], now);
        let key = farthing_protocol::SecretKey::from_bytes(&[7; 32]).unwrap();
        let (connection, peer) = (ConnectionId::new_unchecked(1), identity::peer_id(&key.public_key()));
        let state = |bootstrap: &Bootstrap| bootstrap.report()[0].state.clone();
        assert_eq!(state(&bootstrap), BootstrapState::Trying);
        bootstrap.dialing(&address, connection);
        bootstrap.connected(connection, peer);
        assert_eq!(state(&bootstrap), BootstrapState::Trying, "who it is has to be seen");
        bootstrap.confirmed(&peer);
        assert_eq!(state(&bootstrap), BootstrapState::Connected { wallet: key.address() });
        bootstrap.lost(&peer, now);
        assert_eq!(state(&bootstrap), BootstrapState::Closed);
        bootstrap.is_foreign(&peer, Some("other"));
        bootstrap.lost(&peer, now);
        assert_eq!(state(&bootstrap), BootstrapState::OtherNetwork { name: Some("other".to_owned()) });
    }

    #[test]
    fn a_second_address_of_a_peer_that_is_connected_is_left_alone_too() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone()], now);
        let (connection, peer) = (ConnectionId::new_unchecked(1), PeerId::random());
        bootstrap.dialing(&address, connection);
        let enough = ConnectionDenied::new(std::io::Error::other("two connections are enough"));
        bootstrap.failed(connection, Some(peer), &DialError::Denied { cause: enough }, now);
        let later = now + RETRY_MAX;
        assert_eq!(bootstrap.due(later, |p| *p == peer), None);
        assert_eq!(bootstrap.due(later, NOBODY), Some(address), "until it is lost");
    }

    #[test]
    fn its_own_address_is_dialled_no_more() {
        let now = Instant::now();
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![address.clone()], now);
        bootstrap.dialing(&address, ConnectionId::new_unchecked(1));
        let own = DialError::LocalPeerId { address };
        bootstrap.failed(ConnectionId::new_unchecked(1), None, &own, now);
        assert_eq!(bootstrap.next_due(NOBODY), None);
        assert_eq!(bootstrap.report()[0].state, BootstrapState::OwnWallet, "and is told of");

        let listened_on: Multiaddr = "/ip4/127.0.0.1/tcp/2".parse().unwrap();
        let mut bootstrap = Bootstrap::new(OWN, vec![listened_on.clone()], now);
        bootstrap.is_own(&listened_on);
        assert_eq!(bootstrap.due(now + RETRY_MAX, NOBODY), None);
        assert_eq!(bootstrap.report()[0].state, BootstrapState::OwnWallet);
    }
}
