//! The one thread that writes: it decides, stores, answers, then teaches the index.
//!
//! 1. Jobs wait in a bounded queue; the thread takes what waits, up to a bound, into one transaction.
//! 2. It puts the listings on the listings, writes the transaction, and answers. When the storage fails, the
//!    listings is filled anew from what is stored.
//! 3. At most once a second the index learns the slots that changed. They are noted in the same transaction as
//!    the change, so a crash in between is made good at the next start; a rebuild notes all of them.
//! 4. When nothing came for a while, the index writer's memory is given back.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use farthing_protocol::{Listing, ServiceId, Verified, sync::ItemName, wire};

use crate::{
    error::{CatalogError, Result},
    index::{self, ListingWords},
    listings::{RemovedListing, Slot},
    shared::{Shared, remember_secs},
    store::{Changes, Row},
    verdict::{Reason, Source, Verdict},
};

/// Jobs waiting; each holds the listings of one frame at most.
const QUEUE_JOBS_MAX: usize = 32;
/// Listings in one transaction; more would only make those who wait wait longer.
const GROUP_LISTINGS_MAX: usize = 4_096;
/// The index is committed at most this often: a commit writes some ten files.
const INDEX_EVERY: Duration = Duration::from_secs(1);
/// After it failed, which a full disk may be the cause of.
const INDEX_RETRY: Duration = Duration::from_secs(60);
/// Slots that the index learns in one go, between two looks at the queue.
const INDEX_SLOTS_MAX: usize = 4_096;
/// After this long without work the index writer goes.
const IDLE: Duration = Duration::from_secs(10);
/// The time that a listing that left is not asked for again. Its owner keeps others from bringing it back after that.
const LEFT_SECS: u64 = 24 * 3600;

/// Something to write.
pub(crate) enum Job {
    Put {
        listings: Vec<(Verified<Listing>, ItemName)>,
        source: Source,
        now_secs: u64,
        answer: SyncSender<Vec<Verdict>>,
    },
    Operations {
        service: ServiceId,
        text: String,
        answer: SyncSender<Result<()>>,
    },
    Sweep {
        now_secs: u64,
        answer: SyncSender<Result<usize>>,
    },
    /// Answered when everything before it can be found.
    Settle {
        answer: SyncSender<Result<()>>,
    },
}

