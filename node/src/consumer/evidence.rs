//! Evidence for an owner that lost records.

use farthing_ledger::Ledger;
use farthing_protocol::{ChannelId, Voucher, books::Shown};
use farthing_wallet::Signer;

/// An owner's newest receipt on a channel, with a voucher over what this node has
/// acknowledged of that total. More is not promised by it: what the receipt counts beyond that may be calls that were
/// never sent, or that are sent again.
pub fn newest_word(ledger: &Ledger, signer: &Signer, channel: ChannelId) -> Option<Shown> {
    let newest = ledger.newest_receipt(channel).unwrap_or_else(|error| {
        tracing::warn!(%channel, %error, "the newest receipt cannot be read");
        None
    });
    let (receipt, receipt_signature, promised) = newest?;
    let voucher_signature = signer.sign_voucher(&Voucher { channel, cumulative: promised }, promised).ok()?;
    Some(Shown { receipt, receipt_signature, promised, voucher_signature })
}
