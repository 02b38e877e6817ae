//! Every reason for which an owner's node may refuse a call, with stable codes.
//!
//! A refusal is free: it means that the upstream was not reached for this copy of the call. What became of other
//! copies it does not say (see `farthing_protocol::resolution`).

use minicbor::{CborLen, Decode, Encode};

use crate::{Listing, Signed};

/// `number code = name;` with its meaning above it.
macro_rules! refusal_codes {
    ($($(#[$about:meta])* $number:literal $code:ident = $name:literal;)+) => {
        /// The reason for a refusal. The numbers are part of the protocol and never change meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
        #[cbor(index_only)]
        pub enum RefusalCode {
            $($(#[$about])* #[n($number)] $code,)+
        }

        impl RefusalCode {
            /// The name used in logs, metrics and `docs/problems.md`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }
        }
    };
}

refusal_codes! {
    0 Malformed = "malformed";
    1 UnknownService = "unknown_service";
    2 UnknownOperation = "unknown_operation";
    3 MethodNotAllowed = "method_not_allowed";
    4 BadParameter = "bad_parameter";
    5 ServicePaused = "service_paused";
    6 PriceChanged = "price_changed";
    7 PaymentRequired = "payment_required";
    8 SchemeUnsupported = "scheme_unsupported";
    9 UnknownChannel = "unknown_channel";
    10 BadSignature = "bad_signature";
    11 VoucherAboveDeposit = "voucher_above_deposit";
    12 InsufficientVoucher = "insufficient_voucher";
    13 ChannelClosing = "channel_closing";
    14 ChainStale = "chain_stale";
    15 CallIdConflict = "call_id_conflict";
    16 Busy = "busy";
    17 RateLimited = "rate_limited";
    18 TooLarge = "too_large";
    /// The owner cannot store what it would have to promise; it fails closed.
    19 Unavailable = "unavailable";
    /// A call that must not be repeated was interrupted by a crash; whether it ran is not known. Not charged.
    20 MayHaveRun = "may_have_run";
    /// The channel's close delay is shorter than the one that the owner lists.
    21 DelayTooShort = "delay_too_short";
    /// The channel's deposit is below what the owner serves, or larger ones have taken all places.
    22 DepositTooSmall = "deposit_too_small";
    /// The chain may still take back the deposit that would pay for the call.
    23 DepositNotSafe = "deposit_not_safe";
    /// The owner's wallet cannot pay the chain for the claim of what it would earn.
    24 OwnerCannotClaim = "owner_cannot_claim";
    /// The owner counts less than its own receipts, as the payer holds them: it was restored from a backup. It serves
    /// again when it is shown the newest one.
    25 BooksBehind = "books_behind";
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
    /// The time after which trying again may help.
    #[n(2)]
    pub retry_after_ms: Option<u64>,
    /// With [`RefusalCode::PriceChanged`]: what is offered now.
    #[n(3)]
    pub listing: Option<Signed<Listing>>,
}

impl Refusal {
    pub fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after_ms: None, listing: None }
    }

    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u64) -> Self {
        self.retry_after_ms = Some(retry_after_ms);
        self
    }
}
