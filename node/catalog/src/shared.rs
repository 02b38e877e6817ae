//! State shared by handle and writer: the listings, the gate, the store and the index, each behind its own lock.

use std::sync::atomic::{AtomicBool, AtomicU64};

use farthing_protocol::{ServiceId, shards::Shards, sync::ItemName};
use parking_lot::{Mutex, RwLock};
use tokio::sync::broadcast;

use crate::{
    budget::{Refused, Sources},
    index::Index,
    listings::Listings,
    options::Options,
    store::Store,
    verdict::Reason,
};

/// Changes that a slow listener may be behind; it is told that it missed some.
const CHANGES_MAX: usize = 1_024;

/// Budgets and what was refused.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) sources: Sources,
    pub(crate) refused: Refused,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) index: Index,
    /// Services whose newest version was just stored.
    pub(crate) changes: broadcast::Sender<ServiceId>,
    /// Versions stored since the start.
    pub(crate) taken: AtomicU64,
    /// The index could not learn what was stored, and is tried again.
    pub(crate) is_index_behind: AtomicBool,
    /// The writer puts and removes; everybody may tell that an owner was seen.
    pub(crate) listings: RwLock<Listings>,
    pub(crate) gate: Mutex<Gate>,
}

impl Shared {
    pub(crate) fn new(options: Options, store: Store, index: Index, listings: Listings) -> Self {
        let sources = Sources::new(options.limits.clone());
        let refused = Refused::new(options.limits.refused_max);
        let (listings, gate) = (RwLock::new(listings), Mutex::new(Gate { sources, refused }));
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        let (taken, is_index_behind) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { options, store, index, changes, taken, is_index_behind, listings, gate }
    }

    /// After the storage failed: the file is opened again, and what is stored counts.
    pub(crate) fn reload(&self) {
        match self.store.reopen().and_then(|()| self.store.load(&self.options)) {
            Ok(mut listings) => {
                let mut now = self.listings.write();
                listings.remember(&now);
                *now = listings;
            }
            Err(error) => tracing::error!(cause = ?error, "the catalog cannot be read either"),
        }
    }

    /// This node has to do with others than before, whose listings were refused for the shard that they are in.
    pub(crate) fn welcome_again(&self) {
        if self.options.shards != Shards::ALL {
            self.gate.lock().refused.forget_all();
        }
    }

    /// Remembers a refused version, so that it is not fetched again soon.
    pub(crate) fn remember(&self, item: ItemName, reason: &Reason, now_secs: u64) {
        let secs = remember_secs(reason);
        if secs > 0 {
            self.gate.lock().refused.add(item, now_secs.saturating_add(secs));
        }
    }
}

/// Returns how long a refusal holds. A bad signature says nothing about the version, which somebody else may send with
/// the right one. A stolen service is held against everybody who brings it, so it is looked at each time.
pub(crate) const fn remember_secs(reason: &Reason) -> u64 {
    match reason {
        Reason::Malformed(_) | Reason::WrongNetwork | Reason::Superseded | Reason::OtherShard => 24 * 3600,
        Reason::FromTheFuture | Reason::OwnerAway => 600,
        Reason::OwnerFull | Reason::Full => 1800,
        Reason::TooOften { retry_secs } => *retry_secs,
        Reason::BadSignature | Reason::Stolen(_) | Reason::OverBudget | Reason::Refused | Reason::Storage => {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farthing_protocol::Address;

    use super::*;
    use crate::store::Changes;

    #[test]
    fn storage_that_failed_is_opened_again_and_takes_what_comes_then() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new("test", Address::from_bytes([1; 20]));
        let (store, listings, _) = Store::open(&folder.path().join("catalog.redb"), &options).unwrap();
        let index = Index::open(&folder.path().join("catalog-index"), store.epoch()).unwrap().index;
        let shared = Shared::new(options, store, index, listings);
        let changes = Changes { unindexed: BTreeSet::from([7]), ..Changes::default() };
        shared.store.fail();
        assert!(shared.store.apply(&changes).is_err());
        assert!(shared.store.has_failed(), "the doctor tells it");
        shared.reload();
        shared.store.apply(&changes).unwrap();
        assert!(!shared.store.has_failed());
        assert_eq!(shared.store.unindexed().unwrap(), changes.unindexed);
        shared.store.fail();
        std::fs::remove_dir_all(folder.path()).unwrap();
        shared.reload();
        assert!(shared.store.has_failed(), "a file that cannot be opened takes nothing");
    }
}
