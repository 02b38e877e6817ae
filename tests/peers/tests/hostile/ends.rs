//! The harness itself: no world ends without its books compared.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context, Result, ensure};
use farthing_ledger::{Cause, Ledger, OpenMode};
use farthing_protocol::Usdc;
use farthing_tests::{calls::expect_served, world::World};

/// What the end of a world says; `None` when it is content.
fn end(world: World) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(world))).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

/// A world with one call, in whose payer's books a charge stands that no call explains.
async fn planted() -> Result<World> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    world.consumer.stop().await?;
    let ledger = Ledger::open(&world.consumer.data_dir().join("ledger.redb"), OpenMode::Existing)?;
    let channel = *ledger.payer_channels()?.first().context("a channel")?;
    let planted = Usdc::from_micros(1);
    ledger.recover_signed(channel.id, channel.signed.saturating_add(planted)).await?;
    ledger.recover_charges(channel.id, planted, Usdc::MAX, Cause::Crash).await?;
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_world_that_nobody_compares_fails_when_its_books_differ() -> Result<()> {
    let told = end(planted().await?).context("nothing was said")?;
    ensure!(told.contains("X1: channel ") && told.contains("adjustments of 0.000001"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_world_ends_with_the_differences_that_its_test_names_and_with_no_others() -> Result<()> {
    let world = planted().await?;
    world.expect_differences(&["0.002001 USDC paid, 0.002 earned", "adjustments of 0.000001"]);
    let told = end(world);
    ensure!(told.is_none(), "{told:?}");

    let world = planted().await?;
    world.expect_differences(&["0.002001 USDC paid, 0.002 earned"]);
    let told = end(world).context("one more than was named")?;
    ensure!(told.contains("adjustments of 0.000001"), "{told}");

    let world = World::start().await?;
    world.expect_differences(&["a call that was never made"]);
    let told = end(world).context("a difference that is not there")?;
    ensure!(told.contains("a call that was never made"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_world_whose_books_cannot_be_read_fails() -> Result<()> {
    let mut world = World::start().await?;
    world.owner.stop().await?;
    std::fs::write(world.owner.data_dir().join("ledger.redb"), b"no ledger")?;
    let told = end(world).context("nothing was said")?;
    ensure!(told.contains("does not start again to be compared"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_world_whose_books_agree_ends_quietly_also_when_a_node_was_stopped() -> Result<()> {
    let mut world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    world.owner.kill().await?;
    let told = end(world);
    ensure!(told.is_none(), "{told:?}");
    Ok(())
}
