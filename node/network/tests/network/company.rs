//! A node finds its way back: through the peers it met, through losses, through a damaged book.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use farthing_network::{NetworkConfig, NetworkLimits};
use farthing_protocol::{Address, SecretKey, Signed, info::InfoRequest, wire, wire::NetworkName};
use redb::{Database, TableDefinition};
use tempfile::TempDir;

use crate::support::{
    DEADLINE, Node, config, new_key, record, reserved_port, status_answer, status_question, until,
};

const FORMAT: TableDefinition<&str, &str> = TableDefinition::new("format");
const RECORDS: TableDefinition<[u8; 20], &[u8]> = TableDefinition::new("records");

fn remembering(dir: &Path) -> NetworkConfig {
    NetworkConfig { state_dir: Some(dir.to_owned()), ..config() }
}

/// Meets `others` once, so that the book in `dir` knows them.
async fn meet(dir: &Path, others: &[&Node]) {
    let bootstrap = others.iter().map(|other| other.listening()).collect();
    let node = Node::start(NetworkConfig { bootstrap, ..remembering(dir) }).await;
    for other in others {
        node.connected_to(other.address).await;
    }
    assert_eq!(node.handle.status().borrow().peers_known, others.len());
    node.handle.shutdown().await;
}

#[tokio::test]
async fn a_restarted_node_returns_to_those_it_met() {
    let dir = TempDir::new().unwrap();
    let (first, second) = (Node::start(config()).await, Node::start(config()).await);
    meet(dir.path(), &[&first, &second]).await;
    let returned = Node::start(remembering(dir.path())).await;
    returned.connected_to(first.address).await;
    returned.connected_to(second.address).await;
}

#[tokio::test]
async fn a_book_of_before_the_chain_was_part_of_the_name_is_used_on() {
    let dir = TempDir::new().unwrap();
    let on = |name: &str| NetworkConfig { network: NetworkName::new(name).unwrap(), ..config() };
    let other = Node::start(on("lab-31337")).await;
    let remembering = || NetworkConfig { state_dir: Some(dir.path().to_owned()), ..on("lab-31337") };
    let node = Node::start(NetworkConfig { bootstrap: vec![other.listening()], ..remembering() }).await;
    node.connected_to(other.address).await;
    node.handle.shutdown().await;
    rename_network(dir.path(), "lab");
    let returned = Node::start(remembering()).await;
    returned.connected_to(other.address).await;
    returned.handle.shutdown().await;
    assert!(!dir.path().join("network.redb.damaged-1").exists());

    // One of another network is not.
    rename_network(dir.path(), "bal");
    let stranger = Node::start(remembering()).await;
    assert_eq!(stranger.handle.status().borrow().peers_known, 0);
    assert!(dir.path().join("network.redb.damaged-1").exists());
}

