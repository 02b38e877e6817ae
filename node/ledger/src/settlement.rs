//! Settlements: each claim transaction with its rows and what became of it.
//!
//! 1. [`Ledger::open_settlement`] records the rows before the transaction is made.
//! 2. [`Ledger::record_claim`] records its hash, unless [`Ledger::note_transaction`] did, and its end. It is confirmed once the
//!    channels' states show it paid ([`Ledger::put_payee_channel`]); a receipt alone does not.
//! 3. What a channel's state shows as paid and none of these stands for is a settlement without a transaction of this node.
//! 4. What this wallet has back of a deposit on a channel that was emptied is a settlement of its own, as the channel's
//!    round shows it.
//! 5. What a payer withdrew although it was charged is a settlement of its own, made when the chain shows it, and taken
//!    back when the chain pays it after all.
//! 6. A claim whose transaction no block has any more is told so, whatever paid it in the end: see
//!    [`Ledger::correct_transaction`].
//!
//! Invariant M3: claimed never exceeds what was charged, and a confirmed settlement is final, unless the chain replaces the
//! block that had it: then it is under way again.

use std::collections::BTreeMap;

use farthing_values::{ChannelId, Hash, Usdc};
use minicbor::{Decode, Encode};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    Ledger,
    error::{LedgerError, Result, within},
    rows::payee,
    tables::{self, PAYEE_CHANNELS, SETTLEMENTS, SETTLEMENTS_BY_CHANNEL, SETTLEMENTS_UNDER_WAY},
};

pub(crate) mod index;

/// Channels in one claim; the contract's batch has a gas limit far below.
pub const SETTLEMENT_ROWS_MAX: usize = 1_000;

/// The state of a claim transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SettlementState {
    #[n(0)]
    Pending,
    #[n(1)]
    Confirmed,
    #[n(2)]
    Failed,
    /// No transaction: the payer withdrew what was charged.
    #[n(3)]
    Lost,
    /// The channel was emptied, and this wallet has back what was left of its deposit.
    #[n(4)]
    Returned,
}

/// One channel's part of a claim: paid out before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SettlementRow {
    #[n(0)]
    pub channel: ChannelId,
    #[n(1)]
    pub from: Usdc,
    #[n(2)]
    pub to: Usdc,
}

impl SettlementRow {
    /// Returns the amount that it pays, or would have paid.
    pub fn amount(&self) -> Usdc {
        self.to.saturating_sub(self.from)
    }
}

/// One claim transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Given by [`Ledger::open_settlement`], ascending.
    pub id: u64,
    /// `None` until it was sent.
    pub transaction: Option<Hash>,
    pub rows: Vec<SettlementRow>,
    /// Seconds since the Unix epoch, of the last change.
    pub time_secs: u64,
    pub state: SettlementState,
    /// True while its transaction is no longer in any block: it is due again, or another one paid it.
    pub is_dropped: bool,
}

impl Ledger {
    /// Records a claim that is about to be made, pending and without a transaction.
    ///
    /// # Errors
    /// [`LedgerError::ClaimAboveSpent`] or [`LedgerError::UnknownChannel`] for a row that must not be claimed.
    pub async fn open_settlement(&self, rows: Vec<SettlementRow>, time_secs: u64) -> Result<Settlement> {
        self.write(move |tx| {
            check_rows(tx, &rows)?;
            let (id, state) = (next_id(tx)?, SettlementState::Pending);
            let settlement = Settlement { id, transaction: None, rows, time_secs, state, is_dropped: false };
            insert(tx, &settlement)?;
            Ok(settlement)
        })
        .await
    }

    /// Replaces the record of a settlement. One that is said to be confirmed stays pending while the state of a channel
    /// does not show `to` as paid. Gives the state as recorded.
    ///
    /// # Errors
    /// [`LedgerError::UnknownSettlement`], [`LedgerError::SettlementFinal`] unless nothing changes, or a row
    /// that cannot have been claimed.
    pub async fn record_claim(&self, settlement: Settlement) -> Result<SettlementState> {
        self.write(move |tx| record_claim(tx, settlement)).await
    }

    /// Settlements, newest first.
    pub fn settlements(&self, limit: usize) -> Result<Vec<Settlement>> {
        self.read(|tx| newest_first(&tx.open_table(SETTLEMENTS)?)?.take(limit).collect())
    }

    /// Returns the settlement with this number.
    pub fn settlement(&self, id: u64) -> Result<Option<Settlement>> {
        self.read(|tx| settlement_in(&tx.open_table(SETTLEMENTS)?, id))
    }

