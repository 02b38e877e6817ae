//! Calls whose end was in doubt, and the one further execution of a call whose answer was lost.

use farthing_ledger::{
    DayLimits, LedgerError, Promise, PurchaseEnd, Retention, ServedRow, Uncharged, day_of,
};
use farthing_values::{Outcome, RefusalCode, Usdc};

use crate::world::*;

#[tokio::test]
async fn a_call_that_was_released_in_doubt_takes_its_receipt_late_and_once() {
    let ledger = paying().await;
    let made = promise(1, 1, PRICE);
    ledger.promise(made.clone()).await.unwrap().await.unwrap();
    ledger.release_in_doubt(call_id(1), "never served", NOW_SECS + 9).await.unwrap();
    assert_eq!(ledger.released_in_doubt(channel(1)).unwrap().len(), 1);
    assert!(ledger.released_in_doubt(channel(2)).unwrap().is_empty());

    let mut dearer = receipt(&made, PRICE, Outcome::Answered);
    dearer.charged = micros(2_001);
    let refused = ledger.acknowledge(call_id(1), acknowledgement(dearer)).await;
    assert!(matches!(refused, Err(LedgerError::ReceiptMismatch { .. })), "{refused:?}");
    for _ in 0..2 {
        let late = acknowledgement(receipt(&made, PRICE, Outcome::Answered));
        ledger.acknowledge(call_id(1), late).await.unwrap();
        assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, PRICE);
        assert_eq!(ledger.day_totals(day_of(NOW_SECS)).unwrap(), [("laptop".to_owned(), PRICE)]);
        assert_eq!(ledger.purchase(call_id(1)).unwrap().unwrap().charged, PRICE);
    }
    assert!(ledger.released_in_doubt(channel(1)).unwrap().is_empty());
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_call_that_was_surely_not_served_takes_no_receipt_later() {
    let ledger = paying().await;
    let made = promise(1, 1, PRICE);
    ledger.promise(made.clone()).await.unwrap().await.unwrap();
    ledger.release(call_id(1), "busy", NOW_SECS).await.unwrap();
    let late = acknowledgement(receipt(&made, PRICE, Outcome::Answered));
    let refused = ledger.acknowledge(call_id(1), late).await;
    assert!(matches!(refused, Err(LedgerError::NotPromised(_))), "{refused:?}");
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, Usdc::ZERO);
}

#[tokio::test]
async fn a_call_that_its_owner_refused_is_told_from_one_that_never_came_to_it() {
    let ledger = paying().await;
    for (number, why, refused, ran) in [
        (1, Uncharged::refused(RefusalCode::Busy), true, false),
        (2, Uncharged::from("busy"), false, false),
        (3, Uncharged::refused(RefusalCode::MayHaveRun), false, true),
    ] {
        let told = why.reason.clone();
        ledger.promise(promise(1, number, PRICE)).await.unwrap().await.unwrap();
        ledger.release(call_id(number), why, NOW_SECS).await.unwrap();
        let end = ledger.purchase(call_id(number)).unwrap().unwrap().end;
        let kept = matches!(&end, PurchaseEnd::Released { reason, is_refused, .. }
            if *reason == told && *is_refused == refused);
        assert!(kept && end.may_have_run() == ran, "{end:?}");
    }
}

#[tokio::test]
async fn a_finished_call_has_one_further_execution_however_long_its_row_is_kept() {
    const DAY_SECS: u64 = 86_400;
    let ledger = earning().await;
    let payer = world().payer.address();
    let unknown = ledger.repeat(payer, call_id(1), NOW_SECS).await;
    assert!(matches!(unknown, Err(LedgerError::NotServed(_))), "{unknown:?}");
    ledger.accept(accepted(2)).await.unwrap();
    assert!(ledger.repeat(payer, call_id(2), NOW_SECS).await.is_err(), "it is not finished");

    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let mut executions = 0;
    for day in 0..365 {
        let now_secs = NOW_SECS + day * DAY_SECS;
        ledger.prune(Retention::default(), now_secs).await.unwrap();
        executions += u32::from(ledger.repeat(payer, call_id(1), now_secs).await.unwrap());
    }
    assert_eq!(executions, 1);
    let Some(ServedRow::Done(row)) = ledger.served(payer, call_id(1)).unwrap() else { panic!() };
    assert_eq!((row.repeated_secs, row.receipt.charged), (Some(NOW_SECS), PRICE));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    // Once the row is gone, the id buys nothing either.
    let gone_secs = NOW_SECS + 367 * DAY_SECS;
    ledger.prune(Retention::default(), gone_secs).await.unwrap();
    assert!(ledger.served(payer, call_id(1)).unwrap().is_none());
    let gone = ledger.repeat(payer, call_id(1), gone_secs).await;
    assert!(matches!(gone, Err(LedgerError::NotServed(_))), "{gone:?}");
}

#[tokio::test]
async fn a_late_charge_may_pass_a_limit_and_is_told_apart_from_what_passed_it() {
    let limits = Some(DayLimits { node: PRICE, secret: PRICE });
    let within = |number| Promise { limits, ..promise(1, number, PRICE) };
    let ledger = paying().await;
    ledger.promise(within(1)).await.unwrap().await.unwrap();
    ledger.release_in_doubt(call_id(1), "never served", NOW_SECS).await.unwrap();
    // Its price may be spent on another call.
    let second = Promise { limits, ..promise(1, 2, micros(4_000)) };
    ledger.promise(second.clone()).await.unwrap().await.unwrap();
    let charged = |made: &Promise| acknowledgement(receipt(made, PRICE, Outcome::Answered));
    ledger.acknowledge(call_id(2), charged(&second)).await.unwrap();
    ledger.acknowledge(call_id(1), charged(&within(1))).await.unwrap();
    assert_eq!(ledger.day_totals(day_of(NOW_SECS)).unwrap()[0].1, micros(4_000));
    assert_eq!(ledger.audit(None).unwrap().violations, []);

    let third = Promise { limits, ..promise(1, 3, micros(6_000)) };
    ledger.promise(third.clone()).await.unwrap().await.unwrap();
    ledger.acknowledge(call_id(3), charged(&third)).await.unwrap();
    let found = ledger.audit(None).unwrap().violations;
    assert!(found.iter().all(|violation| violation.invariant == "C2") && found.len() == 2, "{found:?}");
}

#[tokio::test]
async fn calls_in_doubt_explain_what_an_emptied_channel_paid_once() {
    let ledger = paying().await;
    for (number, cumulative) in [(1, 1), (2, 2), (3, 3)] {
        ledger.promise(promise(1, number, micros(PRICE.micros() * cumulative))).await.unwrap().await.unwrap();
        let why = Uncharged::refused(RefusalCode::Busy);
        ledger.release_in_doubt(call_id(number), why, NOW_SECS).await.unwrap();
    }
    let emptied = |micros_paid| {
        let paid = micros(micros_paid);
        farthing_ledger::PayerChannelFacts { claimed: paid, deposited: paid, ..payer_channel(1) }
    };
    let price = PRICE.micros();
    for (paid, left) in [(price, 2), (price, 2), (price * 2, 1), (price * 3, 0), (price * 4, 0)] {
        ledger.put_payer_channel(emptied(paid)).await.unwrap();
        assert_eq!(ledger.released_in_doubt(channel(1)).unwrap().len(), left, "{paid} paid");
    }
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}
