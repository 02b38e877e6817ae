//! Whatever strangers say, a node of the public network does not knock inside its own network.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use farthing_network::{Lookup, LookupStep, NetworkConfig};
use farthing_protocol::{Signed, info::InfoRequest};
use libp2p::Swarm;
use tokio::net::TcpListener;

use crate::{
    before::{Before, before},
    raw::{self, wallet_keypair},
    support::{Node, config, new_key, record, until},
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
    let (hub, teller) = Node::pair().await;
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

/// A member of the directory that says of a wallet nobody has that its node is behind `door`, and where it listens.
async fn misleading(door: &Door) -> (Swarm<Before>, String) {
    let (mut swarm, listening) = before().await;
    let nobody = wallet_keypair(&new_key()).public().to_peer_id();
    for inside in ["/ip4/127.0.0.1", "/dns4/localhost"] {
        let behind = format!("{inside}/tcp/{}", door.port).parse().unwrap();
        swarm.behaviour_mut().kad.add_address(&nobody, behind);
    }
    // A public address, so that it gets a place in the directory. Nobody dials it: it is connected.
    swarm.add_external_address("/ip4/9.9.9.9/tcp/3001".parse().unwrap());
    (swarm, listening)
}

/// How often the door was knocked at when a node had asked a misleading member of the directory.
async fn knocks_after_asking(allow_private: bool) -> usize {
    let door = Door::new().await;
    let (swarm, at) = misleading(&door).await;
    let running = tokio::spawn(raw::drive(swarm));
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
