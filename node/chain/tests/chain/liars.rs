//! Endpoints that lie for a moment: when they tell the truth again, nothing is left of it.

use std::sync::Arc;

use alloy::{primitives::hex, sol_types::eip712_domain};
use farthing_chain::{ChainError, ChainHandle, ChainSpec, Journal as _, MemoryJournal};
use farthing_values::ChannelId;
use serde_json::json;

use crate::{
    proxy::{FALSE_BLOCK, LogsMode, Mode, Proxy},
    world::*,
};

/// A payee whose endpoint is the proxy, and which soon sends again what is not mined.
async fn payee_behind(world: &World, proxy: &Proxy) -> ChainHandle {
    let spec = ChainSpec { resend_after_ms: 100, ..world.spec_at(&[proxy.url()]) };
    world.payee_at(spec).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_nonce_burns_nothing_and_keeps_no_claim_from_the_chain() {
    // At the newest block alone, and at the confirmed one as well.
    for (salt, times) in [(1, 1), (2, 2)] {
        let (world, proxy) = World::behind(Mode::Pass).await;
        let (payer, payee) = (world.payer_chain().await, payee_behind(&world, &proxy).await);
        let config = world.terms(salt);
        payer.open_or_top_up(config, usdc(100_000)).await.unwrap();
        let row = world.row(&payee, config, 1_000);
        let before = world.nonce(&world.payee).await;
        proxy.lie("eth_getTransactionCount", json!("0x4e20"), times);
        let claim = payee.claim_many(vec![row]).await.unwrap();
        assert_eq!((claim.claimed[0].1, proxy.lies_left()), (usdc(1_000), 0));
        assert_eq!(world.nonce(&world.payee).await, before + 1, "one transaction, and none to fill a gap");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_wallet_can_pay_for_is_planned_anew() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let (payer, payee) = (world.payer_chain().await, payee_behind(&world, &proxy).await);
    let config = world.terms(1);
    payer.open_or_top_up(config, usdc(100_000)).await.unwrap();
    let row = world.row(&payee, config, 1_000);
    let wallet = world.payee.address().to_string();
    // 0.01 ETH, where 13 million gas take more.
    world.anvil.rpc("anvil_setBalance", json!([wallet, "0x2386f26fc10000"])).await;
    proxy.lie("eth_estimateGas", json!("0xc65d40"), 1);
    proxy.lie("eth_getBalance", json!([format!("0x{:064x}", 0), "0x8ac7230489e80000"]), 6);
    let claim = payee.claim_many(vec![row]).await.unwrap();
    assert_eq!((claim.claimed[0].1, proxy.lies_left()), (usdc(1_000), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_without_measure_ends_no_watcher_and_no_writer() {
    for (number, timestamp) in [("0xffffffffffffffff", "0x1"), ("0x1", "0xffffffffffffffff")] {
        let (world, proxy) = World::behind(Mode::Pass).await;
        let spec = world.spec_at(&[proxy.url()]);
        let payer = world.payer_at(spec).await;
        let word = format!("0x{}", "ab".repeat(32));
        let head = json!({
            "number": number, "timestamp": timestamp, "hash": word, "parentHash": word, "baseFeePerGas": "0x1",
        });
        proxy.lie("eth_getBlockByNumber", head, 3);
        let config = world.terms(1);
        let is_open = || async { payer.open_or_top_up(config, usdc(250_000)).await.is_ok() };
        until_true(|| async { proxy.lies_left() == 0 && is_open().await }).await;
        until_deposited(&payer, config.id(&payer.domain()), 250_000).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_name_of_the_token_is_forgotten_with_the_answer_that_told_it() {
    const NAME: &str = "06fdde03";
    const SEPARATOR: &str = "3644e515";
    let (world, proxy) = World::behind(Mode::Pass).await;
    let spec = world.spec_at(&[proxy.url()]);
    let domain = eip712_domain! {
        name: "Evil", version: "2", chain_id: spec.chain_id, verifying_contract: spec.token.as_bytes().into(),
    };
    proxy.lie(NAME, json!(format!("0x{:064x}{:064x}{:0<64}", 32, 4, hex::encode("Evil"))), 1);
    proxy.lie(SEPARATOR, json!(domain.separator()), 1);
    let payer = world.payer_at(spec).await;
    assert_eq!(proxy.lies_left(), 0, "it was believed");
    // What is signed counts for the token as it is; and a connection that begins anew finds nothing changed.
    for (salt, mode) in [(1, Mode::Pass), (2, Mode::Silent)] {
        proxy.set(mode);
        tokio::time::sleep(std::time::Duration::from_millis(2 * payer.spec().request_timeout_ms)).await;
        proxy.set(Mode::Pass);
        let config = world.terms(salt);
        let is_open = || async { payer.open_or_top_up(config, usdc(250_000)).await.is_ok() };
        until_true(is_open).await;
        until_deposited(&payer, config.id(&payer.domain()), 250_000).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_head_keeps_no_new_channel_from_being_found() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    proxy.set_logs(LogsMode::NoneFrom(1_000));
    let payer = world.payer_chain().await;
    let payee = payee_behind(&world, &proxy).await;
    let word = format!("0x{}", "ab".repeat(32));
    let head = json!({
        "number": FALSE_BLOCK, "timestamp": "0x70000000", "hash": word, "parentHash": word,
        "baseFeePerGas": "0x1",
    });
    proxy.lie("eth_getBlockByNumber", head, 20);
    until(payee.head(), |head| head.is_some_and(|head| format!("{:#x}", head.number) == FALSE_BLOCK)).await;
    until_true(|| async { proxy.lies_left() == 0 }).await;
    let config = world.terms(1);
    payer.open_or_top_up(config, usdc(250_000)).await.unwrap();
    until_deposited(&payee, config.id(&payee.domain()), 250_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_is_withheld_is_never_raised_beyond_what_the_wallet_has() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let payee = payee_behind(&world, &proxy).await;
    let (friend, wallet) = (new_key().address(), world.payee.address());
    let has_wei = payee.balances_of(wallet).await.unwrap().eth_wei;
    let too_much = payee.send_eth(friend, has_wei).await.unwrap_err();
    let ChainError::InsufficientEth { need_wei, .. } = too_much else { panic!("{too_much}") };
    // What is left pays for the first form, and for none that pays an eighth more.
    let gas_wei = need_wei - has_wei;
    proxy.set(Mode::LoseTransactions);
    let transfer = {
        let payee = payee.clone();
        tokio::spawn(async move { payee.send_eth(friend, has_wei - gas_wei * 21 / 20).await })
    };
    until_true(|| async { proxy.transactions() >= 4 }).await;
    assert_eq!(payee.under_way().map(|waits| waits.what), Some("the ETH transfer"));
    proxy.set(Mode::Pass);
    transfer.await.unwrap().expect("the form that the wallet can pay for is mined");
    assert_eq!(payee.under_way(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_one_endpoint_keeps_to_itself_is_brought_by_another() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let spec = world.spec_at(&[proxy.url(), world.anvil.url()]);
    let spec = ChainSpec { resend_after_ms: 100, ..spec };
    let payee = world.payee_at(spec).await;
    let config = world.terms(1);
    world.payer_chain().await.open_or_top_up(config, usdc(100_000)).await.unwrap();
    proxy.lie("eth_sendRawTransaction", json!(format!("0x{}", "ab".repeat(32))), usize::MAX);
    let claim = payee.claim_many(vec![world.row(&payee, config, 1_000)]);
    let claim = tokio::time::timeout(std::time::Duration::from_secs(60), claim).await.expect("it is mined");
    assert_eq!(claim.unwrap().claimed[0].1, usdc(1_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_of_ones_own_that_the_contract_never_had_is_followed_no_more() {
    let world = World::new().await;
    let journal = Arc::new(MemoryJournal::default());
    let spec = ChainSpec { absent_forgotten_ms: 0, ..world.spec() };
    let (invented, closed) = (world.terms(1), world.terms(2));
    let before = start_ready(spec.clone(), &world.payer, journal.clone()).await;
    let [invented_id, closed_id] = [invented, closed].map(|config| config.id(&before.domain()));
    before.open_or_top_up(closed, usdc(1_000)).await.unwrap();
    before.track(invented).await.unwrap();
    before.refresh().await.unwrap();
    assert!(before.channel(&invented_id).is_some(), "somebody may be about to fill it");
    let payee = world.payee_chain().await;
    until_deposited(&payee, closed_id, 1_000).await;
    payee.close(world.row(&payee, closed, 0)).await.unwrap();
    before.shutdown().await;

    let after = start_ready(spec, &world.payer, journal.clone()).await;
    after.refresh().await.unwrap();
    assert!(after.channel(&invented_id).is_none());
    assert_eq!(after.channel(&closed_id).map(|view| view.round), Some(1), "it was there once");
    let names: Vec<String> = journal.all().await.unwrap().into_iter().map(|(name, _)| name).collect();
    let is_kept = |id: ChannelId| names.iter().any(|name| name.ends_with(&id.to_string()));
    assert_eq!((is_kept(invented_id), is_kept(closed_id)), (false, true), "{names:?}");
}
