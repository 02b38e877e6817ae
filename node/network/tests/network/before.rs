//! Nodes of before, whose directory was libp2p's own Kademlia: they find through nodes of today, and are found through.

use farthing_network::NetworkConfig;
use farthing_protocol::{NodeRecord, SecretKey, Signed, info::InfoRequest, wire};
use futures::StreamExt;
use libp2p::{
    Multiaddr, StreamProtocol, Swarm, identify,
    kad::{
        self, GetRecordOk, PeerRecord, QueryResult, Quorum, Record, RecordKey,
        store::{MemoryStore, RecordStore},
    },
    request_response::{Event, Message},
    swarm::{NetworkBehaviour, SwarmEvent},
};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    raw::{self, RawBehaviourEvent, raw_peer, wallet_keypair},
    support::{DEADLINE, Node, config, network, new_key, record, until},
};

#[derive(NetworkBehaviour)]
pub(crate) struct Before {
    identify: identify::Behaviour,
    pub(crate) kad: kad::Behaviour<MemoryStore>,
}

fn kad_protocol() -> StreamProtocol {
    StreamProtocol::try_from_owned(network().kad_protocol()).unwrap()
}

/// A node of before that serves the directory, and where it listens.
pub(crate) async fn before() -> (Swarm<Before>, String) {
    let keypair = wallet_keypair(&new_key());
    let own = keypair.public().to_peer_id();
    let mut kad = kad::Behaviour::with_config(own, MemoryStore::new(own), kad::Config::new(kad_protocol()));
    kad.set_mode(Some(kad::Mode::Server));
    let version = network().identify_version();
    let mut swarm = raw::swarm(keypair, version, |identify| Before { identify, kad });
    let listening = raw::listen(&mut swarm).await;
    (swarm, listening)
}

/// Connects to a node, and returns the protocols that it names once the directory may know of it.
async fn meet(swarm: &mut Swarm<Before>, node: &Node) -> Vec<StreamProtocol> {
    let at: Multiaddr = node.listening().parse().unwrap();
    swarm.dial(at.clone()).unwrap();
    loop {
        if let SwarmEvent::Behaviour(BeforeEvent::Identify(identify::Event::Received {
            peer_id, info, ..
        })) = swarm.select_next_some().await
        {
            swarm.behaviour_mut().kad.add_address(&peer_id, at);
            return info.protocols;
        }
    }
}

/// Runs until it is aborted; what is put there is told.
fn serve(mut swarm: Swarm<Before>, watched: RecordKey) -> (JoinHandle<()>, mpsc::Receiver<Vec<u8>>) {
    let (told, puts) = mpsc::channel(16);
    let running = tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
            if let Some(record) = swarm.behaviour_mut().kad.store_mut().get(&watched) {
                // The test may have seen enough.
                let _ = told.try_send(record.value.clone());
            }
        }
    });
    (running, puts)
}

/// A record as it travels.
fn encoded(key: &SecretKey, seq: u64, addresses: &[&str]) -> Vec<u8> {
    wire::encode(&Signed::sign(&record(key, seq, addresses), key).unwrap())
}

fn record_key(key: &SecretKey) -> RecordKey {
    RecordKey::from(wire::record_key(key.address()))
}

#[tokio::test]
async fn a_node_of_before_finds_and_puts_records_through_a_node_of_today() {
    let (node, teller) = Node::pair().await;
    // One that it knows, and that nobody put into the directory.
    let owner = new_key();
    let told = InfoRequest::Push(vec![Signed::sign(&record(&owner, 7, &[]), &owner).unwrap()]);
    teller.handle.ask(node.address, told).await.unwrap();
    let (mut swarm, _) = before().await;
    assert!(meet(&mut swarm, &node).await.contains(&kad_protocol()), "it says that it serves");

    swarm.behaviour_mut().kad.get_record(record_key(&owner));
    let found = loop {
        if let SwarmEvent::Behaviour(BeforeEvent::Kad(kad::Event::OutboundQueryProgressed {
            result: QueryResult::GetRecord(result),
            ..
        })) = swarm.select_next_some().await
        {
            match result {
                Ok(GetRecordOk::FoundRecord(PeerRecord { record, .. })) => break record.value,
                Ok(_) => {}
                Err(error) => panic!("not found: {error}"),
            }
        }
    };
    let found: Signed<NodeRecord> = wire::decode(&found).unwrap();
    let found = found.verify().unwrap();
    assert_eq!((found.signer(), found.seq), (owner.address(), 7));

    let put = new_key();
    let value = encoded(&put, 7, &[]);
    swarm.behaviour_mut().kad.put_record(Record::new(record_key(&put), value), Quorum::One).unwrap();
    loop {
        if let SwarmEvent::Behaviour(BeforeEvent::Kad(kad::Event::OutboundQueryProgressed {
            result: QueryResult::PutRecord(result),
            ..
        })) = swarm.select_next_some().await
        {
            result.expect("acknowledged by the node of today");
            break;
        }
    }
    let known = || node.handle.records().into_iter().find(|record| record.signer() == put.address());
    until("it is kept", async || known().is_some_and(|record| record.seq == 7)).await;
}

