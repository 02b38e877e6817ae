//! A payout that a book takes over, and calls that run.

use farthing_ledger::Served;

use super::*;
use crate::testing::charged_call;

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_no_call_explains_waits_for_calls_in_progress_which_are_charged() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, owner), (payer_key, payer)) = (wallet(&chain, 1).await, wallet(&chain, 2).await);
    let Books { ledger, book, intake, .. } = Books::of(&owner);
    let (config, id) = open(&payer, &owner, 5_000).await;
    assert!(intake.catch_up().await.is_sure);
    let signed = |cumulative: u64| {
        let voucher = Voucher { channel: id, cumulative: usdc(cumulative) };
        let signature = voucher.sign(&owner.domain(), &payer_key);
        voucher.verify(&owner.domain(), signature, payer.wallet()).unwrap()
    };
    let admit = |cumulative: u64, price: u64| {
        book.admit(id, Some(&signed(cumulative)), usdc(price), GasMeans::UNLIMITED)
    };
    let running = admit(3_000, 3_000).unwrap();
    // Another node with this wallet claims.
    let (_, twin) = wallet(&chain, 1).await;
    let (cumulative, signature) = (usdc(4_000), *signed(4_000).signature());
    twin.claim_many(vec![ClaimRow { config, cumulative, amount: cumulative, signature }]).await.unwrap();
    owner.channels().wait_for(|views| views[&id].claimed == cumulative).await.unwrap();
    let looked = intake.catch_up().await;
    assert!(looked.is_stored && !looked.is_sure, "a call runs");
    assert_eq!(admit(5_000, 1_000).err(), Some(RefusalCode::Busy));

    let voucher = running.voucher().cloned();
    let call = charged_call(usdc(3_000));
    ledger.serve(Served { payer: payer.wallet(), channel: id, voucher, call }).await.unwrap();
    running.settle(usdc(3_000));
    assert!(intake.catch_up().await.is_sure);
    let row = ledger.payee_channel(id).unwrap().unwrap();
    assert_eq!((row.spent, row.opening), (cumulative, usdc(1_000)));
    admit(5_000, 1_000).unwrap().settle(usdc(1_000));
}
