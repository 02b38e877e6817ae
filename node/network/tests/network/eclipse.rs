//! Peers that surround a node may hide others from it, but neither forge them nor hold it up.

use std::{sync::Arc, time::Duration};

use farthing_directory::Key;
use farthing_network::{CallFailure, NetworkConfig, NotStarted};
use farthing_protocol::{
    NodeRecord, SecretKey, Signed,
    info::{InfoRequest, InfoResponse},
    wire,
};
use futures::StreamExt;
use libp2p::{
    Multiaddr, StreamProtocol, Swarm, identify,
    kad::{self, store::RecordStore},
    request_response::{self, ProtocolSupport},
    swarm::{NetworkBehaviour, SwarmEvent},
};
use tokio::sync::Notify;

use crate::{
    raw::{self, RawCodec, Sent, raw_peer, wallet_keypair},
    support::{
        DEADLINE, Node, QUIC, TCP, config, network, new_key, pattern, record, request, signed_listing, until,
    },
};

const HOSTILE_PEERS: usize = 50;

#[derive(NetworkBehaviour)]
struct Liar {
    identify: identify::Behaviour,
    info: request_response::Behaviour<RawCodec>,
    kad: kad::Behaviour<kad::store::MemoryStore>,
}

/// A member of the directory that answers every question with a lie about one wallet, or with noise.
fn liar(about: &SecretKey, n: usize) -> Swarm<Liar> {
    let keypair = wallet_keypair(&new_key());
    let own = keypair.public().to_peer_id();
    let mut lie =
        wire::encode(&Signed::sign(&record(about, 1000, &["/ip4/127.0.0.1/tcp/1"]), about).unwrap());
    let last = lie.len() - 2;
    lie[last] ^= 1;
    let said = match n % 3 {
        0 => Vec::new(),
        1 => vec![0xff; 100],
        _ => {
            let lie: Signed<_> = wire::decode(&lie).unwrap();
            wire::encode(&InfoResponse::Records(vec![lie]))
        }
    };
    let answer = [&u32::try_from(said.len()).unwrap().to_be_bytes()[..], &said].concat();
    let protocol = |name| StreamProtocol::try_from_owned(name).unwrap();
    let mut settings = kad::Config::new(protocol(network().kad_protocol()));
    settings.set_kbucket_inserts(kad::BucketInserts::Manual);
    let mut directory = kad::Behaviour::with_config(own, kad::store::MemoryStore::new(own), settings);
    directory.set_mode(Some(kad::Mode::Server));
    directory.store_mut().put(kad::Record::new(wire::record_key(about.address()), lie)).unwrap();
    raw::swarm(keypair, network().identify_version(), |identify| Liar {
        identify,
        info: request_response::Behaviour::with_codec(
            RawCodec { answer },
            [(protocol(network().info_protocol()), ProtocolSupport::Full)],
            request_response::Config::default(),
        ),
        kad: directory,
    })
}

