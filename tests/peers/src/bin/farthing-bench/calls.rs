//! Direct, proxied and paid calls in turns, with one load generator, so that all of them see the same machine: what is
//! told are ratios and costs of a call.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::{
    at,
    counts::{AllocationPoints, Counting, Events, processor_time_of},
    load::{self, Load},
    market::{Market, Way},
    round,
};

const CALLERS: [usize; 4] = [1, 8, 64, 256];
/// Turns of each way, with as many callers.
const ROUNDS: usize = 3;
const A_TURN: Duration = Duration::from_secs(2);
/// Callers for whom events are counted too, in turns of their own, because counting slows a call down.
const COUNTED: [usize; 2] = [1, 64];

/// One way, with so many callers.
#[derive(Debug, Serialize)]
pub struct Row {
    pub callers: usize,
    pub way: Way,
    pub calls_per_second: f64,
    /// Beside two TLS proxies with as many callers, in the same run.
    pub of_proxied: Option<f64>,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    /// Refused for lack of room and asked again, of 100 calls.
    pub refused_percent: f64,
    /// Microseconds of processor time a call, by process.
    pub processor_us: BTreeMap<&'static str, f64>,
    /// Durable commits of both nodes a call.
    pub commits: Option<f64>,
    pub signatures: Option<f64>,
    /// Writes of both ends on the connection between consumer and owner a call.
    pub messages: Option<f64>,
    pub syscalls: Option<f64>,
    pub context_switches: Option<f64>,
    pub allocations: Option<f64>,
}

impl Row {
    /// Processor time of both nodes a call, in microseconds.
    pub fn nodes_us(&self) -> f64 {
        round(["consumer", "owner"].iter().filter_map(|node| self.processor_us.get(node)).sum())
    }
}

/// What one way's turns came to.
pub struct Turns {
    way: Way,
    pub calls: u64,
    refused: u64,
    seconds: f64,
    times: Histogram<u64>,
    processor: BTreeMap<&'static str, Duration>,
    commits: u64,
    signatures: u64,
    messages: Option<u64>,
}

impl Turns {
    /// One turn.
    pub async fn take(market: &Market, way: Way, callers: usize) -> Result<Self> {
        let processes = processes(market, way);
        let before = spent(&processes)?;
        let (counters, messages) = (market.counters().await?, market.messages().await?);
        let Load { calls, refused, seconds, times, generator } =
            load::run(market.targets(way)?, callers, A_TURN).await?;
        let (counters_now, messages_now) = (market.counters().await?, market.messages().await?);
        let nodes = before.into_iter().zip(spent(&processes)?);
        let nodes = nodes.map(|((name, before), (_, after))| (name, after.saturating_sub(before)));
        Ok(Self {
            way,
            calls,
            refused,
            seconds,
            times,
            processor: nodes.chain([("generator", generator)]).collect(),
            commits: counters_now.commits - counters.commits,
            signatures: counters_now.signatures - counters.signatures,
            messages: messages_now.zip(messages).map(|(now, before)| now.saturating_sub(before)),
        })
    }

    /// Counts further turns of the same way.
    pub fn add(&mut self, more: Self) -> Result<()> {
        for (name, spent) in more.processor {
            *self.processor.entry(name).or_default() += spent;
        }
        self.calls += more.calls;
        self.refused += more.refused;
        self.seconds += more.seconds;
        self.times.add(more.times)?;
        self.commits += more.commits;
        self.signatures += more.signatures;
        self.messages = self.messages.zip(more.messages).map(|(sum, more)| sum + more);
        Ok(())
    }

    fn per_call(&self, count: u64) -> f64 {
        per(count, self.calls)
    }

    pub fn row(&self, callers: usize, proxied: Option<f64>, counted: Option<&Counted>) -> Row {
        let is_paid = !matches!(self.way, Way::Direct | Way::Proxied);
        let rate = float(self.calls) / self.seconds;
        let micros = |spent: &Duration| round(spent.as_secs_f64() * 1e6 / float(self.calls));
        let counted =
            |of: fn(&Events) -> Option<u64>| counted.and_then(|it| Some(per(of(&it.events)?, it.calls)));
        Row {
            callers,
            way: self.way,
            calls_per_second: round(rate),
            of_proxied: proxied.map(|proxied| round(rate / proxied)),
            p50_ms: at(&self.times, 0.5),
            p99_ms: at(&self.times, 0.99),
            p999_ms: at(&self.times, 0.999),
            refused_percent: round(self.per_call(self.refused) * 100.0),
            processor_us: self.processor.iter().map(|(name, spent)| (*name, micros(spent))).collect(),
            commits: is_paid.then(|| self.per_call(self.commits)),
            signatures: is_paid.then(|| self.per_call(self.signatures)),
            messages: self.messages.filter(|_| self.way == Way::Paid).map(|sent| self.per_call(sent)),
            syscalls: counted(|events| events.syscalls),
            context_switches: counted(|events| events.context_switches),
            allocations: counted(|events| events.allocations),
        }
    }
}

