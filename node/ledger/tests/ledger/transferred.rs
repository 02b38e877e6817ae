//! Calls that a transfer of its own pays, to a server without a channel and without receipts.

use farthing_ledger::{LedgerError, Promise, PurchaseEnd, Retention, TransferEnd, day_of};
use farthing_values::{Address, Payment, Usdc};

use crate::world::*;

const PAYEE: Address = Address::from_bytes([8; 20]);

fn by_transfer(number: u64) -> Promise {
    let mut made = promise(1, number, PRICE);
    made.request.payment = Payment::Free;
    made.owner = PAYEE;
    made
}

fn end(status: u16) -> TransferEnd {
    TransferEnd {
        transaction: Some([6; 32]),
        status,
        total_us: 900,
        time_secs: NOW_SECS + 1,
        is_seen: status == 0,
    }
}

#[tokio::test]
async fn a_call_that_a_transfer_paid_is_charged_once_on_no_channel_and_in_every_sum() {
    let ledger = in_memory();
    let made = by_transfer(1);
    assert!(made.is_by_transfer() && !promise(1, 2, PRICE).is_by_transfer());
    ledger.promise(made.clone()).await.unwrap().await.unwrap();
    assert_eq!(ledger.unresolved().unwrap(), [made]);
    for _ in 0..2 {
        assert_eq!(
            ledger.transferred(call_id(1), end(200)).await.unwrap(),
            PRICE,
            "once more changes nothing"
        );
    }
    let purchase = ledger.purchase(call_id(1)).unwrap().unwrap();
    let PurchaseEnd::Transferred { transaction, status, timing, is_seen } = purchase.end else { panic!() };
    assert_eq!((transaction, status, timing.total_us, is_seen), (Some([6; 32]), 200, 900, false));
    assert!(purchase.charged == PRICE && purchase.is_by_transfer());
    let day = day_of(NOW_SECS);
    assert_eq!(ledger.day_totals(day).unwrap(), [("laptop".to_owned(), PRICE)]);
    let figures = ledger.day_figures(day, day).unwrap();
    assert_eq!(figures.first().map(|(_, figures)| (figures.bought, figures.spent)), Some((1, PRICE)));
    assert!(ledger.purchases_from(PAYEE, None, None).unwrap().is_empty(), "no owner is asked about it");
    let again = ledger.promise(by_transfer(1)).await.unwrap().await;
    assert!(matches!(again, Err(LedgerError::AlreadyBought(_))), "{again:?}");
    assert_eq!(ledger.audit(None).unwrap().violations, []);

    let keep = Retention { rows_kept_secs: 0, ..Retention::default() };
    let pruned = ledger.prune(keep, NOW_SECS + 30 * 86_400).await.unwrap();
    assert_eq!((pruned.purchases, ledger.day_totals(day).unwrap()), (1, Vec::new()));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn no_promise_over_a_channel_or_of_nothing_ends_by_a_transfer() {
    let ledger = paying().await;
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    let mut free = by_transfer(2);
    free.request.price = Usdc::ZERO;
    ledger.promise(free).await.unwrap().await.unwrap();
    ledger.promise(by_transfer(3)).await.unwrap().await.unwrap();
    ledger.release(call_id(3), "not taken in its time", NOW_SECS).await.unwrap();
    for number in 1..=4 {
        let ended = ledger.transferred(call_id(number), end(0)).await;
        assert!(matches!(ended, Err(LedgerError::NotPromised(_))), "{number}: {ended:?}");
    }
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_call_that_ended_as_not_charged_is_charged_once_if_its_transfer_was_taken_after_all() {
    let ledger = paying().await;
    ledger.promise(by_transfer(1)).await.unwrap().await.unwrap();
    let early = ledger.transferred_after_all(call_id(1), end(0)).await;
    assert!(matches!(early, Err(LedgerError::NotPromised(_))), "its end is open: {early:?}");
    ledger.release(call_id(1), "not taken in its time", NOW_SECS).await.unwrap();
    let day = day_of(NOW_SECS);
    assert!(ledger.day_totals(day).unwrap().is_empty());
    let charged = ledger.transferred_after_all(call_id(1), end(0)).await.unwrap();
    let again = ledger.transferred_after_all(call_id(1), end(0)).await;
    assert!(matches!(again, Err(LedgerError::NotPromised(_))), "once: {again:?}");
    assert_eq!(ledger.purchase(call_id(1)).unwrap(), Some(charged.clone()), "it is returned as it is stored");
    assert!(matches!(charged.end, PurchaseEnd::Transferred { is_seen: true, .. }), "{charged:?}");
    assert_eq!(charged.charged, PRICE);
    assert_eq!(ledger.day_totals(day).unwrap(), [("laptop".to_owned(), PRICE)]);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    ledger.promise(promise(1, 2, PRICE)).await.unwrap().await.unwrap();
    ledger.release(call_id(2), "refused", NOW_SECS).await.unwrap();
    let on_channel = ledger.transferred_after_all(call_id(2), end(0)).await;
    assert!(matches!(on_channel, Err(LedgerError::NotPromised(_))), "{on_channel:?}");
}
