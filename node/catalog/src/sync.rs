//! Reconciliation: two catalogs find out which versions only one of them has, and exchange those, both ways.
//!
//! Whoever begins holds an [`Initiator`], the other side a [`Responder`]; each takes a message and says what
//! comes next, and neither knows a socket. First they compare (range-based set reconciliation, Meyer 2023, as the
//! `negentropy` protocol does it) a picture of each catalog taken when the session began; then the initiator
//! fetches what it lacks and offers what the other lacks. What is received is offered to the catalog like
//! everything from strangers.
//!
//! Invariant: a session ends. Messages, listings and bytes are bounded on both sides, nothing is taken that was
//! not asked for, and decompression stops at a bound of ours, whatever a frame says about itself.

use std::sync::Arc;

use farthing_protocol::{
    limits,
    sync::{ItemName, SyncMessage},
};

use tokio::task;

use crate::{
    budget::Work,
    catalog::Catalog,
    error::CatalogError,
    snapshot::Snapshot,
    store::Row,
    verdict::{Neighbour, Verdict},
};

mod compare;
mod initiator;
mod pack;
mod responder;

pub use initiator::{Initiator, Step, Summary};
pub use responder::Responder;

/// Messages of one session from one side. A newcomer to 200,000 listings of the largest size needs 800.
pub const SESSION_MESSAGES_MAX: u32 = 2_048;
/// Rounds of comparison. Sixteen to the power of the rounds is what they tell apart; frames of full lists need
/// one round each.
pub const SESSION_ROUNDS_MAX: u32 = 64;
/// A listing as most are, signature included.
const LISTING_BYTES: usize = 1_300;
/// The longest time that a session may take. Checking the signatures of 200,000 listings takes about two minutes.
pub const SESSION_SECS_MAX: u64 = 600;

/// The reason that a session ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SyncError {
    #[error("the peer's message cannot be read: {0}")]
    Malformed(String),
    #[error("the peer sent {0}, which has no place here")]
    Unexpected(&'static str),
    #[error("the peer sent a listing that nobody asked for")]
    Unasked,
    #[error("the peer sent a listing that no honest node would pass on")]
    Forged,
    #[error("the session takes more messages or more time than it may")]
    TooLong,
    #[error("the peer asks for more than its share; what is missing comes later")]
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

impl Catalog {
    /// Everything here as of now. Blocks for some milliseconds when something changed.
    fn snapshot(&self) -> Result<Snapshot, SyncError> {
        let listings = self.inner.shared.listings.read();
        let items = listings.iter().map(|(_, entry)| (entry.updated_secs, entry.item));
        Ok(self.inner.snapshot.at(listings.revision(), items)?)
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

    /// Does what a neighbour asks for away from the tasks that serve calls, one after another.
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
        let mut batch = pack::Batch::default();
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
                    return batch.pack();
                }
            }
        }
        batch.pack()
    }

    /// Keeps only the names that are worth fetching: not here, and not refused a while ago.
    fn wanted(&self, names: &mut Vec<ItemName>, now_secs: u64) {
        {
            let listings = self.inner.shared.listings.read();
            names.retain(|name| listings.find_item(name).is_none());
        }
        let gate = self.inner.shared.gate.lock();
        names.retain(|name| !gate.refused.contains(name, now_secs));
    }
}

/// The result of a batch of received listings.
struct Taken {
    stored: usize,
    /// The neighbour sent more than its share; there is no use in asking on.
    over_budget: bool,
}

fn judge(verdicts: &[Verdict]) -> Result<Taken, SyncError> {
    use crate::verdict::Reason::OverBudget;
    if verdicts.iter().any(Verdict::is_hostile) {
        return Err(SyncError::Forged);
    }
    Ok(Taken {
        stored: verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count(),
        over_budget: verdicts.contains(&Verdict::Refused(OverBudget)),
    })
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
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{Listing, SecretKey, ServiceNonce, Signed, Usdc};

    use super::*;
    use crate::{options::Options, verdict::Source};

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

    #[tokio::test]
    async fn a_version_that_is_not_committed_yet_is_not_answered_with_another() {
        let folder = tempfile::tempdir().unwrap();
        let owner = SecretKey::from_bytes(&[9; 32]).unwrap();
        let options = Options::new("local-test", SecretKey::from_bytes(&[8; 32]).unwrap().address());
        let (catalog, _) = Catalog::open(folder.path(), options).unwrap();
        let source = Source::Pushed(Neighbour { wallet: owner.address(), range: None });
        let (first, second) = (version(1, &owner), version(2, &owner));
        let [first_name, second_name] = [&first, &second].map(|one| ItemName::of(&one.content_hash()));
        catalog.offer(vec![first.clone()], source, NOW_SECS).await;
        let packed = catalog.pack(&[first_name]).unwrap();
        assert_eq!(pack::unpack(&packed).unwrap(), [first]);
        // As the writer does before it commits.
        let listing = second.verify().unwrap();
        catalog.inner.shared.listings.write().put(&listing, second_name, source, NOW_SECS).unwrap();
        let packed = catalog.pack(&[second_name]).unwrap();
        assert_eq!(pack::unpack(&packed).unwrap(), [], "a peer was given what it did not ask for");
    }
}
