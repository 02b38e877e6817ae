//! What every process of a soak takes, looked at every few seconds from outside: memory, open files, threads, disk, and now
//! and then the rows of its ledger.
//!
//! Looking takes as little as it can from what is looked at: an audit, which also counts rows, would read the whole ledger into the
//! memory that is measured, each time on another thread.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::report::rounded;
use serde::Serialize;

use super::{
    load::{Load, Window},
    network::Network,
};

/// The kernel counts what a file takes on disk in blocks of this size, whatever the file system (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// A node is asked for its rows only with every so many looks.
const ROWS_EVERY: usize = 30;

/// What one process took at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Since the load began.
    pub at_secs: f64,
    /// Restarts before it.
    pub life: u32,
    pub memory_kib: f64,
    pub files: f64,
    pub threads: f64,
    pub disk_kib: f64,
    /// Answered calls in its ledger, when it was asked last.
    pub rows: f64,
}

/// Everything that was seen of one node.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
}

/// All nodes together at one moment, and the calls since the moment before.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Total {
    pub at_secs: f64,
    pub up: usize,
    pub memory_mib: f64,
    pub files: f64,
    pub threads: f64,
    pub disk_mib: f64,
    #[serde(flatten)]
    pub calls: Window,
}

/// All that was seen.
#[derive(Debug)]
pub struct Samples {
    pub series: Vec<Series>,
    pub totals: Vec<Total>,
}

impl Samples {
    pub fn of(network: &Network) -> Self {
        let empty = |name: &String| Series { name: name.clone(), points: Vec::new() };
        let series = network.members.iter().map(|member| empty(&member.name)).collect();
        Self { series, totals: Vec::new() }
    }

    /// Looks at every process.
    pub async fn take(&mut self, network: &mut Network, load: &Load, at_secs: f64) -> Result<()> {
        let counts_rows = self.totals.len().is_multiple_of(ROWS_EVERY);
        let calls = load.window();
        let mut total = Total {
            at_secs: rounded(at_secs),
            up: 0,
            memory_mib: 0.0,
            files: 0.0,
            threads: 0.0,
            disk_mib: 0.0,
            calls,
        };
        for (member, series) in network.members.iter_mut().zip(&mut self.series) {
            let Some(process) = member.process()? else { continue };
            let counts = Counts::of(process).with_context(|| member.name.clone())?;
            let before = series.points.last().map_or(0.0, |point| point.rows);
            let rows = if counts_rows { rows(&member.node).await.unwrap_or(before) } else { before };
            let point = Point {
                at_secs,
                life: member.restarts,
                memory_kib: counts.memory_kib as f64,
                files: counts.files as f64,
                threads: counts.threads as f64,
                disk_kib: disk_kib(member.data()) as f64,
                rows,
            };
            total.up += 1;
            total.memory_mib += point.memory_kib / 1024.0;
            total.files += point.files;
            total.threads += point.threads;
            total.disk_mib += point.disk_kib / 1024.0;
            series.points.push(point);
        }
        total.memory_mib = rounded(total.memory_mib);
        total.disk_mib = rounded(total.disk_mib);
        self.totals.push(total);
        Ok(())
    }
}

/// What a process has open and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Its own: the program's file and other mapped files come and go with the memory that the machine has to spare.
    pub memory_kib: u64,
    pub files: usize,
    pub threads: u64,
}

impl Counts {
    pub fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).context("/proc is read")?;
        let files = fs::read_dir(format!("/proc/{process}/fd")).context("/proc is read")?.count();
        Self::read(&status, files).with_context(|| format!("process {process}"))
    }

    fn read(status: &str, files: usize) -> Result<Self> {
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            number.with_context(|| format!("its status has no {name}"))
        };
        Ok(Self { memory_kib: number("RssAnon:")?, files, threads: number("Threads:")? })
    }
}

/// What a folder takes on disk. A file that goes away meanwhile takes nothing.
fn disk_kib(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_kib(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK_BYTES / 1024,
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

async fn rows(node: &NodeProcess) -> Result<f64> {
    let days = node.control().ask(endpoint::HistoryDays).await?;
    Ok(days.iter().map(|day| day.bought + day.served).sum::<u64>() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_a_process_holds_itself_and_not_what_it_maps_of_files() {
        let status = "VmRSS:\t  90000 kB\nRssAnon:\t  50000 kB\nRssFile:\t  40000 kB\nThreads:\t12\n";
        let counts = Counts::read(status, 80).unwrap();
        assert_eq!(counts, Counts { memory_kib: 50_000, files: 80, threads: 12 });
        let missing = Counts::read("VmRSS:\t  90000 kB\nThreads:\t12\n", 80).unwrap_err();
        assert!(missing.to_string().contains("RssAnon"), "{missing}");
        let own = Counts::of(std::process::id()).unwrap();
        assert!(own.memory_kib > 0 && own.files > 0 && own.threads > 0, "{own:?}");
    }
}
