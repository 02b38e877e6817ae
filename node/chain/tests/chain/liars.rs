//! Endpoints that lie for a moment: when they tell the truth again, nothing is left of it.

use std::sync::Arc;

use farthing_chain::{ChainHandle, ChainSpec, MemoryJournal};
use serde_json::json;

use crate::{
    proxy::{Mode, Proxy},
    world::*,
};

/// A payee whose endpoint is the proxy, and which soon sends again what is not mined.
async fn payee_behind(world: &World, proxy: &Proxy) -> ChainHandle {
    let spec = ChainSpec { resend_after_ms: 100, ..world.spec_at(&[proxy.url()]) };
    start_ready(spec, &world.payee, Arc::new(MemoryJournal::default())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_nonce_burns_nothing_and_keeps_no_claim_from_the_chain() {
    // At the newest block alone, and at the confirmed one as well.
    for (salt, times) in [(1, 1), (2, 2)] {
        let world = World::new().await;
        let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
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
    let world = World::new().await;
    let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
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
        let world = World::new().await;
        let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
        let spec = world.spec_at(&[proxy.url()]);
        let payer = start_ready(spec, &world.payer, Arc::new(MemoryJournal::default())).await;
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
