//! Money of a node at its end, with what each channel owes it: a restored ledger of the same wallet may know less of it.

use std::{fs, path::Path};

use farthing_control::types::{ChannelIdText, UsdcText, WalletBalance};
use farthing_os::file_names;
use farthing_protocol::{ChannelId, Usdc, channel::PayeeState};
use serde::{Deserialize, Serialize};

/// The money of a node that others' files take the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyAtEnd {
    pub balance: WalletBalance,
    pub earned: Vec<EarnedOn>,
}

/// Money earned on one channel and not claimed, as far as the deposit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarnedOn {
    pub channel: ChannelIdText,
    /// Since the channel was opened, with what was claimed.
    pub total: UsdcText,
    pub unclaimed: UsdcText,
}

impl EarnedOn {
    /// Reads it from the books; `None` where nothing is to be claimed.
    pub fn of(channel: ChannelId, state: &PayeeState) -> Option<Self> {
        let unclaimed = state.unclaimed();
        let total = state.claimed.saturating_add(unclaimed);
        let earned = Self { channel: channel.into(), total: total.into(), unclaimed: unclaimed.into() };
        (!unclaimed.is_zero()).then_some(earned)
    }

    /// Returns the part of it that books which know `now` of the channel neither have earned nor show as claimed. Both only
    /// grow, so that a claim does not bring back what was once caught up with.
    pub fn beyond(&self, now: Option<&PayeeState>) -> Usdc {
        let known = now.map_or(Usdc::ZERO, |now| now.spent.max(now.claimed));
        self.total.0.saturating_sub(known).min(self.unclaimed.0)
    }
}

/// Reads what was noted beside the files of a replaced node. A note that cannot be read tells nothing.
pub fn noted_in(folder: &Path) -> Vec<EarnedOn> {
    let json = fs::read(folder.join(file_names::EARNED)).unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(deposited: u64, claimed: u64, spent: u64) -> PayeeState {
        let [deposited, claimed, spent] = [deposited, claimed, spent].map(Usdc::from_micros);
        PayeeState { deposited, claimed, spent, best: spent, ..PayeeState::default() }
    }

    #[test]
    fn what_the_books_have_earned_or_show_as_claimed_is_not_beyond_them() {
        let earned = EarnedOn::of(ChannelId::NONE, &state(40, 5, 22)).unwrap();
        assert_eq!((earned.total.0.micros(), earned.unclaimed.0.micros()), (22, 17));
        for (now, beyond) in [
            (None, 17),
            (Some(state(40, 0, 2)), 17),
            (Some(state(40, 5, 5)), 17),
            (Some(state(40, 5, 21)), 1),
            (Some(state(40, 5, 22)), 0),
            (Some(state(40, 22, 22)), 0),
            (Some(state(40, 22, 2)), 0),
            (Some(state(40, 5, 30)), 0),
        ] {
            assert_eq!(earned.beyond(now.as_ref()).micros(), beyond, "{now:?}");
        }
        assert_eq!(EarnedOn::of(ChannelId::NONE, &state(40, 22, 22)), None, "all is claimed");
        assert_eq!(EarnedOn::of(ChannelId::NONE, &state(0, 0, 22)), None, "the payer has withdrawn it");
    }
}
