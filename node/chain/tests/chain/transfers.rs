//! Transfers: what may have been made is never told as unsent, and what is told as unsent is never made.

use std::sync::Arc;

use farthing_chain::{ChainError, ChainSpec, MemoryJournal};
use serde_json::json;

use crate::{
    proxy::Mode,
    world::{World, new_key, sending, start_ready, until_true, usdc},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_whose_receipt_comes_late_is_never_called_unsent() {
    let (world, proxy) = World::behind(Mode::HideReceipts).await;
    let chain = world.payer_at(world.spec_at(&[proxy.url()])).await;
    let friend = new_key().address();
    let sending = sending(&chain, friend);
    // Mined, and asked about more often than a lagging endpoint was once believed.
    until_true(|| async { world.nonce(&world.payer).await == 1 && proxy.receipts_hidden() >= 7 }).await;
    assert!(!sending.is_finished());
    proxy.set(Mode::Pass);
    let report = sending.await.unwrap().unwrap();
    assert!(report.tx_hash.is_some());
    assert_eq!(chain.balances_of(friend).await.unwrap().usdc, usdc(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_whose_receipt_never_comes_is_told_with_its_hash_as_one_that_may_have_been_made() {
    let (world, proxy) = World::behind(Mode::HideReceipts).await;
    let spec = ChainSpec { receipt_patience_ms: 1_000, ..world.spec_at(&[proxy.url()]) };
    let chain = world.payer_at(spec).await;
    let friend = new_key().address();
    let error = chain.send_usdc(friend, usdc(7)).await.unwrap_err();
    assert_eq!(chain.balances_of(friend).await.unwrap().usdc, usdc(7), "it was made");
    let block = world.anvil.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
    let hash = block["transactions"][0].as_str().unwrap();
    let text = error.to_string();
    assert!(text.contains("may have been made") && text.contains(hash), "{hash}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_only_its_receipt_calls_failed_is_told_with_its_hash_as_one_that_may_have_been_made()
{
    let (world, proxy) = World::behind(Mode::FailReceipts).await;
    let chain = world.payer_at(world.spec_at(&[proxy.url()])).await;
    let friend = new_key().address();
    let error = chain.send_usdc(friend, usdc(7)).await.unwrap_err();
    assert_eq!(chain.balances_of(friend).await.unwrap().usdc, usdc(7), "it was made");
    assert!(error.may_have_been_made(), "{error}");
    let block = world.anvil.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
    let hash = block["transactions"][0].as_str().unwrap();
    assert!(error.to_string().contains(hash), "{hash}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_is_under_way_at_the_end_of_the_wait_or_of_the_node_is_told_with_its_hash_and_goes_on()
 {
    enum End {
        Stopped,
        LetGo,
        Waited,
    }
    for end in [End::Stopped, End::LetGo, End::Waited] {
        let (world, proxy) = World::behind(Mode::LoseTransactions).await;
        let mut spec = ChainSpec { resend_after_ms: 3_600_000, ..world.spec_at(&[proxy.url()]) };
        spec.transfer_told_within_ms = if matches!(end, End::Waited) { 1_000 } else { 3_600_000 };
        let journal = Arc::new(MemoryJournal::default());
        let chain = start_ready(spec.clone(), &world.payer, journal.clone()).await;
        let friend = new_key().address();
        let sending = sending(&chain, friend);
        until_true(|| async { proxy.transactions() >= 1 }).await;
        match end {
            End::Stopped => chain.shutdown().await,
            End::LetGo => chain.let_go(),
            End::Waited => {}
        }
        let error = sending.await.unwrap().unwrap_err();
        let ChainError::UnderWay { hashes, .. } = &error else { panic!("{error}") };
        assert!(error.may_have_been_made() && error.to_string().contains("may have been made"), "{error}");
        chain.shutdown().await;
        proxy.set(Mode::Pass);
        let again = start_ready(spec, &world.payer, journal).await;
        until_true(|| async { again.balances_of(friend).await.unwrap().usdc == usdc(7) }).await;
        let block = world.anvil.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
        assert_eq!(block["transactions"][0], json!(hashes[0].to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_was_not_signed_when_the_node_stops_is_told_as_unsent() {
    let world = World::new().await;
    let chain = world.payer_at(world.spec()).await;
    chain.shutdown().await;
    let error = chain.send_usdc(new_key().address(), usdc(7)).await.unwrap_err();
    assert!(error == ChainError::Stopped && !error.may_have_been_made(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_waits_for_another_when_the_node_stops_is_never_made_and_told_as_unsent() {
    let world = World::new().await;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let journal = Arc::new(MemoryJournal::default());
    let chain = start_ready(world.spec(), &world.payer, journal.clone()).await;
    let (first, second) = (new_key().address(), new_key().address());
    let first_told = sending(&chain, first);
    until_true(|| async { world.waiting_transactions().await == 1 }).await;
    let mut second_told = std::pin::pin!(chain.send_usdc(second, usdc(7)));
    // Polled once, it stands in the queue.
    tokio::select! {
        biased;
        told = &mut second_told => panic!("{told:?}"),
        () = std::future::ready(()) => {}
    }
    chain.let_go();
    assert!(first_told.await.unwrap().unwrap_err().may_have_been_made());
    let error = second_told.await.unwrap_err();
    assert!(error == ChainError::Stopped && !error.may_have_been_made(), "{error}");
    // Nor is it made while the node still runs, when the first has ended.
    world.anvil.rpc("evm_setAutomine", json!([true])).await;
    world.anvil.rpc("evm_mine", json!([])).await;
    until_true(|| async { chain.balances_of(first).await.unwrap().usdc == usdc(7) }).await;
    // It stood before this one.
    chain.request_close(world.terms(1)).await.unwrap();
    assert_eq!(chain.balances_of(second).await.unwrap().usdc, usdc(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_waits_for_another_for_too_long_is_never_made_and_told_as_unsent() {
    let world = World::new().await;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let spec = ChainSpec { transfer_told_within_ms: 2_000, ..world.spec() };
    let chain = world.payer_at(spec).await;
    let (first, second) = (new_key().address(), new_key().address());
    let first_told = sending(&chain, first);
    until_true(|| async { world.waiting_transactions().await == 1 }).await;
    let error = chain.send_usdc(second, usdc(7)).await.unwrap_err();
    assert!(matches!(error, ChainError::Busy { .. }) && !error.may_have_been_made(), "{error}");
    assert!(first_told.await.unwrap().unwrap_err().may_have_been_made());
    // Nor is it made when the first has ended.
    world.anvil.rpc("evm_setAutomine", json!([true])).await;
    world.anvil.rpc("evm_mine", json!([])).await;
    until_true(|| async { chain.balances_of(first).await.unwrap().usdc == usdc(7) }).await;
    // It stood before this one.
    chain.deposit_onto(world.terms(1), (0, usdc(0)), usdc(5)).await.unwrap();
    assert_eq!(chain.balances_of(second).await.unwrap().usdc, usdc(0));
}
