//! Connections in masses: refused above the limits, while honest peers still get through.
//!
//! Loopback has many addresses, which count as one. A node that listens on one of them over QUIC also dials from it.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use farthing_network::{NetworkConfig, NetworkLimits};
use futures::{StreamExt, stream};
use libp2p::{
    Multiaddr, Transport,
    core::{
        Endpoint,
        muxing::StreamMuxerBox,
        transport::{DialOpts, PortUse},
        upgrade::Version,
    },
    multiaddr::Protocol,
    noise, quic, tcp, yamux,
};
use tokio::{net::UdpSocket, task::JoinSet};

use crate::{
    raw::wallet_keypair,
    support::{Node, QUIC, TCP, config, new_key, until},
};

/// How many at once: somebody in a hurry.
const AT_ONCE: usize = 16;

/// A stranger that completes the handshake and says nothing more. Nothing when it was refused.
async fn handshake(to: Multiaddr) -> Option<StreamMuxerBox> {
    let keypair = wallet_keypair(&new_key());
    let mut transport = tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1)
        .authenticate(noise::Config::new(&keypair).unwrap())
        .multiplex(yamux::Config::default())
        .boxed();
    let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
    let dialled = transport.dial(to, options).unwrap().await;
    dialled.ok().map(|(_, connection)| connection)
}

/// Where the node listens over TCP.
fn tcp(node: &Node) -> Multiaddr {
    let status = node.handle.status();
    let listening = status.borrow().listening.clone();
    listening.iter().find(|address| address.contains("/tcp/")).unwrap().parse().unwrap()
}

/// `count` strangers, as far as they were let in.
async fn strangers(node: &Node, count: usize) -> Vec<StreamMuxerBox> {
    let to = tcp(node);
    let dials = stream::iter((0..count).map(|_| handshake(to.clone())));
    dials.buffer_unordered(AT_ONCE).filter_map(async |connection| connection).collect().await
}

/// Follows how many connections the node has; ends with the most it ever had.
fn most_connections(node: &Node) -> tokio::task::JoinHandle<usize> {
    let mut status = node.handle.status();
    tokio::spawn(async move {
        let mut most = 0;
        while status.changed().await.is_ok() {
            most = most.max(status.borrow().connections);
        }
        most
    })
}

async fn node(limits: NetworkLimits) -> Node {
    let listen = vec![TCP.to_owned(), QUIC.to_owned()];
    Node::start(NetworkConfig { listen, limits, ..config() }).await
}

/// A node at another address of this machine.
async fn honest(node: &Node) -> Node {
    let to = node.handle.status().borrow().listening.iter().find(|a| a.contains("quic")).unwrap().clone();
    let listen = vec!["/ip4/127.0.0.2/udp/0/quic-v1".to_owned()];
    Node::start(NetworkConfig { listen, bootstrap: vec![to], ..config() }).await
}

#[tokio::test]
async fn a_flood_from_one_address_has_its_share_and_silent_connections_make_room() {
    let limits = NetworkLimits {
        connections_max: 64,
        connections_reserved: 4,
        connections_per_private_ip_max: 60,
        contact_idle_max: Duration::from_millis(500),
        ..NetworkLimits::default()
    };
    let node = node(limits).await;
    let most = most_connections(&node);
    let flood = strangers(&node, 220).await;
    assert!(flood.len() >= 60, "{} were let in", flood.len());
    let honest = honest(&node).await;
    honest.connected_to(node.address).await;
    // It is silent itself once its ping is answered, for longer than it may where this machine is slow.
    until("the honest node is in", async || {
        let answered = honest.handle.ping(node.address).await.is_ok();
        let seen = node.handle.peers().await;
        answered && seen.iter().any(|peer| peer.addresses[0].starts_with("/ip4/127.0.0.2/"))
    })
    .await;
    node.handle.shutdown().await;
    drop(node);
    // Those that make room take a moment to close.
    assert!(most.await.unwrap() <= 64 + 32, "more than all together may have");
}

