//! An owner that is asked to pay the gas of a deposit, takes the signed authorization, and does not bring it.

use farthing_chain::{Chain, ChainHandle, MemoryJournal, SponsorTrial};
use farthing_tests::command::{Ran, farthing};

use super::*;

const MORE: Usdc = Usdc::from_micros(100_000);
const FIRST: Usdc = Usdc::from_micros(400_000);

/// A world whose consumer has a channel with an owner of this kind, and no ETH any more.
async fn without_eth(reply: Option<SponsorReply>) -> Result<(World, Arc<Owner>, NetworkHandle)> {
    let mut world = World::start().await?;
    serve_one(&world).await?;
    let (owner, network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    owner.state.lock().errand_reply = reply;
    has_eth(&world, "0x0", "0").await?;
    Ok((world, owner, network))
}

/// Sets the consumer's ETH, and waits until its node knows it.
async fn has_eth(world: &World, wei: &str, told: &str) -> Result<()> {
    world.set_eth(world.consumer_wallet, wei).await?;
    eventually("the node knows its ETH", async || {
        let balance = farthing(&world.consumer, &["wallet", "balance", "--json"]).await?;
        Ok(balance.ends_with(0)?.json()?["eth"] == told)
    })
    .await
}

/// Deposits by hand, so that no call is sent.
async fn deposit(world: &World) -> Result<Ran> {
    let service = world.api.id.to_string();
    farthing(&world.consumer, &["channel", "open", &service, "--deposit", &MORE.to_string()]).await
}

/// Checks the money at rest: the first deposit, and the one that may still be made, once.
async fn expect_both_at_rest(world: &World) -> Result<()> {
    let at_rest = world.consumer.control().ask(endpoint::Spending).await?.at_rest;
    assert_eq!(Some(at_rest.now.0), FIRST.checked_add(MORE));
    Ok(())
}

async fn expect_in_wallet(world: &World, deposited: Usdc) -> Result<()> {
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?.checked_add(deposited), Some(FUNDS));
    Ok(())
}

/// Somebody who would bring an authorization.
async fn anyone(world: &World) -> Result<ChainHandle> {
    let key = SecretKey::from_bytes(&[0x7b; 32])?;
    world.chain.fund(key.address(), Usdc::ZERO).await?;
    let spec = farthing_chain::local(world.chain.rpc_url(), Anvil::CHAIN_ID, world.chain.token);
    Ok(Chain::start(spec, key, Arc::new(MemoryJournal::default())).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_takes_a_signed_deposit_and_never_brings_it_gets_the_same_one_again_and_no_second()
-> Result<()> {
    let (world, owner, _network) = without_eth(None).await?;
    let refused = deposit(&world).await?;
    for words in ["signs no second one", "did not answer", "0.10 USDC"] {
        ensure!(refused.code != 0 && refused.err.contains(words), "no `{words}`: {refused:?}");
    }
    expect_both_at_rest(&world).await?;
    eventually("the owner is asked again", async || {
        let refused = deposit(&world).await?;
        ensure!(refused.code != 0 && refused.err.contains("signs no second one"), "{refused:?}");
        Ok(owner.state.lock().errands.len() > 1)
    })
    .await?;
    let errands = owner.state.lock().errands.clone();
    ensure!(errands.iter().all(|errand| *errand == errands[0]), "{errands:?}");
    expect_both_at_rest(&world).await?;
    expect_in_wallet(&world, FIRST).await?;
    let anyone = anyone(&world).await?;
    let trial = anyone.try_sponsored(&errands[0]).await?;
    ensure!(matches!(trial, SponsorTrial::Takes { .. }), "the owner could still bring it: {trial:?}");

    // The wallet's own transaction uses the same one.
    has_eth(&world, "0xde0b6b3a7640000", "1").await?;
    deposit(&world).await?.ends_with(0)?;
    expect_in_wallet(&world, Usdc::from_micros(FIRST.micros() + MORE.micros())).await?;
    let trial = anyone.try_sponsored(&errands[0]).await?;
    ensure!(matches!(trial, SponsorTrial::Fails(_)), "it could be brought twice: {trial:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_names_a_transaction_which_no_block_has_is_not_believed() -> Result<()> {
    let lie = SponsorReply::Sent { transaction: [7; 32] };
    let (world, _owner, _network) = without_eth(Some(lie)).await?;
    let refused = deposit(&world).await?;
    for words in ["no endpoint has the transaction 0x0707", "signs no second one"] {
        ensure!(refused.code != 0 && refused.err.contains(words), "no `{words}`: {refused:?}");
    }
    expect_both_at_rest(&world).await?;
    expect_in_wallet(&world, FIRST).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_says_falsely_that_it_asked_for_a_close_is_not_asked_again_at_once() -> Result<()> {
    let lie = SponsorReply::Sent { transaction: [7; 32] };
    let (world, owner, _network) = without_eth(Some(lie)).await?;
    let id = owner.channel.id.to_string();
    for _ in 0..2 {
        let close = farthing(&world.consumer, &["channel", "close", &id, "--yes", "--force"]).await?;
        ensure!(close.code != 0 && close.err.contains("no endpoint has the transaction 0x0707"), "{close:?}");
    }
    let errands = owner.state.lock().errands.clone();
    let asked = errands.iter().filter(|errand| matches!(errand, SponsorAsked::RequestClose(..))).count();
    assert_eq!(asked, 1, "the second close is refused by what the first one showed");
    Ok(())
}
