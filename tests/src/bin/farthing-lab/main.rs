//! `make lab`: what a relay costs a call, how often and how fast a direct connection follows one through a relay, and what
//! an idle node sends and receives, of whole nodes in the NAT laboratory (`tests/src/lab.rs`).
//!
//! A long line leads to the owner's router, and relays stand beside it. So all consumers are equally far from the owner,
//! whether a relay is on the way or not. Tables go to standard output and everything, as JSON, to `target/lab/report.json`, each part as soon as it is
//! known. `farthing-lab calls [CALLS]`, `punches [TIMES]` and `idle [SECONDS]` measure that part alone. Whether a promise
//! holds is told, and fails nothing.

mod calls;
mod idle;
mod punches;

use std::{env, path::Path, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use farthing_tests::{
    lab::{Place, line::LongLine},
    market::{Market, Setup},
    report::{self, rounded},
};
use serde::Serialize;

const REPORT: &str = "target/lab/report.json";
/// Each way between the owner's router and everybody else.
const DELAY_MS: u32 = 40;

#[tokio::main]
async fn main() -> Result<()> {
    let (part, count) = (env::args().nth(1), env::args().nth(2));
    match part.as_deref() {
        None => {
            calls::measure(calls::CALLS).await?;
            punches::measure(punches::TIMES).await?;
            idle::measure(idle::SECONDS).await?;
        }
        Some("calls") => calls::measure(number(count, calls::CALLS, 1_000)?).await?,
        Some("punches") => punches::measure(number(count, punches::TIMES, 100)?).await?,
        Some("idle") => idle::measure(number(count, idle::SECONDS, 86_400)?).await?,
        Some(other) => {
            bail!("{other:?} is not a part of the laboratory. Use calls, punches, idle or no argument")
        }
    }
    println!("\n  written to {REPORT}");
    Ok(())
}

/// What was given, or what there is without.
fn number(given: Option<String>, without: u32, most: u32) -> Result<u32> {
    let number = given.map_or(Ok(without), |given| given.parse()).context("how many: a whole number")?;
    ensure!((1..=most).contains(&number), "{number} is not from 1 to {most}");
    Ok(number)
}

/// A market whose owner is at the far end of the long line.
async fn open(setup: Setup) -> Result<Market> {
    let line = Some(LongLine { to: Place::Home, delay_ms: DELAY_MS, loss_percent: 0 });
    let market = Market::open(Setup { line, ..setup }).await?;
    market.context("there can be no laboratory here; the line above says why")
}

fn keep<T: Serialize>(part: &str, section: &T) -> Result<()> {
    report::write_section(Path::new(REPORT), part, section)
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

#[test]
fn a_number_that_is_not_given_is_the_usual_one_and_a_run_has_an_end() {
    assert_eq!(number(None, 100, 1_000).ok(), Some(100));
    assert_eq!(number(Some("1000".to_owned()), 100, 1_000).ok(), Some(1_000));
    for refused in ["0", "1001", "many", "-1"] {
        assert!(number(Some(refused.to_owned()), 100, 1_000).is_err(), "{refused}");
    }
}
