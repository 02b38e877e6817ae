//! Events that are forged, too many, or not to be had: new channels may wait, money never does.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use alloy::{primitives::hex, sol, sol_types::SolCall as _};
use farthing_chain::{ChainHandle, ClaimRow, MemoryJournal, pay_channels_address};
use farthing_values::{Address, ChannelConfig, Signature, Usdc};
use serde_json::{Value, json};

use crate::{
    dust::sent,
    proxy::{LogsMode, Mode, Proxy},
    world::{Deposits, World, start_ready, until, until_deposited, usdc},
};

sol! {
    function go(address channels, address victim, uint256 count);
    event Deposited(
        address indexed payer, address indexed payee, address indexed token, bytes32 channelId, address signer,
        uint40 closeDelay, bytes32 salt, uint128 amount, uint128 deposited
    );
}

pub(crate) async fn through(world: &World, logs: LogsMode) -> (Proxy, farthing_chain::ChainSpec) {
    let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
    proxy.set_logs(logs);
    let mut spec = world.spec_at(&[proxy.url()]);
    spec.request_timeout_ms = 2_000;
    (proxy, spec)
}

/// Waits until everything up to the present block was read.
pub(crate) async fn until_read(world: &World, chain: &ChainHandle) {
    let head = world.anvil.rpc_u64("eth_blockNumber", json!([])).await;
    until(chain.logs(), |logs| logs.read_to.is_some_and(|block| block >= head)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_events_about_a_token_of_somebodys_own_reach_no_node() {
    let world = World::new().await;
    let artifact = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/contracts/fixtures/Flood.json");
    let artifact: Value = serde_json::from_str(&std::fs::read_to_string(artifact).unwrap()).unwrap();
    let from = world.anvil.rpc("eth_accounts", json!([])).await[0].clone();
    let deployed = sent(&world, json!({ "from": from, "data": artifact["bytecode"] })).await;
    let flood = &deployed["contractAddress"];
    let of = |address: Address| alloy::primitives::Address::from(*address.as_bytes());
    for _ in 0..84 {
        let call = goCall {
            channels: of(pay_channels_address()),
            victim: of(world.payer.address()),
            count: alloy::primitives::U256::from(1_200),
        };
        let data = hex::encode_prefixed(call.abi_encode());
        let gas = format!("{:#x}", 16_700_000);
        sent(&world, json!({ "from": from, "to": flood, "data": data, "gas": gas })).await;
    }
    let (proxy, spec) = through(&world, LogsMode::Pass).await;
    let payer = world.payer_at(spec).await;
    until_read(&world, &payer).await;
    assert!(proxy.logs_bytes_most() < 64 * 1024, "{} bytes of events", proxy.logs_bytes_most());
    let logs = payer.logs().borrow().clone();
    assert!(logs.failing.is_none() && logs.skipped.is_empty(), "{logs:?}");
    assert!(payer.channels().borrow().is_empty());
    payer.open_or_top_up(world.terms(1), usdc(100_000)).await.unwrap();
}

/// Deposits that never happened, in the true token, each consistent in itself.
pub(crate) fn forged(world: &World, chain: &ChainHandle, numbers: Range<u32>) -> Vec<Value> {
    let topic = |address: Address| format!("0x{:0>64}", hex::encode(address.as_bytes()));
    let word = |micros: u64| format!("{micros:064x}");
    numbers
        .map(|number| {
            let mut salt = [7; 32];
            salt[..4].copy_from_slice(&number.to_be_bytes());
            let config = ChannelConfig { salt, ..world.terms(1) };
            let id = config.id(&chain.domain()).to_string();
            let data = [
                id,
                format!("{:0>64}", hex::encode(config.signer.as_bytes())),
                word(config.close_delay_secs),
                hex::encode(salt),
                word(1_000_000),
                word(1_000_000),
            ]
            .concat();
            let kind = <Deposited as alloy::sol_types::SolEvent>::SIGNATURE_HASH;
            let topics = json!([kind, topic(config.payer), topic(config.payee), topic(config.token)]);
            json!({ "address": pay_channels_address().to_string(), "topics": topics, "data": data })
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_contracts_state_does_not_confirm_are_not_believed() {
    let (world, payer) = World::with_payer().await;
    let (first, second) = (world.terms(1), world.terms(2));
    let (id, other) = (first.id(&payer.domain()), second.id(&payer.domain()));
    payer.open_or_top_up(first, usdc(400_000)).await.unwrap();
    let lies = forged(&world, &payer, 0..4_000);
    let (proxy, spec) = through(&world, LogsMode::Answer(lies)).await;
    let journal = Arc::new(MemoryJournal::default());
    let payee = start_ready(spec, &world.payee, journal.clone()).await;
    payee.track(first).await.unwrap();
    until_deposited(&payee, id, 400_000).await;
    until_read(&world, &payee).await;
    assert_eq!(payee.channels().borrow().len(), 1, "what the contract does not hold is no channel");
    let claim = payee.claim_many(vec![world.row(&payee, first, 120_000)]).await.unwrap();
    assert_eq!(claim.claimed, [(id, usdc(120_000))]);

    proxy.set_logs(LogsMode::Pass);
    payer.open_or_top_up(second, usdc(300_000)).await.unwrap();
    until_deposited(&payee, other, 300_000).await;
    let remembered = farthing_chain::Journal::all(&*journal).await.unwrap();
    assert_eq!(remembered.iter().filter(|(name, _)| name.contains("/channel/")).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_closes_and_withdrawals_go_on_while_no_events_can_be_read() {
    for mode in [LogsMode::TooLarge, LogsMode::Refuse] {
        let world = World::new().await;
        let (proxy, spec) = through(&world, mode.clone()).await;
        let payer = world.payer_at(spec.clone()).await;
        let payee = world.payee_at(spec).await;
        let (config, other) = (world.terms(1), world.terms(2));
        let (id, other_id) = (config.id(&payer.domain()), other.id(&payer.domain()));
        payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
        until(payee.logs(), |logs| logs.failing.is_some()).await;
        payee.track(config).await.unwrap();
        until_deposited(&payee, id, 400_000).await;

        let claim = payee.claim_many(vec![world.row(&payee, config, 120_000)]).await.unwrap();
        assert_eq!(claim.claimed, [(id, usdc(120_000))], "{mode:?}");
        payee.close(world.row(&payee, config, 150_000)).await.unwrap();
        assert_eq!(payer.read_contract(&[id]).await.unwrap().confirmed[0].claimed, usdc(150_000));
        payer.open_or_top_up(other, usdc(100_000)).await.unwrap();
        payer.request_close(other).await.unwrap();
        let close_at_secs = payer.channel(&other_id).unwrap().close_at_secs.unwrap();
        world.anvil.rpc("evm_mine", json!([{ "timestamp": close_at_secs }])).await;
        payer.withdraw(other).await.unwrap();
        assert_eq!(payer.channel(&other_id).unwrap().deposited, Usdc::ZERO);
        // What could not be read is read as soon as it can be.
        let late = world.terms(3);
        payer.open_or_top_up(late, usdc(200_000)).await.unwrap();
        proxy.set_logs(LogsMode::Pass);
        until_deposited(&payee, late.id(&payer.domain()), 200_000).await;
        until(payee.logs(), |logs| logs.failing.is_none() && logs.skipped.is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_whose_events_cannot_be_read_is_skipped_and_told_and_the_next_ones_are_read() {
    let (world, payer) = World::with_payer().await;
    let (before, inside, after) = (world.terms(1), world.terms(2), world.terms(3));
    payer.open_or_top_up(before, usdc(100_000)).await.unwrap();
    let block = payer.open_or_top_up(inside, usdc(200_000)).await.unwrap().block;
    for _ in 0..40 {
        world.anvil.mine().await;
    }
    payer.open_or_top_up(after, usdc(300_000)).await.unwrap();

    let (_proxy, spec) = through(&world, LogsMode::TooLargeWith(block)).await;
    let payee = world.payee_at(spec).await;
    until_deposited(&payee, before.id(&payer.domain()), 100_000).await;
    until_deposited(&payee, after.id(&payer.domain()), 300_000).await;
    until(payee.logs(), |logs| logs.skipped == [block]).await;
    until_read(&world, &payee).await;
    // The one it could not hear of is followed when somebody names it.
    assert!(payee.channel(&inside.id(&payer.domain())).is_none());
    payee.track(inside).await.unwrap();
    until_deposited(&payee, inside.id(&payer.domain()), 200_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_was_skipped_is_read_and_not_told_any_more_once_an_endpoint_answers_about_it() {
    let (world, payer) = World::with_payer().await;
    let inside = world.terms(1);
    let block = payer.open_or_top_up(inside, usdc(200_000)).await.unwrap().block;
    for _ in 0..3 {
        world.anvil.mine().await;
    }
    let (proxy, mut spec) = through(&world, LogsMode::TooLargeWith(block)).await;
    spec.logs_again_ms = 500;
    let payee = world.payee_at(spec).await;
    until(payee.logs(), |logs| logs.skipped == [block]).await;
    proxy.set_logs(LogsMode::Pass);
    until(payee.logs(), |logs| logs.skipped.is_empty()).await;
    until_deposited(&payee, inside.id(&payer.domain()), 200_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_one_endpoint_refuses_are_read_from_another() {
    let (world, payer) = World::with_payer().await;
    let (proxy, _) = through(&world, LogsMode::Refuse).await;
    let payee = world.payee_at(world.spec_at(&[proxy.url(), world.anvil.url()])).await;
    for salt in [1, 2] {
        let config = world.terms(salt);
        payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
        until_deposited(&payee, config.id(&payer.domain()), 400_000).await;
    }
    until(payee.logs(), |logs| logs.failing.is_none() && logs.skipped.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_one_endpoint_keeps_to_itself_are_found_by_another_now_and_then() {
    let (world, payer) = World::with_payer().await;
    let (proxy, _) = through(&world, LogsMode::Answer(Vec::new())).await;
    let mut spec = world.spec_at(&[proxy.url(), world.anvil.url()]);
    spec.logs_again_ms = 500;
    let payee = world.payee_at(spec).await;
    for salt in [1, 2] {
        let config = world.terms(salt);
        payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
        until_deposited(&payee, config.id(&payer.domain()), 400_000).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_late_are_found_within_an_hour_however_fast_the_blocks_come() {
    let (world, payer) = World::with_payer().await;
    let (proxy, mut spec) = through(&world, LogsMode::NoneFrom(0)).await;
    (spec.logs_again_ms, spec.block_ms) = (500, 250);
    let payee = world.payee_at(spec).await;
    let config = world.terms(1);
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    // Eight minutes and twenty seconds of such blocks.
    world.anvil.rpc("anvil_mine", json!(["0x7d0"])).await;
    until_read(&world, &payee).await;
    assert!(payee.channel(&config.id(&payer.domain())).is_none());
    proxy.set_logs(LogsMode::Pass);
    until_deposited(&payee, config.id(&payer.domain()), 400_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dust_of_strangers_is_not_followed_and_a_deposit_of_ones_own_is() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.channel_min = usdc(10_000);
    let payer = world.payer_at(spec.clone()).await;
    let payee = world.payee_at(spec).await;
    let (dust, enough) = (world.terms(1), world.terms(2));
    let (dust_id, enough_id) = (dust.id(&payer.domain()), enough.id(&payer.domain()));
    payer.open_or_top_up(dust, usdc(9_999)).await.unwrap();
    payer.open_or_top_up(enough, usdc(10_000)).await.unwrap();
    until_deposited(&payee, enough_id, 10_000).await;
    assert!(payee.channel(&dust_id).is_none());
    assert_eq!(payer.channel(&dust_id).unwrap().deposited, usdc(9_999));
    payer.open_or_top_up(dust, usdc(1)).await.unwrap();
    until_deposited(&payee, dust_id, 10_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_and_a_close_are_safe_once_the_safe_block_has_reached_them() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.safe_tag = true;
    let payee = world.payee_at(spec.clone()).await;
    let payer = world.payer_chain().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    until_deposited(&payee, id, 400_000).await;
    assert_eq!(payee.channel(&id).unwrap().safe_deposited, Usdc::ZERO, "it is in the newest block alone");
    // anvil's safe block is 32 behind its head.
    world.anvil.rpc("anvil_mine", json!(["0x40"])).await;
    until(payee.channels(), |views| views[&id].safe_deposited == usdc(400_000)).await;
    payer.open_or_top_up(config, usdc(100_000)).await.unwrap();
    let views = until(payee.channels(), |views| views[&id].deposited == usdc(500_000)).await;
    assert_eq!(views[&id].safe_deposited, usdc(400_000), "the top-up is not safe yet");
    // A restart does not forget what is safe.
    payee.shutdown().await;
    let payee = world.payee_at(spec).await;
    until(payee.channels(), |views| views.get(&id).is_some_and(|v| v.safe_deposited == usdc(400_000))).await;
    let (nothing, signature) = (Usdc::ZERO, Signature::from_bytes([0; 65]));
    payee.close(ClaimRow { config, cumulative: nothing, amount: nothing, signature }).await.unwrap();
    let views = until(payee.channels(), |views| views[&id].round == 1).await;
    assert_eq!(views[&id].safe_round, 0, "the close is in the newest block alone");
    world.anvil.rpc("anvil_mine", json!(["0x40"])).await;
    until(payee.channels(), |views| views[&id].safe_round == 1).await;
}

/// One deposit of a stranger, of the smallest sum, is an event that names this wallet for as many blocks as are read again.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_in_the_newest_blocks_makes_no_node_ask_without_pause() {
    const WINDOW: Duration = Duration::from_secs(3);
    // Head, events, balances, fees, the channel; and the head again.
    const REQUESTS_PER_POLL_MAX: u64 = 8;
    let (world, stranger, payee) = World::with_both().await;
    let spec = world.spec();
    let config = world.terms(1);
    stranger.deposit_onto(config, (0, Usdc::ZERO), usdc(1)).await.unwrap();
    until_deposited(&payee, config.id(&payee.domain()), 1).await;
    for blocks in ["a head that stays", "a block each second"] {
        if blocks != "a head that stays" {
            world.anvil.rpc("evm_setIntervalMining", json!([1])).await;
        }
        let (begun, before) = (Instant::now(), payee.request_counts().watch);
        tokio::time::sleep(WINDOW).await;
        let asked = payee.request_counts().watch - before;
        let polls = u64::try_from(begun.elapsed().as_millis()).unwrap() / spec.poll_interval_ms + 1;
        // What an event names is looked at once more in each interval.
        let allowed = 2 * polls * REQUESTS_PER_POLL_MAX;
        assert!(asked <= allowed, "{blocks}: {asked} requests in {polls} intervals");
    }
}
