//! Whatever strangers say, a node of the public network does not knock inside its own network.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use farthing_network::{Lookup, LookupStep, NetworkConfig};
use farthing_protocol::{Signed, info::InfoRequest};
use futures::StreamExt;
use libp2p::{
    StreamProtocol, Swarm, SwarmBuilder, identify, kad, noise, swarm::NetworkBehaviour, tcp, yamux,
};
use tokio::net::TcpListener;

use crate::{
    raw::wallet_keypair,
    support::{Node, config, network, new_key, record, until},
};

/// Something of one's own that is not for strangers: it only counts who connects.
struct Door {
    port: u16,
    knocks: Arc<AtomicUsize>,
}

impl Door {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let knocks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&knocks);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { port, knocks }
    }

    fn knocks(&self) -> usize {
        self.knocks.load(Ordering::Relaxed)
    }
}

async fn node(allow_private: bool, bootstrap: String) -> Node {
    Node::start(NetworkConfig { allow_private, bootstrap: vec![bootstrap], ..config() }).await
}

fn dial_of(lookup: &Lookup) -> &LookupStep {
    lookup.steps.iter().find(|step| step.name == "dial").expect("a look-up ends with a dial")
}

#[tokio::test]
async fn a_strangers_name_that_leads_inside_is_not_dialled() {
    let (door, stranger) = (Door::new().await, new_key());
    let named = [
        format!("/dns4/localhost/tcp/{}", door.port),
        format!("/dns/localhost/tcp/{}", door.port),
        format!("/ip4/127.0.0.1/tcp/{}", door.port),
    ];
    let named = record(&stranger, 1, &named.each_ref().map(String::as_str));
    let hub = Node::start(config()).await;
    let teller = Node::joining(&[&hub]).await;
    teller.connected_to(hub.address).await;
    let push = InfoRequest::Push(vec![Signed::sign(&named, &stranger).unwrap()]);
    teller.handle.ask(hub.address, push).await.unwrap();

    let public = node(false, hub.listening()).await;
    public.connected_to(hub.address).await;
    let lookup = public.handle.lookup(stranger.address()).await;
    assert_eq!(lookup.record.as_ref().map(|record| record.seq), Some(1), "{lookup:?}");
    let dial = dial_of(&lookup);
    assert!(!dial.helped && dial.outcome.contains("network.allow_private"), "{dial:?}");
    assert_eq!(door.knocks(), 0);

    // On a private network the same record is followed.
    let private = node(true, hub.listening()).await;
    private.connected_to(hub.address).await;
    private.handle.lookup(stranger.address()).await;
    until("the door is knocked at", async || door.knocks() > 0).await;
}

#[tokio::test]
async fn a_bootstrap_node_may_have_a_name_that_leads_inside() {
    let hub = Node::start(config()).await;
    let port = hub.listening().rsplit('/').next().unwrap().to_owned();
    let public = node(false, format!("/dns4/localhost/tcp/{port}")).await;
    public.connected_to(hub.address).await;
}

#[derive(NetworkBehaviour)]
struct Misleading {
    identify: identify::Behaviour,
    kad: kad::Behaviour<kad::store::MemoryStore>,
}

/// A member of the directory that says of a wallet nobody has that its node is behind `door`.
fn misleading(door: &Door) -> Swarm<Misleading> {
    let keypair = wallet_keypair(&new_key());
    let own = keypair.public().to_peer_id();
    let protocol = StreamProtocol::try_from_owned(network().kad_protocol()).unwrap();
    let mut kad =
        kad::Behaviour::with_config(own, kad::store::MemoryStore::new(own), kad::Config::new(protocol));
    kad.set_mode(Some(kad::Mode::Server));
    let nobody = wallet_keypair(&new_key()).public().to_peer_id();
    kad.add_address(&nobody, format!("/ip4/127.0.0.1/tcp/{}", door.port).parse().unwrap());
    kad.add_address(&nobody, format!("/dns4/localhost/tcp/{}", door.port).parse().unwrap());
    let identify =
        identify::Behaviour::new(identify::Config::new(network().identify_version(), keypair.public()));
    let mut swarm = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| Misleading { identify, kad })
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(60)))
        .build();
    // A public address, so that it gets a place in the directory. Nobody dials it: it is connected.
    swarm.add_external_address("/ip4/9.9.9.9/tcp/3001".parse().unwrap());
    swarm
}

/// How often the door was knocked at when a node had asked a misleading member of the directory.
async fn knocks_after_asking(allow_private: bool) -> usize {
    let door = Door::new().await;
    let mut swarm = misleading(&door);
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    while swarm.listeners().next().is_none() {
        swarm.select_next_some().await;
    }
    let at = swarm.listeners().next().unwrap().to_string();
    let running = tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
    let node = node(allow_private, at).await;
    let status = node.handle.status();
    until("it is in the directory", async || status.borrow().directory_peers > 0).await;
    node.handle.lookup(new_key().address()).await;
    running.abort();
    door.knocks()
}

#[tokio::test]
async fn a_liar_in_the_directory_cannot_point_a_public_node_inside() {
    let (public, private) = tokio::join!(knocks_after_asking(false), knocks_after_asking(true));
    assert_eq!(public, 0);
    assert!(private > 0, "on a private network it is followed");
}
