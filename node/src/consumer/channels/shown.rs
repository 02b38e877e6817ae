//! Changes of channels as the chain shows them: what is less counts at once, and what waits for a change is told of it.

use farthing_ledger::PayerChannelFacts;
use farthing_protocol::ChannelId;

use super::{PayerChannel, PayerChannels};

impl PayerChannels {
    /// Takes note that a channel holds less, before the ledger does: nothing is reserved meanwhile on what is gone, and no
    /// promise follows that the ledger refuses.
    pub fn lower(&self, shown: &PayerChannelFacts) {
        let mut channels = self.channels.lock();
        let known = channels.by_id.get_mut(&shown.id);
        let Some(channel) = known.filter(|channel| shown.deposited < channel.state.deposited) else { return };
        channel.state.deposited = shown.deposited;
        channel.claimed = shown.claimed;
        channel.round = shown.round.unwrap_or(channel.round);
        channels.choose(shown.config.payee);
    }

    /// Waits until something is so of a channel.
    pub async fn until(&self, id: ChannelId, is_so: impl Fn(&PayerChannel) -> bool) {
        loop {
            // Before the look, so that nothing is missed in between.
            let applied = self.applied.notified();
            if self.get(id).is_some_and(|channel| is_so(&channel)) {
                return;
            }
            applied.await;
        }
    }
}
