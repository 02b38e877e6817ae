//! Changes of one service are one after another: whoever reads a service to change it has its turn until the new
//! version is published, and the next one reads that version.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use farthing_protocol::ServiceId;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::{Registered, RegistryError};

/// One lock for each service that was ever changed.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<ServiceId, Arc<AsyncMutex<()>>>>);

impl Turns {
    /// Waits until no one else changes the service.
    pub(super) async fn wait(&self, service: ServiceId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(service).or_default())
        };
        lock.lock_owned().await
    }

    /// The service is retired: whoever still waits finds it gone.
    pub(super) fn forget(&self, service: ServiceId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&service);
    }
}

/// The right to publish the next version of a service, with the service as it is until then. Ends when dropped.
#[derive(Debug)]
pub struct Turn {
    pub(super) service: Arc<Registered>,
    pub(super) _alone: OwnedMutexGuard<()>,
}

impl Turn {
    /// Whether the service is the version that somebody saw who wants to change it.
    ///
    /// # Errors
    /// [`RegistryError::Changed`] when it is another one.
    pub fn is_still(&self, seen: Option<u64>) -> Result<(), RegistryError> {
        let now = self.listing().seq;
        match seen {
            Some(seen) if seen != now => Err(RegistryError::Changed { seen, now }),
            _ => Ok(()),
        }
    }
}

impl Deref for Turn {
    type Target = Registered;

    fn deref(&self) -> &Registered {
        &self.service
    }
}
