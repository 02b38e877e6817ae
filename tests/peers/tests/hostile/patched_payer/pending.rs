//! What a payer does while the owner's transactions do not get through, and what both sides do while no endpoint tells events.

use axum::{Router, extract::State, http::StatusCode, routing::post};
use farthing_control::endpoint;
use farthing_testnet::rpc;
use farthing_tests::upstream::serve;
use serde_json::json;

use super::*;

/// Above what a node pays for gas on a local chain, and what the payers of these tests pay.
const TOO_DEAR_WEI: u128 = 600_000_000_000;

/// The next block, and no other, has this base fee.
async fn next_block_is_dear(world: &World) -> Result<()> {
    let fee = json!([format!("{TOO_DEAR_WEI:#x}")]);
    rpc::call(&world.chain.rpc_url(), "anvil_setNextBlockBaseFeePerGas", fee).await?;
    Ok(())
}

async fn waiting(world: &World) -> Result<bool> {
    let status = rpc::call(&world.chain.rpc_url(), "txpool_status", json!([])).await?;
    let count = |list: &str| status[list].as_str().is_some_and(|count| count != "0x0");
    Ok(count("pending") || count("queued"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deposits_count_and_pending_closes_are_seen_while_a_claim_waits_to_be_mined() -> Result<()> {
    let world = World::start().await?;
    let url = world.chain.rpc_url();
    let first = Payer::join(&world, 0x5c, cost(10)).await?;
    first.served(first.request("first", cost(1))).await?;

    let sent = rpc::transactions_of(&url, world.owner_wallet).await?;
    // The claim is sent, and from now on no block is cheap enough for it.
    world.mine_by_hand().await?;
    let control = world.owner.control().clone();
    let claim = tokio::spawn(async move { control.ask(endpoint::Settle).await });
    eventually("the claim waits", async || waiting(&world).await).await?;
    next_block_is_dear(&world).await?;
    rpc::call(&url, "evm_setAutomine", json!([true])).await?;

    let second = ChannelConfig { salt: [1; 32], ..first.config };
    first.open(second, cost(10)).await?;
    let channel = second.id(&first.chain.domain());
    let paid = first.pays(channel, PRICE, Some(first.voucher(channel, PRICE)));
    first.served(CallRequest { payment: paid, ..first.request("second", PRICE) }).await?;
    next_block_is_dear(&world).await?;
    first.chain.request_close(first.config).await?;
    first.until_closing(first.request("late", PRICE)).await?;
    let mined = rpc::transactions_of(&url, world.owner_wallet).await? - sent;
    ensure!(mined == 0 && !claim.is_finished(), "the claim is through already");

    world.make_gas_cheap().await?;
    assert_eq!(claim.await??.claimed.0, PRICE);
    expect_paid(&world, 2).await
}

/// More than a node reads of an answer.
const TOO_LARGE: usize = 9 * 1024 * 1024;

/// What an endpoint says to requests that hold all of these texts.
#[derive(Clone)]
struct Instead {
    of: Vec<String>,
    answer: Bytes,
}

impl Instead {
    fn refusal(of: Vec<String>) -> Self {
        let error = json!({ "code": 3, "message": "execution reverted" });
        Self { of, answer: json!({ "jsonrpc": "2.0", "id": 0, "error": error }).to_string().into() }
    }
}

/// An endpoint of the chain that answers some requests by itself, and passes on everything else.
async fn endpoint_with(chain: String, instead: Instead) -> Result<String> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let router = Router::new().route("/", post(pass_on)).with_state((client, chain, instead));
    serve(router).await
}

async fn pass_on(
    State((client, chain, instead)): State<(reqwest::Client, String, Instead)>,
    body: Bytes,
) -> Result<Bytes, StatusCode> {
    let text = String::from_utf8_lossy(&body);
    if instead.of.iter().all(|part| text.contains(part)) {
        return Ok(instead.answer);
    }
    let sent = client.post(chain).header("content-type", "application/json").body(body).send();
    let answer = async { sent.await?.bytes().await };
    answer.await.map_err(|_: reqwest::Error| StatusCode::BAD_GATEWAY)
}

#[tokio::test]
async fn a_close_that_fails_keeps_back_no_other() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.make_gas_cheap().await?;
    let payer = Payer::join(&world, 0x5d, cost(10)).await?;
    let mut configs: Vec<ChannelConfig> =
        (1..=3).map(|salt| ChannelConfig { salt: [salt; 32], ..payer.config }).collect();
    for config in &configs {
        payer.open(*config, cost(10)).await?;
    }
    configs.sort_by_key(|config| config.id(&payer.chain.domain()));
    let salt = hex::encode(configs[0].salt);
    let instead = Instead::refusal(vec!["eth_estimateGas".to_owned(), salt]);
    let endpoint = endpoint_with(world.chain.rpc_url(), instead).await?;
    world.owner.restart_until_ready(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), endpoint)]).await?;
    for config in &configs {
        payer.until_known(*config, cost(10)).await?;
    }
    let is_closed = async |world: &World, config: &ChannelConfig| -> Result<bool> {
        let id = config.id(&payer.chain.domain());
        let channels = world.owner.control().ask(endpoint::Channels).await?;
        Ok(channels.iter().any(|channel| channel.id.0 == id && channel.state.is_closed()))
    };
    // The queue is in the order of ids: what fails is tried first each time.
    for config in &configs {
        let id = config.id(&payer.chain.domain()).to_string();
        world.owner.control().ask(endpoint::CloseChannel.of(id)).await?;
    }
    for config in &configs[1..] {
        eventually("the others are closed", async || is_closed(&world, config).await).await?;
    }
    ensure!(!is_closed(&world, &configs[0]).await?, "the first did not fail");
    let back = FUNDS.saturating_sub(cost(20));
    eventually("their rest is back", async || Ok(world.chain.usdc_of(payer.key.address()).await? == back))
        .await?;
    expect_paid(&world, 0).await
}

