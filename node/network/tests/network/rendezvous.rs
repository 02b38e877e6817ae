//! A start without being told of anybody: nodes that find each other in a DHT of strangers, and what they do when it is away,
//! silent, slow, or lies. The DHT here is the library's own, on loopback; somebody else's is met by whole nodes.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use farthing_network::{NetworkConfig, RendezvousConfig, RendezvousEnd, RendezvousReport};
use farthing_protocol::wire::NetworkName;
use futures::{AsyncRead, AsyncWrite, future::pending};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, Transport,
    core::upgrade::Version,
    identify,
    identity::Keypair,
    kad::{
        self, ProviderRecord, RecordKey,
        store::{MemoryStore, MemoryStoreConfig, RecordStore},
    },
    noise,
    request_response::{self, ProtocolSupport},
    swarm::{self, NetworkBehaviour},
    tcp, yamux,
};
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    proxy::Proxy,
    raw::{self, wallet_keypair},
    round_trips::port_of,
    support::{Node, config, new_key, reserved_port, until},
};

const DHT: StreamProtocol = StreamProtocol::new("/ipfs/kad/1.0.0");
const FIRST: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_secs(2);

/// The network `lab` on the chain 31337, and its key: by `printf farthing/lab/31337 | sha256sum`.
fn lab() -> NetworkName {
    NetworkName::on_chain(Some("lab"), 31_337).unwrap()
}

fn key_of_lab() -> RecordKey {
    const DIGEST: &str = "0332eae9f856cfbedb5ee0dea0f49998d132ade2bbf29931ef39cdf74cd2b22f";
    let bytes = (0..32).map(|at| u8::from_str_radix(&DIGEST[2 * at..2 * at + 2], 16).unwrap());
    RecordKey::from([0x12, 32].into_iter().chain(bytes).collect::<Vec<u8>>())
}

/// A node of the DHT, which keeps entries for others.
#[derive(NetworkBehaviour)]
struct KeeperBehaviour {
    identify: identify::Behaviour,
    kad: kad::Behaviour<MemoryStore>,
}

/// One that takes questions, and answers none.
#[derive(NetworkBehaviour)]
struct SilentBehaviour {
    identify: identify::Behaviour,
    kad: request_response::Behaviour<Silence>,
}

#[derive(Clone, Default)]
struct Silence;

impl request_response::Codec for Silence {
    type Protocol = StreamProtocol;
    type Request = ();
    type Response = ();

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        pending().await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        pending().await
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, _: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        pending().await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, _: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        pending().await
    }
}

/// A stranger that listens on loopback, and where.
async fn stranger<B: NetworkBehaviour>(
    behaviour: impl FnOnce(identify::Behaviour, PeerId) -> B,
) -> (Swarm<B>, Multiaddr) {
    let keypair = Keypair::generate_ed25519();
    let (own, public) = (keypair.public().to_peer_id(), keypair.public());
    let identify = identify::Behaviour::new(identify::Config::new("ipfs/0.1.0".to_owned(), public));
    let transport = tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1)
        .authenticate(noise::Config::new(&keypair).unwrap())
        .multiplex(yamux::Config::default())
        .boxed();
    let settings = swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(60));
    let mut swarm = Swarm::new(transport, behaviour(identify, own), own, settings);
    let address: Multiaddr = raw::listen(&mut swarm).await.parse().unwrap();
    let address = address.with_p2p(own).unwrap();
    (swarm, address)
}

/// Of the DHT, with these entries from the beginning.
async fn keeper(named: Vec<ProviderRecord>) -> (Swarm<KeeperBehaviour>, Multiaddr) {
    stranger(|identify, own| {
        let room = MemoryStoreConfig { max_providers_per_key: 1000, ..MemoryStoreConfig::default() };
        let mut store = MemoryStore::with_config(own, room);
        for record in named {
            store.add_provider(record).unwrap();
        }
        let mut kad = kad::Behaviour::with_config(own, store, kad::Config::new(DHT));
        kad.set_mode(Some(kad::Mode::Server));
        KeeperBehaviour { identify, kad }
    })
    .await
}

/// A DHT of so many nodes that know the first one. It ends when it is dropped.
async fn dht(count: usize, named: &[ProviderRecord]) -> (JoinSet<()>, Vec<Multiaddr>) {
    let (mut running, mut addresses) = (JoinSet::<()>::new(), Vec::<Multiaddr>::new());
    for _ in 0..count {
        let (mut swarm, address) = keeper(named.to_vec()).await;
        if let Some(first) = addresses.first() {
            swarm.dial(first.clone()).unwrap();
        }
        running.spawn(raw::drive(swarm));
        addresses.push(address);
    }
    (running, addresses)
}