#[tokio::test]
async fn half_open_connections_keep_nobody_else_out() {
    let node = node(NetworkLimits::default()).await;
    let address = tcp(&node);
    let Some(Protocol::Tcp(port)) = address.iter().nth(1) else { panic!("{address}") };
    let mut silent = Vec::new();
    // Three times as many as handshakes are waited for at once, from the same address as the honest node.
    for _ in 0..100 {
        silent.push(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let honest = honest(&node).await;
    honest.connected_to(node.address).await;
    honest.handle.ping(node.address).await.unwrap();
}

/// Passes what strangers say on to a port of this machine, and nothing back: their handshakes begin and go no further, however often
/// they repeat themselves. Returns where it listens, and the number of strangers whom the port has answered.
async fn one_way_to(port: u16) -> (u16, Arc<AtomicUsize>) {
    let (socket, node) = (UdpSocket::bind("127.0.0.1:0").await.unwrap(), (Ipv4Addr::LOCALHOST, port));
    let (own_port, answered) = (socket.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&answered);
    tokio::spawn(async move {
        let (mut packet, mut seen) = (vec![0; 64 * 1024], HashSet::new());
        while let Ok((bytes, from)) = socket.recv_from(&mut packet).await {
            if from == SocketAddr::from(node) {
                // The first packets of QUIC name their receiver behind five bytes and the length of the name.
                seen.insert(packet[6..][..usize::from(packet[5])].to_vec());
                count.store(seen.len(), Ordering::SeqCst);
            } else {
                socket.send_to(&packet[..bytes], node).await.unwrap();
            }
        }
    });
    (own_port, answered)
}

#[tokio::test]
async fn half_open_handshakes_over_quic_keep_nobody_else_out() {
    // QUIC itself gives up a connection ten seconds after the last packet. Strangers repeat their first one until then, at ever
    // longer intervals, and so keep it for 25 seconds.
    let given_up_within = Duration::from_secs(20);
    let limits = NetworkLimits::default();
    let waited_for = limits.connections_pending_per_private_ip_max as usize;
    let node = node(limits).await;
    let listening = node.handle.status().borrow().listening.clone();
    let address: Multiaddr = listening.iter().find(|a| a.contains("quic")).unwrap().parse().unwrap();
    let Some(Protocol::Udp(port)) = address.iter().nth(1) else { panic!("{address}") };
    let (way, answered) = one_way_to(port).await;
    let to: Multiaddr = format!("/ip4/127.0.0.1/udp/{way}/quic-v1").parse().unwrap();
    let mut patient = quic::Config::new(&wallet_keypair(&new_key()));
    (patient.handshake_timeout, patient.max_idle_timeout) = (Duration::from_secs(60), 60_000);
    let mut strangers = quic::tokio::Transport::new(patient);
    let mut silent = JoinSet::new();
    for _ in 0..waited_for {
        let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
        silent.spawn(strangers.dial(to.clone(), options).unwrap());
    }
    until("the node waits for as many as it may", async || answered.load(Ordering::SeqCst) >= waited_for)
        .await;
    let began = Instant::now();
    // A node that finds no place tries again less and less often, so each attempt is of a new one.
    until("somebody else is let in", async || {
        let honest = honest(&node).await;
        let let_in = tokio::time::timeout(Duration::from_secs(2), node.connected_to(honest.address)).await;
        let_in.is_ok() && honest.handle.ping(node.address).await.is_ok()
    })
    .await;
    assert!(began.elapsed() < given_up_within, "let in after {:?}", began.elapsed());
    while let Some(dialled) = silent.try_join_next() {
        assert!(dialled.unwrap().is_err(), "it was let in");
    }
}

#[tokio::test]
async fn a_wallet_with_a_channel_gets_in_where_strangers_find_no_place() {
    let limits = NetworkLimits { connections_max: 3, connections_reserved: 1, ..NetworkLimits::default() };
    let node = Node::start(NetworkConfig { limits, ..config() }).await;
    // They listen nowhere: whom the node dials itself is its own choice, and no stranger to it.
    let caller = |key| {
        let (listen, bootstrap) = (Vec::new(), vec![node.listening()]);
        Node::start(NetworkConfig { key, listen, bootstrap, ..config() })
    };
    let strangers = [caller(new_key()).await, caller(new_key()).await];
    for stranger in &strangers {
        stranger.connected_to(node.address).await;
        node.connected_to(stranger.address).await;
    }
    let late = caller(new_key()).await;
    until("it was turned away again", async || late.handle.counters().connections_opened >= 2).await;
    assert!(late.handle.connected_peers().await.is_empty());
    assert_eq!(node.handle.connected_peers().await.len(), strangers.len());

    let partner = new_key();
    node.handle.favour([partner.address()]);
    let partner = caller(partner).await;
    partner.connected_to(node.address).await;
    assert!(!node.handle.connected_peers().await.contains(&late.address), "its place was kept");

    strangers[0].handle.shutdown().await;
    late.connected_to(node.address).await;
}
