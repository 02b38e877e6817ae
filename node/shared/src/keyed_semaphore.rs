//! So many places per key: of a payer, of a service, with an owner.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Keys whose semaphores are kept; those that nobody holds go first.
const KEYS_MAX: usize = 4_096;

/// One semaphore per key.
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
