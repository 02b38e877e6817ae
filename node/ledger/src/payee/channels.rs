//! Channels this node is paid on: what the chain says of them, and what their payers prove.

use farthing_values::{ChannelId, Receipt, Verified, Voucher};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::{
    Ledger,
    adjustment::{self, Cause},
    error::{LedgerError, Result},
    rows::{
        Side,
        payee::{Ending, PayeeChannelFacts, PayeeChannelRow, StoredPayeeChannel, channel_in},
    },
    settlement,
    tables::{self, PAYEE_CHANNELS},
};

impl Ledger {
    /// Records what the chain says; what was charged and promised stays as it is. Where `claimed` falls, because the chain
    /// replaced the block of a claim, that settlement is under way again.
    ///
    /// When the chain has paid out more than this ledger charged, it is a restored or a new one: the difference is carried
    /// into `spent` as an opening balance, and out of it when the chain takes that back before a receipt counts on it. What
    /// the payer withdrew although it was charged is booked as a settlement of its own, as long as the chain does not pay
    /// it after all. Gives the channel as recorded. Every call is a commit, so call it when something changed.
    ///
    /// # Errors
    /// [`LedgerError::ChannelConflict`] when the id is known with other terms.
    pub async fn put_payee_channel(&self, channel: PayeeChannelFacts) -> Result<PayeeChannelRow> {
        self.write(move |tx| put_channel(tx, channel)).await
    }

    /// Takes over a total that this wallet signed and this ledger counts less than, because it came from a backup, with the
    /// payer's promise of it. What the ledger lacks is an adjustment. Gives the channel as recorded.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`], [`LedgerError::WrongParty`] when the proofs are of others, and
    /// [`LedgerError::VoucherAboveDeposit`] while the deposit does not cover the promise.
    pub async fn recover_earned(
        &self,
        receipt: Verified<Receipt>,
        voucher: Verified<Voucher>,
    ) -> Result<PayeeChannelRow> {
        self.write(move |tx| recover_earned(tx, &receipt, &voucher)).await
    }

    /// Records what this node takes on towards the end of a channel.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`].
    pub async fn end_payee_channel(&self, id: ChannelId, ending: Ending) -> Result<PayeeChannelRow> {
        self.write(move |tx| change(tx, id, |row| row.end(ending))).await
    }

    /// Records that the signed close of a channel was brought, which ends the duty, and keeps it in mind until another one is
    /// taken on or it is void.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`].
    pub async fn end_brought_close(&self, id: ChannelId, close: Ending) -> Result<PayeeChannelRow> {
        self.write(move |tx| change(tx, id, |row| row.end_brought(close))).await
    }

    /// Forgets a channel on which nothing was ever charged or promised, and whose close this node has not signed; any
    /// other stays.
    pub async fn forget_unused_payee_channel(&self, id: ChannelId) -> Result<()> {
        self.write(move |tx| {
            let mut table = tx.open_table(PAYEE_CHANNELS)?;
            let is_unused = channel_in(&table, id)?
                .is_some_and(|row| row.spent.is_zero() && row.best.is_zero() && row.ending() == Ending::None);
            if is_unused {
                table.remove(id.as_bytes())?;
            }
            Ok(())
        })
        .await
    }

    /// Every channel this node is paid on.
    pub fn payee_channels(&self) -> Result<Vec<PayeeChannelRow>> {
        self.read(all_channels)
    }

    /// One channel this node is paid on.
    pub fn payee_channel(&self, id: ChannelId) -> Result<Option<PayeeChannelRow>> {
        self.read(|tx| Ok(channel_in(&tx.open_table(PAYEE_CHANNELS)?, id)?.map(|row| row.into_row(id))))
    }
}

fn change(
    tx: &WriteTransaction,
    id: ChannelId,
    with: impl FnOnce(&mut StoredPayeeChannel),
) -> Result<PayeeChannelRow> {
    let mut table = tx.open_table(PAYEE_CHANNELS)?;
    let mut row = channel_in(&table, id)?.ok_or(LedgerError::UnknownChannel(id))?;
    with(&mut row);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(row.into_row(id))
}

fn put_channel(tx: &WriteTransaction, channel: PayeeChannelFacts) -> Result<PayeeChannelRow> {
    let mut table = tx.open_table(PAYEE_CHANNELS)?;
    let mut row = channel_in(&table, channel.id)?.unwrap_or_else(|| StoredPayeeChannel::new(&channel.config));
    if row.config != channel.config {
        return Err(LedgerError::ChannelConflict(channel.id));
    }
    let before = row.opening;
    settlement::reopen(tx, channel.id, (row.claimed, channel.claimed))?;
    // Of what these books know as charged: the rest is an adjustment's to tell.
    let known = channel.claimed.min(row.spent);
    settlement::note_paid(tx, channel.id, (row.claimed, known), adjustment::now_secs())?;
    row.observe(&channel);
    // A claim is made of what is recorded, so only an older copy of these books lacks what it paid.
    let cause = adjustment::restored_secs(tx)?.map_or(Cause::Earlier, |_| Cause::Restored);
    let risen = row.opening.saturating_sub(before);
    adjustment::record(tx, (Side::Payee, channel.id), &channel.config, risen, cause)?;
    let fallen = before.saturating_sub(row.opening);
    adjustment::take_back(tx, (Side::Payee, channel.id), fallen, |_| true)?;
    if let Some(lost) = row.book_loss() {
        settlement::book_losses(tx, channel.id, (lost, row.spent), adjustment::now_secs())?;
    }
    table.insert(channel.id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(row.into_row(channel.id))
}

fn recover_earned(
    tx: &WriteTransaction,
    receipt: &Verified<Receipt>,
    voucher: &Verified<Voucher>,
) -> Result<PayeeChannelRow> {
    let id = receipt.channel;
    let mut table = tx.open_table(PAYEE_CHANNELS)?;
    let mut row = channel_in(&table, id)?.ok_or(LedgerError::UnknownChannel(id))?;
    let config = row.config;
    if receipt.signer() != config.payee {
        return Err(LedgerError::WrongParty { channel: id, address: receipt.signer() });
    }
    if voucher.channel != id || voucher.signer() != config.signer {
        return Err(LedgerError::WrongParty { channel: id, address: voucher.signer() });
    }
    let (cumulative, deposited) = (voucher.cumulative, row.deposited);
    if cumulative > deposited {
        return Err(LedgerError::VoucherAboveDeposit { cumulative, deposited });
    }
    row.promise(cumulative, *voucher.signature())?;
    let recovered = row.recover_signed(receipt.spent_total.min(cumulative));
    adjustment::record(tx, (Side::Payee, id), &config, recovered, Cause::Restored)?;
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(row.into_row(id))
}

fn all_channels(tx: &ReadTransaction) -> Result<Vec<PayeeChannelRow>> {
    let table = tx.open_table(PAYEE_CHANNELS)?;
    let rows = table.iter()?.map(|entry| {
        let (id, bytes) = entry?;
        let row: StoredPayeeChannel = tables::decode("payee_channels", bytes.value())?;
        Ok(row.into_row(ChannelId::from_bytes(*id.value())))
    });
    rows.collect()
}
