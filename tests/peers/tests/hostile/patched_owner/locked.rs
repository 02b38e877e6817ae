//! Deposits with an owner that answers nothing more, or is not believed any more.

use farthing_control::{endpoint, types::ChannelState};
use std::path::Path;

use farthing_testnet::rpc;
use farthing_tests::{calls::setting, command::farthing, liar::Liar};
use tokio::process::Command;

use super::*;

/// As long as a node waits by default for its next call, and then for the owner's answer.
const IDLE_AND_UNANSWERED_SECS: u64 = 8 * 24 * 3_600;

async fn state(world: &World) -> Result<ChannelState> {
    Ok(world.channel().await?.state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_stays_undecided_does_not_lock_the_deposit() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let nothing: Answers = |_, _, _| None;
    let (_owner, _network) = Owner::replaces(&mut world, nothing).await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.problem() == "undecided", "{answer:?}");
    world.make_gas_cheap().await?;
    let url = world.chain.rpc_url();
    let sent = rpc::transactions_of(&url, world.consumer_wallet).await?;

    // Its clock is put forward once it runs.
    let folder = tempfile::tempdir()?;
    let text = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(text("later"), "0")?;
    let library = text("later.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/later.c");
    // Whatever links this test links that.
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o", &library]).arg(source).output().await;
    let compiled = compiled.context("cc cannot be run")?;
    ensure!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let environment = [
        ("LD_PRELOAD", library),
        ("LATER_FILE", text("later")),
        ("FARTHING_SETTLEMENT__INTERVAL_SECS", "1".into()),
    ];
    world.consumer.stop().await?;
    world.consumer.restart(environment.map(|(key, value)| (key.to_owned(), value)).to_vec()).await?;
    world.consumer.wait_until_ready().await?;
    ensure!(state(&world).await? == ChannelState::Open);
    std::fs::write(text("later"), IDLE_AND_UNANSWERED_SECS.to_string())?;
    eventually("the chain is asked", async || Ok(state(&world).await?.is_closing())).await?;
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    assert_eq!(audit.calls_undecided, 1, "the call may still be charged");
    assert_eq!(rpc::transactions_of(&url, world.consumer_wallet).await?, sent + 1, "once");
    // The real owner does not talk to a node whose clock is days ahead.
    world.expect_differences(&["1 calls are undecided"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_channel_asks_the_chain_until_that_has_its_request() -> Result<()> {
    let consumer_settings = setting("settlement.interval_secs", "1");
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let served_before_it_came: Answers = |owner, request, _| Some(owner.receipt(request));
    let (_owner, _network) = Owner::replaces(&mut world, served_before_it_came).await?;
    let url = world.chain.rpc_url();
    let set_eth = async |wei: &str| {
        rpc::call(&url, "anvil_setBalance", json!([world.consumer_wallet.to_string(), wei])).await
    };
    set_eth("0x0").await?;
    world.make_gas_cheap().await?;
    let sent = rpc::transactions_of(&url, world.consumer_wallet).await?;
    let answer = world.get("/ok").await?;
    ensure!(answer.problem() == "bad-answer", "{answer:?}");
    eventually("the first request fails", async || {
        Ok(world.consumer.log().contains("the close was not requested"))
    })
    .await?;
    ensure!(state(&world).await? == ChannelState::Stopped);

    set_eth("0xde0b6b3a7640000").await?;
    eventually("the chain is asked", async || Ok(state(&world).await?.is_closing())).await?;
    assert_eq!(rpc::transactions_of(&url, world.consumer_wallet).await?, sent + 1, "once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_close_that_closes_nothing_is_no_answer_and_the_chain_is_asked() -> Result<()> {
    for what in ["another round", "another deposit", "it is over", "more than is owed"] {
        let mut world = World::start().await?;
        world.buy(1).await?;
        let no_call: Answers = |_, _, _| None;
        let (owner, _network) = Owner::replaces(&mut world, no_call).await?;
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        let (channel, deposited) = (channels[0].id.0, channels[0].deposited.0);
        let good =
            CloseConsent { channel, amount: PRICE, deposited, round: 0, deadline_secs: u64::from(u32::MAX) };
        let consent = match what {
            "another round" => CloseConsent { round: 1, ..good },
            "another deposit" => CloseConsent { deposited: PRICE, ..good },
            "more than is owed" => CloseConsent { amount: cost(2), ..good },
            _ => CloseConsent { deadline_secs: 1, ..good },
        };
        owner.state.lock().consent = Some(consent);
        let at = endpoint::CloseChannel.of(channel);
        let closed: Channel = world.consumer.control().ask(at).await.context(what)?;
        ensure!(closed.state == ChannelState::CloseRequested, "{what}: {closed:?}");
        let told = "an owner signed a close that is void, or takes more than it is owed";
        ensure!(world.consumer.log().contains(told), "{what}: it was brought to the chain");
        // An owner that lost its records learns by the request what it is owed.
        let shown = owner.state.lock().shown.context(what)?;
        let (receipt, voucher) = shown.verify(&owner.domain, &owner.channel.config)?;
        assert_eq!((receipt.spent_total, voucher.cumulative, voucher.channel), (PRICE, PRICE, channel));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_asks_to_wait_with_a_close_has_no_deposit_locked_by_the_chain() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    // It signs no close, and is busy.
    let (owner, _network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    let id = owner.channel.id.to_string();
    let close = farthing(&world.consumer, &["channel", "close", &id, "--yes"]).await?;
    ensure!(close.code != 0 && close.err.contains("does not close the channel yet: later"), "{close:?}");
    ensure!(close.err.contains("--force"), "{close:?}");
    ensure!(state(&world).await? == ChannelState::Open);
    farthing(&world.consumer, &["channel", "close", &id, "--yes", "--force"]).await?.ends_with(0)?;
    eventually("the chain is asked", async || Ok(state(&world).await? == ChannelState::CloseRequested)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_promises_to_close_whenever_it_is_asked_is_believed_for_one_term() -> Result<()> {
    let patience = [setting("settlement.close_promise_secs", "5"), setting("settlement.interval_secs", "1")];
    let mut world = World::with(Setup { consumer_settings: patience.concat(), ..Setup::default() }).await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    owner.state.lock().promises = true;
    let id = owner.channel.id;
    let ask = async || world.consumer.control().ask(endpoint::CloseChannel.of(id)).await;
    let promised: Channel = ask().await?;
    ensure!(promised.state == ChannelState::ClosePromised, "{promised:?}");
    eventually("the chain is asked in its place", async || {
        // Whoever asks again has the same promise again.
        let _ = ask().await;
        Ok(state(&world).await? == ChannelState::CloseRequested)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_signed_close_takes_what_an_endpoint_alone_says_was_paid() -> Result<()> {
    let liar = Liar::start().await?;
    let mut world = World::with(Setup { consumer_endpoint: Some(liar.clone()), ..Setup::default() }).await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    let Channel { id, deposited, .. } = world.channel().await?;
    let paid = deposited.0.saturating_sub(PRICE);
    liar.lie(move |[deposited, _, close, round]| [deposited, u128::from(paid.micros()), close, round]);
    eventually("the lie is known", async || Ok(world.channel().await?.claimed.0 == paid)).await?;
    let (amount, deadline_secs) = (paid, u64::from(u32::MAX));
    let consent = CloseConsent { channel: id.0, amount, deposited: deposited.0, round: 0, deadline_secs };
    owner.state.lock().consent = Some(consent);
    let _ = world.consumer.control().ask(endpoint::CloseChannel.of(id.0)).await;
    let told = "an owner signed a close that is void, or takes more than it is owed";
    ensure!(world.consumer.log().contains(told), "it was brought to the chain");
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, Usdc::ZERO);
    Ok(())
}
