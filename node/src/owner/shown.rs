//! What a payer shows an owner that lost records: the newest receipt of the owner's own, and a promise of what it counts.
//!
//! A receipt is signed once its charge is durable, so books that count less than one came from a backup. What they lack
//! is counted as an adjustment, and can be claimed with the promise.

use farthing_protocol::{Address, ChannelId, books::Shown};

use super::{Owner, book};

impl Owner {
    /// Takes over a total that is higher than the one here, when this wallet's signature proves it. Anything else changes
    /// nothing: the payer is told what the books say in either case.
    pub(super) async fn recover(&self, payer: Address, channel: ChannelId, shown: &Shown) {
        let parts = &self.0;
        let known = parts.book.get(channel).filter(|entry| entry.config.payer == payer);
        let Some(entry) = known.filter(|_| shown.receipt.channel == channel) else { return };
        // Calls in progress rely on what is promised beyond the total as it is.
        if shown.receipt.spent_total <= entry.state.spent || !entry.state.reserved.is_zero() {
            return;
        }
        // Two signatures cost as much as a call does, and this is free.
        if parts.told.count(payer).is_err() {
            return;
        }
        let domain = parts.signer.domain();
        let Ok((receipt, voucher)) = shown.verify(domain, &entry.config) else { return };
        let total = receipt.spent_total;
        match parts.ledger.recover_earned(receipt, voucher).await {
            Ok(row) => {
                parts.book.recover(&row, book::proof(&row, domain));
                tracing::warn!(%payer, %channel, %total, "a receipt shows calls that these books lack; they count now");
            }
            Err(error) => {
                tracing::warn!(%payer, %channel, %total, %error, "a receipt shows calls that these books lack");
            }
        }
    }
}
