//! Checks every invariant over the whole ledger, as one consistent snapshot.
//!
//! The order is: each channel of the owner's half against its calls, each call against its indexes, then the
//! same for the consumer's half, then settlements. It reads everything and changes nothing, so it can run
//! beside a working node or on a stopped one.

use std::collections::{BTreeMap, HashMap};

use farthing_protocol::{Address, CallId, ChannelId, Usdc};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use crate::{
    Ledger,
    error::Result,
    payee::{self, StoredCall, StoredState},
    payer::{self, StoredPromise, StoredPurchase},
    settlement::{self, SettlementState},
    tables::{
        self, BODIES, BODY_BYTES, CALLS, CALLS_BY_TIME, DAY_TOTALS, META, PAYEE_CHANNELS, PAYER_CHANNELS,
        PROMISES, PURCHASES, PURCHASES_BY_TIME, SETTLEMENTS,
    },
};

/// Violations listed; more are only counted. One is already a reason to stop.
const VIOLATIONS_LISTED_MAX: usize = 1_000;

/// What an audit looked at, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    pub payee_channels: u64,
    pub calls: u64,
    pub payer_channels: u64,
    pub promises: u64,
    pub purchases: u64,
    pub settlements: u64,
    /// At most 1,000 of them.
    pub violations: Vec<Violation>,
    pub violations_total: u64,
}

impl Audit {
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.violations_total == 0
    }

    fn require(
        &mut self,
        holds: bool,
        invariant: &'static str,
        violation: impl FnOnce() -> (String, String),
    ) {
        if holds {
            return;
        }
        self.violations_total += 1;
        if self.violations.len() < VIOLATIONS_LISTED_MAX {
            let (subject, detail) = violation();
            self.violations.push(Violation { invariant, subject, detail });
        }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The id used in code, documentation and tests, such as `O1`; `index` for the ledger's own bookkeeping.
    pub invariant: &'static str,
    /// The channel, call or day concerned.
    pub subject: String,
    /// What was found instead.
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.invariant, self.subject, self.detail)
    }
}

impl Ledger {
    /// Checks every invariant. Takes time in proportion to the ledger: run it off the async threads.
    ///
    /// # Errors
    /// Only when the ledger cannot be read; what it says wrongly is in [`Audit::violations`].
    pub fn audit(&self) -> Result<Audit> {
        self.read(|tx| {
            let mut audit = Audit::default();
            let charges = audit_calls(tx, &mut audit)?;
            audit_payee_channels(tx, &mut audit, charges)?;
            let bought = audit_purchases(tx, &mut audit)?;
            let promised = audit_promises(tx, &mut audit)?;
            audit_payer_channels(tx, &mut audit, &bought, &promised)?;
            audit_settlements(tx, &mut audit)?;
            Ok(audit)
        })
    }
}

/// Per channel: (spent total after the call, its charge) of every charged call.
type Charges = HashMap<ChannelId, Vec<(Usdc, Usdc)>>;

fn audit_calls(tx: &ReadTransaction, audit: &mut Audit) -> Result<Charges> {
    let by_time = tx.open_table(CALLS_BY_TIME)?;
    let mut charges = Charges::new();
    for entry in tx.open_table(CALLS)?.iter()? {
        let (key, bytes) = entry?;
        let key = key.value();
        let subject = || call_name(payee::split_call_key(key));
        let call: StoredCall = tables::decode("calls", bytes.value())?;
        audit.calls += 1;
        let indexed = by_time.get(&payee::time_key(call.time_secs, key))?.is_some();
        audit.require(indexed, "index", || (subject(), "missing from the calls by time".into()));
        let StoredState::Done(done) = &call.state else { continue };
        if done.charged.is_zero() {
            continue;
        }
        audit.require(done.outcome.is_the_services_answer(), "O4", || {
            (subject(), format!("{:?} was charged {} USDC", done.outcome, done.charged))
        });
        charges.entry(done.channel).or_default().push((done.spent_total, done.charged));
    }
    let indexed = by_time.len()?;
    let calls = audit.calls;
    audit.require(indexed == calls, "index", || {
        ("calls".into(), format!("{calls} calls, {indexed} entries by time"))
    });
    audit_bodies(tx, audit)?;
    Ok(charges)
}

