//! Settlements found otherwise than by their number: those that name a channel, and those that are under way.
//!
//! A program without these tables writes settlements and leaves them as they are, so each opening looks through all
//! settlements once and makes the tables anew where they do not fit. Their number and the newest one's would not do: such a
//! program also ends and reopens claims in place.

use std::collections::BTreeSet;

use farthing_values::ChannelId;
use redb::{ReadableTable, WriteTransaction};

use super::{Settlement, SettlementState, decode, newest_first};
use crate::{
    error::Result,
    tables::{self, SETTLEMENTS, SETTLEMENTS_BY_CHANNEL, SETTLEMENTS_UNDER_WAY},
};

pub(super) fn enter(tx: &WriteTransaction, settlement: &Settlement) -> Result<()> {
    let mut by_channel = tx.open_table(SETTLEMENTS_BY_CHANNEL)?;
    for key in keys(settlement) {
        by_channel.insert(&key, ())?;
    }
    if settlement.state == SettlementState::Pending {
        tx.open_table(SETTLEMENTS_UNDER_WAY)?.insert(settlement.id, ())?;
    }
    Ok(())
}

/// Takes a settlement out again.
pub(super) fn leave(tx: &WriteTransaction, settlement: &Settlement) -> Result<()> {
    let mut by_channel = tx.open_table(SETTLEMENTS_BY_CHANNEL)?;
    for key in keys(settlement) {
        by_channel.remove(&key)?;
    }
    tx.open_table(SETTLEMENTS_UNDER_WAY)?.remove(settlement.id)?;
    Ok(())
}

/// Lists the settlements that name a channel, the newest first.
pub(super) fn numbers_of(
    by_channel: &impl ReadableTable<&'static [u8; 40], ()>,
    channel: ChannelId,
) -> Result<Vec<u64>> {
    let [first, last] = [0, u64::MAX].map(|number| key(channel, number));
    let numbers = by_channel.range::<&[u8; 40]>(&first..=&last)?.rev().map(|entry| {
        let (key, _) = entry?;
        Ok(u64::from_be_bytes(tables::join(&[&key.value()[32..]])))
    });
    numbers.collect()
}

/// Tells whether the tables have an entry for all that is in the settlements, and for nothing else.
pub(crate) fn fits(
    settlements: &impl ReadableTable<u64, &'static [u8]>,
    by_channel: &impl ReadableTable<&'static [u8; 40], ()>,
    under_way: &impl ReadableTable<u64, ()>,
) -> Result<bool> {
    let (mut named, mut pending) = (0, 0);
    for settlement in newest_first(settlements)? {
        let settlement = settlement?;
        for key in keys(&settlement) {
            if by_channel.get(&key)?.is_none() {
                return Ok(false);
            }
            named += 1;
        }
        if settlement.state == SettlementState::Pending {
            if under_way.get(settlement.id)?.is_none() {
                return Ok(false);
            }
            pending += 1;
        }
    }
    Ok(by_channel.iter()?.count() == named && under_way.iter()?.count() == pending)
}

/// As [`fits`], of what a transaction has written.
pub(crate) fn is_whole(tx: &WriteTransaction) -> Result<bool> {
    let (by_channel, under_way) =
        (tx.open_table(SETTLEMENTS_BY_CHANNEL)?, tx.open_table(SETTLEMENTS_UNDER_WAY)?);
    fits(&tx.open_table(SETTLEMENTS)?, &by_channel, &under_way)
}

/// Makes the tables anew.
pub(crate) fn make(tx: &WriteTransaction) -> Result<()> {
    tx.open_table(SETTLEMENTS_BY_CHANNEL)?.retain(|_, ()| false)?;
    tx.open_table(SETTLEMENTS_UNDER_WAY)?.retain(|_, ()| false)?;
    for entry in tx.open_table(SETTLEMENTS)?.iter()? {
        let (id, bytes) = entry?;
        enter(tx, &decode(bytes.value())?.into_settlement(id.value()))?;
    }
    Ok(())
}

/// The entries of a settlement by channel: channel ‖ number.
fn keys(settlement: &Settlement) -> BTreeSet<[u8; 40]> {
    settlement.rows.iter().map(|row| key(row.channel, settlement.id)).collect()
}

fn key(channel: ChannelId, number: u64) -> [u8; 40] {
    tables::join(&[channel.as_bytes(), &number.to_be_bytes()])
}
