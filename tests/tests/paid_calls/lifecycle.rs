//! Services that pause and end, nodes that stop and start: what stays, and what is finished first.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, ApiState, CatalogService, CatalogState, Channel, ChannelState, OperationFile, ServiceFile},
};
use farthing_testnet::{NodeProcess, rpc};
use farthing_tests::{
    agreement::until_closed,
    calls::{cost, expect_free, expect_served, fixed_owner, setting},
    command::farthing,
    upstream::Gate,
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::{Method, Usdc};
use serde_json::json;

#[tokio::test]
async fn a_paused_service_refuses_and_a_removed_one_is_gone() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let (control, id) = (world.owner.control(), world.api.id);

    let paused = control.ask(endpoint::PauseApi.of(id)).await?;
    assert_eq!(paused.state, ApiState::Paused);
    expect_free("paused", &world.get("/ok").await?, 503, "owner-unavailable")?;
    expect_free("still paused", &world.get("/ok").await?, 503, "owner-unavailable")?;
    let resumed = control.ask(endpoint::ResumeApi.of(id)).await?;
    assert_eq!(resumed.state, ApiState::Published);
    expect_served(&world.get("/ok").await?)?;

    let removed = control.ask(endpoint::RemoveApi.of(id)).await?;
    assert_eq!(removed.state, ApiState::Removed);
    // Until the consumer's node hears of it, the owner refuses; then its own catalog does.
    let answer = world.get("/ok").await?;
    ensure!([404, 410].contains(&answer.status.as_u16()), "{} {:?}", answer.status, answer.body);
    assert_eq!(answer.charged(), false);
    let left = world.owner.control().ask(endpoint::Apis).await?;
    ensure!(left.is_empty(), "{left:?}");
    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(cost(2)).await
}

/// Pauses the service, and waits until the consumer knows it.
async fn pause(world: &World) -> Result<()> {
    let id = world.api.id;
    world.owner.control().ask(endpoint::PauseApi.of(id)).await?;
    eventually("the consumer knows that it is paused", async || {
        let service = world.consumer.control().ask(endpoint::CatalogService.of(id)).await;
        Ok(service.is_ok_and(|service| service.hit.state == CatalogState::Paused))
    })
    .await
}

