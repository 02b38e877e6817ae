//! The catalog as of one moment, sorted for comparison by ranges.

use std::sync::Arc;

use farthing_protocol::sync::ItemName;
use negentropy::{Bound, Error, Id, Item, NegentropyStorageBase, NegentropyStorageVector};
use parking_lot::Mutex;

/// A sorted picture of a catalog, shared by the sessions that compare it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot(Arc<NegentropyStorageVector>);

impl Snapshot {
    fn new(items: impl Iterator<Item = (u64, ItemName)>) -> Result<Self, Error> {
        let mut vector = NegentropyStorageVector::with_capacity(items.size_hint().0);
        for (updated_secs, name) in items {
            let mut id = [0; 32];
            id[..16].copy_from_slice(name.as_bytes());
            vector.insert(updated_secs, Id::from_byte_array(id))?;
        }
        vector.seal()?;
        Ok(Self(Arc::new(vector)))
    }
}

impl NegentropyStorageBase for Snapshot {
    fn size(&self) -> Result<usize, Error> {
        self.0.size()
    }

    fn get_item(&self, index: usize) -> Result<Option<Item>, Error> {
        self.0.get_item(index)
    }

    fn iterate(
        &self,
        begin: usize,
        end: usize,
        each: &mut dyn FnMut(Item, usize) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.0.iterate(begin, end, each)
    }

    fn find_lower_bound(&self, first: usize, last: usize, value: &Bound) -> usize {
        self.0.find_lower_bound(first, last, value)
    }
}

/// The newest snapshot, good until something changes.
#[derive(Debug, Default)]
pub(crate) struct SnapshotCache(Mutex<Option<(u64, Snapshot)>>);

impl SnapshotCache {
    /// The snapshot of `revision`, made of `items` where the last one is older.
    pub(crate) fn at(
        &self,
        revision: u64,
        items: impl Iterator<Item = (u64, ItemName)>,
    ) -> Result<Snapshot, Error> {
        let mut cached = self.0.lock();
        if let Some((taken, snapshot)) = &*cached
            && *taken == revision
        {
            return Ok(snapshot.clone());
        }
        let snapshot = Snapshot::new(items)?;
        *cached = Some((revision, snapshot.clone()));
        Ok(snapshot)
    }
}
