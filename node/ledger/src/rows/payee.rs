//! Rows of the owner's half: channels and calls, as told and as stored.

mod channel;
pub(crate) mod stored;

use std::collections::BTreeMap;

use bytes::Bytes;
use farthing_values::{Address, CallId, ChannelId, Hash, Method, Outcome, Receipt, ServiceId, Usdc};
use redb::ReadableTable;

pub use self::channel::{Ending, PayeeChannelFacts, PayeeChannelRow};
pub(crate) use self::stored::{ChargedOn, StoredCall, StoredPayeeChannel, StoredState};
use crate::{error::Result, tables};

/// A kept body. Larger ones stay in the caller's memory for a while and are then gone.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// A finished call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub call_id: CallId,
    pub service: ServiceId,
    pub method: Method,
    /// Concrete path, for people.
    pub path: String,
    pub request_hash: Hash,
    pub response_hash: Hash,
    pub price: Usdc,
    /// At most the price, and nothing unless the service itself answered.
    pub charged: Usdc,
    pub outcome: Outcome,
    /// The answer's status, headers and, when it is to be kept, its body of at most [`BODY_BYTES_MAX`].
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Option<Bytes>,
    /// The reason that there is no answer, by its number in the owner's program; `None` in records of before, too.
    pub fault: Option<u8>,
    /// The time that the service took for it, in microseconds; `None` in records of before.
    pub upstream_us: Option<u64>,
    /// Seconds since the Unix epoch, on this node's clock.
    pub time_secs: u64,
}

/// A call with effects, about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedCall {
    pub payer: Address,
    pub call_id: CallId,
    pub service: ServiceId,
    pub method: Method,
    pub path: String,
    pub request_hash: Hash,
    pub time_secs: u64,
}

/// A finished call as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    pub payer: Address,
    pub call: Call,
    /// The receipt that was signed for it, or would have been.
    pub receipt: Receipt,
    /// Size of the kept body, 0 when none is kept; lists leave `call.body` out.
    pub body_bytes: u64,
    /// The time at which the service was asked once more for a lost answer; see [`crate::Ledger::repeat`].
    pub repeated_secs: Option<u64>,
    /// The transaction that paid it, of a call on no channel that was charged.
    pub paid_by: Option<Hash>,
    /// The chain has taken back that transaction, and no other one can pay the call.
    pub is_lost: bool,
}

impl CallRow {
    /// Returns what the call brings: its charge, unless nothing pays it any more.
    pub fn earned(&self) -> Usdc {
        if self.is_lost { Usdc::ZERO } else { self.call.charged }
    }
}

/// The record of a call id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedRow {
    /// Given to its service; unless that is in progress now, it may have run.
    Accepted(AcceptedCall),
    Done(Box<CallRow>),
}

impl ServedRow {
    /// Of the request that was recorded under the call id.
    pub const fn request_hash(&self) -> Hash {
        match self {
            Self::Accepted(accepted) => accepted.request_hash,
            Self::Done(row) => row.call.request_hash,
        }
    }
}

/// The receipt of a call, for [`crate::Recorded`] and for reading it back: one function, one opinion.
pub(crate) fn receipt(call: &Call, channel: ChannelId, spent_total: Usdc) -> Receipt {
    Receipt {
        channel,
        call_id: call.call_id,
        request_hash: call.request_hash,
        response_hash: call.response_hash,
        outcome: call.outcome.code(),
        charged: call.charged,
        spent_total,
        time_secs: call.time_secs,
    }
}

pub(crate) fn call_key(payer: Address, call_id: CallId) -> [u8; 36] {
    tables::join(&[payer.as_bytes(), call_id.as_bytes()])
}

pub(crate) fn split_call_key(key: &[u8; 36]) -> (Address, CallId) {
    (Address::from_bytes(tables::join(&[&key[..20]])), CallId::from_bytes(tables::join(&[&key[20..]])))
}

pub(crate) fn time_key(time_secs: u64, key: &[u8; 36]) -> [u8; 44] {
    tables::join(&[&time_secs.to_be_bytes(), key])
}

pub(crate) fn channel_in(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    id: ChannelId,
) -> Result<Option<StoredPayeeChannel>> {
    tables::get(table, "payee_channels", id.as_bytes())
}
