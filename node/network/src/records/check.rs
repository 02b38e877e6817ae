//! Reading and checking a record that somebody sent, cheapest checks first. Pure.

use farthing_protocol::{
    Address, NodeRecord, Signed, Verified, limits,
    signature::SignatureError,
    signed::{DocumentError, InvalidDocument},
    wire::{self, NetworkName},
};

/// A record as it travels: the document's bytes and about 75 more for signature and framing.
pub(crate) const RECORD_VALUE_BYTES_MAX: usize = limits::RECORD_BYTES_MAX + 128;

/// The reason that a record was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejected {
    #[error("the record has {0} bytes")]
    TooLarge(usize),
    #[error("not a record: {0}")]
    Malformed(String),
    #[error("the signature is wrong")]
    Forged,
    #[error("the record belongs to {0}, not to the wallet it is stored under")]
    WrongKey(Address),
    #[error("the record is of another network")]
    OtherNetwork,
    #[error(transparent)]
    Time(InvalidDocument),
    #[error("sequence number {held} is held already")]
    NotNewer { held: u64 },
    #[error("the source offers too many records; try again in a minute")]
    TooMany,
    #[error("the store is full")]
    StoreFull,
}

/// Reads and verifies a record that is filed under `expected`, if anything is expected. Cheapest checks first.
pub(crate) fn verify(
    record: Signed<NodeRecord>,
    expected: Option<Address>,
    network: &NetworkName,
) -> Result<Verified<NodeRecord>, Rejected> {
    // Of other networks anybody has true ones, any number of them: their signatures are not worth a look.
    if record.claimed().is_ok_and(|claimed| claimed.network != network.as_str()) {
        return Err(Rejected::OtherNetwork);
    }
    let record = record.verify().map_err(|error| match error {
        DocumentError::TooLarge { bytes, .. } => Rejected::TooLarge(bytes),
        DocumentError::Signature(SignatureError::Malformed | SignatureError::WrongSigner { .. }) => {
            Rejected::Forged
        }
        DocumentError::Malformed(_) | DocumentError::Invalid(_) => Rejected::Malformed(error.to_string()),
    })?;
    match expected {
        Some(expected) if record.signer() != expected => Err(Rejected::WrongKey(record.signer())),
        _ => Ok(record),
    }
}

/// The same for a record's bytes.
pub(crate) fn decode(
    value: &[u8],
    expected: Option<Address>,
    network: &NetworkName,
) -> Result<Verified<NodeRecord>, Rejected> {
    if value.len() > RECORD_VALUE_BYTES_MAX {
        return Err(Rejected::TooLarge(value.len()));
    }
    let record = wire::decode(value).map_err(|error| Rejected::Malformed(error.to_string()))?;
    verify(record, expected, network)
}
