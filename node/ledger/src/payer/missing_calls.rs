//! Channels of which this ledger may lack calls: a crash may have kept out promises whose commit had not finished.
//!
//! A ledger that was closed holds every promise that was made, so what an owner counts beyond it is no forgotten call.
//! Where it was not closed, came from a backup, or an owner shows a signature that it does not know, the channel is
//! marked until its books were compared for the last time.

use farthing_values::{ChannelId, Payment, Usdc};
use redb::WriteTransaction;

use super::update_channel;
use crate::{
    Ledger,
    adjustment::Cause,
    error::{LedgerError, Result},
    rows::payer::{PayerChannelRow, StoredPayerChannel, mark_all},
};

impl Ledger {
    /// Takes over what the owner proves to be signed, for a ledger that lacks it; it is never lowered. The caller has
    /// verified its own signature. The row says whether calls of the channel may be lacking.
    ///
    /// # Errors
    /// [`crate::LedgerError::UnknownChannel`].
    pub async fn recover_signed(&self, id: ChannelId, signed: Usdc) -> Result<PayerChannelRow> {
        self.write(move |tx| {
            let recover = |row: &mut StoredPayerChannel| {
                if signed > row.signed {
                    row.lack();
                }
                row.recover(Usdc::ZERO, signed);
            };
            update_channel(tx, id, None, Cause::Earlier, recover).map(|observed| observed.row)
        })
        .await
    }

    /// Notes that the books of a channel were compared, and that no call which this ledger lacks can be charged any more.
    ///
    /// # Errors
    /// [`crate::LedgerError::UnknownChannel`].
    pub async fn note_compared(&self, id: ChannelId) -> Result<PayerChannelRow> {
        let compared = StoredPayerChannel::lack_none;
        self.write(move |tx| Ok(update_channel(tx, id, None, Cause::Earlier, compared)?.row)).await
    }

    /// Marks every channel, after a loss of promises.
    pub async fn note_loss(&self) -> Result<()> {
        self.write(|tx| mark_all(tx).map(drop)).await
    }
}

/// Notes what a promise that is refused has signed: the call is on its way to its owner, and this ledger lacks it.
pub(super) fn note_refused(tx: &WriteTransaction, payment: &Payment) -> Result<()> {
    let &Payment::Channel { channel, cumulative, .. } = payment else { return Ok(()) };
    let lacks = |row: &mut StoredPayerChannel| {
        row.lack_refused();
        row.recover(Usdc::ZERO, cumulative);
    };
    match update_channel(tx, channel, None, Cause::Earlier, lacks) {
        Ok(_) | Err(LedgerError::UnknownChannel(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
