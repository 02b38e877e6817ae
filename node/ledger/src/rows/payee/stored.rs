//! The stored forms of the owner's half, and the arithmetic of a channel's row.

use std::collections::BTreeMap;

use bytes::Bytes;
use farthing_values::{
    Address, CallId, ChannelConfig, ChannelId, Hash, Method, Outcome, ServiceId, Signature, Usdc,
};
use minicbor::{Decode, Encode};

use super::{AcceptedCall, Call, CallRow, Ending, PayeeChannelFacts, PayeeChannelRow, ServedRow, receipt};
use crate::error::{LedgerError, Result};

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredPayeeChannel {
    #[n(0)]
    pub(crate) config: ChannelConfig,
    #[n(1)]
    pub(crate) deposited: Usdc,
    /// The highest deposit ever confirmed: what `best` was checked against before a withdrawal.
    #[n(2)]
    pub(crate) deposited_peak: Usdc,
    #[n(3)]
    pub(crate) claimed: Usdc,
    #[n(4)]
    closing: bool,
    #[n(5)]
    pub(crate) best: Usdc,
    #[n(6)]
    pub(crate) best_signature: Option<Signature>,
    #[n(7)]
    pub(crate) spent: Usdc,
    /// Spent that no call in this ledger explains, because it was charged before the ledger was lost or restored: the
    /// sum of its adjustments.
    #[n(8)]
    pub(crate) opening: Usdc,
    /// Charges of calls whose rows were pruned.
    #[n(9)]
    pub(crate) pruned: Usdc,
    /// [`Ending::Closes`].
    #[n(12)]
    closes: Option<bool>,
    /// Spent that the payer had withdrawn when it was last looked at, as booked.
    #[n(13)]
    pub(crate) lost: Option<Usdc>,
    /// [`Ending::SignedAway`].
    #[n(14)]
    signed_until_secs: Option<u64>,
    /// Of either; `None` in ledgers of before, where it was not noted.
    #[n(15)]
    signed_round: Option<u32>,
    /// The part of `opening` that rests on the chain's word alone, and that no receipt counts on.
    #[n(16)]
    carried: Option<Usdc>,
    #[n(17)]
    opening_version: Option<u64>,
    /// [`PayeeChannelRow::brought`].
    #[n(18)]
    brought_until_secs: Option<u64>,
    #[n(19)]
    brought_round: Option<u32>,
}