fn meeting_at(entrance: &Multiaddr) -> NetworkConfig {
    asking_every(RETRY, entrance)
}

fn asking_every(retry: Duration, entrance: &Multiaddr) -> NetworkConfig {
    let meeting = RendezvousConfig { entrance: vec![entrance.to_string()], first: FIRST, retry };
    NetworkConfig { network: lab(), rendezvous: Some(meeting), ..config() }
}

fn is_listed(node: &Node) -> bool {
    told(node).listed.is_some_and(|visit| visit.end == RendezvousEnd::Listed)
}

fn told(node: &Node) -> RendezvousReport {
    node.handle.status().borrow().rendezvous.clone()
}

fn asked(node: &Node) -> Option<RendezvousEnd> {
    told(node).asked.map(|visit| visit.end)
}

#[tokio::test]
async fn nodes_that_nobody_told_of_each_other_meet_in_the_dht_and_bring_nobody_of_it_along() {
    let (_running, entrance) = dht(3, &[]).await;
    let one = Node::start(meeting_at(&entrance[0])).await;
    let other = Node::start(meeting_at(&entrance[1])).await;
    one.connected_to(other.address).await;
    until("both are listed, and met", async || {
        [&one, &other].into_iter().all(|node| is_listed(node) && node.handle.status().borrow().peers == 1)
    })
    .await;
    for node in [&one, &other] {
        let status = node.handle.status().borrow().clone();
        assert!(status.directory_peers <= 1, "{status:?}");
        let counted = node.handle.counters();
        assert_eq!(counted.peers_of_other_networks, 0);
        assert!(counted.rendezvous_listed > 0 && status.rendezvous.is_needed, "{counted:?}");
    }
    let found = [&one, &other].map(|node| {
        let counted = node.handle.counters();
        counted.rendezvous_found.min(counted.rendezvous_nodes)
    });
    assert!(found.iter().any(|count| *count > 0), "one of them found the other: {found:?}");
    // A network of another name has another key.
    let network = NetworkName::on_chain(Some("elsewhere"), 31_337).unwrap();
    let elsewhere = Node::start(NetworkConfig { network, ..meeting_at(&entrance[0]) }).await;
    until("it has asked", async || asked(&elsewhere).is_some()).await;
    assert_eq!(asked(&elsewhere), Some(RendezvousEnd::Found { nodes: 0 }));
    let counted = elsewhere.handle.counters();
    assert!(counted.rendezvous_nobody > 0 && counted.rendezvous_nodes == 0, "{counted:?}");
}

#[tokio::test]
async fn a_node_that_listens_nowhere_asks_and_is_not_listed() {
    let (_running, entrance) = dht(1, &[]).await;
    let consumer = Node::start(NetworkConfig { listen: Vec::new(), ..meeting_at(&entrance[0]) }).await;
    until("it has asked", async || asked(&consumer).is_some()).await;
    let owner = Node::start(meeting_at(&entrance[0])).await;
    consumer.connected_to(owner.address).await;
    assert_eq!(told(&consumer).listed, None);
}

