//! Bounded growth: old bodies first, then old calls and purchases.
//!
//! Rows go in steps of [`STEP_ROWS_MAX`] per commit, so money never waits long behind housekeeping. What a
//! pruned row had charged is added to its channel's `pruned` sum, and a pruned day loses its total together
//! with its purchases: every invariant of the audit still holds.

use farthing_values::{CallId, ChannelId, Usdc};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    Ledger, allowed,
    error::{LedgerError, Result},
    payee, payer,
    rows::{
        self,
        payee::{StoredCall, StoredState},
    },
    tables::{
        self, BODIES, BODY_BYTES, CALLS, CALLS_BY_TIME, DAY_TOTALS, META, PAYEE_CHANNELS, PAYER_CHANNELS,
        PURCHASES, PURCHASES_BY_TIME,
    },
};

/// Rows removed in one commit: about a millisecond of the writer's time.
const STEP_ROWS_MAX: usize = 256;
const DAY_SECS: u64 = 86_400;
/// The least time a call's row is kept, because O5 holds for as long as its row: a call id that comes again
/// after that is a new call. No consumer retries for a week.
const ROWS_KEPT_SECS_MIN: u64 = 7 * DAY_SECS;

/// Bounds on what is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bodies for repeating an answer.
    pub bodies_kept_secs: u64,
    /// All bodies together; the oldest go first.
    pub body_bytes_max: u64,
    /// Calls and purchases, at least a week whatever is set here.
    pub rows_kept_secs: u64,
}

impl Default for Retention {
    /// A day and 256 MiB of bodies, a year of rows.
    fn default() -> Self {
        Self {
            bodies_kept_secs: DAY_SECS,
            body_bytes_max: payee::BODIES_BYTES_MAX,
            rows_kept_secs: 365 * DAY_SECS,
        }
    }
}

impl Retention {
    /// The second since which every call and purchase is kept, as of `now_secs`.
    pub fn kept_since_secs(&self, now_secs: u64) -> u64 {
        now_secs.saturating_sub(self.rows_kept_secs.max(ROWS_KEPT_SECS_MIN))
    }
}

/// The numbers of what was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrunedCounts {
    pub bodies: u64,
    pub calls: u64,
    pub purchases: u64,
}

impl Ledger {
    /// Removes what is older than `retention` keeps, as of `now_secs`.
    pub async fn prune(&self, retention: Retention, now_secs: u64) -> Result<PrunedCounts> {
        let mut pruned = PrunedCounts::default();
        loop {
            let step = self.write(move |tx| step(tx, &retention, now_secs)).await?;
            pruned.bodies += step.bodies;
            pruned.calls += step.calls;
            pruned.purchases += step.purchases;
            if step == PrunedCounts::default() {
                return Ok(pruned);
            }
        }
    }
}

fn step(tx: &WriteTransaction, retention: &Retention, now_secs: u64) -> Result<PrunedCounts> {
    let rows_before = retention.kept_since_secs(now_secs);
    let bodies_before = now_secs.saturating_sub(retention.bodies_kept_secs);
    Ok(PrunedCounts {
        bodies: prune_bodies(tx, bodies_before, retention.body_bytes_max)?,
        calls: prune_calls(tx, rows_before)?,
        // Whole days, because a day's total goes with its purchases.
        purchases: prune_purchases(tx, rows_before / DAY_SECS)?,
    })
}

fn prune_bodies(tx: &WriteTransaction, before_secs: u64, bytes_max: u64) -> Result<u64> {
    let mut excess =
        tx.open_table(META)?.get(BODY_BYTES)?.map_or(0, |kept| kept.value()).saturating_sub(bytes_max);
    let oldest: Vec<([u8; 44], u64)> = {
        let table = tx.open_table(BODIES)?;
        let oldest = table.iter()?.take(STEP_ROWS_MAX);
        oldest
            .map(|e| e.map(|(key, body)| (*key.value(), body.value().len() as u64)))
            .collect::<Result<_, _>>()?
    };
    let mut removed = 0;
    for (key, bytes) in oldest {
        if tables::secs_of(&key) >= before_secs && excess == 0 {
            break;
        }
        payee::forget_body(tx, &key)?;
        excess = excess.saturating_sub(bytes);
        removed += 1;
    }
    Ok(removed)
}