/// Makes the book in `dir` one of another network.
fn rename_network(dir: &Path, name: &str) {
    let database = Database::open(dir.join("network.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(FORMAT).unwrap().insert("network", name).unwrap();
    transaction.commit().unwrap();
}

/// A node on a port of its own, so that it can come back.
async fn at_port(key: SecretKey, port: u16) -> Node {
    Node::start(NetworkConfig { key, listen: vec![format!("/ip4/127.0.0.1/tcp/{port}")], ..config() }).await
}

#[tokio::test]
async fn after_losing_everybody_a_node_returns_by_itself() {
    let dir = TempDir::new().unwrap();
    let (_reserved, port) = reserved_port();
    let key = new_key();
    let only = at_port(key.clone(), port).await;
    meet(dir.path(), &[&only]).await;
    let lonely = Node::start(remembering(dir.path())).await;
    lonely.connected_to(only.address).await;
    only.handle.shutdown().await;
    until("everybody is gone", async || lonely.handle.connected_peers().await.is_empty()).await;
    let again = at_port(key, port).await;
    lonely.connected_to(again.address).await;
}

#[tokio::test]
async fn a_book_that_cannot_be_read_is_set_aside_and_a_new_one_begun() {
    let other = Node::start(config()).await;
    for what in ["garbage", "another network", "another store", "a folder"] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("network.redb");
        match what {
            "garbage" => std::fs::write(&path, [0xa5; 10_000]).unwrap(),
            "a folder" => std::fs::create_dir(&path).unwrap(),
            "another store" => {
                let store = Database::create(&path).unwrap();
                let transaction = store.begin_write().unwrap();
                transaction.open_table(TableDefinition::<u32, u32>::new("books")).unwrap();
                transaction.commit().unwrap();
            }
            _ => {
                let network = NetworkName::new("elsewhere").unwrap();
                let node = Node::start(NetworkConfig { network, ..remembering(dir.path()) }).await;
                node.handle.shutdown().await;
            }
        }
        meet(dir.path(), &[&other]).await;
        assert!(dir.path().join("network.redb.damaged-1").exists(), "{what}");
        let returned = Node::start(remembering(dir.path())).await;
        returned.connected_to(other.address).await;
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_done_without() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "in the way").unwrap();
    let other = Node::start(config()).await;
    meet(&file.join("below"), &[&other]).await;
}

#[tokio::test]
async fn records_are_known_again_after_a_restart_unless_somebody_changed_them() {
    let dir = TempDir::new().unwrap();
    let (key, victim) = (new_key(), new_key());
    let genuine = Signed::sign(&record(&key, 5, &[]), &key).unwrap();
    let holder = Node::start(remembering(dir.path())).await;
    let teller = Node::joined(&holder).await;
    teller.handle.ask(holder.address, InfoRequest::Push(vec![genuine])).await.unwrap();
    holder.handle.shutdown().await;
    {
        let database = Database::open(dir.path().join("network.redb")).unwrap();
        let mut forged = wire::encode(&Signed::sign(&record(&victim, 6, &[]), &victim).unwrap());
        let last = forged.len() - 2;
        forged[last] ^= 1;
        let transaction = database.begin_write().unwrap();
        transaction.open_table(RECORDS).unwrap().insert(*victim.address().as_bytes(), &*forged).unwrap();
        transaction.commit().unwrap();
    }
    let returned = Node::start(remembering(dir.path())).await;
    until("the record is known again", async || returned.handle.records().iter().any(|r| r.seq == 5)).await;
    assert!(returned.handle.records().iter().all(|record| record.signer() != victim.address()));
}

/// A node that has company enough, so that it meets others only through the directory. Without gossip, which might
/// choose any of them as a neighbour.
async fn with_company(company: &[Node]) -> Node {
    let limits = NetworkLimits { contact_idle_max: Duration::from_secs(4), ..NetworkLimits::default() };
    let bootstrap = company.iter().map(Node::listening).collect();
    let node = Node::start(NetworkConfig { bootstrap, limits, gossip: false, ..config() }).await;
    for other in company {
        node.connected_to(other.address).await;
        other.connected_to(node.address).await;
    }
    node
}

#[tokio::test]
async fn whom_only_the_directory_asked_is_let_go_while_company_and_callers_stay() {
    let mut company = Vec::new();
    for _ in 0..8 {
        company.push(Node::start(config()).await);
    }
    let mut called = with_company(&company).await;
    let (passed, node) = (with_company(&company).await, with_company(&company).await);
    let connected_since = async |other: Address| {
        node.handle.peers().await.into_iter().find(|peer| peer.address == other).map(|peer| peer.since)
    };
    let begun = connected_since(company[0].address).await;
    let owner = called.address;
    tokio::spawn(async move {
        while let Some(call) = called.calls.recv().await {
            call.reply.send(status_answer(), Bytes::new());
        }
    });

    // Neither has a record, so all that looking for them brings is a connection to those who might know.
    until("somebody whom the directory asked was called", async || {
        node.handle.lookup(owner).await;
        node.handle.call(owner, status_question(), Bytes::new(), DEADLINE).await.is_ok()
    })
    .await;
    let called_over = connected_since(owner).await;
    node.handle.lookup(passed.address).await;
    until("the directory asked everybody", async || node.handle.status().borrow().peers_known == 10).await;
    until("it is let go", async || connected_since(passed.address).await.is_none()).await;
    assert_eq!(connected_since(owner).await, called_over, "it may be called again");
    assert_eq!(connected_since(company[0].address).await, begun, "it was dialled on purpose");
}
