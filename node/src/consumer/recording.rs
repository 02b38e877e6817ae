//! Promises on their way into the ledger while their calls travel.

use std::sync::Arc;

use farthing_ledger::{Ledger, LedgerError, Promise};
use futures::{FutureExt, TryFutureExt, future::BoxFuture};

/// A promise that is queued. Its call travels meanwhile, and its answer is handed on once this has ended.
pub(super) struct Recording {
    pending: BoxFuture<'static, Result<(), LedgerError>>,
    ended: Option<Result<(), LedgerError>>,
}

impl Recording {
    /// Queues a promise.
    ///
    /// # Errors
    /// When the ledger takes none any more.
    pub async fn begin(ledger: &Ledger, promise: Arc<Promise>) -> Result<Self, LedgerError> {
        Ok(Self { pending: ledger.promise(promise).await?.map_ok(drop).boxed(), ended: None })
    }

    /// Tells whether it is known by now that the promise is not stored. Waits for nothing.
    pub fn has_failed(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.pending.as_mut().now_or_never();
        }
        matches!(self.ended, Some(Err(_)))
    }

    /// Waits until the promise is stored.
    ///
    /// # Errors
    /// The rule of money that it breaks, or that the storage failed.
    pub async fn stored(self) -> Result<(), LedgerError> {
        match self.ended {
            Some(ended) => ended,
            None => self.pending.await,
        }
    }
}
