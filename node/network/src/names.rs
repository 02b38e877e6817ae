//! Addresses of names: the addresses behind the names that this node dialled, and what identify tells peers of them.
//!
//! A node can only learn its own public address from those who reached it. The library's identify tells a peer the
//! address under which it was dialled; where that is a name, the peer learns nothing that it could test or publish.
//! So whoever follows a name remembers what it led to, and tells that.

use std::{collections::VecDeque, sync::Arc};

use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    identify,
    swarm::{ConnectionDenied, ConnectionId, NetworkBehaviour, THandler},
};
use parking_lot::Mutex;

use crate::{addresses, forward::forward};

/// As many as there are connections; the oldest is forgotten first.
const REMEMBERED_MAX: usize = 256;

/// The addresses that names led to, the newest last. A cheap handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Led(Arc<Mutex<VecDeque<Way>>>);

#[derive(Debug)]
struct Way {
    peer: PeerId,
    named: Multiaddr,
    reached: Multiaddr,
}

impl Led {
    /// `peer` was reached at `reached` by following `named`. Addresses without a name need no remembering.
    pub(crate) fn note(&self, peer: PeerId, named: &Multiaddr, reached: &Multiaddr) {
        if addresses::ip(named).is_some() {
            return;
        }
        let named = addresses::without_peer(named);
        let mut ways = self.0.lock();
        ways.retain(|way| way.peer != peer || way.named != named);
        if ways.len() >= REMEMBERED_MAX {
            ways.pop_front();
        }
        ways.push_back(Way { peer, named, reached: addresses::without_peer(reached) });
    }

    /// Returns the real address of `peer`, which was dialled at `address`: that address, or what its name led to.
    pub(crate) fn reached(&self, peer: &PeerId, address: &Multiaddr) -> Multiaddr {
        if addresses::ip(address).is_none() {
            let named = addresses::without_peer(address);
            let ways = self.0.lock();
            if let Some(way) = ways.iter().find(|way| way.peer == *peer && way.named == named) {
                return way.reached.clone();
            }
        }
        address.clone()
    }
}

/// The library's identify, which tells a peer that was dialled by name where it was found.
pub(crate) struct IdentifyBehaviour {
    inner: identify::Behaviour,
    led: Led,
}

impl IdentifyBehaviour {
    pub(crate) fn new(config: identify::Config, led: Led) -> Self {
        Self { inner: identify::Behaviour::new(config), led }
    }

    /// Returns the addresses that the dialled names led to.
    pub(crate) const fn led(&self) -> &Led {
        &self.led
    }
}

impl NetworkBehaviour for IdentifyBehaviour {
    type ConnectionHandler = <identify::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = identify::Event;

    forward!(inner: pending, inbound, events, poll);

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port_use: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let reached = self.led.reached(&peer, address);
        self.inner.handle_established_outbound_connection(connection, peer, &reached, role, port_use)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_name_led_to_is_remembered_for_the_peer_that_answered_there() {
        let led = Led::default();
        let (peer, other) = (PeerId::random(), PeerId::random());
        let (named, reached) = (address("/dns4/node.example/tcp/3001"), address("/ip4/9.9.9.9/tcp/3001"));
        led.note(peer, &named, &reached.clone().with_p2p(peer).unwrap());
        assert_eq!(led.reached(&peer, &named), reached);
        assert_eq!(led.reached(&peer, &named.clone().with_p2p(peer).unwrap()), reached);
        assert_eq!(led.reached(&other, &named), named, "it led another peer nowhere");
        let literal = address("/ip4/9.9.9.8/tcp/3001");
        assert_eq!(led.reached(&peer, &literal), literal);

        let moved = address("/ip4/9.9.9.7/tcp/3001");
        led.note(peer, &named, &moved);
        assert_eq!(led.reached(&peer, &named), moved, "the newest counts");
    }

    #[test]
    fn as_many_names_are_remembered_as_there_are_connections() {
        let led = Led::default();
        let (named, reached) = (address("/dns4/node.example/tcp/3001"), address("/ip4/9.9.9.9/tcp/3001"));
        let first = PeerId::random();
        led.note(first, &named, &reached);
        for _ in 0..REMEMBERED_MAX {
            led.note(PeerId::random(), &named, &reached);
        }
        assert_eq!(led.0.lock().len(), REMEMBERED_MAX);
        assert_eq!(led.reached(&first, &named), named, "the oldest is forgotten");
    }
}
