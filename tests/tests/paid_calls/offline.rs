//! An owner that is not there: said quickly, free, and forgotten once it is back.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    calls::{cost, expect_free, expect_served, fixed_owner},
    wait::eventually,
    world::World,
};

/// Far less than a call's deadline of 30 seconds.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn an_owner_that_is_offline_costs_nothing_and_serves_again_when_it_is_back() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.owner.stop().await?;
    world.wait_until_owner_is_lost().await?;
    for _ in 0..3 {
        let asked = Instant::now();
        let answer = world.get("/ok").await?;
        expect_free("stopped", &answer, 502, "owner-unreachable")?;
        ensure!(asked.elapsed() < SOON, "the script waited {:?}", asked.elapsed());
    }
    world.owner.restart(Vec::new()).await?;
    eventually("the owner is reached again", async || Ok(world.get("/ok").await?.status.is_success()))
        .await?;
    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_owner_that_left_before_the_first_call_gets_no_deposit() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.owner.stop().await?;
    world.wait_until_owner_is_lost().await?;
    let asked = Instant::now();
    let answer = world.get("/ok").await?;
    ensure!(asked.elapsed() < SOON, "the script waited {:?}", asked.elapsed());
    // The node may have heard of the service before the owner went away.
    match answer.status.as_u16() {
        404 => expect_free("not heard of", &answer, 404, "unknown-service")?,
        _ => expect_free("heard of", &answer, 502, "owner-unreachable")?,
    }
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    ensure!(channels.is_empty(), "money was bound for an owner that is away: {channels:?}");
    world.owner.restart(Vec::new()).await?;
    eventually("the service is found", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(cost(1)).await
}
