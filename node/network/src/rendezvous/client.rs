//! The DHT as its client sees it: the library's Kademlia, which dials nobody that may not be dialled.
//!
//! It dials by itself whoever an answer names, at every address that the answer gives. Here each peer gets a few, each visit
//! and each network so many, and nodes of our own network none: to them a second swarm under this node's key would look like
//! a twin, or like a node of another network, to be turned away with its other connections.

use std::sync::Arc;

use libp2p::{
    Multiaddr, PeerId,
    core::Endpoint,
    kad::{self, store::MemoryStore},
    swarm::{ConnectionDenied, ConnectionId, NetworkBehaviour},
};

use super::choice::DialBudget;
use crate::{addresses, forward::forward, identity};

type Kademlia = kad::Behaviour<MemoryStore>;

/// Kademlia with a bound on what it dials.
pub(super) struct DhtClient {
    inner: Kademlia,
    budget: DialBudget,
    entrance: Arc<[Multiaddr]>,
    allow_private: bool,
}

impl DhtClient {
    pub(super) fn new(inner: Kademlia, entrance: Arc<[Multiaddr]>, allow_private: bool) -> Self {
        Self { inner, budget: DialBudget::new(), entrance, allow_private }
    }

    pub(super) const fn kademlia(&mut self) -> &mut Kademlia {
        &mut self.inner
    }

    /// The addresses that the answers to a question under way give for `peer`. The library tells them whoever is about to
    /// dial.
    pub(super) fn addresses_of(&mut self, peer: PeerId) -> Vec<Multiaddr> {
        let no_connection = ConnectionId::new_unchecked(0);
        let known =
            self.inner.handle_pending_outbound_connection(no_connection, Some(peer), &[], Endpoint::Dialer);
        known.unwrap_or_default()
    }

    fn may_be_dialled(&self, address: &Multiaddr) -> bool {
        let is_entrance = || {
            let address = addresses::without_peer(address);
            self.entrance.iter().any(|entrance| addresses::without_peer(entrance) == address)
        };
        addresses::may_be_announced(address, self.allow_private) || is_entrance()
    }
}

impl NetworkBehaviour for DhtClient {
    type ConnectionHandler = <Kademlia as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = kad::Event;

    forward!(inner: inbound, outbound, events, poll);

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        // The entrance is dialled by us, with its addresses.
        if !addresses.is_empty() {
            return Ok(Vec::new());
        }
        if peer.as_ref().and_then(identity::wallet).is_some() {
            return Err(ConnectionDenied::new(OfAWallet));
        }
        let known = self.inner.handle_pending_outbound_connection(connection, peer, addresses, role)?;
        let known: Vec<Multiaddr> =
            known.into_iter().filter(|address| self.may_be_dialled(address)).collect();
        // Without any the swarm gives up, and the question goes on with the next peer.
        Ok(self.budget.grant(known.into_iter()))
    }
}

/// The reason that a peer is not dialled.
#[derive(Debug, thiserror::Error)]
#[error("it has a wallet's key, so it is not a node of the DHT")]
struct OfAWallet;

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;

    #[test]
    fn only_strangers_at_public_addresses_and_the_entrance_are_dialled() {
        let address = |text: &str| -> Multiaddr { text.parse().unwrap() };
        let own = PeerId::random();
        let entrance = address("/ip4/127.0.0.1/tcp/4001");
        let inner = Kademlia::new(own, MemoryStore::new(own));
        let mut client = DhtClient::new(inner, [entrance.clone()].into(), false);
        let mut granted = |peer: PeerId, known: &[Multiaddr]| {
            for address in known {
                client.kademlia().add_address(&peer, address.clone());
            }
            let connection = ConnectionId::new_unchecked(1);
            let granted =
                client.handle_pending_outbound_connection(connection, Some(peer), &[], Endpoint::Dialer);
            granted.map(|granted| granted.iter().map(addresses::without_peer).collect::<Vec<_>>())
        };
        let public = address("/ip4/9.9.9.9/tcp/4001");
        let inside = address("/ip4/192.168.1.1/tcp/80");
        let web = address("/ip4/9.9.9.9/tcp/4002/ws");
        let known = [public.clone(), inside, web, entrance.clone()];
        assert_eq!(granted(PeerId::random(), &known).unwrap(), [public.clone(), entrance]);
        let many: Vec<Multiaddr> = (1..=40).map(|n| address(&format!("/ip4/9.{n}.0.1/tcp/1"))).collect();
        assert_eq!(granted(PeerId::random(), &many).unwrap().len(), 4);
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let node = identity::peer_id(&key.public_key());
        assert!(granted(node, &[public]).is_err(), "it would take this swarm for the node's twin");
    }
}
