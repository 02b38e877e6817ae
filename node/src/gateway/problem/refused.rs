//! The owner's refusals as problems: one row for each code.

use axum::http::StatusCode;
use farthing_protocol::RefusalCode;

use super::Problem;

/// The owner's refusals, as the script sees them.
pub(super) fn refused(code: RefusalCode) -> Problem {
    let (status, name, title, next) = match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => (
            StatusCode::BAD_REQUEST,
            "bad-parameter",
            "The owner's node refused a parameter",
            "Correct the named parameter and send the call again.",
        ),
        RefusalCode::UnknownService | RefusalCode::UnknownOperation => (
            StatusCode::NOT_FOUND,
            "unknown-path",
            "The owner no longer offers this",
            "Use a path of the service's current description.",
        ),
        RefusalCode::MethodNotAllowed => (
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "The path has no such method",
            "Use a method of the service's description.",
        ),
        RefusalCode::PriceChanged => {
            (StatusCode::CONFLICT, "price-changed", "The price has changed", "Send the call again.")
        }
        RefusalCode::CallIdConflict => (
            StatusCode::CONFLICT,
            "call-id-conflict",
            "This call id was used for another call",
            "Use a new call_id (or Idempotency-Key) for a different call.",
        ),
        RefusalCode::Busy | RefusalCode::RateLimited => (
            StatusCode::TOO_MANY_REQUESTS,
            "owner-busy",
            "The owner's node is busy",
            "Wait as Retry-After says, then send the call again.",
        ),
        RefusalCode::TooLarge => {
            (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The call is too large for the owner", "Send less.")
        }
        RefusalCode::ServicePaused | RefusalCode::Unavailable | RefusalCode::ChainStale => (
            StatusCode::SERVICE_UNAVAILABLE,
            "owner-unavailable",
            "The owner serves no calls at the moment",
            "Try again later.",
        ),
        RefusalCode::PaymentRequired
        | RefusalCode::SchemeUnsupported
        | RefusalCode::UnknownChannel
        | RefusalCode::BadSignature
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::InsufficientVoucher => (
            StatusCode::PAYMENT_REQUIRED,
            "payment-refused",
            "The owner refused the payment",
            "`farthing channel list` shows the channel with this owner.",
        ),
        RefusalCode::ChannelClosing => (
            StatusCode::SERVICE_UNAVAILABLE,
            "channel-closing",
            "The channel with this owner is being closed",
            "Try again in two minutes: the owner waits until the close is in a block that stays.",
        ),
        RefusalCode::DelayTooShort => (
            StatusCode::PAYMENT_REQUIRED,
            "channel-delay-too-short",
            "The channel can be withdrawn sooner than the owner allows",
            "Close it with `farthing channel close`; the next call opens one with the listed delay.",
        ),
        RefusalCode::DepositTooSmall => (
            StatusCode::PAYMENT_REQUIRED,
            "channel-too-small",
            "The channel holds less than the owner serves",
            "`farthing channel open SERVICE --deposit AMOUNT` adds to it.",
        ),
        RefusalCode::DepositNotSafe => (
            StatusCode::PAYMENT_REQUIRED,
            "deposit-not-safe",
            "The chain may still take back the channel's deposit",
            "Wait until the chain's layer 1 holds the deposit, usually some minutes, then send the call again.",
        ),
        RefusalCode::OwnerCannotClaim => (
            StatusCode::SERVICE_UNAVAILABLE,
            "owner-cannot-claim",
            "The owner cannot claim what it has earned",
            "Try again later, or look for another service with `farthing catalog search`.",
        ),
        RefusalCode::BooksBehind => (
            StatusCode::SERVICE_UNAVAILABLE,
            "owner-books-behind",
            "The owner's node lost records of calls that you paid",
            "Try again in a minute. If it lasts, compare the books with `farthing audit --with OWNER`.",
        ),
        RefusalCode::MayHaveRun => (
            StatusCode::BAD_GATEWAY,
            "may-have-run",
            "The call was interrupted and may have run",
            "Check its effect before you repeat it with a new call_id.",
        ),
    };
    Problem::new(status, name, title, next)
}
