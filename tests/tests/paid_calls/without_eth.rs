//! A wallet that never holds ETH: it gets USDC alone, buys, closes, and has its rest back, at the cost of its owner.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use farthing_chain::{
    Chain, MemoryJournal,
    deploy::{Deployer, dev_account},
};
use farthing_control::{endpoint, types::ChannelState};
use farthing_testnet::{anvil::Anvil, rpc};
use farthing_tests::{
    agreement::until_closed,
    calls::{cost, expect_free, expect_served, on_a_fixed_port, posing_as_public, setting},
    command::farthing,
    wait::eventually,
    world::{FUNDS, Setup, World},
};
use farthing_values::{ChannelConfig, SecretKey, Usdc};
use serde_json::{Value, json};

const DELAY_SECS: u64 = 3_600;

fn looks_every(secs: u32) -> Vec<(String, String)> {
    setting("settlement.interval_secs", &secs.to_string())
}

/// A world whose consumer has USDC and no ETH, and looks at its channels every second.
async fn world(owner_settings: Vec<(String, String)>) -> Result<World> {
    world_that_looks_every(1, owner_settings).await
}

/// The same, whose consumer looks at its channels that seldom.
async fn world_that_looks_every(secs: u32, owner_settings: Vec<(String, String)>) -> Result<World> {
    let delay = setting("chain.close_delay_secs", &DELAY_SECS.to_string());
    let setup = Setup {
        funds: Usdc::ZERO,
        owner_settings: [delay, owner_settings].concat(),
        consumer_settings: looks_every(secs),
        ..Setup::default()
    };
    let world = World::with(setup).await?;
    // It knows of its ETH then.
    world.owner.wait_for_usdc(Usdc::ZERO).await?;
    // The chain's first development account mints the token.
    let minter = Deployer::connect(&world.chain.rpc_url(), Anvil::CHAIN_ID, dev_account(0)?).await?;
    minter.mint(world.chain.token, world.consumer_wallet, FUNDS).await?;
    eventually("the consumer knows its USDC", async || {
        let balance = world.consumer.control().ask(endpoint::Wallet).await?;
        Ok(balance.usdc.is_some_and(|usdc| usdc.0 == FUNDS))
    })
    .await?;
    Ok(world)
}

/// Checks that the consumer has no ETH, and never paid for a transaction.
async fn expect_no_eth(world: &World, when: &str) -> Result<()> {
    let (url, wallet) = (world.chain.rpc_url(), world.consumer_wallet);
    let (wei, sent) = (rpc::eth_of(&url, wallet).await?, rpc::transactions_of(&url, wallet).await?);
    ensure!((wei, sent) == (0, 0), "{when}: {wei} wei, {sent} transactions");
    Ok(())
}

