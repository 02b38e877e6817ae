//! The note in the file that every promise is stored, by which a start tells a ledger that was closed from one that a crash
//! ended.
//!
//! A ledger that ends leaves it ([`Queue::end_promises`], and the last handle). A promise is stored while its call is on its way,
//! so the note is gone from the disk before the first call of a run leaves; and the call of a promise that is queued while the
//! ledger ends waits until the promise is on the disk ([`Queue::promise`]).
//!
//! Invariant: the disk never has the note and lacks the promise of a call that left.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::{Pending, Queue, Store, begin_durable};
use crate::{
    error::{LedgerError, Result},
    group::Group,
    rows::payer,
    tables,
};

#[derive(Debug, Default)]
pub(super) struct Note {
    takes_no_promise: AtomicBool,
    /// The file has had the note since the start. Cleared after it is gone.
    is_there: AtomicBool,
    /// The turn of writing the note or removing it.
    changing: tokio::sync::Mutex<()>,
}

impl Store {
    /// Marks the channels of which calls may be lacking, because whoever had the ledger open did not end it. A disk that is
    /// full then closes the ledger, as it would later: nothing is promised meanwhile.
    pub(crate) fn look_for_losses(&self) {
        let mark = || {
            if self.read(tables::was_closed)? {
                self.note.is_there.store(true, SeqCst);
                return Ok(());
            }
            let transaction = begin_durable(&self.database)?;
            if !payer::mark_all(&transaction)? {
                return Ok(transaction.abort()?);
            }
            transaction.commit()?;
            self.check_storage()?;
            self.publish()
        };
        if let Err(error) = mark() {
            self.close(error);
        }
    }

    pub(super) fn note_closed(&self) -> Result<()> {
        let transaction = begin_durable(&self.database)?;
        tables::note_closed(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl Queue {
    /// Waits until the note is gone from the disk: a crash from now on may take promises.
    async fn begin_promises(&self) -> Result<()> {
        let note = &self.store().note;
        if !note.is_there.load(SeqCst) {
            return Ok(());
        }
        let _alone = note.changing.lock().await;
        if self.takes_no_promise() {
            return Err(LedgerError::Ending);
        }
        if note.is_there.load(SeqCst) {
            self.enqueue(|group| tables::forget_closed(group.transaction())).await?.await?;
            note.is_there.store(false, SeqCst);
        }
        Ok(())
    }

    /// Queues a promise, whose call may leave as soon as this returns.
    pub(crate) async fn promise<T, F>(&self, record: F) -> Result<Pending<T>>
    where
        T: Send + 'static,
        F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    {
        if self.takes_no_promise() {
            return Err(LedgerError::Ending);
        }
        self.begin_promises().await?;
        let promised = self.enqueue(record).await?;
        if self.takes_no_promise() {
            // The note may be before it in the queue, and on the disk before it: its call leaves when it is there, too.
            self.catch_up().await;
            if let Some(closed) = self.store().closed() {
                return Err(closed.into());
            }
        }
        Ok(promised)
    }

    /// Stores every promise that is queued, and takes no more.
    pub(crate) async fn end_promises(&self) -> Result<()> {
        let note = &self.store().note;
        let _alone = note.changing.lock().await;
        if note.takes_no_promise.swap(true, SeqCst) {
            return Ok(());
        }
        self.enqueue(|group| tables::note_closed(group.transaction())).await?.await
    }

    pub(crate) fn takes_no_promise(&self) -> bool {
        self.store().note.takes_no_promise.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        sync::{Arc, mpsc},
        task::{Context, Poll, Waker},
    };

    use redb::{Database, backends::InMemoryBackend};
    use tokio::sync::oneshot;

    use super::*;
    use crate::{backend::Failure, writer::QUEUE_OPERATIONS_MAX};

    fn poll<F: Future>(waiting: Pin<&mut F>) -> Poll<F::Output> {
        waiting.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Keeps the thread busy, which has nothing else to do, until the sender is dropped.
    async fn keep_busy(queue: &Queue) -> mpsc::SyncSender<()> {
        let (end, ended) = mpsc::sync_channel::<()>(0);
        let (begin, begun) = oneshot::channel();
        let busy = queue.enqueue(move |_| {
            let _ = begin.send(());
            let _ = ended.recv();
            Ok(())
        });
        drop(busy.await.unwrap());
        begun.await.unwrap();
        end
    }

    #[tokio::test]
    async fn a_call_that_is_promised_while_the_ledger_ends_leaves_when_its_promise_is_on_the_disk() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let queue = Queue::start(Arc::new(Store::new(database, Failure::default()).unwrap())).unwrap();
        let busy = keep_busy(&queue).await;
        for _ in 0..QUEUE_OPERATIONS_MAX {
            drop(queue.enqueue(|_| Ok(())).await.unwrap());
        }
        // Both wait for room.
        let (mut promise, mut end) = (Box::pin(queue.promise(|_| Ok(()))), Box::pin(queue.end_promises()));
        assert!(poll(promise.as_mut()).is_pending());
        assert!(poll(end.as_mut()).is_pending());
        drop(busy);
        end.await.unwrap();
        assert!(queue.store().read(tables::was_closed).unwrap());
        let busy = keep_busy(&queue).await;
        assert!(poll(promise.as_mut()).is_pending(), "the disk has the note, and not the promise");
        drop(busy);
        promise.await.unwrap().await.unwrap();
    }
}
