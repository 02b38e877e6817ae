//! Dial-backs: what peers can dial is found reachable, what they cannot is not, and nobody is used to dial others.

use std::{net::TcpListener, time::Duration};

use farthing_network::{AddressSource, NetworkConfig, ReachConfig, ReachState, Reachability, Transport};
use farthing_protocol::{
    limits,
    reach::{DialBack, ReachRequest, ReachResponse},
    record::{FLAG_ACCEPTS_CALLS, FLAG_CALL_STREAMS, FLAG_QUIC_VERIFIED, FLAG_TCP_VERIFIED},
    wire,
};
use libp2p::{Multiaddr, PeerId, Swarm};

use crate::{
    raw::{self, RawBehaviour, frame, raw_peer, wallet_keypair},
    support::{Node, QUIC, TCP, config, network, new_key, reserved_port},
};

/// Tests every few moments; nobody is too often asked.
fn quick() -> ReachConfig {
    ReachConfig {
        first: Duration::from_millis(100),
        interval: Duration::from_millis(300),
        retry: Duration::from_millis(200),
        debounce: Duration::from_millis(20),
        asker_interval: Duration::from_millis(1),
        ..ReachConfig::default()
    }
}

fn quick_config() -> NetworkConfig {
    NetworkConfig { reach: quick(), ..config() }
}

/// Nodes that connect to `node` and dial it back when it asks.
async fn peers_of(node: &Node, count: usize) -> Vec<Node> {
    let mut peers = Vec::new();
    for _ in 0..count {
        let peer = NetworkConfig { bootstrap: vec![node.listening()], ..quick_config() };
        peers.push(Node::start(peer).await);
    }
    for peer in &peers {
        node.connected_to(peer.address).await;
    }
    peers
}

/// What is known of the node's reachability once `enough` says so.
async fn reachability(node: &Node, enough: impl Fn(&Reachability) -> bool) -> Reachability {
    let mut status = node.handle.status();
    let waiting = status.wait_for(|status| enough(&status.reachability));
    let status = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    match status {
        Ok(status) => status.unwrap().reachability.clone(),
        Err(_) => panic!("never: {:#?}", node.handle.status().borrow().reachability),
    }
}

/// A TCP port on which nobody answers.
fn dead_tcp() -> (tokio::net::TcpSocket, String) {
    let (reserved, port) = reserved_port();
    (reserved, format!("/ip4/127.0.0.1/tcp/{port}"))
}

#[tokio::test]
async fn what_three_peers_can_dial_is_reachable_and_said_so_in_the_record() {
    let listen = vec![TCP.to_owned(), QUIC.to_owned()];
    let node = Node::start(NetworkConfig { listen, ..quick_config() }).await;
    let _peers = peers_of(&node, 4).await;
    let found = reachability(&node, |found| {
        found.state(Transport::Tcp) == ReachState::Reachable
            && found.state(Transport::Quic) == ReachState::Reachable
            && found.peers_asked == 3
    })
    .await;
    assert!(found.is_reachable() && found.checked_secs.is_some());
    assert_eq!(found.local_ip, Some("127.0.0.1".parse().unwrap()));
    assert!(found.checks.iter().all(|check| check.published && check.source == AddressSource::Observed));
    let tcp = &found.checks[0];
    assert!(node.handle.status().borrow().listening.contains(&tcp.address), "{tcp:?}");
    assert!(tcp.address.contains("/tcp/"));
    assert!(node.handle.status().borrow().external.contains(&tcp.address));

    node.handle.publish(FLAG_ACCEPTS_CALLS, 0, [0; 32]).await.unwrap();
    let record = node.handle.find(node.address).await.unwrap();
    let flags = FLAG_ACCEPTS_CALLS | FLAG_CALL_STREAMS | FLAG_TCP_VERIFIED | FLAG_QUIC_VERIFIED;
    assert_eq!(record.flags, flags);
    assert_eq!(node.handle.peers().await.len(), 4, "those who dial back are no new peers");
}

