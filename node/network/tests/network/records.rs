//! Records travel by comparison: nodes that never met an owner dial it without looking for it.

use std::time::Duration;

use farthing_network::{NetworkConfig, NetworkLimits};
use farthing_protocol::{NodeRecord, SecretKey, Signed, info::InfoRequest};

use crate::support::{DEADLINE, Node, config, new_key, pattern, record, request, until};

/// A node that compares records often and is told of none by gossip.
async fn comparing(others: &[&Node]) -> Node {
    let agreement_interval = Duration::from_secs(1);
    let limits = NetworkLimits { agreement_interval, ..NetworkLimits::default() };
    let bootstrap = others.iter().map(|other| other.listening()).collect();
    Node::start(NetworkConfig { bootstrap, limits, gossip: false, ..config() }).await
}

async fn give(teller: &Node, to: &Node, records: Vec<Signed<NodeRecord>>) {
    teller.handle.ask(to.address, InfoRequest::Push(records)).await.unwrap();
}

fn signed(key: &SecretKey, seq: u64, addresses: &[&str]) -> Signed<NodeRecord> {
    Signed::sign(&record(key, seq, addresses), key).unwrap()
}

#[tokio::test]
async fn records_reach_who_never_met_their_owners_and_so_do_goodbyes() {
    let first = Node::start(NetworkConfig { gossip: false, ..config() }).await;
    let reader = comparing(&[&first]).await;
    let teller =
        Node::start(NetworkConfig { bootstrap: vec![first.listening()], gossip: false, ..config() }).await;
    reader.connected_to(first.address).await;
    teller.connected_to(first.address).await;
    // More than anybody is told of at a meeting.
    let keys: Vec<SecretKey> = (0..60).map(|_| new_key()).collect();
    give(&teller, &first, keys.iter().map(|key| signed(key, 1, &[])).collect()).await;
    let holds =
        |key: &SecretKey| reader.handle.records().iter().any(|record| record.signer() == key.address());
    until("all arrived", async || keys.iter().all(holds)).await;

    let mut goodbye = record(&keys[0], 2, &[]);
    goodbye.expires_secs = goodbye.issued_secs;
    give(&teller, &first, vec![Signed::sign(&goodbye, &keys[0]).unwrap()]).await;
    until("the goodbye arrived", async || !holds(&keys[0])).await;
    assert!(keys[1..].iter().all(holds));
    assert_eq!(reader.handle.counters().lookups, 0);
}

#[tokio::test]
async fn a_known_owner_is_dialled_without_a_look_up() {
    let first = Node::start(NetworkConfig { gossip: false, ..config() }).await;
    let reader = comparing(&[&first]).await;
    let key = new_key();
    // Nobody has met it.
    let owner = Node::start(NetworkConfig { key: key.clone(), gossip: false, ..config() }).await;
    let teller =
        Node::start(NetworkConfig { bootstrap: vec![first.listening()], gossip: false, ..config() }).await;
    reader.connected_to(first.address).await;
    teller.connected_to(first.address).await;
    give(&teller, &first, vec![signed(&key, 1, &[&owner.listening()])]).await;
    let address = owner.address;
    let owner = owner.echo();
    until("its record arrived", async || {
        reader.handle.records().iter().any(|record| record.signer() == address)
    })
    .await;
    assert!(reader.handle.call(address, request(10), pattern(10), DEADLINE).await.is_ok());
    assert_eq!(reader.handle.counters().lookups, 0);
    owner.shutdown().await;
}
