//! Messages of two nodes that compare their books, call by call (invariant X1).
//!
//! The payer asks for what the owner recorded of its calls, page by page in the order of call ids, and holds each
//! record against its own. Nobody is told of another payer's calls.
//!
//! An owner that was restored from a backup lacks what it served after that was made. Its payers hold its receipts, and
//! show it the newest one ([`Shown`]), which bears its own signature.

use minicbor::{CborLen, Decode, Encode};

use crate::{
    CallId, ChannelConfig, ChannelId, Domain, Outcome, Receipt, Signature, Usdc, Verified, Voucher,
    signature::SignatureError,
};

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

/// The newest word of an owner on a channel, which its payer shows it, and the payer's promise of what it counts of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Shown {
    #[n(0)]
    pub receipt: Receipt,
    /// The owner's, on the receipt.
    #[n(1)]
    pub receipt_signature: Signature,
    /// The part of the receipt's total that the payer knows of: a call that it counts may have no answer here.
    #[n(2)]
    pub promised: Usdc,
    /// The payer's, on a voucher over that: the owner may have lost it, too.
    #[n(3)]
    pub voucher_signature: Signature,
}

impl Shown {
    /// The receipt and the voucher of a channel with these terms.
    ///
    /// # Errors
    /// [`SignatureError`] unless the channel's payee signed the receipt, and its signer the voucher.
    pub fn verify(
        &self,
        domain: &Domain,
        terms: &ChannelConfig,
    ) -> Result<(Verified<Receipt>, Verified<Voucher>), SignatureError> {
        let voucher = Voucher { channel: self.receipt.channel, cumulative: self.promised };
        let receipt = self.receipt.verify(domain, self.receipt_signature, terms.payee)?;
        Ok((receipt, voucher.verify(domain, self.voucher_signature, terms.signer)?))
    }
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
    /// On the last page: what the owner's books count of the payer's calls that they lack, as after a restore.
    #[n(3)]
    pub adjusted: Option<Usdc>,
}

/// An owner's record of one call.
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
    use crate::{CallReply, SecretKey, limits, wire};

    #[test]
    fn what_is_shown_counts_only_as_the_owners_and_the_payers_word_on_one_channel() {
        let [payer, payee, other] = [1, 2, 3].map(|n| SecretKey::from_bytes(&[n; 32]).unwrap());
        let domain = Domain::new(1, payer.address());
        let terms = ChannelConfig {
            payer: payer.address(),
            payee: payee.address(),
            token: payer.address(),
            signer: payer.address(),
            close_delay_secs: 1,
            salt: [0; 32],
        };
        let receipt = Receipt {
            channel: terms.id(&domain),
            call_id: CallId::from_bytes([1; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: 0,
            charged: Usdc::from_micros(1),
            spent_total: Usdc::from_micros(5),
            time_secs: 1,
        };
        let shown = |receipt_by: &SecretKey, voucher_by: &SecretKey, promised| Shown {
            receipt,
            receipt_signature: receipt.sign(&domain, receipt_by),
            promised: Usdc::from_micros(5),
            voucher_signature: Voucher { channel: receipt.channel, cumulative: Usdc::from_micros(promised) }
                .sign(&domain, voucher_by),
        };
        let (_, voucher) = shown(&payee, &payer, 5).verify(&domain, &terms).unwrap();
        assert_eq!((voucher.channel, voucher.cumulative), (receipt.channel, receipt.spent_total));
        // A receipt may count calls that the payer knows no end of.
        let part = Shown { promised: Usdc::from_micros(4), ..shown(&payee, &payer, 4) };
        let (signed, voucher) = part.verify(&domain, &terms).unwrap();
        assert_eq!((signed.spent_total, voucher.cumulative), (receipt.spent_total, part.promised));
        for refused in [shown(&payer, &payer, 5), shown(&payee, &other, 5), shown(&payee, &payer, 4)] {
            assert!(refused.verify(&domain, &terms).is_err());
        }
    }

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
            adjusted: Some(Usdc::MAX),
        };
        let bytes = |records| wire::encode(&CallReply::Calls(page(records))).len();
        assert!(bytes(CALLS_PAGE_MAX) <= limits::CALL_HEAD_BYTES_MAX, "{}", bytes(CALLS_PAGE_MAX));
        assert!(bytes(2 * CALLS_PAGE_MAX) > limits::CALL_HEAD_BYTES_MAX, "and twice as many do not");
    }
}
