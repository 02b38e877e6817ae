//! Calls and money over a time that ends now, added up from the figures that the ledger keeps.
//!
//! Where the parts of the time begin, a pure rule says; every row of the ledger falls into one of them.

use std::collections::HashMap;

use farthing_control::types::{
    CallSums, OutcomeCounts, Series, SeriesPoint, SeriesRange, ServiceCalls, UsdcText,
};
use farthing_ledger::{
    Adjustment, CallFigures, LATEST_PART_SECS, Ledger, LedgerError, Position, Side, Subject, Window,
};
use farthing_os::clock;
use farthing_protocol::{Address, Outcome, ServiceId};

use super::outcome;

const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;
/// Far more than anybody has.
const ADJUSTMENTS_MAX: usize = 20_000;

/// The calls that are asked for; all of them unless named.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeriesOf {
    pub service: Option<ServiceId>,
    /// The wallet that was paid for them.
    pub owner: Option<Address>,
}

impl SeriesOf {
    fn wants(&self, subject: &Subject) -> bool {
        self.service.is_none_or(|service| subject.service == service)
            && self.owner.is_none_or(|owner| subject.side == Side::Payer && subject.owner == owner)
    }

    /// Adjustments are of an owner at most, never of a service.
    fn wants_adjustment(&self, adjustment: &Adjustment) -> bool {
        let is_of = |owner| adjustment.side == Side::Payer && adjustment.peer == owner;
        adjustment.is_of_its_day() && self.service.is_none() && self.owner.is_none_or(is_of)
    }
}

/// The sums of both sides.
#[derive(Debug, Clone, Default)]
struct Sums {
    bought: CallFigures,
    served: CallFigures,
}

impl Sums {
    fn of(&mut self, side: Side) -> &mut CallFigures {
        match side {
            Side::Payer => &mut self.bought,
            Side::Payee => &mut self.served,
        }
    }
}

/// Reads what was asked for.
pub(super) fn read(
    ledger: &Ledger,
    range: SeriesRange,
    asked: SeriesOf,
    now_secs: u64,
) -> Result<Series, LedgerError> {
    let starts = starts(range, now_secs);
    let first = starts.first().copied().unwrap_or_default();
    let (mut parts, mut whole) = (vec![Sums::default(); starts.len()], Sums::default());
    let mut add = |secs: u64, side: Side, figures: &CallFigures| {
        if let Some(part) = part_of(&starts, secs).and_then(|at| parts.get_mut(at)) {
            part.of(side).add(figures);
            whole.of(side).add(figures);
        }
    };
    let is_wanted = |subject: &Subject| asked.wants(subject);
    each_figure(ledger, range, first, is_wanted, |secs, subject, figures| add(secs, subject.side, &figures))?;
    for adjustment in adjustments(ledger, first, asked)? {
        let amount = CallFigures::without_calls(adjustment.amount);
        add(adjustment.time_secs, adjustment.side, &amount);
    }
    let points = starts.iter().zip(&parts).map(|(start, part)| SeriesPoint {
        start_secs: *start,
        bought: shown(&part.bought),
        served: shown(&part.served),
    });
    Ok(Series { range, points: points.collect(), bought: shown(&whole.bought), served: shown(&whole.served) })
}

/// Counts what each service of this node served.
pub(super) fn served(
    ledger: &Ledger,
    range: SeriesRange,
    now_secs: u64,
) -> Result<Vec<ServiceCalls>, LedgerError> {
    let starts = starts(range, now_secs);
    let first = starts.first().copied().unwrap_or_default();
    let mut by_service: HashMap<ServiceId, Vec<u64>> = HashMap::new();
    let others = Subject::others(Side::Payee);
    let is_wanted = |subject: &Subject| subject.side == Side::Payee && *subject != others;
    each_figure(ledger, range, first, is_wanted, |secs, subject, figures| {
        let calls = by_service.entry(subject.service).or_insert_with(|| vec![0; starts.len()]);
        if let Some(calls) = part_of(&starts, secs).and_then(|at| calls.get_mut(at)) {
            *calls = calls.saturating_add(figures.calls());
        }
    })?;
    let one = |(service, served): (ServiceId, Vec<u64>)| ServiceCalls { service: service.into(), served };
    Ok(by_service.into_iter().map(one).collect())
}

/// Tells the figures of a range, each with a second of the part that it is in.
fn each_figure(
    ledger: &Ledger,
    range: SeriesRange,
    from_secs: u64,
    is_wanted: impl Fn(&Subject) -> bool,
    each: impl FnMut(u64, Subject, CallFigures),
) -> Result<(), LedgerError> {
    match range {
        SeriesRange::Hour => {
            ledger.latest_figures(from_secs, is_wanted, each);
            Ok(())
        }
        SeriesRange::Day | SeriesRange::Week | SeriesRange::Month | SeriesRange::Year => {
            ledger.call_figures(from_secs, is_wanted, each)
        }
    }
}

fn adjustments(ledger: &Ledger, from_secs: u64, asked: SeriesOf) -> Result<Vec<Adjustment>, LedgerError> {
    let window = Window {
        before: Position::start_of(u64::MAX),
        from_secs,
        limit: ADJUSTMENTS_MAX,
        scan_max: ADJUSTMENTS_MAX,
    };
    let found = ledger.adjustments_in(&window, |adjustment| asked.wants_adjustment(adjustment))?;
    Ok(found.rows.into_iter().map(|(_, adjustment)| adjustment).collect())
}

