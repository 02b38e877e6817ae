//! A wallet is free, and so are a record that says it is at somebody's address and listings that nobody has details of.
//! Such a listing must not make the nodes of the network knock there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::{Result, ensure};
use farthing_network::NetworkHandle;
use farthing_peers::simulate::now_secs;
use farthing_protocol::{
    Listing, NodeRecord, SecretKey, Signed,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::Pin,
};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    nodes::{Nodes, show},
    wait::eventually,
};
use libp2p::Multiaddr;
use tokio::net::TcpListener;

use crate::stranger::{self, NETWORK};

/// With so many neighbours a node seeks no further ones of its own accord.
const NEIGHBOURS: u8 = 8;
const VERSIONS: u64 = 12;
const LOOKS: u64 = 10;

/// Somebody's server, which counts who connects to it.
struct Victim {
    port: u16,
    knocks: Arc<AtomicU64>,
}

impl Victim {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let knocks = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&knocks);
        tokio::spawn(async move {
            while let Ok(knock) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                drop(knock);
            }
        });
        Ok(Self { port, knocks })
    }

    fn knocks(&self) -> u64 {
        self.knocks.load(Ordering::SeqCst)
    }
}

fn listing(owner: &SecretKey, seq: u64) -> Listing {
    Listing { seq, ..stranger::listing(owner, 1, Pin { hash: details_hash(seq), bytes: 100 }) }
}

fn details_hash(seq: u64) -> [u8; 32] {
    keccak256(&[b"details that nobody has", &seq.to_be_bytes()])
}

fn record(owner: &SecretKey, port: u16) -> Result<NodeRecord> {
    let address: Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse()?;
    Ok(NodeRecord {
        network: NETWORK.to_owned(),
        public_key: owner.public_key(),
        net_key: None,
        seq: 1,
        issued_secs: now_secs(),
        expires_secs: now_secs() + 3600,
        flags: 0,
        protocol_min: 1,
        protocol_max: 1,
        addresses: vec![address.to_vec().into()],
        listings_count: 1,
        listings_root: [0; 32],
        agent: "test".to_owned(),
    })
}

/// A neighbour in this process that has no content, and notes the newest version whose details it was asked for.
async fn neighbour(number: u8, node: &NodeProcess, asked: &Arc<AtomicU64>) -> Result<NetworkHandle> {
    let asked = Arc::clone(asked);
    let note = move |question: &InfoRequest| {
        let InfoRequest::Blob(hash) = question else { return None };
        let version = (1..=VERSIONS).find(|seq| details_hash(*seq) == *hash);
        asked.fetch_max(version.unwrap_or(0), Ordering::SeqCst);
        Some(InfoResponse::Blob(None))
    };
    stranger::start(SecretKey::from_bytes(&[100 + number; 32])?, node, note).await
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_of_an_owner_that_is_not_where_its_record_says_make_no_node_knock_there() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let (victim, owner) = (Victim::start().await?, SecretKey::from_bytes(&[7; 32])?);
    let asked = Arc::new(AtomicU64::new(0));
    let mut neighbours = Vec::new();
    for number in 0..NEIGHBOURS {
        neighbours.push(neighbour(number, &node, &asked).await?);
    }
    eventually("the node has company", async || Ok(node.status().await?.peers >= u64::from(NEIGHBOURS)))
        .await?;
    let (teller, wallet) = (&neighbours[0], node.status().await?.address.0);
    let record = Signed::sign(&record(&owner, victim.port)?, &owner)?;
    let told = teller.ask(wallet, InfoRequest::Push(vec![record])).await?;
    ensure!(told == InfoResponse::Done, "{told:?}");

    for seq in 1..=VERSIONS {
        let signed = Signed::sign(&listing(&owner, seq), &owner)?;
        eventually("the node is told", async || Ok(teller.gossip_listing(&signed).await)).await?;
        // Whoever would dial the owner would do so first.
        eventually("the node looks for the details", async || Ok(asked.load(Ordering::SeqCst) == seq))
            .await?;
    }
    ensure!(victim.knocks() == 0, "{} knocks of {VERSIONS} versions", victim.knocks());

    // A person who looks makes the node dial, and the more rarely the more often that was in vain.
    let (started, service) = (Instant::now(), listing(&owner, VERSIONS).service);
    for _ in 0..LOOKS {
        let shown = show(&node, service).await?;
        ensure!(shown.details_missing.is_some(), "{shown:?}");
    }
    // After pauses of 1, 2, 4, … seconds.
    let dials = 1 + u64::from((started.elapsed().as_secs() + 1).ilog2());
    let knocks = victim.knocks();
    ensure!((1..=dials).contains(&knocks), "{knocks} knocks of {LOOKS} looks in {:?}", started.elapsed());
    Ok(())
}
