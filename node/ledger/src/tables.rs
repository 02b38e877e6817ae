//! Every table with its key and value.
//!
//! Keys are big-endian so that their order is the order of what they mean. Values are CBOR maps with integer
//! keys, written and read only in the module that owns the table; see `docs/ledger.md`.

use minicbor::{Decode, Encode};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use crate::error::{LedgerError, Result};

pub(crate) type Table<K, V> = TableDefinition<'static, K, V>;
pub(crate) type Bytes = &'static [u8];

/// `schema`, `body_bytes`, `losses_weighed`, `closed`, `restored_secs`, `figures_day`.
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
/// Kind ‖ payer ‖ seconds ‖ call id → the size of what is kept of that call; behind kind ‖ payer, zeros → the sum of these.
pub(crate) const KEPT_OF_PAYERS: Table<&[u8; 45], u64> = Table::new("kept_of_payers");
/// Settlement number → one claim transaction.
pub(crate) const SETTLEMENTS: Table<u64, Bytes> = Table::new("settlements");
/// Channel id ‖ settlement number: the settlements that name a channel.
pub(crate) const SETTLEMENTS_BY_CHANNEL: Table<&[u8; 40], ()> = Table::new("settlements_by_channel");
/// Settlement number: those that are under way.
pub(crate) const SETTLEMENTS_UNDER_WAY: Table<u64, ()> = Table::new("settlements_under_way");
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
/// Hour since the epoch ‖ side ‖ owner ‖ service → what the calls of that hour came to.
pub(crate) const SERVICE_HOURS: Table<&[u8; 41], Bytes> = Table::new("service_hours");
/// Day since the epoch ‖ side ‖ owner ‖ service → what the calls of that day came to, of hours that are no longer kept.
pub(crate) const SERVICE_DAYS: Table<&[u8; 41], Bytes> = Table::new("service_days");
/// Seconds ‖ hash → a transaction of this wallet that is in a block.
pub(crate) const TRANSACTIONS: Table<&[u8; 40], Bytes> = Table::new("transactions");
/// Seconds ‖ number → what a channel counts and no call explains.
pub(crate) const ADJUSTMENTS: Table<&[u8; 16], Bytes> = Table::new("adjustments");
/// (namespace, key) → a document of another module.
pub(crate) const DOCUMENTS: Table<(u8, &[u8]), Bytes> = Table::new("documents");

/// Key in [`META`]: bytes in [`BODIES`].
pub(crate) const BODY_BYTES: &str = "body_bytes";
/// Room for what most rows take, so that their bytes do not move while they grow.
const ROOM_BYTES: usize = 256;
/// There from the end of a program that stored every promise until the next promise.
const CLOSED_KEY: &str = "closed";

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

pub(crate) fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROOM_BYTES);
    minicbor::encode(value, &mut bytes).expect("writing to memory cannot fail");
    bytes
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

/// The second with which a key in the order of time begins.
pub(crate) fn secs_of(by_time: &[u8]) -> u64 {
    by_time.first_chunk().map_or(0, |secs| u64::from_be_bytes(*secs))
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
