//! A copy of the whole ledger as of one commit, while it goes on being written.
//!
//! Bodies of answers are left out: they are kept for a day, are most of the bytes, and strangers choose how many. Everything
//! that money depends on is in the copy, so the audit holds in it as in the original.

use std::{path::Path, sync::Arc};

use redb::{
    Database, Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction,
    backends::FileBackend,
};

use crate::{
    Ledger, Namespace,
    error::{LedgerError, Result},
    opening::{CACHE_BYTES, open_private},
    tables::{
        ADJUSTMENTS, BODIES, BODY_BYTES, CALLS, CALLS_BY_TIME, DAY_FIGURES, DAY_LIMITS, DAY_TOTALS,
        DOCUMENTS, META, PAYEE_CHANNELS, PAYER_CHANNELS, PROMISES, PURCHASES, PURCHASES_BY_TIME,
        SERVICE_DAYS, SERVICE_HOURS, SETTLEMENTS, TRANSACTIONS, UNCHARGED_BY_TIME, UNCHARGED_EFFECTS_BY_TIME,
        UNCHARGED_PURCHASES_BY_TIME,
    },
};

impl Ledger {
    /// Writes a copy to `path`, which must not exist. Takes as long as reading and writing everything once: call it
    /// where it may take its time.
    ///
    /// # Errors
    /// When the copy cannot be written, or the ledger not be read.
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| LedgerError::Storage(Arc::new(redb::Error::Io(error)));
        let file = open_private(path, true).map_err(failed)?;
        // A million calls are hundreds of megabytes, in one transaction.
        let mut builder = Database::builder();
        let database = builder.set_cache_size(CACHE_BYTES).create_with_backend(FileBackend::new(file)?)?;
        let write = database.begin_write()?;
        self.read(|read| copy_all(read, &write))?;
        write.commit()?;
        Ok(())
    }
}

fn copy_all(read: &ReadTransaction, write: &WriteTransaction) -> Result<()> {
    copy(read, write, META)?;
    copy(read, write, PAYEE_CHANNELS)?;
    copy(read, write, CALLS)?;
    copy(read, write, CALLS_BY_TIME)?;
    copy(read, write, UNCHARGED_BY_TIME)?;
    copy(read, write, UNCHARGED_EFFECTS_BY_TIME)?;
    // Their indexes are made anew when the copy is opened.
    copy(read, write, SETTLEMENTS)?;
    copy(read, write, PAYER_CHANNELS)?;
    copy(read, write, PROMISES)?;
    copy(read, write, PURCHASES)?;
    copy(read, write, PURCHASES_BY_TIME)?;
    copy(read, write, UNCHARGED_PURCHASES_BY_TIME)?;
    copy(read, write, DAY_TOTALS)?;
    copy(read, write, DAY_LIMITS)?;
    copy(read, write, DAY_FIGURES)?;
    copy(read, write, SERVICE_HOURS)?;
    copy(read, write, SERVICE_DAYS)?;
    copy(read, write, TRANSACTIONS)?;
    copy(read, write, ADJUSTMENTS)?;
    copy_documents(read, write)?;
    // Empty, and there: reading never meets a missing table. What is kept of each payer is counted from now on.
    write.open_table(BODIES)?;
    write.open_table(META)?.insert(BODY_BYTES, 0)?;
    Ok(())
}

fn copy_documents(read: &ReadTransaction, write: &WriteTransaction) -> Result<()> {
    let (from, mut to) = (read.open_table(DOCUMENTS)?, write.open_table(DOCUMENTS)?);
    for entry in from.iter()? {
        let (key, value) = entry?;
        let (namespace, _) = key.value();
        if namespace != Namespace::SaleBodies as u8 {
            to.insert(key.value(), value.value())?;
        }
    }
    Ok(())
}

fn copy<K: Key + 'static, V: Value + 'static>(
    read: &ReadTransaction,
    write: &WriteTransaction,
    definition: TableDefinition<'static, K, V>,
) -> Result<()> {
    let (from, mut to) = (read.open_table(definition)?, write.open_table(definition)?);
    for entry in from.iter()? {
        let (key, value) = entry?;
        to.insert(key.value(), value.value())?;
    }
    Ok(())
}
