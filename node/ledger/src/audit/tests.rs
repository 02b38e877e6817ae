//! Each invariant, broken by hand in the tables, is found under its id.

use std::collections::BTreeMap;

use bytes::Bytes;
use farthing_values::{
    CallRequest, ChannelConfig, ChargePolicy, Domain, Method, Outcome, Payment, Receipt, SecretKey,
    ServiceId, Voucher,
};
use redb::{WriteTransaction, backends::InMemoryBackend};

use super::*;
use crate::{
    Acknowledgement, Call, Cause, DayLimits, PayeeChannelFacts, PayerChannelFacts, Promise, Served,
    Settlement, SettlementRow, Timing,
    group::Group,
    rows::{
        figures::EndedCall,
        payee::{self, StoredCall, StoredState},
        payer::{self, StoredEnd, StoredPurchase},
    },
    settlement::{self, SettlementState},
    tables::{
        BODIES, CALLS, CALLS_BY_TIME, DAY_LIMITS, DAY_TOTALS, META, PAYEE_CHANNELS, PAYER_CHANNELS, PROMISES,
        PURCHASES, PURCHASES_BY_TIME, SERVICE_HOURS, SETTLEMENTS_BY_CHANNEL, SETTLEMENTS_UNDER_WAY,
    },
};

const PRICE: Usdc = Usdc::from_micros(2_000);
const ID: [u8; 16] = [1; 16];
/// As much as is bought.
const LIMITS: DayLimits = DayLimits { node: PRICE, secret: PRICE };

fn domain() -> Domain {
    Domain::new(31_337, Address::from_bytes([9; 20]))
}

/// A ledger with one call, one purchase and one confirmed claim on one channel, in both roles.
async fn ledger() -> (Ledger, ChannelId) {
    let domain = domain();
    let key = SecretKey::from_bytes(&[1; 32]).unwrap();
    let me = key.address();
    let config =
        ChannelConfig { payer: me, payee: me, token: me, signer: me, close_delay_secs: 3_600, salt: [1; 32] };
    let id = config.id(&domain);
    let deposited = Usdc::from_micros(10_000);
    let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
    let claimed = Usdc::ZERO;
    let begun = PayeeChannelFacts { id, config, deposited, claimed, closing: false };
    ledger.put_payee_channel(begun).await.unwrap();
    ledger
        .put_payer_channel(PayerChannelFacts {
            id,
            config,
            deposited,
            claimed,
            round: Some(0),
            stopped: false,
        })
        .await
        .unwrap();

    let voucher = Voucher { channel: id, cumulative: PRICE };
    let signature = voucher.sign(&domain, &key);
    let request = CallRequest {
        call_id: CallId::from_bytes(ID),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Get,
        path: "/".into(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: 0,
        price: PRICE,
        deadline_ms: 1,
        payment: Payment::Channel {
            channel: id,
            cumulative: PRICE,
            signature: Some(signature),
            receipted: None,
        },
    };
    let call = Call {
        call_id: request.call_id,
        service: request.service,
        method: Method::Get,
        path: "/".into(),
        request_hash: [0; 32],
        response_hash: [0; 32],
        price: PRICE,
        charged: PRICE,
        outcome: Outcome::Answered,
        status: 200,
        headers: BTreeMap::new(),
        body: Some(Bytes::from_static(b"body")),
        fault: None,
        upstream_us: None,
        time_secs: 86_400,
    };
    let voucher = voucher.verify(&domain, signature, me).ok();
    let recorded = ledger.serve(Served { payer: me, channel: id, voucher, call }).await.unwrap();
    let promise = Promise {
        request,
        request_hash: [0; 32],
        owner: me,
        secret: "laptop".into(),
        time_secs: 86_400,
        limits: Some(LIMITS),
        seen_total: Usdc::ZERO,
        charge_policy: ChargePolicy::Success,
    };
    ledger.promise(promise.clone()).await.unwrap().await.unwrap();
    let receipt: Receipt = *recorded.receipt();
    let receipt = receipt.verify(&domain, receipt.sign(&domain, &key), me).unwrap();
    let acknowledgement =
        Acknowledgement { receipt, status: 200, timing: Timing::default(), time_secs: 86_401 };
    ledger.acknowledge(CallId::from_bytes(ID), acknowledgement).await.unwrap();
    let mut open = promise;
    open.request.call_id = CallId::from_bytes([3; 16]);
    ledger.promise(open).await.unwrap().await.unwrap();

    let rows = vec![SettlementRow { channel: id, from: Usdc::ZERO, to: PRICE }];
    let opened = ledger.open_settlement(rows, 1).await.unwrap();
    ledger.put_payee_channel(PayeeChannelFacts { claimed: PRICE, ..begun }).await.unwrap();
    ledger.record_claim(Settlement { state: SettlementState::Confirmed, ..opened }).await.unwrap();
    (ledger, id)
}

/// The ids of what an audit finds after `tamper`.
async fn found(
    tamper: impl FnOnce(&WriteTransaction, ChannelId) -> Result<()> + Send + 'static,
) -> Vec<&'static str> {
    let (ledger, id) = ledger().await;
    assert_eq!(ledger.audit(Some(&domain())).unwrap().violations, []);
    ledger.write(move |tx| tamper(tx, id)).await.unwrap();
    let audit = ledger.audit(Some(&domain())).unwrap();
    assert_eq!(audit.violations_total, audit.violations.len() as u64);
    let mut ids: Vec<_> = audit.violations.iter().map(|violation| violation.invariant).collect();
    ids.dedup();
    ids
}

