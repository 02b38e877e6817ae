//! Calls that cost nothing are kept by number, not by time: whoever makes them for nothing fills no disk.
//!
//! Only calls without effects, which may be made anew under their ids. What was charged, and what may have had an effect,
//! is kept as long as the ledger keeps anything.

use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};

use super::forget;
use crate::{
    error::Result,
    tables::{self, UNCHARGED_BY_TIME},
};

/// Some 50 MB with their indices, and a day of a service that fails every other second.
pub(super) const ROWS_MAX: u64 = 50_000;

/// Notes one more, and removes the oldest beyond `rows_max`.
pub(super) fn keep_newest(
    tx: &WriteTransaction,
    calls: &mut Table<'_, &'static [u8; 36], &'static [u8]>,
    by_time: [u8; 44],
    rows_max: u64,
) -> Result<()> {
    tx.open_table(UNCHARGED_BY_TIME)?.insert(&by_time, ())?;
    while let Some(oldest) = beyond(tx, rows_max)? {
        let key: [u8; 36] = tables::join(&[&oldest[8..]]);
        let row = calls.remove(&key)?.map(|bytes| bytes.value().to_vec());
        match row {
            Some(row) => forget(tx, &key, &tables::decode("calls", &row)?)?,
            None => drop(tx.open_table(UNCHARGED_BY_TIME)?.remove(&oldest)?),
        }
    }
    Ok(())
}

/// The oldest, when there are too many.
fn beyond(tx: &WriteTransaction, rows_max: u64) -> Result<Option<[u8; 44]>> {
    let table = tx.open_table(UNCHARGED_BY_TIME)?;
    if table.len()? <= rows_max {
        return Ok(None);
    }
    Ok(table.first()?.map(|(key, _)| *key.value()))
}
