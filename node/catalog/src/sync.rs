//! Reconciliation: two catalogs find out which versions only one of them has, and exchange those, both ways.
//!
//! Whoever begins holds an [`Initiator`], the other side a [`Responder`]; each takes a message and says what
//! comes next, and neither knows a socket. First they compare (range-based set reconciliation, Meyer 2023, as the
//! `negentropy` protocol does it) a picture of each catalog, no older than the session; then the initiator
//! fetches what it lacks and offers what the other lacks. Two that know of shards tell each other first which they keep,
//! and compare those that both do. What is received is offered to the catalog like
//! everything from strangers.
//!
//! Invariant: a session ends. Messages, listings and bytes are bounded on both sides, nothing is taken that was
//! not asked for, and decompression stops at a bound of ours, whatever a frame says about itself.

use std::sync::{Arc, atomic::Ordering};

use farthing_protocol::{
    limits,
    reconciliation::{Batch, Item, Picture, ReconciliationError},
    shards::Shards,
    sync::{ItemName, SyncMessage},
};

use tokio::task;

use crate::{
    budget::Work,
    catalog::Catalog,
    error::CatalogError,
    listings::Entry,
    store::Row,
    verdict::{Neighbour, Source},
};

mod fetch_list;
mod initiator;
mod responder;

pub use initiator::{Initiator, Step, Summary};
pub use responder::Responder;

/// Messages of one session from one side. A newcomer to 200,000 listings of the largest size needs 800.
pub const SESSION_MESSAGES_MAX: u32 = 2_048;
/// The time between two comparisons of a full catalog about everything, of those that it opens and of those it answers:
/// each names all that one side has no room for.
const FULL_EVERY_SECS: u64 = 6 * 3600;
/// In between it compares what was updated so long ago, and so many of those at most.
const RECENT_SECS: u64 = 2 * 3600;
const RECENT_MAX: usize = 4_096;
/// A listing as most are, signature included.
const LISTING_BYTES: usize = 1_300;
/// The longest time that a session may take. Checking the signatures of 200,000 listings takes about two minutes.
pub const SESSION_SECS_MAX: u64 = 600;

/// The side that began a session.
#[derive(Clone, Copy, Debug)]
enum Side {
    Own,
    Peer,
}

/// The reason that a session ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SyncError {
    #[error("the peer's message cannot be read: {0}")]
    Malformed(String),
    #[error("the peer sent {0}, which is not expected here")]
    Unexpected(&'static str),
    #[error("the peer sent a listing that was not requested")]
    Unasked,
    #[error("the peer sent a listing that no honest node would pass on")]
    Forged,
    #[error("the session needs more messages or time than allowed")]
    TooLong,
    #[error("the peer asks for more than its share; the rest comes later")]
    OverBudget,
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl SyncError {
    /// Returns whether the peer should be held to account.
    pub const fn is_hostile(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::Unexpected(_) | Self::Unasked | Self::Forged)
    }
}

impl From<ReconciliationError> for SyncError {
    fn from(error: ReconciliationError) -> Self {
        match error {
            ReconciliationError::Malformed(problem) => Self::Malformed(problem),
            ReconciliationError::TooLong => Self::TooLong,
        }
    }
}

impl Catalog {
    /// Everything of these shards that is here now. Blocks for some milliseconds when something changed.
    fn picture(&self, shards: Shards) -> Picture {
        let listings = self.inner.shared.listings.read();
        let item = |entry: &Entry| {
            let shard = listings.owners.get(entry.owner)?.shard;
            Some((entry.updated_secs, entry.item.item(), shard))
        };
        let items = listings.iter().filter_map(|(_, entry)| item(entry));
        self.inner.picture.at(listings.revision(), items).within(shards)
    }

    /// The same as of when it was last looked at: it was then that a session which goes on began, or later.
    fn last_picture(&self, shards: Shards) -> Picture {
        let last = self.inner.picture.last();
        last.map_or_else(|| self.picture(shards), |picture| picture.within(shards))
    }

