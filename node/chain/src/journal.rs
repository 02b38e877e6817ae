//! Where transactions and the watcher's progress are kept, so that a crash at any instruction loses
//! nothing. The node implements [`Journal`] with its ledger; [`MemoryJournal`] serves tests.
//!
//! Invariant: `put` has returned before the bytes it stores have any effect outside this process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures::future::BoxFuture;

/// A name and its record.
pub type Record = (String, Vec<u8>);

/// Records by name. Names are short ASCII texts that start with chain id and wallet address, so one journal
/// may serve several wallets and chains. Values are at most [`ENTRY_BYTES_MAX`] long.
pub trait Journal: Send + Sync {
    /// Stores a record durably, replacing an earlier one of the same name.
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Every record, in any order.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>>;
    /// Removes a record durably; removing a missing one is no error.
    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// A transaction that claims on [`crate::CLAIM_ROWS_MAX`] channels, with its rows, has half this size.
pub const ENTRY_BYTES_MAX: usize = 128 * 1024;

/// The journal could not store or read. Nothing is sent to the chain without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transaction journal failed, so nothing was sent: {0}")]
pub struct JournalError(pub String);

/// A journal that ends with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal(Mutex<BTreeMap<String, Vec<u8>>>);

impl Journal for MemoryJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, bytes);
        Box::pin(async { Ok(()) })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async { Ok(records.into_iter().collect()) })
    }

    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        Box::pin(async { Ok(()) })
    }
}
