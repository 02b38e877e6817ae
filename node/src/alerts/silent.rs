//! Owners that do not say how calls ended, and hold vouchers for them: the alert of each.

use farthing_control::{
    counted,
    types::{
        Alert, AlertKind,
        AlertSeverity::{Error, Warning},
    },
};
use farthing_protocol::Usdc;

use crate::consumer::{channels::PayerChannel, undecided::UndecidedSum};

/// An owner whose channels are empty is told of for so long since the last call: nothing more can be done about it.
const TOLD_FOR_SECS: u64 = 7 * 86_400;

/// An owner that has not said how calls ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct SilentOwner {
    pub(super) undecided: UndecidedSum,
    /// The part of it that the chain shows as paid.
    pub(super) claimed: Usdc,
}

/// Lists the owners that have not said how calls ended, but for those whose channels are empty for long.
pub(super) fn silent_owners(
    undecided: &[UndecidedSum],
    channels: &[PayerChannel],
    now_secs: u64,
) -> Vec<SilentOwner> {
    let is_recent = |channel: &PayerChannel| now_secs.saturating_sub(channel.last_used_secs) < TOLD_FOR_SECS;
    let silent = |&undecided: &UndecidedSum| {
        let owner = undecided.owner;
        let with = move || channels.iter().filter(move |channel| channel.config.payee == owner);
        let matters = with().any(|channel| channel.holds_deposit() || is_recent(channel));
        matters.then(|| SilentOwner { undecided, claimed: claimed_of(undecided.sum, with()) })
    };
    undecided.iter().filter_map(silent).collect()
}

/// The part of what was paid on chain that undecided calls alone explain: neither receipts nor calls under way.
fn claimed_of<'a>(undecided: Usdc, channels: impl Iterator<Item = &'a PayerChannel>) -> Usdc {
    let (mut unproven, mut in_flight) = (Usdc::ZERO, Usdc::ZERO);
    for channel in channels {
        unproven = unproven.saturating_add(channel.claimed.saturating_sub(channel.state.acknowledged));
        in_flight = in_flight.saturating_add(channel.state.in_flight);
    }
    let under_way = in_flight.saturating_sub(undecided);
    unproven.saturating_sub(under_way).min(undecided)
}

/// The alert about an owner with so much undecided that nothing is added to its channel, or that was paid for a part of it.
pub(super) fn alert(owner: &SilentOwner) -> Option<Alert> {
    let &SilentOwner { undecided, claimed } = owner;
    if claimed.is_zero() && !undecided.is_above_half() {
        return None;
    }
    let UndecidedSum { owner, calls, sum, limit } = undecided;
    let (severity, paid) = match claimed.is_zero() {
        true => (Warning, String::new()),
        false => (Error, format!(", and was paid {claimed} USDC for them on the chain")),
    };
    let cause = format!(
        "the owner {owner} has not reported how {calls} for {sum} USDC ended{paid}; at {limit} USDC undecided this \
         node only tries a call now and then, and above half of that it adds nothing to the channel",
        calls = counted(calls, "call")
    );
    let action = "wait: this node keeps asking. If this goes on, compare both ledgers with `farthing audit --with`, \
                  take the rest of the deposit back with `farthing channel close`, and find another service with \
                  `farthing catalog search`";
    Some(Alert::new(AlertKind::CallsUndecided, severity, cause, action).about(&owner))
}

#[cfg(test)]
mod tests {
    use farthing_ledger::PayerChannelRow;
    use farthing_protocol::{Address, ChannelId};

    use super::*;
    use crate::consumer::channels::{
        PayerChannels,
        tests::{row, terms, usdc},
    };

    const OWNER: Address = Address::from_bytes([1; 20]);
    const ID: ChannelId = ChannelId::from_bytes([1; 32]);

    const fn undecided(sum: u64) -> UndecidedSum {
        UndecidedSum { owner: OWNER, calls: 3, sum: usdc(sum), limit: usdc(100) }
    }

    /// A channel that holds 1000, on which receipts come to 10, and these calls are open.
    fn channel(claimed: u64, in_flight: u64) -> PayerChannel {
        let row = PayerChannelRow {
            id: ID,
            claimed: usdc(claimed),
            acknowledged: usdc(10),
            receipted: usdc(10),
            signed: usdc(10),
            used_secs: Some(1),
            may_lack_calls: false,
            ..row(terms(Address::ZERO, OWNER), 1_000)
        };
        let channels = PayerChannels::default();
        channels.apply(&row, None);
        channels.reserve(OWNER, usdc(in_flight), 1).unwrap();
        channels.get(ID).unwrap()
    }

    #[test]
    fn above_half_of_the_limit_an_owner_is_told_of_and_what_it_claimed_at_once() {
        let told = |sum, claimed| {
            let owner = SilentOwner { undecided: undecided(sum), claimed: usdc(claimed) };
            alert(&owner).map(|alert| alert.severity)
        };
        assert_eq!([told(50, 0), told(51, 0), told(1, 1)], [None, Some(Warning), Some(Error)]);
        let owner = SilentOwner { undecided: undecided(80), claimed: usdc(30) };
        let alert = alert(&owner).unwrap();
        assert_eq!(alert.subject, OWNER.to_string());
        let one = SilentOwner { undecided: UndecidedSum { calls: 1, ..undecided(80) }, claimed: usdc(30) };
        assert!(super::alert(&one).unwrap().cause.contains("how 1 call for 0.00008 USDC ended"));
        for part in [&*OWNER.to_string(), "3 calls for 0.00008 USDC", "paid 0.00003 USDC", "at 0.0001 USDC"] {
            assert!(alert.cause.contains(part), "{part}: {}", alert.cause);
        }
    }

    #[test]
    fn a_claim_counts_as_far_as_neither_receipts_nor_calls_under_way_explain_it() {
        for (claimed, in_flight, undecided, counts) in [
            (10, 60, 60, 0),
            (11, 60, 60, 1),
            (70, 60, 60, 60),
            (30, 60, 40, 0),
            (31, 60, 40, 1),
            (70, 60, 40, 40),
        ] {
            let channel = channel(claimed, in_flight);
            let found = claimed_of(usdc(undecided), std::iter::once(&channel));
            assert_eq!(found, usdc(counts), "{claimed} claimed, {undecided} of {in_flight} undecided");
        }
    }

    #[test]
    fn an_owner_whose_channel_is_empty_is_told_of_for_a_week() {
        let open = channel(70, 60);
        let empty = PayerChannel { claimed: usdc(1_000), last_used_secs: 1_000, ..open.clone() };
        let told = |channel: &PayerChannel, now_secs| {
            silent_owners(&[undecided(60)], std::slice::from_ref(channel), now_secs).len()
        };
        assert_eq!(told(&open, 100 * TOLD_FOR_SECS), 1);
        assert_eq!([999, 1_000].map(|more| told(&empty, TOLD_FOR_SECS + more)), [1, 0]);
    }
}
