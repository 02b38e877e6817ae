//! The stored row of a channel that this node pays on, and its arithmetic.

use farthing_values::{ChannelConfig, ChannelId, Receipt, Signature, Usdc, Verified};
use minicbor::{Decode, Encode};

use super::{PayerChannelFacts, PayerChannelRow};

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredPayerChannel {
    #[n(0)]
    pub(crate) config: ChannelConfig,
    #[n(1)]
    pub(crate) deposited: Usdc,
    /// The highest deposit ever confirmed: what `signed` was checked against before a withdrawal.
    #[n(2)]
    pub(crate) deposited_peak: Usdc,
    #[n(3)]
    pub(crate) claimed: Usdc,
    #[n(4)]
    pub(crate) stopped: bool,
    #[n(5)]
    pub(crate) acknowledged: Usdc,
    #[n(6)]
    pub(crate) signed: Usdc,
    /// Acknowledged that no purchase in this ledger explains: the sum of its adjustments.
    #[n(7)]
    pub(crate) opening: Usdc,
    /// Charges of purchases whose rows were pruned.
    #[n(8)]
    pub(crate) pruned: Usdc,
    /// The time of the newest promise on it, in seconds since the Unix epoch.
    #[n(9)]
    pub(crate) promised_secs: Option<u64>,
    /// The time at which the deposit was last seen to rise, in seconds since the Unix epoch.
    #[n(10)]
    filled_secs: Option<u64>,
    /// The owner's receipt with the highest total, for an owner that loses its own records.
    #[n(11)]
    newest: Option<StoredNewest>,
    /// The part of `opening` that rests on the chain's word alone: neither a receipt nor a signature shows it.
    #[n(12)]
    pub(crate) carried: Option<Usdc>,
    /// The number of times it was emptied; `None` before that was noted.
    #[n(13)]
    pub(crate) round: Option<u32>,
    /// Set while calls may be lacking ([`super::mark_all`]); `None` for no.
    #[n(14)]
    may_lack_calls: Option<bool>,
    /// Set while it lacks none but calls whose promises this ledger refused; `None` for no.
    #[n(15)]
    lacks_refused: Option<bool>,
}

#[derive(Clone, Copy, Debug, Encode, Decode)]
#[cbor(map)]
struct StoredNewest {
    #[n(0)]
    receipt: Receipt,
    #[n(1)]
    signature: Signature,
}

