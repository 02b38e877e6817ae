//! Owners are found by their wallet addresses.

use bytes::Bytes;
use farthing_network::{CallFailure, DirectoryMode, NetworkConfig, NotStarted};
use farthing_protocol::{
    Signed,
    info::{InfoRequest, InfoResponse},
    record::FLAG_ACCEPTS_CALLS,
};
use futures::future::join_all;

use crate::support::{DEADLINE, Node, config, new_key, pattern, record, request, status_question, until};

#[tokio::test]
async fn nodes_that_share_one_bootstrap_peer_find_each_other() {
    let first = Node::start(config()).await;
    let mut nodes = vec![];
    for _ in 0..5 {
        nodes.push(Node::joining(&[&first]).await);
    }
    let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
    for node in &nodes {
        node.connected_to(first.address).await;
        node.handle.publish(FLAG_ACCEPTS_CALLS, 0, [0; 32]).await.unwrap();
    }
    let handles: Vec<_> = nodes.into_iter().map(Node::echo).collect();
    for (i, handle) in handles.iter().enumerate() {
        for (j, owner) in addresses.iter().enumerate().filter(|(j, _)| i != *j) {
            until("the record is found", async || handle.find(*owner).await.is_ok()).await;
            let call = handle.call(*owner, request(10), pattern(10), DEADLINE).await;
            assert!(call.is_ok(), "{i} calls {j}: {call:?}");
        }
    }
}

#[tokio::test]
async fn a_node_that_never_met_the_owner_finds_it_through_the_directory() {
    // The bootstrap peer keeps no company of its own, so the searcher learns of the owner by asking.
    let (first, owner) = Node::pair().await;
    let seq = owner.handle.publish(FLAG_ACCEPTS_CALLS, 3, [7; 32]).await.unwrap();
    until("the bootstrap peer holds the record", async || first.handle.find(owner.address).await.is_ok())
        .await;
    let searcher = Node::joined(&first).await;
    let record = searcher.handle.find(owner.address).await.unwrap();
    assert_eq!((record.seq, record.listings_count, record.listings_root), (seq, 3, [7; 32]));
    assert_eq!(record.signer(), owner.address);
}

#[tokio::test]
async fn whoever_waits_for_one_owner_shares_one_look_up() {
    let (_first, searcher) = Node::pair().await;
    let absent = new_key().address();
    let calls = (0..20).map(|_| searcher.handle.call(absent, status_question(), Bytes::new(), DEADLINE));
    for result in join_all(calls).await {
        assert_eq!(result.unwrap_err(), CallFailure::NeverStarted(NotStarted::NotFound(absent)));
    }
    assert_eq!(searcher.handle.counters().lookups, 1);
}

#[tokio::test]
async fn a_node_that_left_is_known_to_be_offline() {
    let (first, owner) = Node::pair().await;
    owner.handle.publish(0, 0, [0; 32]).await.unwrap();
    until("the record arrived", async || first.handle.find(owner.address).await.is_ok()).await;
    owner.handle.shutdown().await;
    until("the goodbye arrived", async || first.handle.find(owner.address).await.is_err()).await;
    let call = first.handle.call(owner.address, status_question(), Bytes::new(), DEADLINE).await;
    assert!(matches!(call.unwrap_err(), CallFailure::NeverStarted(_)));
}

#[tokio::test]
async fn sequence_numbers_go_on_above_what_was_saved() {
    let node = Node::start(NetworkConfig { record_seq_start: u64::MAX / 2, ..config() }).await;
    let first = node.handle.publish(0, 0, [0; 32]).await.unwrap();
    let second = node.handle.publish(0, 1, [0; 32]).await.unwrap();
    assert!(u64::MAX / 2 < first && first < second);
    assert_eq!(node.handle.find(node.address).await.unwrap().seq, second);
}

#[tokio::test]
async fn a_node_without_a_known_address_only_asks_the_directory() {
    let node = Node::start(NetworkConfig { allow_private: false, ..config() }).await;
    assert_eq!(node.handle.status().borrow().directory, DirectoryMode::Client);
    let announced = Node::start(NetworkConfig {
        allow_private: false,
        announce: vec!["/ip4/9.9.9.9/tcp/3001".to_owned()],
        ..config()
    })
    .await;
    let mut status = announced.handle.status();
    let status = status.wait_for(|status| status.directory == DirectoryMode::Server).await.unwrap();
    assert_eq!(status.external, ["/ip4/9.9.9.9/tcp/3001"]);
}

#[tokio::test]
async fn a_reader_tells_holders_of_an_older_record_of_the_newest() {
    let key = new_key();
    let (older, newer) = (record(&key, 1, &[]), record(&key, 2, &[]));
    let first = Node::start(config()).await;
    let second = Node::start(config()).await;
    let reader = Node::joining(&[&first, &second]).await;
    reader.connected_to(first.address).await;
    reader.connected_to(second.address).await;
    for (node, record) in [(&first, older), (&second, newer)] {
        let push = InfoRequest::Push(vec![Signed::sign(&record, &key).unwrap()]);
        reader.handle.ask(node.address, push).await.unwrap();
    }
    assert_eq!(reader.handle.find(key.address()).await.unwrap().seq, 2);
    until("the older record is replaced", async || {
        first.handle.find(key.address()).await.is_ok_and(|record| record.seq == 2)
    })
    .await;
}

#[tokio::test]
async fn records_offered_in_a_flood_are_not_all_looked_at() {
    let (node, flooder) = Node::pair().await;
    let mut refused = 0;
    // Twenty pushes of 64 within, at most, two calendar minutes of 240 each.
    for _ in 0..20 {
        let records =
            (0..64).map(|_| new_key()).map(|key| Signed::sign(&record(&key, 1, &[]), &key).unwrap());
        let answer = flooder.handle.ask(node.address, InfoRequest::Push(records.collect())).await.unwrap();
        refused += usize::from(matches!(answer, InfoResponse::Refused { .. }));
    }
    assert!(refused >= 12, "{refused} of 20 refused");
    assert!(node.handle.status().borrow().records <= 480);
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn nodes_of_one_process_meet_without_sockets() {
    let in_process = || NetworkConfig { listen: vec!["/memory/0".to_owned()], ..config() };
    let first = Node::start(in_process()).await;
    let owner = Node::start(NetworkConfig { bootstrap: vec![first.listening()], ..in_process() }).await;
    let consumer = Node::start(NetworkConfig { bootstrap: vec![first.listening()], ..in_process() }).await;
    let owner_address = owner.address;
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 0, [0; 32]).await.unwrap();
    let owner = owner.echo();
    until("the record is found", async || consumer.handle.find(owner_address).await.is_ok()).await;
    consumer.handle.call(owner_address, request(10), pattern(10), DEADLINE).await.unwrap();
    let counted = owner.counters();
    assert!(counted.memory_bytes_sent > 0 && counted.memory_bytes_received > 0, "{counted:?}");

    let public = NetworkConfig { allow_private: false, ..in_process() };
    let refused = farthing_network::Network::start(public).await.unwrap_err();
    assert!(matches!(refused, farthing_network::NetworkError::Listen { .. }), "{refused}");
}