/// `/dns4/localhost/…` in place of the IP of a listening address.
fn by_name(address: &str) -> String {
    address.replace("/ip4/127.0.0.1/", "/dns4/localhost/")
}

#[tokio::test]
async fn a_node_that_others_dial_by_name_learns_its_address_and_tests_both_ports() {
    let listen = vec![TCP.to_owned(), QUIC.to_owned()];
    let node = Node::start(NetworkConfig { listen, ..quick_config() }).await;
    let ways: Vec<String> = node.handle.status().borrow().listening.iter().map(|way| by_name(way)).collect();
    assert!(ways.len() == 2 && ways.iter().all(|way| way.starts_with("/dns4/localhost/")), "{ways:?}");
    let mut peers = Vec::new();
    for number in 0..3 {
        let bootstrap = vec![ways[number % ways.len()].clone()];
        peers.push(Node::start(NetworkConfig { bootstrap, ..quick_config() }).await);
    }
    let found = reachability(&node, |found| {
        found.state(Transport::Tcp) == ReachState::Reachable
            && found.state(Transport::Quic) == ReachState::Reachable
    })
    .await;
    assert!(
        found.checks.iter().all(|check| check.published && check.source == AddressSource::Observed),
        "{found:?}"
    );
    assert_eq!(found.seen, ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
    let shown = peers[0].handle.peers().await;
    let shown = shown.iter().find(|peer| peer.address == node.address).unwrap();
    assert!(shown.addresses.contains(&ways[0]), "what was dialled is shown as it was dialled: {shown:?}");
}

#[tokio::test]
async fn a_transport_that_nobody_reaches_is_told_apart_from_one_that_works() {
    // A socket that never answers, as behind a router that forwards TCP alone.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let announce = vec![format!("/ip4/127.0.0.1/udp/{port}/quic-v1")];
    let reach = ReachConfig { dial_deadline: Duration::from_millis(500), ..quick() };
    let node = Node::start(NetworkConfig { announce, reach: reach.clone(), ..config() }).await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let bootstrap = vec![node.listening()];
        peers.push(Node::start(NetworkConfig { bootstrap, reach: reach.clone(), ..config() }).await);
    }
    let found = reachability(&node, |found| {
        found.state(Transport::Tcp) == ReachState::Reachable
            && found.state(Transport::Quic) == ReachState::NotReachable
    })
    .await;
    let quic = found.checks.iter().find(|check| check.transport == Transport::Quic).unwrap();
    assert!(quic.failures.iter().all(|failure| !failure.reason.is_empty()), "{quic:?}");
    assert_eq!((quic.port, quic.source), (port, AddressSource::Announced));
    node.handle.publish(0, 0, [0; 32]).await.unwrap();
    assert_eq!(node.handle.find(node.address).await.unwrap().flags & FLAG_QUIC_VERIFIED, 0);
}

#[tokio::test]
async fn an_announced_address_is_published_at_once_and_withdrawn_when_nobody_reaches_it() {
    let (_dead, dead) = dead_tcp();
    let node = Node::start(NetworkConfig { announce: vec![dead.clone()], ..quick_config() }).await;
    assert!(node.handle.status().borrow().external.contains(&dead), "before any test");
    let _peers = peers_of(&node, 3).await;
    let withdrawn = |found: &Reachability| {
        found.state(Transport::Tcp) == ReachState::NotReachable && !found.checks[0].published
    };
    let found = reachability(&node, withdrawn).await;
    assert_eq!((found.checks[0].arrived, found.checks[0].source), (0, AddressSource::Announced));
    let mut status = node.handle.status();
    status.wait_for(|status| !status.external.contains(&dead)).await.unwrap();
    node.handle.publish(0, 0, [0; 32]).await.unwrap();
    let record = node.handle.find(node.address).await.unwrap();
    let dead = dead.parse::<Multiaddr>().unwrap().to_vec();
    assert!(!record.addresses.iter().any(|address| address.to_vec() == dead));
}

