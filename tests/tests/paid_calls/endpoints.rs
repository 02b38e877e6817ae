//! A chain endpoint that lies about channels, under whole nodes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{AlertKind, Channel, ChannelRole, ChannelState as State, NodePart},
};
use farthing_testnet::rpc;
use farthing_tests::{
    calls::{expect_free, expect_served, fixed_owner, posing_as_public, setting},
    command::farthing,
    liar::{ChannelState, Liar},
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::Usdc;
use serde_json::json;

/// The owner's side of its one channel.
async fn owned(world: &World) -> Result<Channel> {
    let channels = world.owner.control().ask(endpoint::Channels).await?;
    channels.into_iter().find(|channel| channel.role == ChannelRole::Payee).context("the owner has a channel")
}

#[tokio::test]
async fn nothing_is_signed_for_what_an_endpoint_alone_says_was_paid() -> Result<()> {
    let liar = Liar::start().await?;
    // All that is deposited was paid out, but for two calls.
    let left = u128::from(2 * PRICE.micros());
    liar.lie(move |[deposited, claimed, close, round]| {
        [deposited, claimed.max(deposited.saturating_sub(left)), close, round]
    });
    let world = World::with(Setup { consumer_endpoint: Some(liar.clone()), ..fixed_owner()? }).await?;
    expect_served(&world.get("/ok").await?)?;
    assert!(liar.told() > 0, "the lie was told");
    let held = owned(&world).await?;
    assert_eq!((held.signed.0, held.spent.0), (PRICE, PRICE), "a voucher over the call, and no more");
    liar.tell_the_truth();
    for _ in 0..3 {
        expect_served(&world.get("/ok").await?)?;
    }
    world.settle_for(PRICE.saturating_mul(4)).await
}

/// The most that the liar says was paid: all of the deposit but a call.
fn paid_but_a_call([deposited, claimed, close, round]: ChannelState) -> ChannelState {
    [deposited, claimed.max(deposited.saturating_sub(u128::from(PRICE.micros()))), close, round]
}

/// A micro more than the one call that was charged.
fn paid_a_little_more([deposited, claimed, close, round]: ChannelState) -> ChannelState {
    [deposited, claimed.max(u128::from(PRICE.micros()) + 1), close, round]
}

#[tokio::test]
async fn what_endpoints_say_for_a_moment_accuses_no_owner() -> Result<()> {
    for (whose, lie) in [
        (ChannelRole::Payer, paid_but_a_call as fn(ChannelState) -> ChannelState),
        // What a free call has signed: its owner could claim it, and says nothing of the kind.
        (ChannelRole::Payer, paid_a_little_more),
        (ChannelRole::Payee, paid_but_a_call),
        (ChannelRole::Payee, paid_a_little_more),
    ] {
        let liar = Liar::start().await?;
        let setup = fixed_owner()?;
        let owner_settings = [setup.owner_settings.clone(), posing_as_public()].concat();
        let setup = Setup { owner_settings, consumer_settings: posing_as_public(), ..setup };
        let setup = match whose {
            ChannelRole::Payer => Setup { consumer_endpoint: Some(liar.clone()), ..setup },
            ChannelRole::Payee => Setup { owner_endpoint: Some(liar.clone()), ..setup },
        };
        let world = World::with(setup).await?;
        expect_served(&world.get("/ok").await?)?;
        let failed = world.get("/status/503").await?;
        assert_eq!((failed.status.as_u16(), failed.header("x-farthing-charged")), (502, "0.00"));
        world.wait_until_decided().await?;
        let node = if whose == ChannelRole::Payer { &world.consumer } else { &world.owner };
        let channel = async || -> Result<Channel> {
            let channels = node.control().ask(endpoint::Channels).await?;
            channels.into_iter().next().context("it has a channel")
        };
        let deposited = channel().await?.deposited.0;
        liar.lie(lie);
        // What is deposited has both read the channel again.
        let id = world.api.id.to_string();
        let deposit = async || {
            let ran = farthing(&world.consumer, &["channel", "open", &id, "--deposit", "0.1"]).await?;
            ran.ends_with(0).map(drop)
        };
        deposit().await?;
        eventually("the lie was told", async || Ok(channel().await?.deposited.0 > deposited)).await?;
        // An owner that heard of it for a moment counts what it served.
        let called = world.get("/ok").await?;
        match whose {
            ChannelRole::Payer => expect_free("the payer's lies", &called, 502, "owner-unreachable")?,
            ChannelRole::Payee => expect_served(&called)?,
        }
        liar.tell_the_truth();
        deposit().await?;
        eventually("calls are served again", async || Ok(world.get("/ok").await?.status.is_success()))
            .await?;
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        ensure!(channels.iter().all(|channel| channel.state == State::Open), "{whose:?}: {channels:?}");
        world.settle_and_check(FUNDS).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_owner_that_counts_what_no_call_explains_is_left_when_it_lasts_also_after_a_single_call()
-> Result<()> {
    is_left_when_it_lasts(false).await
}

#[tokio::test]
async fn an_owner_that_took_what_no_call_explains_and_says_nothing_is_left_when_it_lasts() -> Result<()> {
    is_left_when_it_lasts(true).await
}

async fn is_left_when_it_lasts(is_silent: bool) -> Result<()> {
    let liar = Liar::start().await?;
    let setup = fixed_owner()?;
    let owner_settings = [setup.owner_settings.clone(), posing_as_public()].concat();
    let setup = Setup { owner_settings, consumer_settings: posing_as_public(), ..setup };
    let mut world = World::with(Setup { consumer_endpoint: Some(liar.clone()), ..setup }).await?;
    world.buy(1).await?;
    // The endpoint stays with what it says, as the chain would.
    liar.lie(paid_but_a_call);
    let id = world.api.id.to_string();
    farthing(&world.consumer, &["channel", "open", &id, "--deposit", "0.1"]).await?.ends_with(0)?;
    eventually("the payer hears of it", async || Ok(world.channel().await?.claimed.0 > PRICE)).await?;
    if is_silent {
        world.owner.kill().await?;
    }
    expect_free("the one call", &world.get("/ok").await?, 502, "owner-unreachable")?;
    ensure!(world.channel().await?.state == State::Open, "not at once");
    // Two minutes, to the next look after them.
    let begun = Instant::now();
    while world.channel().await?.state == State::Open {
        ensure!(begun.elapsed() < Duration::from_secs(240), "it is never left");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    ensure!(begun.elapsed() > Duration::from_secs(90), "it lasted {:?}", begun.elapsed());
    liar.tell_the_truth();
    Ok(())
}

#[tokio::test]
async fn a_claim_that_an_endpoint_does_not_show_is_not_made_again_and_again() -> Result<()> {
    let liar = Liar::start().await?;
    let setup = fixed_owner()?;
    let owner_settings = [setup.owner_settings.clone(), setting("settlement.interval_secs", "1")].concat();
    let world = World::with(Setup { owner_endpoint: Some(liar.clone()), owner_settings, ..setup }).await?;
    world.make_gas_cheap().await?;
    world.buy(1).await?;
    let url = world.chain.rpc_url();
    let before = rpc::transactions_of(&url, world.owner_wallet).await?;
    let head = rpc::call(&url, "eth_blockNumber", json!([])).await?;
    let head = u64::from_str_radix(head.as_str().context("a number")?.trim_start_matches("0x"), 16)?;
    // The close is in the next block, and the claim in none that this endpoint tells of.
    liar.stand_at(head + 1);
    let at = endpoint::CloseChannel.of(world.channel().await?.id).with("force", true);
    let _: Channel = world.consumer.control().ask(at).await?;
    let claims = async || Ok(rpc::transactions_of(&url, world.owner_wallet).await? - before);
    eventually("it is claimed", async || Ok(claims().await? > 0)).await?;
    // That nothing comes takes time to see: several of the owner's intervals.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let claims: Result<u64> = claims().await;
    assert_eq!(claims?, 1, "each costs gas");
    liar.tell_the_truth();
    world.mine().await?;
    eventually("it is known to be paid", async || Ok(owned(&world).await?.claimed.0 == PRICE)).await?;
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, PRICE);
    let audit = world.owner.control().ask(endpoint::Audit).await?;
    assert_eq!((audit.violations, owned(&world).await?.spent.0), (Vec::new(), PRICE));
    Ok(())
}

#[tokio::test]
async fn an_owners_promise_to_close_is_remembered_over_what_an_endpoint_says_for_a_moment() -> Result<()> {
    let liar = Liar::start().await?;
    let setup = fixed_owner()?;
    let owner_settings = [setup.owner_settings.clone(), posing_as_public()].concat();
    let consumer_settings = [posing_as_public(), setting("settlement.interval_secs", "1")].concat();
    let consumer_endpoint = Some(liar.clone());
    let setup = Setup { owner_settings, consumer_settings, consumer_endpoint, ..setup };
    let mut world = World::with(setup).await?;
    world.make_gas_cheap().await?;
    world.buy(1).await?;
    world.end_owner_after_its_promise().await?;
    let promised = world.channel().await?;
    assert_eq!(promised.state, State::ClosePromised);

    // A node that starts reads every channel.
    liar.lie(|[_, claimed, close, round]| [claimed, claimed, close, round + 1]);
    world.consumer.restart(Vec::new()).await?;
    eventually("the payer hears that it is closed", async || {
        Ok(world.channel().await?.deposited.0.is_zero())
    })
    .await?;
    liar.tell_the_truth();
    world.consumer.restart(Vec::new()).await?;
    eventually("the payer hears that it is not", async || Ok(!world.channel().await?.deposited.0.is_zero()))
        .await?;
    let channel = world.channel().await?;
    assert_eq!((channel.state, channel.until_secs), (promised.state, promised.until_secs));
    Ok(())
}

/// Waits until this alert about the chain, and no other, is raised at the owner, and until its doctor marks the chain so.
async fn until_told(world: &World, raised: Option<AlertKind>, mark: &str) -> Result<()> {
    eventually(mark, async || {
        let alerts = world.owner.control().ask(endpoint::Alerts).await?;
        let of_chain = alerts
            .iter()
            .filter(|alert| alert.kind == AlertKind::ChainStale || alert.part() == Some(NodePart::Chain));
        let kinds: Vec<AlertKind> = of_chain.map(|alert| alert.kind).collect();
        let doctor = farthing(&world.owner, &["doctor"]).await?.out;
        let line = doctor.lines().find(|line| line.contains("  chain: ")).unwrap_or_default();
        Ok(kinds == raised.into_iter().collect::<Vec<_>>() && line.starts_with(mark))
    })
    .await
}

#[tokio::test]
async fn on_any_public_chain_an_owner_whose_endpoint_stands_still_says_so_and_then_sells_nothing()
-> Result<()> {
    for kind in [None, Some("testnet")] {
        let liar = Liar::start().await?;
        let kind_setting = kind.map(|kind| setting("chain.kind", kind)).unwrap_or_default();
        let chain = [setting("chain.preset", "custom"), kind_setting].concat();
        let (owner_settings, consumer_settings) = (chain.clone(), chain);
        let owner_endpoint = Some(liar.clone());
        let world =
            World::with(Setup { owner_settings, consumer_settings, owner_endpoint, ..Setup::default() })
                .await?;
        expect_served(&world.get("/ok").await?)?;
        until_told(&world, None, "ok").await?;
        let status = farthing(&world.owner, &["status"]).await?.ends_with(0)?.out.clone();
        ensure!(status.contains("test money") == kind.is_some(), "{kind:?}: {status}");

        // Half of what is tolerated, and more.
        liar.stand_still_for(400);
        until_told(&world, Some(AlertKind::ChainStale), "WARN").await?;
        expect_served(&world.get("/ok").await?)?;

        liar.stand_still_for(700);
        until_told(&world, Some(AlertKind::NotReady), "FAIL").await?;
        let health = world.owner.control().ask_any_status(endpoint::Health).await?;
        ensure!(
            !health.ready && health.waiting_for.iter().any(|part| part.contains("minutes old")),
            "{health:?}"
        );
        let hits = world.upstream.hits();
        expect_free("its view is too old", &world.get("/ok").await?, 503, "owner-unavailable")?;
        assert_eq!(world.upstream.hits(), hits, "nothing is served for what may be gone");

        liar.tell_the_truth();
        until_told(&world, None, "ok").await?;
        eventually("calls are served again", async || Ok(world.get("/ok").await?.status.is_success()))
            .await?;
        assert_eq!(world.settle_and_check(FUNDS).await?, PRICE.saturating_mul(3));
    }
    Ok(())
}

#[tokio::test]
async fn money_at_rest_is_bounded_whatever_an_endpoint_says_of_the_channel_over_restarts_too() -> Result<()> {
    const DEPOSIT: Usdc = Usdc::from_micros(50_000);
    let both = DEPOSIT.saturating_mul(2);
    let liar = Liar::start().await?;
    // Each deposit is told to be back, so that the next one has an authorization of its own.
    liar.lie(|[deposited, ..]| [0, 0, 0, deposited / u128::from(DEPOSIT.micros())]);
    let setup = fixed_owner()?;
    let owner_settings = [setup.owner_settings.clone(), posing_as_public()].concat();
    let consumer_settings = [
        posing_as_public(),
        setting("spending.deposit_max", &DEPOSIT.to_string()),
        setting("spending.at_rest_per_owner", &both.to_string()),
    ];
    let setup = Setup { owner_settings, consumer_settings: consumer_settings.concat(), ..setup };
    let mut world = World::with(Setup { consumer_endpoint: Some(liar.clone()), ..setup }).await?;
    for is_restarted in [false, true] {
        if is_restarted {
            world.consumer.restart_until_ready(Vec::new()).await?;
        }
        eventually("calls fill the channel no more", async || {
            Ok(world.get("/ok").await?.problem() == "over-limit")
        })
        .await?;
        // Nor does its user, beyond what may lie with the owner.
        let by_hand = ["channel", "open", &world.api.id.to_string(), "--deposit", "0.05"];
        let open = farthing(&world.consumer, &by_hand).await?;
        ensure!(open.code != 0 && open.err.contains("spending.at_rest_per_owner"), "{open:?}");
        let gone = FUNDS.saturating_sub(world.chain.usdc_of(world.consumer_wallet).await?);
        assert_eq!(gone, both, "after a restart: {is_restarted}");
        let at_rest = world.consumer.control().ask(endpoint::Spending).await?.at_rest;
        let quarter = Usdc::from_micros(both.micros() / 4);
        assert_eq!(
            [at_rest.now.0, at_rest.returned.0],
            [quarter; 2],
            "in all, after a restart: {is_restarted}"
        );
    }
    assert!(liar.told() > 0, "the lie was told");
    // The channel would be read by itself ten minutes later.
    liar.tell_the_truth();
    eventually("a call is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    let at_rest = world.consumer.control().ask(endpoint::Spending).await?.at_rest;
    assert_eq!(at_rest.now.0, both, "nothing counts twice");
    Ok(())
}
