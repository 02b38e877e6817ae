//! When listings arrive, and at how many nodes.

use std::{collections::HashMap, sync::Arc, time::Instant};

use farthing_network::{Inbound, Verdict};
use farthing_protocol::{Hash, Listing, Signed, keccak256, wire};
use parking_lot::Mutex;

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
        self.0.lock().entry(hash(listing)).or_default().push(Instant::now());
    }

    pub(super) fn of(&self, listing: Hash) -> Vec<Instant> {
        self.0.lock().get(&listing).cloned().unwrap_or_default()
    }
}

pub(super) fn hash(listing: &Signed<Listing>) -> Hash {
    keccak256(&[&wire::encode(listing)])
}
