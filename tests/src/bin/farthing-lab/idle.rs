//! What nodes send and receive while nobody wants anything of them, with everything on that is shipped: catalogs, records,
//! gossip, and relays, of which the owner has two. Nobody plays the public DHT, so the rendezvous is off.
//!
//! Bytes are those of each node's interface, headers of IP included, and without the questions to the chain.

use std::time::{Duration, Instant};

use anyhow::Result;
use farthing_control::endpoint;
use farthing_tests::{
    lab::{Place, passing::Passed},
    market::{CHAIN_PORT, Market, Setup},
    report::{Progress, print_promise, print_table},
};
use serde::Serialize;

use crate::{keep, open};

/// Two sessions of each with a neighbour.
pub const SECONDS: u32 = 600;
/// With the pauses that are shipped.
const RELAYED_WITHIN: Duration = Duration::from_secs(900);
/// Between the relays' places and the first byte that is counted: contacts of look-ups are closed by then.
const SETTLED: Duration = Duration::from_secs(120);
/// Sent and received in a second.
const BYTES_MAX: u64 = 2_000;

#[derive(Debug, Serialize)]
struct Row {
    node: String,
    peers: u64,
    relays: usize,
    watched_secs: u64,
    sent_bytes_per_second: u64,
    received_bytes_per_second: u64,
    sent_and_received_bytes_per_second: u64,
}

impl Row {
    fn of(place: Place, peers: u64, relays: usize, passed: Passed, time: Duration) -> Self {
        let (sent, received) = (pace(passed.sent, time), pace(passed.received, time));
        Self {
            node: format!("{place:?}"),
            peers,
            relays,
            watched_secs: time.as_secs(),
            sent_bytes_per_second: sent,
            received_bytes_per_second: received,
            sent_and_received_bytes_per_second: sent + received,
        }
    }
}

#[derive(Debug, Serialize)]
struct Section {
    nodes: Vec<Row>,
    /// Of the node with the most.
    most_bytes_per_second: u64,
    holds: bool,
}

impl Section {
    fn of(nodes: Vec<Row>) -> Self {
        let most = nodes.iter().map(|row| row.sent_and_received_bytes_per_second).max().unwrap_or_default();
        Self { nodes, most_bytes_per_second: most, holds: most <= BYTES_MAX }
    }
}

/// Bytes in a second.
fn pace(bytes: u64, time: Duration) -> u64 {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    bytes.saturating_mul(1_000) / millis
}

/// Watches nodes for so many seconds.
pub async fn measure(seconds: u32) -> Result<()> {
    let progress = Progress::begin();
    let consumers =
        vec![Place::Public, Place::Far, Place::BehindPlain, Place::BehindSymmetric, Place::Neighbour];
    let market = open(Setup { consumers, ..Setup::default() }).await?;
    progress.tell("waiting for the owner's relays");
    market.wait_for_relays(RELAYED_WITHIN).await?;
    tokio::time::sleep(SETTLED).await;
    progress.tell(format_args!("watching for {seconds} s"));
    let section = Section::of(watch(&market, Duration::from_secs(seconds.into())).await?);
    keep("idle", &section)?;
    print_table("Traffic of idle nodes", &section.nodes)?;
    let promise = format!(
        "an idle node sends and receives at most {BYTES_MAX} B/s ({} B/s)",
        section.most_bytes_per_second
    );
    print_promise(promise, section.holds);
    Ok(())
}

async fn watch(market: &Market, time: Duration) -> Result<Vec<Row>> {
    let began = Instant::now();
    for (place, _) in market.nodes() {
        market.lab.count(place, CHAIN_PORT)?;
    }
    tokio::time::sleep(time).await;
    let mut rows = Vec::new();
    for (place, node) in market.nodes() {
        let (passed, time) = (market.lab.passed(place)?, began.elapsed());
        let relays = node.control().ask(endpoint::Reached).await?.relays.len();
        rows.push(Row::of(place, node.status().await?.peers, relays, passed, time));
    }
    Ok(rows)
}

#[test]
fn the_node_with_the_most_bytes_decides_and_both_ways_count() {
    let row = |sent, received| {
        let passed = Passed { sent, received };
        Row::of(Place::Owner, 8, 2, passed, Duration::from_millis(10_000))
    };
    assert!(Section::of(vec![row(9_000, 11_000), row(10_000, 10_009)]).holds, "2,000 B/s each");
    let section = Section::of(vec![row(0, 0), row(10_000, 10_010)]);
    assert_eq!((section.most_bytes_per_second, section.holds), (2_001, false));
}
