//! What a warm call costs in round trips, and what a cut line means for it.

use bytes::Bytes;
use farthing_network::{CallFailure, NetworkConfig};

use crate::{
    proxy::Proxy,
    support::{DEADLINE, Node, config, pattern, request, status_question},
};

fn port_of(address: &str) -> u16 {
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
