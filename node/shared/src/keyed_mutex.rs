//! One turn per key: whoever works on a call, an owner or a service waits for who works on the same one.
//!
//! A turn carries what is known of its key, for as long as anybody works on it or keeps its place.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turns of everything that is worked on.
#[derive(Debug)]
pub struct KeyedMutex<K, V = ()>(Mutex<HashMap<K, Weak<AsyncMutex<V>>>>);

/// The place of one key; what is known of it is kept while the place is.
pub type KeyedSlot<V> = Arc<AsyncMutex<V>>;

/// The right to work on one key; ends when dropped.
pub type KeyedGuard<V = ()> = OwnedMutexGuard<V>;

impl<K: Eq + Hash, V: Default> KeyedMutex<K, V> {
    /// The place of `key`.
    pub fn slot(&self, key: K) -> KeyedSlot<V> {
        let mut turns = self.0.lock();
        // Forgotten entries are swept now and then, so the map stays as small as what is in progress.
        if turns.len() >= 1024 {
            turns.retain(|_, slot| slot.strong_count() > 0);
        }
        let slot = turns.get(&key).and_then(Weak::upgrade).unwrap_or_default();
        turns.insert(key, Arc::downgrade(&slot));
        slot
    }

    /// Waits until no one else works on `key`.
    pub async fn take(&self, key: K) -> KeyedGuard<V> {
        self.slot(key).lock_owned().await
    }

    /// The turn, when no one else works on `key`.
    pub fn try_take(&self, key: K) -> Option<KeyedGuard<V>> {
        self.slot(key).try_lock_owned().ok()
    }
}

impl<K, V> Default for KeyedMutex<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_has_one_key_waits_for_each_other_and_what_has_another_does_not() {
        let turns = KeyedMutex::<u8>::default();
        let first = turns.take(1).await;
        let _other = turns.take(2).await;
        assert!(turns.try_take(1).is_none());
        let mut second = Box::pin(turns.take(1));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn what_is_known_of_a_key_lasts_while_somebody_keeps_its_place() {
        let turns = KeyedMutex::<u8, bool>::default();
        let mut turn = turns.take(1).await;
        *turn = true;
        let place = OwnedMutexGuard::mutex(&turn).clone();
        drop(turn);
        assert!(*turns.take(1).await);
        drop(place);
        assert!(!*turns.take(1).await);
    }
}
