//! Settlements: each claim transaction with its rows and what became of it.
//!
//! 1. [`Ledger::open_settlement`] records the rows before the transaction is made.
//! 2. [`Ledger::record_claim`] records its hash, then its end; a confirmed one raises what is claimed in the
//!    same commit.
//! 3. What a payer withdrew although it was charged is a settlement of its own, made when the chain shows it.
//!
//! Invariant M3: claimed never exceeds what was charged, and a confirmed settlement is final, unless the chain replaces the
//! block that had it: then it is under way again.

use farthing_protocol::{ChannelId, Hash, Usdc};
use minicbor::{Decode, Encode};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    Ledger,
    error::{LedgerError, Result, within},
    payee,
    tables::{self, PAYEE_CHANNELS, SETTLEMENTS},
};

/// Channels in one claim; the contract's batch has a gas limit far below.
pub const SETTLEMENT_ROWS_MAX: usize = 1_000;

/// What became of a claim transaction.
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
}

/// One channel's part of a claim: paid out before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettlementRow {
    pub channel: ChannelId,
    pub from: Usdc,
    pub to: Usdc,
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
            let settlement = Settlement { id, transaction: None, rows, time_secs, state };
            insert(tx, &settlement)?;
            Ok(settlement)
        })
        .await
    }

    /// Replaces the record of a settlement. When it is confirmed, `claimed` of every row's channel rises to
    /// `to`, which the caller sets to what the chain paid.
    ///
    /// # Errors
    /// [`LedgerError::UnknownSettlement`], [`LedgerError::SettlementFinal`] unless nothing changes, or a row
    /// that cannot have been claimed.
    pub async fn record_claim(&self, settlement: Settlement) -> Result<()> {
        self.write(move |tx| record_claim(tx, &settlement)).await
    }

    /// Settlements, newest first.
    ///
    /// # Errors
    /// Only failures of storage.
    pub fn settlements(&self, limit: usize) -> Result<Vec<Settlement>> {
        self.read(|tx| {
            let table = tx.open_table(SETTLEMENTS)?;
            let newest = table.iter()?.rev().take(limit).map(|entry| {
                let (id, bytes) = entry?;
                Ok(decode(bytes.value())?.into_settlement(id.value()))
            });
            newest.collect()
        })
    }
}

/// Settlements among which those that the chain took back are looked for: it replaces its newest blocks only.
const REOPENED_LOOK_BACK: usize = 64;

fn record_claim(tx: &WriteTransaction, settlement: &Settlement) -> Result<()> {
    let id = settlement.id;
    let known = tx.open_table(SETTLEMENTS)?.get(id)?.map(|bytes| decode(bytes.value())).transpose()?;
    let known = known.ok_or(LedgerError::UnknownSettlement(id))?.into_settlement(id);
    if matches!(known.state, SettlementState::Confirmed | SettlementState::Lost) {
        let same = known.rows == settlement.rows && settlement.state == known.state;
        return if same { Ok(()) } else { Err(LedgerError::SettlementFinal(id)) };
    }
    check_rows(tx, &settlement.rows)?;
    if settlement.state == SettlementState::Confirmed {
        let mut channels = tx.open_table(PAYEE_CHANNELS)?;
        for row in &settlement.rows {
            let known = payee::channel_in(&channels, row.channel)?;
            let mut channel = known.ok_or(LedgerError::UnknownChannel(row.channel))?;
            channel.claimed = channel.claimed.max(row.to);
            channels.insert(row.channel.as_bytes(), tables::encode(&channel).as_slice())?;
        }
    }
    insert(tx, settlement)
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
    let mut taken_back = Vec::new();
    for entry in tx.open_table(SETTLEMENTS)?.iter()?.rev().take(REOPENED_LOOK_BACK) {
        let (id, bytes) = entry?;
        let settlement = decode(bytes.value())?.into_settlement(id.value());
        taken_back.extend(Some(settlement).filter(is_taken_back));
    }
    for settlement in taken_back {
        insert(tx, &Settlement { state: SettlementState::Pending, ..settlement })?;
    }
    Ok(())
}

/// Books what the payer withdrew of a channel: the part of what is spent that can no longer be claimed.
pub(crate) fn record_loss(
    tx: &WriteTransaction,
    channel: ChannelId,
    lost: Usdc,
    spent: Usdc,
    time_secs: u64,
) -> Result<()> {
    let row = SettlementRow { channel, from: spent.saturating_sub(lost), to: spent };
    let (id, state) = (next_id(tx)?, SettlementState::Lost);
    insert(tx, &Settlement { id, transaction: None, rows: vec![row], time_secs, state })
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

fn insert(tx: &WriteTransaction, settlement: &Settlement) -> Result<()> {
    let bytes = tables::encode(&StoredSettlement::from(settlement));
    tx.open_table(SETTLEMENTS)?.insert(settlement.id, bytes.as_slice())?;
    Ok(())
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
    rows: Vec<StoredRow>,
    #[n(2)]
    time_secs: u64,
    #[n(3)]
    state: SettlementState,
}

#[derive(Clone, Copy, Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct StoredRow {
    #[n(0)]
    channel: ChannelId,
    #[n(1)]
    from: Usdc,
    #[n(2)]
    to: Usdc,
}

impl From<&Settlement> for StoredSettlement {
    fn from(settlement: &Settlement) -> Self {
        let row = |row: &SettlementRow| StoredRow { channel: row.channel, from: row.from, to: row.to };
        Self {
            transaction: settlement.transaction.map(Into::into),
            rows: settlement.rows.iter().map(row).collect(),
            time_secs: settlement.time_secs,
            state: settlement.state,
        }
    }
}

impl StoredSettlement {
    pub(crate) fn into_settlement(self, id: u64) -> Settlement {
        let row = |row: StoredRow| SettlementRow { channel: row.channel, from: row.from, to: row.to };
        Settlement {
            id,
            transaction: self.transaction.map(Into::into),
            rows: self.rows.into_iter().map(row).collect(),
            time_secs: self.time_secs,
            state: self.state,
        }
    }
}