fn change_payee(
    tx: &WriteTransaction,
    id: ChannelId,
    change: impl FnOnce(&mut payee::StoredPayeeChannel),
) -> Result<()> {
    let mut table = tx.open_table(PAYEE_CHANNELS)?;
    let mut row = payee::channel_in(&table, id)?.unwrap();
    change(&mut row);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(())
}

fn change_payer(
    tx: &WriteTransaction,
    id: ChannelId,
    change: impl FnOnce(&mut payer::StoredPayerChannel),
) -> Result<()> {
    let mut table = tx.open_table(PAYER_CHANNELS)?;
    let mut row = payer::channel_in(&table, id)?.unwrap();
    change(&mut row);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(())
}

fn change_purchase(tx: &WriteTransaction, change: impl FnOnce(&mut StoredPurchase)) -> Result<()> {
    let mut table = tx.open_table(PURCHASES)?;
    let mut row = payer::purchase_in(&table, CallId::from_bytes(ID))?.unwrap();
    change(&mut row);
    table.insert(&ID, tables::encode(&row).as_slice())?;
    Ok(())
}

/// Changes the one call, and stores it again under `id`.
fn change_call(
    tx: &WriteTransaction,
    id: [u8; 16],
    change: impl FnOnce(&mut payee::stored::StoredDone),
) -> Result<()> {
    let mut table = tx.open_table(CALLS)?;
    let (key, mut row): ([u8; 36], StoredCall) = {
        let (key, bytes) = table.first()?.unwrap();
        (*key.value(), tables::decode("calls", bytes.value())?)
    };
    if let StoredState::Done(done) = &mut row.state {
        change(done);
    }
    let key: [u8; 36] = tables::join(&[&key[..20], &id]);
    table.insert(&key, tables::encode(&row).as_slice())?;
    tx.open_table(CALLS_BY_TIME)?.insert(&payee::time_key(row.time_secs, &key), ())?;
    Ok(())
}

#[tokio::test]
async fn o1_spent_is_within_the_best_voucher_and_the_deposit() {
    let more = Usdc::from_micros(1);
    let unproven = |tx: &WriteTransaction, id| {
        change_payee(tx, id, |row| (row.best, row.claimed) = (Usdc::from_micros(1), Usdc::ZERO))
    };
    assert_eq!(found(unproven).await, ["O1", "X2", "O3", "M3"]);
    assert_eq!(found(move |tx, id| change_payee(tx, id, |row| row.deposited_peak = more)).await, ["O1"]);
    assert_eq!(found(move |tx, id| change_payee(tx, id, |row| row.claimed = Usdc::MAX)).await, ["O1"]);
}

#[tokio::test]
async fn o2_spent_is_the_sum_of_charges() {
    assert_eq!(found(|tx, id| change_payee(tx, id, |row| row.opening = PRICE)).await, ["O2"]);
    assert_eq!(
        found(|tx, _| change_call(tx, ID, |call| call.charged = Usdc::from_micros(1))).await,
        ["O6", "O2"]
    );
    assert_eq!(found(|tx, _| change_call(tx, ID, |call| call.channel = ChannelId::NONE)).await, ["O2"]);
}

