//! An hour of the chain's time without the chain, or without its events, while a payer wants its money back: the owner
//! claims what it earned before the payer may withdraw.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::rpc;
use farthing_tests::{
    chain_proxy::{Mood, Proxy},
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::Usdc;
use serde_json::json;

use crate::support::{Lasting, agreed_spent, tail, until_answered};

const CALLS: u64 = 5;

/// Twenty minutes of blocks, ten seconds apart.
async fn twenty_minutes(world: &World) -> Result<()> {
    rpc::call(&world.chain.rpc_url(), "anvil_mine", json!(["0x78", "0xa"])).await?;
    Ok(())
}

/// A world whose owner sees the chain through a proxy, and has served calls that it did not claim.
async fn owed() -> Result<(Lasting, Proxy)> {
    let often = vec![("settlement.interval_secs".to_owned(), "1".to_owned())];
    let setup = Setup { owner_settings: often.clone(), consumer_settings: often, ..Setup::default() };
    let mut lasting = Lasting::with(setup).await?;
    let world = &mut lasting.world;
    let proxy = Proxy::before(&world.chain.rpc_url()).await?;
    world.owner.restart_until_ready(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), proxy.url())]).await?;
    let body = world.body("GET", "/ok");
    for _ in 0..CALLS {
        until_answered(world, &body).await?;
    }
    world.make_gas_cheap().await?;
    world.wait_until_decided().await?;
    ensure!(world.chain.usdc_of(world.owner_wallet).await?.is_zero(), "it was claimed already");
    Ok((lasting, proxy))
}

/// The payer asks the chain to close, whatever its owner says.
async fn ask_the_chain(world: &World) -> Result<()> {
    let at = endpoint::CloseChannel.of(world.channel().await?.id).with("force", true);
    world.consumer.control().ask(at).await?;
    eventually("the chain shows it", async || Ok(world.channel().await?.state.is_closing())).await
}

async fn until_claimed(world: &World) -> Result<()> {
    let due = PRICE.saturating_mul(CALLS);
    eventually("what was earned is claimed", async || {
        Ok(world.chain.usdc_of(world.owner_wallet).await? == due)
    })
    .await
    .with_context(|| tail(&world.owner))?;
    ensure!(world.channel().await?.state.is_closing(), "the payer has not withdrawn");
    Ok(())
}

/// The owner gives back what is left, and both books and the chain agree.
async fn ends_well(world: &World) -> Result<()> {
    world.owner.control().ask(endpoint::CloseChannel.of(world.channel().await?.id)).await?;
    eventually("the payer has the rest", async || {
        let left = world.chain.usdc_of(world.consumer_wallet).await?;
        Ok(left == FUNDS.checked_sub(PRICE.saturating_mul(CALLS)).unwrap_or(Usdc::ZERO))
    })
    .await
    .with_context(|| tail(&world.consumer))?;
    let spent = agreed_spent(world).await?;
    ensure!(world.settle_and_check(FUNDS).await? == spent && spent == PRICE.saturating_mul(CALLS));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_chain_was_away_for_an_hour_claims_before_the_payer_may_withdraw() -> Result<()> {
    let (lasting, proxy) = owed().await?;
    let world = &lasting.world;
    proxy.set(Mood::Refuse);
    ask_the_chain(world).await?;
    for mood in [Mood::Refuse, Mood::Hang, Mood::Fail] {
        proxy.set(mood);
        twenty_minutes(world).await?;
    }
    ensure!(world.chain.usdc_of(world.owner_wallet).await?.is_zero(), "the chain was not away");
    proxy.set(Mood::Pass);
    until_claimed(world).await?;
    ends_well(world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_without_events_for_an_hour_claims_before_the_payer_may_withdraw() -> Result<()> {
    let (mut lasting, proxy) = owed().await?;
    let world = &mut lasting.world;
    proxy.set(Mood::WithoutEvents);
    // It starts anew without them, too.
    world.owner.restart_until_ready(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), proxy.url())]).await?;
    twenty_minutes(world).await?;
    ask_the_chain(world).await?;
    twenty_minutes(world).await?;
    until_claimed(world).await?;
    twenty_minutes(world).await?;
    ends_well(world).await
}