impl StoredPayeeChannel {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        Self {
            config: *config,
            deposited: Usdc::ZERO,
            deposited_peak: Usdc::ZERO,
            claimed: Usdc::ZERO,
            closing: false,
            best: Usdc::ZERO,
            best_signature: None,
            spent: Usdc::ZERO,
            opening: Usdc::ZERO,
            pruned: Usdc::ZERO,
            closes: None,
            lost: None,
            signed_until_secs: None,
            signed_round: None,
            carried: None,
            opening_version: None,
            brought_until_secs: None,
            brought_round: None,
        }
    }

    /// Takes over what the chain says.
    pub(crate) fn observe(&mut self, channel: &PayeeChannelFacts) {
        self.deposited = channel.deposited;
        self.closing = channel.closing;
        // It falls when the chain replaces the block of a claim; what was taken back is due again, and what only that
        // block showed was never charged.
        let fallen = self.claimed.saturating_sub(channel.claimed);
        self.let_go(fallen.min(self.carried.unwrap_or_default()));
        self.claimed = channel.claimed;
        // The contract never pays beyond a deposit, so what was paid out had been deposited.
        self.deposited_peak = self.deposited_peak.max(channel.deposited).max(self.claimed);
        // The voucher behind that claim is not in this ledger.
        let carried = self.recover(self.claimed);
        if !carried.is_zero() {
            self.carried = Some(self.carried.unwrap_or_default().saturating_add(carried));
        }
    }

    /// Raises what is charged to `total`, and gives what that adds to the opening balance.
    pub(crate) fn recover(&mut self, total: Usdc) -> Usdc {
        let unexplained = total.saturating_sub(self.spent);
        self.spent = self.spent.saturating_add(unexplained);
        self.set_opening(self.opening.saturating_add(unexplained));
        unexplained
    }

    /// As [`Self::recover`], to a total of this wallet's own receipt: all of it is signed, whatever the chain says later.
    pub(crate) fn recover_signed(&mut self, total: Usdc) -> Usdc {
        if total >= self.spent {
            self.carried = None;
        }
        self.recover(total)
    }

    fn let_go(&mut self, part: Usdc) {
        self.carried = self.carried.map(|carried| carried.saturating_sub(part));
        self.spent = self.spent.saturating_sub(part);
        self.set_opening(self.opening.saturating_sub(part));
    }

    fn set_opening(&mut self, opening: Usdc) {
        if opening != self.opening {
            self.opening = opening;
            self.opening_version = Some(self.opening_version.unwrap_or_default().saturating_add(1));
        }
    }

    /// The highest total that a voucher or a payout proves.
    pub(crate) fn proven(&self) -> Usdc {
        self.best.max(self.claimed)
    }

    /// Books what cannot be claimed any more, and returns it where it has changed since the last time.
    pub(crate) fn book_loss(&mut self) -> Option<Usdc> {
        let lost = self.spent.saturating_sub(self.deposited.max(self.claimed));
        let booked = std::mem::replace(&mut self.lost, Some(lost).filter(|lost| !lost.is_zero()));
        (lost != booked.unwrap_or_default()).then_some(lost)
    }

    /// Ends the duty of a signed close that was brought, and keeps its words.
    pub(crate) fn end_brought(&mut self, close: Ending) {
        self.end(Ending::None);
        if let Ending::SignedAway { until_secs, round } = close {
            (self.brought_until_secs, self.brought_round) = (Some(until_secs), Some(round));
        }
    }

    pub(crate) fn end(&mut self, ending: Ending) {
        (self.brought_until_secs, self.brought_round) = (None, None);
        (self.closes, self.signed_until_secs, self.signed_round) = match ending {
            Ending::None => (None, None, None),
            Ending::Closes { round } => (Some(true), None, round),
            Ending::SignedAway { until_secs, round } => (None, Some(until_secs), Some(round)),
        };
    }

    pub(crate) fn ending(&self) -> Ending {
        match (self.closes, self.signed_until_secs) {
            (Some(true), _) => Ending::Closes { round: self.signed_round },
            (_, Some(until_secs)) => {
                Ending::SignedAway { until_secs, round: self.signed_round.unwrap_or(u32::MAX) }
            }
            (_, None) => Ending::None,
        }
    }

    /// Takes a verified voucher when it is the highest. The call that brings it was admitted, and served since: what the
    /// chain shows by now takes nothing of that, so the deposit is the highest that was ever shown.
    pub(crate) fn promise(&mut self, cumulative: Usdc, signature: Signature) -> Result<()> {
        if cumulative > self.best {
            let deposited = self.deposited_peak;
            if cumulative > deposited {
                return Err(LedgerError::VoucherAboveDeposit { cumulative, deposited });
            }
            self.best = cumulative;
            self.best_signature = Some(signature);
        }
        Ok(())
    }

    /// Adds a charge within the best voucher. What the deposit does not cover any more is lost.
    pub(crate) fn charge(&mut self, charged: Usdc) -> Result<()> {
        let (covered, spent) = (self.best, self.spent);
        let total = spent.checked_add(charged).filter(|total| charged.is_zero() || *total <= covered);
        self.spent = total.ok_or(LedgerError::Overdrawn { spent, charged, covered })?;
        if !charged.is_zero() {
            // A receipt counts on it from now on.
            self.carried = None;
        }
        Ok(())
    }

    pub(crate) fn into_row(self, id: ChannelId) -> PayeeChannelRow {
        PayeeChannelRow {
            id,
            config: self.config,
            deposited: self.deposited,
            claimed: self.claimed,
            closing: self.closing,
            best: self.proven(),
            best_signature: self.best_signature.filter(|_| self.best >= self.claimed),
            spent: self.spent,
            opening: self.opening,
            opening_version: self.opening_version.unwrap_or_default(),
            ending: self.ending(),
            lost: self.lost.unwrap_or_default(),
            brought: self
                .brought_until_secs
                .zip(self.brought_round)
                .map(|(until_secs, round)| Ending::SignedAway { until_secs, round }),
        }
    }
}

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredCall {
    #[n(0)]
    pub(crate) service: ServiceId,
    #[n(1)]
    pub(crate) method: Method,
    #[n(2)]
    path: String,
    #[cbor(n(3), with = "minicbor::bytes")]
    pub(crate) request_hash: Hash,
    #[n(4)]
    pub(crate) time_secs: u64,
    #[n(5)]
    pub(crate) state: StoredState,
}

