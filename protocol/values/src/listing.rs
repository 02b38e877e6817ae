//! Publications of an owner about a service: a signed listing, and its details by content hash.
//!
//! The listing is small, because every node stores every listing. What only an interested consumer needs —
//! operations, parameters, their prices — is a details document that the listing pins by hash.

use std::ops::RangeInclusive;

use minicbor::{CborLen, Decode, Encode};

use crate::{
    Address, Hash, ServiceId, ServiceNonce, Usdc, keccak256, limits,
    method::Method,
    outcome::ChargePolicy,
    plain::Line,
    signed::{Document, InvalidDocument},
    wire::{self, NetworkName},
};

/// The kind of upstream that a service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum ServiceKind {
    #[n(0)]
    Rest,
    #[n(1)]
    Graphql,
}

/// One way to pay, in the owner's order of preference.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Accept {
    /// `channel/1`, `free/1`; consumers skip names they do not know.
    #[n(0)]
    pub scheme: String,
    #[n(1)]
    pub chain_id: u64,
    /// The token's contract.
    #[n(2)]
    pub asset: Address,
    #[n(3)]
    pub pay_to: Address,
    /// The channel contract.
    #[n(4)]
    pub contract: Address,
    #[n(5)]
    pub min_deposit: Usdc,
    /// The shortest delay between a payer's request to close and its withdrawal that the owner accepts.
    #[n(6)]
    pub close_delay_secs: u64,
}

/// Scheme name of payment channels with cumulative vouchers.
pub const SCHEME_CHANNEL: &str = "channel/1";

/// The public, signed description and price of a service.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Listing {
    #[n(0)]
    pub network: String,
    /// Follows from `owner` and `nonce`; no other is valid.
    #[n(1)]
    pub service: ServiceId,
    /// The wallet whose service it is; signs the listing and receives the money.
    #[n(2)]
    pub owner: Address,
    /// Strictly rising; a call names the version whose price it accepted.
    #[n(3)]
    pub seq: u64,
    #[n(4)]
    pub name: String,
    #[n(5)]
    pub summary: String,
    #[n(6)]
    pub category: String,
    #[n(7)]
    pub tags: Vec<String>,
    #[n(8)]
    pub kind: ServiceKind,
    /// Price of an operation that names none of its own.
    #[n(9)]
    pub price: Usdc,
    #[n(10)]
    pub charge_policy: ChargePolicy,
    #[n(11)]
    pub accepts: Vec<Accept>,
    #[n(12)]
    pub operations_count: u32,
    /// Content hash and size of the [`Details`].
    #[cbor(n(13), with = "minicbor::bytes")]
    pub details_hash: Hash,
    #[n(14)]
    pub details_bytes: u32,
    /// Seconds since the Unix epoch.
    #[n(15)]
    pub created_secs: u64,
    #[n(16)]
    pub updated_secs: u64,
    /// The service was retired; the listing only remains to say so.
    #[n(17)]
    pub tombstone: bool,
    /// The service rests; calls are refused for now.
    #[n(18)]
    pub paused: bool,
    /// Operations with a free sample. Listings of before this was told say none.
    #[n(19)]
    #[cbor(default)]
    pub samples_count: u32,
    /// The differences in each version so far, as the owner tells them. Pinned here and not by the details, so that
    /// a new price makes nobody fetch the details again.
    #[n(20)]
    pub history: Option<Pin>,
    /// The nonce by which the owner tells this service from its others; the same in every version.
    #[n(21)]
    pub nonce: ServiceNonce,
}

impl Document for Listing {
    const DOMAIN: &'static str = "listing 1";
    const BYTES_MAX: usize = limits::LISTING_BYTES_MAX;

    fn signer(&self) -> Address {
        self.owner
    }

    fn validate(&self) -> Result<(), InvalidDocument> {
        let own = ServiceId::derive(self.owner, self.nonce);
        if self.service != own {
            let problem = format!("is {}, but this owner and nonce have {own}", self.service);
            return Err(InvalidDocument::forged("service", problem));
        }
        NetworkName::new(self.network.as_str())
            .map_err(|problem| InvalidDocument::new("network", problem.to_string()))?;
        text("name", Line::Name, &self.name, 1..=limits::LISTING_NAME_CHARS_MAX)?;
        text("summary", Line::Prose, &self.summary, 0..=limits::LISTING_SUMMARY_CHARS_MAX)?;
        text("category", Line::Name, &self.category, 0..=limits::LISTING_CATEGORY_CHARS_MAX)?;
        if self.tags.len() > limits::LISTING_TAGS_MAX {
            return Err(InvalidDocument::new("tags", "must be 8 at most"));
        }
        for tag in &self.tags {
            text("tags", Line::Name, tag, 1..=limits::LISTING_TAG_CHARS_MAX)?;
        }
        if self.accepts.len() > limits::LISTING_ACCEPTS_MAX {
            return Err(InvalidDocument::new("accepts", "must be 8 at most"));
        }
        if usize::try_from(self.details_bytes).is_ok_and(|bytes| bytes > limits::DETAILS_BYTES_MAX) {
            return Err(InvalidDocument::new("details", "are too large"));
        }
        if self.history.is_some_and(|pin| {
            usize::try_from(pin.bytes).is_ok_and(|bytes| bytes > limits::HISTORY_BYTES_MAX)
        }) {
            return Err(InvalidDocument::new("history", "is too large"));
        }
        if self.updated_secs < self.created_secs {
            return Err(InvalidDocument::new("updated", "lies before created"));
        }
        Ok(())
    }
}

