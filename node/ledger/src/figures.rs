//! Figures of calls by hour and by day, for each service on each side.
//!
//! 1. A call counts in its hour, in the commit that stores its end: one small row is written, beside those of the call.
//! 2. An end that is replaced is taken out again, so that a call counts once, as the history has it.
//! 3. After a month the row of an hour moves into that of its day, a few with each new row; after three years that one goes.
//!
//! A call is in one row at any time, so no sum can differ from its parts. What is taken out of the history when it is old
//! stays counted here. An hour and a day have rows for so many services; the calls of further ones share a row.

mod rebuild;

use farthing_values::{Address, ServiceId, Usdc};
use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};

pub(crate) use self::rebuild::{FIGURES_DAY, begin, fit, make};
use crate::{
    Ledger,
    error::Result,
    group::Group,
    latest::FigureChange,
    rows::{
        Side,
        figures::{CallFigures, EndedCall, SERVICES_MAX, StoredFigures, Subject},
    },
    tables::{self, Bytes, SERVICE_DAYS, SERVICE_HOURS},
};

const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;
const HOURS_OF_A_DAY: u32 = 24;
/// Hours are kept for 31 days, then their day is. With 64 services of each side these are 100,000 rows, some 15 MB.
const HOURS_KEPT: u32 = 31 * HOURS_OF_A_DAY;
/// Three years: with as many services 140,000 rows, some 20 MB.
pub(crate) const DAYS_KEPT: u32 = 3 * 366;
/// Rows that move, and that go, when a new one is made. More than one, so that they never become more.
const MOVED_MAX: usize = 8;

/// As an error names them.
const TABLES: &str = "service_hours or service_days";

type Key = [u8; 41];

impl Ledger {
    /// Reads the figures of the services that are wanted: by hour, and by day where hours are kept no longer. Each is told
    /// with the second at which its hour or day begins, which is not before `from_secs`; they come in no particular order.
    pub fn call_figures(
        &self,
        from_secs: u64,
        is_wanted: impl Fn(&Subject) -> bool,
        mut each: impl FnMut(u64, Subject, CallFigures),
    ) -> Result<()> {
        self.read(|tx| {
            for (table, secs) in [(SERVICE_DAYS, DAY_SECS), (SERVICE_HOURS, HOUR_SECS)] {
                let first = number(from_secs.div_ceil(secs));
                for entry in tx.open_table(table)?.range::<&Key>(&first_key(first)..)? {
                    let (key, bytes) = entry?;
                    let (number, subject) = split(key.value());
                    if is_wanted(&subject) {
                        each(u64::from(number) * secs, subject, decoded(bytes.value())?);
                    }
                }
            }
            Ok(())
        })
    }

    /// Reads the figures of the services that are wanted for the last hour, by parts of [`crate::LATEST_PART_SECS`]. Each is told with
    /// the second at which its part begins, which is not before `from_secs`; they come in no particular order. Of the calls before
    /// the present start, up to 100,000 of each side are among them.
    pub fn latest_figures(
        &self,
        from_secs: u64,
        is_wanted: impl Fn(&Subject) -> bool,
        each: impl FnMut(u64, Subject, CallFigures),
    ) {
        self.queue().store().latest().each(from_secs, is_wanted, each);
    }
}

pub(crate) fn count(group: &mut Group<'_>, ended: &EndedCall) -> Result<()> {
    group.note(FigureChange::Counted(*ended));
    let hour = hour_of(ended);
    let is_new = change(group.service_hours()?, hour, ended.subject, |figures| figures.count(ended))?;
    if !is_new {
        return Ok(());
    }
    let tx = group.transaction();
    move_old(tx, &mut tx.open_table(SERVICE_HOURS)?, hour, MOVED_MAX)
}

/// Takes out the end of a call that another one replaces: from wherever it was counted, or nowhere when that is gone.
pub(crate) fn uncount(group: &mut Group<'_>, ended: &EndedCall) -> Result<()> {
    group.note(FigureChange::Uncounted(*ended));
    in_its_row(group.transaction(), ended, |figures| figures.uncount(ended))
}

/// Changes what a call has cost, in the row in which it was counted.
pub(crate) fn recharge(group: &mut Group<'_>, ended: &EndedCall, charged: Usdc) -> Result<()> {
    group.note(FigureChange::Recharged(*ended, charged));
    in_its_row(group.transaction(), ended, |figures| figures.recharge(ended, charged))
}

/// Changes the first row that may have counted a call and says that it did.
fn in_its_row(
    tx: &WriteTransaction,
    ended: &EndedCall,
    edit: impl Fn(&mut CallFigures) -> bool,
) -> Result<()> {
    let hour = hour_of(ended);
    for (table, number) in [(SERVICE_HOURS, hour), (SERVICE_DAYS, hour / HOURS_OF_A_DAY)] {
        let mut table = tx.open_table(table)?;
        for subject in [ended.subject, Subject::others(ended.subject.side)] {
            let key = key_of(number, subject);
            let Some(mut figures) = figures_at(&table, &key)? else { continue };
            if edit(&mut figures) {
                return put(&mut table, &key, &figures);
            }
        }
    }
    Ok(())
}

