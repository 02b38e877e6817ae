//! A payer asks to close its channel: what earns its gas is closed by this node, and for anything else the payer
//! gets a signed close, which it brings to the chain at its own cost. If gas becomes so cheap that what is due pays for it,
//! this node also closes what it has signed and nobody has brought.
//!
//! Whoever asks costs this node no gas, and one commit for each close that is signed. While a signed close counts,
//! nothing is served on its channel: what would be earned then, the close would give back.

use farthing_chain::{ChainKind, ChannelView};
use farthing_ledger::{Ending, LedgerError};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallReply, ChannelId, CloseConsent, Refusal, RefusalCode, SignedClose, books::Shown,
    call::ChannelSync,
};
use farthing_shared::chain_view;

use super::{Owner, book::PayeeChannel};

/// The time for which a signed close counts: enough for a transaction on a busy chain.
const SIGNED_FOR_SECS: u64 = 3_600;

impl Owner {
    /// Closes a channel for its payer. What the payer shows of it counts first, so that the close pays for it.
    pub(super) async fn close(&self, payer: Address, channel: ChannelId, shown: Option<Shown>) -> CallReply {
        if let Some(shown) = &shown
            && let Err(refusal) = self.recover(payer, channel, shown).await
        {
            return CallReply::Refused(refusal);
        }
        let books = match self.sync(payer, channel) {
            CallReply::Channel(books) => books,
            refused => return refused,
        };
        match self.end(channel).await {
            Ok(close) => CallReply::Channel(ChannelSync { close, ..books }),
            Err(refusal) => CallReply::Refused(refusal),
        }
    }

    /// `None` when this node closes the channel.
    async fn end(&self, channel: ChannelId) -> Result<Option<SignedClose>, Refusal> {
        let parts = &self.0;
        let view = parts.chain.channel(&channel);
        let Some((entry, view)) = parts.book.get(channel).zip(view) else {
            return Err(super::unknown_channel());
        };
        if view.deposited <= view.claimed {
            // It may have been filled again in a block that is not confirmed here.
            return Err(busy("there is nothing to close, as far as this node has read the chain", 2_000));
        }
        let gas = chain_view::gas(&parts.chain, 1);
        let gas = gas.ok_or_else(|| busy("the chain has not answered yet", 1_000))?;
        let is_paid = gas.is_paid_by(entry.state.unclaimed());
        match entry.ending {
            Ending::SignedAway { round, .. } if round != view.round => {
                Err(busy("the earlier close is not in a final block yet", 5_000))
            }
            Ending::SignedAway { until_secs, .. } if !is_paid => {
                self.sign_away(&view, until_secs).await.map(Some)
            }
            Ending::None | Ending::Closes { .. } if !is_paid && !entry.is_to_be_closed() => {
                let block_secs = parts.chain.head().borrow().as_ref().map_or(0, |head| head.timestamp_secs);
                let until_secs = signed_until(parts.chain.spec().kind, block_secs, clock::now_secs());
                if !parts.book.sign_away(channel, until_secs, view.round) {
                    return Err(busy("a call runs on the channel", 500));
                }
                self.sign_away(&view, until_secs).await.map(Some)
            }
            Ending::None | Ending::Closes { .. } | Ending::SignedAway { .. } => {
                // Whoever hears that this node is busy counts on nothing being closed.
                let place = parts.closes.try_reserve();
                let place = place.map_err(|_| busy("many closes are waiting already", 60_000))?;
                // Each channel has one place, however often its payer asks.
                if parts.book.begin_close(channel) {
                    place.send(channel);
                }
                Ok(None)
            }
        }
    }

    /// Signs the close of a channel on which the book serves nothing any more, once that is durable. What cannot be
    /// stored stays unserved until the deadline: another request may have been given the close meanwhile.
    async fn sign_away(&self, view: &ChannelView, until_secs: u64) -> Result<SignedClose, Refusal> {
        let parts = &self.0;
        let ending = Ending::SignedAway { until_secs, round: view.round };
        if let Err(error) = self.store_ending(view.id, ending).await {
            tracing::error!(channel = %view.id, %error, "a close is not signed, because it could not be stored");
            return Err(Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store the close"));
        }
        killpoint::reached("owner.after_sign_away");
        // Read now: a call that ended just before has raised the total.
        let entry = parts.book.get(view.id).ok_or_else(super::unknown_channel)?;
        self.consent(view, &entry, until_secs)
    }

    /// Asking again costs no further commit.
    async fn store_ending(&self, channel: ChannelId, ending: Ending) -> Result<(), LedgerError> {
        let ledger = &self.0.ledger;
        if ledger.payee_channel(channel)?.is_some_and(|row| row.ending == ending) {
            return Ok(());
        }
        ledger.end_payee_channel(channel, ending).await.map(drop)
    }

    /// The same channel gets the same words again, as long as the chain shows it unchanged.
    fn consent(
        &self,
        view: &ChannelView,
        entry: &PayeeChannel,
        until_secs: u64,
    ) -> Result<SignedClose, Refusal> {
        let consent = CloseConsent {
            channel: view.id,
            amount: entry.state.spent.min(view.deposited).max(view.claimed),
            deposited: view.deposited,
            round: view.round,
            deadline_secs: until_secs,
        };
        self.0.signer.sign_close(consent).map_err(|error| {
            tracing::error!(channel = %view.id, %error, "a close is not signed");
            Refusal::new(RefusalCode::Unavailable, "the owner's ledger does not add up")
        })
    }
}

/// Returns the time until which a close that is signed now counts. A block of the far future would have it count for ever;
/// only the clock of a chain on this machine may jump.
fn signed_until(kind: ChainKind, block_secs: u64, now_secs: u64) -> u64 {
    let ahead_max = match kind {
        ChainKind::Local => u64::MAX,
        _ => chain_view::REORGANISED_SECS_MAX,
    };
    block_secs.min(now_secs.saturating_add(ahead_max)).max(now_secs).saturating_add(SIGNED_FOR_SECS)
}

pub(super) fn busy(why: &str, retry_after_ms: u64) -> Refusal {
    Refusal::new(RefusalCode::Busy, why).retry_after_ms(retry_after_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_the_future_makes_no_signed_close_count_for_longer() {
        let now = 1_800_000_000;
        for (kind, block_secs, expected) in [
            (ChainKind::Testnet, now, now + 3_600),
            (ChainKind::Testnet, now - 50, now + 3_600),
            (ChainKind::Testnet, now + 119, now + 119 + 3_600),
            (ChainKind::Testnet, 1 << 40, now + 120 + 3_600),
            (ChainKind::Local, now + 9_000, now + 9_000 + 3_600),
        ] {
            assert_eq!(signed_until(kind, block_secs, now), expected, "{kind:?} {block_secs}");
        }
    }
}
