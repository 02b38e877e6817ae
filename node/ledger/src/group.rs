//! The transaction of a group of operations, with the tables that each call writes.
//!
//! Opening a table costs as many allocations as a small row, and redb opens none twice at the same time. So the first
//! operation of a group opens these tables, and the last one leaves them to the commit. Other operations open what they
//! need themselves, by [`Group::transaction`], which closes these first.

use std::mem;

use redb::{Key, Table, Value, WriteTransaction};

use crate::{
    error::Result,
    latest::FigureChange,
    tables::{self, Bytes},
};

/// Declares the tables, each by the name of its constant.
macro_rules! tables_of_calls {
    ($($name:ident: $table:ident, $key:ty, $value:ty;)+) => {
        /// A transaction, which tables of calls are open in it, and how it changes figures.
        pub(crate) struct Group<'t> {
            transaction: &'t WriteTransaction,
            changes: Vec<FigureChange>,
            $($name: Option<Table<'t, $key, $value>>,)+
        }

        impl<'t> Group<'t> {
            /// Of a transaction in which none of these tables is open.
            pub(crate) fn of(transaction: &'t WriteTransaction) -> Self {
                Self { transaction, changes: Vec::new(), $($name: None,)+ }
            }

            $(pub(crate) fn $name(&mut self) -> Result<&mut Table<'t, $key, $value>> {
                held(&mut self.$name, self.transaction, tables::$table)
            })+
        }
    };
}

tables_of_calls! {
    calls: CALLS, &'static [u8; 36], Bytes;
    calls_by_time: CALLS_BY_TIME, &'static [u8; 44], ();
    payee_channels: PAYEE_CHANNELS, &'static [u8; 32], Bytes;
    payer_channels: PAYER_CHANNELS, &'static [u8; 32], Bytes;
    promises: PROMISES, &'static [u8; 16], Bytes;
    purchases: PURCHASES, &'static [u8; 16], Bytes;
    purchases_by_time: PURCHASES_BY_TIME, &'static [u8; 24], ();
    day_totals: DAY_TOTALS, (u32, &'static str), u64;
    day_limits: DAY_LIMITS, (u32, &'static str), (u64, u64);
    day_figures: DAY_FIGURES, u32, (u64, u64, u64, u64);
    service_hours: SERVICE_HOURS, &'static [u8; 41], Bytes;
}

impl Group<'_> {
    /// The transaction, for an operation that opens tables itself. No table is open in it.
    pub(crate) fn transaction(&mut self) -> &WriteTransaction {
        let changes = mem::take(&mut self.changes);
        *self = Self { changes, ..Self::of(self.transaction) };
        self.transaction
    }

    /// Notes a change of the figures that are kept in memory, for the time after the commit.
    pub(crate) fn note(&mut self, change: FigureChange) {
        self.changes.push(change);
    }

    /// Closes the tables, and tells what was noted.
    pub(crate) fn into_changes(self) -> Vec<FigureChange> {
        self.changes
    }
}

/// The open table, opened now if it was not.
fn held<'g, 't, K: Key + 'static, V: Value + 'static>(
    held: &'g mut Option<Table<'t, K, V>>,
    transaction: &'t WriteTransaction,
    table: tables::Table<K, V>,
) -> Result<&'g mut Table<'t, K, V>> {
    let open = match held.take() {
        Some(open) => open,
        None => transaction.open_table(table)?,
    };
    Ok(held.insert(open))
}

#[cfg(test)]
mod tests {
    use redb::{Database, ReadableTable as _, backends::InMemoryBackend};

    use super::*;

    #[test]
    fn a_table_that_a_group_holds_is_free_for_whoever_opens_it_itself() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut group = Group::of(&transaction);
        group.promises().unwrap().insert(&[1_u8; 16], &[1_u8][..]).unwrap();
        group.promises().unwrap().insert(&[2_u8; 16], &[2_u8][..]).unwrap();
        group.day_figures().unwrap().insert(7, (1, 2, 3, 4)).unwrap();
        {
            let opened = group.transaction().open_table(tables::PROMISES).unwrap();
            assert_eq!(
                opened.get(&[1_u8; 16]).unwrap().unwrap().value(),
                [1],
                "what the group wrote is there"
            );
        }
        assert_eq!(group.promises().unwrap().get(&[2_u8; 16]).unwrap().unwrap().value(), [2]);
        drop(group);
        transaction.commit().unwrap();
    }
}
