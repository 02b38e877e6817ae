//! What a measurement found: tables for people, JSON for programs.

use std::{
    fmt::Display,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use farthing_testnet::NodeProcess;
use serde::Serialize;
use serde_json::{Map, Value};

/// Says on standard error how far a long run has come, beside the tables on standard output.
#[derive(Debug)]
pub struct Progress(Instant);

impl Progress {
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    pub fn tell(&self, what: impl Display) {
        eprintln!("  {:>5} s  {what}", self.0.elapsed().as_secs());
    }
}

/// Prints rows as a Markdown table: the fields' names above, a line for each row.
pub fn print_table<T: Serialize>(title: &'static str, rows: &[T]) -> Result<()> {
    let mut table = Table::begin(title);
    rows.iter().try_for_each(|row| table.row(row))
}

/// The same for rows that become known one after the other: what a long run has found is seen while it goes on.
#[derive(Debug)]
pub struct Table {
    title: &'static str,
    is_begun: bool,
}

impl Table {
    pub const fn begin(title: &'static str) -> Self {
        Self { title, is_begun: false }
    }

    /// Prints one row, after the head when it is the first.
    pub fn row(&mut self, row: &impl Serialize) -> Result<()> {
        let row = serde_json::to_value(row)?;
        let row = row.as_object().context("a row is an object")?;
        if !std::mem::replace(&mut self.is_begun, true) {
            println!("\n{}\n", self.title);
            println!("| {} |", row.keys().cloned().collect::<Vec<_>>().join(" | "));
            println!("|{}", "---:|".repeat(row.len()));
        }
        println!("| {} |", row.values().map(shown).collect::<Vec<_>>().join(" | "));
        Ok(())
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Says in one line whether a promise holds, with the figures in it.
pub fn print_promise(promise: impl Display, holds: bool) {
    println!("\n  {}: {promise}", if holds { "holds" } else { "does not hold" });
}

/// Puts a section into the report at `path`, beside those of other runs.
pub fn write_section<T: Serialize>(path: &Path, name: &str, section: &T) -> Result<()> {
    let mut report = match fs::read_to_string(path) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is no report", path.display()))?
        }
        Err(_) => Map::new(),
    };
    report.insert(name.to_owned(), serde_json::to_value(section)?);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?)
}

/// Resident memory of this process in MiB.
pub fn resident_mib() -> Result<u64> {
    resident_mib_of(std::process::id())
}

/// Resident memory of a node's process in MiB.
pub fn memory_mib(node: &NodeProcess) -> Result<u64> {
    resident_mib_of(node.pid().context("the node has ended")?)
}

fn resident_mib_of(process: u32) -> Result<u64> {
    let status =
        fs::read_to_string(format!("/proc/{process}/status")).context("memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
}

/// What the threads of this process have spent on processors, in all. Unlike the time that passed, it does not grow
/// while other processes have their turn.
pub fn processor_time() -> Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task").context("processor time is read from /proc")? {
        // A thread that has just ended is gone.
        let Ok(spent) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += spent.split(' ').next().context("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// One digit after the point is as exact as these numbers are.
pub fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The value below which so many percent of `sorted` lie.
pub fn quantile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied()
}