async fn lie_to(node: String, about: SecretKey, n: usize) {
    let mut swarm = liar(&about, n);
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    let node: Multiaddr = node.parse().unwrap();
    swarm.dial(node.clone()).unwrap();
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::Behaviour(LiarEvent::Info(request_response::Event::Message {
                message: request_response::Message::Request { channel, .. },
                ..
            })) => {
                let _ = swarm.behaviour_mut().info.send_response(channel, Vec::new());
            }
            // Not so many at once: it tries again.
            SwarmEvent::OutgoingConnectionError { .. } => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                swarm.dial(node.clone()).unwrap();
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn fifty_liars_may_hide_an_owner_but_never_forge_it_and_one_honest_peer_is_enough() {
    let owner = new_key();
    let node = Node::start(config()).await;
    let liars: Vec<_> =
        (0..HOSTILE_PEERS).map(|n| tokio::spawn(lie_to(node.listening(), owner.clone(), n))).collect();
    until("all are connected", async || node.handle.connected_peers().await.len() >= HOSTILE_PEERS).await;

    let found = node.handle.find(owner.address()).await;
    assert_eq!(found.unwrap_err(), NotStarted::NotFound(owner.address()));
    let again = node.handle.find(owner.address()).await;
    assert!(matches!(again, Err(NotStarted::NotFoundLately(..))), "{again:?}");

    // An honest peer joins that holds the record.
    let genuine = Signed::sign(&record(&owner, 7, &[]), &owner).unwrap();
    let (honest, teller) = Node::pair().await;
    teller.handle.ask(honest.address, InfoRequest::Push(vec![genuine])).await.unwrap();
    assert!(honest.handle.find(owner.address()).await.is_ok());
    let meeting = Node::joining(&[&node, &honest]).await;
    meeting.connected_to(node.address).await;
    meeting.connected_to(honest.address).await;

    // The node may not know yet who has just come. Whether the record then is found by asking, or was told
    // unasked, is chance.
    let found = async || node.handle.lookup(owner.address()).await.record;
    until("a peer tells of the owner", async || found().await.is_some()).await;
    let record = found().await.expect("an honest peer holds it");
    assert_eq!((record.seq, record.signer()), (7, owner.address()));
    assert_eq!(node.handle.find(owner.address()).await.unwrap().seq, 7, "and it is not absent any more");
    liars.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A record of long ago, which has expired, and the one that its owner published since.
fn old_and_current(owner: &SecretKey) -> [NodeRecord; 2] {
    let current = record(owner, 7, &[]);
    let issued_secs = current.issued_secs - 7200;
    let old = NodeRecord { seq: 6, issued_secs, expires_secs: issued_secs + 3600, ..current.clone() };
    [old, current]
}

/// Keys of peers, first of the one that a node asks first for this owner.
fn nearest_first<const COUNT: usize>(owner: &SecretKey) -> [SecretKey; COUNT] {
    let place = |key: &SecretKey| Key::of(&wallet_keypair(key).public().to_peer_id().to_bytes());
    let target = Key::of(&wire::record_key(owner.address()));
    let mut keys: [SecretKey; COUNT] = std::array::from_fn(|_| new_key());
    keys.sort_by_key(|key| target.distance(place(key)));
    keys
}

/// A peer that answers whatever `node` asks with this record, as soon as it is served.
async fn telling(
    peer: &SecretKey,
    record: &NodeRecord,
    owner: &SecretKey,
    node: &Node,
) -> Swarm<raw::RawBehaviour> {
    let said = wire::encode(&InfoResponse::Records(vec![Signed::sign(record, owner).unwrap()]));
    let answer = [&u32::try_from(said.len()).unwrap().to_be_bytes()[..], &said].concat();
    let mut swarm = raw_peer(wallet_keypair(peer), network().identify_version(), &answer);
    raw::connect(&mut swarm, &node.listening()).await;
    let mut identified = std::pin::pin!(node.connected_to(peer.address()));
    loop {
        tokio::select! {
            () = &mut identified => break,
            _ = swarm.select_next_some() => {}
        }
    }
    swarm
}

#[tokio::test]
async fn those_who_give_a_record_of_long_ago_do_not_hide_that_its_owner_came_back() {
    let (owner, node) = (new_key(), Node::start(config()).await);
    // Enough that the node asks nobody who comes after them for records, and the honest one is asked last.
    let mut peers = nearest_first::<12>(&owner).to_vec();
    let honest = peers.pop().unwrap();
    let [old, current] = old_and_current(&owner);
    let told = peers.iter().map(|liar| (liar, &old)).chain([(&honest, &current)]);
    let mut serving = Vec::new();
    for (peer, record) in told {
        serving.push(tokio::spawn(raw::serve(telling(peer, record, &owner, &node).await)));
    }
    assert!(node.handle.records().is_empty(), "nobody told of the owner unasked");
    assert_eq!(node.handle.find(owner.address()).await.unwrap().seq, 7);
    serving.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_record_of_long_ago_leaves_the_current_one_more_than_half_a_second() {
    let (owner, node) = (new_key(), Node::start(config()).await);
    let [old, current] = old_and_current(&owner);
    let lying = tokio::spawn(raw::serve(telling(&new_key(), &old, &owner, &node).await));
    let slow = telling(&new_key(), &current, &owner, &node).await;
    let serving = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        raw::serve(slow).await;
    });
    assert_eq!(node.handle.find(owner.address()).await.unwrap().seq, 7);
    lying.abort();
    serving.abort();
}

/// Calls an owner of which one peer tells at once, and another one tells what is newer as soon as the owner is connected. Returns
/// whether the look-up still went on then.
async fn dials_while_it_looks_on() -> bool {
    let (key, node) = (new_key(), Node::start(config()).await);
    let owner = Node::start(NetworkConfig { key: key.clone(), ..config() }).await;
    let [first, newer] = [1, 2].map(|seq| record(&key, seq, &[&owner.listening()]));
    let [one, other, others @ ..] = nearest_first::<10>(&key);
    // With so many the node asks nobody who comes after them for records before it looks for any.
    let mut serving = Vec::new();
    for silent in others {
        let mut swarm = raw_peer(wallet_keypair(&silent), network().identify_version(), &[]);
        raw::connect(&mut swarm, &node.listening()).await;
        serving.push(tokio::spawn(raw::drive(swarm)));
        node.connected_to(silent.address()).await;
    }
    serving.push(tokio::spawn(raw::serve(telling(&one, &first, &key, &node).await)));
    let waiting = telling(&other, &newer, &key, &node).await;
    assert!(node.handle.records().is_empty(), "nobody told of the owner unasked");
    let (handle, wallet) = (node.handle.clone(), owner.address);
    let calling = tokio::spawn(async move { handle.call(wallet, request(10), pattern(10), DEADLINE).await });
    owner.connected_to(node.address).await;
    serving.push(tokio::spawn(raw::serve(waiting)));
    let is_newer_known = || {
        let records = node.handle.records();
        records.iter().any(|record| record.signer() == wallet && record.seq == newer.seq)
    };
    let known = tokio::time::timeout(Duration::from_secs(2), async {
        while !is_newer_known() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let is_known = known.await.is_ok();
    calling.abort();
    serving.iter().for_each(tokio::task::JoinHandle::abort);
    is_known
}

/// Half a second is enough for a connection on loopback, unless the machine is busy.
#[tokio::test]
async fn the_first_record_is_dialled_at_once_while_the_look_up_goes_on_for_a_newer_one() {
    for _ in 0..10 {
        if dials_while_it_looks_on().await {
            return;
        }
    }
    panic!("the owner was never connected before the look-up was over");
}

#[tokio::test]
async fn a_wallet_that_only_silent_peers_were_asked_for_is_looked_for_again() {
    let node = Node::start(config()).await;
    let key = new_key();
    let mut silent = raw_peer(wallet_keypair(&key), network().identify_version(), &[]);
    raw::connect(&mut silent, &node.listening()).await;
    // It takes every question and drops it.
    let silence = tokio::spawn(raw::drive(silent));
    node.connected_to(key.address()).await;
    let absent = new_key().address();
    for _ in 0..2 {
        assert_eq!(node.handle.find(absent).await.unwrap_err(), NotStarted::NotFound(absent));
    }
    silence.abort();
}

#[tokio::test]
async fn a_peer_that_finishes_nothing_it_begins_holds_up_nobody_else() {
    let mut node = Node::start(config()).await;
    let key = new_key();
    let mut staller = raw_peer(wallet_keypair(&key), network().identify_version(), &[]);
    raw::connect(&mut staller, &node.listening()).await;
    let end = Arc::new(Notify::new());
    let peer = *staller.connected_peers().next().unwrap();
    // Half a length each, and then nothing.
    let half = || Sent { silent_until: Some(Arc::clone(&end)), ..vec![0, 0].into() };
    for _ in 0..40 {
        let behaviour = staller.behaviour_mut();
        behaviour.call.send_request(&peer, half());
        behaviour.info.send_request(&peer, half());
        behaviour.sync.send_request(&peer, half());
    }
    let stalling = tokio::spawn(raw::drive(staller));
    assert_eq!(node.syncs.recv().await.unwrap().peer, key.address());

    let honest = Node::joined(&node).await;
    let started = std::time::Instant::now();
    assert!(honest.handle.ping(node.address).await.is_ok());
    let mut session = honest.handle.sync(node.address).await.unwrap();
    session.send(Vec::from("hello").into()).await.unwrap();
    loop {
        let inbound = node.syncs.recv().await.unwrap();
        if inbound.peer == honest.address {
            break;
        }
    }
    assert!(honest.handle.find(new_key().address()).await.is_err(), "the directory answers, too");
    honest.handle.gossip_listing(&signed_listing(&new_key(), 1)).await;
    assert!(started.elapsed() < Duration::from_secs(15));
    stalling.abort();
}

#[tokio::test]
async fn a_look_up_tells_what_every_step_brought() {
    let (first, owner) = Node::pair().await;
    owner.handle.publish(0, 0, [0; 32]).await.unwrap();
    until("the record arrived", async || first.handle.find(owner.address).await.is_ok()).await;
    let searcher = Node::start(NetworkConfig {
        listen: Vec::new(),
        bootstrap: vec![first.listening()],
        gossip: false,
        ..config()
    })
    .await;
    searcher.connected_to(first.address).await;
    let found = searcher.handle.lookup(owner.address).await;
    let names: Vec<_> = found.steps.iter().map(|step| step.name).collect();
    assert_eq!(names, ["self", "connected", "local records", "directory", "peers", "dial"]);
    assert!(found.steps.last().unwrap().helped, "{:#?}", found.steps);
    assert_eq!(found.record.unwrap().signer(), owner.address);

    let absent = new_key().address();
    assert!(searcher.handle.find(absent).await.is_err());
    let looked = searcher.handle.lookup(absent).await;
    assert!(looked.record.is_none());
    let directory = looked.steps.iter().find(|step| step.name == "peers").unwrap();
    assert!(directory.outcome.starts_with("nothing"), "it looked although it was not found lately");
    let own = searcher.handle.lookup(searcher.address).await;
    assert_eq!(own.steps[0].outcome, "this node");
    let call = searcher.handle.ask(absent, InfoRequest::Peers).await;
    assert!(matches!(call, Err(CallFailure::NeverStarted(_))));
}

#[tokio::test]
async fn two_nodes_with_one_wallet_notice_each_other() {
    let hubs = [Node::start(config()).await, Node::start(config()).await];
    let key = new_key();
    let start = |hub: &Node| {
        let bootstrap = vec![hub.listening()];
        Node::start(NetworkConfig { key: key.clone(), listen: Vec::new(), bootstrap, ..config() })
    };
    let twins = [start(&hubs[0]).await, start(&hubs[1]).await];
    let _bridge = Node::joining(&[&hubs[0], &hubs[1]]).await;
    let suspects = |node: &Node| node.handle.status().borrow().duplicate_identity;
    until("one of them is suspicious", async || {
        for twin in &twins {
            twin.handle.publish(0, 0, [0; 32]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        twins.iter().any(suspects)
    })
    .await;
    assert!(!suspects(&hubs[0]) && !suspects(&hubs[1]));
}

#[tokio::test]
async fn two_nodes_with_one_wallet_behind_one_neighbour_are_noticed() {
    let hub = Node::start(config()).await;
    let key = new_key();
    let start = || {
        let bootstrap = vec![hub.listening()];
        Node::start(NetworkConfig { key: key.clone(), listen: Vec::new(), bootstrap, ..config() })
    };
    let twins = [start().await, start().await];
    for twin in &twins {
        twin.connected_to(hub.address).await;
    }
    let suspects = |node: &Node| node.handle.status().borrow().duplicate_identity;
    until("one of them is suspicious", async || {
        // Each speaks after the other's clock went on, and asks before it speaks again.
        for (twin, wait_ms) in twins.iter().zip([1100, 1500]) {
            twin.handle.publish(0, 0, [0; 32]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        twins.iter().any(suspects)
    })
    .await;
    assert!(!suspects(&hub));
}

#[tokio::test]
async fn a_wallet_that_has_all_its_connections_is_let_in_again() {
    let listen = vec![TCP.to_owned(), QUIC.to_owned()];
    let hub = Node::start(NetworkConfig { listen, ..config() }).await;
    let key = new_key();
    let listening = hub.handle.status().borrow().listening.clone();
    let start = |bootstrap: Vec<String>| {
        let (key, listen) = (key.clone(), Vec::new());
        Node::start(NetworkConfig { key, listen, bootstrap, ..config() })
    };
    let first = start(listening.clone()).await;
    let connections = |node: &Node| node.handle.status().borrow().connections;
    until("it is connected over both transports", async || connections(&hub) == 2).await;
    let second = start(listening[..1].to_vec()).await;
    second.connected_to(hub.address).await;
    // Each of the three learns of a connection that begins or ends by itself.
    let all = || [&hub, &first, &second].map(connections);
    until("one of three has made room", async || all() == [2, 1, 1]).await;
}

#[tokio::test]
async fn a_copy_that_is_started_later_is_noticed_by_both_until_it_says_goodbye() {
    let hub = Node::start(config()).await;
    let key = new_key();
    let start = async || {
        let bootstrap = vec![hub.listening()];
        let node =
            Node::start(NetworkConfig { key: key.clone(), listen: Vec::new(), bootstrap, ..config() }).await;
        node.connected_to(hub.address).await;
        node.handle.publish(0, 0, [0; 32]).await.unwrap();
        node
    };
    let original = start().await;
    until("the neighbour holds its record", async || hub.handle.find(original.address).await.is_ok()).await;
    assert!(!original.handle.look_for_twin().await, "it is alone");
    // Clocks tell seconds: what was signed in those in which a node starts may be of its former run.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let copy = start().await;
    until("the original finds it by asking", async || original.handle.look_for_twin().await).await;
    let suspects = |node: &Node| node.handle.status().borrow().duplicate_identity;
    until("each suspects the other", async || suspects(&original) && suspects(&copy)).await;
    copy.handle.shutdown().await;
    until("the original is alone again", async || !original.handle.look_for_twin().await).await;
}

#[tokio::test]
async fn a_node_that_publishes_again_and_again_is_no_twin_of_itself() {
    let hubs = [Node::start(config()).await, Node::start(config()).await];
    let node = Node::joining(&[&hubs[0], &hubs[1]]).await;
    for hub in &hubs {
        node.connected_to(hub.address).await;
    }
    for _ in 0..8 {
        node.handle.publish(0, 0, [0; 32]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for hub in &hubs {
        until("its neighbours hold its record", async || hub.handle.find(node.address).await.is_ok()).await;
    }
    assert!(!node.handle.status().borrow().duplicate_identity);
}