#[tokio::test]
async fn another_node_behind_the_port_is_not_taken_for_this_one() {
    let other = Node::start(config()).await;
    let node = Node::start(NetworkConfig { announce: vec![other.listening()], ..quick_config() }).await;
    let _peers = peers_of(&node, 2).await;
    let found = reachability(&node, |found| found.state(Transport::Tcp) == ReachState::NotReachable).await;
    assert!(found.checks[0].failures[0].reason.contains("another node"), "{found:?}");
}

/// A peer of `node` that says of every address that it reached it, and dials nothing.
async fn liar(node: &Node) -> tokio::task::JoinHandle<()> {
    let says = ReachResponse::Dialled(vec![DialBack::Reached; limits::REACH_ADDRESSES_MAX], None);
    let key = new_key();
    let address = key.address();
    let mut swarm =
        raw_peer(wallet_keypair(&key), network().identify_version(), &frame(&wire::encode(&says)));
    raw::connect(&mut swarm, &node.listening()).await;
    let serving = tokio::spawn(raw::serve(swarm));
    node.connected_to(address).await;
    serving
}

#[tokio::test]
async fn a_forged_ok_counts_for_nothing() {
    let (_dead, dead) = dead_tcp();
    let node = Node::start(NetworkConfig { announce: vec![dead], ..quick_config() }).await;
    let liar = liar(&node).await;
    let alone = reachability(&node, |found| found.peers_asked == 1).await;
    assert_eq!(alone.state(Transport::Tcp), ReachState::Unknown);
    assert!(alone.checks[0].failures[0].reason.contains("nothing arrived"), "{alone:?}");
    let _peers = peers_of(&node, 2).await;
    let found = reachability(&node, |found| found.peers_asked == 3).await;
    assert_eq!(found.state(Transport::Tcp), ReachState::NotReachable);
    assert_eq!(found.checks[0].failures.len(), 3);
    liar.abort();
}

#[tokio::test]
async fn a_test_can_be_asked_for() {
    let reach = ReachConfig { first: Duration::from_secs(3600), ..ReachConfig::default() };
    let node = Node::start(NetworkConfig { reach, ..config() }).await;
    let alone = node.handle.test_reachability().await.unwrap();
    assert_eq!((alone.testers, alone.checked_secs), (0, None), "there is nobody to ask");
    let _peers = peers_of(&node, 1).await;
    let found = node.handle.test_reachability().await.unwrap();
    assert_eq!((found.state(Transport::Tcp), found.peers_asked), (ReachState::Reachable, 1));
    let again = node.handle.test_reachability().await.unwrap();
    assert_eq!(again.checked_secs, found.checked_secs, "the only peer was asked a moment ago");
    node.handle.shutdown().await;
    assert!(node.handle.test_reachability().await.is_err());
}

async fn node_with_stranger(reach: ReachConfig) -> (Node, Swarm<RawBehaviour>) {
    let node = Node::start(NetworkConfig { reach, ..config() }).await;
    let mut stranger = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    (node, stranger)
}

async fn ask(stranger: &mut Swarm<RawBehaviour>, addresses: &[String]) -> ReachResponse {
    ask_for(stranger, addresses, None).await
}

async fn ask_for(
    stranger: &mut Swarm<RawBehaviour>,
    addresses: &[String],
    another: Option<PeerId>,
) -> ReachResponse {
    let addresses = addresses.iter().map(|text| text.parse::<Multiaddr>().unwrap().to_vec().into()).collect();
    let on_behalf_of = another.map(|id| id.to_bytes().into());
    let request = ReachRequest { nonce: [7; 32], addresses, known: None, on_behalf_of };
    let answer = raw::ask_reach(stranger, frame(&wire::encode(&request))).await.unwrap();
    wire::decode(&answer[4..]).unwrap()
}