fn audit_bodies(tx: &ReadTransaction, audit: &mut Audit) -> Result<()> {
    let calls = tx.open_table(CALLS_BY_TIME)?;
    let mut sum = 0;
    for entry in tx.open_table(BODIES)?.iter()? {
        let (key, body) = entry?;
        sum += body.value().len() as u64;
        let has_call = calls.get(key.value())?.is_some();
        audit.require(has_call, "index", || {
            let key: [u8; 36] = tables::join(&[&key.value()[8..]]);
            (call_name(payee::split_call_key(&key)), "a body is kept for no call".into())
        });
    }
    let counted = tx.open_table(META)?.get(BODY_BYTES)?.map_or(0, |bytes| bytes.value());
    audit.require(counted == sum, "index", || {
        ("bodies".into(), format!("{sum} bytes kept, {counted} counted"))
    });
    Ok(())
}

fn audit_payee_channels(tx: &ReadTransaction, audit: &mut Audit, mut charges: Charges) -> Result<()> {
    for entry in tx.open_table(PAYEE_CHANNELS)?.iter()? {
        let (id, bytes) = entry?;
        let id = ChannelId::from_bytes(*id.value());
        let row: payee::StoredChannel = tables::decode("payee_channels", bytes.value())?;
        audit.payee_channels += 1;
        let ordered = row.claimed <= row.spent && row.spent <= row.best && row.best <= row.deposited_peak;
        audit.require(ordered, "O1", || {
            let payee::StoredChannel { claimed, spent, best, deposited_peak, .. } = &row;
            (
                id.to_string(),
                format!("claimed {claimed}, spent {spent}, best {best}, deposited {deposited_peak}"),
            )
        });
        let mut calls = charges.remove(&id).unwrap_or_default();
        let explained =
            calls.iter().fold(row.opening.saturating_add(row.pruned), |sum, call| sum.saturating_add(call.1));
        audit.require(row.spent == explained, "O2", || {
            (id.to_string(), format!("spent {}, calls explain {explained}", row.spent))
        });
        // Each receipt's total covers its own charge and nobody else's: no charge was counted twice.
        calls.sort_unstable();
        let mut last = Usdc::ZERO;
        for (total, charged) in calls {
            let before = total.checked_sub(charged);
            audit.require(before.is_some_and(|before| before >= last) && total <= row.spent, "O5", || {
                (id.to_string(), format!("a receipt counts {total} after {last}, charging {charged}"))
            });
            last = last.max(total);
        }
    }
    for (id, calls) in charges {
        audit.require(false, "O2", || {
            (id.to_string(), format!("{} calls charged on no channel", calls.len()))
        });
    }
    Ok(())
}

fn audit_purchases(tx: &ReadTransaction, audit: &mut Audit) -> Result<HashMap<ChannelId, Usdc>> {
    let by_time = tx.open_table(PURCHASES_BY_TIME)?;
    let mut by_channel: HashMap<ChannelId, Usdc> = HashMap::new();
    let mut by_day: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for entry in tx.open_table(PURCHASES)?.iter()? {
        let (id, bytes) = entry?;
        let call_id = CallId::from_bytes(*id.value());
        let purchase: StoredPurchase = tables::decode("purchases", bytes.value())?;
        audit.purchases += 1;
        let indexed = by_time.get(&payer::time_key(purchase.promised_secs, call_id))?.is_some();
        audit.require(indexed, "index", || {
            (format!("call {call_id}"), "missing from the purchases by time".into())
        });
        let charged = purchase.end.charged();
        if charged.is_zero() {
            continue;
        }
        let channel = by_channel.entry(purchase.channel.unwrap_or(ChannelId::NONE)).or_default();
        *channel = channel.saturating_add(charged);
        *by_day.entry((payer::day_of(purchase.promised_secs), purchase.secret)).or_default() +=
            charged.micros();
    }
    let (indexed, purchases) = (by_time.len()?, audit.purchases);
    audit.require(indexed == purchases, "index", || {
        ("purchases".into(), format!("{purchases} purchases, {indexed} entries by time"))
    });
    audit_days(tx, audit, &mut by_day)?;
    Ok(by_channel)
}

