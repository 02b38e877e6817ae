//! Addresses through a relay: where the relay is, `/p2p/<relay>/p2p-circuit`, and behind that the peer that is meant. Pure.
//!
//! A connection through a relay is encrypted from end to end; what it shows of the other end is the relay alone. So where
//! an address stands for whoever has many, the relay's does.

use libp2p::{Multiaddr, PeerId, core::ConnectedPoint, multiaddr::Protocol};

/// Returns whether an address leads through a relay.
pub(crate) fn is_circuit(address: &Multiaddr) -> bool {
    address.iter().any(|part| matches!(part, Protocol::P2pCircuit))
}

/// The address of whoever has a place at `relay`, which is at `address`.
pub(crate) fn through(relay: PeerId, address: &Multiaddr) -> Multiaddr {
    super::without_peer(address).with(Protocol::P2p(relay)).with(Protocol::P2pCircuit)
}

/// The relay that an address leads through.
pub(crate) fn relay(address: &Multiaddr) -> Option<PeerId> {
    let to_relay: Multiaddr =
        address.iter().take_while(|part| !matches!(part, Protocol::P2pCircuit)).collect();
    super::peer(&to_relay).filter(|_| is_circuit(address))
}

/// May a record have us dial through there? The relay has to be named, and to be where a record may say that a node is.
pub(crate) fn is_dialable(address: &Multiaddr, allow_private: bool) -> bool {
    let mut parts = address.iter();
    let relay: Multiaddr = parts.by_ref().take_while(|part| !matches!(part, Protocol::P2pCircuit)).collect();
    is_circuit(address)
        && super::peer(&relay).is_some()
        && super::may_be_announced(&relay, allow_private)
        && parts.all(|part| matches!(part, Protocol::P2p(_)))
}

/// The address that an inbound connection came from, or the relay that it came through.
pub(crate) fn came_from<'a>(local: &'a Multiaddr, remote: &'a Multiaddr) -> &'a Multiaddr {
    if is_circuit(local) { local } else { remote }
}

/// The address that a connection leads to or came from, or the way through the relay.
pub(crate) fn way(endpoint: &ConnectedPoint) -> &Multiaddr {
    match endpoint {
        ConnectedPoint::Dialer { address, .. } => address,
        ConnectedPoint::Listener { local_addr, send_back_addr } => came_from(local_addr, send_back_addr),
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;
    use crate::{addresses, identity};

    fn peer(n: u8) -> PeerId {
        identity::peer_id(&SecretKey::from_bytes(&[n; 32]).unwrap().public_key())
    }

    /// `RELAY` and `OWNER` stand for the ids of two peers.
    fn address(text: &str) -> Multiaddr {
        text.replace("RELAY", &peer(1).to_string()).replace("OWNER", &peer(2).to_string()).parse().unwrap()
    }

    #[test]
    fn a_record_may_name_a_public_relay_and_nothing_around_it() {
        for right in [
            "/ip4/9.9.9.9/tcp/3001/p2p/RELAY/p2p-circuit",
            "/ip4/9.9.9.9/udp/3001/quic-v1/p2p/RELAY/p2p-circuit/p2p/OWNER",
            "/dns4/relay.example/tcp/3001/p2p/RELAY/p2p-circuit",
        ] {
            assert!(is_dialable(&address(right), false), "{right}");
        }
        for wrong in [
            "/ip4/192.168.1.1/tcp/3001/p2p/RELAY/p2p-circuit",
            "/ip4/9.9.9.9/tcp/3001/p2p-circuit",
            "/p2p/RELAY/p2p-circuit",
            "/ip4/9.9.9.9/tcp/3001/p2p/RELAY/p2p-circuit/ip4/192.168.1.1/tcp/80",
            "/ip4/9.9.9.9/tcp/3001/p2p/RELAY/p2p-circuit/p2p/OWNER/p2p-circuit",
            "/ip4/9.9.9.9/tcp/3001/p2p/RELAY",
        ] {
            assert!(!is_dialable(&address(wrong), false), "{wrong}");
        }
        assert!(is_dialable(&address("/ip4/192.168.1.1/tcp/3001/p2p/RELAY/p2p-circuit"), true));
    }

    #[test]
    fn the_relay_stays_in_the_address_and_the_peer_is_the_one_behind_it() {
        let (relay, owner) = (peer(1), peer(2));
        let way = through(relay, &address("/ip4/9.9.9.9/tcp/3001/p2p/RELAY"));
        assert_eq!(way, address("/ip4/9.9.9.9/tcp/3001/p2p/RELAY/p2p-circuit"));
        assert_eq!(addresses::peer(&way), None);
        let whole = way.clone().with(Protocol::P2p(owner));
        assert_eq!(addresses::peer(&whole), Some(owner));
        assert_eq!(addresses::without_peer(&whole), way);
        assert_eq!(addresses::tcp(&way), None, "the port is the relay's");
    }

    #[test]
    fn whoever_comes_through_a_relay_counts_as_the_relay() {
        let through = address("/ip4/9.9.9.9/tcp/3001/p2p/RELAY/p2p-circuit");
        let (here, there) = (address("/ip4/8.8.8.8/tcp/3001"), address("/ip4/7.7.7.7/tcp/5000"));
        assert_eq!(came_from(&through, &address("/p2p/OWNER")), &through);
        assert_eq!(came_from(&here, &there), &there);
    }
}
