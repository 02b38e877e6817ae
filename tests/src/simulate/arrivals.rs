//! When listings arrive, and at how many nodes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use farthing_network::{Inbound, Verdict};
use farthing_protocol::{Hash, Listing, Signed, keccak256, wire};

/// When listings arrived, by their content.
#[derive(Debug, Clone, Default)]
pub struct Arrivals(Arc<Mutex<HashMap<Hash, Vec<Instant>>>>);

impl Arrivals {
    /// Takes the part of a node's catalog: every listing is new when it is first heard of, and passed on.
    pub async fn note_all(self, mut inbound: Inbound) {
        while let Some(told) = inbound.listings.recv().await {
            self.note(&told.listing.to_signed());
            told.reply.send(Verdict::New);
        }
    }

    /// One more node has this listing.
    pub fn note(&self, listing: &Signed<Listing>) {
        self.lock().entry(hash(listing)).or_default().push(Instant::now());
    }

    pub(super) fn of(&self, listing: Hash) -> Vec<Instant> {
        self.lock().get(&listing).cloned().unwrap_or_default()
    }

    /// Changed by single operations, so a panic elsewhere leaves it whole.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, Vec<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn hash(listing: &Signed<Listing>) -> Hash {
    keccak256(&[&wire::encode(listing)])
}
