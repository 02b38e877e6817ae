//! Copies of calls that this owner refused, as the log of calls has them. The ledger knows nothing of these.

use farthing_os::clock;
use farthing_protocol::{Address, CallRequest, Refusal, RefusalCode};
use farthing_shared::{
    call_ends::Half,
    refused::{RefusedCall, RefusedCalls, beginning},
};

/// A copy as far as it is known before it is looked at.
pub(super) fn asked(payer: Address, request: &CallRequest) -> RefusedCall {
    RefusedCall {
        call_id: Some(request.call_id),
        service: Some(request.service),
        method: Some(request.method),
        path: beginning(&request.path).to_owned(),
        peer: Some(payer),
        ..RefusedCall::new(Half::Owner, clock::now_secs())
    }
}

/// Notes a copy that was refused, with the payer's word on it and what this owner can do.
pub(super) fn note(refused: &RefusedCalls, asked: RefusedCall, refusal: &Refusal) {
    refused.note(RefusedCall {
        code: refusal.code.name().to_owned(),
        detail: refusal.detail.clone(),
        next: next_step(refusal.code).to_owned(),
        ..asked
    });
}

/// The owner's next step. Most refusals are the payer's to mend.
const fn next_step(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::ServicePaused => "Resume the service when it is to be called again.",
        RefusalCode::Unavailable => "`farthing doctor` and the node's log show why it does not serve calls.",
        RefusalCode::ChainStale => "`farthing doctor` checks the chain's endpoints.",
        RefusalCode::OwnerCannotClaim => "Send ETH to the wallet: it pays for claiming your earnings.",
        RefusalCode::Busy => "If this happens often, raise `limits.calls_max` and the limits beside it.",
        RefusalCode::DepositTooSmall => "`settlement.channel_min` sets the smallest deposit that you accept.",
        RefusalCode::DepositNotSafe => {
            "`settlement.unsafe_max` sets how much you serve before a deposit is safe."
        }
        RefusalCode::MayHaveRun => "Check in your server's log whether it carried out the call.",
        RefusalCode::BooksBehind => {
            "You need to do nothing: the payer shows its newest receipt, and calls continue."
        }
        RefusalCode::Malformed
        | RefusalCode::UnknownService
        | RefusalCode::UnknownOperation
        | RefusalCode::MethodNotAllowed
        | RefusalCode::BadParameter
        | RefusalCode::PriceChanged
        | RefusalCode::PaymentRequired
        | RefusalCode::SchemeUnsupported
        | RefusalCode::UnknownChannel
        | RefusalCode::BadSignature
        | RefusalCode::VoucherAboveDeposit
        | RefusalCode::InsufficientVoucher
        | RefusalCode::ChannelClosing
        | RefusalCode::CallIdConflict
        | RefusalCode::RateLimited
        | RefusalCode::TooLarge
        | RefusalCode::DelayTooShort => "You need to do nothing: the caller was told what to correct.",
    }
}
