//! The outcome of a call, told from what the ledger has of its end: the one place for the log, the lists and the charts.

use farthing_control::types::CallOutcome;
use farthing_ledger::PurchaseEnd;
use farthing_protocol::Outcome;

/// Tells how a call ended that this node bought.
#[must_use]
pub fn of_purchase(end: &PurchaseEnd) -> CallOutcome {
    match end {
        // Its receipt came late and without the answer. The owner keeps one that was charged, and a repeat brings it.
        PurchaseEnd::Acknowledged { receipt, outcome, status: 0, .. }
            if outcome.is_the_services_answer() && receipt.charged.is_zero() =>
        {
            CallOutcome::Failed
        }
        PurchaseEnd::Acknowledged { outcome, .. } => of(*outcome),
        // It was paid, and its answer was lost.
        PurchaseEnd::Transferred { status: 0, .. } => CallOutcome::Failed,
        PurchaseEnd::Transferred { .. } => CallOutcome::Answered,
        // Records of before call it refused.
        PurchaseEnd::Released { .. } if end.may_have_run() => CallOutcome::Failed,
        PurchaseEnd::Released { is_refused: true, .. } => CallOutcome::Refused,
        // Its server answered without taking its payment.
        PurchaseEnd::Released { status: Some(_), .. } => CallOutcome::Answered,
        PurchaseEnd::Released { .. } => CallOutcome::Failed,
    }
}

/// Tells how a call ended, by the owner's word.
pub(super) const fn of(outcome: Outcome) -> CallOutcome {
    match outcome {
        Outcome::Answered | Outcome::Declined => CallOutcome::Answered,
        Outcome::TimedOut => CallOutcome::TimedOut,
        Outcome::Oversize => CallOutcome::TooLarge,
        Outcome::Unreachable | Outcome::ServerError | Outcome::BadAnswer => CallOutcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{RefusalCode, Usdc};

    use super::*;
    use crate::testing::acknowledged;

    fn released(is_refused: bool, in_doubt: bool) -> PurchaseEnd {
        PurchaseEnd::Released { reason: "busy".to_owned(), is_refused, in_doubt, status: None }
    }

    #[test]
    fn a_call_whose_server_answered_and_took_no_payment_was_answered() {
        let reason = "not taken".to_owned();
        let end = PurchaseEnd::Released { reason, is_refused: false, in_doubt: false, status: Some(200) };
        assert_eq!((of_purchase(&end), end.status()), (CallOutcome::Answered, Some(200)));
    }

    #[test]
    fn every_end_of_a_bought_call_has_its_word() {
        for (end, told) in [
            (acknowledged(Outcome::Answered, 200), CallOutcome::Answered),
            (acknowledged(Outcome::Declined, 404), CallOutcome::Answered),
            (acknowledged(Outcome::Answered, 0), CallOutcome::Failed),
            (acknowledged(Outcome::TimedOut, 0), CallOutcome::TimedOut),
            (acknowledged(Outcome::Oversize, 200), CallOutcome::TooLarge),
            (acknowledged(Outcome::Unreachable, 0), CallOutcome::Failed),
            (acknowledged(Outcome::ServerError, 503), CallOutcome::Failed),
            (acknowledged(Outcome::BadAnswer, 200), CallOutcome::Failed),
            (released(true, false), CallOutcome::Refused),
            (released(true, true), CallOutcome::Refused),
            (released(false, false), CallOutcome::Failed),
        ] {
            assert_eq!(of_purchase(&end), told, "{end:?}");
        }
    }

    #[test]
    fn a_call_that_may_have_run_is_not_said_to_have_been_refused() {
        for is_refused in [false, true] {
            let reason = RefusalCode::MayHaveRun.name().to_owned();
            let end = PurchaseEnd::Released { reason, is_refused, in_doubt: true, status: None };
            assert_eq!(of_purchase(&end), CallOutcome::Failed);
        }
    }

    #[test]
    fn a_call_whose_charged_receipt_came_late_was_answered() {
        let mut end = acknowledged(Outcome::Answered, 0);
        if let PurchaseEnd::Acknowledged { receipt, .. } = &mut end {
            receipt.charged = Usdc::from_micros(1);
        }
        assert_eq!(of_purchase(&end), CallOutcome::Answered);
    }
}
