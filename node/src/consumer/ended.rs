//! The end of a bought call, as the access log and `/metrics` tell it.

use farthing_control::types::CancelStage;
use farthing_discovery::CatalogError;
use farthing_protocol::Usdc;
use farthing_shared::call_ends::{BegunCall, End, EndedCall, Half};

use super::{Bought, BuyError, Consumer, ForeignError};

impl Consumer {
    /// Notes how a call ended for its caller.
    pub(crate) fn note_end(&self, call: &BegunCall, bought: &Result<Bought, BuyError>) {
        if let Ok(bought) = bought
            && !bought.is_repeat
        {
            for (part, took) in bought.timing.parts() {
                self.0.ends.note_part(Half::Consumer, part, took);
            }
        }
        // Looked up only for the line.
        let known = call.path().and_then(|_| self.0.catalog.in_memory(call.service));
        let operation = known.as_ref().zip(call.path()).and_then(|(known, path)| {
            let operation = known.api().operation_at(call.method.as_str(), path)?;
            Some(operation.path.as_str())
        });
        let peer = known.as_ref().map(|known| known.listing().owner);
        self.0.ends.note(call, &EndedCall { peer, operation, ..ended(bought) });
    }
}

/// The part of it that the outcome alone tells.
fn ended(bought: &Result<Bought, BuyError>) -> EndedCall<'static> {
    let (end, charged, status) = match bought {
        Ok(bought) if bought.is_repeat => (End::Repeated, Usdc::ZERO, Some(bought.status)),
        Ok(bought) => match bought.charged {
            None => (End::Undecided, Usdc::ZERO, Some(bought.status)),
            Some(charged) if charged.is_zero() => (End::Free, charged, Some(bought.status)),
            Some(charged) => (End::Charged, charged, Some(bought.status)),
        },
        Err(BuyError::UpstreamFailed { status, .. }) => {
            (End::Failed, Usdc::ZERO, Some(*status).filter(|status| *status > 0))
        }
        Err(error) => (end_of(error), Usdc::ZERO, None),
    };
    let refusal = match bought {
        Err(BuyError::Refused(refusal)) => Some(refusal.code.name()),
        _ => None,
    };
    EndedCall { half: Half::Consumer, end, charged, status, refusal, peer: None, operation: None }
}

const fn end_of(error: &BuyError) -> End {
    match error {
        BuyError::Refused(_) => End::Refused,
        BuyError::UpstreamFailed { .. } => End::Failed,
        BuyError::BadAnswer { .. } => End::Disputed,
        BuyError::BodyGone { .. } | BuyError::NotRepeated { .. } => End::Gone,
        BuyError::Undecided(_)
        | BuyError::NotStored(_)
        | BuyError::Failed
        | BuyError::Cancelled(CancelStage::Promised)
        | BuyError::Foreign(ForeignError::Open { .. } | ForeignError::Elsewhere { .. }) => End::Undecided,
        BuyError::Foreign(ForeignError::Withheld { .. }) => End::Gone,
        BuyError::Foreign(ForeignError::Unreachable(_)) => End::Unreached,
        BuyError::OwnerUnreachable(_)
        | BuyError::BooksUnseen(_)
        | BuyError::Service(CatalogError::DetailsUnavailable { .. }) => End::Unreached,
        BuyError::Service(_)
        | BuyError::NotScoped { .. }
        | BuyError::Plan(_)
        | BuyError::OutOfBounds(_)
        | BuyError::AboveMaxPrice { .. }
        | BuyError::OverLimit(_)
        | BuyError::NoCommonScheme { .. }
        | BuyError::TermsRefused(_)
        | BuyError::Unfunded(_)
        | BuyError::ChannelLow { .. }
        | BuyError::Flagged { .. }
        | BuyError::TooMuchUndecided(_)
        | BuyError::ChannelClosing
        | BuyError::CloseAwaited { .. }
        | BuyError::DelayTooShort { .. }
        | BuyError::OwnerDistrusted
        | BuyError::ChainNotReady(_)
        | BuyError::ChainUnreachable(_)
        | BuyError::OpenFailed(_)
        | BuyError::DepositPending(_)
        | BuyError::TimeUp(_)
        | BuyError::Unsigned(_)
        | BuyError::Ledger(_)
        | BuyError::Unread(_)
        | BuyError::SpendingStopped(_)
        | BuyError::ShuttingDown
        | BuyError::Cancelled(CancelStage::Unpromised)
        | BuyError::PriceChanged { .. }
        | BuyError::DeclinedCharged { .. }
        | BuyError::CallIdConflict
        | BuyError::CallIdOfAnother
        | BuyError::Busy(_)
        | BuyError::ShareUsed { .. }
        | BuyError::Foreign(_) => End::NotSent,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use farthing_ledger::LedgerError;
    use farthing_protocol::CallId;

    use super::*;
    use crate::consumer::Timing;

    #[test]
    fn an_answer_ends_as_charged_free_or_undecided_by_what_is_known_of_its_charge() {
        let price = Usdc::from_micros(2);
        for (charged, end, counted) in [
            (Some(price), End::Charged, price),
            (Some(Usdc::ZERO), End::Free, Usdc::ZERO),
            (None, End::Undecided, Usdc::ZERO),
        ] {
            let bought = Bought {
                call_id: CallId::from_bytes([1; 16]),
                status: 200,
                headers: [].into(),
                body: Bytes::new(),
                price,
                charged,
                receipt: None,
                timing: Timing::default(),
                is_repeat: false,
            };
            let told = ended(&Ok(bought));
            assert_eq!((told.end, told.charged, told.status), (end, counted, Some(200)));
        }
    }

    #[test]
    fn only_what_may_have_been_served_ends_undecided() {
        for (error, end) in [
            (BuyError::NotStored(LedgerError::Ending), End::Undecided),
            (BuyError::Unread(LedgerError::Ending), End::NotSent),
            (BuyError::Ledger(LedgerError::Ending), End::NotSent),
            (ForeignError::Elsewhere { place: String::new() }.into(), End::Undecided),
            (ForeignError::Lapsed.into(), End::NotSent),
            (BuyError::Cancelled(CancelStage::Promised), End::Undecided),
            (BuyError::Cancelled(CancelStage::Unpromised), End::NotSent),
        ] {
            assert_eq!(end_of(&error), end, "{error}");
        }
    }
}
