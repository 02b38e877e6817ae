//! The stored forms of promises and purchases.

use std::collections::BTreeMap;

use farthing_values::{
    Address, CallId, CallRequest, ChannelId, ChargePolicy, Hash, Method, Outcome, Payment, Receipt,
    ServiceId, Signature, Usdc,
};
use minicbor::{Decode, Encode, bytes::ByteArray};

use super::{Acknowledgement, Promise, Purchase, PurchaseEnd, Timing, TransferEnd};

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredPromise {
    #[n(0)]
    service: ServiceId,
    #[n(1)]
    pub(crate) owner: Address,
    #[n(2)]
    pub(crate) secret: String,
    #[n(3)]
    pub(crate) time_secs: u64,
    #[n(4)]
    pub(crate) price: Usdc,
    #[cbor(n(5), with = "minicbor::bytes")]
    pub(crate) request_hash: Hash,
    #[n(6)]
    pub(crate) voucher: Option<StoredVoucher>,
    #[n(7)]
    listing_version: u64,
    #[n(8)]
    method: Method,
    #[n(9)]
    path: String,
    #[n(10)]
    params: BTreeMap<String, String>,
    #[n(11)]
    headers: BTreeMap<String, String>,
    /// Of ledgers of before, which kept it: whoever repeats the call brings it, and its hash is in the request's.
    #[cbor(n(12), with = "minicbor::bytes")]
    body: Option<Vec<u8>>,
    #[n(13)]
    deadline_ms: u64,
    /// `None` in ledgers of before, where it was not noted.
    #[n(14)]
    seen_total: Option<Usdc>,
    #[n(15)]
    body_bytes: Option<u64>,
    /// `None` in ledgers of before, as in [`StoredPurchase`]: the price alone bounds a charge then.
    #[n(16)]
    charge_policy: Option<ChargePolicy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredVoucher {
    #[n(0)]
    pub(crate) channel: ChannelId,
    #[n(1)]
    pub(crate) cumulative: Usdc,
    #[n(2)]
    signature: Option<Signature>,
}

impl From<&Promise> for StoredPromise {
    fn from(promise: &Promise) -> Self {
        let request = &promise.request;
        Self {
            service: request.service,
            owner: promise.owner,
            secret: promise.secret.clone(),
            time_secs: promise.time_secs,
            price: request.price,
            request_hash: promise.request_hash,
            voucher: match request.payment {
                Payment::Free => None,
                Payment::Channel { channel, cumulative, signature, .. } => {
                    Some(StoredVoucher { channel, cumulative, signature })
                }
            },
            listing_version: request.listing_version,
            method: request.method,
            path: request.path.clone(),
            params: request.params.clone(),
            headers: request.headers.clone(),
            body: None,
            deadline_ms: request.deadline_ms,
            seen_total: Some(promise.seen_total),
            body_bytes: Some(request.body_bytes),
            charge_policy: Some(promise.charge_policy),
        }
    }
}

impl StoredPromise {
    pub(crate) fn channel(&self) -> Option<ChannelId> {
        self.voucher.map(|voucher| voucher.channel)
    }

    /// Returns whether both ask one owner for one thing over one channel.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        self.request_hash == other.request_hash
            && self.owner == other.owner
            && self.channel() == other.channel()
    }

    pub(crate) fn keep_budget_of(&mut self, first: Self) {
        self.secret = first.secret;
        self.time_secs = first.time_secs;
        self.seen_total = first.seen_total;
        // The owner may answer either copy.
        if first.charge_policy != Some(ChargePolicy::Success) {
            self.charge_policy = first.charge_policy;
        }
    }

    pub(crate) fn into_promise(self, call_id: CallId) -> Promise {
        let payment = self.voucher.map_or(Payment::Free, |voucher| Payment::Channel {
            channel: voucher.channel,
            cumulative: voucher.cumulative,
            signature: voucher.signature,
            receipted: None,
        });
        Promise {
            request: CallRequest {
                call_id,
                service: self.service,
                listing_version: self.listing_version,
                method: self.method,
                path: self.path,
                params: self.params,
                headers: self.headers,
                body_bytes: self.body_bytes.unwrap_or_else(|| self.body.map_or(0, |body| body.len() as u64)),
                price: self.price,
                deadline_ms: self.deadline_ms,
                payment,
            },
            request_hash: self.request_hash,
            owner: self.owner,
            secret: self.secret,
            time_secs: self.time_secs,
            limits: None,
            seen_total: self.seen_total.unwrap_or_default(),
            charge_policy: self.charge_policy.unwrap_or(ChargePolicy::Answered),
        }
    }
}

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredPurchase {
    #[n(0)]
    pub(crate) service: ServiceId,
    #[n(1)]
    pub(crate) owner: Address,
    #[n(2)]
    pub(crate) channel: Option<ChannelId>,
    #[n(3)]
    pub(crate) secret: String,
    #[n(4)]
    method: Method,
    #[n(5)]
    path: String,
    #[cbor(n(6), with = "minicbor::bytes")]
    pub(crate) request_hash: Hash,
    #[n(7)]
    pub(crate) price: Usdc,
    #[n(8)]
    pub(crate) promised_secs: u64,
    #[n(9)]
    pub(crate) closed_secs: u64,
    #[n(10)]
    pub(crate) end: StoredEnd,
    #[n(11)]
    charge_policy: Option<ChargePolicy>,
}