fn audit_days(
    tx: &ReadTransaction,
    audit: &mut Audit,
    by_day: &mut BTreeMap<(u32, String), u64>,
) -> Result<()> {
    for entry in tx.open_table(DAY_TOTALS)?.iter()? {
        let (key, total) = entry?;
        let (day, secret) = key.value();
        let sum = by_day.remove(&(day, secret.to_owned())).unwrap_or(0);
        let total = total.value();
        audit.require(total == sum, "C2", || {
            (format!("day {day}, secret {secret}"), format!("total {total} micros, purchases {sum}"))
        });
    }
    for ((day, secret), sum) in by_day {
        audit.require(false, "C2", || {
            (format!("day {day}, secret {secret}"), format!("no total, purchases {sum} micros"))
        });
    }
    Ok(())
}

/// Per channel, the highest cumulative amount of an open promise.
fn audit_promises(tx: &ReadTransaction, audit: &mut Audit) -> Result<HashMap<ChannelId, Usdc>> {
    let purchases = tx.open_table(PURCHASES)?;
    let mut highest: HashMap<ChannelId, Usdc> = HashMap::new();
    for entry in tx.open_table(PROMISES)?.iter()? {
        let (id, bytes) = entry?;
        let promise: StoredPromise = tables::decode("promises", bytes.value())?;
        audit.promises += 1;
        let closed = purchases.get(id.value())?.is_some();
        audit.require(!closed, "C4", || {
            (format!("call {}", CallId::from_bytes(*id.value())), "open and closed at once".into())
        });
        if let Some(voucher) = promise.voucher {
            let channel = highest.entry(voucher.channel).or_default();
            *channel = (*channel).max(voucher.cumulative);
        }
    }
    Ok(highest)
}

fn audit_payer_channels(
    tx: &ReadTransaction,
    audit: &mut Audit,
    bought: &HashMap<ChannelId, Usdc>,
    promised: &HashMap<ChannelId, Usdc>,
) -> Result<()> {
    let table = tx.open_table(PAYER_CHANNELS)?;
    for entry in table.iter()? {
        let (id, bytes) = entry?;
        let id = ChannelId::from_bytes(*id.value());
        let row: payer::StoredChannel = tables::decode("payer_channels", bytes.value())?;
        audit.payer_channels += 1;
        let charged = bought.get(&id).copied().unwrap_or_default();
        let explained = row.opening.saturating_add(row.pruned).saturating_add(charged);
        audit.require(row.acknowledged == explained, "C3", || {
            (id.to_string(), format!("acknowledged {}, receipts explain {explained}", row.acknowledged))
        });
        let promised = promised.get(&id).copied().unwrap_or_default();
        let covered =
            row.acknowledged <= row.signed && promised <= row.signed && row.signed <= row.deposited_peak;
        audit.require(covered, "C1", || {
            let payer::StoredChannel { acknowledged, signed, deposited_peak, .. } = &row;
            let detail = format!(
                "acknowledged {acknowledged}, promised {promised}, signed {signed}, deposited {deposited_peak}"
            );
            (id.to_string(), detail)
        });
    }
    for id in bought.keys().chain(promised.keys()) {
        let known = table.get(id.as_bytes())?.is_some();
        audit.require(known, "C3", || (id.to_string(), "paid on, and not recorded".into()));
    }
    Ok(())
}

fn audit_settlements(tx: &ReadTransaction, audit: &mut Audit) -> Result<()> {
    let channels = tx.open_table(PAYEE_CHANNELS)?;
    for entry in tx.open_table(SETTLEMENTS)?.iter()? {
        let (id, bytes) = entry?;
        let settlement = settlement::decode(bytes.value())?.into_settlement(id.value());
        audit.settlements += 1;
        if settlement.state != SettlementState::Confirmed {
            continue;
        }
        for row in &settlement.rows {
            let claimed = payee::channel_in(&channels, row.channel)?.map(|channel| channel.claimed);
            audit.require(claimed.is_some_and(|claimed| row.to <= claimed), "M3", || {
                (format!("settlement {}", settlement.id), format!("{} paid up to {}", row.channel, row.to))
            });
        }
    }
    Ok(())
}

fn call_name((payer, call_id): (Address, CallId)) -> String {
    format!("call {call_id} of {payer}")
}

#[cfg(test)]
mod tests;
