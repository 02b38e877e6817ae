//! Changes of one service are one after another: whoever reads a service to change it has its turn until the new
//! version is published, and the next one reads that version.

use std::{ops::Deref, sync::Arc};

use super::{Registered, RegistryError};

/// The right to publish the next version of a service, with the service as it is until then. Ends when dropped.
#[derive(Debug)]
pub struct PublishTurn {
    pub(super) service: Arc<Registered>,
    pub(super) _alone: farthing_shared::keyed_mutex::KeyedGuard,
}

impl PublishTurn {
    /// Checks that the service is still the version that somebody saw who wants to change it.
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

impl Deref for PublishTurn {
    type Target = Registered;

    fn deref(&self) -> &Registered {
        &self.service
    }
}
