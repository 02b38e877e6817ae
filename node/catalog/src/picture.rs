//! The catalog as of one moment, sorted for comparison by ranges.

use farthing_protocol::reconciliation::{Item, Picture};
use parking_lot::Mutex;

/// The newest picture, of all shards. Sessions look at it, each at its own shards, and keep none.
#[derive(Debug, Default)]
pub(crate) struct PictureCache(Mutex<Option<(u64, Picture)>>);

impl PictureCache {
    /// The picture at `revision`, made of `items`, each with its shard, where the last one is older.
    pub(crate) fn at(&self, revision: u64, items: impl Iterator<Item = (u64, Item, u8)>) -> Picture {
        let mut kept = self.0.lock();
        if let Some((taken, picture)) = &*kept
            && *taken == revision
        {
            return picture.clone();
        }
        let picture = Picture::of_sharded(items);
        *kept = Some((revision, picture.clone()));
        picture
    }

    /// The last that was made, whatever has changed since then.
    pub(crate) fn last(&self) -> Option<Picture> {
        self.0.lock().as_ref().map(|(_, picture)| picture.clone())
    }
}
