//! Results of the last claims, and the part of what is served that cannot be claimed.

use std::collections::{BTreeMap, HashMap};

use farthing_protocol::{ChannelId, Usdc};
use farthing_shared::gas::GasMeans;

use super::PayeeChannel;

/// The outcome of the last claims.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Channels whose claims the contract refuses, and why.
    pub refused: BTreeMap<ChannelId, String>,
    /// Nothing else was paid when they were refused, so the others have to expect the same: the token may have blocked
    /// this wallet, or stand still.
    pub are_all_refused: bool,
}

impl Claims {
    /// Takes over which channels of a claim were paid, and which the contract refused, and why.
    pub(super) fn note(&mut self, paid: &[ChannelId], refused: Vec<(ChannelId, String)>) {
        self.are_all_refused = paid.is_empty() && (self.are_all_refused || !refused.is_empty());
        self.refused.retain(|id, _| !paid.contains(id));
        self.refused.extend(refused);
    }

    /// Takes over what the chain shows of a channel.
    pub(super) fn see(&mut self, id: ChannelId, was_paid: bool, is_nothing_due: bool) {
        if was_paid || is_nothing_due {
            self.refused.remove(&id);
        }
        self.are_all_refused &= !was_paid && !self.refused.is_empty();
    }

    /// Computes what is served and will not be claimed, if a call at `price` is added on channel `id`.
    pub(super) fn left_behind(
        &self,
        channels: &HashMap<ChannelId, PayeeChannel>,
        means: GasMeans,
        (id, price): (ChannelId, Usdc),
    ) -> Usdc {
        let means = if self.are_all_refused { GasMeans::NONE } else { means };
        if self.refused.is_empty() && channels.len() <= means.rows {
            return Usdc::ZERO;
        }
        let due = |(of, channel): (&ChannelId, &PayeeChannel)| {
            if *of == id { channel.due().saturating_add(price) } else { channel.due() }
        };
        let (refused, others): (Vec<_>, Vec<_>) =
            channels.iter().partition(|(id, _)| self.refused.contains_key(*id));
        let refused = refused.into_iter().map(due).fold(Usdc::ZERO, Usdc::saturating_add);
        refused.saturating_add(means.left_behind(others.into_iter().map(due)))
    }
}
