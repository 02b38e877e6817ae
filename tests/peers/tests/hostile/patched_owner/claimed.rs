//! An owner that claims what it holds and never served: nobody can prevent the first time.

use farthing_chain::{Chain, ChainHandle, ChainSpec, ClaimRow, MemoryJournal};
use farthing_control::{endpoint, types::AlertKind};
use farthing_protocol::ChannelConfig;
use farthing_tests::command::farthing;

use super::*;

/// What brings a call's voucher to the chain, all of it, and the claim.
pub(super) async fn claim_of(world: &World, request: &CallRequest) -> Result<(ChainHandle, ClaimRow)> {
    let Payment::Channel { cumulative, signature, .. } = request.payment else { anyhow::bail!("free") };
    let config = ChannelConfig {
        payer: world.consumer_wallet,
        payee: world.owner_wallet,
        token: world.chain.token,
        signer: world.consumer_wallet,
        close_delay_secs: farthing_protocol::limits::CLOSE_DELAY_SECS_DEFAULT,
        salt: [0; 32],
    };
    let signature = signature.context("no voucher")?;
    Ok((chain_of(world).await?, ClaimRow { config, cumulative, amount: cumulative, signature }))
}

/// The owner's handle of the chain.
pub(super) async fn chain_of(world: &World) -> Result<ChainHandle> {
    let spec = farthing_chain::local(world.chain.rpc_url(), Anvil::CHAIN_ID, world.chain.token);
    let spec = ChainSpec { gas_price_cap_wei: u128::MAX / 4, ..spec };
    let key = Wallet::open(world.owner.data_dir(), None)?.secret_for_network();
    Ok(Chain::start(spec, key, Arc::new(MemoryJournal::default())).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_claims_more_than_any_call_explains_gets_no_further_promise_and_raises_an_alert()
-> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let refused: Answers = |_, _, _| Some(busy());
    let (owner, _network) = Owner::replaces(&mut world, refused).await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.charged() == json!(false), "{answer:?}");

    // The voucher of the refused call is good, and the owner claims it.
    let request = {
        let state = owner.state.lock();
        state.calls.values().next().context("no call arrived")?.0.clone()
    };
    let (chain, row) = claim_of(&world, &request).await?;
    let channel = row.config.id(&owner.domain);
    assert_eq!((row.cumulative, channel), (cost(2), owner.channel.id));
    chain.claim_many(vec![row]).await?;
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, cost(2));
    eventually("the consumer has seen the claim", async || Ok(world.channel().await?.claimed.0 == cost(2)))
        .await?;

    let _ = world.get("/ok").await?;
    eventually("the disagreement raises an alert", async || {
        let alerts = world.consumer.control().ask(endpoint::Alerts).await?;
        Ok(alerts.iter().any(|alert| alert.kind == AlertKind::ChannelStopped))
    })
    .await?;
    let next = world.get("/ok").await?;
    ensure!(next.problem() == "owner-distrusted", "{next:?}");

    // The user may trust it again, once the deposit is back.
    let at = endpoint::ResumeChannel.of(channel);
    let control = world.consumer.control().clone();
    let resume = async || control.ask(at.clone()).await;
    let early = resume().await.err().context("it still holds the deposit")?;
    ensure!(early.to_string().contains("still holds a deposit"), "{early}");
    chain.close(row).await?;
    eventually("the deposit is back", async || Ok(world.channel().await?.state.is_closed())).await?;
    let next = world.get("/ok").await?;
    ensure!(next.problem() == "owner-distrusted", "being empty is no trust: {next:?}");
    world.consumer.restart_until_ready(Vec::new()).await?;
    let shown = world.channel().await?;
    ensure!(shown.stopped && shown.state_in_words().contains("channel resume"), "{shown:?}");
    let asked = farthing(&world.consumer, &["channel", "resume", &channel.to_string()]).await?;
    asked.fails(2, &["Buy from it again?", "--yes"])?;
    resume().await?;
    ensure!(resume().await.is_err(), "it is not stopped any more");
    world.consumer.restart_until_ready(Vec::new()).await?;
    let again = resume().await.err().context("a restart stops it again")?;
    ensure!(again.to_string().contains("is not stopped"), "{again}");
    let answer = world.get("/ok").await?;
    ensure!(answer.problem() != "owner-distrusted", "{answer:?}");
    world.expect_differences(&["forgotten calls of 0.00 USDC, adjustments of 0.002"]);
    Ok(())
}
