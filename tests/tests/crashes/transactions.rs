//! Nodes that die around a transaction: each purpose is reached once, whoever restarts when.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Channel, ChannelState, HistoryKind, HistoryState},
};
use farthing_testnet::{NodeProcess, rpc};
use farthing_tests::{
    calls::{expect_free, setting},
    command::{Ran, farthing, run},
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{Lasting, agreed_spent, call_in_background, kill_at, tail, until_answered};

/// 200 prices, the first deposit of a channel.
const FIRST_DEPOSIT: Usdc = PRICE.saturating_mul(200);

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_whose_opening_is_interrupted_is_opened_once() -> Result<()> {
    let world = &mut Lasting::start().await?.world;
    for point in ["funding.before_deposit", "funding.after_deposit"] {
        world.consumer.restart_until_ready(kill_at(point)).await?;
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
async fn a_deposit_without_eth_whose_payer_dies_after_signing_it_is_made_once_by_the_owner() -> Result<()> {
    let world = &mut Lasting::start().await?.world;
    let wallet = world.consumer_wallet;
    world.set_eth(wallet, "0x0").await?;
    world.consumer.restart_until_ready(kill_at("funding.after_sign")).await?;
    call_until_consumer_dies(world).await?;
    ensure!(world.chain.usdc_of(wallet).await? == FUNDS, "nobody has the authorization yet");
    world.consumer.restart(Vec::new()).await?;
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    ensure!(deposited(world).await? == FIRST_DEPOSIT, "deposited {}", deposited(world).await?);
    ensure!(rpc::transactions_of(&world.chain.rpc_url(), wallet).await? == 0, "the owner pays the gas");
    agreed_spent(world).await?;
    // With ETH the channel is closed at once.
    world.set_eth(wallet, "0xde0b6b3a7640000").await?;
    eventually("the consumer knows its ETH", async || {
        let balance = world.consumer.control().ask(endpoint::Wallet).await?;
        Ok(balance.eth.is_some_and(|eth| eth.0.wei > 0))
    })
    .await?;
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_pending_at_the_kill_is_finished_once_after_the_restart() -> Result<()> {
    let world = &mut Lasting::start().await?.world;

    world.mine_by_hand().await?;
    let body = world.body("GET", "/ok");
    let call = call_in_background(world, &body).await?;
    world.wait_for_pending().await?;
    world.consumer.restart(Vec::new()).await?;
    drop(call);
    world.mine_at_once().await?;
    until_answered(world, &body).await?;
    ensure!(deposited(world).await? == FIRST_DEPOSIT, "deposited {}", deposited(world).await?);

    world.mine_by_hand().await?;
    let settle = {
        let control = world.owner.control().clone();
        tokio::spawn(async move { control.ask(endpoint::Settle).await })
    };
    world.wait_for_pending().await?;
    world.owner.restart(Vec::new()).await?;
    drop(settle);
    world.mine_at_once().await?;
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
    let again = world.owner.control().ask(endpoint::Settle).await?;
    ensure!(again.claimed.0.is_zero(), "claimed twice: {again:?}");
    claims_name_their_transactions(world, 1).await?;
    world.settle_for(spent).await
}

/// The owner's history shows so many claims that were paid, each with a transaction that stands beside it.
async fn claims_name_their_transactions(world: &World, count: usize) -> Result<()> {
    let told = "each claim that was paid stands beside its transaction";
    eventually(told, async || {
        let rows = world.owner.control().ask(endpoint::History).await?.entries;
        let of =
            |kind| rows.iter().filter(move |row| (row.kind, row.state) == (kind, HistoryState::Confirmed));
        let sent: Vec<_> = of(HistoryKind::Transaction).map(|row| &row.transaction).collect();
        let paid: Vec<_> = of(HistoryKind::Settlement).map(|row| &row.transaction).collect();
        Ok(paid.len() == count && paid.iter().all(|hash| hash.is_some() && sent.contains(hash)))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_told_to_end_waits_for_no_block_and_finishes_once_what_it_sent_after_the_restart()
-> Result<()> {
    let world = &mut Lasting::start().await?.world;

    world.mine_by_hand().await?;
    let body = world.body("GET", "/ok");
    let call = call_in_background(world, &body).await?;
    world.wait_for_pending().await?;
    world.consumer.stop().await.context("a channel is being opened")?;
    expect_free("its channel is not open", &call.await??, 503, "channel-not-funded")?;
    world.consumer.restart(Vec::new()).await?;
    world.mine_at_once().await?;
    until_answered(world, &body).await?;
    ensure!(deposited(world).await? == FIRST_DEPOSIT, "deposited {}", deposited(world).await?);
    let spent = agreed_spent(world).await?;

    world.mine_by_hand().await?;
    let settling = in_background(&world.owner, &["settle", "now"]);
    world.wait_for_pending().await?;
    world.owner.stop().await.context("a claim is under way")?;
    told_as_perhaps_done(&settling.await??)?;
    world.owner.restart(Vec::new()).await?;
    world.mine_at_once().await?;
    eventually("the claim is confirmed", async || Ok(only_channel(&world.owner).await?.claimed.0 == spent))
        .await
        .context(tail(&world.owner))?;
    let again = world.owner.control().ask(endpoint::Settle).await?;
    ensure!(again.claimed.0.is_zero(), "claimed twice: {again:?}");
    ensure!(world.chain.usdc_of(world.owner_wallet).await? == spent);

    world.mine_by_hand().await?;
    let channel = payer_channel(world).await?.id.to_string();
    let closing = in_background(&world.consumer, &["channel", "close", &channel, "--force", "--yes"]);
    world.wait_for_pending().await?;
    world.consumer.stop().await.context("a close is asked for")?;
    told_as_perhaps_done(&closing.await??)?;
    world.consumer.restart(Vec::new()).await?;
    world.mine_at_once().await?;
    eventually("the chain has the request", async || {
        Ok(payer_channel(world).await?.state == ChannelState::CloseRequested)
    })
    .await?;
    world.mine_after(100_000).await?;
    let at = endpoint::CloseChannel.of(payer_channel(world).await?.id);
    eventually("the rest is taken back", async || {
        Ok(world.consumer.control().ask(at.clone()).await.is_ok_and(|channel| channel.state.is_closed()))
    })
    .await?;
    world.settle_for(spent).await
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_closes_that_are_interrupted_pay_everything_once() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    for point in ["settlement.before_claim", "settlement.after_claim"] {
        let body = world.body("GET", "/ok");
        until_answered(world, &body).await?;
        world.owner.restart_until_ready(kill_at(point)).await?;
        // The node dies before it can say how the claim ended.
        let _ = world.owner.control().ask(endpoint::Settle).await;
        world.owner.wait_until_ended().await.context(point)?;
        world.owner.restart_until_ready(Vec::new()).await?;
        let spent = agreed_spent(world).await?;
        world.owner.control().ask(endpoint::Settle).await?;
        let gain = world.chain.usdc_of(world.owner_wallet).await?;
        ensure!(gain == spent, "{point}: {gain} claimed of {spent}");
    }
    claims_name_their_transactions(world, 2).await?;
    world.make_gas_cheap().await?;
    for point in ["settlement.before_close", "settlement.after_close"] {
        let body = world.body("GET", "/ok");
        until_answered(world, &body).await.context(point)?;
        world.owner.restart_until_ready(kill_at(point)).await?;
        close_until_owner_died_and_came_back(world).await.context(point)?;
        eventually("the close is carried out", async || Ok(payer_channel(world).await?.state.is_closed()))
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
    let world = &mut Lasting::with(Setup { consumer_settings, ..Setup::default() }).await?.world;
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    for point in ["funding.before_deposit", "funding.after_deposit"] {
        world.consumer.restart_until_ready(kill_at(point)).await?;
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
    world.settle_for(agreed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_whose_answer_is_lost_is_never_told_as_unsent_and_is_made_once() -> Result<()> {
    let world = &mut Lasting::start().await?.world;
    let to = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
    let friend = to.parse()?;
    for (sent, is_killed) in [(1, true), (2, false)] {
        world.mine_by_hand().await?;
        let data = world.consumer.data_dir().display().to_string();
        let sending = tokio::spawn(async move {
            run(&data, &["--json", "wallet", "send", to, "--usdc", "0.5", "--yes"]).await
        });
        world.wait_for_pending().await?;
        if is_killed {
            world.consumer.kill().await?;
        } else {
            world.consumer.stop().await?;
        }
        let ran = sending.await??;
        let error = ran.ends_with(7)?.error()?;
        assert_eq!(error["code"], "may-have-been-made", "{error}");
        let text = error.to_string();
        for words in ["may have been made", "or may still be made", "wallet history", "before you send again"]
        {
            ensure!(text.contains(words), "no `{words}` in {text}");
        }
        ensure!(is_killed || text.contains("transaction 0x"), "a node that stops tells the hash: {text}");
        world.mine_at_once().await?;
        world.consumer.restart(Vec::new()).await?;
        let due = Usdc::from_micros(500_000).saturating_mul(sent);
        eventually("it is made", async || Ok(world.chain.usdc_of(friend).await? == due)).await?;
    }
    world.consumer.wait_until_ready().await?;
    let history = world.consumer.control().ask(endpoint::History).await?;
    let made = history.entries.iter().filter(|entry| entry.kind == HistoryKind::Transaction).count();
    ensure!(made == 2, "the history shows both: {history:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_the_command_line_whose_answer_is_lost_names_an_id_that_is_charged_once() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let before = agreed_spent(world).await?;
    world.consumer.restart_until_ready(kill_at("consumer.after_answer")).await?;
    let service = world.api.id.to_string();
    let call = ["--json", "call", &service, "GET", "/ok"];
    let error = farthing(&world.consumer, &call).await?.error()?;
    ensure!(error["charged"].is_null(), "{error}");
    let id = error["call_id"].as_str().context("no call id")?.to_owned();
    world.consumer.restart_until_ready(Vec::new()).await?;
    let with_id = [&call[..], &["--call-id", &id]].concat();
    eventually("the call is answered", async || Ok(farthing(&world.consumer, &with_id).await?.code == 0))
        .await?;
    let after = agreed_spent(world).await?;
    ensure!(after == before.saturating_add(PRICE), "{before} before and {after} after");
    let plain: Vec<&str> = with_id.iter().copied().filter(|word| *word != "--json").collect();
    world.consumer.kill().await?;
    let told = farthing(&world.consumer, &plain).await?;
    let words = format!("`--call-id {id}`; it is charged at most once");
    ensure!(told.code == 3 && told.err.contains(&words), "{told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_that_was_signed_for_a_node_that_died_is_brought_once_a_call_is_refused_for_it() -> Result<()>
{
    let consumer_settings = setting("settlement.interval_secs", "1");
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    world.consumer.restart_until_ready(kill_at("settlement.before_bring")).await?;
    world.wait_until_met().await?;
    let at = endpoint::CloseChannel.of(payer_channel(&world).await?.id);
    let closed = world.consumer.control().ask(at).await;
    ensure!(closed.is_err(), "its node lives: {closed:?}");
    world.consumer.wait_until_ended().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    world.wait_until_met().await?;

    expect_free("its owner signed it away", &world.get("/ok").await?, 503, "channel-closing")?;
    eventually("the close is brought, and a call fills the channel", async || {
        Ok(world.get("/ok").await?.status.is_success())
    })
    .await?;
    ensure!(world.chain.usdc_of(world.owner_wallet).await? == PRICE, "it comes with what was earned");
    ensure!(world.upstream.hits() == 2);
    world.settle_for(PRICE.saturating_mul(2)).await
}

/// Runs a command whose end a test waits for later.
fn in_background(node: &NodeProcess, arguments: &[&str]) -> JoinHandle<Result<Ran>> {
    let data = node.data_dir().display().to_string();
    let arguments: Vec<String> = ["--json"].iter().chain(arguments).map(ToString::to_string).collect();
    tokio::spawn(async move {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(&data, &arguments).await
    })
}

/// Checks that a command whose node stopped says where to look before it is repeated.
fn told_as_perhaps_done(ran: &Ran) -> Result<()> {
    let error = ran.ends_with(7)?.error()?;
    ensure!(error["code"] == "may-have-been-made", "{error}");
    let text = error.to_string();
    for words in ["may have been carried out or may still be", "wallet history", "before you repeat it"] {
        ensure!(text.contains(words), "no `{words}` in {text}");
    }
    Ok(())
}

async fn call_until_consumer_dies(world: &mut World) -> Result<()> {
    for _ in 0..200 {
        let answer = match world.get("/ok").await {
            Ok(answer) => answer,
            // Its connections are gone before its process is.
            Err(broken_off) => return world.consumer.wait_until_ended().await.context(broken_off),
        };
        let died = tokio::time::timeout(Duration::from_millis(200), world.consumer.wait_until_ended());
        if died.await.is_ok() {
            return Ok(());
        }
        ensure!(answer.status == StatusCode::OK || answer.charged() == false, "{answer:?}");
    }
    anyhow::bail!("the place was not reached")
}

/// The owner may die before its answer has left. It is there again while the payer asks. Where that took too long, the payer has
/// asked the chain, which gives the rest back a day later.
async fn close_until_owner_died_and_came_back(world: &mut World) -> Result<()> {
    let channel = payer_channel(world).await?;
    let (at, url) = (endpoint::CloseChannel.of(channel.id), world.chain.rpc_url());
    let World { consumer, owner, .. } = world;
    for _ in 0..100 {
        let asked = consumer.control().ask(at.clone());
        let back = async {
            tokio::time::timeout(Duration::from_secs(2), owner.wait_until_ended()).await??;
            owner.restart(Vec::new()).await
        };
        let (asked, back) = tokio::join!(asked, back);
        if back.is_err() {
            continue;
        }
        if asked.is_ok_and(|channel| channel.state == ChannelState::CloseRequested) {
            owner.wait_until_ready().await?;
            owner.control().ask(endpoint::Settle).await?;
            rpc::call(&url, "evm_increaseTime", json!([100_000])).await?;
            rpc::call(&url, "evm_mine", json!([])).await?;
            eventually("the rest is taken back", async || {
                Ok(consumer.control().ask(at.clone()).await.is_ok_and(|channel| channel.state.is_closed()))
            })
            .await?;
        }
        return Ok(());
    }
    anyhow::bail!("the place was not reached")
}

async fn payer_channel(world: &World) -> Result<Channel> {
    only_channel(&world.consumer).await
}

async fn only_channel(node: &NodeProcess) -> Result<Channel> {
    let channels = node.control().ask(endpoint::Channels).await?;
    channels.into_iter().next().context("no channel")
}

async fn deposited(world: &World) -> Result<Usdc> {
    Ok(payer_channel(world).await?.deposited.0)
}