#[tokio::test]
async fn nobody_is_dialled_but_who_asks() {
    let (node, mut stranger) = node_with_stranger(quick()).await;
    let victim = TcpListener::bind("127.0.0.9:0").unwrap();
    victim.set_nonblocking(true).unwrap();
    let port = victim.local_addr().unwrap().port();
    let addresses = [
        format!("/ip4/127.0.0.9/tcp/{port}"),
        format!("/ip4/127.0.0.9/udp/{port}/quic-v1"),
        format!("/dns4/localhost/tcp/{port}"),
        "/ip4/127.0.0.1/tcp/0".to_owned(),
        format!("/ip4/127.0.0.1/tcp/{port}/ws"),
    ];
    let ReachResponse::Dialled(ends, None) = ask(&mut stranger, &addresses).await else { panic!() };
    assert_eq!(ends.len(), addresses.len());
    for end in ends {
        assert!(matches!(&end, DialBack::Declined(why) if why.contains("127.0.0.1")), "{end:?}");
    }
    assert_eq!(node.handle.counters().dial_backs, 0);
    assert_eq!(victim.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn who_asks_on_behalf_of_another_learns_nothing_of_ports_and_of_one_host_alone() {
    let dial_deadline = Duration::from_secs(1);
    let (node, mut stranger) = node_with_stranger(ReachConfig { dial_deadline, ..quick() }).await;
    let another = wallet_keypair(&new_key()).public().to_peer_id();
    let (_dead, closed) = dead_tcp();
    // It answers, as a server of somebody else would.
    let elsewhere = Node::start(config()).await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let victim = TcpListener::bind("127.0.0.9:0").unwrap();
    victim.set_nonblocking(true).unwrap();
    let at = |listener: &TcpListener| {
        let address = listener.local_addr().unwrap();
        format!("/ip4/{}/tcp/{}", address.ip(), address.port())
    };
    let addresses = [closed.clone(), elsewhere.listening(), at(&silent), at(&victim)];
    let answer = ask_for(&mut stranger, &addresses, Some(another)).await;
    let ReachResponse::Dialled(ends, None) = answer else { panic!("{answer:?}") };
    let not_reached = || DialBack::Failed("not reached".to_owned());
    assert_eq!(ends[..3], [not_reached(), not_reached(), not_reached()], "one word for all");
    assert!(matches!(&ends[3], DialBack::Declined(why) if why.contains("one host")), "{:?}", ends[3]);
    assert_eq!(victim.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(node.handle.counters().dial_backs, 3);
    // The answer of a closed port, which is there at once, is told as late as that of a silent one.
    let asked = std::time::Instant::now();
    let answer = ask_for(&mut stranger, &[closed], Some(another)).await;
    assert!(
        matches!(&answer, ReachResponse::Dialled(ends, None) if ends[..] == [not_reached()]),
        "{answer:?}"
    );
    assert!(asked.elapsed() >= dial_deadline, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_peer_is_dialled_back_once_a_minute() {
    let (node, mut stranger) = node_with_stranger(ReachConfig::default()).await;
    let (_dead, dead) = dead_tcp();
    let first = ask(&mut stranger, std::slice::from_ref(&dead)).await;
    assert!(matches!(&first, ReachResponse::Dialled(ends, _) if matches!(ends[..], [DialBack::Failed(_)])));
    let second = ask(&mut stranger, &[dead]).await;
    let ReachResponse::TooSoon { retry_after_secs } = second else { panic!("{second:?}") };
    assert!((1..=61).contains(&retry_after_secs));
    let counters = node.handle.counters();
    assert_eq!((counters.dial_backs, counters.dial_backs_refused), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_nothing_dialled() {
    let (node, mut stranger) = node_with_stranger(quick()).await;
    let too_many = vec!["/ip4/127.0.0.1/tcp/1".to_owned(); limits::REACH_ADDRESSES_MAX + 1];
    assert!(matches!(ask(&mut stranger, &too_many).await, ReachResponse::Refused(_)));
    for bytes in [frame(&[0xff; 20]), (u32::MAX).to_be_bytes().to_vec()] {
        // The second names more bytes than it brings, and more than are allowed.
        let answer = raw::ask_reach(&mut stranger, bytes).await.unwrap();
        assert!(matches!(wire::decode(&answer[4..]).unwrap(), ReachResponse::Refused(_)));
    }
    assert_eq!(node.handle.counters().dial_backs, 0);
}
