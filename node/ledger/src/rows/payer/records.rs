//! Records of the consumer's half: channels, promises, acknowledgements and purchases.

use farthing_values::{
    Address, CallId, CallRequest, ChannelConfig, ChannelId, ChargePolicy, Hash, Method, Outcome, Payment,
    Receipt, RefusalCode, ServiceId, Signature, Usdc, Verified, channel::PayerState,
};

/// The amounts that could be spent in a day when a price was held against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayLimits {
    pub node: Usdc,
    /// With the secret that pays: its own limit and the node's for each secret, whichever is lower.
    pub secret: Usdc,
}

/// The view that the chain and this node have of a channel this node pays on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayerChannelFacts {
    pub id: ChannelId,
    pub config: ChannelConfig,
    /// Confirmed. It falls when the channel is closed or withdrawn from.
    pub deposited: Usdc,
    /// Paid out. It never falls.
    pub claimed: Usdc,
    /// The number of times the channel was emptied, where the chain was read.
    pub round: Option<u32>,
    /// Closed, closing or distrusted. Once set it stays until [`crate::Ledger::resume_payer_channel`], so that a
    /// chain update cannot revive a channel that was stopped for a reason of its own.
    pub stopped: bool,
}

/// A channel with the ledger's own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayerChannelRow {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub deposited: Usdc,
    pub claimed: Usdc,
    /// As in [`PayerChannelFacts::round`]; `None` in ledgers of before.
    pub round: Option<u32>,
    pub stopped: bool,
    /// Sum of the charges of acknowledged receipts.
    pub acknowledged: Usdc,
    /// The highest total of a receipt that is kept: see [`crate::Ledger::newest_receipt`].
    pub receipted: Usdc,
    /// The highest cumulative amount ever signed.
    pub signed: Usdc,
    /// Sum of the prices of open promises.
    pub in_flight: Usdc,
    /// The time at which the newest promise on it was made or its deposit last rose, in seconds since the Unix epoch;
    /// `None` in ledgers of before.
    pub used_secs: Option<u64>,
    /// This ledger knows a promise on it.
    pub is_promised_on: bool,
    /// A crash, or the backup that this ledger came from, may have kept out calls.
    pub may_lack_calls: bool,
}

/// The outcome of an update of a channel's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelChange {
    pub row: PayerChannelRow,
    /// A day, and the amount that the row's change adds to its limits as an adjustment.
    pub counted: Option<(u32, Usdc)>,
    /// The amount that the chain's word alone had shown as charged, and shows no more.
    pub let_go: Usdc,
    /// The part of it that no longer counts for today's limits.
    pub uncounted: Usdc,
}

impl PayerChannelRow {
    /// The channel as the rules of promising see it.
    pub fn state(&self) -> PayerState {
        PayerState {
            deposited: self.deposited,
            acknowledged: self.acknowledged,
            in_flight: self.in_flight,
            signed: self.signed,
            stopped: self.stopped,
        }
    }
}

/// A call this node is about to pay for, with everything needed to ask again after a crash; its body is with whoever
/// repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Call id, service, operation, price and payment, as they are sent.
    pub request: CallRequest,
    /// [`CallRequest::request_hash`] of it and its body.
    pub request_hash: Hash,
    pub owner: Address,
    /// Name of the secret whose budget pays.
    pub secret: String,
    /// Seconds since the Unix epoch; its day is the one that is charged.
    pub time_secs: u64,
    /// The limits that its price was held against; `None` where that was another promise for the same call.
    pub limits: Option<DayLimits>,
    /// The highest total that the owner had told before. What was charged by then was not charged for this promise,
    /// but for an earlier one of the same call that this ledger lacks.
    pub seen_total: Usdc,
    /// The answers that the listing charged for when the call was made, which bounds what a late receipt may say.
    pub charge_policy: ChargePolicy,
}

impl Promise {
    /// [`ChannelId::NONE`] for a free call.
    pub const fn channel(&self) -> ChannelId {
        match self.request.payment {
            Payment::Free => ChannelId::NONE,
            Payment::Channel { channel, .. } => channel,
        }
    }

    /// Days since the Unix epoch in UTC.
    pub fn day(&self) -> u32 {
        day_of(self.time_secs)
    }

    /// Returns whether a transfer of its own pays it, and no channel: no owner is asked how it ended.
    pub const fn is_by_transfer(&self) -> bool {
        matches!(self.request.payment, Payment::Free) && !self.request.price.is_zero()
    }
}