impl StoredPayerChannel {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        Self {
            config: *config,
            deposited: Usdc::ZERO,
            deposited_peak: Usdc::ZERO,
            claimed: Usdc::ZERO,
            stopped: false,
            acknowledged: Usdc::ZERO,
            signed: Usdc::ZERO,
            opening: Usdc::ZERO,
            pruned: Usdc::ZERO,
            promised_secs: None,
            filled_secs: None,
            newest: None,
            carried: None,
            round: None,
            may_lack_calls: None,
            lacks_refused: None,
        }
    }

    pub(crate) fn may_lack_calls(&self) -> bool {
        self.may_lack_calls == Some(true)
    }

    /// Tells whether none are lacking but calls whose promises this ledger refused.
    pub(crate) fn lacks_refused(&self) -> bool {
        self.lacks_refused == Some(true)
    }

    /// Notes that calls may be lacking, for whatever reason.
    pub(crate) fn lack(&mut self) {
        (self.may_lack_calls, self.lacks_refused) = (Some(true), None);
    }

    /// Notes that a call is lacking whose promise is refused; others may be for another reason.
    pub(crate) fn lack_refused(&mut self) {
        if !self.may_lack_calls() {
            (self.may_lack_calls, self.lacks_refused) = (Some(true), Some(true));
        }
    }

    /// Notes that none is lacking any more.
    pub(crate) fn lack_none(&mut self) {
        (self.may_lack_calls, self.lacks_refused) = (None, None);
    }

    /// Takes over what the chain says.
    pub(crate) fn observe(&mut self, channel: &PayerChannelFacts, now_secs: u64) {
        let is_new = self.deposited_peak.is_zero();
        if channel.deposited > self.deposited {
            self.filled_secs = Some(now_secs);
        }
        self.deposited = channel.deposited;
        self.round = channel.round.or(self.round);
        // It falls when the chain replaces the block of a claim: what only that showed was never charged.
        self.let_go(self.claimed.saturating_sub(channel.claimed));
        self.claimed = channel.claimed;
        self.deposited_peak = self.deposited_peak.max(channel.deposited).max(self.claimed);
        // The contract pays nothing that this wallet did not sign.
        self.signed = self.signed.max(self.claimed);
        self.stopped |= channel.stopped;
        if is_new {
            self.carry(self.claimed);
        }
    }

    /// Acknowledges a total that the chain alone shows.
    pub(crate) fn carry(&mut self, total: Usdc) {
        let before = self.opening;
        self.recover(total, total);
        let carried = self.opening.saturating_sub(before);
        if !carried.is_zero() {
            self.carried = Some(self.carried.unwrap_or_default().saturating_add(carried));
        }
    }

    /// Takes back so much of what the chain alone showed.
    pub(crate) fn let_go(&mut self, part: Usdc) {
        let Some(carried) = self.carried else { return };
        let part = part.min(carried).min(self.opening).min(self.acknowledged);
        self.carried = Some(carried.saturating_sub(part)).filter(|left| !left.is_zero());
        self.opening = self.opening.saturating_sub(part);
        self.acknowledged = self.acknowledged.saturating_sub(part);
    }

    /// The owner shows this wallet's signature up to `proven`: what is carried beyond that is let go, and the rest stays.
    pub(crate) fn prove(&mut self, proven: Usdc) {
        self.let_go(self.acknowledged.saturating_sub(proven));
        self.carried = None;
    }

    /// Raises what is acknowledged and signed; the difference is opening balance.
    pub(crate) fn recover(&mut self, acknowledged: Usdc, signed: Usdc) {
        let raised = acknowledged.max(self.acknowledged);
        self.opening = self.opening.saturating_add(raised.saturating_sub(self.acknowledged));
        self.acknowledged = raised;
        self.signed = self.signed.max(signed);
        // What this wallet signed was within a deposit then.
        self.deposited_peak = self.deposited_peak.max(self.signed);
    }

    /// Tells whether it holds nothing, and nothing was ever promised on it or counts on it.
    pub(crate) fn is_unused(&self) -> bool {
        let sums = [self.deposited, self.claimed, self.acknowledged, self.opening, self.pruned];
        let is_promised_on = self.promised_secs.is_some() || self.newest.is_some();
        !self.stopped && !is_promised_on && sums.into_iter().all(Usdc::is_zero)
    }

    /// Keeps a receipt when its total is the highest, as far as this wallet has signed that much: nothing beyond it is
    /// the owner's due, whatever it says.
    pub(crate) fn note(&mut self, receipt: &Verified<Receipt>) {
        if receipt.spent_total > self.receipted() && receipt.spent_total <= self.signed {
            let signature = *receipt.signature();
            self.newest = Some(StoredNewest { receipt: **receipt, signature });
        }
    }

    pub(crate) fn newest(&self) -> Option<(Receipt, Signature, Usdc)> {
        let StoredNewest { receipt, signature } = self.newest?;
        Some((receipt, signature, self.acknowledged.min(receipt.spent_total)))
    }

    fn receipted(&self) -> Usdc {
        self.newest.map_or(Usdc::ZERO, |newest| newest.receipt.spent_total)
    }

    pub(crate) fn into_row(self, id: ChannelId, in_flight: Usdc) -> PayerChannelRow {
        PayerChannelRow {
            id,
            config: self.config,
            deposited: self.deposited,
            claimed: self.claimed,
            round: self.round,
            stopped: self.stopped,
            acknowledged: self.acknowledged,
            receipted: self.receipted(),
            signed: self.signed,
            in_flight,
            used_secs: self.promised_secs.max(self.filled_secs),
            is_promised_on: self.promised_secs.is_some(),
            may_lack_calls: self.may_lack_calls(),
        }
    }
}
