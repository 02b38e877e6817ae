//! Evidence for an owner that lost records: the newest receipt of its own, and a promise of what that counts.
//!
//! A receipt is signed once its charge is durable, so books that count less than one came from a backup. What they lack
//! is counted as an adjustment, and can be claimed with the promise.

use farthing_ledger::LedgerError;
use farthing_protocol::{Address, ChannelId, Refusal, books::Shown};

use super::{Owner, book, close::busy};

impl Owner {
    /// Takes over a total that is higher than the one here, when this wallet's signature proves it and the payer's covers
    /// it. Anything else changes nothing.
    ///
    /// # Errors
    /// A `Busy` refusal when it may prove something later: nothing that ends the channel may be done meanwhile.
    pub(super) async fn recover(
        &self,
        payer: Address,
        channel: ChannelId,
        shown: &Shown,
    ) -> Result<(), Refusal> {
        let parts = &self.0;
        let known = parts.book.get(channel).filter(|entry| entry.config.payer == payer);
        let Some(entry) = known.filter(|_| shown.receipt.channel == channel) else { return Ok(()) };
        let total = shown.receipt.spent_total.min(shown.promised);
        if total <= entry.state.spent {
            return Ok(());
        }
        // Two signatures cost as much as a call does, and this is free.
        let looking = parts.book.look(channel);
        let looking =
            looking.ok_or_else(|| busy("a call runs on the channel, or too much was shown of it", 500))?;
        let domain = parts.signer.domain();
        let Ok((receipt, voucher)) = shown.verify(domain, &entry.config) else { return Ok(()) };
        match parts.ledger.recover_earned(receipt, voucher).await {
            Ok(row) => {
                looking.recover(&row, book::proof(&row, domain));
                tracing::warn!(%payer, %channel, %total, "a receipt shows calls that are not in this ledger; they \
                                                          count now");
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%payer, %channel, %total, %error, "a receipt shows calls that are not in this ledger");
                match error {
                    // Nobody can claim more than the deposit, unless the chain tells of one that is not recorded yet.
                    LedgerError::VoucherAboveDeposit { cumulative, .. }
                        if parts.chain.channel(&channel).is_some_and(|view| view.deposited < cumulative) =>
                    {
                        Ok(())
                    }
                    _ => Err(busy("the owner's ledger cannot store the receipt it was shown", 5_000)),
                }
            }
        }
    }
}