#[derive(Clone, Debug, Encode, Decode)]
pub(crate) enum StoredEnd {
    #[n(0)]
    Acknowledged {
        #[n(0)]
        receipt: StoredReceipt,
        #[n(1)]
        signature: Signature,
        #[n(2)]
        status: u16,
        #[n(3)]
        total_us: u64,
        #[n(4)]
        owner_us: u64,
        #[n(5)]
        upstream_us: u64,
    },
    #[n(1)]
    Released {
        #[n(0)]
        reason: String,
        /// `None` in ledgers of before, where it was not asked.
        #[n(1)]
        in_doubt: Option<bool>,
        /// `None` in ledgers of before, where it was not noted.
        #[n(2)]
        is_refused: Option<bool>,
        /// [`PurchaseEnd::Released`]; `None` also in ledgers of before, where it was not noted.
        #[n(3)]
        status: Option<u16>,
    },
    #[n(2)]
    Transferred {
        #[n(0)]
        charged: Usdc,
        #[n(1)]
        transaction: Option<ByteArray<32>>,
        #[n(2)]
        status: u16,
        #[n(3)]
        total_us: u64,
        /// True if the chain showed it; `None` in a record of a version that did not note it.
        #[n(4)]
        is_seen: Option<bool>,
    },
}

#[derive(Clone, Copy, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredReceipt {
    #[n(0)]
    channel: ChannelId,
    #[cbor(n(1), with = "minicbor::bytes")]
    request_hash: Hash,
    #[cbor(n(2), with = "minicbor::bytes")]
    response_hash: Hash,
    #[n(3)]
    pub(crate) outcome: Outcome,
    #[n(4)]
    charged: Usdc,
    #[n(5)]
    spent_total: Usdc,
    #[n(6)]
    time_secs: u64,
}

impl From<&Acknowledgement> for StoredEnd {
    fn from(acknowledgement: &Acknowledgement) -> Self {
        let receipt = &acknowledgement.receipt;
        Self::Acknowledged {
            receipt: StoredReceipt {
                channel: receipt.channel,
                request_hash: receipt.request_hash,
                response_hash: receipt.response_hash,
                // An unknown outcome is refused before this is stored.
                outcome: Outcome::from_code(receipt.outcome).unwrap_or(Outcome::BadAnswer),
                charged: receipt.charged,
                spent_total: receipt.spent_total,
                time_secs: receipt.time_secs,
            },
            signature: *receipt.signature(),
            status: acknowledgement.status,
            total_us: acknowledgement.timing.total_us,
            owner_us: acknowledgement.timing.owner_us,
            upstream_us: acknowledgement.timing.upstream_us,
        }
    }
}

impl StoredEnd {
    /// Of a call that a transfer over exactly its price has paid.
    pub(crate) fn transferred(charged: Usdc, end: &TransferEnd) -> Self {
        let TransferEnd { transaction, status, total_us, is_seen, .. } = *end;
        let (transaction, is_seen) = (transaction.map(Into::into), Some(is_seen));
        Self::Transferred { charged, transaction, status, total_us, is_seen }
    }

