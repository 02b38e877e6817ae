//! The limits of each day, so that an audit judges a day by what held then and not by what holds now.
//!
//! A promise brings the limits that its price was held against; of each day the highest are kept, for the node and for
//! each secret. What a day came to is within them, whatever was changed since. A charge that comes late, for a call
//! that had ended as not charged, was held against no limit the second time, and is kept beside them.

use std::ops::RangeTo;

use farthing_values::Usdc;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use crate::{error::Result, group::Group, rows::payer::DayLimits, tables::DAY_LIMITS};

/// In [`DAY_LIMITS`], the node as a whole. No secret has this name.
pub(crate) const NODE: &str = "";

/// The most that a day's purchases may come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) limit: Usdc,
    pub(crate) late: Usdc,
}

impl Allowed {
    pub(crate) fn most(self) -> Usdc {
        self.limit.saturating_add(self.late)
    }
}

/// Notes what a new promise was held against.
pub(crate) fn note(group: &mut Group<'_>, day: u32, secret: &str, limits: DayLimits) -> Result<()> {
    let table = group.day_limits()?;
    for (key, limit) in [((day, NODE), limits.node), ((day, secret), limits.secret)] {
        let noted = table.get(key)?.map(|noted| noted.value());
        let limit = limit.micros();
        if noted.is_none_or(|(highest, _)| highest < limit) {
            table.insert(key, (limit, noted.map_or(0, |(_, late)| late)))?;
        }
    }
    Ok(())
}

/// Notes a charge that was held against no limit. Where none is known there is nothing to add to.
pub(crate) fn note_late(tx: &WriteTransaction, day: u32, secret: &str, charged: Usdc) -> Result<()> {
    let mut table = tx.open_table(DAY_LIMITS)?;
    for key in [(day, NODE), (day, secret)] {
        let noted = table.get(key)?.map(|noted| noted.value());
        if let Some((limit, late)) = noted {
            table.insert(key, (limit, late.saturating_add(charged.micros())))?;
        }
    }
    Ok(())
}

/// Forgets the days before this one, whose purchases are forgotten, too.
pub(crate) fn forget_before(tx: &WriteTransaction, day: u32) -> Result<()> {
    let until: RangeTo<(u32, &str)> = ..(day, NODE);
    tx.open_table(DAY_LIMITS)?.retain_in(until, |_, _| false)?;
    Ok(())
}

/// `None` when no promise of that day brought its limits: it is older than this table.
pub(crate) fn on(tx: &ReadTransaction, day: u32, secret: &str) -> Result<Option<Allowed>> {
    let noted = tx.open_table(DAY_LIMITS)?.get((day, secret))?.map(|noted| noted.value());
    let allowed = |(limit, late)| Allowed { limit: Usdc::from_micros(limit), late: Usdc::from_micros(late) };
    Ok(noted.map(allowed))
}
