//! What strangers try with the end of channels: to have the owner pay for it, and to be served on what is given back.

use farthing_chain::ClaimRow;
use farthing_control::{endpoint, types::ChannelState};
use farthing_protocol::SignedClose;
use farthing_testnet::rpc;
use farthing_tests::command::farthing;
use serde_json::json;

use super::*;

impl Payer {
    /// Asks the owner to close; the close that it signed, `None` when it closes itself.
    async fn ask_to_close(&self, channel: ChannelId) -> Result<Option<SignedClose>> {
        match self.answered(&self.network, CallMessage::Close(channel, None)).await? {
            CallReply::Channel(books) => Ok(books.close),
            other => bail!("an answer to another question: {other:?}"),
        }
    }

    /// Waits until the owner, which has just started, has read the channel from the chain: until then it knows what its ledger has
    /// of it, and refuses calls on it as on an unknown one.
    pub(super) async fn until_read(&self) -> Result<()> {
        self.until_known(self.config, cost(10)).await?;
        let promises_nothing = self.request("promises nothing", Usdc::ZERO);
        eventually("the owner has read the channel", async || {
            match self.send(promises_nothing.clone()).await? {
                Reply::Refused(refusal) => Ok(refusal.code != RefusalCode::UnknownChannel),
                other => bail!("{other:?}"),
            }
        })
        .await
    }

    /// Brings a signed close to the chain at this payer's cost.
    async fn bring(&self, config: ChannelConfig, close: SignedClose) -> Result<()> {
        let SignedClose { consent, signature } = close;
        let (amount, channel) = (consent.amount, config.id(&self.chain.domain()));
        let promise = self.voucher(channel, amount);
        let row = ClaimRow { config, cumulative: amount, amount, signature: promise };
        self.chain.relay_close(row, consent, signature).await?;
        Ok(())
    }
}

/// What the owner's wallet has paid the chain: its transactions, and its ETH.
async fn gas_of_the_owner(world: &World) -> Result<(u64, u128)> {
    let url = world.chain.rpc_url();
    let sent = rpc::transactions_of(&url, world.owner_wallet).await?;
    Ok((sent, rpc::eth_of(&url, world.owner_wallet).await?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_free_requests_to_close_cost_the_owner_no_gas() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x5a, cost(10)).await?;
    let before = gas_of_the_owner(&world).await?;
    let asked = stream::iter(0..1_000).map(|_| payer.ask_to_close(payer.channel)).buffer_unordered(50);
    let closes: Vec<SignedClose> = asked
        .map(|close| close.and_then(|close| close.context("the owner closes at its own cost")))
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Result<_>>()?;
    assert_eq!(closes.len(), 1_000);
    let consent = closes[0].consent;
    assert_eq!((consent.channel, consent.amount, consent.deposited), (payer.channel, Usdc::ZERO, cost(10)));

    // What was signed away is not served, over a power cut too.
    payer.refused("signed away", payer.request("late", PRICE), RefusalCode::ChannelClosing).await?;
    world.owner.restart_until_ready(Vec::new()).await?;
    payer.until_read().await?;
    payer.refused("after a restart", payer.request("later", PRICE), RefusalCode::ChannelClosing).await?;
    payer.bring(payer.config, closes[0]).await?;
    assert_eq!(world.chain.usdc_of(payer.key.address()).await?, FUNDS, "all of it is back");
    assert_eq!(gas_of_the_owner(&world).await?, before);

    // Filled again, the channel serves, and the old word is void.
    payer.open(payer.config, cost(10)).await?;
    eventually("the owner sees it", async || {
        Ok(matches!(payer.send(payer.request("paid", PRICE)).await?, Reply::Served(_)))
    })
    .await?;
    let _ = payer.bring(payer.config, closes[1]).await;
    let left = world.chain.usdc_of(payer.key.address()).await?;
    assert_eq!(left, FUNDS.saturating_sub(cost(10)), "the old word gives back what was earned since");
    expect_paid(&world, 1).await
}

/// It dies where the close is in its ledger and its signature nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_dies_before_it_signs_a_close_serves_nothing_on_what_it_gives_back() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x68, cost(10)).await?;
    world.owner.restart(vec![("FARTHING_KILL_AT".to_owned(), "owner.after_sign_away".to_owned())]).await?;
    world.owner.wait_until_ready().await?;
    payer.until_read().await?;
    payer.served(payer.request("paid", PRICE)).await?;
    tokio::select! {
        ended = world.owner.wait_until_ended() => ended?,
        close = payer.ask_to_close(payer.channel) => bail!("the owner lives: {close:?}"),
    }
    world.owner.restart_until_ready(Vec::new()).await?;
    payer.until_read().await?;
    payer.refused("signed away", payer.request("late", cost(2)), RefusalCode::ChannelClosing).await?;
    let close = payer.ask_to_close(payer.channel).await?.context("it gives another answer now")?;
    payer.bring(payer.config, close).await?;
    assert_eq!(world.chain.usdc_of(payer.key.address()).await?, FUNDS.saturating_sub(PRICE));
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, PRICE);
    assert_eq!(world.upstream.hits(), 1);
    Ok(())
}