#[tokio::test]
async fn a_service_known_to_be_paused_gets_no_deposit() -> Result<()> {
    let world = World::start().await?;
    let id = world.api.id;
    pause(&world).await?;
    expect_free("paused", &world.get("/ok").await?, 503, "owner-unavailable")?;
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    ensure!(channels.is_empty(), "money was bound for nothing: {channels:?}");
    world.owner.control().ask(endpoint::ResumeApi.of(id)).await?;
    eventually("it is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn a_service_that_comes_back_dearer_is_no_longer_said_to_be_paused() -> Result<()> {
    let world = World::start().await?;
    let id = world.api.id;
    pause(&world).await?;
    expect_free("paused", &world.get("/ok").await?, 503, "owner-unavailable")?;
    // The dearer version does not take the place of the one in use by itself.
    farthing(&world.owner, &["api", "price", &id.to_string(), "0.003"]).await?.ends_with(0)?;
    world.owner.control().ask(endpoint::ResumeApi.of(id)).await?;
    eventually("it is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    world.settle_for(Usdc::from_micros(3_000)).await
}

#[tokio::test]
async fn a_restart_keeps_wallet_secret_services_and_channel() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.buy(3).await?;
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    // How the upstream and the neighbours do is looked at again and again while the node runs.
    let apis = async |node: &NodeProcess| -> Result<Vec<Api>> {
        let apis = node.control().ask(endpoint::Apis).await?;
        Ok(apis.into_iter().map(|api| Api { upstream_median_us: None, health: None, ..api }).collect())
    };
    let published = apis(&world.owner).await?;
    let (peer, ca) = (world.consumer.status().await?.peer_id, std::fs::read(world.consumer.ca_file())?);

    // Once in order, once as a power cut would.
    for power_cut in [false, true] {
        if power_cut {
            world.owner.kill().await?;
            world.consumer.kill().await?;
        } else {
            world.owner.stop().await?;
            world.consumer.stop().await?;
        }
        world.owner.restart(Vec::new()).await?;
        world.consumer.restart(Vec::new()).await?;
        world.owner.wait_until_ready().await?;
        world.consumer.wait_until_ready().await?;
        assert_eq!(world.owner.status().await?.address.0, world.owner_wallet);
        assert_eq!(world.consumer.status().await?.address.0, world.consumer_wallet);
        assert_eq!(world.consumer.status().await?.peer_id, peer);
        ensure!(world.consumer.secret().await? == world.secret, "the secret changed");
        ensure!(std::fs::read(world.consumer.ca_file())? == ca, "the authority changed");
        assert_eq!(apis(&world.owner).await?, published);
        assert_eq!(world.consumer.control().ask(endpoint::Channels).await?, channels);
    }
    eventually("the nodes found each other", async || Ok(world.get("/ok").await?.status.is_success()))
        .await?;
    world.wait_until_decided().await?;
    let now = world.consumer.control().ask(endpoint::Channels).await?;
    assert_eq!(
        (now.len(), now[0].id, now[0].spent.0),
        (1, channels[0].id, cost(4)),
        "the same channel goes on"
    );
    assert_eq!(world.upstream.hits(), 4);
    world.settle_for(cost(4)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_progress_is_answered_before_a_node_ends() -> Result<()> {
    for owner_ends in [false, true] {
        let mut world = World::with(fixed_owner()?).await?;
        expect_served(&world.get("/ok").await?)?;
        let hits = world.upstream.hits();
        let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
        let request = world
            .client()
            .post(url)
            .bearer_auth(&world.secret)
            .body(world.body("GET", "/slow/2500").to_string());
        let call = tokio::spawn(request.send());
        eventually("the upstream works on the call", async || Ok(world.upstream.hits() > hits)).await?;
        let ending = if owner_ends { &mut world.owner } else { &mut world.consumer };
        tokio::time::timeout(Duration::from_secs(20), ending.stop()).await??;
        let answer = call.await??;
        assert_eq!(answer.status(), 200, "the owner ends: {owner_ends}");
        assert_eq!(answer.headers()["x-farthing-charged"], "0.002");
        assert_eq!(answer.bytes().await?, "at last");
        ending.restart_until_ready(Vec::new()).await?;
        eventually("calls go on", async || Ok(world.get("/ok").await?.status.is_success())).await?;
        assert_eq!(world.upstream.hits(), 3);
        assert_eq!(world.settle_and_check(FUNDS).await?, cost(3));
    }
    Ok(())
}

#[tokio::test]
async fn a_channel_that_was_closed_twice_serves_again_when_it_is_filled() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    for _ in 0..2 {
        world.consumer.control().ask(endpoint::CloseChannel.of(world.channel().await?.id)).await?;
        // Each node sees the chain with its own eyes, and the owner refuses while a close seems pending to it.
        for node in [&world.consumer, &world.owner] {
            until_closed(node).await?;
        }
    }
    expect_served(&world.get("/ok").await?)?;
    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_owner_that_closes_after_each_call_has_its_channel_filled_again_once_a_day() -> Result<()> {
    let world = World::start().await?;
    let (mut served, mut last) = (0, None);
    for _ in 0..4 {
        let answer = world.get("/ok").await?;
        if !answer.status.is_success() {
            last = Some(answer);
            break;
        }
        served += 1;
        let channels = world.owner.control().ask(endpoint::Channels).await?;
        world.owner.control().ask(endpoint::CloseChannel.of(channels[0].id)).await?;
        eventually("the payer sees it", async || {
            let channel = world.channel().await?;
            Ok(channel.deposited.0 == channel.claimed.0 && channel.state == ChannelState::Closed)
        })
        .await?;
    }
    let last = last.context("a call for each deposit")?;
    expect_free("filled too often", &last, 402, "over-limit")?;
    ensure!(last.json()["detail"].to_string().contains("farthing channel open"), "{last:?}");
    assert_eq!(served, 2, "the first, and once again");
    let open = ["channel", "open", &world.api.id.to_string(), "--deposit", "0.1"];
    farthing(&world.consumer, &open).await?.ends_with(0)?;
    expect_served(&world.get("/ok").await?)?;
    // A close that its payer asks for is none of the owner's.
    world.wait_until_decided().await?;
    world.consumer.control().ask(endpoint::CloseChannel.of(world.channel().await?.id)).await?;
    for node in [&world.consumer, &world.owner] {
        until_closed(node).await?;
    }
    expect_served(&world.get("/ok").await?)?;
    world.settle_for(cost(4)).await
}

#[tokio::test]
async fn the_first_call_after_a_close_waits_for_the_owner_to_see_the_new_deposit() -> Result<()> {
    // What a channel paid before is less than the least deposit, and the owner looks rarely.
    let owner_settings =
        [setting("settlement.channel_min", "0.01"), setting("chain.poll_interval_ms", "3000")].concat();
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    // It closes the channel itself, and sees that at once.
    world.make_gas_cheap().await?;
    expect_served(&world.get("/ok").await?)?;
    for _ in 0..3 {
        world.wait_until_decided().await?;
        world.consumer.control().ask(endpoint::CloseChannel.of(world.channel().await?.id)).await?;
        eventually("the consumer sees the close", async || Ok(world.channel().await?.state.is_closed()))
            .await?;
        // Whatever the owner sees by now.
        expect_served(&world.get("/ok").await?)?;
    }
    world.settle_for(cost(4)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_on_new_terms_is_answered_and_its_deposit_is_counted_once() -> Result<()> {
    // One deposit is less than what the channel on the old terms has paid out.
    let consumer_settings =
        [setting("spending.deposit_prices", "2"), setting("spending.deposit_min", "0.004")].concat();
    let mut world = World::with(Setup { consumer_settings, ..fixed_owner()? }).await?;
    world.make_gas_cheap().await?;
    world.buy(5).await?;
    world.consumer.control().ask(endpoint::CloseChannel.of(world.channel().await?.id)).await?;
    eventually("the consumer sees the close", async || Ok(world.channel().await?.state.is_closed())).await?;
    let listed = async |world: &World| -> Result<u64> {
        let service: CatalogService =
            world.consumer.control().ask(endpoint::CatalogService.of(world.api.id)).await?;
        Ok(service.hit.version)
    };
    let before = listed(&world).await?;
    let longer = ("FARTHING_CHAIN__CLOSE_DELAY_SECS".to_owned(), "172800".to_owned());
    world.owner.restart_until_ready(vec![longer]).await?;
    world.wait_until_met().await?;
    eventually("the consumer knows the new terms", async || Ok(listed(&world).await? > before)).await?;
    expect_served(&world.get("/ok").await?)?;
    // Until the channel has been filled on, which the call began.
    eventually("what lies on chain counts, and nothing twice", async || {
        let at_rest = world.consumer.control().ask(endpoint::Spending).await?.at_rest;
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        let held = channels.iter().map(|channel| channel.deposited.0.saturating_sub(channel.claimed.0));
        Ok(at_rest.now.0 == held.fold(Usdc::ZERO, Usdc::saturating_add))
    })
    .await?;
    world.settle_for(cost(6)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_time_is_up_before_its_deposit_is_there_is_never_sent() -> Result<()> {
    let world = World::start().await?;
    world.mine_by_hand().await?;
    let calls = [world.body("POST", "/ok"), world.body("GET", "/ok"), world.body("GET", "/ok")];
    let mut answers = futures::future::try_join_all(calls.iter().map(|call| world.call(call)));
    // Whoever waits for the deposit longer than a call may take gets it, and sends its call then.
    let in_time = tokio::time::timeout(Duration::from_secs(60), &mut answers).await;
    world.mine_at_once().await?;
    let answers = match in_time {
        Ok(answers) => answers?,
        Err(_) => answers.await?,
    };
    for answer in &answers {
        expect_free("nobody waits any more", answer, 503, "channel-not-funded")?;
        let told = answer.json()["detail"].to_string();
        ensure!(told.contains("USDC into it is under way") && told.contains("was not sent"), "{told}");
    }
    eventually("the deposit went on", async || {
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        Ok(channels.iter().any(|channel| channel.state == ChannelState::Open))
    })
    .await?;
    assert_eq!(world.upstream.hits(), 0);
    // What had waited for the deposit is sent by then, if it is ever.
    for _ in 0..20 {
        expect_served(&world.get("/ok").await?)?;
    }
    assert_eq!(world.upstream.hits(), 20);
    world.settle_for(cost(20)).await
}

#[tokio::test]
async fn a_call_right_after_a_close_is_told_to_wait_for_it_and_fills_the_channel_then() -> Result<()> {
    let world = World::with(fixed_owner()?).await?;
    world.make_gas_cheap().await?;
    world.buy(1).await?;
    // The owner's close waits for a block.
    world.mine_by_hand().await?;
    eventually("the owner promises", async || {
        Ok(close(&world, false).await?.state == ChannelState::ClosePromised)
    })
    .await?;
    let refused = world.get("/ok").await?;
    expect_free("it is being closed", &refused, 503, "channel-closing")?;
    ensure!(refused.header("retry-after") == "3", "{refused:?}");
    let told = refused.json()["detail"].to_string();
    ensure!(told.contains("this node asked the owner") && !told.contains("deposit"), "{told}");
    let open = ["channel", "open", &world.api.id.to_string(), "--deposit", "0.1"];
    let open = farthing(&world.consumer, &open).await?;
    ensure!(open.code != 0 && open.err.contains("this node asked the owner"), "{open:?}");
    let channel = world.channel().await?.id.to_string();
    let resumed = farthing(&world.consumer, &["channel", "resume", &channel]).await?;
    resumed.fails(1, &["nothing to resume, but it is being closed", "refused until the close is over"])?;
    assert_eq!(world.upstream.hits(), 1);

    world.mine_at_once().await?;
    eventually("a call fills the channel", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(cost(2)).await
}

/// Whether the chain has the request to close.
fn is_requested(channel: &Channel) -> bool {
    channel.state == ChannelState::CloseRequested && channel.until_secs.is_some()
}

async fn close(world: &World, force: bool) -> Result<Channel> {
    let at = endpoint::CloseChannel.of(world.channel().await?.id).with("force", force);
    Ok(world.consumer.control().ask(at).await?)
}

#[tokio::test]
async fn a_signed_close_that_this_node_cannot_pay_for_is_told_as_that_and_brought_once_it_can() -> Result<()>
{
    // Its owner pays gas for nobody.
    let owner_settings = setting("settlement.sponsor", "false");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let (url, wallet) = (world.chain.rpc_url(), world.consumer_wallet.to_string());
    let set_eth = async |wei: &str| rpc::call(&url, "anvil_setBalance", json!([wallet, wei])).await;
    set_eth("0x0").await?;
    let id = world.channel().await?.id.to_string();
    let refused = farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?;
    for words in ["signed the close", "ETH", "--force"] {
        ensure!(refused.code != 0 && refused.err.contains(words), "no `{words}`: {refused:?}");
    }
    ensure!(world.channel().await?.state == ChannelState::ClosePromised, "the owner serves nothing on it");

    set_eth("0xde0b6b3a7640000").await?;
    // The node brings it of its own accord as well.
    ensure!(close(&world, false).await?.state.is_closed());
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, cost(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_busy_when_it_was_asked_and_closes_later_has_closed_unasked() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    world.buy(1).await?;
    let held =
        OperationFile { timeout_secs: Some(300), ..OperationFile::named(Method::Get, "/held".to_owned()) };
    let file = ServiceFile {
        name: "Held".to_owned(),
        upstream: gate.url(),
        operations: vec![held],
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let id = world.channel().await?.id;
    // A call runs on the channel for as long as the payer asks.
    let asking = async {
        gate.asked().await?;
        let busy = farthing(&world.consumer, &["channel", "close", &id.to_string(), "--yes"]).await?;
        ensure!(busy.code != 0 && busy.err.contains("does not close the channel yet"), "{busy:?}");
        gate.open();
        anyhow::Ok(())
    };
    let (answer, ()) = futures::try_join!(world.call_of(&api, "GET", "/held"), asking)?;
    expect_served(&answer)?;
    world.wait_until_decided().await?;

    // Calls fill once a day what was closed unasked.
    for is_filled in [true, false] {
        world.owner.control().ask(endpoint::CloseChannel.of(id)).await?;
        eventually("the payer sees it", async || {
            let channel = world.channel().await?;
            Ok(channel.deposited.0 == channel.claimed.0 && channel.state == ChannelState::Closed)
        })
        .await?;
        let answer = world.get("/ok").await?;
        if is_filled {
            expect_served(&answer)?;
            world.wait_until_decided().await?;
        } else {
            expect_free("filled too often", &answer, 402, "over-limit")?;
        }
    }
    world.settle_for(cost(3)).await
}

/// An owner that promises to close its channel and is gone before it does.
async fn promised_and_gone(term_secs: &str) -> Result<World> {
    let consumer_settings =
        [setting("settlement.close_promise_secs", term_secs), setting("settlement.interval_secs", "1")];
    let setup = Setup { consumer_settings: consumer_settings.concat(), ..fixed_owner()? };
    let mut world = World::with(setup).await?;
    world.make_gas_cheap().await?;
    world.buy(1).await?;
    world.end_owner_after_its_promise().await?;
    Ok(world)
}

#[tokio::test]
async fn an_owner_that_promises_to_close_and_does_not_is_closed_on_chain_after_its_term() -> Result<()> {
    let mut world = promised_and_gone("20").await?;
    // The word and its term outlive a restart of the payer.
    world.consumer.restart(Vec::new()).await?;
    let channel = world.channel().await?;
    ensure!(channel.state.is_closing(), "{channel:?}");
    eventually("the chain was asked", async || Ok(is_requested(&world.channel().await?))).await
}

#[tokio::test]
async fn a_call_that_waits_for_an_overdue_close_is_told_until_when_and_how_not_to_wait() -> Result<()> {
    let mut world = promised_and_gone("86400").await?;
    // A node that starts does not know since when the owner owes it.
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    let refused = world.get("/ok").await?;
    expect_free("its owner owes the close", &refused, 503, "channel-closing")?;
    ensure!(refused.header("retry-after") == "60", "{refused:?}");
    let id = world.channel().await?.id.0;
    let told = refused.json()["detail"].to_string();
    ensure!(told.contains(&format!("farthing channel close {id} --force")), "{told}");
    let next = refused.json()["next"].to_string();
    ensure!(!next.contains("seconds"), "{next}");
    Ok(())
}

#[tokio::test]
async fn a_forced_close_asks_the_chain_at_once_whatever_the_owner_promised() -> Result<()> {
    let world = promised_and_gone("86400").await?;
    let promised = close(&world, false).await?;
    ensure!(promised.state == ChannelState::ClosePromised && promised.until_secs.is_some(), "{promised:?}");
    let forced = close(&world, true).await?;
    ensure!(forced.state == ChannelState::CloseRequested, "{forced:?}");
    eventually("the chain shows it", async || Ok(is_requested(&world.channel().await?))).await?;
    // More money would only wait there with the rest.
    let (service, left) = (world.api.id.to_string(), world.chain.usdc_of(world.consumer_wallet).await?);
    let open = farthing(&world.consumer, &["channel", "open", &service, "--deposit", "0.1"]).await?;
    ensure!(
        open.code != 0 && open.err.contains("a close of the channel with this owner is pending"),
        "{open:?}"
    );
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, left);
    Ok(())
}