/// Closes the consumer's channel, as far as its owner pays for it.
async fn request_close(world: &World) -> Result<()> {
    let id = world.channel().await?.id.to_string();
    farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?.ends_with(0)?;
    eventually("the chain has the request", async || {
        Ok(world.channel().await?.state == ChannelState::CloseRequested)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_that_never_holds_eth_buys_closes_and_has_its_rest_back() -> Result<()> {
    let world = world(Vec::new()).await?;
    expect_no_eth(&world, "funded").await?;
    expect_served(&world.get("/ok").await?)?;
    expect_no_eth(&world, "the deposit is made").await?;
    let deposited = world.channel().await?.deposited.0;
    let left = world.chain.usdc_of(world.consumer_wallet).await?;
    assert_eq!(FUNDS.checked_sub(left), Some(deposited), "one deposit, and all of it is in the channel");
    world.buy(2).await?;
    expect_no_eth(&world, "three calls are bought").await?;
    let doctor = world.consumer.control().ask(endpoint::Doctor).await?;
    let wallet =
        doctor.checks.iter().find(|check| check.name == "wallet").context("no check of the wallet")?;
    ensure!(wallet.good && wallet.detail.contains("USDC alone is enough"), "{wallet:?}");
    let alerts = farthing(&world.consumer, &["alert", "list"]).await?;
    ensure!(!alerts.ends_with(0)?.out.contains("ETH"), "{alerts:?}");

    world.owner.control().ask(endpoint::Settle).await?;
    request_close(&world).await?;
    expect_no_eth(&world, "the close is requested").await?;
    // The chain gives it back after the delay, and not before.
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, left);
    world.mine_after(DELAY_SECS + 1).await?;
    eventually("the rest is back", async || {
        Ok(world.chain.usdc_of(world.consumer_wallet).await?.checked_add(cost(3)) == Some(FUNDS))
    })
    .await?;
    expect_no_eth(&world, "the rest is back").await?;
    // Its node reads it from the chain a moment later.
    until_closed(&world.consumer).await?;
    world.settle_for(cost(3)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anyone_brings_the_rest_back_to_a_wallet_without_eth_whose_owner_has_gone() -> Result<()> {
    let mut world = world(on_a_fixed_port()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    world.owner.control().ask(endpoint::Settle).await?;
    request_close(&world).await?;
    world.owner.stop().await?;
    world.mine_after(DELAY_SECS + 1).await?;

    let key = SecretKey::from_bytes(&[0x77; 32])?;
    world.chain.fund(key.address(), Usdc::ZERO).await?;
    let spec = farthing_chain::local(world.chain.rpc_url(), Anvil::CHAIN_ID, world.chain.token);
    let anyone = Chain::start(spec, key, Arc::new(MemoryJournal::default())).await?;
    let config = ChannelConfig {
        payer: world.consumer_wallet,
        payee: world.owner_wallet,
        token: world.chain.token,
        signer: world.consumer_wallet,
        close_delay_secs: DELAY_SECS,
        salt: [0; 32],
    };
    anyone.withdraw(config).await?;
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?.checked_add(cost(1)), Some(FUNDS));
    expect_no_eth(&world, "the rest is back").await
}

/// Sends a part of a signed request to close to the contract, from a wallet that has nothing to do with it.
async fn send_as_anyone(world: &World, signed: &Value, part: &str) -> Result<()> {
    let url = world.chain.rpc_url();
    let accounts = rpc::call(&url, "eth_accounts", json!([])).await?;
    let (to, data) = (&signed["contract"], &signed[part]);
    let transaction = json!({ "from": accounts[5], "to": to, "data": data, "gas": "0x30d40" });
    let hash = rpc::call(&url, "eth_sendTransaction", json!([transaction])).await?;
    let receipt = async || rpc::call(&url, "eth_getTransactionReceipt", json!([hash])).await;
    eventually("the transaction is in a block", async || Ok(!receipt().await?.is_null())).await?;
    let receipt = receipt().await?;
    ensure!(receipt["status"] == "0x1", "the contract refuses it: {receipt}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anyone_sends_the_signed_close_of_a_wallet_without_eth_whose_owner_has_gone() -> Result<()> {
    let mut world = world(on_a_fixed_port()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    world.owner.control().ask(endpoint::Settle).await?;
    world.owner.stop().await?;
    let id = world.channel().await?.id.to_string();
    let close = ["channel", "close", &id, "--signed", "--yes"];
    let signed = farthing(&world.consumer, &close).await?.ok()?.json()?;
    assert_eq!(signed["channel"].as_str(), Some(id.as_str()), "{signed}");
    ensure!(world.channel().await?.state == ChannelState::Open, "nothing was sent");

    send_as_anyone(&world, &signed, "request_data").await?;
    eventually("the chain has the request", async || {
        Ok(world.channel().await?.state == ChannelState::CloseRequested)
    })
    .await?;
    let again = farthing(&world.consumer, &close).await?;
    ensure!(again.code != 0 && again.err.contains("is not open"), "{again:?}");
    ensure!(send_as_anyone(&world, &signed, "withdraw_data").await.is_err(), "the delay is not over");
    world.mine_after(DELAY_SECS + 1).await?;
    send_as_anyone(&world, &signed, "withdraw_data").await?;
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?.checked_add(cost(1)), Some(FUNDS));
    expect_no_eth(&world, "the rest is back").await
}

/// Above what a node pays for gas on a local chain.
const TOO_DEAR: &str = "0x8bb2c97000";

/// Has the owner sign the close of a channel, which nobody can send because gas is dear, and makes gas cheap again.
async fn world_after_a_close_at_dear_gas(owner_looks_secs: u32) -> Result<World> {
    // The consumer does nothing of its own accord.
    let world = world_that_looks_every(3_600, looks_every(owner_looks_secs)).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    rpc::call(&world.chain.rpc_url(), "anvil_setNextBlockBaseFeePerGas", json!([TOO_DEAR])).await?;
    world.mine().await?;
    let id = world.channel().await?.id.to_string();
    let refused = farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?;
    for words in ["signed the close", "no setting changes this limit", "tries again automatically"] {
        ensure!(refused.code != 0 && refused.err.contains(words), "no `{words}`: {refused:?}");
    }
    let channel = world.channel().await?;
    ensure!(channel.state == ChannelState::ClosePromised && channel.until_secs.is_some(), "{channel:?}");
    let answer = world.get("/ok").await?;
    expect_free("the owner serves nothing", &answer, 503, "channel-closing")?;
    world.make_gas_cheap().await?;
    Ok(world)
}

/// Waits until the owner has closed the channel: it has its claim, and the consumer the rest at once.
async fn expect_closed_by_the_owner(world: &World) -> Result<()> {
    until_closed(&world.consumer).await?;
    let (consumer, owner) = (world.consumer_wallet, world.owner_wallet);
    assert_eq!(world.chain.usdc_of(consumer).await?.checked_add(cost(1)), Some(FUNDS));
    assert_eq!(world.chain.usdc_of(owner).await?, cost(1), "paid once");
    expect_no_eth(world, "the rest is back").await?;
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_signed_a_close_at_dear_gas_closes_by_itself_once_gas_is_cheap() -> Result<()> {
    let world = world_after_a_close_at_dear_gas(1).await?;
    expect_closed_by_the_owner(&world).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_signed_a_close_at_dear_gas_closes_at_once_when_it_is_asked_again() -> Result<()> {
    let world = world_after_a_close_at_dear_gas(3_600).await?;
    let id = world.channel().await?.id.to_string();
    eventually("the owner takes the close on", async || {
        let close = farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?;
        let state = world.channel().await?.state;
        ensure!(state != ChannelState::CloseRequested, "no delay begins: {close:?}");
        Ok(close.code == 0)
    })
    .await?;
    expect_closed_by_the_owner(&world).await
}

/// Makes a call that the owner's limits keep from being paid for, and returns what its caller is told.
async fn told_to_send_eth(owner_settings: Vec<(String, String)>) -> Result<String> {
    let world = world([posing_as_public(), owner_settings].concat()).await?;
    let sent = rpc::transactions_of(&world.chain.rpc_url(), world.owner_wallet).await?;
    let answer = world.get("/ok").await?;
    expect_free("no gas", &answer, 402, "insufficient-funds")?;
    let detail = answer.json()["detail"].as_str().context("no detail")?.to_owned();
    ensure!(detail.contains("0.0002 ETH") && detail.contains("the owner does not pay"), "{detail}");
    assert_eq!(rpc::transactions_of(&world.chain.rpc_url(), world.owner_wallet).await?, sent);
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, FUNDS, "no money moved");
    Ok(detail)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_pays_no_gas_for_a_deposit_that_is_not_worth_it() -> Result<()> {
    let told = told_to_send_eth(setting("settlement.sponsor_gas_factor", "10000")).await?;
    ensure!(told.contains("10000 times the gas"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_pays_no_more_gas_for_others_than_its_budget_of_a_day() -> Result<()> {
    let no_factor = setting("settlement.sponsor_gas_factor", "0");
    let budget = setting("settlement.sponsor_gas_per_day", "0.000001");
    let told = told_to_send_eth([no_factor, budget].concat()).await?;
    ensure!(told.contains("pays for others in a day"), "{told}");
    Ok(())
}
