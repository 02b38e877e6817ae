//! What two nodes tell each other to compare their books, call by call (invariant X1).
//!
//! The payer asks for what the owner recorded of its calls, page by page in the order of call ids, and holds each
//! record against its own. Nobody is told of another payer's calls.

use minicbor::{CborLen, Decode, Encode};

use crate::{CallId, ChannelId, Outcome, Usdc};

/// Records of one page; that many of the largest fit a call's head.
pub const CALLS_PAGE_MAX: usize = 256;

/// A question for the records of the asking payer's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CallsAsked {
    /// Only calls behind this id; all from the first one when absent.
    #[n(0)]
    pub after: Option<CallId>,
    /// Only calls that began in this second or later.
    #[n(1)]
    pub since_secs: u64,
}

/// One page of the owner's records, in the order of call ids.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CallsPage {
    /// At most [`CALLS_PAGE_MAX`].
    #[n(0)]
    pub records: Vec<CallRecord>,
    /// Everything up to this id was looked at; absent when there is nothing behind it. A page may be short, even
    /// empty, and not the last one.
    #[n(1)]
    pub next: Option<CallId>,
    /// Earlier calls may have been removed from the owner's books by age.
    #[n(2)]
    pub kept_since_secs: u64,
}

/// What an owner recorded of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct CallRecord {
    #[n(0)]
    pub call_id: CallId,
    /// [`ChannelId::NONE`] for a free call.
    #[n(1)]
    pub channel: ChannelId,
    /// Absent for a call that was given to its service and whose end is not recorded.
    #[n(2)]
    pub outcome: Option<Outcome>,
    #[n(3)]
    pub price: Usdc,
    #[n(4)]
    pub charged: Usdc,
    /// Seconds since the Unix epoch, on the owner's clock.
    #[n(5)]
    pub time_secs: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallReply, limits, wire};

    #[test]
    fn a_full_page_of_the_largest_records_fits_a_calls_head() {
        let largest = CallRecord {
            call_id: CallId::from_bytes([255; 16]),
            channel: ChannelId::from_bytes([255; 32]),
            outcome: Some(Outcome::BadAnswer),
            price: Usdc::MAX,
            charged: Usdc::MAX,
            time_secs: u64::MAX,
        };
        let page = |records| CallsPage {
            records: vec![largest; records],
            next: Some(largest.call_id),
            kept_since_secs: u64::MAX,
        };
        let bytes = |records| wire::encode(&CallReply::Calls(page(records))).len();
        assert!(bytes(CALLS_PAGE_MAX) <= limits::CALL_HEAD_BYTES_MAX, "{}", bytes(CALLS_PAGE_MAX));
        assert!(bytes(2 * CALLS_PAGE_MAX) > limits::CALL_HEAD_BYTES_MAX, "and twice as many do not");
    }
}
