//! The owner's refusals as problems: one row for each code.

use axum::http::StatusCode;
use farthing_protocol::RefusalCode;

use super::{
    BAD_GATEWAY, BAD_REQUEST, BUSY, CONFLICT, NO_METHOD, NOT_FOUND, PAYMENT, TOO_LARGE, UNAVAILABLE,
};

/// The owner's refusals, as the script sees them: status, name and title.
pub(super) const fn refused(code: RefusalCode) -> (StatusCode, &'static str, &'static str) {
    match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => {
            (BAD_REQUEST, "bad-parameter", "The owner's node refused a parameter")
        }
        RefusalCode::UnknownService | RefusalCode::UnknownOperation => {
            (NOT_FOUND, "unknown-path", "The owner no longer offers this")
        }
        RefusalCode::MethodNotAllowed => (NO_METHOD, "method-not-allowed", "The path has no such method"),
        RefusalCode::PriceChanged => (CONFLICT, "price-changed", "The price has changed"),
        RefusalCode::CallIdConflict => {
            (CONFLICT, "call-id-conflict", "This call id was used for another call")
        }
        RefusalCode::Busy | RefusalCode::RateLimited => (BUSY, "owner-busy", "The owner's node is busy"),
        RefusalCode::TooLarge => (TOO_LARGE, "too-large", "The call is too large for the owner"),
        RefusalCode::ServicePaused | RefusalCode::Unavailable | RefusalCode::ChainStale => {
            (UNAVAILABLE, "owner-unavailable", "The owner serves no calls at the moment")
        }
        RefusalCode::PaymentRequired
        | RefusalCode::SchemeUnsupported
        | RefusalCode::UnknownChannel
        | RefusalCode::BadSignature
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::InsufficientVoucher => (PAYMENT, "payment-refused", "The owner refused the payment"),
        RefusalCode::ChannelClosing => {
            (UNAVAILABLE, "channel-closing", "The channel with this owner is being closed")
        }
        RefusalCode::DelayTooShort => {
            (PAYMENT, "channel-delay-too-short", "The channel can be withdrawn sooner than the owner allows")
        }
        RefusalCode::DepositTooSmall => {
            (PAYMENT, "channel-too-small", "The channel holds less than the owner serves")
        }
        RefusalCode::DepositNotSafe => {
            (PAYMENT, "deposit-not-safe", "The chain may still take back the channel's deposit")
        }
        RefusalCode::OwnerCannotClaim => {
            (UNAVAILABLE, "owner-cannot-claim", "The owner cannot claim what it has earned")
        }
        RefusalCode::BooksBehind => {
            (UNAVAILABLE, "owner-books-behind", "The owner's node lost records of calls that you paid")
        }
        RefusalCode::MayHaveRun => (BAD_GATEWAY, "may-have-run", "The call was interrupted and may have run"),
    }
}
