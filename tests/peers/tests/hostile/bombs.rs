//! Details of a stranger that unpack to far more than they weigh. Nodes look into new services by themselves, so what
//! that may take is bounded for all of them together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, ensure};
use farthing_bridge::{
    description::{ApiDescription, Operation, Parameter, Schema},
    document,
};
use farthing_protocol::{
    Listing, SecretKey, Signed,
    info::{InfoRequest, InfoResponse},
    listing::{Details, Pin},
};
use farthing_tests::{
    nodes::{Nodes, show},
    wait::eventually,
};
use serde_json::{Value, json};

use crate::stranger;

const SERVICES: u8 = 6;
/// As many as a description may have; each becomes hundreds of bytes in memory.
const VALUES: usize = 190_000;
/// For one of them: it is given up before the next one is read. Six take 600 MB when a node keeps what it looked into.
const MEMORY_MIB: u64 = 160;

/// Some kilobytes that say as many values as a description may have.
fn bomb() -> Result<Details> {
    let choices: Vec<Value> = vec![json!({ "a": 0 }); VALUES];
    let parameter = Parameter {
        name: "p".to_owned(),
        schema: Schema { choices, ..Schema::default() },
        ..Parameter::default()
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
    let (blob, hash) = details.to_blob();
    ensure!(blob.len() < 64 * 1024, "{} bytes are not fetched unasked", blob.len());
    let pin = Pin { hash, bytes: u32::try_from(blob.len())? };
    let listings: Vec<Listing> = (1..=SERVICES).map(|number| stranger::listing(&key, number, pin)).collect();
    let signed: Vec<Signed<Listing>> =
        listings.iter().map(|listing| Signed::sign(listing, &key)).collect::<Result<_, _>>()?;
    let fetched = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&fetched);
    let owner = stranger::start(key, &node, move |question| {
        let InfoRequest::Blob(_) = question else { return None };
        count.fetch_add(1, Ordering::Relaxed);
        Some(InfoResponse::Blob(Some(blob.clone().into())))
    })
    .await?;
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
    Ok(())
}
