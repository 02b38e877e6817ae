//! Figures of the last hours by five minutes, in memory: for a time that is shorter than the hours of the tables.
//!
//! 1. A start makes them of the newest calls that are stored.
//! 2. After each commit, the ends that it stored are counted, and those that they replace are taken out.
//!
//! So they cost no row, and whoever asks for them reads none. As in the tables, a part has figures for so many services, and the
//! calls of further ones share theirs.

use std::collections::{BTreeMap, HashMap};

use farthing_os::clock::now_secs;
use farthing_values::{CallId, Usdc};
use redb::ReadTransaction;

use crate::{
    error::Result,
    rows::{
        figures::{CallFigures, EndedCall, SERVICES_MAX, Subject},
        payee::{self, StoredCall},
        payer,
    },
    tables::{self, CALLS, CALLS_BY_TIME, PURCHASES, PURCHASES_BY_TIME},
};

/// The length of a part.
pub const LATEST_PART_SECS: u64 = 300;
const HOUR_SECS: u64 = 3_600;
/// An hour with the part that has begun, and as many again for calls that were promised earlier, or that a clock has dated ahead.
const PARTS_KEPT: usize = 26;
/// Calls of each side that a start reads: nearly 30 a second for an hour, and some 300 ms of one core.
const READ_MAX: usize = 100_000;

/// The change of the figures by an operation, which follows its commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FigureChange {
    Counted(EndedCall),
    Uncounted(EndedCall),
    /// It costs this now.
    Recharged(EndedCall, Usdc),
}

/// The figures by the number of their part since the epoch.
#[derive(Debug, Default)]
pub(crate) struct LatestFigures(BTreeMap<u64, HashMap<Subject, CallFigures>>);

impl LatestFigures {
    /// Reads the newest calls that are stored.
    pub(crate) fn read(tx: &ReadTransaction) -> Result<Self> {
        let (mut latest, from_secs) =
            (Self::default(), now_secs().saturating_sub(HOUR_SECS + LATEST_PART_SECS));
        let calls = tx.open_table(CALLS)?;
        let first = payee::time_key(from_secs, &[0; 36]);
        let by_time = tx.open_table(CALLS_BY_TIME)?;
        for entry in by_time.range::<&[u8; 44]>(&first..)?.rev().take(READ_MAX) {
            let key: [u8; 36] = tables::join(&[&entry?.0.value()[8..]]);
            let call = tables::get::<_, StoredCall>(&calls, "calls", &key)?;
            if let Some(ended) = call.as_ref().and_then(EndedCall::served) {
                latest.count(&ended);
            }
        }
        let purchases = tx.open_table(PURCHASES)?;
        let first = payer::time_key(from_secs, CallId::from_bytes([0; 16]));
        let by_time = tx.open_table(PURCHASES_BY_TIME)?;
        for entry in by_time.range::<&[u8; 24]>(&first..)?.rev().take(READ_MAX) {
            let call_id = CallId::from_bytes(tables::join(&[&entry?.0.value()[8..]]));
            if let Some(purchase) = payer::purchase_in(&purchases, call_id)? {
                latest.count(&EndedCall::bought(&purchase));
            }
        }
        Ok(latest)
    }

    /// Follows a commit.
    pub(crate) fn follow(&mut self, changes: &[FigureChange]) {
        for change in changes {
            match change {
                FigureChange::Counted(ended) => self.count(ended),
                FigureChange::Uncounted(ended) => self.edit(ended, |figures| figures.uncount(ended)),
                FigureChange::Recharged(ended, charged) => {
                    self.edit(ended, |figures| figures.recharge(ended, *charged));
                }
            }
        }
    }

    fn count(&mut self, ended: &EndedCall) {
        let part = self.0.entry(ended.time_secs / LATEST_PART_SECS).or_default();
        let others = Subject::others(ended.subject.side);
        let is_known = part.contains_key(&ended.subject);
        let own = part.keys().filter(|subject| subject.side == others.side && **subject != others);
        let subject = if is_known || own.count() < SERVICES_MAX { ended.subject } else { others };
        part.entry(subject).or_default().count(ended);
        self.let_go(now_secs());
    }

