//! Channels as the ledger has them at the start, and their changes as the chain shows them: what is less counts at once, and
//! what waits for a change is told of it.

use farthing_ledger::{PayerChannelFacts, PayerChannelRow};
use farthing_protocol::{ChannelId, Domain};

use super::{PayerChannel, PayerChannels};

impl PayerChannels {
    /// Takes over a channel of the ledger at the start. What is elsewhere is counted, and nothing is promised on it.
    pub fn restore(&self, row: &PayerChannelRow, is_elsewhere: bool) {
        self.apply(row, None);
        let mut channels = self.channels.lock();
        if let Some(channel) = channels.by_id.get_mut(&row.id) {
            channel.is_elsewhere = is_elsewhere;
        }
        channels.choose(row.config.payee);
    }

    /// Tells whether signatures on a channel count in another contract or on another chain than the settings name, so that
    /// nothing which its owner signs can be verified here. Another token alone changes no signature.
    pub fn is_signed_elsewhere(&self, id: ChannelId, domain: &Domain) -> bool {
        let channels = self.channels.lock();
        let elsewhere = channels.by_id.get(&id).filter(|channel| channel.is_elsewhere);
        elsewhere.is_some_and(|channel| channel.config.id(domain) != id)
    }

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
