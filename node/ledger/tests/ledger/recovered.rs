//! What an owner's ledger lacks after a restore, and what it takes over: its own signed word, and for the time being the
//! chain's.

use farthing_ledger::{Adjustment, Cause, Ledger, LedgerError, PayeeChannelFacts, Position, Side, Window};
use farthing_values::{Outcome, Receipt, SecretKey, Usdc, Verified, Voucher};

use crate::world::*;

fn adjusted(ledger: &Ledger) -> Vec<(Side, Usdc, Cause)> {
    let window = Window {
        before: Position { secs: u64::MAX, key: Vec::new() },
        from_secs: 0,
        limit: usize::MAX,
        scan_max: usize::MAX,
    };
    let found = ledger.adjustments_in(&window, |row: &Adjustment| !row.amount.is_zero()).unwrap();
    found.rows.into_iter().map(|(_, row)| (row.side, row.amount, row.cause)).collect()
}

/// A receipt over `total` and a voucher of as much, on a channel, by these keys.
fn word(
    salt: u8,
    total: Usdc,
    payee: &SecretKey,
    payer: &SecretKey,
) -> (Verified<Receipt>, Verified<Voucher>) {
    let domain = &world().domain;
    let mut receipt = receipt(&promise(salt, 9, total), PRICE, Outcome::Answered);
    receipt.spent_total = total;
    let voucher = Voucher { channel: channel(salt), cumulative: total };
    (
        receipt.verify(domain, receipt.sign(domain, payee), payee.address()).unwrap(),
        voucher.verify(domain, voucher.sign(domain, payer), payer.address()).unwrap(),
    )
}

fn own_word(salt: u8, total: Usdc) -> (Verified<Receipt>, Verified<Voucher>) {
    word(salt, total, &world().payee, &world().payer)
}

#[tokio::test]
async fn a_ledger_of_before_takes_over_what_its_own_receipt_counts_and_can_claim_it() {
    let ledger = earning().await;
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let take_over = async |(receipt, voucher)| ledger.recover_earned(receipt, voucher).await;

    take_over(own_word(1, micros(5_000))).await.unwrap();
    let row = take_over(own_word(1, micros(8_000))).await.unwrap();
    assert_eq!((row.spent, row.best, row.opening), (micros(8_000), micros(8_000), micros(6_000)));
    assert!(row.best_signature.is_some(), "the contract pays for it");
    assert_eq!(adjusted(&ledger), [(Side::Payee, micros(6_000), Cause::Restored)]);
    let peer = world().payer.address();
    assert_eq!(ledger.adjusted_with(Side::Payee, peer).unwrap(), micros(6_000));
    assert_eq!(ledger.adjusted_with(Side::Payer, peer).unwrap(), Usdc::ZERO);
    for older in [micros(8_000), micros(4_000)] {
        let row = take_over(own_word(1, older)).await.unwrap();
        assert_eq!((row.spent, adjusted(&ledger).len()), (micros(8_000), 1), "it counts once");
    }
    let recorded = ledger.serve(served(1, micros(10_000), call(2))).await.unwrap();
    assert_eq!(recorded.receipt().spent_total, micros(10_000), "what is served goes on from there");
    assert_eq!(ledger.audit(Some(&world().domain)).unwrap().violations, []);
}

#[tokio::test]
async fn what_others_signed_and_what_no_deposit_covers_is_not_taken_over() {
    let ledger = earning().await;
    let total = micros(8_000);
    let (payee, payer) = (&world().payee, &world().payer);
    for (receipt, voucher) in [
        word(1, total, payer, payer),
        word(1, total, payee, payee),
        (own_word(1, total).0, own_word(2, total).1),
    ] {
        let refused = ledger.recover_earned(receipt, voucher).await;
        assert!(matches!(refused, Err(LedgerError::WrongParty { .. })), "{refused:?}");
    }
    let (receipt, voucher) = own_word(1, DEPOSIT.saturating_add(micros(1)));
    let refused = ledger.recover_earned(receipt, voucher).await;
    assert!(matches!(refused, Err(LedgerError::VoucherAboveDeposit { .. })), "{refused:?}");
    let (receipt, voucher) = own_word(2, total);
    let refused = ledger.recover_earned(receipt, voucher).await;
    assert!(matches!(refused, Err(LedgerError::UnknownChannel(_))), "{refused:?}");
    assert_eq!((adjusted(&ledger), ledger.payee_channels().unwrap()[0].spent), (vec![], Usdc::ZERO));
}

