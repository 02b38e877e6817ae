//! What every process of a soak takes, looked at every few seconds from outside: memory, open files, threads, disk, and now
//! and then the rows of its ledger.

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
/// Rows are counted by an audit, which reads the whole ledger: only with every so many looks.
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
    /// Calls and adjustments in its ledger, when they were counted last.
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
    pub memory_kib: u64,
    pub files: usize,
    pub threads: u64,
}

impl Counts {
    pub fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).context("/proc is read")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            number.with_context(|| format!("no {name} in the status of process {process}"))
        };
        let files = fs::read_dir(format!("/proc/{process}/fd")).context("/proc is read")?.count();
        Ok(Self { memory_kib: number("VmRSS:")?, files, threads: number("Threads:")? })
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
    let audit = node.control().ask(endpoint::Audit.with("offline", true)).await?;
    Ok((audit.calls_bought + audit.calls_served + audit.adjustments) as f64)
}
