//! `/farthing/<net>/sync/1` and `sync/2`: two nodes find out which listings only one of them has, and exchange those.
//!
//! One side asks, the other answers every message with one message:
//!
//! ```text
//! Shards(own)       → Shards(own)          `sync/2` alone: what follows is about the shards that both keep
//! Compare(…)        → Compare(…)           rounds of range comparison, until the asking side knows both differences
//! Fetch(names)      → Listings(batch)      as many as fit into a frame; the rest is asked for again
//! Offer(names)      → Fetch(names)         what the answering side would like to have of it
//! Listings(batch)   → Fetch(names)         what it still waits for; `Done` when that is nothing
//! Done              → Done
//! anything          → Refused(reason)      ends the exchange
//! ```

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{Hash, reconciliation::Item};

/// Names one version of one listing: the first half of its content hash. Sixteen bytes are enough, because
/// whoever looks for two listings with one name would have to sign both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct ItemName(#[cbor(n(0), with = "minicbor::bytes")] [u8; 16]);

impl ItemName {
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Of the version with this content hash, or with this [`Item`].
    pub fn of(content_hash: &Hash) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&content_hash[..16]);
        Self(bytes)
    }

    /// Writes the item that stands for it in a comparison. The zeros vanish when the message is compressed, so a name costs half.
    pub fn item(self) -> Item {
        let mut item = [0; 32];
        item[..16].copy_from_slice(&self.0);
        item
    }
}

/// One frame. Lists are bounded by [`crate::limits::SYNC_ITEMS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SyncMessage {
    /// A message of range-based set reconciliation, compressed with zstd.
    #[n(0)]
    Compare(#[n(0)] ByteVec),
    /// Listings you lack, as far as I can see.
    #[n(1)]
    Offer(#[n(0)] Vec<ItemName>),
    /// Send me these.
    #[n(2)]
    Fetch(#[n(0)] Vec<ItemName>),
    /// An array of signed listings, compressed with zstd.
    #[n(3)]
    Listings(#[n(0)] ByteVec),
    /// Nothing more to say.
    #[n(4)]
    Done,
    /// No, and why: one line for a person.
    #[n(5)]
    Refused(#[n(0)] String),
    /// The shards that I keep, as [`crate::shards::Shards::bits`]. Nodes that speak `sync/1` alone cannot read it.
    #[n(6)]
    Shards(#[n(0)] u16),
}