/// Events of a turn that was counted.
pub struct Counted {
    events: Events,
    calls: u64,
}

/// All rows, as they become known.
pub async fn measure(market: &Market) -> Result<Vec<Row>> {
    let allocations = AllocationPoints::place();
    let mut rows = Vec::new();
    for callers in CALLERS {
        let mut turns = Vec::new();
        for way in market.ways() {
            turns.push(Turns::take(market, way, callers).await?);
        }
        for _ in 1..ROUNDS {
            for turns in &mut turns {
                turns.add(Turns::take(market, turns.way, callers).await?)?;
            }
        }
        let rate = |way: &Turns| float(way.calls) / way.seconds;
        let proxied = turns.iter().find(|turns| turns.way == Way::Proxied).map(rate);
        for way in &turns {
            let counted = count(market, way.way, callers, allocations.as_ref()).await?;
            rows.push(way.row(callers, proxied, counted.as_ref()));
        }
        print(rows.iter().filter(|row| row.callers == callers))?;
    }
    Ok(rows)
}

/// A turn in which events are counted; nothing with other numbers of callers, or where nobody may count.
pub async fn count(
    market: &Market,
    way: Way,
    callers: usize,
    allocations: Option<&AllocationPoints>,
) -> Result<Option<Counted>> {
    let processes: Vec<u32> = market.processes(way).into_iter().flat_map(|(_, ids)| ids).collect();
    if processes.is_empty() || !COUNTED.contains(&callers) {
        return Ok(None);
    }
    // What it takes to connect the callers is counted too; it is little beside the calls of a turn.
    let Some(counting) = Counting::begin(&processes, allocations) else { return Ok(None) };
    let load = load::run(market.targets(way)?, callers, A_TURN).await?;
    Ok(Some(Counted { events: counting.end()?, calls: load.calls }))
}

fn processes(market: &Market, way: Way) -> Vec<(&'static str, Vec<u32>)> {
    let service = market.service().into_iter().collect();
    market.processes(way).into_iter().chain([("service", service)]).collect()
}

fn spent(processes: &[(&'static str, Vec<u32>)]) -> Result<Vec<(&'static str, Duration)>> {
    let of_all = |ids: &[u32]| ids.iter().map(|id| processor_time_of(*id)).sum::<Result<Duration>>();
    processes.iter().map(|(name, ids)| Ok((*name, of_all(ids)?))).collect()
}

fn print<'a>(rows: impl Iterator<Item = &'a Row>) -> Result<()> {
    let mut callers = None;
    for row in rows {
        if callers.replace(row.callers).is_none() {
            println!("\n{} callers\n", row.callers);
            println!(
                "| way | calls/s | of proxied | p50 / p99 / p99.9, ms | refused, % | processor, µs a call | commits | \
                 signatures | messages | system calls | context switches | allocations |"
            );
            println!("|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|");
        }
        let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let processor: Vec<String> =
            row.processor_us.iter().map(|(name, micros)| format!("{name} {micros:.0}")).collect();
        let way = serde_json::to_value(row.way)?;
        println!(
            "| {} | {:.0} | {} | {} / {} / {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            way.as_str().context("a way has a name")?.replace('_', " "),
            row.calls_per_second,
            shown(row.of_proxied),
            row.p50_ms,
            row.p99_ms,
            row.p999_ms,
            row.refused_percent,
            processor.join(", "),
            shown(row.commits),
            shown(row.signatures),
            shown(row.messages),
            shown(row.syscalls),
            shown(row.context_switches),
            shown(row.allocations),
        );
    }
    Ok(())
}

/// The figures that the project sets itself, from rows of one run. None where a row is missing.
#[derive(Debug, Serialize)]
pub struct Goals {
    /// Paid calls per second with 64 callers, beside two TLS proxies.
    pub paid_of_proxied_64: Option<f64>,
    /// Processor time of both nodes a call, with 64 callers.
    pub nodes_us_64: Option<f64>,
    /// Paid less direct, one caller, p50.
    pub paid_minus_direct_p50_ms: Option<f64>,
    /// Paid beside proxied, p99 with 64 callers.
    pub p99_of_proxied_64: Option<f64>,
}

impl Goals {
    pub fn of(rows: &[Row]) -> Self {
        let row = |way, callers| rows.iter().find(|row| row.way == way && row.callers == callers);
        let (paid, proxied) = (row(Way::Paid, 64), row(Way::Proxied, 64));
        Self {
            paid_of_proxied_64: paid.and_then(|row| row.of_proxied),
            nodes_us_64: paid.map(Row::nodes_us),
            paid_minus_direct_p50_ms: row(Way::Paid, 1)
                .zip(row(Way::Direct, 1))
                .map(|(paid, direct)| round(paid.p50_ms - direct.p50_ms)),
            p99_of_proxied_64: paid.zip(proxied).map(|(paid, proxied)| round(paid.p99_ms / proxied.p99_ms)),
        }
    }
}

fn per(count: u64, calls: u64) -> f64 {
    round(float(count) / float(calls))
}

fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
