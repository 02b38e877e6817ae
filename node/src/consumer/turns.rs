//! One turn per call id: calls with the same id wait for each other, so a repeat sees the first one's end.
//!
//! A turn carries what is known of the call's copies, for as long as anybody works on the call or asks for its end.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use farthing_protocol::{CallId, resolution::Copies};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turns of all calls in progress.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<CallId, Weak<AsyncMutex<Copies>>>>);

/// The place of one call id; what is known of its copies is kept while the place is.
#[derive(Clone, Debug, Default)]
pub struct Slot(Arc<AsyncMutex<Copies>>);

/// The right to work on one call id; ends when dropped.
#[derive(Debug)]
pub struct Turn(OwnedMutexGuard<Copies>);

impl Turns {
    /// The place of `call_id`.
    pub fn slot(&self, call_id: CallId) -> Slot {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Forgotten entries are swept now and then, so the map stays as small as the calls in progress.
        if turns.len() >= 1024 {
            turns.retain(|_, slot| slot.strong_count() > 0);
        }
        let slot = turns.get(&call_id).and_then(Weak::upgrade).unwrap_or_default();
        turns.insert(call_id, Arc::downgrade(&slot));
        Slot(slot)
    }

    /// Waits until no one else works on `call_id`.
    pub async fn take(&self, call_id: CallId) -> Turn {
        self.slot(call_id).take().await
    }

    /// The turn, when no one else works on `call_id`.
    pub fn try_take(&self, call_id: CallId) -> Option<Turn> {
        self.slot(call_id).0.try_lock_owned().ok().map(Turn)
    }
}

impl Slot {
    pub async fn take(&self) -> Turn {
        Turn(self.0.clone().lock_owned().await)
    }
}

impl Turn {
    pub fn slot(&self) -> Slot {
        Slot(OwnedMutexGuard::mutex(&self.0).clone())
    }
}

impl Deref for Turn {
    type Target = Copies;

    fn deref(&self) -> &Copies {
        &self.0
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut Copies {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn calls_with_one_id_wait_for_each_other_and_others_do_not() {
        let turns = Turns::default();
        let (a, b) = (CallId::from_bytes([1; 16]), CallId::from_bytes([2; 16]));
        let first = turns.take(a).await;
        let _other = turns.take(b).await;
        assert!(turns.try_take(a).is_none());
        let mut second = Box::pin(turns.take(a));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn what_is_known_of_copies_lasts_while_somebody_keeps_the_place() {
        let turns = Turns::default();
        let call = CallId::from_bytes([1; 16]);
        let mut turn = turns.take(call).await;
        turn.doubt(Duration::ZERO);
        let place = turn.slot();
        drop(turn);
        assert!(turns.take(call).await.are_in_doubt());
        drop(place);
        assert!(!turns.take(call).await.are_in_doubt());
    }
}