    /// Returns what was updated since then, the newest of it where that is much, and since when it is all that is here.
    fn recent(&self, mut since_secs: u64) -> (u64, Vec<(u64, Item)>) {
        let mut items: Vec<(u64, ItemName)> = {
            let listings = self.inner.shared.listings.read();
            let items = listings.iter().map(|(_, entry)| (entry.updated_secs, entry.item));
            items.filter(|(updated_secs, _)| *updated_secs >= since_secs).collect()
        };
        if items.len() > RECENT_MAX {
            items.sort_unstable();
            // Those of one second are all there, or none is.
            let (left_out_secs, _) = items[items.len() - RECENT_MAX - 1];
            items.retain(|(updated_secs, _)| *updated_secs > left_out_secs);
            since_secs = left_out_secs.saturating_add(1);
        }
        (since_secs, items.into_iter().map(|(updated_secs, name)| (updated_secs, name.item())).collect())
    }

    /// Takes the turn to compare everything in a session of this side, or of the other. It is always there while there is
    /// room for more listings.
    fn takes_whole(&self, side: Side, now_secs: u64) -> bool {
        let whole = &self.inner.whole_secs[side as usize];
        let before_secs = whole.load(Ordering::Relaxed);
        let is_due = now_secs.saturating_sub(before_secs) >= FULL_EVERY_SECS;
        !self.is_full()
            || is_due
                && whole.compare_exchange(before_secs, now_secs, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Checks that this neighbour may have more work done in sessions that it opened, `done_bytes` having been done.
    ///
    /// # Errors
    /// [`SyncError::OverBudget`] when it may not.
    fn admit_work(
        &self,
        peer: Neighbour,
        work: Work,
        done_bytes: usize,
        now_secs: u64,
    ) -> Result<(), SyncError> {
        let admitted = self.inner.shared.gate.lock().sources.work(peer, work, done_bytes, now_secs);
        if admitted { Ok(()) } else { Err(SyncError::OverBudget) }
    }

    /// Does the work of sessions away from the tasks that serve calls, one after another.
    async fn at_leisure<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, SyncError> {
        let _permit = self.inner.sessions.acquire().await;
        let catalog = self.clone();
        let done = task::spawn_blocking(move || work(&catalog)).await;
        done.map_err(|_| SyncError::Catalog(CatalogError::Closed))
    }

    /// Hands out what a neighbour asks for, as much as fits into a frame. Its address range is counted for the work,
    /// whoever opened the session and however often it asks for the same.
    async fn hand_out(
        &self,
        peer: Neighbour,
        names: Vec<ItemName>,
        now_secs: u64,
    ) -> Result<SyncMessage, SyncError> {
        check_names(&names)?;
        let work_bytes = names.len().saturating_mul(LISTING_BYTES).min(limits::SYNC_FRAME_BYTES_MAX);
        self.admit_work(peer, Work::Pack, work_bytes, now_secs)?;
        let packed = self.at_leisure(move |catalog| catalog.pack(&names)).await??;
        Ok(SyncMessage::Listings(packed.into()))
    }

    /// The listings with these names, as many as fit into a frame, packed.
    fn pack(&self, names: &[ItemName]) -> Result<Vec<u8>, SyncError> {
        let shared = Arc::clone(&self.inner.shared);
        let mut batch = Batch::default();
        // Read some at a time: a frame holds some 2,000 of the 8,192 that may be asked for.
        for names in names.chunks(256) {
            let (names, services): (Vec<_>, Vec<_>) = {
                let listings = shared.listings.read();
                let found = |name: &ItemName| Some((*name, listings.find_item(name)?.service));
                names.iter().filter_map(found).unzip()
            };
            for (name, row) in names.iter().zip(shared.store.rows(&services)?) {
                // Until the writer has committed, the store has another version than the listings, or none. A peer that
                // gets what it did not ask for holds it against this node.
                let is_asked_for = |row: &Row| ItemName::of(&row.signed.content_hash()) == *name;
                let Some(row) = row.filter(is_asked_for) else { continue };
                if !batch.add(row.signed) {
                    return Ok(batch.pack()?);
                }
            }
        }
        Ok(batch.pack()?)
    }

    /// Keeps only the names that are worth fetching: not here, and not refused a while ago.
    fn wanted(&self, mut names: Vec<ItemName>, now_secs: u64) -> Vec<ItemName> {
        {
            let listings = self.inner.shared.listings.read();
            names.retain(|name| listings.find_item(name).is_none());
        }
        let gate = self.inner.shared.gate.lock();
        names.retain(|name| !gate.refused.contains(name, now_secs));
        names
    }

    /// Returns whether no listing of an owner that is new here would find room if this neighbour brought it.
    fn is_full_for(&self, peer: Neighbour, now_secs: u64) -> bool {
        !self.inner.shared.listings.read().has_room_for_newcomers(Source::Fetched(peer), now_secs)
    }
}

fn check_names(names: &[ItemName]) -> Result<(), SyncError> {
    if names.len() > limits::SYNC_ITEMS_MAX {
        return Err(SyncError::Malformed(format!("it names {} listings", names.len())));
    }
    Ok(())
}

fn name_of(message: &SyncMessage) -> &'static str {
    match message {
        SyncMessage::Compare(_) => "a comparison",
        SyncMessage::Offer(_) => "an offer",
        SyncMessage::Fetch(_) => "a request",
        SyncMessage::Listings(_) => "listings",
        SyncMessage::Done => "a farewell",
        SyncMessage::Refused(_) => "a refusal",
        SyncMessage::Shards(_) => "shards",
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{Listing, SecretKey, ServiceNonce, Signed, Usdc, reconciliation::unpack};

    use super::*;
    use crate::options::Options;

    const NOW_SECS: u64 = 1_767_323_045;

    fn version(seq: u64, owner: &SecretKey) -> Signed<Listing> {
        let nonce = ServiceNonce::from_bytes([7; 16]);
        let listing = Listing {
            seq,
            name: "Earthquakes".to_owned(),
            price: Usdc::from_micros(1),
            operations_count: 1,
            details_hash: [7; 32],
            details_bytes: 1,
            ..Listing::first("local-test", owner.address(), nonce, NOW_SECS)
        };
        Signed::sign(&listing, owner).unwrap()
    }

    fn opened(folder: &tempfile::TempDir) -> Catalog {
        let options = Options::new("local-test", SecretKey::from_bytes(&[8; 32]).unwrap().address());
        Catalog::open(folder.path(), options).unwrap().0
    }

    #[tokio::test]
    async fn a_session_begins_away_from_the_tasks_that_serve_calls() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = opened(&folder);
        let peer = SecretKey::from_bytes(&[9; 32]).unwrap().address();
        let busy = catalog.inner.sessions.acquire().await.unwrap();
        let mut beginning = std::pin::pin!(catalog.initiator(peer, false, NOW_SECS));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(beginning.as_mut().poll(&mut context).is_pending(), "it compared in the task that asked");
        drop(busy);
        assert!(matches!(beginning.await, Ok((_, SyncMessage::Compare(_)))));
    }

    #[tokio::test]
    async fn a_version_that_is_not_committed_yet_is_not_answered_with_another() {
        let folder = tempfile::tempdir().unwrap();
        let owner = SecretKey::from_bytes(&[9; 32]).unwrap();
        let catalog = opened(&folder);
        let source = Source::Pushed(Neighbour { wallet: owner.address(), range: None });
        let (first, second) = (version(1, &owner), version(2, &owner));
        let [first_name, second_name] = [&first, &second].map(|one| ItemName::of(&one.content_hash()));
        catalog.offer(vec![first.clone()], source, NOW_SECS).await;
        let packed = catalog.pack(&[first_name]).unwrap();
        assert_eq!(unpack::<Listing>(&packed).unwrap(), [first]);
        // As the writer does before it commits.
        let listing = second.verify().unwrap();
        catalog.inner.shared.listings.write().put(&listing, second_name, source, NOW_SECS).unwrap();
        let packed = catalog.pack(&[second_name]).unwrap();
        assert_eq!(unpack::<Listing>(&packed).unwrap(), [], "a peer was given what it did not ask for");
    }
}