#[tokio::test]
async fn o4_a_failed_upstream_costs_nothing() {
    assert_eq!(found(|tx, _| change_call(tx, ID, |call| call.outcome = Outcome::TimedOut)).await, ["O4"]);
}

#[tokio::test]
async fn o3_a_charge_is_recorded_with_the_voucher_that_covers_it() {
    let lost = |tx: &WriteTransaction, id| {
        change_payee(tx, id, |row| (row.best, row.best_signature) = (Usdc::ZERO, None))
    };
    assert_eq!(
        found(lost).await,
        ["O3"],
        "what was paid out needs no voucher any more, and the call had one"
    );
}

#[tokio::test]
async fn o6_a_charge_is_the_price_and_never_more_than_was_accepted() {
    assert_eq!(found(|tx, _| change_call(tx, ID, |call| call.price = Usdc::MAX)).await, ["O6"]);
    assert_eq!(found(|tx, _| change_purchase(tx, |row| row.price = Usdc::from_micros(1_999))).await, ["O6"]);
}

#[tokio::test]
async fn x2_what_is_charged_and_not_claimed_has_a_voucher_that_the_contract_takes() {
    let unsigned = |tx: &WriteTransaction, id| {
        change_payee(tx, id, |row| (row.claimed, row.best_signature) = (Usdc::ZERO, None))
    };
    assert_eq!(found(unsigned).await, ["X2", "M3"]);
    let of_another_amount = |tx: &WriteTransaction, id| {
        change_payee(tx, id, |row| (row.claimed, row.best) = (Usdc::ZERO, Usdc::from_micros(9_000)))
    };
    assert_eq!(found(of_another_amount).await, ["X2", "M3"]);
}

#[tokio::test]
async fn m4_at_rest_what_is_charged_is_paid_out_or_booked_as_lost() {
    assert_eq!(found(|tx, id| change_payee(tx, id, |row| row.lost = Some(PRICE))).await, ["M4"]);
    let withdrawn = |tx: &WriteTransaction, id| {
        change_payee(tx, id, |row| (row.claimed, row.deposited) = (Usdc::ZERO, Usdc::ZERO))
    };
    assert_eq!(found(withdrawn).await, ["M4", "M3"]);
    let told_of_nothing = |tx: &WriteTransaction, id| settlement::book_losses(tx, id, (PRICE, PRICE), 1);
    assert_eq!(found(told_of_nothing).await, ["M4"], "a settlement tells of a loss that is none");
    let taken_back = |tx: &WriteTransaction, _| change_call(tx, ID, |done| done.is_lost = Some(true));
    assert_eq!(found(taken_back).await, ["M4"], "no adjustment tells of a call that nothing pays");
    let paid_for_nothing = |tx: &WriteTransaction, id| {
        tx.open_table(PROMISES)?.retain(|_, _| false)?;
        let more = Usdc::from_micros(3_000);
        change_payer(tx, id, |row| (row.claimed, row.deposited, row.signed) = (more, more, more))
    };
    assert_eq!(found(paid_for_nothing).await, ["M4"]);
}

#[tokio::test]
async fn o5_one_receipt_counts_one_charge() {
    // A second call that claims the same part of the total.
    assert_eq!(found(|tx, _| change_call(tx, [2; 16], |_| ())).await, ["O2", "O5", "index"]);
}

#[tokio::test]
async fn c1_promises_are_within_what_was_signed_and_deposited() {
    assert_eq!(found(|tx, id| change_payer(tx, id, |row| row.signed = Usdc::ZERO)).await, ["C1"]);
    assert_eq!(found(|tx, id| change_payer(tx, id, |row| row.deposited_peak = Usdc::ZERO)).await, ["C1"]);
}

#[tokio::test]
async fn c2_a_day_is_the_sum_of_its_purchases() {
    let less = |tx: &WriteTransaction, _| {
        tx.open_table(DAY_TOTALS)?.insert((1, "laptop"), 1_999)?;
        Ok(())
    };
    assert_eq!(found(less).await, ["C2"]);
    let gone = |tx: &WriteTransaction, _| {
        tx.open_table(DAY_TOTALS)?.remove((1, "laptop"))?;
        Ok(())
    };
    assert_eq!(found(gone).await, ["C2"]);
}

