//! Figures made of the calls that are kept: for a ledger of before, and for days on which a program of before wrote into it.
//!
//! Such a program adds to the figures of days alone, so a day on which these tell of other numbers of answered calls is made
//! anew at the next opening.

use std::collections::{BTreeMap, BTreeSet};

use farthing_values::CallId;
use redb::{ReadableTable, TableHandle, WriteTransaction};

use super::{DAY_SECS, DAYS_KEPT, HOURS_OF_A_DAY, Key, by_day, count, first_key, move_old, number, split};
use crate::{
    error::Result,
    group::Group,
    rows::{
        Side,
        figures::EndedCall,
        payee::{self, StoredCall},
        payer::{self, day_of},
    },
    tables::{
        self, CALLS, CALLS_BY_TIME, DAY_FIGURES, META, PURCHASES, PURCHASES_BY_TIME, SERVICE_DAYS,
        SERVICE_HOURS,
    },
};

/// Key in [`META`]: the newest day that was made of the calls that were there. Later ones are counted call by call.
pub(crate) const FIGURES_DAY: &str = "figures_day";

/// Makes the tables where there are none, of all calls that are kept.
pub(crate) fn begin(tx: &WriteTransaction) -> Result<()> {
    if tx.list_tables()?.any(|table| table.name() == SERVICE_HOURS.name()) {
        return Ok(());
    }
    tx.open_table(SERVICE_HOURS)?;
    tx.open_table(SERVICE_DAYS)?;
    make_days(tx, &days_of_calls(tx)?)
}

/// Tells whether each day since the last making has as many answered calls as the figures of days say.
pub(crate) fn fit(tx: &WriteTransaction) -> Result<bool> {
    Ok(days_that_differ(tx)?.is_empty())
}

/// Makes the days anew that have not.
pub(crate) fn make(tx: &WriteTransaction) -> Result<()> {
    make_days(tx, &days_that_differ(tx)?)
}

fn days_that_differ(tx: &WriteTransaction) -> Result<BTreeSet<u32>> {
    let of_days = tx.open_table(DAY_FIGURES)?;
    let newest = of_days.last()?.map_or(0, |(day, _)| day.value());
    let made = tx.open_table(META)?.get(FIGURES_DAY)?.map_or(0, |day| number(day.value()));
    let first = made.max(newest.saturating_sub(DAYS_KEPT));
    let counted = answered_by_day(tx)?;
    let mut differ = BTreeSet::new();
    for entry in of_days.range(first..)? {
        let (day, figures) = entry?;
        let (bought, _, served, _) = figures.value();
        if counted.get(&day.value()).copied().unwrap_or_default() != (bought, served) {
            differ.insert(day.value());
        }
    }
    Ok(differ)
}

/// Counts the answered calls that are in the tables: bought, and served.
fn answered_by_day(tx: &WriteTransaction) -> Result<BTreeMap<u32, (u64, u64)>> {
    let mut counted = BTreeMap::<u32, (u64, u64)>::new();
    by_day(&tx.open_table(SERVICE_HOURS)?, &tx.open_table(SERVICE_DAYS)?, |day, side, figures| {
        let (bought, served) = counted.entry(day).or_default();
        let calls = if side == Side::Payer { bought } else { served };
        *calls = calls.saturating_add(figures.answered());
    })?;
    Ok(counted)
}

fn days_of_calls(tx: &WriteTransaction) -> Result<BTreeSet<u32>> {
    let mut days = BTreeSet::new();
    for entry in tx.open_table(CALLS_BY_TIME)?.iter()? {
        days.insert(day_of(tables::secs_of(entry?.0.value())));
    }
    for entry in tx.open_table(PURCHASES_BY_TIME)?.iter()? {
        days.insert(day_of(tables::secs_of(entry?.0.value())));
    }
    let newest = days.last().copied().unwrap_or_default();
    days.retain(|day| *day >= newest.saturating_sub(DAYS_KEPT));
    Ok(days)
}

fn make_days(tx: &WriteTransaction, days: &BTreeSet<u32>) -> Result<()> {
    let Some(newest) = days.last() else { return Ok(()) };
    for day in days {
        forget(tx, *day)?;
        for ended in ends_of(tx, *day)? {
            count(&mut Group::of(tx), &ended)?;
        }
    }
    let mut hours = tx.open_table(SERVICE_HOURS)?;
    let last = hours.last()?.map_or(0, |(key, _)| split(key.value()).0);
    move_old(tx, &mut hours, last, usize::MAX)?;
    tx.open_table(META)?.insert(FIGURES_DAY, u64::from(*newest))?;
    Ok(())
}

fn forget(tx: &WriteTransaction, day: u32) -> Result<()> {
    let hour = day.saturating_mul(HOURS_OF_A_DAY);
    let [first, end] = [hour, hour.saturating_add(HOURS_OF_A_DAY)].map(first_key);
    tx.open_table(SERVICE_HOURS)?.retain_in::<&Key, _>(&first..&end, |_, _| false)?;
    let [first, end] = [day, day.saturating_add(1)].map(first_key);
    tx.open_table(SERVICE_DAYS)?.retain_in::<&Key, _>(&first..&end, |_, _| false)?;
    Ok(())
}

/// The ends of a day's calls that are kept.
fn ends_of(tx: &WriteTransaction, day: u32) -> Result<Vec<EndedCall>> {
    let (from, end) = (u64::from(day) * DAY_SECS, (u64::from(day) + 1) * DAY_SECS);
    let mut ends = Vec::new();
    let calls = tx.open_table(CALLS)?;
    let [first, last] = [from, end].map(|secs| payee::time_key(secs, &[0; 36]));
    for entry in tx.open_table(CALLS_BY_TIME)?.range::<&[u8; 44]>(&first..&last)? {
        let key: [u8; 36] = tables::join(&[&entry?.0.value()[8..]]);
        let call = tables::get::<_, StoredCall>(&calls, "calls", &key)?;
        ends.extend(call.as_ref().and_then(EndedCall::served));
    }
    let purchases = tx.open_table(PURCHASES)?;
    let [first, last] = [from, end].map(|secs| payer::time_key(secs, CallId::from_bytes([0; 16])));
    for entry in tx.open_table(PURCHASES_BY_TIME)?.range::<&[u8; 24]>(&first..&last)? {
        let call_id = CallId::from_bytes(tables::join(&[&entry?.0.value()[8..]]));
        ends.extend(payer::purchase_in(&purchases, call_id)?.as_ref().map(EndedCall::bought));
    }
    Ok(ends)
}
