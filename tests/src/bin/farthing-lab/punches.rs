//! How often, and how fast, a direct connection follows one through a relay, in each case of the laboratory in which it can.
//!
//! Before each attempt the consumer's node starts again at another port, so that no router remembers it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use farthing_tests::{
    lab::{
        HomeRouter,
        cases::{CASES, CallsGo, Case},
    },
    market::{Consumer, Market, PATIENCE, Setup, is_relayed, tested_soon},
    report::{Progress, Table, print_promise, quantile},
};
use serde::Serialize;

use crate::{DELAY_MS, keep, millis, open};

/// Of each case.
pub const TIMES: u32 = 10;
/// The time after which a connection is to be direct.
const PROMISED: Duration = Duration::from_secs(3);
/// Attempts are over by then.
const ATTEMPTS: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Where consumers listen, one port after the other.
const FIRST_PORT: u16 = 4001;

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// None through a relay was seen before.
    DirectAtOnce,
    /// The time for which one through a relay was there.
    DirectAfter(Duration),
    Relayed,
}

/// The outcomes of a case. Times are those from one connection to the other.
#[derive(Debug, Serialize)]
struct Row {
    owner_behind: String,
    called_from: String,
    times: usize,
    began_relayed: usize,
    became_direct: usize,
    within_three_seconds: usize,
    median_ms: Option<f64>,
    slowest_ms: Option<f64>,
}

impl Row {
    fn of(case: Case, outcomes: &[Outcome]) -> Self {
        let after = |outcome: &Outcome| match outcome {
            Outcome::DirectAfter(time) => Some(*time),
            Outcome::DirectAtOnce | Outcome::Relayed => None,
        };
        let mut times: Vec<Duration> = outcomes.iter().filter_map(after).collect();
        times.sort();
        let at_once = outcomes.iter().filter(|outcome| **outcome == Outcome::DirectAtOnce).count();
        Self {
            owner_behind: format!("{:?}", case.home),
            called_from: format!("{:?}", case.from),
            times: outcomes.len(),
            began_relayed: outcomes.len() - at_once,
            became_direct: times.len(),
            within_three_seconds: times.iter().filter(|time| **time <= PROMISED).count(),
            median_ms: quantile(&times, 50).map(millis),
            slowest_ms: times.last().copied().map(millis),
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct Section {
    delay_ms: u32,
    cases: Vec<Row>,
    began_relayed: usize,
    within_three_seconds: usize,
    holds: bool,
}

impl Section {
    /// Nine of ten that began through a relay are direct in time.
    fn of(cases: Vec<Row>) -> Self {
        let began_relayed = cases.iter().map(|case| case.began_relayed).sum();
        let within_three_seconds = cases.iter().map(|case| case.within_three_seconds).sum();
        let holds = began_relayed > 0 && 10 * within_three_seconds >= 9 * began_relayed;
        Self { delay_ms: DELAY_MS, cases, began_relayed, within_three_seconds, holds }
    }
}

/// Tries each case so many times.
pub async fn measure(times: u32) -> Result<()> {
    let progress = Progress::begin();
    let mut section = Section::default();
    let mut table = Table::begin("From a connection through a relay to a direct one");
    let possible: Vec<Case> = CASES.into_iter().filter(|case| case.calls_go == CallsGo::Directly).collect();
    for of_one_router in possible.chunk_by(|one, next| one.home == next.home) {
        let Some(Case { home, .. }) = of_one_router.first() else { continue };
        progress.tell(format_args!("an owner behind {home:?}"));
        let found = repeat(*home, of_one_router, times).await?;
        found.iter().try_for_each(|row| table.row(row))?;
        section = Section::of(section.cases.into_iter().chain(found).collect());
        keep("punches", &section)?;
    }
    let promise = format!(
        "within three seconds nine of ten connections through a relay are followed by a direct one ({} of {})",
        section.within_three_seconds, section.began_relayed
    );
    print_promise(promise, section.holds);
    Ok(())
}

/// The cases of one router, in turns.
async fn repeat(home: HomeRouter, cases: &[Case], times: u32) -> Result<Vec<Row>> {
    let consumers = cases.iter().map(|case| case.from).collect();
    let mut market = open(Setup { consumers, home, all: tested_soon(), ..Setup::default() }).await?;
    market.wait_for_relays(PATIENCE).await?;
    let mut outcomes = vec![Vec::new(); cases.len()];
    for number in 0..u16::try_from(times)? {
        for (case, outcomes) in cases.iter().zip(&mut outcomes) {
            market.move_consumer(case.from, FIRST_PORT + number).await?;
            outcomes.push(attempt(&market, market.consumer(case.from), number).await?);
        }
    }
    Ok(cases.iter().zip(&outcomes).map(|(case, outcomes)| Row::of(*case, outcomes)).collect())
}

async fn attempt(market: &Market, consumer: &Consumer, number: u16) -> Result<Outcome> {
    let call_id = format!("{:?} {number}", consumer.place);
    let call = market.call_until_served(consumer, "/ok", &call_id);
    let (_, outcome) = tokio::try_join!(call, watch(market, consumer))?;
    Ok(outcome)
}

/// Looks at the connection until it is direct, or will not become so.
async fn watch(market: &Market, consumer: &Consumer) -> Result<Outcome> {
    let (began, mut relayed_since) = (Instant::now(), None::<Instant>);
    while began.elapsed() < PATIENCE {
        match market.way(consumer).await? {
            None => {}
            Some(way) if is_relayed(&way) => {
                let since = *relayed_since.get_or_insert_with(Instant::now);
                if since.elapsed() > ATTEMPTS {
                    return Ok(Outcome::Relayed);
                }
            }
            Some(_) => {
                let direct = |since: Instant| Outcome::DirectAfter(since.elapsed());
                return Ok(relayed_since.map_or(Outcome::DirectAtOnce, direct));
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!("{:?} was not connected to the owner within {} s", consumer.place, PATIENCE.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcomes: &[Outcome]) -> Row {
        Row::of(CASES[0], outcomes)
    }

    #[test]
    fn what_was_direct_at_once_says_nothing_of_attempts() {
        let fast = Outcome::DirectAfter(Duration::from_secs(3));
        let slow = Outcome::DirectAfter(Duration::from_millis(3_001));
        let row = row(&[Outcome::DirectAtOnce, fast, slow, Outcome::Relayed]);
        let counts = (row.times, row.began_relayed, row.became_direct, row.within_three_seconds);
        assert_eq!(counts, (4, 3, 2, 1));
        assert_eq!((row.median_ms, row.slowest_ms), (Some(3_001.0), Some(3_001.0)));
    }

    #[test]
    fn nine_of_ten_connections_are_direct_in_time_over_all_cases() {
        let fast = Outcome::DirectAfter(Duration::from_millis(400));
        let holds = |fast_ones, relayed| {
            let outcomes = [vec![fast; fast_ones], vec![Outcome::Relayed; relayed]].concat();
            Section::of(vec![row(&[fast; 8]), row(&outcomes)]).holds
        };
        assert!(holds(1, 1) && !holds(0, 1), "nine of ten, eight of nine");
        assert!(!Section::of(vec![row(&[Outcome::DirectAtOnce])]).holds, "nobody tried");
    }
}