#[tokio::test]
async fn c2_no_day_and_no_secret_passes_what_the_limits_then_allowed() {
    let lower = |secret: &'static str| {
        move |tx: &WriteTransaction, _| {
            tx.open_table(DAY_LIMITS)?.insert((1, secret), (PRICE.micros() - 1, 0))?;
            Ok(())
        }
    };
    assert_eq!(found(lower("")).await, ["C2"], "the node's");
    assert_eq!(found(lower("laptop")).await, ["C2"], "the secret's");
    let late = |tx: &WriteTransaction, _| {
        tx.open_table(DAY_LIMITS)?.insert((1, "laptop"), (PRICE.micros() - 1, 1))?;
        Ok(())
    };
    assert_eq!(found(late).await, [""; 0], "what came late is told apart");
}

#[tokio::test]
async fn a_day_whose_limits_nobody_noted_is_counted_and_no_violation() {
    let (ledger, _) = ledger().await;
    assert_eq!(ledger.audit(None).unwrap().days_of_unknown_limits, 0);
    ledger.write(|tx| Ok(tx.open_table(DAY_LIMITS)?.retain(|_, _| false)?)).await.unwrap();
    let audit = ledger.audit(None).unwrap();
    assert_eq!((audit.violations, audit.days_of_unknown_limits), (vec![], 1));
}

#[tokio::test]
async fn the_highest_limits_of_a_day_are_noted_and_a_late_charge_beside_them() {
    let (ledger, _) = ledger().await;
    let on = |secret: &'static str| ledger.read(|tx| crate::allowed::on(tx, 1, secret)).unwrap().unwrap();
    let note = |micros: u64| {
        let limits = DayLimits { node: Usdc::from_micros(micros + 1), secret: Usdc::from_micros(micros) };
        ledger.write_grouped(move |group| crate::allowed::note(group, 1, "laptop", limits))
    };
    note(9_000).await.unwrap();
    note(5_000).await.unwrap();
    assert_eq!((on("").limit.micros(), on("laptop").limit.micros()), (9_001, 9_000));
    ledger.write(|tx| crate::allowed::note_late(tx, 1, "laptop", PRICE)).await.unwrap();
    note(9_500).await.unwrap();
    assert_eq!((on("").most().micros(), on("laptop").late), (11_501, PRICE));
    ledger.write(|tx| crate::allowed::forget_before(tx, 2)).await.unwrap();
    assert_eq!(ledger.read(|tx| crate::allowed::on(tx, 1, "")).unwrap(), None);
}

#[tokio::test]
async fn c3_acknowledged_is_the_sum_of_receipts() {
    assert_eq!(found(|tx, id| change_payer(tx, id, |row| row.acknowledged = Usdc::ZERO)).await, ["C3"]);
    let unknown = |tx: &WriteTransaction, id: ChannelId| {
        tx.open_table(PAYER_CHANNELS)?.remove(id.as_bytes())?;
        Ok(())
    };
    assert_eq!(found(unknown).await, ["C3"]);
}

#[tokio::test]
async fn c3_a_charge_rests_on_its_owners_signature() {
    let forged = |tx: &WriteTransaction, _| {
        change_purchase(tx, |row| {
            if let StoredEnd::Acknowledged { status, signature, .. } = &mut row.end {
                *status = 201;
                let key = SecretKey::from_bytes(&[2; 32]).unwrap();
                *signature = Voucher { channel: ChannelId::NONE, cumulative: PRICE }.sign(&domain(), &key);
            }
        })
    };
    assert_eq!(found(forged).await, ["C3"]);
}

#[tokio::test]
async fn c3_a_transfer_is_on_no_channel_and_pays_exactly_the_price() {
    let transferred = |tx: &WriteTransaction, _| {
        change_purchase(tx, |row| {
            let (transaction, is_seen) = (None, None);
            row.end =
                StoredEnd::Transferred { charged: PRICE, transaction, status: 200, total_us: 0, is_seen };
        })
    };
    assert_eq!(found(transferred).await, ["C3"]);
}

#[tokio::test]
async fn an_opening_balance_is_the_sum_of_its_adjustments() {
    let (ledger, id) = ledger().await;
    ledger.recover_signed(id, Usdc::from_micros(9_000)).await.unwrap();
    ledger.recover_charges(id, PRICE, Usdc::MAX, Cause::Crash).await.unwrap();
    let audit = ledger.audit(Some(&domain())).unwrap();
    assert_eq!((audit.violations, audit.adjustments), (vec![], 1));
    let forget = |tx: &WriteTransaction| {
        tx.open_table(ADJUSTMENTS)?.retain(|_, _| false)?;
        Ok(())
    };
    ledger.write(forget).await.unwrap();
    let found = ledger.audit(None).unwrap().violations;
    let ids: Vec<_> = found.iter().map(|violation| violation.invariant).collect();
    assert_eq!(ids, ["C2", "C3"], "{found:?}");
}