#[tokio::test]
async fn what_only_the_chain_says_falls_with_it_and_the_voucher_is_kept() {
    let ledger = earning().await;
    ledger.serve(served(1, micros(3_000), call(1))).await.unwrap();
    let observe = async |claimed: u64| {
        let facts = PayeeChannelFacts { claimed: micros(claimed), ..payee_channel(1) };
        ledger.put_payee_channel(facts).await.unwrap()
    };
    let before = observe(0).await;
    let told = observe(9_000).await;
    assert_eq!((told.spent, told.best, told.best_signature), (micros(9_000), micros(9_000), None));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    let told = observe(5_000).await;
    assert_eq!((told.spent, told.opening), (micros(5_000), micros(3_000)), "as far as it fell");
    let after = observe(0).await;
    assert_eq!(after.opening_version, 3, "each change has its number");
    assert_eq!(farthing_ledger::PayeeChannelRow { opening_version: 0, ..after }, before);
    assert_eq!(adjusted(&ledger), []);
    assert_eq!(ledger.audit(Some(&world().domain)).unwrap().violations, []);

    // A receipt that counts on it cannot be taken back, whether it is found or new.
    let found = in_memory();
    found.put_payee_channel(PayeeChannelFacts { claimed: micros(9_000), ..payee_channel(1) }).await.unwrap();
    let (receipt, voucher) = own_word(1, micros(12_000));
    found.recover_earned(receipt, voucher).await.unwrap();
    let row = found.put_payee_channel(payee_channel(1)).await.unwrap();
    assert_eq!((row.spent, row.opening), (micros(12_000), micros(12_000)));
    assert_eq!(found.audit(Some(&world().domain)).unwrap().violations, []);
    observe(9_000).await;
    ledger.serve(served(1, micros(11_000), call(2))).await.unwrap();
    let row = observe(0).await;
    assert_eq!((row.spent, row.best), (micros(11_000), micros(11_000)));
    assert_eq!(ledger.audit(Some(&world().domain)).unwrap().violations, []);
}

#[tokio::test]
async fn a_payer_keeps_the_receipt_with_the_highest_total_and_stands_by_what_it_acknowledged() {
    let ledger = paying().await;
    assert_eq!(ledger.newest_receipt(channel(1)).unwrap(), None);
    let mut newest = Vec::new();
    for (number, total) in [(1, 2_000), (2, 6_001), (3, 8_000), (4, 7_000), (5, 12_001)] {
        let promise = promise(1, number, micros(2_000 * (number + u64::from(number > 2))));
        ledger.promise(promise.clone()).await.unwrap().await.unwrap();
        let receipt = Receipt { spent_total: micros(total), ..receipt(&promise, PRICE, Outcome::Answered) };
        ledger.acknowledge(call_id(number), acknowledgement(receipt)).await.unwrap();
        let (kept, signature, acknowledged) = ledger.newest_receipt(channel(1)).unwrap().unwrap();
        assert!(kept.verify(&world().domain, signature, world().payee.address()).is_ok());
        newest.push((kept.spent_total.micros(), acknowledged.micros()));
    }
    // The second and the last total are above what was signed. The third counts a call that is open or was given up.
    assert_eq!(newest, [(2_000, 2_000), (2_000, 2_000), (8_000, 6_000), (8_000, 8_000), (8_000, 8_000)]);
    assert_eq!(ledger.payer_channels().unwrap()[0].receipted, micros(8_000));
}
