//! Starting, finding the first peer, stopping, coming back.

use bytes::Bytes;
use farthing_network::{Direction, Network, NetworkConfig, NetworkError};

use crate::support::{DEADLINE, Node, config, new_key, reserved_port, status_answer, status_question, until};

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let listen = vec![format!("/ip4/127.0.0.1/tcp/{port}")];
    let error = Network::start(NetworkConfig { listen, ..config() }).await.unwrap_err();
    assert!(matches!(error, NetworkError::Listen { .. }));
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    assert!(error.next_step().unwrap().contains("choose another port"));
}

/// The library shares its TCP ports, so the system would let two nodes listen on one and split the connections.
#[tokio::test]
async fn a_second_node_on_one_tcp_port_is_refused() {
    let (_reserved, port) = reserved_port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    let first = Node::start(NetworkConfig { listen: vec![address.clone()], ..config() }).await;
    let wildcard = address.replace("127.0.0.1", "0.0.0.0");
    for listen in [address.clone(), wildcard] {
        let error =
            Network::start(NetworkConfig { listen: vec![listen.clone()], ..config() }).await.unwrap_err();
        assert!(error.to_string().contains(&listen), "{error}");
        assert!(error.next_step().unwrap().contains("`network.listen`"));
    }
    first.handle.shutdown().await;
    drop(first);
    Node::start(NetworkConfig { listen: vec![address], ..config() }).await;
}

#[tokio::test]
async fn a_taken_udp_port_is_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let listen = vec![format!("/ip4/127.0.0.1/udp/{port}/quic-v1")];
    let error = Network::start(NetworkConfig { listen, ..config() }).await.unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[tokio::test]
async fn a_bootstrap_peer_that_appears_later_is_found() {
    let (_reserved, port) = reserved_port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    let early = Node::start(NetworkConfig { bootstrap: vec![address.clone()], ..config() }).await;
    until("a dial failed", async || early.handle.counters().dials_failed > 0).await;
    let late = Node::start(NetworkConfig { listen: vec![address], ..config() }).await;
    early.connected_to(late.address).await;
}

#[tokio::test]
async fn a_bootstrap_peer_that_comes_back_is_found_again() {
    let (_reserved, port) = reserved_port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    let first = Node::start(NetworkConfig { listen: vec![address.clone()], ..config() }).await;
    let other = Node::joined(&first).await;
    let (gone, key) = (first.address, new_key());
    first.handle.shutdown().await;
    until("the loss was noticed", async || !other.handle.connected_peers().await.contains(&gone)).await;
    // Another wallet may answer there now: the configuration names an address, not a peer.
    let back = Node::start(NetworkConfig { key, listen: vec![address], ..config() }).await;
    other.connected_to(back.address).await;
}

#[tokio::test]
async fn a_restart_keeps_the_identity() {
    let key = new_key();
    let first = Node::start(NetworkConfig { key: key.clone(), ..config() }).await;
    let address = first.address;
    first.handle.shutdown().await;
    let second = Node::start(NetworkConfig { key, ..config() }).await;
    assert_eq!(second.address, address);
    let other = Node::joining(&[&second]).await;
    other.connected_to(address).await;
}

#[tokio::test]
async fn a_node_that_is_its_own_bootstrap_peer_does_not_mind() {
    let (_reserved, port) = reserved_port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    let node =
        Node::start(NetworkConfig { listen: vec![address.clone()], bootstrap: vec![address], ..config() })
            .await;
    Node::joined(&node).await;
}

#[tokio::test]
async fn peers_are_listed_with_what_is_known_of_them() {
    let owner = Node::start(NetworkConfig { agent: "farthing/9.9".to_owned(), ..config() }).await;
    let consumer = Node::joined(&owner).await;
    until("a ping was answered", async || consumer.handle.peers().await[0].rtt.is_some()).await;
    let seen = &consumer.handle.peers().await[0];
    assert_eq!((seen.address, seen.direction), (owner.address, Direction::Outbound));
    assert_eq!((seen.agent.as_str(), &seen.addresses[0]), ("farthing/9.9", &owner.listening()));
    owner.connected_to(consumer.address).await;
    assert_eq!(owner.handle.peers().await[0].direction, Direction::Inbound);
    let mut status = consumer.handle.status();
    status.wait_for(|status| (status.peers, status.connections) == (1, 1)).await.unwrap();
}

#[tokio::test]
async fn a_shutdown_waits_for_the_calls_being_served() {
    let (mut owner, consumer) = Node::pair().await;
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), DEADLINE);
    let serving = async {
        let inbound = owner.calls.recv().await.unwrap();
        let handle = owner.handle.clone();
        let stopping = tokio::spawn(async move { handle.shutdown().await });
        until("the network takes nothing more", async || owner.handle.publish(0, 0, [0; 32]).await.is_err())
            .await;
        inbound.reply.send(status_answer(), Bytes::new());
        stopping.await.unwrap();
    };
    let (result, ()) = tokio::join!(call, serving);
    assert_eq!(result.unwrap().0, status_answer());
    assert!(owner.calls.recv().await.is_none(), "the queue ends with the network");
}

#[tokio::test]
async fn every_kind_of_address_can_be_listened_on_at_one_port() {
    // Nothing can reserve a UDP port for a node, so a port that was taken meanwhile is let go.
    let mut tries = 0;
    let (handle, port) = loop {
        let (_reserved, port) = reserved_port();
        let listen = ["ip4/0.0.0.0", "ip6/::"]
            .iter()
            .flat_map(|ip| [format!("/{ip}/tcp/{port}"), format!("/{ip}/udp/{port}/quic-v1")])
            .collect();
        match Network::start(NetworkConfig { listen, ..config() }).await {
            Ok((handle, _)) => break (handle, port),
            Err(error) => assert!(tries < 10, "{error}"),
        }
        tries += 1;
    };
    let loopback = [format!("/ip4/127.0.0.1/tcp/{port}"), format!("/ip4/127.0.0.1/udp/{port}/quic-v1")];
    let mut status = handle.status();
    let is_shown = |shown: &Vec<String>| loopback.iter().all(|address| shown.contains(address));
    status.wait_for(|status| is_shown(&status.listening)).await.unwrap();
}
