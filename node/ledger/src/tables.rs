//! Every table with its key and value, the schema version, and the way from one version to the next.
//!
//! Keys are big-endian so that their order is the order of what they mean. Values are CBOR maps with integer
//! keys, written and read only in the module that owns the table; see `docs/ledger.md`.

use minicbor::{Decode, Encode};
use redb::{
    Database, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, TableHandle,
    WriteTransaction,
};

use crate::{
    adjustment, earlier,
    error::{LedgerError, OpenError, Result},
    settlement, writer,
};

/// The version this program writes.
pub(crate) const SCHEMA: u64 = 2;

pub(crate) type Table<K, V> = TableDefinition<'static, K, V>;
type Bytes = &'static [u8];

/// `schema`, `body_bytes`, `losses_weighed`, `closed`, `restored_secs`.
pub(crate) const META: Table<&str, u64> = Table::new("meta");
/// Channel id → what this node is paid on.
pub(crate) const PAYEE_CHANNELS: Table<&[u8; 32], Bytes> = Table::new("payee_channels");
/// Payer ‖ call id → the call, accepted or finished.
pub(crate) const CALLS: Table<&[u8; 36], Bytes> = Table::new("calls");
/// Seconds ‖ payer ‖ call id: the calls in the order of time.
pub(crate) const CALLS_BY_TIME: Table<&[u8; 44], ()> = Table::new("calls_by_time");
/// Seconds ‖ payer ‖ call id: those that cost nothing and can be made anew, in the order of time.
pub(crate) const UNCHARGED_BY_TIME: Table<&[u8; 44], ()> = Table::new("uncharged_by_time");
/// Of those with effects.
pub(crate) const UNCHARGED_EFFECTS_BY_TIME: Table<&[u8; 44], ()> = Table::new("uncharged_effects_by_time");
/// Seconds ‖ call id: purchases that cost nothing, in the order of time.
pub(crate) const UNCHARGED_PURCHASES_BY_TIME: Table<&[u8; 24], ()> =
    Table::new("uncharged_purchases_by_time");
/// Seconds ‖ payer ‖ call id → the answer's body, while kept.
pub(crate) const BODIES: Table<&[u8; 44], Bytes> = Table::new("bodies");
/// Settlement number → one claim transaction.
pub(crate) const SETTLEMENTS: Table<u64, Bytes> = Table::new("settlements");
/// Channel id → what this node pays on.
pub(crate) const PAYER_CHANNELS: Table<&[u8; 32], Bytes> = Table::new("payer_channels");
/// Call id → a promise whose end is not known.
pub(crate) const PROMISES: Table<&[u8; 16], Bytes> = Table::new("promises");
/// Call id → how a promise ended.
pub(crate) const PURCHASES: Table<&[u8; 16], Bytes> = Table::new("purchases");
/// Seconds ‖ call id: the purchases in the order of time.
pub(crate) const PURCHASES_BY_TIME: Table<&[u8; 24], ()> = Table::new("purchases_by_time");
/// (day since the epoch, name of the secret) → micros charged.
pub(crate) const DAY_TOTALS: Table<(u32, &str), u64> = Table::new("day_totals");
/// (day since the epoch, name of the secret, empty for the node) → the highest limit that a price was held against in
/// micros, and micros that were charged late.
pub(crate) const DAY_LIMITS: Table<(u32, &str), (u64, u64)> = Table::new("day_limits");
/// Day since the epoch → calls bought, micros spent, calls served, micros earned.
pub(crate) const DAY_FIGURES: Table<u32, (u64, u64, u64, u64)> = Table::new("day_figures");
/// Seconds ‖ hash → a transaction of this wallet that is in a block.
pub(crate) const TRANSACTIONS: Table<&[u8; 40], Bytes> = Table::new("transactions");
/// Seconds ‖ number → what a channel counts and no call explains.
pub(crate) const ADJUSTMENTS: Table<&[u8; 16], Bytes> = Table::new("adjustments");
/// (namespace, key) → a document of another module.
pub(crate) const DOCUMENTS: Table<(u8, &[u8]), Bytes> = Table::new("documents");

/// Key in [`META`]: bytes in [`BODIES`].
pub(crate) const BODY_BYTES: &str = "body_bytes";
/// Whether the settlements tell of no more losses than there are, which earlier programs did not see to.
const LOSSES_WEIGHED: &str = "losses_weighed";
const SCHEMA_KEY: &str = "schema";
/// There from the end of a program that stored every promise until the next promise.
const CLOSED_KEY: &str = "closed";

/// Creates what is missing in a fresh ledger, brings an older one up, and refuses a newer one.
pub(crate) fn prepare(database: &Database) -> Result<(), OpenError> {
    let transaction = writer::begin_durable(database)?;
    let found = transaction.open_table(META)?.get(SCHEMA_KEY)?.map(|version| version.value());
    match found {
        Some(SCHEMA) => {
            let is_whole = added_since_schema_1_is_there(&transaction)?;
            if is_whole {
                return Ok(transaction.abort()?);
            }
            add_since_schema_1(&transaction)?;
        }
        Some(newer) if newer > SCHEMA => {
            return Err(OpenError::NewerSchema { found: newer, supported: SCHEMA });
        }
        Some(older) => {
            migrate(&transaction, older)?;
            add_since_schema_1(&transaction)?;
        }
        None => create_all(&transaction)?,
    }
    transaction.open_table(META)?.insert(SCHEMA_KEY, SCHEMA)?;
    Ok(transaction.commit()?)
}

/// Notes that every promise was stored. The next one takes the note away.
pub(crate) fn note_closed(transaction: &WriteTransaction) -> Result<()> {
    transaction.open_table(META)?.insert(CLOSED_KEY, 1)?;
    Ok(())
}

