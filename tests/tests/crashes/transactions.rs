//! Nodes that die around a transaction: each purpose is reached once, whoever restarts when.

use anyhow::{Context, Result, ensure};
use farthing::{
    control::types::{Channel, Settled, route},
    testnet::{NodeProcess, rpc},
};
use farthing_protocol::Usdc;
use farthing_tests::world::{FUNDS, PRICE, Setup, World, eventually};
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Lasting, agreed_spent, call_in_background, kill_at, tail, until_answered};

/// 200 prices, the first deposit of a channel.
const FIRST_DEPOSIT: Usdc = PRICE.saturating_mul(200);

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_opening_is_interrupted_is_opened_once() -> Result<()> {
    let mut lasting = Lasting::start().await?;
    let world = &mut lasting.world;
    for point in ["funding.before_deposit", "funding.after_deposit"] {
        world.consumer.restart(kill_at(point)).await?;
        world.consumer.wait_until_ready().await?;
        call_until_consumer_dies(world).await.context(point)?;
    }
    world.consumer.restart(Vec::new()).await?;
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    ensure!(deposited(world).await? == FIRST_DEPOSIT, "deposited {}", deposited(world).await?);
    agreed_spent(world).await?;
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_pending_at_the_kill_is_finished_once_after_the_restart() -> Result<()> {
    let mut lasting = Lasting::start().await?;
    let world = &mut lasting.world;

    mine_by_hand(world).await?;
    let body = world.body("GET", "/ok");
    let call = call_in_background(world, &body).await?;
    wait_for_pending(world).await?;
    world.consumer.restart(Vec::new()).await?;
    drop(call);
    mine_at_once(world).await?;
    until_answered(world, &body).await?;
    ensure!(deposited(world).await? == FIRST_DEPOSIT, "deposited {}", deposited(world).await?);

    mine_by_hand(world).await?;
    let settle = {
        let control = world.owner.control().clone();
        tokio::spawn(async move { control.post::<Settled>(route::SETTLE, &json!({})).await })
    };
    wait_for_pending(world).await?;
    world.owner.restart(Vec::new()).await?;
    drop(settle);
    mine_at_once(world).await?;
    let spent = agreed_spent(world).await?;
    eventually("the claim is confirmed", async || {
        let books = [&world.owner, &world.consumer];
        for book in books {
            if only_channel(book).await?.claimed.0 != spent {
                return Ok(false);
            }
        }
        Ok(world.chain.usdc_of(world.owner_wallet).await? == spent)
    })
    .await
    .context(tail(&world.owner))?;
    let again: Settled = world.owner.control().post(route::SETTLE, &json!({})).await?;
    ensure!(again.claimed.0.is_zero(), "claimed twice: {again:?}");
    ensure!(world.settle_and_check(FUNDS).await? == spent);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_closes_that_are_interrupted_pay_everything_once() -> Result<()> {
    let mut lasting = Lasting::warm().await?;
    let world = &mut lasting.world;
    for point in ["settlement.before_claim", "settlement.after_claim"] {
        let body = world.body("GET", "/ok");
        until_answered(world, &body).await?;
        world.owner.restart(kill_at(point)).await?;
        world.owner.wait_until_ready().await?;
        // The node dies before it can say how the claim ended.
        let _ = world.owner.control().post::<Settled>(route::SETTLE, &json!({})).await;
        world.owner.wait_until_ended().await.context(point)?;
        world.owner.restart(Vec::new()).await?;
        world.owner.wait_until_ready().await?;
        let spent = agreed_spent(world).await?;
        let _: Settled = world.owner.control().post(route::SETTLE, &json!({})).await?;
        let gain = world.chain.usdc_of(world.owner_wallet).await?;
        ensure!(gain == spent, "{point}: {gain} claimed of {spent}");
    }
    world.make_gas_cheap().await?;
    for point in ["settlement.before_close", "settlement.after_close"] {
        let body = world.body("GET", "/ok");
        until_answered(world, &body).await.context(point)?;
        world.owner.restart(kill_at(point)).await?;
        world.owner.wait_until_ready().await?;
        close_until_owner_dies(world).await.context(point)?;
        world.owner.restart(Vec::new()).await?;
        eventually("the close is carried out", async || Ok(payer_channel(world).await?.state == "closed"))
            .await
            .with_context(|| format!("{point}\n{}", tail(&world.owner)))?;
    }
    let spent = agreed_spent(world).await?;
    ensure!(world.settle_and_check(FUNDS).await? == spent);
    // No interrupted claim stays undecided in the ledger: the next start finds none.
    let before = world.owner.log().len();
    world.owner.restart(Vec::new()).await?;
    ensure!(!world.owner.log()[before..].contains("a claim was under way"), "{}", tail(&world.owner));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_top_up_counts_once() -> Result<()> {
    // Room for ten calls; the last two start the top-up.
    let consumer_settings =
        [("deposit_prices", "10"), ("deposit_min", "0.02"), ("topup_prices", "2"), ("topup_percent", "0")]
            .map(|(key, value)| (format!("spending.{key}"), value.to_owned()))
            .to_vec();
    let mut lasting = Lasting::with(Setup { consumer_settings, ..Setup::default() }).await?;
    let world = &mut lasting.world;
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    for point in ["funding.before_deposit", "funding.after_deposit"] {
        world.consumer.restart(kill_at(point)).await?;
        world.consumer.wait_until_ready().await?;
        call_until_consumer_dies(world).await.context(point)?;
    }
    world.consumer.restart(Vec::new()).await?;
    until_answered(world, &body).await?;
    let agreed = agreed_spent(world).await?;
    ensure!(
        deposited(world).await? <= PRICE.saturating_mul(10 + 20),
        "deposited {}",
        deposited(world).await?
    );
    ensure!(world.settle_and_check(FUNDS).await? == agreed);
    Ok(())
}

async fn call_until_consumer_dies(world: &mut World) -> Result<()> {
    for _ in 0..200 {
        let answer = world.get("/ok").await;
        let died =
            tokio::time::timeout(std::time::Duration::from_millis(200), world.consumer.wait_until_ended());
        if died.await.is_ok() {
            return Ok(());
        }
        let answer = answer?;
        ensure!(answer.status == StatusCode::OK || answer.charged() == false, "{answer:?}");
    }
    anyhow::bail!("the place was not reached")
}

async fn close_until_owner_dies(world: &mut World) -> Result<()> {
    let channel = payer_channel(world).await?;
    let path = route::CHANNEL_CLOSE.replace("{id}", &channel.id.to_string());
    for _ in 0..100 {
        let _ = world.consumer.control().post::<Channel>(&path, &json!({})).await;
        let died = tokio::time::timeout(std::time::Duration::from_secs(2), world.owner.wait_until_ended());
        if died.await.is_ok() {
            return Ok(());
        }
    }
    anyhow::bail!("the place was not reached")
}

async fn payer_channel(world: &World) -> Result<Channel> {
    only_channel(&world.consumer).await
}

async fn only_channel(node: &NodeProcess) -> Result<Channel> {
    let channels: Vec<Channel> = node.control().get(route::CHANNELS).await?;
    channels.into_iter().next().context("no channel")
}

async fn deposited(world: &World) -> Result<Usdc> {
    Ok(payer_channel(world).await?.deposited.0)
}

async fn mine_by_hand(world: &World) -> Result<()> {
    rpc::call(&world.chain.rpc_url(), "evm_setAutomine", json!([false])).await?;
    Ok(())
}

async fn mine_at_once(world: &World) -> Result<()> {
    rpc::call(&world.chain.rpc_url(), "evm_setAutomine", json!([true])).await?;
    rpc::call(&world.chain.rpc_url(), "evm_mine", json!([])).await?;
    Ok(())
}

async fn wait_for_pending(world: &World) -> Result<()> {
    eventually("the transaction waits to be mined", async || {
        let status = rpc::call(&world.chain.rpc_url(), "txpool_status", json!([])).await?;
        Ok(status["pending"].as_str().is_some_and(|count| count != "0x0"))
    })
    .await
}