/// The parts of a call's time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// From the request's arrival at this node to its answer.
    pub total_us: u64,
    /// Of that, at the owner's node, and of that, at its upstream.
    pub owner_us: u64,
    pub upstream_us: u64,
}

/// The end of a call, with the owner's word on it.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    pub receipt: Verified<Receipt>,
    /// As answered by the service; 0 where no answer came with the receipt.
    pub status: u16,
    pub timing: Timing,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
}

/// The end of a call that was paid by a transfer of its own, to a server that gives no receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferEnd {
    /// The transaction that paid, where it is known.
    pub transaction: Option<Hash>,
    /// As the server answered; 0 where no answer came.
    pub status: u16,
    pub total_us: u64,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
    /// True if the chain showed it; false if only the server says so.
    pub is_seen: bool,
}

/// The reason that a promise is closed without a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncharged {
    pub reason: String,
    /// The owner's node got the call and refused it before the service got it.
    pub is_refused: bool,
    /// The status of an answer that came although nobody took its payment.
    pub status: Option<u16>,
}

impl Uncharged {
    /// A refusal of the owner's node, by its name.
    pub fn refused(code: RefusalCode) -> Self {
        let is_refused = code != RefusalCode::MayHaveRun;
        Self { reason: code.name().to_owned(), is_refused, status: None }
    }

    /// A payment that nobody took in its time, with the status of the answer if one came.
    pub fn not_taken(reason: &str, status: Option<u16>) -> Self {
        Self { status, ..reason.into() }
    }
}

impl From<String> for Uncharged {
    fn from(reason: String) -> Self {
        Self { reason, is_refused: false, status: None }
    }
}

impl From<&str> for Uncharged {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

/// The way in which a promise ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurchaseEnd {
    Acknowledged {
        receipt: Box<Receipt>,
        signature: Signature,
        outcome: Outcome,
        status: u16,
        timing: Timing,
    },
    /// Not charged, for this reason.
    Released {
        reason: String,
        /// The owner's node got the call and refused it before the service got it; false in records of before, where it was not noted.
        is_refused: bool,
        /// A copy of the call was lost and may arrive late: a receipt for it is taken later, too.
        in_doubt: bool,
        /// The status of an answer that came although nobody took its payment.
        status: Option<u16>,
    },
    /// Paid by a transfer of its own.
    Transferred {
        transaction: Option<Hash>,
        /// 0 where no answer came.
        status: u16,
        timing: Timing,
        /// True if the chain showed it; false if only the server says so.
        is_seen: bool,
    },
}

impl PurchaseEnd {
    /// The status that the service answered; `None` where this node has none, as of a receipt that came late.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Acknowledged { status, .. } | Self::Transferred { status, .. } => {
                Some(*status).filter(|status| *status != 0)
            }
            Self::Released { status, .. } => *status,
        }
    }

    /// The parts of its time, as far as they were measured.
    pub fn timing(&self) -> Timing {
        match self {
            Self::Acknowledged { timing, .. } | Self::Transferred { timing, .. } => *timing,
            Self::Released { .. } => Timing::default(),
        }
    }

    /// Returns whether the owner's node was interrupted while the call ran: it is free, and the service may have carried it out.
    pub fn may_have_run(&self) -> bool {
        matches!(self, Self::Released { reason, .. } if reason == RefusalCode::MayHaveRun.name())
    }

    /// Returns whether the call id is used up: the service answered, or was paid by a transfer.
    pub const fn is_answered(&self) -> bool {
        match self {
            Self::Acknowledged { outcome, .. } => outcome.is_the_services_answer(),
            Self::Transferred { .. } => true,
            Self::Released { .. } => false,
        }
    }
}

/// A closed promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    pub call_id: CallId,
    pub service: ServiceId,
    pub owner: Address,
    pub channel: ChannelId,
    pub secret: String,
    pub method: Method,
    pub path: String,
    pub request_hash: Hash,
    pub price: Usdc,
    pub charge_policy: ChargePolicy,
    pub charged: Usdc,
    pub promised_secs: u64,
    pub closed_secs: u64,
    pub end: PurchaseEnd,
}

impl Purchase {
    /// Returns whether a transfer of its own was to pay it, and no channel.
    pub fn is_by_transfer(&self) -> bool {
        self.channel == ChannelId::NONE && !self.price.is_zero()
    }
}

/// Days since the Unix epoch in UTC.
pub fn day_of(time_secs: u64) -> u32 {
    u32::try_from(time_secs / 86_400).unwrap_or(u32::MAX)
}
