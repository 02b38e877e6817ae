//! A chain that takes back what it said.

use std::sync::Arc;

use farthing_chain::{MemoryJournal, Role};
use serde_json::json;

use crate::world::{Deposits, World, new_key, start_ready, until, until_deposited, until_true, usdc};

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_the_chain_takes_back_is_no_longer_counted() {
    let (world, payer, payee) = World::with_both().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    let snapshot = world.anvil.rpc("evm_snapshot", json!([])).await;
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    until_deposited(&payee, id, 400_000).await;

    world.anvil.rpc("evm_revert", json!([snapshot])).await;
    until_deposited(&payee, id, 0).await;
    until_deposited(&payer, id, 0).await;
    until(payer.balances(), |balances| balances.is_some_and(|b| b.usdc == usdc(100_000_000))).await;
    // The wallet goes on from the nonce the chain now has.
    payer.open_or_top_up(config, usdc(300_000)).await.unwrap();
    until_deposited(&payee, id, 300_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_replaced_by_as_many_others_are_noticed() {
    let (world, payer, payee) = World::with_both().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    until_deposited(&payee, id, 400_000).await;
    // The newest three blocks are replaced by three empty ones; the deposit was in one of them.
    for _ in 0..2 {
        world.anvil.mine().await;
    }
    world.anvil.rpc("anvil_reorg", json!([3, []])).await;
    until_deposited(&payee, id, 0).await;
    until_deposited(&payer, id, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_transaction_is_shows_once_its_block_cannot_be_replaced_any_more() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.confirmations = 2;
    let payer = world.payer_at(spec).await;
    let config = world.terms(1);
    let operation = {
        let payer = payer.clone();
        tokio::spawn(async move { payer.open_or_top_up(config, usdc(400_000)).await })
    };
    // The second block confirms it.
    while !operation.is_finished() {
        world.anvil.mine().await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let report = operation.await.unwrap().unwrap();
    let (hash, head) = (report.tx_hash.unwrap(), world.anvil.rpc_u64("eth_blockNumber", json!([])).await);
    let landed = payer.landed(hash).await.unwrap().expect("it is mined");
    assert!(landed.fee_wei > 0 && landed.succeeded);
    let settled = payer.settled_block().await.unwrap();
    assert!(
        settled >= landed.block && settled < head,
        "the newest block may be replaced: {settled} of {head}"
    );
    world.anvil.rpc("anvil_reorg", json!([head - landed.block + 1, []])).await;
    assert_eq!(payer.landed(hash).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_two_confirmations_money_waits_but_a_close_is_seen_at_once() {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.confirmations = 2;
    let payee = world.payee_at(spec).await;
    let payer = world.payer_chain().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    until(payee.channels(), |views| views.contains_key(&id)).await;
    assert_eq!(payee.channel(&id).unwrap().deposited, usdc(0));
    world.anvil.mine().await;
    until_deposited(&payee, id, 400_000).await;

    payer.request_close(config).await.unwrap();
    let views =
        until(payee.channels(), |views| views.get(&id).is_some_and(|v| v.close_at_secs.is_some())).await;
    assert_eq!((views[&id].deposited, views[&id].role), (usdc(400_000), Role::Payee));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lost_its_records_finds_its_channels_in_the_logs() {
    let (world, payer) = World::with_payer().await;
    let (first, second) = (world.terms(1), world.terms(2));
    payer.open_or_top_up(first, usdc(400_000)).await.unwrap();
    payer.open_or_top_up(second, usdc(500_000)).await.unwrap();
    payer.shutdown().await;

    let mut spec = world.spec();
    // A range that several queries are needed for.
    spec.logs_range_blocks = 2;
    let found = world.payer_at(spec).await;
    until_deposited(&found, first.id(&found.domain()), 400_000).await;
    until_deposited(&found, second.id(&found.domain()), 500_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_older_than_the_look_back_is_followed_when_the_node_names_it_and_after_a_restart() {
    let (world, payer) = World::with_payer().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    for _ in 0..20 {
        world.anvil.mine().await;
    }
    let mut spec = world.spec();
    spec.first_block = Some(u64::MAX);
    let journal = Arc::new(MemoryJournal::default());
    let payee = start_ready(spec.clone(), &world.payee, journal.clone()).await;
    assert!(payee.channel(&id).is_none());
    payee.track(config).await.unwrap();
    until_deposited(&payee, id, 400_000).await;
    payee.shutdown().await;

    let payee = start_ready(spec, &world.payee, journal).await;
    until_deposited(&payee, id, 400_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_left_by_a_transaction_that_a_reorganisation_dropped_is_filled() {
    let (world, payer) = World::with_payer().await;
    let friend = new_key().address();
    payer.send_usdc(friend, usdc(1)).await.unwrap();
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let sending = tokio::spawn({
        let payer = payer.clone();
        async move { payer.send_usdc(friend, usdc(10)).await }
    });
    until_true(|| async { world.waiting_transactions().await == 1 }).await;
    // The block with nonce 0 is replaced by an empty one, so nonce 1 waits for what never comes.
    world.anvil.rpc("anvil_reorg", json!([1, []])).await;
    assert_eq!(world.nonce(&world.payer).await, 0);
    world.anvil.rpc("evm_setAutomine", json!([true])).await;
    sending.await.unwrap().unwrap();
    assert_eq!(world.nonce(&world.payer).await, 2);
    assert_eq!(payer.balances_of(friend).await.unwrap().usdc, usdc(10));
}
