//! The handle everyone holds.

use std::sync::Arc;

use redb::{ReadTransaction, WriteTransaction};

use crate::{
    error::{Closed, Result},
    group::Group,
    writer::{Queue, Snapshot, Stats, UnderWay},
};

/// The node's ledger. Clones are cheap and share one writer; the last one dropped ends it.
#[derive(Clone, Debug)]
pub struct Ledger {
    queue: Arc<Queue>,
}

impl Ledger {
    pub(crate) fn new(queue: Queue) -> Self {
        Self { queue: Arc::new(queue) }
    }

    /// Takes no more promises, and notes that every one of them is stored: the next start knows that none is lacking. The
    /// last handle notes it when it goes, too.
    pub async fn end_promises(&self) -> Result<()> {
        self.queue.end_promises().await
    }

    /// Waits until what was asked for before is stored, for whoever reads afterwards what it has just been told. Costs no
    /// commit where there is nothing to store; a ledger that has ended has nothing more to wait for.
    pub async fn catch_up(&self) {
        self.queue.catch_up().await;
    }

    /// Returns the reason that the ledger takes no more writes, if so.
    pub fn closed(&self) -> Option<Closed> {
        self.queue.store().closed()
    }

    /// Returns the writer's counts since the ledger was opened.
    pub fn stats(&self) -> Stats {
        self.queue.stats()
    }

    /// Counts a call that is under way. While many are, what they store gathers into fewer commits.
    pub fn under_way(&self) -> UnderWay {
        self.queue.under_way()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&WriteTransaction) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_grouped(|group| run(group.transaction())).await
    }

    /// The same of an operation that each call has: it shares its tables with the others of its commit.
    pub(crate) async fn write_grouped<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue.enqueue(run).await?.await
    }

    /// Returns what was committed last; every call reads some rows of it.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.queue.store().snapshot()
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T>) -> Result<T> {
        self.queue.store().read(read)
    }
}
