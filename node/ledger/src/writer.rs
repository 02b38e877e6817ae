//! The one thread that writes: it groups what waits, commits, then answers every waiter.
//!
//! 1. [`Queue::enqueue`] puts an operation into a bounded queue; a full queue makes the caller wait.
//! 2. The thread takes everything waiting, up to [`GROUP_OPERATIONS_MAX`], into one transaction. While it
//!    commits, the next group gathers by itself. While many calls are under way ([`Queue::under_way`]) a commit waits
//!    2 ms at most for a few operations more; a lone operation waits for nothing.
//! 3. What can be learned again after a crash begins no commit: [`Queue::ride`] leaves it to the next one, and to
//!    one of its own after 20 ms.
//! 4. After the commit it publishes a new snapshot for readers and answers every waiter of the group.
//!
//! Invariant O3 rests here: no waiter is answered, and no reader sees anything, before the commit that holds
//! it is durable. An operation that refuses has written nothing; the others of its group go on. A failure of
//! storage fails the whole group and everything after it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use parking_lot::{Mutex, MutexGuard, RwLock};
use redb::{Database, Durability, ReadTransaction, ReadableDatabase, WriteTransaction};
use tokio::sync::oneshot;

use crate::{
    backend::Failure,
    error::{Closed, LedgerError, Result},
    group::Group,
    latest::LatestFigures,
};

mod note;
mod snapshot;
mod waiting;

pub(crate) use snapshot::Snapshot;
pub use waiting::UnderWay;
use waiting::{Waiting, writer_ended};

/// Operations in one commit, and as many again that ride with it. A commit costs two syncs whatever it holds; at 64
/// the syncs are a small part, and a failed commit fails no more calls than an owner has in flight.
pub const GROUP_OPERATIONS_MAX: usize = 64;
/// Operations waiting for the next commit: one group in hand and one behind it. More would only add waiting,
/// and each may hold a kept body.
pub const QUEUE_OPERATIONS_MAX: usize = 128;

/// The database, the snapshot and the figures that readers see, and whether writing has failed.
#[derive(Debug)]
pub(crate) struct Store {
    snapshot: RwLock<Arc<Snapshot>>,
    latest: Mutex<LatestFigures>,
    closed: OnceLock<Closed>,
    note: note::Note,
    failure: Failure,
    counters: Counters,
    // Dropped after the snapshot that reads from it.
    database: Database,
}

#[derive(Debug, Default)]
struct Counters {
    commits: AtomicU64,
    operations: AtomicU64,
    group_largest: AtomicU64,
}

/// Counts of the writer's work since the ledger was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Durable commits.
    pub commits: u64,
    /// Operations answered, refused ones included.
    pub operations: u64,
    /// Most operations in one commit.
    pub group_largest: u64,
    /// Operations waiting now.
    pub queued: u64,
}

impl Store {
    pub(crate) fn new(database: Database, failure: Failure) -> Result<Self, redb::Error> {
        let snapshot = RwLock::new(Arc::new(Snapshot::of(database.begin_read()?)));
        let (latest, closed, note, counters) = Default::default();
        Ok(Self { snapshot, latest, closed, note, failure, counters, database })
    }

    /// Reads from what was last committed.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T>) -> Result<T> {
        read(&self.snapshot().transaction)
    }

    /// Returns what was committed last.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    /// Returns the figures that follow the commits.
    pub(crate) fn latest(&self) -> MutexGuard<'_, LatestFigures> {
        self.latest.lock()
    }

    pub(crate) fn closed(&self) -> Option<Closed> {
        self.closed.get().cloned()
    }

    fn close(&self, error: LedgerError) -> Closed {
        let closed = match error {
            LedgerError::Closed(closed) => closed,
            other => Closed { cause: Arc::new(other) },
        };
        tracing::error!(cause = ?closed.cause, "{closed}");
        self.closed.get_or_init(|| closed).clone()
    }

    /// Commits a group, and answers every waiter.
    fn serve(&self, mut group: Vec<Box<dyn Job>>) {
        let committed = match self.closed() {
            Some(closed) => Err(closed),
            None => self.commit(&mut group).map_err(|error| self.close(error)),
        };
        for job in group {
            job.answer(committed.clone());
        }
    }

    fn commit(&self, group: &mut [Box<dyn Job>]) -> Result<()> {
        let transaction = begin_durable(&self.database)?;
        let mut shared = Group::of(&transaction);
        let wrote = apply(group, &mut shared)?;
        // The tables that they share are closed before the commit.
        let changes = shared.into_changes();
        if wrote {
            transaction.commit()?;
            self.check_storage()?;
            self.publish()?;
            self.latest().follow(&changes);
            self.counters.commits.fetch_add(1, Relaxed);
        } else {
            // Every operation refused: there is nothing to make durable.
            transaction.abort()?;
        }
        self.counters.operations.fetch_add(group.len() as u64, Relaxed);
        self.counters.group_largest.fetch_max(group.len() as u64, Relaxed);
        Ok(())
    }

    fn check_storage(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(cause) => Err(Closed { cause }.into()),
        }
    }

    fn publish(&self) -> Result<()> {
        let fresh = Arc::new(Snapshot::of(self.database.begin_read()?));
        *self.snapshot.write() = fresh;
        Ok(())
    }
}