#[tokio::test]
async fn c4_a_call_is_open_or_closed() {
    let both = |tx: &WriteTransaction, _| {
        let mut promises = tx.open_table(PROMISES)?;
        let open = promises.get(&[3; 16])?.unwrap().value().to_vec();
        promises.insert(&ID, open.as_slice())?;
        Ok(())
    };
    assert_eq!(found(both).await, ["C4"]);
}

#[tokio::test]
async fn m3_what_was_claimed_stays_claimed() {
    assert_eq!(found(|tx, id| change_payer(tx, id, |row| row.claimed = Usdc::MAX)).await, ["M3"]);
    assert_eq!(found(|tx, id| change_payee(tx, id, |row| row.claimed = Usdc::ZERO)).await, ["M3"]);
}

#[tokio::test]
async fn indexes_and_counters_fit_their_rows() {
    let no_calls_by_time = |tx: &WriteTransaction, _| {
        tx.open_table(CALLS_BY_TIME)?.retain(|_, ()| false)?;
        Ok(())
    };
    assert_eq!(found(no_calls_by_time).await, ["index"]);
    let no_purchases_by_time = |tx: &WriteTransaction, _| {
        tx.open_table(PURCHASES_BY_TIME)?.retain(|_, ()| false)?;
        Ok(())
    };
    assert_eq!(found(no_purchases_by_time).await, ["index"]);
    let no_bodies = |tx: &WriteTransaction, _| {
        tx.open_table(BODIES)?.retain(|_, _| false)?;
        Ok(())
    };
    assert_eq!(found(no_bodies).await, ["index"]);
    let no_settlements_by_channel = |tx: &WriteTransaction, _| {
        tx.open_table(SETTLEMENTS_BY_CHANNEL)?.retain(|_, ()| false)?;
        Ok(())
    };
    assert_eq!(found(no_settlements_by_channel).await, ["index"]);
    let more_under_way = |tx: &WriteTransaction, _| {
        tx.open_table(SETTLEMENTS_UNDER_WAY)?.insert(1, ())?;
        Ok(())
    };
    assert_eq!(found(more_under_way).await, ["index"]);
}

#[tokio::test]
async fn figures_count_every_call_that_is_here_and_no_answer_beyond_those_of_its_day() {
    let nothing_is_counted = |tx: &WriteTransaction, _| {
        tx.open_table(SERVICE_HOURS)?.retain(|_, _| false)?;
        Ok(())
    };
    assert_eq!(found(nothing_is_counted).await, ["index"]);
    let counted_twice = |tx: &WriteTransaction, _| {
        let purchase = payer::purchase_in(&tx.open_table(PURCHASES)?, CallId::from_bytes(ID))?.unwrap();
        crate::figures::count(&mut Group::of(tx), &EndedCall::bought(&purchase))
    };
    assert_eq!(found(counted_twice).await, ["index"]);
    let made_of_calls = move |tx: &WriteTransaction, id| {
        tx.open_table(META)?.insert(crate::figures::FIGURES_DAY, 1)?;
        counted_twice(tx, id)
    };
    assert_eq!(found(made_of_calls).await, [""; 0], "the figures of days may be younger than the calls");
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_closes_the_ledger_and_names_its_table() {
    let (ledger, id) = ledger().await;
    let garble = move |tx: &WriteTransaction| {
        tx.open_table(PAYEE_CHANNELS)?.insert(id.as_bytes(), [0xff, 1].as_slice())?;
        Ok(())
    };
    ledger.write(garble).await.unwrap();
    let error = ledger.audit(None).unwrap_err();
    assert!(error.to_string().contains("payee_channels"), "{error}");
    let rows = vec![SettlementRow { channel: id, from: Usdc::ZERO, to: PRICE }];
    let refused = ledger.open_settlement(rows, 1).await.unwrap_err();
    assert!(matches!(refused, crate::LedgerError::Closed(_)), "{refused:?}");
    assert!(ledger.closed().is_some());
}
