//! So many places per key: of a payer, of a service, with an owner; and places of all keys, of which each has a share.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Keys whose semaphores are kept; those that nobody holds go first.
const KEYS_MAX: usize = 4_096;

#[derive(Debug)]
pub struct KeyedSemaphore<K> {
    permits: usize,
    semaphores: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> KeyedSemaphore<K> {
    pub fn new(permits: usize) -> Self {
        Self { permits, semaphores: Mutex::default() }
    }

    /// The semaphore of `key`, for as long as anybody holds it.
    pub fn get(&self, key: K) -> Arc<Semaphore> {
        let mut semaphores = self.semaphores.lock();
        if semaphores.len() >= KEYS_MAX {
            semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        semaphores.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.permits))).clone()
    }
}

/// Places of all keys together, of which one key has a share: whoever wants more with it waits for its own, and another key
/// waits for none of those.
#[derive(Debug)]
pub struct SharedPlaces<K> {
    of_each: KeyedSemaphore<K>,
    of_all: Arc<Semaphore>,
}

/// One of them, until dropped.
#[derive(Debug)]
pub struct SharedPlace {
    _of_key: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> SharedPlaces<K> {
    /// So many places, of which one key has `share` at most.
    pub fn new(places: usize, share: usize) -> Self {
        Self { of_each: KeyedSemaphore::new(share), of_all: Arc::new(Semaphore::new(places)) }
    }

    /// Waits for a place. Narrow before wide: who waits for its key's share is not in the queue of all.
    pub async fn take(&self, key: K) -> SharedPlace {
        let never_closed = "the semaphores are never closed";
        SharedPlace {
            _of_key: self.of_each.get(key).acquire_owned().await.expect(never_closed),
            _of_all: Arc::clone(&self.of_all).acquire_owned().await.expect(never_closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_key_has_its_share_of_the_places_and_leaves_the_others() {
        let places = SharedPlaces::new(4, 3);
        let of = |key: &'static str| places.take(key).now_or_never();
        let held: Vec<_> = std::iter::from_fn(|| of("many")).collect();
        assert_eq!(held.len(), 3);
        let other = of("other");
        assert!(other.is_some());
        assert!(of("third").is_none(), "all are taken");
        drop(other);
        assert!(of("many").is_none());
        assert!(of("third").is_some());
    }

    #[tokio::test]
    async fn what_waits_for_its_own_key_is_not_before_another_key_in_the_queue() {
        let places = SharedPlaces::new(1, 1);
        let held = places.take("many").await;
        let mut waiting = ["many", "other"].map(|key| Box::pin(places.take(key)));
        for one in &mut waiting {
            assert!(futures::poll!(one.as_mut()).is_pending());
        }
        drop(held);
        let [many, other] = &mut waiting;
        assert!(futures::poll!(many.as_mut()).is_pending(), "it comes to the queue now");
        assert!(futures::poll!(other.as_mut()).is_ready());
        assert!(futures::poll!(many.as_mut()).is_ready());
    }
}
