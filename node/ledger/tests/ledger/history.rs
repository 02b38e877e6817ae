//! The history: read backwards in steps, and added up by day.

use farthing_ledger::{
    AcceptedCall, Call, DayFigures, Ledger, OpenMode, Position, Promise, Retention, Served, Standing,
    Stretch, Transaction, Window, day_of,
};
use farthing_values::{Method, Outcome, Usdc};
use redb::{Database, TableDefinition};

use crate::world::*;

fn window(before: Position, limit: usize, scan_max: usize) -> Window {
    Window { before, from_secs: 0, limit, scan_max }
}

/// Reads to the end in steps; how many steps it took.
fn all<T>(mut read: impl FnMut(Position) -> Stretch<T>) -> (Vec<T>, usize) {
    let (mut rows, mut steps, mut before) = (Vec::new(), 0, Position::start_of(u64::MAX));
    loop {
        let stretch = read(before);
        steps += 1;
        rows.extend(stretch.rows.into_iter().map(|(_, row)| row));
        match stretch.next {
            Some(next) => before = next,
            None => return (rows, steps),
        }
    }
}

async fn with_calls(count: u64) -> Ledger {
    let ledger = earning().await;
    for number in 1..=count {
        // Three in each second, so that a step may end within one.
        let call = Call { time_secs: NOW_SECS + number / 3, ..call(number) };
        ledger.serve(served(1, micros(number * PRICE.micros()), call)).await.unwrap();
    }
    ledger
}

#[tokio::test]
async fn steps_of_any_size_show_every_call_once_and_the_newest_first() {
    let ledger = with_calls(25).await;
    let newest: Vec<_> = ledger.served_calls(100).unwrap().iter().map(|row| row.call.call_id).collect();
    assert_eq!(newest.len(), 25);
    for (limit, scan_max) in [(1, 100), (2, 100), (7, 100), (25, 100), (26, 100), (100, 1), (100, 4), (3, 2)]
    {
        let (rows, _) = all(|before| ledger.calls_in(&window(before, limit, scan_max), |_| true).unwrap());
        let ids: Vec<_> = rows.iter().map(|row| row.call.call_id).collect();
        assert_eq!(ids, newest, "limit {limit}, looking at {scan_max}");
    }
}

#[tokio::test]
async fn a_search_looks_at_so_many_rows_a_step_and_still_finds_everything() {
    let ledger = with_calls(25).await;
    let is_wanted = |number: u64| number == 2 || number == 24;
    let wanted =
        |row: &farthing_ledger::CallRow| (1..=25).any(|n| is_wanted(n) && row.call.call_id == call_id(n));
    let (rows, steps) = all(|before| ledger.calls_in(&window(before, 10, 5), wanted).unwrap());
    assert_eq!((rows.len(), steps), (2, 5));
    let earliest = Window { from_secs: NOW_SECS + 3, ..window(Position::start_of(NOW_SECS + 5), 100, 100) };
    let between = ledger.calls_in(&earliest, |_| true).unwrap();
    assert!(between.next.is_none());
    assert!(between.rows.iter().all(|(at, row)| at.secs == row.call.time_secs));
    let secs: Vec<u64> = between.rows.iter().map(|(at, _)| at.secs - NOW_SECS).collect();
    assert_eq!(secs, [4, 4, 4, 3, 3, 3], "the first second is in, the last is not");
    let nothing = Window { from_secs: NOW_SECS + 5, ..window(Position::start_of(NOW_SECS + 5), 100, 100) };
    assert!(ledger.calls_in(&nothing, |_| true).unwrap().rows.is_empty());
}

