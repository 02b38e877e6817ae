//! What a channel counts and no call explains, with the cause, until a call explains it.

use farthing_ledger::{
    Adjustment, Cause, Ledger, LedgerError, PayeeChannelFacts, PayerChannelFacts, Position, Promise, Side,
    Window, day_of,
};
use farthing_values::{Outcome, Receipt, Usdc};

use crate::world::*;

pub(crate) const ALL: Window = Window {
    before: Position { secs: u64::MAX, key: Vec::new() },
    from_secs: 0,
    limit: usize::MAX,
    scan_max: usize::MAX,
};

/// Side, amount and cause of each that has something left, the newest first.
fn shown(ledger: &Ledger) -> Vec<(Side, Usdc, Cause)> {
    let found = ledger.adjustments_in(&ALL, |row| !row.amount.is_zero()).unwrap();
    found.rows.into_iter().map(|(_, row)| (row.side, row.amount, row.cause)).collect()
}

/// What the limits of the day of `row` count, all secrets together.
fn counted(ledger: &Ledger, row: &Adjustment) -> Usdc {
    let totals = ledger.day_totals(day_of(row.time_secs)).unwrap();
    totals.into_iter().fold(Usdc::ZERO, |sum, (_, total)| sum.saturating_add(total))
}

#[tokio::test]
async fn what_a_crash_kept_out_is_a_row_that_limits_and_days_count_until_its_call_is_found() {
    let ledger = paying().await;
    ledger.recover_signed(channel(1), micros(9_000)).await.unwrap();
    let cause = ledger.why_calls_are_missing(channel(1)).unwrap();
    ledger.recover_charges(channel(1), PRICE.saturating_mul(2), Usdc::MAX, cause).await.unwrap();
    assert_eq!(shown(&ledger), [(Side::Payer, micros(4_000), Cause::Crash)]);
    let row = ledger.adjustments_in(&ALL, |_| true).unwrap().rows.remove(0).1;
    let day = day_of(row.time_secs);
    assert_eq!((row.channel, row.peer), (channel(1), world().payee.address()));
    assert_eq!(counted(&ledger, &row), micros(4_000));
    assert_eq!(ledger.day_figures(day, day).unwrap()[0].1.spent, micros(4_000));
    assert_eq!(ledger.adjusted_with(Side::Payer, row.peer).unwrap(), micros(4_000));

    // One of the two is asked for again, and its owner shows the receipt of the first time.
    let again = promise(1, 1, micros(6_000));
    ledger.promise(again.clone()).await.unwrap().await.unwrap();
    let found = acknowledgement(receipt(&again, PRICE, Outcome::Answered));
    assert_eq!(ledger.acknowledge_found(call_id(1), found).await.unwrap(), [(day, PRICE)]);
    assert_eq!(shown(&ledger), [(Side::Payer, PRICE, Cause::Crash)]);
    assert_eq!(counted(&ledger, &row), PRICE);
    assert_eq!(ledger.day_figures(day, day).unwrap()[0].1.spent, PRICE);
    assert_eq!(ledger.purchase(call_id(1)).unwrap().unwrap().charged, PRICE);
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, micros(4_000), "it was counted before");
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    let other = promise(1, 2, micros(6_000));
    ledger.promise(other.clone()).await.unwrap().await.unwrap();
    let found = acknowledgement(receipt(&other, PRICE, Outcome::Answered));
    ledger.acknowledge_found(call_id(2), found).await.unwrap();
    assert_eq!(shown(&ledger), [], "nothing is left of it");
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_found_call_that_no_adjustment_counts_is_booked_like_any_other() {
    let ledger = paying().await;
    let made = promise(1, 1, PRICE);
    ledger.promise(made.clone()).await.unwrap().await.unwrap();
    let found = acknowledgement(receipt(&made, PRICE, Outcome::Answered));
    assert_eq!(ledger.acknowledge_found(call_id(1), found).await.unwrap(), []);
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, PRICE);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_found_call_takes_back_the_part_of_its_charge_that_was_booked() {
    let ledger = paying().await;
    ledger.recover_signed(channel(1), micros(500)).await.unwrap();
    ledger.recover_charges(channel(1), micros(500), Usdc::MAX, Cause::Crash).await.unwrap();
    let again = promise(1, 1, PRICE);
    ledger.promise(again.clone()).await.unwrap().await.unwrap();
    let found = acknowledgement(receipt(&again, PRICE, Outcome::Answered));
    let taken = ledger.acknowledge_found(call_id(1), found).await.unwrap();
    assert_eq!(taken.iter().map(|(_, part)| *part).collect::<Vec<_>>(), [micros(500)]);
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, PRICE, "its price, once");
    assert_eq!(shown(&ledger), []);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn an_open_promise_keeps_the_total_that_was_told_before_it() {
    let ledger = paying().await;
    let made = |seen| Promise { seen_total: micros(seen), ..promise(1, 1, PRICE) };
    ledger.promise(made(700)).await.unwrap().await.unwrap();
    assert_eq!(ledger.unresolved().unwrap(), [made(700)]);
    // The first copy may have been charged between the two.
    ledger.promise(made(900)).await.unwrap().await.unwrap();
    assert_eq!(ledger.promise_of(call_id(1)).unwrap(), Some(made(700)));
}

