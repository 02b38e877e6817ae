//! The shares of payers in what is kept: once all room is taken, a payer that has more than its part makes room first, as in the
//! log of refused calls. Wallets cost nothing, but calls of many wallets that nobody pays for are few as well.
//!
//! An earlier program counts nothing here. What it kept goes the oldest first, and what it removed may still be counted: so a key
//! from here may lead to nothing, and goes itself when that is removed.

use redb::{ReadableTable as _, WriteTransaction};

use crate::{
    error::Result,
    tables::{self, KEPT_OF_PAYERS},
};

/// Of all the room, one in so many is the most of one payer once all of it is taken.
const PAYERS_PART: u64 = 4;
/// Bytes of a kind and a payer, with which all keys of that payer begin.
const PREFIX_BYTES: usize = 21;

/// Something that is kept of calls, in the order of time.
#[derive(Clone, Copy)]
pub(super) enum Share {
    Bodies = 0,
    Uncharged = 1,
    UnchargedEffects = 2,
}

impl Share {
    /// Notes that so much of a call is kept.
    pub(super) fn add(self, tx: &WriteTransaction, by_time: &[u8; 44], size: u64) -> Result<()> {
        let mut table = tx.open_table(KEPT_OF_PAYERS)?;
        let before = table.insert(&self.key(by_time), size)?.map_or(0, |before| before.value());
        let sum = table.get(&self.sum_key(by_time))?.map_or(0, |sum| sum.value());
        table.insert(&self.sum_key(by_time), sum.saturating_sub(before).saturating_add(size))?;
        Ok(())
    }

    /// Notes that nothing of a call is kept any more.
    pub(super) fn remove(self, tx: &WriteTransaction, by_time: &[u8; 44]) -> Result<()> {
        let mut table = tx.open_table(KEPT_OF_PAYERS)?;
        let size = table.remove(&self.key(by_time))?.map(|size| size.value());
        let Some(size) = size else { return Ok(()) };
        let sum = table.get(&self.sum_key(by_time))?.map_or(0, |sum| sum.value()).saturating_sub(size);
        if sum == 0 {
            table.remove(&self.sum_key(by_time))?;
        } else {
            table.insert(&self.sum_key(by_time), sum)?;
        }
        Ok(())
    }

    /// The key in the order of time of the oldest that the payer of `newest` has, if that payer has more than its part of
    /// `all_max`.
    pub(super) fn oldest_beyond(
        self,
        tx: &WriteTransaction,
        newest: &[u8; 44],
        all_max: u64,
    ) -> Result<Option<[u8; 44]>> {
        let (table, sum_key) = (tx.open_table(KEPT_OF_PAYERS)?, self.sum_key(newest));
        let sum = table.get(&sum_key)?.map_or(0, |sum| sum.value());
        if sum <= all_max / PAYERS_PART {
            return Ok(None);
        }
        // Behind the sum itself.
        let oldest = table.range::<&[u8; 45]>(&sum_key..)?.nth(1).transpose()?.map(|(key, _)| *key.value());
        let is_its = |key: &[u8; 45]| key[..PREFIX_BYTES] == sum_key[..PREFIX_BYTES];
        Ok(oldest.filter(is_its).map(|key| tables::join(&[&key[21..29], &key[1..21], &key[29..]])))
    }

    fn key(self, by_time: &[u8; 44]) -> [u8; 45] {
        tables::join(&[&[self as u8], &by_time[8..28], &by_time[..8], &by_time[28..]])
    }

    fn sum_key(self, by_time: &[u8; 44]) -> [u8; 45] {
        tables::join(&[&[self as u8], &by_time[8..28], &[0; 24]])
    }
}
