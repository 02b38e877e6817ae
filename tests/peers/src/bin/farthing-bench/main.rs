//! `make bench`: what a paid call costs beside a direct one and beside two TLS proxies, measured in one run on this
//! machine.
//!
//! Absolute times depend on the machine and on what else it does; the ratios, taken in the same run, are what to
//! compare. Tables go to standard output and everything, as JSON, to `target/bench/report.json`. `farthing-bench calls`,
//! `crowded` and `profile` measure that part alone, `farthing-bench compare PROGRAM` this workspace's nodes beside those
//! of another build, and `farthing-bench long [CALLS]` buys 200,000 calls and compares the books; they write nothing.
//!
//! `farthing-bench soak` (`make soak`) runs a network for an hour and writes `target/soak/report.json`.

mod calls;
mod compare;
mod counts;
mod load;
mod long;
mod market;
mod profile;
mod rows;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use farthing_peers::soak::Plan;
use farthing_testnet::demo::tempdir;
use farthing_tests::report::{memory_mib, write_section};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{calls::Goals, market::Market};

const REPORT: &str = "target/bench/report.json";
const SOAK_REPORT: &str = "target/soak/report.json";

/// Times in milliseconds, memory in MiB.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    calls: Vec<calls::Row>,
    goals: Goals,
    parts_p50_ms: rows::Parts,
    bridged_p50: rows::Bridged,
    crowded: rows::Crowded,
    /// Resident, before any load and after all of it.
    consumer_idle_mib: u64,
    consumer_loaded_mib: u64,
    owner_idle_mib: u64,
    owner_loaded_mib: u64,
    starts: rows::Starts,
}

/// What the figures were taken on.
#[derive(Debug, Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    /// Of the programs that were measured.
    is_optimised: bool,
    program_mib: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let (part, of) = (std::env::args().nth(1), std::env::args().nth(2));
    if part.as_deref() == Some("soak") {
        return soak(&std::env::args().skip(2).collect::<Vec<_>>()).await;
    }
    let folder = tempdir()?;
    let started = Instant::now();
    if part.as_deref() == Some("compare") {
        let other = of.context("which program to compare with: farthing-bench compare PROGRAM")?;
        return compare::measure(&folder.0, other.into()).await;
    }
    if part.as_deref() == Some("long") {
        let calls = of.map_or(Ok(long::CALLS), |calls| calls.parse()).context("how many calls: a number")?;
        let market = Market::of(&folder.0, None).await?;
        long::measure(&market, calls).await?;
        return market.close().await;
    }
    let mut market = Market::open(&folder.0).await?;
    let machine = Machine::this()?;
    println!("{machine:?}");
    println!("Ready after {:.1} s. Measuring …", started.elapsed().as_secs_f64());
    match part.as_deref() {
        None => all(&mut market, machine).await?,
        Some("calls") => print(&Goals::of(&calls::measure(&market).await?))?,
        Some("crowded") => print(&rows::crowded(&market.demo).await?)?,
        Some("profile") => profile::measure(&market).await?,
        Some(other) => {
            bail!(
                "{other:?} is not a part of the bench. Use calls, crowded, profile, compare, long, soak or no argument"
            )
        }
    }
    market.close().await
}

/// Ends with an error when something grows, or books differ.
async fn soak(words: &[String]) -> Result<()> {
    let plan = Plan::read(words).map_err(anyhow::Error::msg)?;
    let report = farthing_peers::soak::run(&plan).await?;
    report.print()?;
    write_section(Path::new(SOAK_REPORT), "soak", &report)?;
    println!("  written to {SOAK_REPORT}");
    let failures = report.failures();
    ensure!(failures.is_empty(), "the soak has failed:\n{}", failures.join("\n"));
    println!("  every book agrees, and nothing grows");
    Ok(())
}

async fn all(market: &mut Market, machine: Machine) -> Result<()> {
    let consumer_idle_mib = memory_mib(&market.demo.consumer)?;
    let owner_idle_mib = memory_mib(&market.demo.earthquakes.node)?;
    let calls = calls::measure(market).await?;
    let report = Report {
        machine,
        goals: Goals::of(&calls),
        calls,
        parts_p50_ms: rows::parts(&market.demo).await?,
        bridged_p50: rows::bridged(&market.demo).await?,
        crowded: rows::crowded(&market.demo).await?,
        consumer_idle_mib,
        consumer_loaded_mib: memory_mib(&market.demo.consumer)?,
        owner_idle_mib,
        owner_loaded_mib: memory_mib(&market.demo.earthquakes.node)?,
        starts: rows::starts(&mut market.demo).await?,
    };
    for (name, value) in serde_json::to_value(&report)?.as_object().into_iter().flatten() {
        // The calls have a table of their own.
        if name != "calls" {
            println!("  {name:<22} {value}");
        }
    }
    let crowded = &report.crowded;
    println!(
        "\n  beside {} wallets with {} slow streams each, a call takes {:.1} times a quiet one's p50 and {:.1} times its p99",
        rows::HOSTILE_WALLETS,
        rows::SLOW_STREAMS,
        crowded.p50_ratio,
        crowded.p99_ratio,
    );
    if let Some(folder) = Path::new(REPORT).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(REPORT, serde_json::to_string_pretty(&report)? + "\n")?;
    println!("  written to {REPORT}");
    Ok(())
}

impl Machine {
    fn this() -> Result<Self> {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let program = farthing_testnet::program("farthing")?;
        Ok(Self {
            processor: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned()),
            cores: std::thread::available_parallelism()?.get(),
            is_optimised: !cfg!(debug_assertions),
            program_mib: fs::metadata(program)?.len() / (1024 * 1024),
        })
    }
}

fn print(figures: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(figures)?);
    Ok(())
}

/// Of times in microseconds, up to a minute.
fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn millis(duration: Duration) -> f64 {
    round(duration.as_secs_f64() * 1000.0)
}

/// A percentile in milliseconds.
fn at(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    millis(Duration::from_micros(histogram.value_at_quantile(quantile)))
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
