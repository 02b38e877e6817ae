//! Who looks for a service: one for each at a time, and not many at once.

use std::hash::{BuildHasher, RandomState};

use farthing_protocol::ServiceId;
use tokio::sync::Mutex;

/// Look-ups at once. Calls of one service share a lock, so that a burst of first calls makes one look-up.
const LOOKUPS_MAX: usize = 64;

/// The locks of all look-ups.
#[derive(Debug)]
pub(super) struct LookupLocks {
    locks: [Mutex<()>; LOOKUPS_MAX],
    /// Of this run alone: nobody makes ids that wait for another's.
    places: RandomState,
}

impl Default for LookupLocks {
    fn default() -> Self {
        Self { locks: std::array::from_fn(|_| Mutex::default()), places: RandomState::new() }
    }
}

impl LookupLocks {
    /// The lock of one service.
    pub(super) fn of(&self, id: ServiceId) -> &Mutex<()> {
        let place = self.places.hash_one(id) % LOOKUPS_MAX as u64;
        &self.locks[usize::try_from(place).unwrap_or_default()]
    }
}
