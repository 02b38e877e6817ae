//! Dials under way to known peers. Pure.
//!
//! A dial to an address that answers nothing takes seconds to fail. A fresh record must not wait for it: what is
//! being tried is not tried again, anything else is tried beside it.

use std::collections::HashMap;

use libp2p::{
    Multiaddr, PeerId, connection_limits,
    swarm::{ConnectionId, DialError},
};

pub(super) const DIALLED_ADDRESSES_MAX: usize = 4;

/// Returns whether a dial failed because this node has no place for it, which says nothing of the peer.
pub(super) fn is_own_limit(error: &DialError) -> bool {
    matches!(error, DialError::Denied { cause } if cause.downcast_ref::<connection_limits::Exceeded>().is_some())
}

/// The addresses that are being dialled, and whose they are.
#[derive(Debug, Default)]
pub(super) struct Dials(HashMap<ConnectionId, (PeerId, Vec<Multiaddr>)>);

impl Dials {
    pub(super) fn began(&mut self, connection: ConnectionId, peer: PeerId, addresses: Vec<Multiaddr>) {
        self.0.insert(connection, (peer, addresses));
    }

    /// The dial failed or became a connection.
    pub(super) fn ended(&mut self, connection: ConnectionId) {
        self.0.remove(&connection);
    }

    /// Returns whether `peer` is being dialled anywhere.
    pub(super) fn is_dialled(&self, peer: &PeerId) -> bool {
        self.0.values().any(|(dialled, _)| dialled == peer)
    }

    /// Those of `addresses` where `peer` is not being dialled.
    pub(super) fn untried(&self, peer: &PeerId, mut addresses: Vec<Multiaddr>) -> Vec<Multiaddr> {
        let of_peer = || self.0.values().filter(|(dialled, _)| dialled == peer);
        addresses.retain(|address| !of_peer().any(|(_, tried)| tried.contains(address)));
        addresses
    }
}

#[cfg(test)]
mod tests {
    use libp2p::{
        core::Endpoint,
        swarm::{ConnectionDenied, NetworkBehaviour},
    };

    use super::*;

    #[test]
    fn only_a_denial_for_want_of_a_place_says_nothing_of_the_peer() {
        assert!(!is_own_limit(&DialError::Denied { cause: ConnectionDenied::new(crate::gate::Blocked) }));
        assert!(!is_own_limit(&DialError::NoAddresses));
        assert!(!is_own_limit(&DialError::Transport(Vec::new())));
        let mut limits = connection_limits::Behaviour::new(
            connection_limits::ConnectionLimits::default().with_max_pending_outgoing(Some(0)),
        );
        let denied = limits.handle_pending_outbound_connection(
            ConnectionId::new_unchecked(1),
            None,
            &[],
            Endpoint::Dialer,
        );
        assert!(is_own_limit(&DialError::Denied { cause: denied.unwrap_err() }));
    }

    #[test]
    fn a_fresh_address_is_tried_beside_a_stale_one_and_no_address_twice() {
        let [stale, fresh]: [Multiaddr; 2] =
            ["/ip4/9.9.9.9/tcp/3001", "/ip4/8.8.8.8/tcp/3001"].map(|address| address.parse().unwrap());
        let (peer, other) = (PeerId::random(), PeerId::random());
        let both = || vec![stale.clone(), fresh.clone()];
        let mut dials = Dials::default();
        assert_eq!(dials.untried(&peer, both()), both());

        let first = ConnectionId::new_unchecked(1);
        dials.began(first, peer, vec![stale.clone()]);
        assert_eq!(dials.untried(&peer, both()), std::slice::from_ref(&fresh));
        assert_eq!(dials.untried(&other, both()), both(), "another's dial says nothing");

        let second = ConnectionId::new_unchecked(2);
        dials.began(second, peer, vec![fresh.clone()]);
        assert_eq!(dials.untried(&peer, both()), []);
        dials.ended(first);
        assert!(dials.is_dialled(&peer), "the other dial goes on");
        assert_eq!(dials.untried(&peer, both()), [stale]);
        dials.ended(second);
        assert!(!dials.is_dialled(&peer));
    }
}