    /// Settlements that name a channel, newest first.
    pub fn settlements_of(&self, channel: ChannelId) -> Result<Vec<Settlement>> {
        self.read(|tx| naming(&tx.open_table(SETTLEMENTS_BY_CHANNEL)?, &tx.open_table(SETTLEMENTS)?, channel))
    }

    /// Claims whose end the chain does not show, those included that it took back.
    pub fn settlements_under_way(&self) -> Result<Vec<Settlement>> {
        self.read(|tx| {
            let (table, mut found) = (tx.open_table(SETTLEMENTS)?, Vec::new());
            for entry in tx.open_table(SETTLEMENTS_UNDER_WAY)?.iter()? {
                found.extend(settlement_in(&table, entry?.0.value())?);
            }
            Ok(found)
        })
    }
}

fn record_claim(tx: &WriteTransaction, settlement: Settlement) -> Result<SettlementState> {
    let id = settlement.id;
    let known = settlement_in(&tx.open_table(SETTLEMENTS)?, id)?.ok_or(LedgerError::UnknownSettlement(id))?;
    if !matches!(known.state, SettlementState::Pending | SettlementState::Failed) {
        let same = known.rows == settlement.rows && settlement.state == known.state;
        return if same { Ok(known.state) } else { Err(LedgerError::SettlementFinal(id)) };
    }
    check_rows(tx, &settlement.rows)?;
    let is_confirmed = settlement.state == SettlementState::Confirmed;
    let state = match is_confirmed && !is_paid(tx, &settlement.rows)? {
        true => SettlementState::Pending,
        false => settlement.state,
    };
    // What became of its transaction is not for whoever made it to say.
    let transaction = settlement.transaction.or(known.transaction);
    let is_dropped = known.is_dropped && known.transaction == transaction;
    insert(tx, &Settlement { transaction, state, is_dropped, ..settlement })?;
    Ok(state)
}