pub(crate) fn forget_closed(transaction: &WriteTransaction) -> Result<()> {
    transaction.open_table(META)?.remove(CLOSED_KEY)?;
    Ok(())
}

pub(crate) fn was_closed(transaction: &ReadTransaction) -> Result<bool> {
    Ok(transaction.open_table(META)?.get(CLOSED_KEY)?.is_some())
}

/// Every table exists from the start, so that reading never meets a missing one.
fn create_all(transaction: &WriteTransaction) -> Result<(), OpenError> {
    transaction.open_table(META)?.insert(BODY_BYTES, 0)?;
    transaction.open_table(PAYEE_CHANNELS)?;
    transaction.open_table(CALLS)?;
    transaction.open_table(CALLS_BY_TIME)?;
    transaction.open_table(BODIES)?;
    transaction.open_table(SETTLEMENTS)?;
    transaction.open_table(PAYER_CHANNELS)?;
    transaction.open_table(PROMISES)?;
    transaction.open_table(PURCHASES)?;
    transaction.open_table(PURCHASES_BY_TIME)?;
    transaction.open_table(DAY_TOTALS)?;
    transaction.open_table(DOCUMENTS)?;
    add_since_schema_1(transaction)
}

/// Tables that only add to what the others hold: programs without them read and write the rest as before.
fn add_since_schema_1(transaction: &WriteTransaction) -> Result<(), OpenError> {
    transaction.open_table(DAY_FIGURES)?;
    transaction.open_table(TRANSACTIONS)?;
    transaction.open_table(DAY_LIMITS)?;
    transaction.open_table(UNCHARGED_BY_TIME)?;
    transaction.open_table(UNCHARGED_EFFECTS_BY_TIME)?;
    transaction.open_table(UNCHARGED_PURCHASES_BY_TIME)?;
    if transaction.list_tables()?.all(|table| table.name() != ADJUSTMENTS.name()) {
        transaction.open_table(ADJUSTMENTS)?;
        adjustment::explain_earlier(transaction).map_err(while_opening)?;
    }
    if transaction.open_table(META)?.insert(LOSSES_WEIGHED, 1)?.is_none() {
        settlement::weigh_losses(transaction).map_err(while_opening)?;
    }
    Ok(())
}

/// What went wrong with an entry, told by whoever opens the ledger.
fn while_opening(error: LedgerError) -> OpenError {
    match error {
        LedgerError::Storage(cause) => OpenError::Storage(cause),
        LedgerError::Damaged { table, cause } => OpenError::Damaged { table, cause },
        other => OpenError::Damaged { table: "adjustments", cause: other.to_string() },
    }
}

fn added_since_schema_1_is_there(transaction: &WriteTransaction) -> Result<bool, OpenError> {
    let mut missing = vec![
        DAY_FIGURES.name(),
        TRANSACTIONS.name(),
        ADJUSTMENTS.name(),
        DAY_LIMITS.name(),
        UNCHARGED_BY_TIME.name(),
        UNCHARGED_EFFECTS_BY_TIME.name(),
        UNCHARGED_PURCHASES_BY_TIME.name(),
    ];
    for table in transaction.list_tables()? {
        missing.retain(|name| *name != table.name());
    }
    let are_weighed = transaction.open_table(META)?.get(LOSSES_WEIGHED)?.is_some();
    Ok(missing.is_empty() && are_weighed)
}

/// One step of the schema, run inside the transaction that also raises the version.
type Migration = fn(&WriteTransaction) -> Result<(), OpenError>;
/// Step `i` leads from schema `i + 1` to `i + 2`; schema 1 is the first.
const MIGRATIONS: &[Migration] = &[earlier::leave_earlier_contract];
const _: () = assert!(MIGRATIONS.len() as u64 + 1 == SCHEMA, "every schema after the first has its step");

fn migrate(transaction: &WriteTransaction, found: u64) -> Result<(), OpenError> {
    let steps = usize::try_from(found)
        .ok()
        .and_then(|found| MIGRATIONS.get(found.checked_sub(1)?..))
        .ok_or(OpenError::NoMigration { found, supported: SCHEMA })?;
    steps.iter().try_for_each(|step| step(transaction))
}

pub(crate) fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    minicbor::to_vec(value).expect("writing to memory cannot fail")
}

pub(crate) fn decode<'b, T: Decode<'b, ()>>(table: &'static str, bytes: &'b [u8]) -> Result<T> {
    minicbor::decode(bytes).map_err(|error| LedgerError::Damaged { table, cause: error.to_string() })
}

/// The entry under `key`, decoded.
pub(crate) fn get<K, T>(
    table: &impl ReadableTable<K, &'static [u8]>,
    name: &'static str,
    key: K::SelfType<'_>,
) -> Result<Option<T>>
where
    K: redb::Key + 'static,
    T: for<'b> Decode<'b, ()>,
{
    table.get(key)?.map(|bytes| decode(name, bytes.value())).transpose()
}

/// The first key of a table in the order of time, when it has more than `most`.
pub(crate) fn oldest_beyond<const N: usize>(
    tx: &WriteTransaction,
    by_time: Table<&'static [u8; N], ()>,
    most: u64,
) -> Result<Option<[u8; N]>> {
    let table = tx.open_table(by_time)?;
    let is_beyond = table.len()? > most;
    Ok(table.first()?.filter(|_| is_beyond).map(|(key, _)| *key.value()))
}

/// A key of fixed width made of its parts.
pub(crate) fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0; N];
    let mut at = 0;
    for part in parts {
        key[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    assert_eq!(at, N, "the parts of a key fill it");
    key
}