#[tokio::test]
async fn a_day_is_the_sum_of_its_answered_calls_of_both_halves() {
    let ledger = earning().await;
    ledger.put_payer_channel(payer_channel(2)).await.unwrap();
    // A failure that is tried again under its id counts when it is answered.
    ledger.serve(served(1, micros(2_000), failed_call(1))).await.unwrap();
    ledger.serve(served(1, micros(2_000), call(1))).await.unwrap();
    ledger.serve(served(1, micros(4_000), call(2))).await.unwrap();
    let tomorrow = Call { time_secs: NOW_SECS + 86_400, ..call(3) };
    ledger.serve(served(1, micros(6_000), tomorrow)).await.unwrap();
    for (number, charged, outcome) in [
        (1, PRICE, Outcome::Answered),
        (2, Usdc::ZERO, Outcome::Declined),
        (3, Usdc::ZERO, Outcome::TimedOut),
    ] {
        let promise = promise(2, number, micros(number * PRICE.micros()));
        ledger.promise(promise.clone()).await.unwrap().await.unwrap();
        let acknowledgement = acknowledgement(receipt(&promise, charged, outcome));
        ledger.acknowledge(call_id(number), acknowledgement.clone()).await.unwrap();
        ledger.acknowledge(call_id(number), acknowledgement).await.unwrap();
    }
    let today = day_of(NOW_SECS);
    let figures = |bought, spent, served, earned| DayFigures {
        bought,
        spent: micros(spent),
        served,
        earned: micros(earned),
    };
    let days = ledger.day_figures(today - 1, today + 1).unwrap();
    assert_eq!(days, [(today, figures(2, 2_000, 2, 4_000)), (today + 1, figures(0, 0, 1, 2_000))]);
    assert_eq!(ledger.day_figures(today + 1, today + 9).unwrap().len(), 1);
    let (bought, _) = all(|before| ledger.purchases_in(&window(before, 2, 100), |_| true).unwrap());
    assert_eq!(bought.len(), 3);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn whoever_catches_up_reads_what_was_asked_for_before() {
    let ledger = in_memory();
    ledger.put_payer_channel(payer_channel(2)).await.unwrap();
    let promise = promise(2, 1, PRICE);
    ledger.promise(promise.clone()).await.unwrap().await.unwrap();
    let acknowledgement = acknowledgement(receipt(&promise, PRICE, Outcome::Answered));
    let mut storing = Box::pin(ledger.acknowledge(call_id(1), acknowledgement));
    tokio::select! {
        biased;
        stored = &mut storing => panic!("it waits for a commit of others: {stored:?}"),
        () = std::future::ready(()) => {}
    }
    ledger.catch_up().await;
    let before = Position::start_of(u64::MAX);
    assert_eq!(ledger.purchases_in(&window(before, 2, 100), |_| true).unwrap().rows.len(), 1);
    let commits = ledger.stats().commits;
    ledger.catch_up().await;
    assert_eq!(ledger.stats().commits, commits, "nothing was left to store");
}

#[tokio::test]
async fn a_transaction_is_noted_once_and_kept_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let transaction = |number: u8| Transaction {
        hash: [number; 32],
        block: u64::from(number),
        time_secs: NOW_SECS + u64::from(number),
        purpose: "deposit".into(),
        channel: Some(channel(1)),
        peer: Some(world().payee.address()),
        amount: PRICE,
        wei: [0; 16],
        fee_wei: 7_u128.to_be_bytes(),
        standing: None,
        chain_id: Some(u64::from(number)),
    };
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    for number in [1, 2, 1, 3] {
        // Noted again after a crash: a little later.
        let again = Transaction { time_secs: NOW_SECS + 9, ..transaction(1) };
        ledger.note_transaction(transaction(number), None).await.unwrap();
        ledger.note_transaction(again, None).await.unwrap();
    }
    drop(ledger);
    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    let (rows, _) = all(|before| ledger.transactions_in(&window(before, 2, 100), |_| true).unwrap());
    assert_eq!(rows, [transaction(3), transaction(2), transaction(1)]);
    let corrected = Transaction { standing: Some(Standing::Nowhere), ..transaction(2) };
    ledger.correct_transaction(corrected.clone()).await.unwrap();
    let (rows, _) = all(|before| ledger.transactions_in(&window(before, 2, 100), |_| true).unwrap());
    assert_eq!(rows, [transaction(3), corrected, transaction(1)]);
}

