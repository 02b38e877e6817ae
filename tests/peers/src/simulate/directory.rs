//! Wallets looked for by nodes that do not know them, while nodes fail and lie.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use anyhow::Result;
use farthing_network::NetworkHandle;
use farthing_protocol::{Address, Verified};
use farthing_tests::report::{quantile, rounded};
use futures::{StreamExt, stream};
use serde::Serialize;

use super::{
    population::{Member, Population},
    traffic::count,
};

/// Look-ups under way at once.
const TOGETHER: usize = 16;
/// Wallets that one node looks for, at most, so that many nodes take part.
const OWNERS_OF_ONE_SEARCHER: usize = 5;

/// Many look-ups of living wallets by living nodes that hold no record of them.
#[derive(Debug, Clone, Serialize)]
pub struct Lookups {
    /// What had happened to the network.
    pub situation: String,
    pub living: usize,
    pub lookups: usize,
    /// The record that the owner published last was found, in percent.
    pub current_percent: f64,
    /// An older, genuine record was found.
    pub old: usize,
    pub not_found: usize,
    /// Something that the owner never signed was believed. Anything but zero is a fault.
    pub forged: usize,
    /// Wallets that an average node knows without asking, in percent.
    pub known_before_percent: f64,
    /// Requests until a node of the directory answered with a record, true or not.
    pub requests_until_answered: f64,
    /// Requests until the look-up was over.
    pub requests: f64,
    pub median_ms: f64,
    pub p99_ms: f64,
}

/// Makes up to `wanted` look-ups.
pub async fn look_up(population: &mut Population, situation: &str, wanted: usize) -> Result<Lookups> {
    let (pairs, known_before_percent) = strangers(population, wanted);
    anyhow::ensure!(!pairs.is_empty(), "every node that was drawn knows every wallet that was drawn");
    let members = &population.members;
    let searchers: HashSet<usize> = pairs.iter().map(|(searcher, _)| *searcher).collect();
    let before = Cost::of(members, &searchers);
    let found: Vec<(Outcome, Duration)> = stream::iter(&pairs)
        .map(|(searcher, owner)| look_up_one(&members[*searcher].handle, &members[*owner]))
        .buffer_unordered(TOGETHER)
        .collect()
        .await;
    let cost = Cost::of(members, &searchers).since(&before);

    let of = |outcome| found.iter().filter(|(other, _)| *other == outcome).count();
    let mut times: Vec<Duration> = found.iter().map(|(_, time)| *time).collect();
    times.sort();
    Ok(Lookups {
        situation: situation.to_owned(),
        living: members.len(),
        lookups: found.len(),
        current_percent: percent(of(Outcome::Current), found.len()),
        old: of(Outcome::Old),
        not_found: of(Outcome::NotFound),
        forged: of(Outcome::Forged),
        known_before_percent,
        requests_until_answered: rounded(ratio(cost.until_answered, cost.answered)),
        requests: rounded(ratio(cost.requests, found.len() as u64)),
        median_ms: quantile(&times, 50).map_or(f64::NAN, millis),
        p99_ms: quantile(&times, 99).map_or(f64::NAN, millis),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Current,
    Old,
    NotFound,
    Forged,
}

async fn look_up_one(searcher: &NetworkHandle, owner: &Member) -> (Outcome, Duration) {
    let started = Instant::now();
    let outcome = match searcher.find(owner.wallet).await {
        Err(_) => Outcome::NotFound,
        Ok(record) if record.signer() != owner.wallet => Outcome::Forged,
        Ok(record) if record.seq < owner.seq => Outcome::Old,
        Ok(_) => Outcome::Current,
    };
    (outcome, started.elapsed())
}

/// Pairs of a node and a wallet that it holds no record of, each once; and how many percent of the wallets the
/// nodes that were drawn know.
fn strangers(population: &mut Population, wanted: usize) -> (Vec<(usize, usize)>, f64) {
    let there = population.members.len();
    let (mut pairs, mut known, mut drawn) = (HashSet::new(), 0, 0);
    for _ in 0..wanted {
        let searcher = population.dice.index(there);
        let holds: HashSet<Address> =
            population.members[searcher].handle.records().iter().map(Verified::signer).collect();
        (known, drawn) = (known + holds.len(), drawn + 1);
        for _ in 0..OWNERS_OF_ONE_SEARCHER {
            let owner = population.dice.index(there);
            if owner != searcher && !holds.contains(&population.members[owner].wallet) {
                pairs.insert((searcher, owner));
            }
        }
        if pairs.len() >= wanted {
            break;
        }
    }
    (pairs.into_iter().take(wanted).collect(), percent(known, drawn * there))
}

/// What the searchers counted.
#[derive(Default)]
struct Cost {
    requests: u64,
    answered: u64,
    until_answered: u64,
}

impl Cost {
    fn of(members: &[Member], searchers: &HashSet<usize>) -> Self {
        searchers.iter().map(|index| members[*index].handle.counters()).fold(Self::default(), |sum, one| {
            Self {
                requests: sum.requests + one.lookup_requests,
                answered: sum.answered + one.lookups_answered,
                until_answered: sum.until_answered + one.lookup_requests_until_answered,
            }
        })
    }

    const fn since(self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            answered: self.answered - before.answered,
            until_answered: self.until_answered - before.until_answered,
        }
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    rounded(100.0 * ratio(part as u64, whole as u64))
}

fn ratio(part: u64, whole: u64) -> f64 {
    count(part) / count(whole.max(1))
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}
