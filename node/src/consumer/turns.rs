//! One turn per call id: calls with the same id wait for each other, so a repeat sees the first one's end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use farthing_protocol::CallId;
use tokio::sync::OwnedMutexGuard;

/// The turns of all calls in progress.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<CallId, Weak<tokio::sync::Mutex<()>>>>);

/// The right to work on one call id; ends when dropped.
#[derive(Debug)]
pub struct Turn {
    _guard: OwnedMutexGuard<()>,
}

impl Turns {
    /// Waits until no one else works on `call_id`.
    pub async fn take(&self, call_id: CallId) -> Turn {
        let lock = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Forgotten entries are swept now and then, so the map stays as small as the calls in progress.
            if turns.len() >= 1024 {
                turns.retain(|_, lock| lock.strong_count() > 0);
            }
            let lock = turns.get(&call_id).and_then(Weak::upgrade).unwrap_or_default();
            turns.insert(call_id, Arc::downgrade(&lock));
            lock
        };
        Turn { _guard: lock.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_with_one_id_wait_for_each_other_and_others_do_not() {
        let turns = Turns::default();
        let (a, b) = (CallId::from_bytes([1; 16]), CallId::from_bytes([2; 16]));
        let first = turns.take(a).await;
        let _other = turns.take(b).await;
        let mut second = Box::pin(turns.take(a));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        second.await;
    }
}
