//! Calls that cost nothing are kept by number, not by time: whoever makes them for nothing fills no disk.
//!
//! Those with effects are counted apart: a call without any may be made anew under its id, so however many of these come,
//! they push out no call that must not run twice. What was charged is kept as long as the ledger keeps anything.

use farthing_values::Method;
use redb::{ReadableTable as _, Table, TableDefinition, WriteTransaction};

use super::{forget, shares::Share};
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
    share: Share,
    rows_max: u64,
}

impl Kind {
    pub(super) const fn of(method: Method) -> Self {
        if method.is_safe() {
            Self { by_time: UNCHARGED_BY_TIME, share: Share::Uncharged, rows_max: ROWS_MAX }
        } else {
            Self { by_time: UNCHARGED_EFFECTS_BY_TIME, share: Share::UnchargedEffects, rows_max: EFFECTS_MAX }
        }
    }

    pub(super) const ALL: [Self; 2] = [Self::of(Method::Get), Self::of(Method::Post)];

    pub(super) fn forget(self, tx: &WriteTransaction, by_time: &[u8; 44]) -> Result<()> {
        tx.open_table(self.by_time)?.remove(by_time)?;
        self.share.remove(tx, by_time)
    }
}

/// Notes one more, and removes the oldest of its kind beyond its number, of its payer first if that has more than its part.
pub(super) fn keep_newest(
    tx: &WriteTransaction,
    calls: &mut Table<'_, &'static [u8; 36], &'static [u8]>,
    by_time: [u8; 44],
    kind: Kind,
) -> Result<()> {
    tx.open_table(kind.by_time)?.insert(&by_time, ())?;
    kind.share.add(tx, &by_time, 1)?;
    while let Some(of_all) = tables::oldest_beyond(tx, kind.by_time, kind.rows_max)? {
        let oldest = kind.share.oldest_beyond(tx, &by_time, kind.rows_max)?.unwrap_or(of_all);
        let key: [u8; 36] = tables::join(&[&oldest[8..]]);
        // An earlier program may have removed it, and stored another one under its id.
        let is_kept = tx.open_table(kind.by_time)?.get(&oldest)?.is_some();
        let row = if is_kept { calls.remove(&key)?.map(|bytes| bytes.value().to_vec()) } else { None };
        match row {
            Some(row) => forget(tx, &key, &tables::decode("calls", &row)?)?,
            None => kind.forget(tx, &oldest)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use farthing_values::{Address, CallId};
    use redb::{Database, backends::InMemoryBackend};

    use super::*;
    use crate::{
        rows::payee::{call_key, time_key},
        tables::CALLS,
    };

    #[test]
    fn one_payer_pushes_out_none_of_the_calls_of_others_that_must_not_run_twice() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let tx = database.begin_write().unwrap();
        let mut calls = tx.open_table(CALLS).unwrap();
        let kind = Kind { rows_max: 8, ..Kind::of(Method::Post) };
        let mut keep = |number: u8, payer: u8| {
            let key = call_key(Address::from_bytes([payer; 20]), CallId::from_bytes([number; 16]));
            keep_newest(&tx, &mut calls, time_key(number.into(), &key), kind).unwrap();
        };
        (0..6).for_each(|number| keep(number, 1));
        (10..60).for_each(|number| keep(number, 2));
        let kept = tx.open_table(kind.by_time).unwrap();
        let payers: Vec<u8> = kept.iter().unwrap().map(|call| call.unwrap().0.value()[8]).collect();
        assert_eq!(payers, [1, 1, 1, 1, 1, 1, 2, 2]);
    }
}
