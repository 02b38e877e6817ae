//! The note in the file that every promise is stored, by which a start tells a ledger that was closed from one that a crash
//! ended.
//!
//! A ledger that ends leaves it ([`Queue::end_promises`], and the last handle). A promise is stored while its call is on its way,
//! so the note is gone from the disk before the first call of a run leaves ([`Queue::begin_promises`]).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use redb::WriteTransaction;

use super::{Queue, Store, begin_durable};
use crate::{
    error::{LedgerError, Result},
    rows::payer,
    tables,
};

#[derive(Debug, Default)]
pub(super) struct Note {
    takes_no_promise: AtomicBool,
    /// The file has the note, or will have with the commit under way. Set before that, and cleared after it is gone.
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

    /// Removes the note beside a promise that was queued after it.
    pub(crate) fn forget_closed(&self, transaction: &WriteTransaction) -> Result<()> {
        if self.note.is_there.swap(false, SeqCst) { tables::forget_closed(transaction) } else { Ok(()) }
    }

    pub(super) fn note_closed(&self) -> Result<()> {
        let transaction = begin_durable(&self.database)?;
        tables::note_closed(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl Queue {
    /// Waits until the note is gone from the disk: a crash from now on may take promises.
    pub(crate) async fn begin_promises(&self) -> Result<()> {
        let note = &self.store().note;
        if !note.is_there.load(SeqCst) {
            return Ok(());
        }
        let _alone = note.changing.lock().await;
        if self.takes_no_promise() {
            return Err(LedgerError::Ending);
        }
        if note.is_there.load(SeqCst) {
            self.enqueue(tables::forget_closed).await?.await?;
            note.is_there.store(false, SeqCst);
        }
        Ok(())
    }

    /// Stores every promise that is queued, and takes no more.
    pub(crate) async fn end_promises(&self) -> Result<()> {
        let note = &self.store().note;
        let _alone = note.changing.lock().await;
        if note.takes_no_promise.swap(true, SeqCst) {
            return Ok(());
        }
        let store = Arc::clone(self.store());
        let noted = move |tx: &WriteTransaction| {
            store.note.is_there.store(true, SeqCst);
            tables::note_closed(tx)
        };
        self.enqueue(noted).await?.await
    }

    pub(crate) fn takes_no_promise(&self) -> bool {
        self.store().note.takes_no_promise.load(SeqCst)
    }
}
