//! Newer versions that were read and are not in use yet, say because they are dearer than what was accepted: reading one
//! takes up to a second, and no call pays for that twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use farthing_protocol::{Listing, ServiceId};

use super::KnownService;

const VERSIONS_MAX: usize = 64;
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// At most one version of a service.
#[derive(Debug, Default)]
pub(super) struct Unused(Mutex<HashMap<ServiceId, Arc<KnownService>>>);

impl Unused {
    /// Returns what was read of exactly this version.
    pub(super) fn get(&self, listing: &Listing) -> Option<Arc<KnownService>> {
        let versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(&listing.service).filter(|known| **known.listing() == *listing).cloned()
    }

    /// A version that is in use now is kept there.
    pub(super) fn forget(&self, known: &Arc<KnownService>) {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = known.listing().service;
        if versions.get(&id).is_some_and(|kept| Arc::ptr_eq(kept, known)) {
            versions.remove(&id);
        }
    }

    /// Keeps a version; others make room for it.
    pub(super) fn keep(&self, known: &Arc<KnownService>) {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        versions.remove(&known.listing().service);
        let bytes = |versions: &HashMap<_, Arc<KnownService>>| {
            versions.values().map(|v| v.memory_bytes()).sum::<usize>()
        };
        while versions.len() >= VERSIONS_MAX || bytes(&versions) + known.memory_bytes() > BYTES_MAX {
            let Some(any) = versions.keys().next().copied() else { break };
            versions.remove(&any);
        }
        versions.insert(known.listing().service, Arc::clone(known));
    }
}
