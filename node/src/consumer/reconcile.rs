//! A crash may lose a promise whose commit had not finished, while the owner served the call.
//!
//! The owner then counts more as spent than this ledger explains and refuses the next voucher. Once per start
//! and channel this node takes over the owner's figure, when the owner proves it with this node's own
//! signature on a voucher that covers it. Later differences are the owner's, and it is not trusted any more.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use farthing_protocol::{Address, CallMessage, CallReply, ChannelId, Usdc, Voucher, call::ChannelSync};

use super::Consumer;

const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// Channels whose books were compared since the start.
#[derive(Debug, Default)]
pub(super) struct Reconciled(Mutex<HashSet<ChannelId>>);

impl Consumer {
    /// Compares the books with the owner's. Returns whether this node's changed, so that trying again helps.
    pub(super) async fn reconcile(&self, owner: Address) -> bool {
        let Some(channel) = self.0.channels.get(owner) else { return false };
        if !self.0.reconciled.0.lock().unwrap_or_else(PoisonError::into_inner).insert(channel.id) {
            return false;
        }
        let question = CallMessage::Sync(channel.id);
        let answer = self.0.network.call(owner, question, bytes::Bytes::new(), SYNC_TIMEOUT).await;
        let Ok((CallReply::Channel(sync), ..)) = answer else { return false };
        let Some(signed) = self.proven(channel.id, &sync) else {
            tracing::warn!(%owner, spent = %sync.spent, "the owner counts more than it can prove");
            return false;
        };
        let Some(acknowledged) = self.0.channels.take_over(owner, sync.spent) else { return false };
        tracing::warn!(%owner, spent = %sync.spent, "taking over a charge that a crash kept out of the ledger");
        match self.0.ledger.recover_payer_channel(channel.id, acknowledged, signed).await {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(%owner, %error, "the owner's figure was not stored");
                false
            }
        }
    }

    /// The promise that covers what the owner counts, if it carries this node's signature.
    fn proven(&self, channel: ChannelId, sync: &ChannelSync) -> Option<Usdc> {
        let voucher = Voucher { channel, cumulative: sync.best };
        let proof = voucher.verify(self.0.signer.domain(), sync.best_signature?, self.0.signer.address());
        proof.ok().filter(|voucher| sync.spent <= voucher.cumulative).map(|voucher| voucher.cumulative)
    }
}
