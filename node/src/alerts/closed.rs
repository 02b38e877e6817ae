//! Owners that closed channels of their own accord, where what came back takes room among the money at rest: the alert of each.

use farthing_control::types::{Alert, AlertKind, AlertSeverity::Warning};
use farthing_protocol::Usdc;

use crate::consumer::{
    funding::{ClosedUnasked, Funding},
    rest::RestLimits,
    rest_sum::RestSum,
};

/// Lists the owners whose closes take room. A ledger that cannot be read is told of by itself.
pub(super) fn of(funding: &Funding) -> Vec<ClosedUnasked> {
    let rest = funding.at_rest();
    taking_room(funding.closed_unasked().unwrap_or_default(), rest.limits(), rest.in_all())
}

/// Keeps the owners of whom what came back takes at least half of a limit: of its own, or together with all others of the
/// limit in all.
fn taking_room(mut owners: Vec<ClosedUnasked>, limits: RestLimits, in_all: RestSum) -> Vec<ClosedUnasked> {
    if !is_half(in_all.returned, limits.in_all) {
        owners.retain(|owner| is_half(owner.resting.returned, limits.per_owner));
    }
    owners
}

fn is_half(returned: Usdc, limit: Usdc) -> bool {
    !returned.is_zero() && returned.saturating_mul(2) >= limit
}

pub(super) fn alert(closed: &ClosedUnasked) -> Alert {
    let ClosedUnasked { owner, resting } = closed;
    let cause = format!(
        "the owner {owner} closed its channel within a day of the deposit, and this node did not ask for it. Only one \
         endpoint confirms that the money came back, so it still counts towards the limits of money in channels: {} \
         USDC with this owner and {} USDC in all, for at most {} h",
        resting.returned,
        resting.in_all().returned,
        resting.hours()
    );
    let action = "find another service with `farthing catalog search`. Calls fill this owner's channel once a day; for \
                  more room now, raise `spending.at_rest_per_owner` and `spending.at_rest_max`";
    Alert::new(AlertKind::ClosedUnasked, Warning, cause, action).about(owner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use farthing_protocol::Address;

    use super::*;

    const LIMITS: RestLimits =
        RestLimits { per_owner: Usdc::from_micros(50), in_all: Usdc::from_micros(100) };

    const fn returned(micros: u64) -> RestSum {
        RestSum {
            shown: Usdc::ZERO,
            coming: Usdc::ZERO,
            returned: Usdc::from_micros(micros),
            lapses_in: Duration::from_secs(3_600),
        }
    }

    #[test]
    fn an_owner_that_closed_unasked_is_named_from_half_of_a_limit_on_with_what_counts_for_how_long() {
        let owner =
            |n, micros| ClosedUnasked { owner: Address::from_bytes([n; 20]), resting: returned(micros) };
        let named = |in_all| {
            let taking_room = taking_room(vec![owner(1, 24), owner(2, 25)], LIMITS, returned(in_all));
            taking_room.iter().map(|closed| alert(closed).subject).collect::<Vec<_>>()
        };
        let [one, two] = [1, 2].map(|n| Address::from_bytes([n; 20]).to_string());
        assert_eq!(named(49), std::slice::from_ref(&two));
        assert_eq!(named(50), [one, two.clone()]);
        let alert = alert(&owner(2, 25));
        for part in [&*two, "0.000025 USDC with this owner", "0.000007 USDC in all", "for at most 1 h"] {
            assert!(alert.cause.contains(part), "{part}: {}", alert.cause);
        }
        assert_eq!(taking_room(vec![owner(1, 0)], LIMITS, returned(0)).len(), 0);
    }
}
