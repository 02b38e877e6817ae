//! The port for x402 clients: the alerts of a node that has one.

use farthing_control::types::{
    Alert, AlertKind,
    AlertSeverity::{Error, Warning},
};
use farthing_owner::{
    Owner,
    x402::{ClosedDoor, RefusedPayments},
};

/// Strangers can have a payment refused at will: a few are no reason to call anybody.
const REFUSED_MIN: usize = 3;

/// The facts about the port; none without one.
#[derive(Clone, Debug, Default)]
pub(super) struct DoorFacts {
    pub(super) closed: Option<ClosedDoor>,
    pub(super) refused: Option<RefusedPayments>,
}

impl DoorFacts {
    pub(super) fn of(owner: &Owner) -> Self {
        let sales = owner.x402();
        Self { closed: sales.closed_door(), refused: sales.refused_payments() }
    }
}

pub(super) fn alerts(facts: &DoorFacts) -> impl Iterator<Item = Alert> {
    let closed = facts.closed.as_ref().map(|closed| {
        let ClosedDoor { cause, action } = closed;
        Alert::new(AlertKind::X402Closed, Error, cause, *action)
    });
    let refused = facts.refused.as_ref().filter(|refused| refused.count >= REFUSED_MIN).map(|refused| {
        let RefusedPayments { count, reason } = refused;
        let cause = format!(
            "within the last hour the chain refused {count} payments of x402 clients whose calls were served; their answers \
             are withheld. The newest reason: {reason}"
        );
        let action = "if this happens to many customers, check the token and `chain.rpc_urls` with `farthing doctor`; to \
                      serve fewer unpaid calls of one payer, lower `limits.uncharged_per_minute`";
        Alert::new(AlertKind::PaymentsRefused, Warning, cause, action)
    });
    closed.into_iter().chain(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_sells_nothing_is_an_error_and_several_refused_payments_are_a_warning() {
        let kinds = |facts: &DoorFacts| -> Vec<&'static str> {
            alerts(facts).map(|alert| alert.kind.name()).collect()
        };
        assert_eq!(kinds(&DoorFacts::default()), [""; 0]);
        let closed = Some(ClosedDoor { cause: "no ETH".to_owned(), action: "send some" });
        assert_eq!(kinds(&DoorFacts { closed, refused: None }), ["x402-closed"]);
        let refused = |count| Some(RefusedPayments { count, reason: "no money".to_owned() });
        for (count, expected) in [(REFUSED_MIN - 1, vec![]), (REFUSED_MIN, vec!["payments-refused"])] {
            assert_eq!(kinds(&DoorFacts { closed: None, refused: refused(count) }), expected, "{count}");
        }
    }
}