#[tokio::test]
async fn a_signed_close_stops_its_channel_until_nobody_can_bring_it_any_more() -> Result<()> {
    let often = setting("settlement.interval_secs", "1");
    let world = World::with(Setup { owner_settings: often, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x5b, cost(10)).await?;
    payer.served(payer.request("paid", PRICE)).await?;
    let close = payer.ask_to_close(payer.channel).await?.context("one call does not pay for its gas")?;
    assert_eq!(close.consent.amount, PRICE);
    payer.refused("it counts", payer.request("early", cost(2)), RefusalCode::ChannelClosing).await?;
    let (url, later_secs) = (world.chain.rpc_url(), close.consent.deadline_secs + 600);
    rpc::call(&url, "evm_setNextBlockTimestamp", json!([later_secs])).await?;
    rpc::call(&url, "evm_mine", json!([])).await?;
    ensure!(payer.bring(payer.config, close).await.is_err(), "it is past its deadline");
    eventually("it is served again", async || {
        Ok(matches!(payer.send(payer.request("again", cost(2))).await?, Reply::Served(_)))
    })
    .await?;
    expect_paid(&world, 2).await
}

#[tokio::test]
async fn a_signed_close_whose_block_is_taken_back_still_counts() -> Result<()> {
    // On a chain of its own the owner believes a close at once.
    let world = World::with(Setup { owner_settings: posing_as_public(), ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x66, cost(10)).await?;
    payer.served(payer.request("paid", PRICE)).await?;
    let close = payer.ask_to_close(payer.channel).await?.context("one call does not pay for its gas")?;
    let url = world.chain.rpc_url();
    let before = rpc::call(&url, "evm_snapshot", json!([])).await?;
    payer.bring(payer.config, close).await?;
    let deposited = async || -> Result<Usdc> {
        let question = CallMessage::Sync(payer.channel, None);
        match payer.network.call(payer.owner, question, Bytes::new(), DEADLINE).await? {
            (CallReply::Channel(books), ..) => Ok(books.deposited),
            other => bail!("{other:?}"),
        }
    };
    eventually("the owner sees it closed", async || Ok(deposited().await? == PRICE)).await?;
    rpc::call(&url, "evm_revert", json!([before])).await?;
    rpc::call(&url, "anvil_mine", json!(["0x8"])).await?;
    eventually("the owner sees the deposit again", async || Ok(deposited().await? == cost(10))).await?;
    payer.refused("it counts again", payer.request("later", cost(2)), RefusalCode::ChannelClosing).await?;
    payer.bring(payer.config, close).await?;
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, PRICE);
    Ok(())
}

#[tokio::test]
async fn an_owner_closes_what_pays_for_its_gas_and_its_payer_brings_what_does_not() -> Result<()> {
    let world = World::start().await?;
    world.buy(1).await?;
    let before = gas_of_the_owner(&world).await?;
    let close = async || -> Result<ChannelState> {
        let at = endpoint::CloseChannel.of(world.channel().await?.id);
        Ok(world.consumer.control().ask(at).await?.state)
    };
    // 84,000 gas at a gwei are 25 cents of a dollar, for a call of a fifth of a cent.
    let state = close().await?;
    ensure!(state == ChannelState::CloseBrought, "{state:?}");
    assert_eq!(gas_of_the_owner(&world).await?, before);
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, PRICE, "what was earned comes with it");

    world.make_gas_cheap().await?;
    eventually("the owner has seen the close", async || Ok(world.get("/ok").await?.status.is_success()))
        .await?;
    world.wait_until_decided().await?;
    let state = close().await?;
    ensure!(state == ChannelState::ClosePromised, "{state:?}");
    eventually("the owner closes", async || Ok(gas_of_the_owner(&world).await?.0 > before.0)).await?;
    world.settle_for(cost(2)).await
}

