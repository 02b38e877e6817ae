//! The rules of money, one at a time.

use bytes::Bytes;
use farthing_ledger::{
    Call, Cause, Ending, LedgerError, PayeeChannelFacts, PayerChannelFacts, Promise, PurchaseEnd, Retention,
    Served, ServedRow, Settlement, SettlementRow, SettlementState, day_of,
};
use farthing_values::{ChannelId, Method, Outcome, Payment, Usdc};

use crate::world::*;

#[tokio::test]
async fn a_served_call_is_recorded_with_voucher_charge_and_receipt() {
    let ledger = earning().await;

    let recorded = ledger.serve(served(1, micros(2_000), call(1))).await.unwrap();
    assert_eq!(recorded.receipt().spent_total, PRICE);
    let recorded = ledger.serve(served(1, micros(4_000), call(2))).await.unwrap();
    assert_eq!(recorded.receipt().spent_total, micros(4_000));

    let row = ledger.payee_channels().unwrap().remove(0);
    assert_eq!((row.best, row.spent), (micros(4_000), micros(4_000)));
    assert!(row.best_signature.is_some());
    let payer = world().payer.address();
    let Some(ServedRow::Done(known)) = ledger.served(payer, call_id(2)).unwrap() else { panic!() };
    assert_eq!(known.call, call(2));
    assert_eq!(known.receipt, *recorded.receipt());
    let newest: Vec<_> = ledger.served_calls(10).unwrap().into_iter().map(|row| row.call.call_id).collect();
    assert_eq!(newest, [call_id(2), call_id(1)]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_charge_below_and_at_what_is_covered_is_taken_and_above_it_is_refused() {
    let ledger = earning().await;
    let charge = |number, micros_charged| Call {
        price: micros(micros_charged),
        charged: micros(micros_charged),
        ..call(number)
    };
    ledger.serve(served(1, micros(3_000), charge(1, 1_999))).await.unwrap();
    ledger.serve(served(1, micros(3_000), charge(2, 1_001))).await.unwrap();
    let above = ledger.serve(served(1, micros(3_000), charge(3, 1))).await;
    assert!(matches!(above, Err(LedgerError::Overdrawn { .. })), "{above:?}");

    ledger.serve(served(1, DEPOSIT, charge(4, 1))).await.unwrap();
    let above = ledger.serve(served(1, micros(DEPOSIT.micros() + 1), charge(5, 1))).await;
    assert!(matches!(above, Err(LedgerError::VoucherAboveDeposit { .. })), "{above:?}");
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, micros(3_001));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_lower_voucher_that_comes_late_changes_nothing() {
    let ledger = earning().await;
    ledger.serve(served(1, micros(4_000), call(2))).await.unwrap();
    let before = ledger.payee_channels().unwrap()[0];
    ledger.serve(served(1, micros(2_000), call(1))).await.unwrap();
    let after = ledger.payee_channels().unwrap()[0];
    assert_eq!((after.best, after.best_signature), (before.best, before.best_signature));
    assert_eq!(after.spent, micros(4_000));
}

#[tokio::test]
async fn a_call_without_a_voucher_is_covered_by_the_best_one() {
    let ledger = earning().await;
    ledger.serve(served(1, micros(4_000), call(1))).await.unwrap();
    let covered = Served { voucher: None, ..served(1, PRICE, call(2)) };
    assert_eq!(ledger.serve(covered).await.unwrap().receipt().spent_total, micros(4_000));
}

#[tokio::test]
async fn a_failed_upstream_costs_nothing_and_a_safe_call_may_try_again() {
    let ledger = earning().await;
    let charged = Call { charged: PRICE, ..failed_call(1) };
    let refused = ledger.serve(served(1, PRICE, charged)).await;
    assert!(matches!(refused, Err(LedgerError::ChargeNotAllowed { .. })), "{refused:?}");
    let above = Call { charged: micros(2_001), ..call(1) };
    assert!(matches!(
        ledger.serve(served(1, DEPOSIT, above)).await,
        Err(LedgerError::ChargeNotAllowed { .. })
    ));

    ledger.serve(served(1, PRICE, failed_call(1))).await.unwrap();
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, Usdc::ZERO);
    ledger.serve(served(1, PRICE, Call { time_secs: NOW_SECS + 50, ..call(1) })).await.unwrap();
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, PRICE);
    assert_eq!(ledger.served_calls(10).unwrap().len(), 1);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_finished_call_is_never_charged_again() {
    let ledger = earning().await;
    ledger.put_payee_channel(payee_channel(2)).await.unwrap();
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let declined = Call { charged: Usdc::ZERO, outcome: Outcome::Declined, status: 404, ..call(2) };
    ledger.serve(served(1, PRICE, declined)).await.unwrap();

    for (salt, number) in [(1, 1), (2, 1), (1, 2)] {
        let again = ledger.serve(served(salt, DEPOSIT, call(number))).await;
        assert!(matches!(again, Err(LedgerError::AlreadyServed(_))), "{again:?}");
    }
    let other = Call { request_hash: [6; 32], ..call(1) };
    let conflict = ledger.serve(served(1, DEPOSIT, other)).await;
    assert!(matches!(conflict, Err(LedgerError::CallIdConflict(_))), "{conflict:?}");
    assert_eq!(ledger.payee_channel(channel(1)).unwrap().unwrap().spent, PRICE);
    assert_eq!(ledger.payee_channel(channel(2)).unwrap().unwrap().spent, Usdc::ZERO);
}

#[tokio::test]
async fn a_call_with_effects_is_recorded_before_it_runs_and_runs_once() {
    let ledger = earning().await;
    let post = |outcome: Call| Call { method: Method::Post, time_secs: NOW_SECS + 9, ..outcome };
    let unannounced = ledger.serve(served(1, PRICE, post(call(1)))).await;
    assert!(matches!(unannounced, Err(LedgerError::NotAccepted(_))), "{unannounced:?}");

    ledger.accept(accepted(1)).await.unwrap();
    let payer = world().payer.address();
    assert_eq!(ledger.served(payer, call_id(1)).unwrap(), Some(ServedRow::Accepted(accepted(1))));
    assert!(ledger.served_calls(10).unwrap().is_empty());
    assert!(matches!(ledger.accept(accepted(1)).await, Err(LedgerError::MayHaveRun(_))));

    // It timed out: it may have had its effect, so even uncharged it is not run again.
    ledger.serve(served(1, PRICE, post(failed_call(1)))).await.unwrap();
    let again = ledger.serve(served(1, PRICE, post(call(1)))).await;
    assert!(matches!(again, Err(LedgerError::AlreadyServed(_))), "{again:?}");
    assert!(matches!(ledger.accept(accepted(1)).await, Err(LedgerError::AlreadyServed(_))));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn only_the_channels_payer_and_signer_can_use_it() {
    let ledger = in_memory();
    let unknown = ledger.serve(served(1, PRICE, call(1))).await;
    assert!(matches!(unknown, Err(LedgerError::UnknownChannel(_))), "{unknown:?}");
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    let stranger = Served { payer: world().payee.address(), ..served(1, PRICE, call(1)) };
    assert!(matches!(ledger.serve(stranger).await, Err(LedgerError::WrongParty { .. })));
    // A voucher of another channel, though it is properly signed.
    let mixed = Served { channel: channel(1), ..served(2, PRICE, call(1)) };
    assert!(matches!(ledger.serve(mixed).await, Err(LedgerError::WrongParty { .. })));
    let free = Served { channel: ChannelId::NONE, voucher: None, ..served(1, PRICE, call(1)) };
    assert!(matches!(ledger.serve(free).await, Err(LedgerError::ChargeNotAllowed { .. })));
    let other_terms = PayeeChannelFacts { config: config(2), ..payee_channel(1) };
    assert!(matches!(ledger.put_payee_channel(other_terms).await, Err(LedgerError::ChannelConflict(_))));
}

#[tokio::test]
async fn a_free_call_needs_no_channel() {
    let ledger = in_memory();
    let free = Call { price: Usdc::ZERO, charged: Usdc::ZERO, ..call(1) };
    let served = Served { channel: ChannelId::NONE, voucher: None, ..served(1, PRICE, free) };
    let recorded = ledger.serve(served).await.unwrap();
    assert_eq!((recorded.receipt().channel, recorded.receipt().spent_total), (ChannelId::NONE, Usdc::ZERO));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn chain_facts_never_touch_what_was_charged_and_claimed_is_what_the_chain_says() {
    let ledger = earning().await;
    ledger.serve(served(1, micros(4_000), call(1))).await.unwrap();
    ledger.put_payee_channel(PayeeChannelFacts { claimed: micros(1_500), ..payee_channel(1) }).await.unwrap();
    let row = ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    assert_eq!((row.claimed, row.spent, row.best), (micros(0), PRICE, micros(4_000)));
}

#[tokio::test]
async fn a_claim_that_the_chain_takes_back_is_under_way_again_and_no_other() {
    let ledger = in_memory();
    for salt in [1, 2] {
        ledger.put_payee_channel(payee_channel(salt)).await.unwrap();
        ledger.serve(served(salt, micros(4_000), call(salt.into()))).await.unwrap();
    }
    use SettlementState::{Confirmed, Pending};
    for (salt, from, to) in [(1, 0, 500), (2, 0, 2_000), (1, 500, 2_000)] {
        let row = SettlementRow { channel: channel(salt), from: micros(from), to: micros(to) };
        let opened = ledger.open_settlement(vec![row], NOW_SECS).await.unwrap();
        let paid = Settlement { state: Confirmed, ..opened };
        ledger
            .put_payee_channel(PayeeChannelFacts { claimed: micros(to), ..payee_channel(salt) })
            .await
            .unwrap();
        assert_eq!(ledger.record_claim(paid).await.unwrap(), Confirmed);
    }
    let row = ledger
        .put_payee_channel(PayeeChannelFacts { claimed: micros(500), ..payee_channel(1) })
        .await
        .unwrap();
    assert_eq!((row.claimed, row.spent), (micros(500), PRICE), "the rest is due again");
    let states = || ledger.settlements(10).unwrap().into_iter().map(|one| one.state).collect::<Vec<_>>();
    assert_eq!(states(), [Pending, Confirmed, Confirmed], "the newest first");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
    // Other blocks may have it, too.
    let again = ledger.settlements(1).unwrap().remove(0);
    let confirm = || ledger.record_claim(Settlement { state: Confirmed, ..again.clone() });
    assert_eq!(confirm().await.unwrap(), Pending, "a receipt says so, and the channel's state does not");
    assert_eq!(ledger.payee_channel(channel(1)).unwrap().unwrap().claimed, micros(500));
    ledger.put_payee_channel(PayeeChannelFacts { claimed: PRICE, ..payee_channel(1) }).await.unwrap();
    assert_eq!(confirm().await.unwrap(), Confirmed);
    assert_eq!(states(), [Confirmed, Confirmed, Confirmed]);
}

#[tokio::test]
async fn a_lost_ledger_starts_from_what_the_chain_paid_out() {
    let ledger = in_memory();
    let row = ledger
        .put_payee_channel(PayeeChannelFacts { claimed: micros(9_000), ..payee_channel(1) })
        .await
        .unwrap();
    assert_eq!((row.spent, row.best, row.best_signature), (micros(9_000), micros(9_000), None));
    ledger.serve(served(1, micros(11_000), call(1))).await.unwrap();

    let row = ledger
        .put_payer_channel(PayerChannelFacts { claimed: micros(9_000), ..payer_channel(1) })
        .await
        .unwrap();
    assert_eq!((row.row.acknowledged, row.row.signed), (micros(9_000), micros(9_000)));
    let row = ledger.recover_signed(channel(1), micros(12_000)).await.unwrap();
    assert_eq!((row.acknowledged, row.signed), (micros(9_000), micros(12_000)));
    let row = ledger.recover_signed(channel(1), PRICE).await.unwrap();
    assert_eq!((row.acknowledged, row.signed), (micros(9_000), micros(12_000)));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn charges_that_a_crash_kept_out_are_added_to_whatever_is_known_by_then() {
    let ledger = paying().await;
    ledger.recover_signed(channel(1), micros(9_000)).await.unwrap();
    let recover = |charged, total| ledger.recover_charges(channel(1), charged, total, Cause::Crash);
    let row = recover(micros(2_000), micros(9_000)).await.unwrap();
    assert_eq!((row.acknowledged, row.signed), (micros(2_000), micros(9_000)));
    let row = recover(micros(3_000), micros(9_000)).await.unwrap();
    assert_eq!((row.acknowledged, row.signed), (micros(5_000), micros(9_000)));
    let row = recover(micros(3_000), micros(6_000)).await.unwrap();
    assert_eq!(row.acknowledged, micros(6_000), "never beyond what the owner told");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_confirmed_claim_is_final_and_never_exceeds_what_was_charged() {
    let ledger = earning().await;
    ledger.serve(served(1, DEPOSIT, call(1))).await.unwrap();
    let row = |to| SettlementRow { channel: channel(1), from: Usdc::ZERO, to };
    let above = ledger.open_settlement(vec![row(micros(2_001))], NOW_SECS).await;
    assert!(matches!(above, Err(LedgerError::ClaimAboveSpent { .. })), "{above:?}");

    let opened = ledger.open_settlement(vec![row(PRICE)], NOW_SECS).await.unwrap();
    let sent = Settlement { transaction: Some([8; 32]), ..opened };
    ledger.record_claim(sent.clone()).await.unwrap();
    assert_eq!(ledger.payee_channels().unwrap()[0].claimed, Usdc::ZERO);
    let confirmed = Settlement { state: SettlementState::Confirmed, time_secs: NOW_SECS + 2, ..sent };
    ledger.put_payee_channel(PayeeChannelFacts { claimed: PRICE, ..payee_channel(1) }).await.unwrap();
    ledger.record_claim(confirmed.clone()).await.unwrap();
    ledger.record_claim(confirmed.clone()).await.unwrap();
    let failed = Settlement { state: SettlementState::Failed, ..confirmed.clone() };
    assert!(matches!(ledger.record_claim(failed).await, Err(LedgerError::SettlementFinal(1))));
    let unknown = Settlement { id: 5, ..confirmed.clone() };
    assert!(matches!(ledger.record_claim(unknown).await, Err(LedgerError::UnknownSettlement(5))));
    assert_eq!(ledger.settlements(10).unwrap(), [confirmed]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_promise_stays_open_until_its_receipt_and_counts_for_its_channel_and_day() {
    let ledger = paying().await;
    let first = promise(1, 1, PRICE);
    let promised = ledger.promise(first.clone()).await.unwrap().await.unwrap();
    assert_eq!(promised.call_id(), call_id(1));
    assert_eq!(ledger.unresolved().unwrap(), std::slice::from_ref(&first));
    assert_eq!(ledger.promise_of(call_id(1)).unwrap(), Some(first.clone()));
    let row = ledger.payer_channels().unwrap()[0];
    assert_eq!((row.signed, row.in_flight, row.acknowledged), (PRICE, PRICE, Usdc::ZERO));

    let closing = acknowledgement(receipt(&first, PRICE, Outcome::Answered));
    ledger.acknowledge(call_id(1), closing.clone()).await.unwrap();
    ledger.acknowledge(call_id(1), closing.clone()).await.unwrap();
    assert!(ledger.unresolved().unwrap().is_empty());
    let row = ledger.payer_channels().unwrap()[0];
    assert_eq!((row.signed, row.in_flight, row.acknowledged), (PRICE, Usdc::ZERO, PRICE));
    let day = day_of(NOW_SECS);
    assert_eq!(ledger.day_totals(day + 1).unwrap(), []);
    assert_eq!(ledger.day_totals(day).unwrap(), [("laptop".to_owned(), PRICE)]);

    let purchase = ledger.purchases(5).unwrap().remove(0);
    assert_eq!((purchase.price, purchase.charged), (PRICE, PRICE));
    let PurchaseEnd::Acknowledged { receipt, signature, .. } = purchase.end else { panic!() };
    assert_eq!((*receipt, signature), (*closing.receipt, *closing.receipt.signature()));
    let again = ledger.promise(first).await.unwrap().await;
    assert!(matches!(again, Err(LedgerError::AlreadyBought(_))), "{again:?}");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_released_promise_costs_nothing_and_may_be_made_again() {
    let ledger = paying().await;
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    ledger.release(call_id(1), "busy".repeat(1_000), NOW_SECS).await.unwrap();
    assert!(matches!(ledger.release(call_id(1), "busy", NOW_SECS).await, Err(LedgerError::NotPromised(_))));
    let purchase = ledger.purchase(call_id(1)).unwrap().unwrap();
    assert!(matches!(purchase.end, PurchaseEnd::Released { reason, .. } if reason.len() == 1_024));
    assert_eq!(purchase.charged, Usdc::ZERO);

    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    // The same call promised anew, with a higher voucher: it stays one promise.
    ledger.promise(promise(1, 1, micros(6_000))).await.unwrap().await.unwrap();
    let row = ledger.payer_channels().unwrap()[0];
    assert_eq!((row.signed, row.in_flight), (micros(6_000), PRICE));
    let other = Promise { request_hash: [9; 32], ..promise(1, 1, PRICE) };
    let conflict = ledger.promise(other).await.unwrap().await;
    assert!(matches!(conflict, Err(LedgerError::CallIdConflict(_))), "{conflict:?}");
    assert!(ledger.purchases(5).unwrap().is_empty());
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_receipt_that_does_not_fit_leaves_the_promise_open() {
    let ledger = paying().await;
    let made = promise(1, 1, PRICE);
    ledger.promise(made.clone()).await.unwrap().await.unwrap();
    let good = receipt(&made, PRICE, Outcome::Answered);
    let mut wrong = [good; 5];
    wrong[0].charged = micros(2_001);
    wrong[1].request_hash = [1; 32];
    wrong[2].channel = channel(2);
    wrong[3].call_id = call_id(2);
    wrong[4].outcome = 99;
    for receipt in wrong {
        let refused = ledger.acknowledge(call_id(1), acknowledgement(receipt)).await;
        assert!(matches!(refused, Err(LedgerError::ReceiptMismatch { .. })), "{refused:?}");
    }
    assert_eq!(ledger.unresolved().unwrap().len(), 1);
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, Usdc::ZERO);
}

#[tokio::test]
async fn nothing_is_promised_beyond_the_deposit_or_on_a_stopped_channel() {
    let ledger = in_memory();
    let unknown = ledger.promise(promise(1, 1, PRICE)).await.unwrap().await;
    assert!(matches!(unknown, Err(LedgerError::UnknownChannel(_))), "{unknown:?}");
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    ledger.promise(promise(1, 1, DEPOSIT)).await.unwrap().await.unwrap();
    let above = ledger.promise(promise(1, 2, micros(DEPOSIT.micros() + 1))).await.unwrap().await;
    assert!(matches!(above, Err(LedgerError::VoucherAboveDeposit { .. })), "{above:?}");

    ledger.put_payer_channel(PayerChannelFacts { stopped: true, ..payer_channel(1) }).await.unwrap();
    // A later view of the chain does not revive it.
    assert!(ledger.put_payer_channel(payer_channel(1)).await.unwrap().row.stopped);
    let stopped = ledger.promise(promise(1, 2, PRICE)).await.unwrap().await;
    assert!(matches!(stopped, Err(LedgerError::ChannelStopped(_))), "{stopped:?}");
    assert!(!ledger.resume_payer_channel(channel(1)).await.unwrap().stopped);
    ledger.promise(promise(1, 2, PRICE)).await.unwrap().await.unwrap();
}

#[tokio::test]
async fn a_free_promise_needs_no_channel() {
    let ledger = in_memory();
    let mut free = promise(1, 1, PRICE);
    free.request.payment = Payment::Free;
    free.request.price = Usdc::ZERO;
    ledger.promise(free.clone()).await.unwrap().await.unwrap();
    assert_eq!(ledger.unresolved().unwrap(), std::slice::from_ref(&free));
    let receipt = receipt(&free, Usdc::ZERO, Outcome::Answered);
    ledger.acknowledge(call_id(1), acknowledgement(receipt)).await.unwrap();
    assert!(ledger.day_totals(day_of(NOW_SECS)).unwrap().is_empty());
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn bodies_go_by_age_and_size_and_rows_by_age_with_their_charges_kept() {
    let ledger = earning().await;
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    for number in 0..600 {
        let body = Some(Bytes::from(vec![0; 10]));
        let cumulative = micros(2_000 * (number + 1));
        let call = Call { body, price: micros(10), charged: micros(10), ..call(number) };
        ledger.serve(served(1, cumulative.min(DEPOSIT), call)).await.unwrap();
    }
    for number in 0..3 {
        let mut made = promise(1, number, micros(2_000 * (number + 1)));
        made.time_secs += number * 86_400;
        ledger.promise(made.clone()).await.unwrap().await.unwrap();
        let closing = acknowledgement(receipt(&made, PRICE, Outcome::Answered));
        ledger.acknowledge(call_id(number), closing).await.unwrap();
    }
    let keep = Retention { bodies_kept_secs: 1_000, body_bytes_max: 1_000, rows_kept_secs: 0 };
    let pruned = ledger.prune(keep, NOW_SECS + 600).await.unwrap();
    assert_eq!((pruned.bodies, pruned.calls), (500, 0), "the oldest beyond 1,000 bytes go");
    let pruned = ledger.prune(keep, NOW_SECS + 1_550).await.unwrap();
    assert_eq!((pruned.bodies, pruned.calls), (50, 0), "those older than 1,000 s go");
    let payer = world().payer.address();
    let body_of = |number| match ledger.served(payer, call_id(number)).unwrap() {
        Some(ServedRow::Done(row)) => row.call.body,
        other => panic!("{other:?}"),
    };
    assert_eq!((body_of(549), body_of(550).map(|body| body.len())), (None, Some(10)));
    assert_eq!(ledger.served_calls(1).unwrap()[0].body_bytes, 10);
    let Some(ServedRow::Done(head)) = ledger.served_head(payer, call_id(550)).unwrap() else { panic!() };
    assert_eq!(head.call.body, None, "whoever may not take time copies none");
    assert_eq!(ledger.served_body(&head).unwrap(), body_of(550));

    // A week is kept whatever is asked for.
    let week = 7 * 86_400;
    let pruned = ledger.prune(keep, NOW_SECS + week).await.unwrap();
    assert_eq!((pruned.calls, pruned.purchases), (0, 0));
    let pruned = ledger.prune(keep, NOW_SECS + 300 + week).await.unwrap();
    assert_eq!(pruned.calls, 300);
    let pruned = ledger.prune(keep, NOW_SECS + 2 * 86_400 + week).await.unwrap();
    assert_eq!((pruned.calls, pruned.purchases), (300, 2));
    assert_eq!(ledger.day_totals(day_of(NOW_SECS)).unwrap(), []);
    assert_eq!(ledger.day_totals(day_of(NOW_SECS) + 2).unwrap(), [("laptop".to_owned(), PRICE)]);
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, micros(6_000));
    assert_eq!(ledger.payer_channels().unwrap()[0].acknowledged, micros(6_000));
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_channel_whose_close_was_signed_away_is_not_forgotten() {
    let ledger = in_memory();
    for number in [1, 2] {
        ledger.put_payee_channel(payee_channel(number)).await.unwrap();
    }
    let [kept, forgotten] = [1, 2].map(|number| payee_channel(number).id);
    let signed_away = Ending::SignedAway { until_secs: 5, round: 0 };
    ledger.end_payee_channel(kept, signed_away).await.unwrap();
    for id in [kept, forgotten] {
        ledger.forget_unused_payee_channel(id).await.unwrap();
    }
    // A channel that comes back as a new one would be served, and the signed close gives back what it then earns.
    assert_eq!(ledger.payee_channel(kept).unwrap().map(|row| row.ending), Some(signed_away));
    assert_eq!(ledger.payee_channel(forgotten).unwrap(), None);
    ledger.end_payee_channel(kept, Ending::None).await.unwrap();
    ledger.forget_unused_payee_channel(kept).await.unwrap();
    assert_eq!(ledger.payee_channel(kept).unwrap(), None, "nobody can bring the close any more");
}

#[tokio::test]
async fn no_view_of_the_chain_ends_a_signed_close_or_a_promise_to_close() {
    let ledger = in_memory();
    let open = payee_channel(1);
    let signed = Ending::SignedAway { until_secs: 5, round: 0 };
    ledger.put_payee_channel(open).await.unwrap();
    ledger.end_payee_channel(open.id, signed).await.unwrap();
    let emptied = PayeeChannelFacts { claimed: DEPOSIT, ..open };
    let filled = PayeeChannelFacts { deposited: micros(2 * DEPOSIT.micros()), ..emptied };
    // The block with the close may be taken back, and a view be an endpoint's invention.
    for seen in [emptied, open, emptied, filled] {
        assert_eq!(ledger.put_payee_channel(seen).await.unwrap().ending, signed, "{seen:?}");
    }
    ledger.end_payee_channel(open.id, Ending::Closes { round: Some(1) }).await.unwrap();
    for seen in [emptied, open, filled] {
        assert_eq!(
            ledger.put_payee_channel(seen).await.unwrap().ending,
            Ending::Closes { round: Some(1) },
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn when_a_channel_was_last_used_is_when_it_was_promised_on_or_filled() {
    let ledger = in_memory();
    let used = async |facts| ledger.put_payer_channel(facts).await.unwrap().row.used_secs;
    let opened = used(payer_channel(1)).await.unwrap();
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    while second() == opened {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(used(payer_channel(1)).await, Some(opened), "the chain shows nothing new");
    let late = Promise { time_secs: opened + 500, ..promise(1, 1, PRICE) };
    ledger.promise(late).await.unwrap().await.unwrap();
    assert_eq!(used(payer_channel(1)).await, Some(opened + 500));
    let early = Promise { time_secs: opened - 500, ..promise(1, 2, PRICE) };
    ledger.promise(early).await.unwrap().await.unwrap();
    assert_eq!(used(payer_channel(1)).await, Some(opened + 500));
}
