//! Details of a stranger that unpack to far more than they weigh. Nodes look into new services by themselves, so what
//! that may take is bounded for all of them together.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use farthing_bridge::{
    description::{ApiDescription, Operation, Parameter, Place, Schema, Style},
    document,
};
use farthing_network::{Inbound, Network, NetworkConfig};
use farthing_protocol::{
    Listing, SecretKey, ServiceId, ServiceNonce, Signed, Usdc,
    call::ChargePolicy,
    info::{InfoRequest, InfoResponse},
    listing::{Details, ServiceKind},
    wire::NetworkName,
};
use farthing_tests::{simulate::now_secs, world::eventually};
use serde_json::{Value, json};

use crate::support::{Nodes, show};

const NETWORK: &str = "31337";
const SERVICES: u8 = 6;
/// As many as a description may have; each becomes hundreds of bytes in memory.
const VALUES: usize = 190_000;
/// For the one that is shown and the one before it. Six of them take 1.2 GB when a node keeps what it looked into.
const MEMORY_MIB: u64 = 320;

/// Some kilobytes that say as many values as a description may have.
fn bomb() -> Result<Details> {
    let choices: Vec<Value> = vec![json!({ "a": 0 }); VALUES];
    let parameter = Parameter {
        name: "p".to_owned(),
        place: Place::Query,
        style: Style::default(),
        required: false,
        schema: Schema { choices, ..Schema::default() },
        description: String::new(),
        deprecated: false,
        example: None,
    };
    let operation = Operation {
        path: "/a".to_owned(),
        id: "a".to_owned(),
        parameters: vec![parameter],
        ..Operation::default()
    };
    let description = ApiDescription { operations: vec![operation], ..ApiDescription::default() };
    Ok(Details { api: document::encode(&description)?, ..Details::default() })
}

fn listing(number: u8, key: &SecretKey, details: &Details, details_bytes: u32) -> Listing {
    let nonce = ServiceNonce::from_bytes([number; 16]);
    Listing {
        network: NETWORK.to_owned(),
        service: ServiceId::derive(key.address(), nonce),
        owner: key.address(),
        seq: 1,
        name: format!("Heavy {number}"),
        summary: String::new(),
        category: "test".to_owned(),
        tags: Vec::new(),
        kind: ServiceKind::Rest,
        price: Usdc::ZERO,
        charge_policy: ChargePolicy::default(),
        accepts: Vec::new(),
        operations_count: 1,
        details_hash: details.to_blob().1,
        details_bytes,
        created_secs: now_secs(),
        updated_secs: now_secs(),
        tombstone: false,
        paused: false,
        samples_count: 0,
        history: None,
        nonce,
    }
}

/// The most that a process has held, in MiB.
fn held_at_most_mib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.split_whitespace().next().context("no number")?.parse()?;
    Ok(kib / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn details_that_unpack_to_far_more_than_they_weigh_take_no_memory_that_a_node_lacks() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let key = SecretKey::from_bytes(&[7; 32])?;
    let details = tokio::task::spawn_blocking(bomb).await??;
    let (blob, _) = details.to_blob();
    ensure!(blob.len() < 64 * 1024, "{} bytes are not fetched unasked", blob.len());
    let size = u32::try_from(blob.len())?;
    let listings: Vec<Listing> = (1..=SERVICES).map(|number| listing(number, &key, &details, size)).collect();
    let signed: Vec<Signed<Listing>> =
        listings.iter().map(|listing| Signed::sign(listing, &key)).collect::<Result<_, _>>()?;
    let config = NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap: vec![node.loopback_address().await?],
        allow_private: true,
        ..NetworkConfig::new(key, NetworkName::new(NETWORK)?)
    };
    let (owner, Inbound { mut info, .. }) = Network::start(config).await?;
    let fetched = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&fetched);
    let answering = tokio::spawn(async move {
        while let Some(question) = info.recv().await {
            let answer = match &question.request {
                InfoRequest::Blob(_) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    InfoResponse::Blob(Some(blob.clone().into()))
                }
                _ => InfoResponse::Refused("not asked for".to_owned()),
            };
            question.reply.send(answer);
        }
    });
    eventually("the owner is there", async || Ok(node.status().await?.peers > 0)).await?;
    let pid = node.pid().context("the node has ended")?;
    let before = held_at_most_mib(pid)?;
    for listing in &signed {
        eventually("the node is told", async || Ok(owner.gossip_listing(listing).await)).await?;
    }
    eventually("the node looks into the services", async || Ok(fetched.load(Ordering::Relaxed) > 0)).await?;
    for listing in &listings {
        // Answered when it was read, or refused to be.
        eventually("the service is shown", async || Ok(show(&node, listing.service).await.is_ok())).await?;
    }
    let after = held_at_most_mib(pid)?;
    ensure!(after - before < MEMORY_MIB, "{before} MiB, then {after}");
    answering.abort();
    Ok(())
}