/// The part that a second is in; `None` before the first.
pub(super) fn part_of(starts: &[u64], secs: u64) -> Option<usize> {
    starts.partition_point(|start| *start <= secs).checked_sub(1)
}

/// The seconds with which the parts of a range begin, the earliest first.
pub(super) fn starts(range: SeriesRange, now_secs: u64) -> Vec<u64> {
    match range {
        SeriesRange::Hour => steps(12, LATEST_PART_SECS, now_secs),
        SeriesRange::Day => steps(24, HOUR_SECS, now_secs),
        SeriesRange::Week => steps(28, 6 * HOUR_SECS, now_secs),
        SeriesRange::Month => steps(30, DAY_SECS, now_secs),
        SeriesRange::Year => months(12, now_secs),
    }
}

/// So many parts of one length; fewer soon after the epoch.
fn steps(count: u64, secs: u64, now_secs: u64) -> Vec<u64> {
    let last = now_secs / secs;
    (last.saturating_sub(count - 1)..=last).map(|number| number * secs).collect()
}

/// So many months, with the present one. No month is longer than 31 days.
fn months(count: usize, now_secs: u64) -> Vec<u64> {
    let today = now_secs / DAY_SECS;
    let days = today.saturating_sub(31 * count as u64)..=today;
    let firsts: Vec<u64> = days.map(|day| day * DAY_SECS).filter(|secs| clock::civil(*secs).2 == 1).collect();
    firsts.iter().skip(firsts.len().saturating_sub(count)).copied().collect()
}

fn counts(figures: &CallFigures) -> OutcomeCounts {
    let (refused, failed) = (figures.refused, figures.released);
    let mut counts = OutcomeCounts { refused, failed, ..OutcomeCounts::default() };
    for ended in Outcome::ALL {
        counts.add(outcome::of(ended), figures.ended(ended));
    }
    counts
}

fn shown(figures: &CallFigures) -> CallSums {
    CallSums {
        outcomes: counts(figures),
        charged: UsdcText::from(figures.charged),
        p50_us: figures.latencies.median_us(),
        p95_us: figures.latencies.percentile_us(95),
    }
}

#[cfg(test)]
mod tests {
    use farthing_control::types::CallOutcome;
    use farthing_protocol::Usdc;

    use super::*;

    #[test]
    fn a_range_has_its_parts_and_ends_with_the_present_one() {
        let now_secs = clock::start_of("2026-03-30").unwrap() + 50_000;
        for (range, parts, first) in [
            (SeriesRange::Hour, 12, "2026-03-30T12:55:00Z"),
            (SeriesRange::Day, 24, "2026-03-29T14:00:00Z"),
            (SeriesRange::Week, 28, "2026-03-23T18:00:00Z"),
            (SeriesRange::Month, 30, "2026-03-01T00:00:00Z"),
            (SeriesRange::Year, 12, "2025-04-01T00:00:00Z"),
        ] {
            let starts = starts(range, now_secs);
            assert_eq!((starts.len(), clock::timestamp(starts[0]).as_str()), (parts, first), "{range}");
            assert!(starts.windows(2).all(|pair| pair[0] < pair[1]), "{range}");
            assert_eq!(part_of(&starts, now_secs), Some(parts - 1), "{range}");
            assert_eq!(part_of(&starts, starts[0]), Some(0), "{range}");
            assert_eq!(part_of(&starts, starts[0] - 1), None, "{range}");
        }
        for range in SeriesRange::ALL {
            assert!((1..=30).contains(&starts(range, 5).len()), "soon after the epoch: {range}");
        }
    }

    #[test]
    fn every_end_that_the_ledger_counts_has_one_outcome() {
        let mut figures = CallFigures::without_calls(Usdc::ZERO);
        (figures.refused, figures.released) = (1, 2);
        let counts = counts(&figures);
        assert_eq!((counts.of(CallOutcome::Refused), counts.of(CallOutcome::Failed)), (1, 2));
        for ended in Outcome::ALL {
            let mut counts = OutcomeCounts::default();
            counts.add(outcome::of(ended), 1);
            let told: u64 = CallOutcome::ALL.into_iter().map(|outcome| counts.of(outcome)).sum();
            assert_eq!(told, 1, "{ended:?}");
        }
    }

    #[test]
    fn a_series_is_of_everything_of_a_service_or_of_an_owner() {
        let (owner, service) = (Address::from_bytes([1; 20]), ServiceId::from_bytes([2; 16]));
        let bought = Subject { side: Side::Payer, owner, service };
        let served = Subject { side: Side::Payee, owner: Address::ZERO, service };
        let wants = |asked: SeriesOf| [asked.wants(&bought), asked.wants(&served)];
        let of = |service, owner| SeriesOf { service, owner };
        assert_eq!(wants(SeriesOf::default()), [true, true]);
        assert_eq!(wants(of(Some(service), None)), [true, true]);
        assert_eq!(wants(of(None, Some(owner))), [true, false]);
        assert_eq!(wants(of(None, Some(Address::ZERO))), [false, false]);
        assert_eq!(wants(of(Some(ServiceId::from_bytes([3; 16])), Some(owner))), [false, false]);
    }
}