/// Entries of so many wallets that all name the address of somebody else, who counts those that come.
async fn lies(count: usize) -> (JoinSet<()>, Vec<ProviderRecord>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let there: Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
    let knocks = Arc::new(AtomicUsize::new(0));
    let (mut accepting, counted) = (JoinSet::<()>::new(), Arc::clone(&knocks));
    accepting.spawn(async move {
        loop {
            drop(listener.accept().await);
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let lie = || {
        let liar = wallet_keypair(&new_key()).public().to_peer_id();
        ProviderRecord::new(key_of_lab(), liar, vec![there.clone()])
    };
    (accepting, (0..count).map(|_| lie()).collect(), knocks)
}

#[tokio::test]
async fn the_real_node_is_found_among_those_who_name_the_address_of_somebody_else() {
    let (_accepting, named, knocks) = lies(19).await;
    let (_running, entrance) = dht(1, &named).await;
    // All twenty have their turn before they are named again.
    let patient = || asking_every(Duration::from_secs(20), &entrance[0]);
    let real = Node::start(patient()).await;
    until("the real one is listed", async || is_listed(&real)).await;
    let node = Node::start(NetworkConfig { listen: Vec::new(), ..patient() }).await;
    node.connected_to(real.address).await;
    assert!(knocks.load(Ordering::Relaxed) > 0, "nobody was tried in vain");
    assert_eq!(node.handle.status().borrow().peers, 1);
}

#[tokio::test]
async fn of_many_who_are_named_few_are_tried() {
    let (_accepting, named, knocks) = lies(60).await;
    let (_running, entrance) = dht(1, &named).await;
    let once = asking_every(Duration::from_secs(3600), &entrance[0]);
    let alone = NetworkConfig { listen: Vec::new(), ..once };
    let node = Node::start(alone).await;
    until("it has tried them", async || node.handle.counters().dials_failed >= 20).await;
    assert_eq!(asked(&node), Some(RendezvousEnd::Found { nodes: 20 }), "of 60 who are named");
    assert_eq!(node.handle.counters().dials_failed, 20);
    assert!(knocks.load(Ordering::Relaxed) <= 20);
}

#[tokio::test]
async fn a_node_goes_on_otherwise_where_the_dht_is_away_and_says_so() {
    let friend = Node::start(NetworkConfig { network: lab(), ..config() }).await;
    let (_reserved, port) = reserved_port();
    let entrance: Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
    let node =
        Node::start(NetworkConfig { bootstrap: vec![friend.listening()], ..meeting_at(&entrance) }).await;
    node.connected_to(friend.address).await;
    until("it has tried to ask", async || asked(&node).is_some()).await;
    let reason = format!("{entrance} refuses the connection");
    assert_eq!(asked(&node), Some(RendezvousEnd::NoEntrance { reason }));
    assert!(node.handle.counters().rendezvous_ask_no_entrance > 0);
    assert_eq!(node.handle.status().borrow().peers, 1);
}

#[tokio::test]
async fn a_node_goes_on_otherwise_where_nobody_in_the_dht_answers_and_says_so() {
    let friend = Node::start(NetworkConfig { network: lab(), ..config() }).await;
    let (silent, entrance) = stranger(|identify, _| SilentBehaviour {
        identify,
        kad: request_response::Behaviour::new(
            [(DHT, ProtocolSupport::Full)],
            request_response::Config::default(),
        ),
    })
    .await;
    let mut running = JoinSet::<()>::new();
    running.spawn(raw::drive(silent));
    let listen = Vec::new();
    let bootstrap = vec![friend.listening()];
    let node = Node::start(NetworkConfig { listen, bootstrap, ..meeting_at(&entrance) }).await;
    node.connected_to(friend.address).await;
    until("it has given up", async || asked(&node).is_some()).await;
    assert_eq!(asked(&node), Some(RendezvousEnd::NoAnswer));
    assert!(node.handle.counters().rendezvous_ask_no_answer > 0);
    assert_eq!(node.handle.status().borrow().peers, 1);
}

/// The way to the DHT on which each piece takes this long: several of these make an answer, and it still comes in time.
const SLOW: Duration = Duration::from_millis(200);

/// The same entrance behind a slow way, which ends when the proxy is dropped.
async fn slow(entrance: &Multiaddr) -> (Proxy, Multiaddr) {
    let target = entrance.to_string();
    let (at, keeper) = target.split_once("/p2p/").unwrap();
    let proxy = Proxy::delaying(port_of(at), SLOW).await;
    let entrance = format!("{}/p2p/{keeper}", proxy.address()).parse().unwrap();
    (proxy, entrance)
}

#[tokio::test]
async fn nodes_meet_in_a_dht_that_is_slow_and_answers_in_time() {
    let (_running, entrance) = dht(1, &[]).await;
    let (_way, entrance) = slow(&entrance[0]).await;
    let patient = || asking_every(Duration::from_secs(20), &entrance);
    let listed = Node::start(patient()).await;
    until("it is listed", async || is_listed(&listed)).await;
    let asking = Node::start(NetworkConfig { listen: Vec::new(), ..patient() }).await;
    asking.connected_to(listed.address).await;
    assert_eq!(asked(&asking), Some(RendezvousEnd::Found { nodes: 1 }));
}

#[tokio::test]
async fn what_listens_at_the_entrance_and_is_no_dht_is_told_as_that() {
    let other = Node::start(config()).await;
    let node = Node::start(meeting_at(&other.listening().parse().unwrap())).await;
    until("it has given up", async || asked(&node).is_some()).await;
    let Some(RendezvousEnd::NoEntrance { reason }) = asked(&node) else { panic!("{:?}", asked(&node)) };
    assert!(reason.contains("not a node of the DHT"), "{reason}");
}