/// Tells the figures of every row, with its day and its side.
pub(crate) fn by_day(
    hours: &impl ReadableTable<&'static Key, Bytes>,
    days: &impl ReadableTable<&'static Key, Bytes>,
    mut each: impl FnMut(u32, Side, CallFigures),
) -> Result<()> {
    for entry in days.iter()? {
        let (key, bytes) = entry?;
        let (day, subject) = split(key.value());
        each(day, subject.side, decoded(bytes.value())?);
    }
    for entry in hours.iter()? {
        let (key, bytes) = entry?;
        let (hour, subject) = split(key.value());
        each(hour / HOURS_OF_A_DAY, subject.side, decoded(bytes.value())?);
    }
    Ok(())
}

/// As [`by_day`], of what a reader sees.
pub(crate) fn read_by_day(tx: &ReadTransaction, each: impl FnMut(u32, Side, CallFigures)) -> Result<()> {
    by_day(&tx.open_table(SERVICE_HOURS)?, &tx.open_table(SERVICE_DAYS)?, each)
}

/// Moves hours that are a month older than `hour` into their days, and drops days that are three years older: at most so
/// many of each.
fn move_old(
    tx: &WriteTransaction,
    hours: &mut Table<'_, &'static Key, Bytes>,
    hour: u32,
    most: usize,
) -> Result<()> {
    let mut days = tx.open_table(SERVICE_DAYS)?;
    let old = before(hours, hour.saturating_sub(HOURS_KEPT), most)?;
    for (key, figures) in &old {
        hours.remove(key)?;
        let (hour, subject) = split(key);
        change(&mut days, hour / HOURS_OF_A_DAY, subject, |sum| sum.add(figures))?;
    }
    for (key, _) in &before(&days, (hour / HOURS_OF_A_DAY).saturating_sub(DAYS_KEPT), most)? {
        days.remove(key)?;
    }
    Ok(())
}

/// The first rows of a table, as long as they are before an hour or a day.
fn before(
    table: &impl ReadableTable<&'static Key, Bytes>,
    end: u32,
    most: usize,
) -> Result<Vec<(Key, CallFigures)>> {
    let mut rows = Vec::new();
    for entry in table.range::<&Key>(..&first_key(end))?.take(most) {
        let (key, bytes) = entry?;
        rows.push((*key.value(), decoded(bytes.value())?));
    }
    Ok(rows)
}

/// Changes the figures of a service in an hour or a day; whether their row is new.
fn change(
    table: &mut Table<'_, &'static Key, Bytes>,
    number: u32,
    subject: Subject,
    change: impl FnOnce(&mut CallFigures),
) -> Result<bool> {
    let mut key = key_of(number, subject);
    let mut known = figures_at(table, &key)?;
    if known.is_none() && is_full(table, number, subject.side)? {
        key = key_of(number, Subject::others(subject.side));
        known = figures_at(table, &key)?;
    }
    let is_new = known.is_none();
    let mut figures = known.unwrap_or_default();
    change(&mut figures);
    put(table, &key, &figures)?;
    Ok(is_new)
}

/// Returns whether as many services as may have a row of an hour or a day have one.
fn is_full(table: &impl ReadableTable<&'static Key, Bytes>, number: u32, side: Side) -> Result<bool> {
    let others = key_of(number, Subject::others(side));
    let last = key_of(
        number,
        Subject { side, owner: Address::from_bytes([255; 20]), service: service_of([255; 16]) },
    );
    let rows = table.range::<&Key>(&others..=&last)?.take(SERVICES_MAX + 1);
    let mut services = 0;
    for entry in rows {
        services += usize::from(*entry?.0.value() != others);
    }
    Ok(services >= SERVICES_MAX)
}

fn figures_at(table: &impl ReadableTable<&'static Key, Bytes>, key: &Key) -> Result<Option<CallFigures>> {
    let stored: Option<StoredFigures> = tables::get(table, TABLES, key)?;
    Ok(stored.map(CallFigures::from))
}

fn put(table: &mut Table<'_, &'static Key, Bytes>, key: &Key, figures: &CallFigures) -> Result<()> {
    table.insert(key, tables::encode(&StoredFigures::from(figures)).as_slice())?;
    Ok(())
}

fn decoded(bytes: &[u8]) -> Result<CallFigures> {
    Ok(tables::decode::<StoredFigures>(TABLES, bytes)?.into())
}

fn key_of(number: u32, subject: Subject) -> Key {
    let side = [subject.side.code()];
    tables::join(&[&number.to_be_bytes(), &side, subject.owner.as_bytes(), subject.service.as_bytes()])
}

/// The lowest key of an hour or a day.
fn first_key(number: u32) -> Key {
    key_of(number, Subject::others(Side::Payer))
}

fn split(key: &Key) -> (u32, Subject) {
    let number = u32::from_be_bytes(tables::join(&[&key[..4]]));
    let side = if key[4] == Side::Payer.code() { Side::Payer } else { Side::Payee };
    let owner = Address::from_bytes(tables::join(&[&key[5..25]]));
    (number, Subject { side, owner, service: service_of(tables::join(&[&key[25..]])) })
}

fn service_of(bytes: [u8; 16]) -> ServiceId {
    ServiceId::from_bytes(bytes)
}

/// Hours since the Unix epoch.
fn hour_of(ended: &EndedCall) -> u32 {
    number(ended.time_secs / HOUR_SECS)
}

fn number(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
