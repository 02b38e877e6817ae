//! The last commit, as readers see it.

use std::sync::OnceLock;

use redb::{Key, ReadOnlyTable, ReadTransaction, Value};

use crate::{
    error::Result,
    tables::{self, Bytes, Table},
};

type Held<K, V> = OnceLock<ReadOnlyTable<K, V>>;

/// The tables that each call reads, opened once: that takes longer than to find a row.
#[derive(Default)]
struct Tables {
    calls: Held<&'static [u8; 36], Bytes>,
    promises: Held<&'static [u8; 16], Bytes>,
    purchases: Held<&'static [u8; 16], Bytes>,
    documents: Held<(u8, Bytes), Bytes>,
}

/// A read transaction with the tables that it holds open.
pub(crate) struct Snapshot {
    // Dropped before the transaction that they read.
    tables: Tables,
    pub(crate) transaction: ReadTransaction,
}

impl Snapshot {
    pub(super) fn of(transaction: ReadTransaction) -> Self {
        Self { tables: Tables::default(), transaction }
    }

    pub(crate) fn calls(&self) -> Result<&ReadOnlyTable<&'static [u8; 36], Bytes>> {
        self.held(&self.tables.calls, tables::CALLS)
    }

    pub(crate) fn promises(&self) -> Result<&ReadOnlyTable<&'static [u8; 16], Bytes>> {
        self.held(&self.tables.promises, tables::PROMISES)
    }

    pub(crate) fn purchases(&self) -> Result<&ReadOnlyTable<&'static [u8; 16], Bytes>> {
        self.held(&self.tables.purchases, tables::PURCHASES)
    }

    pub(crate) fn documents(&self) -> Result<&ReadOnlyTable<(u8, Bytes), Bytes>> {
        self.held(&self.tables.documents, tables::DOCUMENTS)
    }

    fn held<'s, K: Key + 'static, V: Value + 'static>(
        &self,
        held: &'s Held<K, V>,
        table: Table<K, V>,
    ) -> Result<&'s ReadOnlyTable<K, V>> {
        if let Some(open) = held.get() {
            return Ok(open);
        }
        let open = self.transaction.open_table(table)?;
        Ok(held.get_or_init(|| open))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}