fn prune_calls(tx: &WriteTransaction, before_secs: u64) -> Result<u64> {
    let old: Vec<[u8; 44]> = {
        let table = tx.open_table(CALLS_BY_TIME)?;
        let old =
            table.range::<&[u8; 44]>(..&rows::payee::time_key(before_secs, &[0; 36]))?.take(STEP_ROWS_MAX);
        old.map(|e| e.map(|(key, _)| *key.value())).collect::<Result<_, _>>()?
    };
    for by_time in &old {
        let key: [u8; 36] = tables::join(&[&by_time[8..]]);
        let row = tx.open_table(CALLS)?.remove(&key)?.map(|bytes| bytes.value().to_vec());
        let Some(row) = row else { return Err(dangling("calls_by_time")) };
        let row: StoredCall = tables::decode("calls", &row)?;
        payee::forget(tx, &key, &row)?;
        if let StoredState::Done(done) = &row.state {
            carry_payee(tx, done.channel, done.charged)?;
        }
    }
    Ok(old.len() as u64)
}

fn prune_purchases(tx: &WriteTransaction, before_day: u64) -> Result<u64> {
    let end = rows::payer::time_key(before_day * DAY_SECS, CallId::from_bytes([0; 16]));
    let old: Vec<[u8; 24]> = {
        let table = tx.open_table(PURCHASES_BY_TIME)?;
        let old = table.range::<&[u8; 24]>(..&end)?.take(STEP_ROWS_MAX);
        old.map(|e| e.map(|(key, _)| *key.value())).collect::<Result<_, _>>()?
    };
    allowed::forget_before(tx, u32::try_from(before_day).unwrap_or(u32::MAX))?;
    for by_time in &old {
        let call_id = CallId::from_bytes(tables::join(&[&by_time[8..]]));
        let row = rows::payer::purchase_in(&tx.open_table(PURCHASES)?, call_id)?;
        let row = row.ok_or_else(|| dangling("purchases_by_time"))?;
        payer::forget(tx, call_id, tables::secs_of(by_time))?;
        let charged = row.end.charged();
        if let Some(channel) = row.channel {
            carry_payer(tx, channel, charged)?;
        }
        lower_day_total(tx, rows::payer::day_of(row.promised_secs), &row.secret, charged)?;
    }
    Ok(old.len() as u64)
}

fn carry_payee(tx: &WriteTransaction, id: ChannelId, charged: Usdc) -> Result<()> {
    // What a transaction has paid is on no channel.
    if charged.is_zero() || id == ChannelId::NONE {
        return Ok(());
    }
    let mut table = tx.open_table(PAYEE_CHANNELS)?;
    let mut row = rows::payee::channel_in(&table, id)?.ok_or(dangling("payee_channels"))?;
    row.pruned = row.pruned.saturating_add(charged);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(())
}

fn carry_payer(tx: &WriteTransaction, id: ChannelId, charged: Usdc) -> Result<()> {
    if charged.is_zero() {
        return Ok(());
    }
    let mut table = tx.open_table(PAYER_CHANNELS)?;
    let mut row = rows::payer::channel_in(&table, id)?.ok_or(dangling("payer_channels"))?;
    row.pruned = row.pruned.saturating_add(charged);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(())
}

fn lower_day_total(tx: &WriteTransaction, day: u32, secret: &str, charged: Usdc) -> Result<()> {
    let mut totals = tx.open_table(DAY_TOTALS)?;
    let total = totals.get((day, secret))?.map_or(0, |total| total.value());
    match total.saturating_sub(charged.micros()) {
        0 => drop(totals.remove((day, secret))?),
        rest => drop(totals.insert((day, secret), rest)?),
    }
    Ok(())
}

fn dangling(table: &'static str) -> LedgerError {
    LedgerError::Damaged { table, cause: "it names a row that is missing".into() }
}
