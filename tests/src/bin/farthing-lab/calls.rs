//! The same calls in turns, directly and through a relay: what the relay costs.
//!
//! The owner's router lets in answers alone. Who is behind a plain router gets past it; who is behind a symmetric one does
//! not, whatever both sides try, so that one's calls stay with the relay. Both are equally far from the owner.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    lab::Place,
    market::{Consumer, Market, PATIENCE, Setup, is_relayed, tested_soon, until},
    report::{print_promise, print_table, quantile, rounded},
};
use serde::Serialize;

use crate::{DELAY_MS, keep, millis, open};

/// Of each way.
pub const CALLS: u32 = 100;
/// Attempts to connect directly are over by then.
const ATTEMPTS: Duration = Duration::from_secs(10);
const ROUND_TRIPS: usize = 5;

/// Calls of one way, from the request to the last byte of the answer. The round trip is the median of a few.
#[derive(Debug, Serialize)]
struct Row {
    calls_go: &'static str,
    calls: usize,
    round_trip_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
}

#[derive(Debug, Serialize)]
struct Section {
    delay_ms: u32,
    direct: Row,
    relayed: Row,
    /// What the relayed p50 may be.
    relayed_p50_most_ms: f64,
    holds: bool,
}

impl Section {
    /// A relayed call takes as long as a direct one and two round trips over the relay, at most.
    fn of(direct: Row, relayed: Row) -> Self {
        let most = rounded(direct.p50_ms + 2.0 * relayed.round_trip_ms);
        let holds = relayed.p50_ms <= most;
        Self { delay_ms: DELAY_MS, direct, relayed, relayed_p50_most_ms: most, holds }
    }
}

/// One who buys, always the same way.
struct Way<'m> {
    market: &'m Market,
    consumer: &'m Consumer,
    is_relayed: bool,
    times: Vec<Duration>,
}

/// Has two consumers make so many calls each.
pub async fn measure(calls: u32) -> Result<()> {
    let consumers = vec![Place::BehindPlain, Place::BehindSymmetric];
    let market = open(Setup { consumers, all: tested_soon(), ..Setup::default() }).await?;
    market.wait_for_relays(PATIENCE).await?;
    let mut ways = [
        Way::open(&market, Place::BehindPlain, false).await?,
        Way::open(&market, Place::BehindSymmetric, true).await?,
    ];
    for number in 0..calls {
        for way in &mut ways {
            way.call(&number.to_string()).await?;
        }
    }
    let [direct, relayed] = ways;
    let section = Section::of(direct.row().await?, relayed.row().await?);
    keep("calls", &section)?;
    print_table("Calls", &[&section.direct, &section.relayed])?;
    let promise = format!(
        "a relayed call's p50 is at most a direct one's and two round trips over the relay ({} ms, at most {} ms)",
        section.relayed.p50_ms, section.relayed_p50_most_ms
    );
    print_promise(promise, section.holds);
    // Each began with one more.
    market.check_books(2 * (1 + u64::from(calls))).await
}

impl<'m> Way<'m> {
    /// A first call, and what comes of the attempts that follow it.
    async fn open(market: &'m Market, from: Place, is_relayed: bool) -> Result<Self> {
        let way = Self { market, consumer: market.consumer(from), is_relayed, times: Vec::new() };
        market.call_until_served(way.consumer, "/ok", &format!("{from:?} first")).await?;
        if is_relayed {
            tokio::time::sleep(ATTEMPTS).await;
        } else {
            until("calls go directly", PATIENCE, async || way.is_as_it_was().await).await?;
        }
        Ok(way)
    }

    async fn is_as_it_was(&self) -> Result<bool> {
        Ok(is_relayed(&self.market.way_to_owner(self.consumer).await?) == self.is_relayed)
    }

    async fn call(&mut self, number: &str) -> Result<()> {
        let call_id = format!("{:?} {number}", self.consumer.place);
        self.times.push(self.market.call_until_served(self.consumer, "/ok", &call_id).await?);
        Ok(())
    }

    async fn row(mut self) -> Result<Row> {
        ensure!(self.is_as_it_was().await?, "calls from {:?} took another way", self.consumer.place);
        self.times.sort();
        let at = |percent| quantile(&self.times, percent).map(millis).context("no call was made");
        Ok(Row {
            calls_go: if self.is_relayed { "through a relay" } else { "directly" },
            calls: self.times.len(),
            round_trip_ms: millis(self.round_trip().await?),
            p50_ms: at(50)?,
            p99_ms: at(99)?,
        })
    }

    async fn round_trip(&self) -> Result<Duration> {
        let mut trips = Vec::new();
        for _ in 0..ROUND_TRIPS {
            trips.push(self.market.round_trip(self.consumer).await?);
        }
        trips.sort();
        quantile(&trips, 50).context("no round trip was made")
    }
}

#[test]
fn a_relayed_call_may_take_two_round_trips_over_the_relay_longer_than_a_direct_one() {
    let row = |p50_ms| Row { calls_go: "", calls: 100, round_trip_ms: 80.0, p50_ms, p99_ms: 900.0 };
    let section = |relayed| Section::of(row(90.0), row(relayed));
    assert!(section(250.0).holds && !section(250.1).holds, "{:?}", section(250.1));
}
