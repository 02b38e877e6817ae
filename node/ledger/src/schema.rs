//! The schema version, and the way from one version to the next.

use redb::{Database, ReadableTable, TableHandle, WriteTransaction};

use crate::{
    adjustment, earlier,
    error::{LedgerError, OpenError},
    figures, settlement,
    tables::{
        ADJUSTMENTS, BODIES, BODY_BYTES, CALLS, CALLS_BY_TIME, DAY_FIGURES, DAY_LIMITS, DAY_TOTALS,
        DOCUMENTS, KEPT_OF_PAYERS, META, PAYEE_CHANNELS, PAYER_CHANNELS, PROMISES, PURCHASES,
        PURCHASES_BY_TIME, SERVICE_DAYS, SERVICE_HOURS, SETTLEMENTS, SETTLEMENTS_BY_CHANNEL,
        SETTLEMENTS_UNDER_WAY, TRANSACTIONS, UNCHARGED_BY_TIME, UNCHARGED_EFFECTS_BY_TIME,
        UNCHARGED_PURCHASES_BY_TIME,
    },
    writer,
};

/// The version this program writes.
pub(crate) const SCHEMA: u64 = 2;
const SCHEMA_KEY: &str = "schema";
/// There once the settlements tell of no more losses than there are, which earlier programs did not see to.
const LOSSES_WEIGHED: &str = "losses_weighed";

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
    // Without what is kept already: that goes the oldest first, as before.
    transaction.open_table(KEPT_OF_PAYERS)?;
    settlement::index::make(transaction).map_err(while_opening)?;
    figures::begin(transaction).map_err(while_opening)?;
    figures::make(transaction).map_err(while_opening)?;
    if transaction.list_tables()?.all(|table| table.name() != ADJUSTMENTS.name()) {
        transaction.open_table(ADJUSTMENTS)?;
        adjustment::explain_earlier(transaction).map_err(while_opening)?;
    }
    if transaction.open_table(META)?.insert(LOSSES_WEIGHED, 1)?.is_none() {
        settlement::weigh_losses(transaction).map_err(while_opening)?;
    }
    Ok(())
}

/// Turns an error about an entry into an error of opening the ledger.
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
        KEPT_OF_PAYERS.name(),
        SETTLEMENTS_BY_CHANNEL.name(),
        SETTLEMENTS_UNDER_WAY.name(),
        SERVICE_HOURS.name(),
        SERVICE_DAYS.name(),
    ];
    for table in transaction.list_tables()? {
        missing.retain(|name| *name != table.name());
    }
    let are_weighed = transaction.open_table(META)?.get(LOSSES_WEIGHED)?.is_some();
    // Tables of today may have been left as they were by a program of before.
    Ok(missing.is_empty()
        && are_weighed
        && settlement::index::is_whole(transaction).map_err(while_opening)?
        && figures::fit(transaction).map_err(while_opening)?)
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
