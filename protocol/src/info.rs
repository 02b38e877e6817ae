//! `/farthing/<net>/info/1`: free questions between nodes about records, listings and content.

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};

use crate::{Address, Hash, Listing, NodeRecord, ServiceId, Signed};

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
    Refused(#[n(0)] String),
}
