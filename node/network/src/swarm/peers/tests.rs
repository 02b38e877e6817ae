//! Whom the connected peers are asked about, and over which connections.

use farthing_protocol::SecretKey;
use libp2p::core::{Endpoint, transport::PortUse};

use super::*;

fn id(n: u8) -> PeerId {
    identity::peer_id(&SecretKey::from_bytes(&[n; 32]).unwrap().public_key())
}

/// A peer that speaks everything is dialled there.
fn connect(peers: &mut Peers, id: PeerId, connection: usize, way: &str) {
    let address: Multiaddr = way.parse().unwrap();
    let (role_override, port_use) = (Endpoint::Dialer, PortUse::Reuse);
    let endpoint = ConnectedPoint::Dialer { address: address.clone(), role_override, port_use };
    peers.connected(id, ConnectionId::new_unchecked(connection), &endpoint, address, true);
    let identified = PeerFacts {
        agent: String::new(),
        speaks_call: true,
        speaks_call_stream: true,
        speaks_info: true,
        speaks_sync: [true; 2],
        speaks_records: true,
        speaks_reach: true,
        relays: false,
    };
    peers.identified(id, identified);
}

#[test]
fn nobody_compares_records_or_catalogs_while_a_relay_alone_leads_there() {
    let (mut peers, owner) = (Peers::default(), id(2));
    connect(&mut peers, owner, 1, &format!("/ip4/9.9.9.9/tcp/3001/p2p/{}/p2p-circuit", id(1)));
    assert_eq!(peers.agreeing(0), None);
    assert!(peers.neighbours().iter().all(|peer| peer.is_relayed && !peer.was_sought));
    connect(&mut peers, owner, 2, "/ip4/9.9.8.8/tcp/3001");
    assert_eq!(peers.agreeing(0), identity::wallet(&owner));
    assert!(peers.neighbours().iter().all(|peer| !peer.is_relayed && peer.was_sought));
}

#[test]
fn those_are_asked_first_whose_place_in_the_directory_is_closest() {
    let mut peers = Peers::default();
    let ids: Vec<PeerId> = (1..=20).map(id).collect();
    for (n, id) in ids.iter().enumerate() {
        connect(&mut peers, *id, n, "/ip4/9.9.9.9/tcp/3001");
    }
    let owner = Address::from_bytes([7; 20]);
    // As nodes of before have them.
    let place = libp2p::kad::KBucketKey::new(wire::record_key(owner));
    let mut expected = ids.clone();
    expected.sort_by_key(|id| place.distance(&libp2p::kad::KBucketKey::from(*id)));
    let expected: Vec<Address> = expected.iter().filter_map(identity::wallet).collect();
    assert_eq!(peers.closest(owner, 5), expected[..5]);
    let last = expected[19];
    assert_eq!(peers.closest(last, 1), [last], "nobody knows better than the owner");
}

#[test]
fn what_a_peer_says_of_addresses_counts_once_for_each_connection() {
    let (mut peers, peer) = (Peers::default(), id(2));
    connect(&mut peers, peer, 1, "/ip4/9.9.9.9/tcp/3001");
    connect(&mut peers, peer, 2, "/ip4/9.9.8.8/tcp/3001");
    for connection in [1, 2].map(ConnectionId::new_unchecked) {
        let heeded = (0..10).filter(|_| peers.heeds(&peer, connection)).count();
        assert_eq!(heeded, 1, "{connection}");
    }
    assert!(!peers.heeds(&peer, ConnectionId::new_unchecked(3)), "there is no such connection");
    assert!(!peers.heeds(&id(3), ConnectionId::new_unchecked(1)), "it is another peer's");
}

#[test]
fn a_peer_that_says_again_and_again_who_it_is_is_heard_so_often_a_minute_on_each_connection() {
    let (mut peers, peer, now) = (Peers::default(), id(2), Instant::now());
    connect(&mut peers, peer, 1, "/ip4/9.9.9.9/tcp/3001");
    connect(&mut peers, peer, 2, "/ip4/9.9.8.8/tcp/3001");
    for at in [now, now + 2 * MINUTE] {
        for connection in [1, 2].map(ConnectionId::new_unchecked) {
            let heard = (0..1_000).filter(|_| peers.listens_to(&peer, connection, at)).count();
            assert_eq!(heard, TOLD_PER_MINUTE_MAX as usize, "{connection}");
        }
    }
    assert!(!peers.listens_to(&peer, ConnectionId::new_unchecked(3), now), "there is no such connection");
}
