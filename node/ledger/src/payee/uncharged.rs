//! Calls that cost nothing are kept by number, not by time: whoever makes them for nothing fills no disk.
//!
//! Those with effects are counted apart: a call without any may be made anew under its id, so however many of these come,
//! they push out no call that must not run twice. What was charged is kept as long as the ledger keeps anything.

use farthing_protocol::call::Method;
use redb::{Table, TableDefinition, WriteTransaction};

use super::forget;
use crate::{
    error::Result,
    tables::{self, UNCHARGED_BY_TIME, UNCHARGED_EFFECTS_BY_TIME},
};

/// Some 50 MB with their indices, and a day of a service that fails every other second; with the longest paths, which
/// nobody needs, six times as much.
const ROWS_MAX: u64 = 50_000;
/// Each of them was work for the owner's server.
const EFFECTS_MAX: u64 = 20_000;

/// Calls that cost nothing of one kind, and how many of them are kept.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    by_time: TableDefinition<'static, &'static [u8; 44], ()>,
    rows_max: u64,
}

impl Kind {
    pub(super) const fn of(method: Method) -> Self {
        if method.is_safe() {
            Self { by_time: UNCHARGED_BY_TIME, rows_max: ROWS_MAX }
        } else {
            Self { by_time: UNCHARGED_EFFECTS_BY_TIME, rows_max: EFFECTS_MAX }
        }
    }

    pub(super) const ALL: [Self; 2] = [Self::of(Method::Get), Self::of(Method::Post)];

    pub(super) fn forget(self, tx: &WriteTransaction, by_time: &[u8; 44]) -> Result<()> {
        tx.open_table(self.by_time)?.remove(by_time)?;
        Ok(())
    }
}

/// Notes one more, and removes the oldest of its kind beyond its number.
pub(super) fn keep_newest(
    tx: &WriteTransaction,
    calls: &mut Table<'_, &'static [u8; 36], &'static [u8]>,
    by_time: [u8; 44],
    kind: Kind,
) -> Result<()> {
    tx.open_table(kind.by_time)?.insert(&by_time, ())?;
    while let Some(oldest) = tables::oldest_beyond(tx, kind.by_time, kind.rows_max)? {
        let key: [u8; 36] = tables::join(&[&oldest[8..]]);
        let row = calls.remove(&key)?.map(|bytes| bytes.value().to_vec());
        match row {
            Some(row) => forget(tx, &key, &tables::decode("calls", &row)?)?,
            None => kind.forget(tx, &oldest)?,
        }
    }
    Ok(())
}
