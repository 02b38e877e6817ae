//! The figures of calls, held against the calls that are here and against the figures of days.

use std::collections::HashMap;

use redb::ReadTransaction;

use super::Audit;
use crate::{
    error::Result,
    figures::{self, DAYS_KEPT, FIGURES_DAY},
    rows::{Side, figures::EndedCall, payer::day_of},
    tables::{DAY_FIGURES, META},
};

/// Answered calls and micros charged.
type Sums = HashMap<(u32, Side), (u64, u64)>;

/// The calls that are here, counted again by day and side.
#[derive(Default)]
pub(super) struct Recount(Sums);

impl Recount {
    pub(super) fn add(&mut self, ended: &EndedCall) {
        let calls = u64::from(ended.is_answered());
        add(&mut self.0, (day_of(ended.time_secs), ended.subject.side), (calls, ended.charged.micros()));
    }

    /// Rows that were removed stay counted, so the figures are never less than what is here explains. Days that were counted
    /// call by call have no more calls than the figures of days, which are counted in the same commits.
    pub(super) fn compare(&self, tx: &ReadTransaction, audit: &mut Audit) -> Result<()> {
        let mut counted = Sums::new();
        figures::read_by_day(tx, |day, side, figures| {
            add(&mut counted, (day, side), (figures.answered(), figures.charged.micros()));
        })?;
        let newest = counted.keys().map(|(day, _)| *day).max().unwrap_or_default();
        let kept = self.0.iter().filter(|((day, _), _)| *day >= newest.saturating_sub(DAYS_KEPT));
        for ((day, side), (calls, micros)) in kept {
            let told = counted.get(&(*day, *side)).copied().unwrap_or_default();
            audit.require(told.0 >= *calls && told.1 >= *micros, "index", || {
                let here = format!("{calls} answered calls for {micros} micros are here");
                (name(*day, *side), format!("{here}, its figures count {} for {}", told.0, told.1))
            });
        }
        at_most_as_days_say(tx, audit, &counted)
    }
}

fn at_most_as_days_say(tx: &ReadTransaction, audit: &mut Audit, counted: &Sums) -> Result<()> {
    let made = tx.open_table(META)?.get(FIGURES_DAY)?.map(|day| day.value());
    let of_days = tx.open_table(DAY_FIGURES)?;
    for ((day, side), (calls, _)) in counted {
        if made.is_some_and(|made| u64::from(*day) <= made) {
            continue;
        }
        let (bought, _, served, _) = of_days.get(*day)?.map(|figures| figures.value()).unwrap_or_default();
        let of_day = if *side == Side::Payer { bought } else { served };
        audit.require(*calls <= of_day, "index", || {
            (name(*day, *side), format!("its figures count {calls} answered calls, the day's {of_day}"))
        });
    }
    Ok(())
}

fn add(sums: &mut Sums, key: (u32, Side), (calls, micros): (u64, u64)) {
    let sum = sums.entry(key).or_default();
    *sum = (sum.0.saturating_add(calls), sum.1.saturating_add(micros));
}

fn name(day: u32, side: Side) -> String {
    let what = if side == Side::Payer { "bought" } else { "served" };
    format!("day {day}, {what}")
}