    /// Changes the first figures that may have counted an end and say that they did; nothing where it is too old.
    fn edit(&mut self, ended: &EndedCall, edit: impl Fn(&mut CallFigures) -> bool) {
        let Some(part) = self.0.get_mut(&(ended.time_secs / LATEST_PART_SECS)) else { return };
        for subject in [ended.subject, Subject::others(ended.subject.side)] {
            if part.get_mut(&subject).is_some_and(&edit) {
                return;
            }
        }
    }

    /// Lets go of the oldest parts beyond those that are kept. None of the last hour goes: where a clock was ahead for long, the
    /// parts that it has dated go instead.
    fn let_go(&mut self, now_secs: u64) {
        let first_needed = now_secs.saturating_sub(HOUR_SECS) / LATEST_PART_SECS;
        while self.0.len() > PARTS_KEPT {
            let is_needed = self.0.first_key_value().is_some_and(|(part, _)| *part >= first_needed);
            let _ = if is_needed { self.0.pop_last() } else { self.0.pop_first() };
        }
    }

    /// Tells the figures that are wanted of each part that begins at `from_secs` or later.
    pub(crate) fn each(
        &self,
        from_secs: u64,
        is_wanted: impl Fn(&Subject) -> bool,
        mut each: impl FnMut(u64, Subject, CallFigures),
    ) {
        for (part, figures) in self.0.range(from_secs.div_ceil(LATEST_PART_SECS)..) {
            for (subject, figures) in figures.iter().filter(|(subject, _)| is_wanted(subject)) {
                each(part.saturating_mul(LATEST_PART_SECS), *subject, figures.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_values::{Address, ServiceId};

    use super::*;
    use crate::rows::Side;

    /// A call that was refused, of a service with this number.
    fn ended(time_secs: u64, service: u8) -> EndedCall {
        let service = ServiceId::from_bytes([service; 16]);
        let subject = Subject { side: Side::Payer, owner: Address::ZERO, service };
        let (outcome, charged, took_us) = (None, Usdc::ZERO, None);
        EndedCall { subject, time_secs, outcome, is_refused: true, charged, took_us }
    }

    fn parts(latest: &LatestFigures) -> (u64, u64, usize) {
        let (first, last) = (latest.0.first_key_value(), latest.0.last_key_value());
        (*first.unwrap().0, *last.unwrap().0, latest.0.len())
    }

    #[test]
    fn so_many_parts_are_kept_and_a_clock_that_was_ahead_takes_none_of_the_last_hour() {
        let mut latest = LatestFigures::default();
        (0..100).for_each(|part| latest.count(&ended(part * LATEST_PART_SECS, 1)));
        assert_eq!(parts(&latest), (74, 99, PARTS_KEPT));
        let mut latest = LatestFigures::default();
        let now = now_secs() / LATEST_PART_SECS;
        (0..100).for_each(|part| latest.count(&ended((now + 1_000 + part) * LATEST_PART_SECS, 1)));
        (0..12).rev().for_each(|part| latest.count(&ended((now - part) * LATEST_PART_SECS, 1)));
        assert_eq!(parts(&latest), (now - 11, now + 1_013, PARTS_KEPT));
    }

    #[test]
    fn so_many_services_have_figures_of_their_own_in_a_part_and_the_others_share_theirs() {
        let mut latest = LatestFigures::default();
        (1..=80).for_each(|service| latest.count(&ended(0, service)));
        (1..=80).for_each(|service| latest.count(&ended(0, service)));
        let mut of_others = 0;
        let mut services = 0;
        latest.each(
            0,
            |_| true,
            |_, subject, figures| {
                if subject == Subject::others(Side::Payer) {
                    of_others = figures.calls();
                } else {
                    assert_eq!(figures.calls(), 2);
                    services += 1;
                }
            },
        );
        assert_eq!((services, of_others), (SERVICES_MAX, 2 * 16));
        let gone: Vec<_> = (79..=80).map(|service| FigureChange::Uncounted(ended(0, service))).collect();
        latest.follow(&gone);
        latest.each(
            0,
            |subject| *subject == Subject::others(Side::Payer),
            |_, _, figures| {
                assert_eq!(figures.calls(), 30);
            },
        );
    }
}