    pub(crate) fn charged(&self) -> Usdc {
        match self {
            Self::Acknowledged { receipt, .. } => receipt.charged,
            Self::Released { .. } => Usdc::ZERO,
            Self::Transferred { charged, .. } => *charged,
        }
    }

    /// True if the owner's node refused the call; `None` where that was not noted.
    pub(crate) const fn is_refused(&self) -> Option<bool> {
        match self {
            Self::Acknowledged { .. } | Self::Transferred { .. } => None,
            Self::Released { is_refused, .. } => *is_refused,
        }
    }

    pub(crate) fn receipt(&self, call_id: CallId) -> Option<Receipt> {
        match self {
            Self::Acknowledged { receipt, .. } => Some(receipt.of(call_id)),
            Self::Released { .. } | Self::Transferred { .. } => None,
        }
    }

    fn into_end(self, call_id: CallId) -> PurchaseEnd {
        match self {
            Self::Acknowledged { receipt, signature, status, total_us, owner_us, upstream_us } => {
                PurchaseEnd::Acknowledged {
                    receipt: Box::new(receipt.of(call_id)),
                    signature,
                    outcome: receipt.outcome,
                    status,
                    timing: Timing { total_us, owner_us, upstream_us },
                }
            }
            Self::Released { reason, in_doubt, is_refused, status } => PurchaseEnd::Released {
                reason,
                is_refused: is_refused == Some(true),
                in_doubt: in_doubt == Some(true),
                status,
            },
            Self::Transferred { transaction, status, total_us, is_seen, .. } => PurchaseEnd::Transferred {
                transaction: transaction.map(Into::into),
                status,
                timing: Timing { total_us, ..Timing::default() },
                // Only what the chain showed had no time.
                is_seen: is_seen.unwrap_or(total_us == 0),
            },
        }
    }
}

impl StoredReceipt {
    fn of(&self, call_id: CallId) -> Receipt {
        Receipt {
            channel: self.channel,
            call_id,
            request_hash: self.request_hash,
            response_hash: self.response_hash,
            outcome: self.outcome.code(),
            charged: self.charged,
            spent_total: self.spent_total,
            time_secs: self.time_secs,
        }
    }
}

impl StoredPurchase {
    pub(crate) fn new(promise: StoredPromise, closed_secs: u64, end: StoredEnd) -> Self {
        let channel = promise.channel();
        let StoredPromise {
            service,
            owner,
            secret,
            time_secs,
            price,
            request_hash,
            method,
            path,
            charge_policy,
            ..
        } = promise;
        Self {
            service,
            owner,
            channel,
            secret,
            method,
            path,
            request_hash,
            price,
            promised_secs: time_secs,
            closed_secs,
            end,
            charge_policy,
        }
    }

    /// Ended uncharged while a copy of it could not be accounted for.
    pub(crate) fn is_in_doubt(&self) -> bool {
        matches!(self.end, StoredEnd::Released { in_doubt: Some(true), .. })
    }

    /// Charged or answered: its call id is used up.
    pub(crate) fn is_final(&self) -> bool {
        match &self.end {
            StoredEnd::Acknowledged { receipt, .. } => {
                !receipt.charged.is_zero() || receipt.outcome.is_the_services_answer()
            }
            StoredEnd::Released { .. } => false,
            StoredEnd::Transferred { .. } => true,
        }
    }

    /// Returns whether a transfer of its own was to pay it, and no channel.
    pub(crate) fn is_by_transfer(&self) -> bool {
        self.channel.is_none() && !self.price.is_zero()
    }

    pub(crate) fn into_purchase(self, call_id: CallId) -> Purchase {
        Purchase {
            call_id,
            service: self.service,
            owner: self.owner,
            channel: self.channel.unwrap_or(ChannelId::NONE),
            secret: self.secret,
            method: self.method,
            path: self.path,
            request_hash: self.request_hash,
            price: self.price,
            charge_policy: self.charge_policy.unwrap_or(ChargePolicy::Answered),
            charged: self.end.charged(),
            promised_secs: self.promised_secs,
            closed_secs: self.closed_secs,
            end: self.end.into_end(call_id),
        }
    }
}