/// The time that a call is told to wait for a signed close.
async fn told_to_wait_secs(world: &World) -> Result<u64> {
    let refused = world.get("/ok").await?;
    expect_free("its owner serves nothing yet", &refused, 503, "channel-closing")?;
    Ok(refused.header("retry-after").parse()?)
}

#[tokio::test]
async fn after_a_close_that_its_owner_signed_no_deposit_is_made_before_that_close_stays() -> Result<()> {
    let often = setting("settlement.interval_secs", "1");
    let (owner_settings, consumer_settings) = (posing_as_public(), [posing_as_public(), often].concat());
    let mut world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let consumer = world.consumer.control();
    let id = consumer.ask(endpoint::Channels).await?[0].id;
    let state = consumer.ask(endpoint::CloseChannel.of(id)).await?.state;
    ensure!(state == ChannelState::CloseBrought, "{state:?}");
    eventually("the payer sees it", async || {
        Ok(consumer.ask(endpoint::Channels).await?[0].state == ChannelState::Closed)
    })
    .await?;
    let left = world.chain.usdc_of(world.consumer_wallet).await?;

    let wait_secs = told_to_wait_secs(&world).await?;
    ensure!((60..=181).contains(&wait_secs), "{wait_secs} s");
    let service = world.api.id.to_string();
    for more in [&["--deposit", "0.1"][..], &[]] {
        let open = farthing(&world.consumer, &[&["channel", "open", &service][..], more].concat()).await?;
        ensure!(open.code != 0 && open.err.contains("for two minutes"), "{open:?}");
    }
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, left, "nothing was deposited");
    assert_eq!(world.upstream.hits(), 1);

    // A restart does not begin the wait anew, which begins in a block that is safe.
    rpc::call(&world.chain.rpc_url(), "anvil_mine", json!(["0x28"])).await?;
    eventually("some of the wait is over", async || Ok(told_to_wait_secs(&world).await? < 176)).await?;
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    world.wait_until_met().await?;
    let wait_secs = told_to_wait_secs(&world).await?;
    ensure!(wait_secs < 177, "{wait_secs} s after the restart");
    Ok(())
}

#[tokio::test]
async fn a_node_that_dies_while_it_brings_a_signed_close_brings_it_and_deposits_nothing_before_it_stays()
-> Result<()> {
    for point in ["settlement.before_relay", "settlement.after_relay"] {
        let often = setting("settlement.interval_secs", "1");
        let (owner_settings, consumer_settings) = (posing_as_public(), [posing_as_public(), often].concat());
        let mut world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
        world.buy(1).await?;
        world.consumer.restart_until_ready(vec![("FARTHING_KILL_AT".to_owned(), point.to_owned())]).await?;
        world.wait_until_met().await?;
        let id = world.consumer.control().ask(endpoint::Channels).await?[0].id;
        let closed = world.consumer.control().ask(endpoint::CloseChannel.of(id)).await;
        ensure!(closed.is_err(), "{point}: its node lives: {closed:?}");
        world.consumer.wait_until_ended().await?;
        world.consumer.restart_until_ready(Vec::new()).await?;
        world.wait_until_met().await?;

        let wait_secs = told_to_wait_secs(&world).await.context(point)?;
        ensure!((60..=181).contains(&wait_secs), "{point}: {wait_secs} s");
        eventually("all but what was earned is back", async || {
            Ok(world.chain.usdc_of(world.consumer_wallet).await? == FUNDS.saturating_sub(PRICE))
        })
        .await
        .context(point)?;
        told_to_wait_secs(&world).await.context(point)?;
        assert_eq!((world.upstream.hits(), world.chain.usdc_of(world.owner_wallet).await?), (1, PRICE));
    }
    Ok(())
}