#[derive(Clone, Debug, Encode, Decode)]
pub(crate) enum StoredState {
    #[n(0)]
    Accepted,
    #[n(1)]
    Done(#[n(0)] StoredDone),
}

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredDone {
    #[n(0)]
    pub(crate) channel: ChannelId,
    #[cbor(n(1), with = "minicbor::bytes")]
    response_hash: Hash,
    #[n(2)]
    pub(crate) price: Usdc,
    #[n(3)]
    pub(crate) charged: Usdc,
    #[n(4)]
    pub(crate) outcome: Outcome,
    #[n(5)]
    status: u16,
    #[n(6)]
    headers: BTreeMap<String, String>,
    /// The channel's total including this call.
    #[n(7)]
    pub(crate) spent_total: Usdc,
    /// The time at which the service was asked once more for a lost answer.
    #[n(8)]
    pub(crate) repeated_secs: Option<u64>,
    /// [`Call::fault`].
    #[n(9)]
    fault: Option<u8>,
    /// [`Call::upstream_us`].
    #[n(10)]
    pub(crate) upstream_us: Option<u64>,
    /// The transaction that paid it, of a call on no channel that was charged.
    #[n(11)]
    pub(crate) paid_by: Option<minicbor::bytes::ByteArray<32>>,
    /// [`CallRow::is_lost`].
    #[n(12)]
    pub(crate) is_lost: Option<bool>,
}

/// The place that a call is charged at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargedOn {
    /// [`ChannelId::NONE`] for a free call.
    Channel(ChannelId),
    /// A transaction of the payer's own pays the call, and nothing else.
    Transaction(Hash),
}

impl ChargedOn {
    /// Returns whether nothing pays for a call.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::Channel(ChannelId::NONE)
    }
}

impl StoredDone {
    /// [`CallRow::earned`].
    pub(crate) fn earned(&self) -> Usdc {
        if self.is_lost == Some(true) { Usdc::ZERO } else { self.charged }
    }

    pub(crate) fn may_be_retried(&self, method: Method) -> bool {
        method.is_safe() && self.charged.is_zero() && !self.outcome.is_the_services_answer()
    }
}

impl StoredCall {
    pub(crate) fn accepted(accepted: &AcceptedCall) -> Self {
        Self {
            service: accepted.service,
            method: accepted.method,
            path: accepted.path.clone(),
            request_hash: accepted.request_hash,
            time_secs: accepted.time_secs,
            state: StoredState::Accepted,
        }
    }

    pub(crate) fn done(call: &Call, charged_on: ChargedOn, spent_total: Usdc) -> Self {
        let (channel, paid_by) = match charged_on {
            ChargedOn::Channel(channel) => (channel, None),
            ChargedOn::Transaction(hash) => (ChannelId::NONE, Some(hash.into())),
        };
        Self {
            service: call.service,
            method: call.method,
            path: call.path.clone(),
            request_hash: call.request_hash,
            time_secs: call.time_secs,
            state: StoredState::Done(StoredDone {
                channel,
                response_hash: call.response_hash,
                price: call.price,
                charged: call.charged,
                outcome: call.outcome,
                status: call.status,
                headers: call.headers.clone(),
                spent_total,
                repeated_secs: None,
                fault: call.fault,
                upstream_us: call.upstream_us,
                paid_by,
                is_lost: None,
            }),
        }
    }

    pub(crate) fn into_served(self, payer: Address, call_id: CallId, body: Option<Bytes>) -> ServedRow {
        let Self { service, method, path, request_hash, time_secs, state } = self;
        let done = match state {
            StoredState::Accepted => {
                let accepted =
                    AcceptedCall { payer, call_id, service, method, path, request_hash, time_secs };
                return ServedRow::Accepted(accepted);
            }
            StoredState::Done(done) => done,
        };
        let body_bytes = body.as_ref().map_or(0, |body| body.len() as u64);
        let call = Call {
            call_id,
            service,
            method,
            path,
            request_hash,
            response_hash: done.response_hash,
            price: done.price,
            charged: done.charged,
            outcome: done.outcome,
            status: done.status,
            headers: done.headers,
            body,
            fault: done.fault,
            upstream_us: done.upstream_us,
            time_secs,
        };
        let receipt = receipt(&call, done.channel, done.spent_total);
        ServedRow::Done(Box::new(CallRow {
            payer,
            call,
            receipt,
            body_bytes,
            repeated_secs: done.repeated_secs,
            paid_by: done.paid_by.map(Into::into),
            is_lost: done.is_lost == Some(true),
        }))
    }
}
