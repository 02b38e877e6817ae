//! A disk that is put back to an earlier state, without the word of a backup that this was done.

use anyhow::Result;
use farthing_control::{
    endpoint,
    types::{Api, ApiState, PriceRequest},
};
use farthing_tests::{
    calls::{expect_served, fixed_owner},
    command::farthing,
    nodes::copy,
    wait::eventually,
    world::World,
};
use farthing_values::Usdc;

const LEDGER: &str = "ledger.redb";
const CATALOG: &str = "networks";

/// Copies files of the owner, lets it go on with `later`, and puts them back.
async fn put_back(
    world: &mut World,
    lost: &[&str],
    later: impl AsyncFnOnce(&World) -> Result<()>,
) -> Result<()> {
    let snapshot = tempfile::tempdir()?;
    world.owner.stop().await?;
    for name in lost {
        copy(&world.owner.data_dir().join(name), &snapshot.path().join(name))?;
    }
    world.owner.restart(Vec::new()).await?;
    // Until then it has said goodbye.
    eventually("the owner is back", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    later(world).await?;
    world.wait_until_decided().await?;
    world.owner.stop().await?;
    for name in lost {
        copy(&snapshot.path().join(name), &world.owner.data_dir().join(name))?;
    }
    world.owner.restart_until_ready(Vec::new()).await
}

async fn price(world: &World, micros: u64) -> Result<()> {
    let price = PriceRequest { price: Usdc::from_micros(micros).into(), operation: None };
    let _: Api = world.owner.control().tell(endpoint::PriceApi.of(world.api.id), &price).await?;
    Ok(())
}

#[tokio::test]
async fn an_owner_whose_disk_is_put_back_offers_its_services_above_the_versions_that_it_lost() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.buy(1).await?;
    for lost in [&[LEDGER][..], &[LEDGER, CATALOG]] {
        put_back(&mut world, lost, async |world| {
            for micros in [1_000, 1_500] {
                price(world, micros).await?;
                expect_served(&world.get("/ok").await?)?;
            }
            Ok(())
        })
        .await?;
        eventually("it is served again", async || {
            let answer = world.get("/ok").await?;
            Ok(answer.status.is_success() && answer.header("x-farthing-charged") == "0.002")
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_was_dearer_before_a_disk_was_put_back_is_not_sold_for_less_until_its_owner_looks() -> Result<()>
{
    let mut world = World::with(fixed_owner()?).await?;
    world.buy(1).await?;
    // What was bought after the copy was made is forgotten with the rest, until it is shown with the next call.
    world.expect_differences(&["0.004 USDC paid, 0.002 earned", "forgotten calls of 0.002"]);
    put_back(&mut world, &[LEDGER, CATALOG], async |world| {
        price(world, 9_000).await?;
        // Whoever has heard of it tells the owner later.
        let id = world.api.id.to_string();
        eventually("the consumer has heard of it", async || {
            let shown = farthing(&world.consumer, &["catalog", "show", &id]).await?;
            Ok(shown.ends_with(0)?.out.contains("0.009"))
        })
        .await
    })
    .await?;
    eventually("it is paused", async || {
        let apis = world.owner.control().ask(endpoint::Apis).await?;
        Ok(apis.iter().any(|api| api.id == world.api.id && api.state == ApiState::Paused))
    })
    .await?;
    eventually("nobody is sold anything", async || {
        Ok(world.get("/ok").await?.problem() == "owner-unavailable")
    })
    .await
}