#[test]
fn a_transaction_of_a_ledger_of_before_names_no_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    drop(Ledger::open(&path, OpenMode::Create).unwrap());
    let mut row = Vec::new();
    let mut members = minicbor::Encoder::new(&mut row);
    members.map(8).unwrap().u8(0).unwrap().bytes(&[9; 32]).unwrap();
    members.u8(1).unwrap().u64(7).unwrap().u8(2).unwrap().u64(NOW_SECS).unwrap();
    members.u8(3).unwrap().str("transfer").unwrap().u8(6).unwrap().u64(PRICE.micros()).unwrap();
    members.u8(7).unwrap().bytes(&[0; 16]).unwrap().u8(8).unwrap().bytes(&[1; 16]).unwrap();
    // It stays.
    members.u8(9).unwrap().u8(0).unwrap();
    let mut key = [9; 40];
    key[..8].copy_from_slice(&NOW_SECS.to_be_bytes());
    let database = Database::open(&path).unwrap();
    let tx = database.begin_write().unwrap();
    let table = TableDefinition::<&[u8; 40], &[u8]>::new("transactions");
    tx.open_table(table).unwrap().insert(&key, row.as_slice()).unwrap();
    tx.commit().unwrap();
    drop(database);

    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    let (rows, _) = all(|before| ledger.transactions_in(&window(before, 2, 100), |_| true).unwrap());
    let expected = Transaction {
        hash: [9; 32],
        block: 7,
        time_secs: NOW_SECS,
        purpose: "transfer".into(),
        channel: None,
        peer: None,
        amount: PRICE,
        wei: [0; 16],
        fee_wei: [1; 16],
        standing: Some(Standing::Stays),
        chain_id: None,
    };
    assert_eq!(rows, [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_cost_nothing_are_kept_by_number_and_others_beside_however_many_of_them() {
    const KEPT: u64 = 50_000;
    let ledger = earning().await;
    ledger.serve(served(1, PRICE, call(0))).await.unwrap();
    let effect = Call { method: Method::Post, ..failed_call(1) };
    ledger.accept(AcceptedCall { method: Method::Post, ..accepted(1) }).await.unwrap();
    ledger.serve(served(1, PRICE, effect)).await.unwrap();
    // The first that cost nothing, and is charged the second time.
    let again = KEPT + 20;
    ledger.serve(served(1, PRICE, Call { time_secs: NOW_SECS, ..failed_call(again) })).await.unwrap();
    ledger.serve(served(1, micros(2 * PRICE.micros()), call(again))).await.unwrap();
    let numbers: Vec<u64> = (2..KEPT + 12).collect();
    let Served { payer, channel, voucher, .. } = served(1, PRICE, call(0));
    for some in numbers.chunks(1_000) {
        let mut calls = tokio::task::JoinSet::new();
        for number in some {
            let served = Served { payer, channel, voucher: voucher.clone(), call: failed_call(*number) };
            let ledger = ledger.clone();
            calls.spawn(async move { ledger.serve(served).await.unwrap() });
        }
        calls.join_all().await;
    }
    let is_kept = |number| ledger.served(world().payer.address(), call_id(number)).unwrap().is_some();
    assert!(is_kept(0) && is_kept(1), "what was charged, and what may have had an effect");
    assert!(is_kept(again), "what was charged in the end");
    assert_eq!((2..20).map(is_kept).filter(|kept| !kept).count(), 10, "the oldest went");
    assert!(is_kept(KEPT + 11));
    assert_eq!(ledger.served_calls(usize::MAX).unwrap().len() as u64, KEPT + 3);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_with_effects_that_cost_nothing_are_kept_by_number_too() {
    const KEPT: u64 = 20_000;
    let ledger = earning().await;
    ledger.serve(served(1, PRICE, call(0))).await.unwrap();
    let Served { payer, channel, voucher, .. } = served(1, PRICE, call(0));
    let numbers: Vec<u64> = (1..KEPT + 11).collect();
    for some in numbers.chunks(1_000) {
        let mut calls = tokio::task::JoinSet::new();
        for &number in some {
            let call = Call { method: Method::Post, ..failed_call(number) };
            let served = Served { payer, channel, voucher: voucher.clone(), call };
            let ledger = ledger.clone();
            calls.spawn(async move {
                ledger.accept(AcceptedCall { method: Method::Post, ..accepted(number) }).await.unwrap();
                ledger.serve(served).await.unwrap()
            });
        }
        calls.join_all().await;
    }
    let is_kept = |number| ledger.served(payer, call_id(number)).unwrap().is_some();
    assert!(is_kept(0), "what was charged");
    assert!(!is_kept(1) && is_kept(KEPT + 10), "the oldest went");
    assert_eq!(ledger.served_calls(usize::MAX).unwrap().len() as u64, KEPT + 1);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn purchases_that_cost_nothing_are_kept_by_number_and_paid_ones_beside_however_many_of_them() {
    const KEPT: u64 = 50_000;
    let ledger = paying().await;
    let buy = async |number: u64, charged: Usdc| {
        let promise = promise(1, number, PRICE);
        let receipt = receipt(&promise, charged, Outcome::Answered);
        ledger.promise(promise).await.unwrap().await.unwrap();
        ledger.acknowledge(call_id(number), acknowledgement(receipt)).await.unwrap();
    };
    buy(0, PRICE).await;
    // Refused, promised again, and charged.
    ledger.promise(promise(1, KEPT + 20, micros(2 * PRICE.micros()))).await.unwrap().await.unwrap();
    ledger.release(call_id(KEPT + 20), "refused", NOW_SECS).await.unwrap();
    let again = Promise { time_secs: NOW_SECS + 3, ..promise(1, KEPT + 20, micros(2 * PRICE.micros())) };
    ledger.promise(again.clone()).await.unwrap().await.unwrap();
    let charged = acknowledgement(receipt(&again, PRICE, Outcome::Answered));
    ledger.acknowledge(call_id(KEPT + 20), charged).await.unwrap();
    // Released in doubt, and charged after all.
    let doubted = promise(1, 1, micros(3 * PRICE.micros()));
    ledger.promise(doubted.clone()).await.unwrap().await.unwrap();
    ledger.release_in_doubt(call_id(1), "never served", NOW_SECS).await.unwrap();
    let late = acknowledgement(receipt(&doubted, PRICE, Outcome::Answered));
    ledger.acknowledge(call_id(1), late).await.unwrap();
    let numbers: Vec<u64> = (2..KEPT + 12).collect();
    for some in numbers.chunks(1_000) {
        let mut calls = tokio::task::JoinSet::new();
        for &number in some {
            let ledger = ledger.clone();
            calls.spawn(async move {
                ledger.promise(promise(1, number, PRICE)).await.unwrap().await.unwrap();
                ledger.release(call_id(number), "refused", NOW_SECS).await.unwrap();
            });
        }
        calls.join_all().await;
    }
    let is_kept = |number| ledger.purchase(call_id(number)).unwrap().is_some();
    assert!(is_kept(0) && is_kept(1) && is_kept(KEPT + 20), "what was charged");
    assert_eq!(ledger.purchases(usize::MAX).unwrap().len() as u64, KEPT + 3);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
    // Nothing names what is gone.
    let keep = Retention { rows_kept_secs: 0, ..Retention::default() };
    let pruned = ledger.prune(keep, NOW_SECS + 30 * 86_400).await.unwrap();
    assert_eq!(pruned.purchases, KEPT + 3);
}
