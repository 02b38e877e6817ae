//! A disk that refuses a write closes the ledger: nothing is acknowledged, nothing is lost, reading goes on.

use farthing_ledger::{Ledger, LedgerError, OpenError};

use crate::{
    disk::Disk,
    group_commit::{held, serve, until},
    workload::{Step, contents, rounds},
    world::*,
};

/// Runs the workload step by step until one fails; the steps done before, and what the ledger then held.
async fn run_until_failure(ledger: &Ledger, steps: &[Step]) -> (usize, String) {
    let mut before = contents(ledger);
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = step.run(ledger).await {
            assert!(matches!(error, LedgerError::Closed(_)), "{error:?}");
            return (done, before);
        }
        before = contents(ledger);
    }
    (steps.len(), before)
}

#[tokio::test]
async fn wherever_the_disk_fills_up_the_ledger_closes_and_still_reads_what_it_acknowledged() {
    let empty = Disk::default();
    drop(Ledger::with_backend(empty.clone()).unwrap());
    let steps: Vec<_> =
        rounds(2).into_iter().flatten().filter(|s| !matches!(s, Step::OpenChannels(_))).collect();
    let mut fails_at = 0;
    loop {
        let disk = Disk::new(empty.bytes());
        let ledger = Ledger::with_backend(disk.clone()).unwrap();
        Step::OpenChannels(1).run(&ledger).await.unwrap();
        Step::OpenChannels(2).run(&ledger).await.unwrap();
        disk.fail_after(fails_at);
        let (done, before) = run_until_failure(&ledger, &steps).await;
        if done == steps.len() {
            break;
        }
        assert!(ledger.closed().is_some());
        assert_eq!(contents(&ledger), before, "failing at {fails_at}: a failed step shows");
        assert!(ledger.audit(None).unwrap().violations.is_empty());
        // It takes nothing more, and leaves the file alone.
        let (operations, bytes) = (disk.operations(), disk.bytes());
        assert!(matches!(steps[done].run(&ledger).await, Err(LedgerError::Closed(_))));
        drop(ledger);
        assert_eq!((disk.operations(), disk.bytes() == bytes), (operations, true));

        let ledger = Ledger::with_backend(Disk::new(bytes)).unwrap();
        assert!(ledger.audit(None).unwrap().violations.is_empty(), "failing at {fails_at}");
        for step in &steps[..done] {
            assert!(step.is_in(&ledger), "failing at {fails_at}: {step:?} was acknowledged and is lost");
        }
        fails_at += 1;
    }
    println!("{fails_at} operations failed, one at a time");
    assert!(fails_at > 100);
}

#[tokio::test]
async fn a_failed_commit_fails_everyone_in_its_group_and_everyone_behind_it() {
    let (disk, ledger) = held().await;
    let mut calls: Vec<_> = (0..100).map(|number| serve(&ledger, DEPOSIT, number)).collect();
    until(|| disk.is_waiting_to_sync() && ledger.stats().queued >= 36).await;
    disk.fail_after(0);
    disk.hold_syncs(false);
    for call in calls.drain(..) {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, LedgerError::Closed(_)), "{error:?}");
        assert!(error.to_string().contains("free disk space"), "{error}");
    }
    assert_eq!(ledger.payee_channels().unwrap()[0].spent, micros(0));
    let refused = ledger.promise(promise(1, 1, PRICE)).await;
    assert!(matches!(refused, Err(LedgerError::Closed(_))));
}

#[test]
fn a_disk_that_fails_while_opening_is_an_error_and_not_an_empty_ledger() {
    let mut fails_at = 0;
    loop {
        let disk = Disk::default();
        disk.fail_after(fails_at);
        match Ledger::with_backend(disk) {
            Err(OpenError::Storage(_)) => fails_at += 1,
            Err(other) => panic!("failing at {fails_at}: {other:?}"),
            Ok(ledger) => break assert!(ledger.audit(None).unwrap().violations.is_empty()),
        }
    }
    assert!(fails_at > 5);
}

#[tokio::test]
async fn a_full_disk_keeps_no_ledger_from_being_read_after_a_crash() {
    let disk = Disk::default();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    let crashed = disk.bytes();
    let mut closed = 0;
    for fails_at in 0.. {
        let disk = Disk::new(crashed.clone());
        disk.fail_after(fails_at);
        match Ledger::with_backend(disk) {
            // The file itself could not be opened for writing.
            Err(error) => assert!(closed == 0, "failing at {fails_at}: {error:?}"),
            Ok(ledger) if ledger.closed().is_some() => {
                assert_eq!(ledger.payer_channels().unwrap().len(), 1);
                closed += 1;
            }
            Ok(ledger) => {
                assert!(ledger.payer_channels().unwrap()[0].may_lack_calls);
                break;
            }
        }
    }
    assert!(closed > 0, "the channels are marked in a commit of their own");
}