#[tokio::test]
async fn a_node_of_today_finds_and_puts_records_through_a_node_of_before() {
    let (mut swarm, at) = before().await;
    let wanted = new_key();
    let value = encoded(&wanted, 7, &[]);
    swarm.behaviour_mut().kad.store_mut().put(Record::new(record_key(&wanted), value)).unwrap();
    let key = new_key();
    let (running, mut puts) = serve(swarm, record_key(&key));
    let node =
        Node::start(NetworkConfig { key: key.clone(), bootstrap: vec![at], gossip: false, ..config() }).await;
    let status = node.handle.status();
    until("it has a place in the directory", async || status.borrow().directory_peers == 1).await;
    let found = node.handle.find(wanted.address()).await.unwrap();
    assert_eq!((found.signer(), found.seq), (wanted.address(), 7));

    node.handle.publish(0, 0, [0; 32]).await.unwrap();
    let kept = tokio::time::timeout(DEADLINE, puts.recv()).await.expect("the record was put");
    let kept: Signed<NodeRecord> = wire::decode(&kept.unwrap()).unwrap();
    assert_eq!(kept.verify().unwrap().signer(), node.address);
    running.abort();
}

#[tokio::test]
async fn who_gives_forged_records_to_whoever_looks_for_them_is_blocked() {
    let (mut swarm, at) = before().await;
    let wanted = new_key();
    let mut forged = encoded(&wanted, 7, &[]);
    let last = forged.len() - 2;
    forged[last] ^= 1;
    swarm.behaviour_mut().kad.store_mut().put(Record::new(record_key(&wanted), forged)).unwrap();
    let (running, _puts) = serve(swarm, record_key(&new_key()));
    let node = Node::start(NetworkConfig { bootstrap: vec![at], gossip: false, ..config() }).await;
    let status = node.handle.status();
    until("it has a place in the directory", async || status.borrow().directory_peers == 1).await;
    for n in 0..5 {
        assert_eq!(node.handle.counters().peers_blocked, 0, "after {n} of them");
        assert!(node.handle.lookup(wanted.address()).await.record.is_none());
    }
    until("it is blocked", async || node.handle.counters().peers_blocked == 1).await;
    running.abort();
}

#[tokio::test]
async fn the_first_record_is_dialled_at_once_while_the_look_up_goes_on() {
    let key = new_key();
    let owner = Node::start(NetworkConfig { key: key.clone(), gossip: false, ..config() }).await;
    // It has the record, and tells nobody of it who does not look for it.
    let (mut holder, at) = before().await;
    let value = encoded(&key, 7, &[&owner.listening()]);
    holder.behaviour_mut().kad.store_mut().put(Record::new(record_key(&key), value)).unwrap();
    let (holding, _puts) = serve(holder, record_key(&new_key()));
    let searcher = Node::start(NetworkConfig { bootstrap: vec![at], gossip: false, ..config() }).await;
    // It answers nothing, so that the look-up does not end before its time.
    let silent = new_key();
    let mut swarm = raw_peer(wallet_keypair(&silent), network().identify_version(), &[]);
    raw::connect(&mut swarm, &searcher.listening()).await;
    let silence = tokio::spawn(async move {
        let mut asked = Vec::new();
        loop {
            if let SwarmEvent::Behaviour(RawBehaviourEvent::Info(Event::Message {
                message: Message::Request { channel, .. },
                ..
            })) = swarm.select_next_some().await
            {
                asked.push(channel);
            }
        }
    });
    searcher.connected_to(silent.address()).await;
    let status = searcher.handle.status();
    until("it has a place in the directory", async || status.borrow().directory_peers == 1).await;

    tokio::select! {
        biased;
        connected = searcher.handle.connect(owner.address) => connected.unwrap(),
        found = searcher.handle.find(owner.address) => panic!("the look-up ended first: {found:?}"),
    }
    holding.abort();
    silence.abort();
}

#[tokio::test]
async fn a_node_that_nobody_can_ask_does_not_say_that_it_serves_the_directory() {
    let (mut swarm, _) = before().await;
    let node = Node::start(NetworkConfig { allow_private: false, ..config() }).await;
    assert!(!meet(&mut swarm, &node).await.contains(&kad_protocol()));
    let (mut swarm, _) = before().await;
    let announce = vec!["/ip4/9.9.9.9/tcp/3001".to_owned()];
    let announced = Node::start(NetworkConfig { allow_private: false, announce, ..config() }).await;
    assert!(meet(&mut swarm, &announced).await.contains(&kad_protocol()));
}
