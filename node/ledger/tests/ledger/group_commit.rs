//! One writer, many waiters: groups, order, and nobody answered before the sync.

use farthing_ledger::{GROUP_OPERATIONS_MAX, Ledger, LedgerError, QUEUE_OPERATIONS_MAX, Recorded, Result};
use farthing_values::Usdc;
use tokio::task::JoinHandle;

use crate::{disk::Disk, world::*};

/// Waits for a condition; far longer than it takes, it fails instead of hanging.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    for _ in 0..30_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("the condition never came true");
}

/// A ledger with the channel 1 on a disk that holds up whatever is synced from here.
pub(crate) async fn held() -> (Disk, Ledger) {
    let disk = Disk::default();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    disk.hold_syncs(true);
    (disk, ledger)
}

/// Serves a call beside others, by a voucher of this total.
pub(crate) fn serve(ledger: &Ledger, cumulative: Usdc, number: u64) -> JoinHandle<Result<Recorded>> {
    let ledger = ledger.clone();
    tokio::spawn(async move { ledger.serve(served(1, cumulative, call(number))).await })
}

#[tokio::test]
async fn what_waits_while_one_commit_syncs_shares_the_next_one() {
    let (disk, ledger) = held().await;
    let before = ledger.stats();
    let first = serve(&ledger, DEPOSIT, 0);
    until(|| disk.is_waiting_to_sync()).await;
    let rest: Vec<_> = (1..=64).map(|number| serve(&ledger, DEPOSIT, number)).collect();
    until(|| ledger.stats().queued == 64).await;
    // Nobody is answered and nothing is seen before the sync.
    assert!(!first.is_finished());
    assert_eq!(ledger.served_calls(1).unwrap(), []);

    disk.hold_syncs(false);
    let mut totals = vec![first.await.unwrap().unwrap().receipt().spent_total];
    for call in rest {
        totals.push(call.await.unwrap().unwrap().receipt().spent_total);
    }
    let stats = ledger.stats();
    assert_eq!(stats.commits - before.commits, 2);
    assert_eq!((stats.group_largest, stats.operations - before.operations), (64, 65));
    // Every receipt counts its own charge once.
    totals.sort_unstable();
    let expected: Vec<_> = (1..=65).map(|count| micros(2_000 * count)).collect();
    assert_eq!(totals, expected);
}

#[tokio::test]
async fn a_group_holds_at_most_64_and_the_queue_at_most_128() {
    let (disk, ledger) = held().await;
    let first = serve(&ledger, DEPOSIT, 0);
    until(|| disk.is_waiting_to_sync()).await;
    let rest: Vec<_> = (1..=200).map(|number| serve(&ledger, DEPOSIT, number)).collect();
    until(|| ledger.stats().queued == QUEUE_OPERATIONS_MAX as u64).await;
    disk.hold_syncs(false);
    first.await.unwrap().unwrap();
    for call in rest {
        call.await.unwrap().unwrap();
    }
    assert_eq!(ledger.stats().group_largest, GROUP_OPERATIONS_MAX as u64);
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, micros(2_000 * 201));
}

#[tokio::test]
async fn a_promise_is_queued_at_once_and_durable_when_awaited() {
    let disk = Disk::default();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    disk.hold_syncs(true);
    let pending = ledger.promise(promise(1, 1, PRICE)).await.unwrap();
    until(|| disk.is_waiting_to_sync()).await;
    assert!(ledger.unresolved().unwrap().is_empty());
    disk.hold_syncs(false);
    pending.await.unwrap();
    assert_eq!(ledger.unresolved().unwrap().len(), 1);

    // Nobody waits for this one; it happens all the same, before what is queued behind it.
    drop(ledger.promise(promise(1, 2, micros(4_000))).await.unwrap());
    ledger.release(call_id(2), "not sent", NOW_SECS).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_call_id_in_parallel_is_charged_once() {
    let ledger = earning().await;
    for number in 0..20 {
        let attempts: Vec<_> = (0..32).map(|_| serve(&ledger, DEPOSIT, number)).collect();
        let mut recorded = 0;
        for attempt in attempts {
            match attempt.await.unwrap() {
                Ok(_) => recorded += 1,
                Err(error) => assert!(matches!(error, LedgerError::AlreadyServed(_)), "{error:?}"),
            }
        }
        assert_eq!(recorded, 1);
    }
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, micros(20 * 2_000));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_calls_cannot_share_the_same_headroom() {
    let ledger = earning().await;
    let attempts: Vec<_> = (0..32).map(|number| serve(&ledger, micros(10_000), number)).collect();
    let mut recorded = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            Ok(_) => recorded += 1,
            Err(error) => assert!(matches!(error, LedgerError::Overdrawn { .. }), "{error:?}"),
        }
    }
    assert_eq!(recorded, 5, "10,000 micros cover five calls of 2,000");
}

#[tokio::test]
async fn refused_operations_alone_cost_no_commit() {
    let ledger = in_memory();
    let before = ledger.stats().commits;
    ledger.serve(served(1, PRICE, call(1))).await.unwrap_err();
    ledger.release(call_id(1), "unknown", NOW_SECS).await.unwrap_err();
    assert_eq!(ledger.stats().commits, before);
}

/// Prints what this machine does; nothing depends on the figures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, farthing_ledger::OpenMode::Create).unwrap();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    let sample = served(1, DEPOSIT, call(0));
    let price = micros(10);
    for (tasks, calls) in [(1_u64, 200_u64), (64, 100)] {
        let before = ledger.stats();
        let started = std::time::Instant::now();
        let running: Vec<_> = (0..tasks)
            .map(|task| {
                let (ledger, mut sample) = (ledger.clone(), sample.clone());
                tokio::spawn(async move {
                    for number in 0..calls {
                        let number = tasks * 1_000_000 + task * calls + number;
                        sample.call = farthing_ledger::Call { price, charged: price, ..call(number) };
                        ledger.serve(sample.clone()).await.unwrap();
                    }
                })
            })
            .collect();
        for task in running {
            task.await.unwrap();
        }
        let (elapsed, stats) = (started.elapsed(), ledger.stats());
        let served = tasks * calls;
        let commits = stats.commits - before.commits;
        let per_call = elapsed / u32::try_from(served).unwrap();
        println!("{tasks} at once: {served} calls in {elapsed:.1?}, {per_call:.1?} each, {commits} commits");
        assert!(commits <= served);
    }
    println!("file: {} KiB", std::fs::metadata(&path).unwrap().len() / 1024);
}
