//! Network in the console: how much travels, there, for programs and on the command line.

use anyhow::{Result, ensure};
use farthing_control::{endpoint, types::SeriesRange};
use farthing_testnet::NodeProcess;
use farthing_tests::{wait::eventually, world::World};

use crate::support::set_up;

#[tokio::test(flavor = "multi_thread")]
async fn what_travels_between_nodes_is_counted_on_both_sides() -> Result<()> {
    let world = World::start().await?;
    let control = world.consumer.control();
    let before = control.ask(endpoint::Traffic).await?;
    ensure!(world.get("/ok").await?.status == 200);
    eventually("the call is counted where it was made", async || {
        let now = control.ask(endpoint::Traffic).await?;
        Ok(now.sent_bytes > before.sent_bytes && now.received_bytes > before.received_bytes)
    })
    .await?;
    let owner = world.owner.control().ask(endpoint::Traffic).await?;
    ensure!(owner.sent_bytes > 0 && owner.received_bytes > 0, "{owner:?}");
    let mut browser = set_up(&world.consumer).await?;
    let page = browser.get("/panel/network").await?;
    for part in ["<dt>Sent</dt>", "<dt>Received</dt>", "since the node started", "/s</dd>"] {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    let page = browser.get("/api/v1/net/traffic").await?;
    ensure!(page.status == 200 && page.body.contains("received_bytes_per_sec"), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_of_before_is_in_the_chart_after_a_restart() -> Result<()> {
    let mut world = World::start().await?;
    ensure!(world.get("/ok").await?.status == 200);
    let sent = async |node: &NodeProcess| -> Result<u64> {
        let day = node.control().ask(endpoint::TrafficSeries.with("range", SeriesRange::Day)).await?;
        Ok(day.points.iter().map(|point| point.sent_bytes).sum())
    };
    let before = sent(&world.consumer).await?;
    ensure!(before > 0, "a call was sent");
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    // The new run counts from zero; the chart has both.
    let run = world.consumer.control().ask(endpoint::Traffic).await?.sent_bytes;
    let after = sent(&world.consumer).await?;
    ensure!(after >= before + run, "{before} before, {run} in this run, and {after} in all");
    Ok(())
}