#[tokio::test]
async fn what_a_backup_lacks_is_told_from_what_a_crash_took() {
    let ledger = paying().await;
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    assert_eq!(ledger.why_calls_are_missing(channel(1)).unwrap(), Cause::Crash);
    ledger.mark_restored(NOW_SECS + 1).await.unwrap();
    assert_eq!(ledger.why_calls_are_missing(channel(1)).unwrap(), Cause::Restored);
    let mut later = promise(1, 2, PRICE);
    later.time_secs = NOW_SECS + 2;
    ledger.promise(later).await.unwrap().await.unwrap();
    assert_eq!(ledger.why_calls_are_missing(channel(1)).unwrap(), Cause::Crash);
    // A claim beyond the books of the side that is paid.
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger.put_payee_channel(PayeeChannelFacts { claimed: PRICE, ..payee_channel(1) }).await.unwrap();
    assert_eq!(shown(&ledger), [(Side::Payee, PRICE, Cause::Restored)]);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn an_emptied_channel_paid_what_it_paid_whether_its_calls_are_known_or_not() {
    let ledger = paying().await;
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    let view = |micros_paid, is_open| {
        let claimed = micros(micros_paid);
        let deposited = if is_open { payer_channel(1).deposited } else { claimed };
        PayerChannelFacts { claimed, deposited, ..payer_channel(1) }
    };
    ledger.note_loss().await.unwrap();
    ledger.put_payer_channel(view(5_000, true)).await.unwrap();
    assert_eq!(shown(&ledger), [], "the owner of an open channel is asked");
    let farthing_ledger::ChannelChange { row, counted, .. } =
        ledger.put_payer_channel(view(5_000, false)).await.unwrap();
    assert_eq!(counted.map(|(_, amount)| amount), Some(micros(3_000)), "the limits of the day");
    assert_eq!((row.acknowledged, row.in_flight), (micros(3_000), PRICE), "one call may owe its price");
    assert_eq!(shown(&ledger), [(Side::Payer, micros(3_000), Cause::Crash)]);
    let again = ledger.put_payer_channel(view(5_000, false)).await.unwrap();
    assert_eq!((shown(&ledger).len(), again.counted), (1, None), "once");
    ledger.release(call_id(1), "never served", NOW_SECS).await.unwrap();
    ledger.put_payer_channel(view(5_000, false)).await.unwrap();
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, micros(5_000));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn what_an_emptied_channel_paid_beyond_all_calls_is_no_crash_where_none_was() {
    for (is_lost, is_compared, cause) in
        [(false, false, Cause::Claimed), (true, false, Cause::Crash), (true, true, Cause::Claimed)]
    {
        let ledger = paying().await;
        ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
        ledger.release(call_id(1), "never served", NOW_SECS).await.unwrap();
        if is_lost {
            ledger.note_loss().await.unwrap();
        }
        if is_compared {
            ledger.note_compared(channel(1)).await.unwrap();
        }
        let emptied = PayerChannelFacts { claimed: PRICE, deposited: PRICE, ..payer_channel(1) };
        ledger.put_payer_channel(emptied).await.unwrap();
        assert_eq!(shown(&ledger), [(Side::Payer, PRICE, cause)], "lost: {is_lost}, compared: {is_compared}");
    }
}

#[tokio::test]
async fn a_refused_promise_whose_voucher_left_is_signed_and_may_be_charged() {
    let ledger = paying().await;
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    let state = |ledger: &Ledger| {
        let row = ledger.payer_channels().unwrap()[0];
        (row.signed, row.may_lack_calls, row.in_flight)
    };
    assert_eq!(state(&ledger), (PRICE, false, PRICE));
    // Another call found the owner out while this one was on its way.
    ledger.put_payer_channel(PayerChannelFacts { stopped: true, ..payer_channel(1) }).await.unwrap();
    let twice = PRICE.saturating_add(PRICE);
    let refused = ledger.promise(promise(1, 2, twice)).await.unwrap().await;
    assert!(matches!(refused, Err(LedgerError::ChannelStopped(_))), "{refused:?}");
    assert_eq!(state(&ledger), (twice, true, PRICE));
    let why = |ledger: &Ledger| ledger.why_calls_are_missing(channel(1)).unwrap();
    assert_eq!(why(&ledger), Cause::Refused, "nothing crashed");

    ledger.release(call_id(1), "never served", NOW_SECS).await.unwrap();
    let emptied = PayerChannelFacts { claimed: twice, deposited: twice, ..payer_channel(1) };
    ledger.put_payer_channel(emptied).await.unwrap();
    assert_eq!(shown(&ledger), [(Side::Payer, twice, Cause::Refused)], "no crime of the owner's");
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    ledger.note_loss().await.unwrap();
    assert_eq!(why(&ledger), Cause::Crash, "what is lacking from now on may be of either");
}

#[tokio::test]
async fn what_the_chain_alone_showed_is_taken_back_with_the_chain_or_when_nobody_proves_it() {
    let paid = |micros_paid| PayerChannelFacts { claimed: micros(micros_paid), ..payer_channel(1) };
    let state = |ledger: &Ledger| {
        let row = ledger.payer_channels().unwrap()[0];
        assert_eq!(ledger.audit(None).unwrap().violations, []);
        (row.acknowledged.micros(), shown(ledger).iter().map(|row| row.1.micros()).sum::<u64>())
    };
    // A new channel of which an endpoint says that it paid.
    let ledger = in_memory();
    ledger.put_payer_channel(paid(9_000)).await.unwrap();
    assert_eq!(state(&ledger), (9_000, 9_000));
    let observed = ledger.put_payer_channel(paid(1_000)).await.unwrap();
    assert_eq!(
        (observed.let_go, state(&ledger)),
        (micros(8_000), (1_000, 1_000)),
        "the chain says less again"
    );
    assert!(ledger.is_carried(channel(1)).unwrap());
    let proven = ledger.prove_carried(channel(1), micros(400)).await.unwrap();
    assert_eq!((proven.let_go, state(&ledger)), (micros(600), (400, 400)), "the owner proves as much");
    assert!(!ledger.is_carried(channel(1)).unwrap());
    ledger.put_payer_channel(paid(0)).await.unwrap();
    assert_eq!(state(&ledger), (400, 400), "which stays, whatever the chain says");
    // One that is told to be emptied, for the limits of the day.
    let ledger = paying().await;
    let emptied = PayerChannelFacts { deposited: micros(5_000), ..paid(5_000) };
    ledger.put_payer_channel(emptied).await.unwrap();
    assert_eq!(state(&ledger), (5_000, 5_000));
    let row = ledger.adjustments_in(&ALL, |_| true).unwrap().rows.remove(0).1;
    assert_eq!(counted(&ledger, &row), micros(5_000));
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    assert_eq!((state(&ledger), counted(&ledger, &row)), ((0, 0), Usdc::ZERO), "the day is free of it");
    // A receipt that counts on it is the owner's word alone, and an endpoint may be the owner's.
    let open = promise(1, 1, PRICE);
    ledger.promise(open.clone()).await.unwrap().await.unwrap();
    ledger.put_payer_channel(emptied).await.unwrap();
    let told = Receipt { spent_total: micros(5_000), ..receipt(&open, PRICE, Outcome::Answered) };
    ledger.acknowledge(call_id(1), acknowledgement(told)).await.unwrap();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    assert_eq!(state(&ledger), (PRICE.micros(), 0), "the call's price is what it owes");
}

#[tokio::test]
async fn a_copy_of_the_ledger_has_its_adjustments() {
    let ledger = in_memory();
    ledger.put_payer_channel(PayerChannelFacts { claimed: PRICE, ..payer_channel(1) }).await.unwrap();
    assert_eq!(shown(&ledger), [(Side::Payer, PRICE, Cause::Earlier)]);
    assert_eq!(
        ledger.day_totals(day_of(NOW_SECS)).unwrap(),
        [],
        "what is older counts for no limit of today"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.redb");
    ledger.copy_to(&path).unwrap();
    let copy = Ledger::open(&path, farthing_ledger::OpenMode::Existing).unwrap();
    assert_eq!(shown(&copy), shown(&ledger));
    assert_eq!(copy.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_receipt_is_stored_beside_a_forgotten_call_whose_voucher_its_owner_showed() {
    let ledger = in_memory();
    let id = ledger.put_payer_channel(payer_channel(1)).await.unwrap().row.id;
    let known = promise(1, 1, PRICE);
    ledger.promise(known.clone()).await.unwrap().await.unwrap();
    // The owner tells a total while the copy of a call that a crash forgot arrives.
    ledger.recover_signed(id, micros(2 * PRICE.micros())).await.unwrap();
    ledger.recover_charges(id, PRICE, micros(2 * PRICE.micros()), Cause::Crash).await.unwrap();
    let receipt = acknowledgement(receipt(&known, PRICE, Outcome::Answered));
    ledger.acknowledge(call_id(1), receipt).await.unwrap();
    let row = ledger.payer_channels().unwrap()[0];
    assert_eq!((row.acknowledged, row.signed), (micros(2 * PRICE.micros()), micros(2 * PRICE.micros())));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn no_charge_and_no_owners_total_counts_beyond_what_was_signed() {
    let ledger = paying().await;
    // Two calls under one voucher that covers the first alone.
    for made in [promise(1, 1, PRICE), promise(1, 2, PRICE)] {
        ledger.promise(made).await.unwrap().await.unwrap();
    }
    let first = receipt(&promise(1, 1, PRICE), PRICE, Outcome::Answered);
    ledger.acknowledge(call_id(1), acknowledgement(first)).await.unwrap();
    let second = receipt(&promise(1, 2, PRICE), PRICE, Outcome::Answered);
    let refused = ledger.acknowledge(call_id(2), acknowledgement(second)).await;
    assert!(matches!(refused, Err(LedgerError::ReceiptMismatch { rule, .. }) if rule.contains("signed")));
    let told = PRICE.saturating_add(PRICE);
    let row = ledger.recover_charges(channel(1), PRICE, told, Cause::Crash).await.unwrap();
    assert_eq!((row.acknowledged, row.signed), (PRICE, PRICE));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}
