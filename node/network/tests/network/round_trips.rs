//! What a warm call costs in round trips, and what a cut line means for it.

use std::time::Duration;

use bytes::Bytes;
use farthing_network::{CallFailure, Interrupted, NetworkConfig};

use crate::{
    proxy::Proxy,
    support::{DEADLINE, Node, config, pattern, request, status_answer, status_question},
};

pub(crate) fn port_of(address: &str) -> u16 {
    address.rsplit('/').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_warm_call_takes_one_round_trip() {
    let owner = Node::start(config()).await;
    let proxy = Proxy::start(port_of(&owner.listening())).await;
    let consumer = Node::start(NetworkConfig { bootstrap: vec![proxy.address()], ..config() }).await;
    consumer.connected_to(owner.address).await;
    let address = owner.address;
    let _owner = owner.echo();
    let mut fewest = u64::MAX;
    for _ in 0..50 {
        proxy.reset();
        consumer.handle.call(address, request(1024), pattern(1024), DEADLINE).await.unwrap();
        fewest = fewest.min(proxy.round_trips());
    }
    assert_eq!(fewest, 1);
}

#[tokio::test]
async fn a_connection_killed_during_a_call_leaves_it_unknown() {
    let mut owner = Node::start(config()).await;
    let proxy = Proxy::start(port_of(&owner.listening())).await;
    let consumer = Node::start(NetworkConfig { bootstrap: vec![proxy.address()], ..config() }).await;
    consumer.connected_to(owner.address).await;
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), DEADLINE);
    let cutting = async {
        // The call has arrived, so it may be running.
        let inbound = owner.calls.recv().await.unwrap();
        proxy.cut();
        inbound
    };
    let (result, _inbound) = tokio::join!(call, cutting);
    let failure = result.unwrap_err();
    assert!(matches!(failure, CallFailure::Unknown(_)), "{failure:?}");
    assert_eq!(owner.calls.try_recv().ok().map(|call| call.message), None, "it was sent once");
}

/// A consumer of `owner` through a proxy, and the proxy.
async fn through_proxy(owner: &Node) -> (Node, Proxy) {
    let proxy = Proxy::start(port_of(&owner.listening())).await;
    // It listens nowhere, so that the owner has no other way to it.
    let (listen, bootstrap) = (Vec::new(), vec![proxy.address()]);
    let consumer = Node::start(NetworkConfig { listen, bootstrap, ..config() }).await;
    consumer.connected_to(owner.address).await;
    (consumer, proxy)
}

#[tokio::test]
async fn a_call_over_a_dead_line_ends_long_before_its_deadline() {
    let mut owner = Node::start(config()).await;
    let (consumer, proxy) = through_proxy(&owner).await;
    // TCP would go on for minutes, and two pings in a row fail after 50 s at most.
    let deadline = Duration::from_secs(300);
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), deadline);
    let dying = async {
        let inbound = owner.calls.recv().await.unwrap();
        proxy.go_dead();
        inbound
    };
    let (result, _inbound) = tokio::join!(call, dying);
    let failure = result.unwrap_err();
    assert!(matches!(failure, CallFailure::Unknown(Interrupted::ConnectionLost(_))), "{failure:?}");
}

#[tokio::test]
async fn an_owner_that_takes_its_time_keeps_the_connection() {
    let mut owner = Node::start(config()).await;
    let (consumer, _proxy) = through_proxy(&owner).await;
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), DEADLINE);
    let answering = async {
        let inbound = owner.calls.recv().await.unwrap();
        // The line is looked at after three seconds, and an answer would be waited for until the eighth.
        tokio::time::sleep(Duration::from_secs(10)).await;
        inbound.reply.send(status_answer(), Bytes::new());
    };
    let (result, ()) = tokio::join!(call, answering);
    assert_eq!(result.unwrap().0, status_answer());
    assert_eq!(consumer.handle.counters().connections_opened, 1);
}