#[tokio::test]
async fn a_claim_that_is_due_is_made_while_no_endpoint_tells_events() -> Result<()> {
    claims_while_events_are(Instead::refusal(vec!["eth_getLogs".to_owned()])).await
}

/// The answer that a flood of forged events has.
#[tokio::test]
async fn a_claim_that_is_due_is_made_while_all_answers_about_events_are_too_large() -> Result<()> {
    let answer = Bytes::from(vec![b' '; TOO_LARGE]);
    claims_while_events_are(Instead { of: vec!["eth_getLogs".to_owned()], answer }).await
}

async fn claims_while_events_are(instead: Instead) -> Result<()> {
    let at_once = [("interval_secs", "1"), ("claim_age_secs", "1"), ("claim_age_gas_factor", "0")];
    let at_once = at_once.map(|(key, value)| (format!("settlement.{key}"), value.to_owned()));
    let mut setup = fixed_owner()?;
    setup.owner_settings.extend(at_once);
    let mut world = World::with(setup).await?;
    let payer = Payer::join(&world, 0x5f, cost(10)).await?;
    let endpoint = endpoint_with(world.chain.rpc_url(), instead).await?;
    world.owner.restart_until_ready(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), endpoint)]).await?;
    payer.until_read().await?;
    for calls in 1..=3 {
        payer.served(payer.request(&format!("{calls}"), cost(calls))).await?;
        eventually("it is claimed", async || {
            Ok(world.chain.usdc_of(world.owner_wallet).await? == cost(calls))
        })
        .await?;
    }
    // A pending close of a channel that it knows is seen as well.
    payer.chain.request_close(payer.config).await?;
    payer.until_closing(payer.request("late", cost(3))).await?;
    expect_paid(&world, 3).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_deposits_once_and_buys_while_all_answers_about_events_are_too_large() -> Result<()> {
    buys_while_events_are(Bytes::from(vec![b' '; TOO_LARGE])).await
}

/// As endpoints answer for blocks that they do not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_deposits_once_and_buys_though_the_events_of_its_deposit_are_left_out() -> Result<()> {
    // One for the channels that this wallet pays on, and one for those that it is paid on.
    let none = json!([{ "id": 0, "result": [] }, { "id": 1, "result": [] }]);
    buys_while_events_are(none.to_string().into()).await
}

/// A buyer whose endpoint answers so about events, from before its first deposit on and over a restart.
async fn buys_while_events_are(answer: Bytes) -> Result<()> {
    const CALLS: u64 = 3;
    let mut world = World::start().await?;
    let instead = Instead { of: vec!["eth_getLogs".to_owned()], answer };
    let endpoint = endpoint_with(world.chain.rpc_url(), instead).await?;
    let mut deposited = None;
    for _ in 0..2 {
        world.consumer.restart(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), endpoint.clone())]).await?;
        world.consumer.wait_until_ready().await?;
        world.wait_until_met().await?;
        for _ in 0..CALLS {
            expect_served(&world.get("/ok").await?)?;
        }
        let channels = world.consumer.control().ask(endpoint::Channels).await?;
        let [channel] = &channels[..] else { bail!("one channel: {channels:?}") };
        let paid_in = FUNDS.saturating_sub(world.chain.usdc_of(world.consumer_wallet).await?);
        ensure!(channel.deposited.0 == paid_in, "{paid_in} USDC left the wallet: {channel:?}");
        ensure!(*deposited.get_or_insert(paid_in) == paid_in, "{paid_in} after the restart, {deposited:?}");
    }
    assert_eq!(world.upstream.hits(), 2 * CALLS);
    world.settle_for(cost(2 * CALLS)).await
}
