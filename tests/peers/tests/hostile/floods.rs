//! Strangers that gossip without end: what a node reads of it is bounded, and so are its memory and its log, while it
//! hears its honest neighbours.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_peers::flood::{Flood, Sort};
use farthing_protocol::wire::NetworkName;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    nodes::{Nodes, all_find, offer, publish, words},
    report::memory_mib,
    wait::eventually,
};

const UPSTREAM: &str = "http://127.0.0.1:9";
/// What one neighbour may send at once, and in a second, when each of its frames has a listing's size.
const AT_ONCE_KIB: u64 = 300;
const A_SECOND_KIB: u64 = 19;
/// What honest neighbours and the node itself have to say meanwhile.
const OTHERWISE_KIB: u64 = 512;
/// What the line of one stranger holds of what was not read yet, so that more than this shows that all was read which may
/// be at once.
const IN_THE_LINE_KIB: u64 = 256;
/// Less than two lines for each of the frames that one neighbour may send at once.
const LOG_BYTES_MAX: usize = 8 * 1024;
const MEMORY_MIB_MAX: u64 = 48;

async fn received_kib(node: &NodeProcess) -> Result<u64> {
    let traffic = node.control().ask(endpoint::Traffic).await?;
    Ok(traffic.received_bytes / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_gossip_without_end_are_read_slowly_fill_no_log_and_silence_nobody() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let honest = nodes.join(&[&node]).await?;
    eventually("the honest neighbour is there", async || Ok(node.status().await?.peers > 0)).await?;
    let (log_before, memory_before) = (node.log().len(), memory_mib(&node)?);
    let (received_before, begun) = (received_kib(&node).await?, Instant::now());

    // Frames of more than one object end their stream, so that only the others are under way for long.
    let (sorts, wallets) = (vec![Sort::News, Sort::Signed, Sort::Crammed], 2);
    let flood = Flood::start(node.loopback_address().await?, NetworkName::new("31337")?, sorts)?;
    let written_kib = || flood.written() / 1024;
    eventually("the flood is under way", async || Ok(written_kib() >= wallets * (IN_THE_LINE_KIB + 200)))
        .await
        .with_context(|| format!("{} KiB written", written_kib()))?;
    publish(&honest, &offer("Quiet lagoon", UPSTREAM)).await?;
    all_find(std::slice::from_ref(&node), &words("lagoon"), 1).await?;

    let received = received_kib(&node).await? - received_before;
    let seconds = begun.elapsed().as_secs() + 1;
    let (log, memory) = (node.log(), memory_mib(&node)?);
    let log = &log[log_before..];
    eprintln!(
        "after {seconds} s: {} KiB written, {received} KiB read, {} bytes of log, {memory_before} MiB, then {memory}",
        written_kib(),
        log.len()
    );
    let allowed = wallets * (AT_ONCE_KIB + seconds * A_SECOND_KIB) + OTHERWISE_KIB;
    ensure!(received <= allowed, "{received} KiB were read, of at most {allowed}");
    ensure!(log.len() <= LOG_BYTES_MAX, "{} bytes of log: {}", log.len(), &log[..2_000]);
    ensure!(memory <= memory_before + MEMORY_MIB_MAX, "{memory_before} MiB, then {memory}");
    Ok(())
}
