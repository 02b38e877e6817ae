//! `/farthing/<net>/info/1`: free questions between nodes about records, listings and content.

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{Address, Hash, Listing, NodeRecord, ServiceId, Signed, Usdc, listing::ServiceKind};

/// A question. Lists are bounded by [`crate::limits::INFO_ITEMS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum InfoRequest {
    /// The newest records you hold of these wallets.
    #[n(0)]
    Records(#[n(0)] Vec<Address>),
    /// Take these records, which may be newer than yours.
    #[n(1)]
    Push(#[n(0)] Vec<Signed<NodeRecord>>),
    /// The listings of these services, your own or remembered.
    #[n(2)]
    Services(#[n(0)] Vec<ServiceId>),
    /// Every listing of your own.
    #[n(3)]
    OwnListings,
    /// Content by its Keccak-256.
    #[n(4)]
    Blob(#[cbor(n(0), with = "minicbor::bytes")] Hash),
    /// Records of some peers you know, to find one's way into the network.
    #[n(5)]
    Peers,
    /// The listings that fit, best first. Only nodes whose record has [`crate::record::FLAG_KEEPS_ALL`] can read it.
    #[n(6)]
    Search(#[n(0)] ListingSearch),
}

/// The criteria of a search, as a catalog's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct ListingSearch {
    /// All must occur; the last may be unfinished.
    #[n(0)]
    pub words: String,
    #[n(1)]
    pub category: Option<String>,
    #[n(2)]
    pub tag: Option<String>,
    #[n(3)]
    pub kind: Option<ServiceKind>,
    #[n(4)]
    pub price_max: Option<Usdc>,
    /// Only services whose owner is there.
    #[n(5)]
    pub online: bool,
    /// Only services with free samples.
    #[n(6)]
    pub samples: bool,
    #[n(7)]
    pub owner: Option<Address>,
    #[n(8)]
    pub order: ListingOrder,
    /// Listings wanted.
    #[n(9)]
    pub limit: u8,
}

/// The order of what a search finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum ListingOrder {
    /// Best match first.
    #[n(0)]
    Relevance,
    /// Cheapest first.
    #[n(1)]
    Price,
    /// Last updated first.
    #[n(2)]
    Newest,
    /// From A to Z.
    #[n(3)]
    Name,
}

/// An answer. What is not known is left out.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum InfoResponse {
    #[n(0)]
    Records(#[n(0)] Vec<Signed<NodeRecord>>),
    #[n(1)]
    Listings(#[n(0)] Vec<Signed<Listing>>),
    #[n(2)]
    Blob(#[n(0)] Option<ByteVec>),
    #[n(3)]
    Done,
    #[n(4)]
    Refused {
        #[n(0)]
        words: String,
        /// By how much a pushed record is dated ahead of the clock of the node that refuses it for this.
        #[n(1)]
        ahead_secs: Option<u64>,
    },
}

impl InfoResponse {
    /// A refusal for a reason that only people read.
    pub fn refused(words: impl Into<String>) -> Self {
        Self::Refused { words: words.into(), ahead_secs: None }
    }
}
