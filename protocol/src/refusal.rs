//! Every reason for which an owner's node may refuse a call, with stable codes.
//!
//! A refusal is free: it means that the upstream was not reached for this copy of the call. What became of other
//! copies it does not say (see [`crate::resolution`]).

use minicbor::{CborLen, Decode, Encode};

use crate::{Listing, Signed};

/// Why. The numbers are part of the protocol and never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum RefusalCode {
    #[n(0)]
    Malformed,
    #[n(1)]
    UnknownService,
    #[n(2)]
    UnknownOperation,
    #[n(3)]
    MethodNotAllowed,
    #[n(4)]
    BadParameter,
    #[n(5)]
    ServicePaused,
    #[n(6)]
    PriceChanged,
    #[n(7)]
    PaymentRequired,
    #[n(8)]
    SchemeUnsupported,
    #[n(9)]
    UnknownChannel,
    #[n(10)]
    BadSignature,
    #[n(11)]
    VoucherAboveDeposit,
    #[n(12)]
    InsufficientVoucher,
    #[n(13)]
    ChannelClosing,
    #[n(14)]
    ChainStale,
    #[n(15)]
    CallIdConflict,
    #[n(16)]
    Busy,
    #[n(17)]
    RateLimited,
    #[n(18)]
    TooLarge,
    /// The owner cannot store what it would have to promise; it fails closed.
    #[n(19)]
    Unavailable,
    /// A call that must not be repeated was interrupted by a crash; whether it ran is not known. Not charged.
    #[n(20)]
    MayHaveRun,
    /// The channel's close delay is shorter than the one that the owner lists.
    #[n(21)]
    DelayTooShort,
    /// The channel's deposit is below what the owner serves, or larger ones have taken all places.
    #[n(22)]
    DepositTooSmall,
    /// The chain may still take back the deposit that would pay for the call.
    #[n(23)]
    DepositNotSafe,
    /// The owner's wallet cannot pay the chain for the claim of what it would earn.
    #[n(24)]
    OwnerCannotClaim,
    /// The owner counts less than its own receipts, as the payer holds them: it was restored from a backup. It serves
    /// again when it is shown the newest one.
    #[n(25)]
    BooksBehind,
}

impl RefusalCode {
    /// The name used in logs, metrics and `docs/problems.md`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownService => "unknown_service",
            Self::UnknownOperation => "unknown_operation",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::BadParameter => "bad_parameter",
            Self::ServicePaused => "service_paused",
            Self::PriceChanged => "price_changed",
            Self::PaymentRequired => "payment_required",
            Self::SchemeUnsupported => "scheme_unsupported",
            Self::UnknownChannel => "unknown_channel",
            Self::BadSignature => "bad_signature",
            Self::VoucherAboveDeposit => "voucher_above_deposit",
            Self::InsufficientVoucher => "insufficient_voucher",
            Self::ChannelClosing => "channel_closing",
            Self::ChainStale => "chain_stale",
            Self::CallIdConflict => "call_id_conflict",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::MayHaveRun => "may_have_run",
            Self::DelayTooShort => "delay_too_short",
            Self::DepositTooSmall => "deposit_too_small",
            Self::DepositNotSafe => "deposit_not_safe",
            Self::OwnerCannotClaim => "owner_cannot_claim",
            Self::BooksBehind => "books_behind",
        }
    }
}

/// A refusal as it travels.
#[derive(Clone, Debug, Encode, Decode, CborLen, PartialEq, Eq)]
#[cbor(map)]
pub struct Refusal {
    #[n(0)]
    pub code: RefusalCode,
    /// One line for a person: what was wrong, what was expected.
    #[n(1)]
    pub detail: String,
    /// When trying again may help.
    #[n(2)]
    pub retry_after_ms: Option<u64>,
    /// With [`RefusalCode::PriceChanged`]: what is offered now.
    #[n(3)]
    pub listing: Option<Signed<Listing>>,
}

impl Refusal {
    #[must_use]
    pub fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after_ms: None, listing: None }
    }

    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }
}