/// Runs the operations of a group; whether one of them wrote.
fn apply(jobs: &mut [Box<dyn Job>], group: &mut Group<'_>) -> Result<bool> {
    let mut wrote = false;
    for job in jobs {
        wrote |= job.apply(group)?;
    }
    Ok(wrote)
}

/// A transaction that is durable when its commit returns.
///
/// Two phases: data and the inactive commit slot are synced before the byte that activates them, so what the
/// slot points to is whole without trusting a checksum over strangers' bytes.
pub(crate) fn begin_durable(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

/// An operation on its way through the writer.
trait Job: Send {
    /// Runs inside the group's transaction; whether it wrote. An error is a failure of storage.
    fn apply(&mut self, group: &mut Group<'_>) -> Result<bool>;
    /// Tells the waiter, after the commit.
    fn answer(self: Box<Self>, committed: Result<(), Closed>);
}

impl std::fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

struct Operation<T, F> {
    run: Option<F>,
    result: Option<Result<T>>,
    waiter: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Operation<T, F>
where
    T: Send,
    F: FnOnce(&mut Group<'_>) -> Result<T> + Send,
{
    fn apply(&mut self, group: &mut Group<'_>) -> Result<bool> {
        let Some(run) = self.run.take() else { return Ok(false) };
        match run(group) {
            Err(failure) if failure.is_failure() => Err(failure),
            result => {
                let wrote = result.is_ok();
                self.result = Some(result);
                Ok(wrote)
            }
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), Closed>) {
        let result = match (committed, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => return,
            (Err(closed), _) => Err(closed.into()),
        };
        // The waiter may have given up; the operation stands all the same.
        let _ = self.waiter.send(result);
    }
}

/// The sending side of the writer. Dropping it ends the thread after what is queued is stored.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Arc<Waiting>,
    /// None where whoever asks for a commit makes it.
    thread: Option<JoinHandle<()>>,
    store: Arc<Store>,
}

impl Queue {
    pub(crate) fn start(store: Arc<Store>) -> std::io::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let thread = std::thread::Builder::new().name("ledger".into()).spawn({
            let (store, waiting) = (Arc::clone(&store), Arc::clone(&waiting));
            move || {
                // A panic must not leave callers to find out one by one; its message is already printed.
                if catch_unwind(AssertUnwindSafe(|| serve_queue(&waiting, &store))).is_err() {
                    store.close(writer_ended());
                    waiting.refuse_all();
                    while let Some(group) = waiting.next_group() {
                        store.serve(group);
                    }
                }
            }
        })?;
        Ok(Self { waiting, thread: Some(thread), store })
    }

    /// Without a thread: each operation is committed by itself, by whoever asks for it, before it is queued.
    pub(crate) fn without_thread(store: Arc<Store>) -> Self {
        Self { waiting: Arc::new(Waiting::default()), thread: None, store }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Queues an operation, waiting for room. From then on it happens whether or not anyone waits for it.
    pub(crate) async fn enqueue<T, F>(&self, run: F) -> Result<Pending<T>>
    where
        T: Send + 'static,
        F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    {
        let (job, pending) = self.operation(run)?;
        self.begin(job).await?;
        Ok(pending)
    }

    /// Stores an operation with the next commit, or with one of its own after 20 ms.
    pub(crate) async fn ride<T, F>(&self, run: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    {
        let (job, pending) = self.operation(run)?;
        let job = if self.thread.is_some() { self.waiting.ride(job)? } else { Some(job) };
        if let Some(job) = job {
            self.begin(job).await?;
        }
        pending.await
    }

    async fn begin(&self, job: Box<dyn Job>) -> Result<()> {
        if self.thread.is_some() {
            return self.waiting.begin(job).await;
        }
        self.store.serve(vec![job]);
        Ok(())
    }

    fn operation<T, F>(&self, run: F) -> Result<(Box<dyn Job>, Pending<T>)>
    where
        T: Send + 'static,
        F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    {
        if let Some(closed) = self.store.closed() {
            return Err(closed.into());
        }
        let (waiter, answer) = oneshot::channel();
        Ok((Box::new(Operation { run: Some(run), result: None, waiter }), Pending(answer)))
    }

    /// See [`crate::Ledger::under_way`].
    pub(crate) fn under_way(&self) -> UnderWay {
        self.waiting.count()
    }

    pub(crate) fn stats(&self) -> Stats {
        let counters = &self.store.counters;
        Stats {
            commits: counters.commits.load(Relaxed),
            operations: counters.operations.load(Relaxed),
            group_largest: counters.group_largest.load(Relaxed),
            queued: self.waiting.queued() as u64,
        }
    }
}

impl Drop for Queue {
    /// Waits for what is queued, so that the file is whole and unlocked when the last handle is gone.
    fn drop(&mut self) {
        self.waiting.end();
        if let Some(thread) = self.thread.take() {
            // Its panics are caught and noted where it runs.
            let _ = thread.join();
        }
    }
}

fn serve_queue(waiting: &Waiting, store: &Store) {
    while let Some(group) = waiting.next_group() {
        store.serve(group);
    }
    if store.closed().is_none()
        && let Err(error) = store.note_closed()
    {
        tracing::warn!(%error, "the next start compares ledgers as after a crash");
    }
}

/// An operation that is queued; awaiting it gives its result once it is durable. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "only the awaited result says whether the operation was stored"]
pub struct Pending<T>(oneshot::Receiver<Result<T>>);

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|_| Err(writer_ended())))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redb::backends::InMemoryBackend;

    use super::*;

    fn queue() -> Queue {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        Queue::start(Arc::new(Store::new(database, Failure::default()).unwrap())).unwrap()
    }

    #[tokio::test]
    async fn a_panic_in_the_writer_closes_the_ledger() {
        let queue = queue();
        let pending = queue.enqueue(|_| -> Result<()> { panic!("on purpose") }).await.unwrap();
        assert!(matches!(pending.await, Err(LedgerError::Closed(_))));
        let next = async { queue.enqueue(|_| Ok(())).await?.await };
        assert!(matches!(next.await, Err(LedgerError::Closed(_))));
        while queue.store().closed().is_none() {
            tokio::task::yield_now().await;
        }
    }

    const NUMBERS: redb::TableDefinition<u64, u64> = redb::TableDefinition::new("numbers");

    fn insert(number: u64) -> impl FnOnce(&mut Group<'_>) -> Result<()> + Send {
        move |group| {
            group.transaction().open_table(NUMBERS)?.insert(number, 0)?;
            Ok(())
        }
    }

    fn stored(store: &Store) -> u64 {
        store.read(|tx| Ok(redb::ReadableTableMetadata::len(&tx.open_table(NUMBERS)?)?)).unwrap()
    }

    #[tokio::test]
    async fn what_is_queued_or_rides_is_stored_before_the_last_handle_is_gone() {
        let queue = queue();
        let store = Arc::clone(&queue.store);
        for number in 0..100 {
            drop(queue.enqueue(insert(number)).await.unwrap());
        }
        let mut riding = Box::pin(queue.ride(insert(100)));
        tokio::select! {
            biased;
            _ = &mut riding => panic!("it is stored at once"),
            () = std::future::ready(()) => {}
        }
        drop(riding);
        drop(queue);
        assert_eq!(stored(&store), 101);
    }

    #[tokio::test]
    async fn without_a_thread_an_operation_is_stored_before_anybody_waits_for_it() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let queue = Queue::without_thread(Arc::new(Store::new(database, Failure::default()).unwrap()));
        let pending = queue.enqueue(insert(0)).await.unwrap();
        assert_eq!(stored(queue.store()), 1);
        pending.await.unwrap();
        queue.ride(insert(1)).await.unwrap();
        queue.catch_up().await;
        assert_eq!((stored(queue.store()), queue.stats().commits), (2, 2));
    }

    #[tokio::test]
    async fn what_rides_is_stored_with_the_next_commit_or_by_itself() {
        let queue = queue();
        for number in 0..100 {
            let ride = queue.ride(insert(2 * number));
            let begin = async { queue.enqueue(insert(2 * number + 1)).await?.await };
            let (rode, began) = tokio::join!(ride, begin);
            rode.unwrap();
            began.unwrap();
        }
        let commits = queue.stats().commits;
        assert!(commits < 150, "{commits} commits of 200 operations, of which 100 begin none");
        queue.ride(insert(1_000)).await.unwrap();
        assert_eq!(stored(queue.store()), 201, "nothing else began a commit");
    }

    #[tokio::test]
    async fn operations_gather_while_many_calls_are_under_way() {
        let queue = queue();
        let calls: Vec<UnderWay> = (0..64).map(|_| queue.under_way()).collect();
        for round in 0..20 {
            let mut pending = Vec::new();
            for number in 0..8 {
                pending.push(queue.enqueue(insert(8 * round + number)).await.unwrap());
                // By itself, the thread would have committed by now.
                std::thread::sleep(Duration::from_micros(50));
            }
            for stored in pending {
                stored.await.unwrap();
            }
        }
        let commits = queue.stats().commits;
        assert!(commits < 80, "{commits} commits of 160 operations");
        drop(calls);
    }

    #[tokio::test]
    async fn more_than_a_group_of_what_rides_begins_a_commit() {
        let queue = Arc::new(queue());
        let mut rides = tokio::task::JoinSet::new();
        for number in 0..200 {
            let queue = Arc::clone(&queue);
            rides.spawn(async move { queue.ride(insert(number)).await });
        }
        for rode in rides.join_all().await {
            rode.unwrap();
        }
        assert_eq!(stored(queue.store()), 200);
    }
}
