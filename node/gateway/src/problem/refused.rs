//! The owner's refusals as problems: one row for each code.

use axum::http::StatusCode;
use farthing_control::types::ProblemName as Name;
use farthing_protocol::RefusalCode;

use super::{
    BAD_GATEWAY, BAD_REQUEST, BUSY, CONFLICT, NO_METHOD, NOT_FOUND, PAYMENT, TOO_LARGE, UNAVAILABLE,
};

/// The owner's refusals, as the script sees them: status, name and title.
pub(super) const fn refused(code: RefusalCode) -> (StatusCode, Name, &'static str) {
    match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => {
            (BAD_REQUEST, Name::BadParameter, "The owner's node refused a parameter")
        }
        RefusalCode::UnknownService | RefusalCode::UnknownOperation => {
            (NOT_FOUND, Name::UnknownPath, "The owner no longer offers this")
        }
        RefusalCode::MethodNotAllowed => (NO_METHOD, Name::MethodNotAllowed, "The path has no such method"),
        RefusalCode::PriceChanged => (CONFLICT, Name::PriceChanged, "The price has changed"),
        RefusalCode::CallIdConflict => {
            (CONFLICT, Name::CallIdConflict, "This call id was used for another call")
        }
        RefusalCode::Busy | RefusalCode::RateLimited => (BUSY, Name::OwnerBusy, "The owner's node is busy"),
        RefusalCode::TooLarge => (TOO_LARGE, Name::TooLarge, "The call is too large for the owner"),
        RefusalCode::ServicePaused | RefusalCode::Unavailable | RefusalCode::ChainStale => {
            (UNAVAILABLE, Name::OwnerUnavailable, "The owner serves no calls at the moment")
        }
        RefusalCode::PaymentRequired
        | RefusalCode::SchemeUnsupported
        | RefusalCode::UnknownChannel
        | RefusalCode::BadSignature
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::InsufficientVoucher => {
            (PAYMENT, Name::PaymentRefused, "The owner refused the payment")
        }
        RefusalCode::ChannelClosing => {
            (UNAVAILABLE, Name::ChannelClosing, "The channel with this owner is being closed")
        }
        RefusalCode::DelayTooShort => {
            (PAYMENT, Name::ChannelDelayTooShort, "The channel can be withdrawn sooner than the owner allows")
        }
        RefusalCode::DepositTooSmall => {
            (PAYMENT, Name::ChannelTooSmall, "The channel holds less than the owner serves")
        }
        RefusalCode::DepositNotSafe => {
            (PAYMENT, Name::DepositNotSafe, "The chain may still take back the channel's deposit")
        }
        RefusalCode::OwnerCannotClaim => {
            (UNAVAILABLE, Name::OwnerCannotClaim, "The owner cannot claim what it has earned")
        }
        RefusalCode::BooksBehind => {
            (UNAVAILABLE, Name::OwnerBooksBehind, "The owner's node lost records of calls that you paid")
        }
        RefusalCode::MayHaveRun => {
            (BAD_GATEWAY, Name::MayHaveRun, "The call was interrupted and may have run")
        }
    }
}