/// Returns whether the channels' states show these rows as paid.
fn is_paid(tx: &WriteTransaction, rows: &[SettlementRow]) -> Result<bool> {
    let channels = tx.open_table(PAYEE_CHANNELS)?;
    for row in rows {
        if payee::channel_in(&channels, row.channel)?.is_none_or(|channel| channel.claimed < row.to) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Claims of a channel beyond what the chain now says was paid are under way again: a block was replaced by others, which
/// may yet have them.
pub(crate) fn reopen(
    tx: &WriteTransaction,
    channel: ChannelId,
    (before, claimed): (Usdc, Usdc),
) -> Result<()> {
    if claimed >= before {
        return Ok(());
    }
    let is_taken_back = |settlement: &Settlement| {
        let beyond = |row: &SettlementRow| row.channel == channel && row.from < row.to && claimed < row.to;
        settlement.state == SettlementState::Confirmed && settlement.rows.iter().any(beyond)
    };
    for settlement in of_channel(tx, channel)?.into_iter().filter(is_taken_back) {
        insert(tx, &Settlement { state: SettlementState::Pending, ..settlement })?;
    }
    Ok(())
}

/// Names a transaction in the newest claim on a channel, if that names none: a restart that finishes a claim knows of none, and
/// may have told the claim's end before.
pub(crate) fn note_sent(tx: &WriteTransaction, channel: ChannelId, transaction: Hash) -> Result<()> {
    let is_claim =
        |one: &Settlement| matches!(one.state, SettlementState::Pending | SettlementState::Confirmed);
    let newest = of_channel(tx, channel)?.into_iter().find(is_claim);
    match newest.filter(|claim| claim.transaction.is_none()) {
        Some(claim) => insert(tx, &Settlement { transaction: Some(transaction), ..claim }),
        None => Ok(()),
    }
}

/// Notes on the claim that a transaction was sent for whether no block has that transaction any more. What paid it instead is
/// not known by any hash: the channels' states show it.
pub(crate) fn note_dropped(tx: &WriteTransaction, transaction: &Hash, is_dropped: bool) -> Result<()> {
    let found = with_transaction(&tx.open_table(SETTLEMENTS)?, transaction)?;
    found.map_or(Ok(()), |claim| insert(tx, &Settlement { is_dropped, ..claim }))
}

/// Notes what a channel's state shows as paid and no claim of this ledger stands for: a close paid it, or a claim that
/// somebody else brought.
pub(crate) fn note_paid(
    tx: &WriteTransaction,
    channel: ChannelId,
    (before, claimed): (Usdc, Usdc),
    time_secs: u64,
) -> Result<()> {
    if claimed <= before {
        return Ok(());
    }
    let mut from = before;
    let numbers = index::numbers_of(&tx.open_table(SETTLEMENTS_BY_CHANNEL)?, channel)?;
    for number in numbers {
        let Some(settlement) = settlement_in(&tx.open_table(SETTLEMENTS)?, number)? else { continue };
        let stands = matches!(settlement.state, SettlementState::Pending | SettlementState::Confirmed);
        for row in settlement.rows.iter().filter(|row| stands && row.channel == channel) {
            from = from.max(row.to);
        }
        // Nearly always the newest, which this node has just made.
        if from >= claimed {
            return Ok(());
        }
    }
    let row = SettlementRow { channel, from, to: claimed };
    add(tx, row, time_secs, SettlementState::Confirmed)
}

/// Notes what came back of a deposit when the channel was emptied, which its round tells, and takes that back with the round.
pub(crate) fn note_returned(
    tx: &WriteTransaction,
    row: SettlementRow,
    (before, round): (u32, u32),
    time_secs: u64,
) -> Result<()> {
    if round > before && !row.amount().is_zero() {
        return add(tx, row, time_secs, SettlementState::Returned);
    }
    if round >= before {
        return Ok(());
    }
    let mut told = of_channel(tx, row.channel)?;
    told.retain(|one| one.state == SettlementState::Returned);
    for one in told.iter().take(before.saturating_sub(round) as usize) {
        remove(tx, one.id)?;
    }
    Ok(())
}

/// Sums the losses of each channel.
pub(crate) fn losses(table: &impl ReadableTable<u64, &'static [u8]>) -> Result<BTreeMap<ChannelId, Usdc>> {
    let mut losses: BTreeMap<ChannelId, Usdc> = BTreeMap::new();
    for settlement in newest_first(table)? {
        let settlement = settlement?;
        for row in settlement.rows.iter().filter(|_| settlement.state == SettlementState::Lost) {
            let sum = losses.entry(row.channel).or_default();
            *sum = sum.saturating_add(row.amount());
        }
    }
    Ok(losses)
}

/// Books what the payer withdrew of a channel, so that its losses come to `lost`, which ends at `spent`: what is new is a
/// row of its own; what is paid after all, or can be claimed again, is taken out of the newest.
pub(crate) fn book_losses(
    tx: &WriteTransaction,
    channel: ChannelId,
    (lost, spent): (Usdc, Usdc),
    time_secs: u64,
) -> Result<()> {
    let mut told = of_channel(tx, channel)?;
    told.retain(|one| one.state == SettlementState::Lost);
    let amounts = told.iter().flat_map(|one| &one.rows).map(SettlementRow::amount);
    let booked = amounts.fold(Usdc::ZERO, Usdc::saturating_add);
    let newly = lost.saturating_sub(booked);
    if !newly.is_zero() {
        let row = SettlementRow { channel, from: spent.saturating_sub(newly), to: spent };
        return add(tx, row, time_secs, SettlementState::Lost);
    }
    let mut found_again = booked.saturating_sub(lost);
    for mut loss in told {
        // A loss has one row.
        let Some(row) = loss.rows.first_mut().filter(|_| !found_again.is_zero()) else { break };
        let part = found_again.min(row.amount());
        found_again = found_again.saturating_sub(part);
        row.from = row.from.saturating_add(part);
        if row.amount().is_zero() {
            remove(tx, loss.id)?;
        } else {
            insert(tx, &loss)?;
        }
    }
    Ok(())
}

/// Earlier programs did not take back what was lost and then paid: rows beyond what a channel has lost go.
pub(crate) fn weigh_losses(tx: &WriteTransaction) -> Result<()> {
    let booked = losses(&tx.open_table(SETTLEMENTS)?)?;
    for channel in booked.into_keys() {
        let row = payee::channel_in(&tx.open_table(PAYEE_CHANNELS)?, channel)?;
        let (lost, spent) =
            row.map_or_else(Default::default, |row| (row.lost.unwrap_or_default(), row.spent));
        book_losses(tx, channel, (lost, spent), 0)?;
    }
    Ok(())
}

fn newest_first(
    table: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<impl Iterator<Item = Result<Settlement>>> {
    Ok(table.iter()?.rev().map(|entry| {
        let (id, bytes) = entry?;
        Ok(decode(bytes.value())?.into_settlement(id.value()))
    }))
}

fn settlement_in(table: &impl ReadableTable<u64, &'static [u8]>, id: u64) -> Result<Option<Settlement>> {
    let stored = tables::get::<_, StoredSettlement>(table, "settlements", id)?;
    Ok(stored.map(|stored| stored.into_settlement(id)))
}

/// Looks through all settlements, because hardly any transaction is ever asked for.
fn with_transaction(
    table: &impl ReadableTable<u64, &'static [u8]>,
    transaction: &Hash,
) -> Result<Option<Settlement>> {
    for settlement in newest_first(table)? {
        let settlement = settlement?;
        if settlement.transaction.as_ref() == Some(transaction) {
            return Ok(Some(settlement));
        }
    }
    Ok(None)
}

/// Reads the settlements that name a channel, the newest first.
fn of_channel(tx: &WriteTransaction, channel: ChannelId) -> Result<Vec<Settlement>> {
    naming(&tx.open_table(SETTLEMENTS_BY_CHANNEL)?, &tx.open_table(SETTLEMENTS)?, channel)
}

fn naming(
    by_channel: &impl ReadableTable<&'static [u8; 40], ()>,
    table: &impl ReadableTable<u64, &'static [u8]>,
    channel: ChannelId,
) -> Result<Vec<Settlement>> {
    let numbers = index::numbers_of(by_channel, channel)?;
    numbers.into_iter().filter_map(|number| settlement_in(table, number).transpose()).collect()
}

fn next_id(tx: &WriteTransaction) -> Result<u64> {
    Ok(tx.open_table(SETTLEMENTS)?.last()?.map_or(0, |(id, _)| id.value()) + 1)
}

/// Nothing is claimed that was not charged; checked for all rows before any is written.
fn check_rows(tx: &WriteTransaction, rows: &[SettlementRow]) -> Result<()> {
    within("a settlement's list of rows", rows.len(), SETTLEMENT_ROWS_MAX)?;
    let channels = tx.open_table(PAYEE_CHANNELS)?;
    for row in rows {
        let channel = payee::channel_in(&channels, row.channel)?;
        let spent = channel.ok_or(LedgerError::UnknownChannel(row.channel))?.spent;
        if row.to > spent {
            return Err(LedgerError::ClaimAboveSpent { channel: row.channel, claimed: row.to, spent });
        }
    }
    Ok(())
}

/// Adds what the chain shows and no transaction of this node stands for.
fn add(tx: &WriteTransaction, row: SettlementRow, time_secs: u64, state: SettlementState) -> Result<()> {
    let (id, rows) = (next_id(tx)?, vec![row]);
    insert(tx, &Settlement { id, transaction: None, rows, time_secs, state, is_dropped: false })
}

fn insert(tx: &WriteTransaction, settlement: &Settlement) -> Result<()> {
    remove(tx, settlement.id)?;
    let bytes = tables::encode(&StoredSettlement::from(settlement));
    tx.open_table(SETTLEMENTS)?.insert(settlement.id, bytes.as_slice())?;
    index::enter(tx, settlement)
}

fn remove(tx: &WriteTransaction, id: u64) -> Result<()> {
    let removed = tx.open_table(SETTLEMENTS)?.remove(id)?.map(|bytes| decode(bytes.value())).transpose()?;
    removed.map_or(Ok(()), |stored| index::leave(tx, &stored.into_settlement(id)))
}

pub(crate) fn decode(bytes: &[u8]) -> Result<StoredSettlement> {
    tables::decode("settlements", bytes)
}

#[derive(Clone, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredSettlement {
    #[n(0)]
    transaction: Option<minicbor::bytes::ByteArray<32>>,
    #[n(1)]
    rows: Vec<SettlementRow>,
    #[n(2)]
    time_secs: u64,
    #[n(3)]
    state: SettlementState,
    #[n(4)]
    dropped: Option<bool>,
}

impl From<&Settlement> for StoredSettlement {
    fn from(settlement: &Settlement) -> Self {
        Self {
            transaction: settlement.transaction.map(Into::into),
            rows: settlement.rows.clone(),
            time_secs: settlement.time_secs,
            state: settlement.state,
            dropped: settlement.is_dropped.then_some(true),
        }
    }
}

impl StoredSettlement {
    pub(crate) fn into_settlement(self, id: u64) -> Settlement {
        Settlement {
            id,
            transaction: self.transaction.map(Into::into),
            rows: self.rows,
            time_secs: self.time_secs,
            state: self.state,
            is_dropped: self.dropped.unwrap_or_default(),
        }
    }
}