/// The sending side. Dropping it ends the thread after what is queued is stored and can be found.
#[derive(Debug)]
pub(crate) struct Queue {
    sender: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    pub(crate) fn start(shared: Arc<Shared>, unindexed: BTreeSet<Slot>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE_JOBS_MAX);
        let thread = std::thread::Builder::new().name("catalog".into()).spawn(move || {
            let mut writer = StoreWriter {
                shared,
                unindexed,
                index: None,
                indexed_at: None,
                index_every: INDEX_EVERY,
                settling: Vec::new(),
            };
            // A panic closes the queue, and callers learn that the catalog is closed.
            let _ = catch_unwind(AssertUnwindSafe(|| writer.run(&receiver)));
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Queues a job and waits for its answer. Blocks.
    pub(crate) fn ask<T>(&self, job: impl FnOnce(SyncSender<T>) -> Job) -> Result<T> {
        let (answer, answered) = sync_channel(1);
        let sender = self.sender.as_ref().ok_or(CatalogError::Closed)?;
        sender.send(job(answer)).map_err(|_| CatalogError::Closed)?;
        answered.recv().map_err(|_| CatalogError::Closed)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct StoreWriter {
    shared: Arc<Shared>,
    /// Slots the index has yet to learn.
    unindexed: BTreeSet<Slot>,
    index: Option<index::SearchWriter>,
    indexed_at: Option<Instant>,
    index_every: Duration,
    settling: Vec<SyncSender<Result<()>>>,
}

/// An answer that waits for the transaction.
type Answer = Box<dyn FnOnce(&Result<()>)>;

impl StoreWriter {
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(self.patience()) {
                Ok(job) => self.write(job, jobs),
                Err(RecvTimeoutError::Timeout) if self.unindexed.is_empty() => {
                    self.rest();
                    // Memory may have what was not stored, and no job may come that would notice.
                    if self.shared.store.is_closed() {
                        self.shared.reload();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !self.unindexed.is_empty() && self.patience().is_zero() {
                self.teach();
            }
            if self.unindexed.is_empty() {
                self.settled(&Ok(()));
            }
        }
        // What is left is noted in the store, and the next start learns it; a clean end leaves little.
        if self.unindexed.len() <= INDEX_SLOTS_MAX && !self.unindexed.is_empty() {
            self.teach();
        }
        self.rest();
        let owners = self.shared.listings.write().owners.take_unstored();
        if let Err(error) = self.shared.store.apply(&Changes { owners, ..Changes::default() }) {
            tracing::warn!(cause = ?error, "the owners seen since the last sweep could not be stored");
        }
    }

    /// Returns how long to wait for a job before there is something else to do.
    fn patience(&self) -> Duration {
        let since = self.indexed_at.map(|at| at.elapsed());
        match since {
            _ if self.unindexed.is_empty() => IDLE,
            _ if !self.settling.is_empty() => Duration::ZERO,
            Some(since) => self.index_every.saturating_sub(since),
            None => Duration::ZERO,
        }
    }

    fn write(&mut self, first: Job, jobs: &Receiver<Job>) {
        let mut changes = Changes::default();
        let mut answers: Vec<Answer> = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next {
            self.apply(job, &mut changes, &mut answers);
            next = if changes.put.len() < GROUP_LISTINGS_MAX { jobs.try_recv().ok() } else { None };
        }
        let stored = self.shared.store.apply(&changes);
        match &stored {
            Ok(()) => {
                self.unindexed.append(&mut changes.unindexed);
                self.shared.taken.fetch_add(changes.put.len() as u64, Ordering::Relaxed);
                // Nobody may be listening.
                changes.put.iter().for_each(|(service, _)| drop(self.shared.changes.send(*service)));
            }
            Err(error) => {
                tracing::error!(cause = ?error, "the catalog could not store new listings; it is unchanged");
                self.shared.reload();
            }
        }
        answers.into_iter().for_each(|answer| answer(&stored));
    }

    fn apply(&mut self, job: Job, changes: &mut Changes, answers: &mut Vec<Answer>) {
        match job {
            Job::Put { listings, source, now_secs, answer } => {
                let verdicts: Vec<Verdict> = listings
                    .into_iter()
                    .map(|(listing, item)| self.put(&listing, item, source, now_secs, changes))
                    .collect();
                answers.push(Box::new(move |stored| {
                    let failed = |verdict| match verdict {
                        Verdict::Stored if stored.is_err() => Verdict::Refused(Reason::Storage),
                        verdict => verdict,
                    };
                    // Whoever asked may have given up; what is stored is stored.
                    let _ = answer.send(verdicts.into_iter().map(failed).collect());
                }));
            }
            Job::Operations { service, text, answer } => {
                if let Some((slot, _)) = self.shared.listings.read().find(service) {
                    changes.unindexed.insert(slot);
                    changes.operations.push((service, text));
                }
                answers.push(Box::new(move |stored| drop(answer.send(stored.clone()))));
            }
            Job::Sweep { now_secs, answer } => {
                let mut listings = self.shared.listings.write();
                let left = listings.sweep(now_secs);
                changes.forgotten.extend(listings.owners.forget(now_secs));
                changes.owners.extend(listings.owners.take_unstored());
                drop(listings);
                let count = left.len();
                self.leave(left, now_secs + LEFT_SECS, changes);
                answers.push(Box::new(move |stored| drop(answer.send(stored.clone().map(|()| count)))));
            }
            Job::Settle { answer } => self.settling.push(answer),
        }
    }

    fn put(
        &self,
        listing: &Verified<Listing>,
        item: ItemName,
        source: Source,
        now_secs: u64,
        changes: &mut Changes,
    ) -> Verdict {
        let mut listings = self.shared.listings.write();
        if listings.find_item(&item).is_some() {
            return Verdict::Known;
        }
        let placed = match listings.put(listing, item, source, now_secs) {
            Ok(placed) => placed,
            Err(reason) => {
                drop(listings);
                self.shared.remember(item, &reason, now_secs);
                return Verdict::Refused(reason);
            }
        };
        drop(listings);
        let row = Row::new(listing.to_signed(), placed.slot, placed.came);
        // There may be room again sooner than their owners are forgotten.
        self.leave(placed.left, now_secs + remember_secs(&Reason::Full), changes);
        changes.put.push((listing.service, wire::encode(&row)));
        changes.unindexed.insert(placed.slot);
        if let Some(replaced) = placed.replaced {
            self.shared.gate.lock().refused.add(replaced, now_secs + remember_secs(&Reason::Superseded));
        }
        Verdict::Stored
    }

    fn leave(&self, left: Vec<RemovedListing>, until_secs: u64, changes: &mut Changes) {
        let mut gate = self.shared.gate.lock();
        for left in left {
            // It may have come in this very transaction.
            changes.put.retain(|(service, _)| *service != left.service);
            changes.remove.push(left.service);
            changes.unindexed.insert(left.slot);
            gate.refused.add(left.item, until_secs);
        }
    }

    /// Teaches the index some of what changed.
    fn teach(&mut self) {
        let slots: BTreeSet<Slot> = self.unindexed.iter().copied().take(INDEX_SLOTS_MAX).collect();
        let taught = self.try_teach(&slots);
        self.indexed_at = Some(Instant::now());
        self.shared.is_index_behind.store(taught.is_err(), Ordering::Relaxed);
        match taught {
            Ok(()) => {
                self.index_every = INDEX_EVERY;
                self.unindexed.retain(|slot| !slots.contains(slot));
            }
            Err(error) => {
                tracing::error!(cause = ?error, "the search index is behind; trying again in a minute");
                // It may be the storage that failed, and no job may come that would notice.
                if matches!(error, CatalogError::Storage(_)) {
                    self.shared.reload();
                }
                self.index = None;
                self.index_every = INDEX_RETRY;
                self.settled(&Err(error));
            }
        }
    }

    fn try_teach(&mut self, slots: &BTreeSet<Slot>) -> Result<()> {
        let index = match &mut self.index {
            Some(index) => index,
            none => none.insert(self.shared.index.writer()?),
        };
        let occupied: Vec<(Slot, ServiceId)> = {
            let listings = self.shared.listings.read();
            let listed =
                |&slot: &Slot| listings.get(slot).filter(|e| !e.tombstone).map(|e| (slot, e.service));
            slots.iter().filter_map(listed).collect()
        };
        let services: Vec<ServiceId> = occupied.iter().map(|(_, service)| *service).collect();
        let rows = self.shared.store.rows(&services)?;
        let operations = self.shared.store.operations(&services)?;
        slots.iter().for_each(|&slot| index.remove(slot));
        for (((slot, _), row), operations) in occupied.into_iter().zip(rows).zip(operations) {
            let Some(listing) = row.and_then(|row| row.signed.claimed().ok()) else { continue };
            let text = format!("{}\n{}\n{}", listing.summary, listing.category, listing.tags.join("\n"));
            index.add(&ListingWords { slot, name: &listing.name, text, operations: &operations })?;
        }
        index.commit()?;
        self.shared.index.reload()?;
        self.shared.store.indexed(slots)
    }

    fn settled(&mut self, outcome: &Result<()>) {
        self.settling.drain(..).for_each(|answer| drop(answer.send(outcome.clone())));
    }

    /// Gives the index writer's memory and threads back.
    fn rest(&mut self) {
        if let Some(index) = self.index.take()
            && let Err(error) = index.close()
        {
            tracing::warn!(cause = ?error, "the search index did not finish its clean-up");
        }
    }
}
