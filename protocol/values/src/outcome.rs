//! Outcomes of a call at its owner, and who pays for which.

use minicbor::{CborLen, Decode, Encode};

use crate::Usdc;

/// The end of the owner's attempt to serve a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Outcome {
    /// The service answered with a status below 400.
    #[n(0)]
    Answered,
    /// The service answered with a 4xx status.
    #[n(1)]
    Declined,
    /// No connection to the upstream.
    #[n(2)]
    Unreachable,
    /// The upstream took longer than the deadline.
    #[n(3)]
    TimedOut,
    /// The upstream answered with a 5xx status.
    #[n(4)]
    ServerError,
    /// The answer exceeds the owner's limit.
    #[n(5)]
    Oversize,
    /// The answer cannot be passed on: a redirect, or a body that is not what its head promised.
    #[n(6)]
    BadAnswer,
}

impl Outcome {
    pub const ALL: [Self; 7] = [
        Self::Answered,
        Self::Declined,
        Self::Unreachable,
        Self::TimedOut,
        Self::ServerError,
        Self::Oversize,
        Self::BadAnswer,
    ];

    /// The stable number in receipts.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.code() == code)
    }

    /// Tells whether an answer with this status can have this outcome: a service's own answer is what its status says.
    #[must_use]
    pub const fn fits(self, status: u16) -> bool {
        match self {
            Self::Answered => matches!(status, 200..=399),
            Self::Declined => matches!(status, 400..=499),
            _ => true,
        }
    }

    /// The upstream gave an answer of its own that the caller receives as it is.
    #[must_use]
    pub const fn is_the_services_answer(self) -> bool {
        matches!(self, Self::Answered | Self::Declined)
    }

    /// Returns the most that the call may cost. A failed upstream costs nothing (invariant O4).
    #[must_use]
    pub const fn charge(self, policy: ChargePolicy, price: Usdc) -> Usdc {
        match (self, policy) {
            (Self::Answered, _) | (Self::Declined, ChargePolicy::Answered) => price,
            _ => Usdc::ZERO,
        }
    }
}

/// The answers that a listing charges for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum ChargePolicy {
    /// Only answers below 400.
    #[default]
    #[n(0)]
    Success,
    /// 4xx answers too: for services whose "not found" is the product.
    #[n(1)]
    Answered,
}
