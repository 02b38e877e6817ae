//! The power goes at every write and sync of a workload; what was acknowledged is there afterwards.
//!
//! The workload runs once on a disk that records every operation and where each round was acknowledged. Then
//! for every point of that trace images are made of what a disk may have kept, and each is opened, audited
//! and used again: acknowledgements that were under way are made once more. `FARTHING_POWER_CUTS` sets how many
//! seeded images are made per point (default 8).

use std::sync::atomic::{AtomicUsize, Ordering};

use farthing_ledger::Ledger;

use crate::{
    disk::{Disk, Event, Survival, apply, cut},
    workload::{Kind, Step, rounds},
};

struct Recording {
    steps: Vec<Step>,
    trace: Vec<Event>,
    /// The disk when the trace begins.
    start: Vec<u8>,
    /// (length of the trace, steps acknowledged by then), ascending.
    acknowledged: Vec<(usize, usize)>,
}

async fn record() -> Recording {
    let disk = Disk::default();
    drop(Ledger::with_backend(disk.clone()).unwrap());
    let start = disk.bytes();
    disk.start_trace();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    let (mut steps, mut acknowledged) = (Vec::new(), vec![(0, 0)]);
    for round in rounds(6) {
        let runs: Vec<_> = round
            .iter()
            .cloned()
            .map(|step| {
                let ledger = ledger.clone();
                tokio::spawn(async move { step.run(&ledger).await })
            })
            .collect();
        for run in runs {
            run.await.unwrap().unwrap();
        }
        steps.extend(round);
        acknowledged.push((disk.trace_len(), steps.len()));
    }
    drop(ledger);
    Recording { steps, trace: disk.take_trace(), start, acknowledged }
}

impl Recording {
    /// Opens what is left when the power goes before the event at `point`.
    fn check(&self, point: usize, durable: &[u8], unsynced: &[Event], survival: Survival) {
        let context = || format!("power cut at {point} of {}, {survival:?}", self.trace.len());
        let disk = Disk::new(cut(durable, unsynced, survival));
        let ledger = Ledger::with_backend(disk).unwrap_or_else(|e| panic!("{}: {e:?}", context()));
        let audit = ledger.audit(None).unwrap_or_else(|e| panic!("{}: {e:?}", context()));
        assert!(audit.violations.is_empty(), "{}: {:?}", context(), audit.violations);
        let done = self.acknowledged.iter().rev().find(|(at, _)| *at <= point).unwrap().1;
        for step in &self.steps[..done] {
            assert!(step.is_in(&ledger), "{}: acknowledged and lost: {step:?}", context());
        }
        if matches!(survival, Survival::Some(_)) {
            return;
        }
        // The ledger goes on from there. An acknowledgement that went with the power is learned again, by its call's id.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for step in self.steps.iter().filter(|step| step.is_forgotten(&ledger)) {
                let next = Step::Put(u64::MAX);
                let (again, next) = tokio::join!(step.run(&ledger), next.run(&ledger));
                again.and(next).unwrap_or_else(|e| panic!("{}: {step:?} again: {e:?}", context()));
                assert!(step.is_in(&ledger), "{}: {step:?} again", context());
            }
            Step::OpenChannels(1).run(&ledger).await.unwrap();
            let next = Step::Serve { salt: 1, number: 999, prices: 100, kind: Kind::WithBody };
            next.run(&ledger).await.unwrap();
        });
        let audit = ledger.audit(None).unwrap();
        assert!(audit.violations.is_empty(), "{}, one call later: {:?}", context(), audit.violations);
    }

    /// Takes points until none is left, and checks every image of each; how many there were.
    fn check_all(&self, next_point: &AtomicUsize, seeds: u64) -> usize {
        let (mut durable, mut synced_to, mut images) = (self.start.clone(), 0, 0);
        loop {
            let point = next_point.fetch_add(1, Ordering::Relaxed);
            if point > self.trace.len() {
                return images;
            }
            // A sync that has returned makes everything before it durable.
            let last_sync = self.trace[..point].iter().rposition(|event| matches!(event, Event::Sync));
            let last_sync = last_sync.map_or(0, |at| at + 1);
            for event in &self.trace[synced_to..last_sync] {
                apply(&mut durable, event);
            }
            synced_to = last_sync;
            let unsynced = &self.trace[last_sync..point];
            let seeded = (0..seeds).map(|seed| Survival::Some(point as u64 * 1_000_003 + seed));
            for survival in [Survival::None, Survival::All].into_iter().chain(seeded) {
                self.check(point, &durable, unsynced, survival);
                images += 1;
            }
        }
    }
}

#[tokio::test]
async fn whatever_the_power_cut_leaves_the_books_are_right_and_what_was_acknowledged_is_there() {
    let seeds = std::env::var("FARTHING_POWER_CUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let recording = record().await;
    let next_point = AtomicUsize::new(0);
    let images: usize = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| recording.check_all(&next_point, seeds))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let syncs = recording.trace.iter().filter(|event| matches!(event, Event::Sync)).count();
    println!("{images} images of {} operations, {syncs} of them syncs", recording.trace.len());
    assert!(images > recording.trace.len() * 2);
}