/// One line of text, of signs that its kind may hold.
fn text(
    field: &'static str,
    line: Line,
    value: &str,
    chars: RangeInclusive<usize>,
) -> Result<(), InvalidDocument> {
    if !chars.contains(&value.chars().count()) {
        let (min, max) = chars.into_inner();
        return Err(InvalidDocument::new(field, format!("must have {min} to {max} characters")));
    }
    line.check(value).map_err(|problem| InvalidDocument::new(field, problem.to_string()))
}

/// An operation that costs something else than the listing's price.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct OperationPrice {
    #[n(0)]
    pub method: Method,
    /// The operation's template, such as `/users/{id}`.
    #[n(1)]
    pub path: String,
    #[n(2)]
    pub price: Usdc,
}

/// Content by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Pin {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    #[n(1)]
    pub bytes: u32,
}

/// The details that an interested consumer fetches by hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Details {
    /// The API's description in the bridge's encoding: operations, parameters, schemas. Opaque to this crate.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub api: Vec<u8>,
    /// Prices of operations that have one of their own; the others cost what the listing says.
    #[n(1)]
    pub prices: Vec<OperationPrice>,
    /// Examples of answers, free to look at.
    #[n(2)]
    pub samples: Option<Pin>,
}

impl Details {
    /// The document's bytes and their hash, as a listing pins them.
    pub fn to_blob(&self) -> (Vec<u8>, Hash) {
        let bytes = wire::encode(self);
        let hash = keccak256(&[&bytes]);
        (bytes, hash)
    }

    /// Reads the details that `listing` pins.
    ///
    /// # Errors
    /// [`DetailsError`] when the bytes are not the pinned ones or not a details document within bounds.
    pub fn from_blob(bytes: &[u8], listing: &Listing) -> Result<Self, DetailsError> {
        if bytes.len() > limits::DETAILS_BYTES_MAX {
            return Err(DetailsError::OutOfBounds);
        }
        // Readers plan by the size that the listing names: whether they fetch it unasked, and how many they keep.
        let is_named_size = usize::try_from(listing.details_bytes).is_ok_and(|named| named == bytes.len());
        if !is_named_size || keccak256(&[bytes]) != listing.details_hash {
            return Err(DetailsError::WrongContent);
        }
        let details: Self = wire::decode(bytes).map_err(|e| DetailsError::Malformed(e.to_string()))?;
        if details.prices.len() > limits::OPERATIONS_MAX {
            return Err(DetailsError::OutOfBounds);
        }
        Ok(details)
    }
}

/// The reason that bytes are not a listing's details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetailsError {
    #[error("the content is not the one the listing pins")]
    WrongContent,
    #[error("the details cannot be read: {0}")]
    Malformed(String),
    #[error("the details exceed the protocol's bounds")]
    OutOfBounds,
}

impl Listing {
    /// A service's first version, of which nothing is said yet.
    pub fn first(network: &str, owner: Address, nonce: ServiceNonce, now_secs: u64) -> Self {
        Self {
            network: network.to_owned(),
            service: ServiceId::derive(owner, nonce),
            owner,
            seq: 1,
            name: String::new(),
            summary: String::new(),
            category: String::new(),
            tags: Vec::new(),
            kind: ServiceKind::Rest,
            price: Usdc::ZERO,
            charge_policy: ChargePolicy::default(),
            accepts: Vec::new(),
            operations_count: 0,
            details_hash: [0; 32],
            details_bytes: 0,
            created_secs: now_secs,
            updated_secs: now_secs,
            tombstone: false,
            paused: false,
            samples_count: 0,
            history: None,
            nonce,
        }
    }

    /// Returns the cost of a call of the operation.
    pub fn price_of(&self, details: &Details, method: Method, path: &str) -> Usdc {
        let own = details.prices.iter().find(|own| own.method == method && own.path == path);
        own.map_or(self.price, |own| own.price)
    }
}
