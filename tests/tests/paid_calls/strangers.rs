//! Nodes that nobody told of each other, and somebody else's DHT in which they meet: js-libp2p's, on loopback.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    calls::{expect_served, free_port, setting},
    command::farthing,
    dht::Dht,
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};

/// Once both are ready.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

fn meeting_at(entrance: &str) -> Vec<(String, String)> {
    [setting("network.rendezvous", "ipfs"), setting("network.rendezvous_entrance", entrance)].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_know_the_entrance_of_somebody_elses_dht_alone_find_each_other_and_one_buys() -> Result<()>
{
    let Some(dht) = Dht::start().await? else { return Ok(()) };
    let [one, _, other] = &dht.addresses[..] else { anyhow::bail!("{:?}", dht.addresses) };
    let (owner_settings, consumer_settings) = (meeting_at(one), meeting_at(other));
    let setup = Setup { owner_settings, consumer_settings, are_strangers: true, ..Setup::default() };
    let world = World::with(setup).await?;
    let began = Instant::now();
    eventually("the consumer buys", async || Ok(world.get("/ok").await?.status.is_success()))
        .await
        .with_context(|| format!("owner:\n{}\nconsumer:\n{}", world.owner.log(), world.consumer.log()))?;
    ensure!(began.elapsed() < FOUND_WITHIN, "it took {} s", began.elapsed().as_secs());
    for node in [&world.owner, &world.consumer] {
        let peers = node.control().ask(endpoint::Peers).await?;
        ensure!(peers.len() == 1, "nobody of the DHT is a peer: {peers:?}");
        eventually("doctor says that it is listed", async || {
            let doctor = farthing(node, &["doctor"]).await?.out;
            let line = doctor.lines().find(|line| line.contains("rendezvous:")).unwrap_or_default();
            Ok(line.starts_with("ok") && line.contains("This node was listed there"))
        })
        .await?;
    }
    ensure!(world.settle_and_check(FUNDS).await? == PRICE, "one call was made");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_dht_is_away_nodes_that_know_each_other_trade_and_doctor_says_so() -> Result<()> {
    let entrance = format!("/ip4/127.0.0.1/tcp/{}", free_port()?);
    let (owner_settings, consumer_settings) = (meeting_at(&entrance), meeting_at(&entrance));
    let world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    let words = format!("{entrance} refuses the connection");
    let mut doctor = String::new();
    eventually("doctor says so", async || {
        doctor = farthing(&world.consumer, &["doctor"]).await?.out;
        let line = doctor.lines().find(|line| line.contains("rendezvous:")).unwrap_or_default();
        Ok(line.starts_with("WARN") && line.contains("Asking the public IPFS DHT") && line.contains(&words))
    })
    .await
    .context(doctor)?;
    ensure!(world.consumer.status().await?.rendezvous.contains(&words), "the status does not");
    expect_served(&world.get("/ok").await?)
}
