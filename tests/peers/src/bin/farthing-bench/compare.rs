//! Paid calls of two builds in turns, in one run: tells a change of some percent from what else the machine does.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{
    calls::{self, Row, Turns},
    counts::AllocationPoints,
    market::{Market, Way},
    round,
};

const CALLERS: [usize; 2] = [1, 64];
/// Pairs of turns with as many callers. Who begins changes with each.
const PAIRS: usize = 11;

/// A figure of a turn, where its events were counted.
type Figure = fn(&Row) -> Option<f64>;

/// Figures of a turn in which events are counted.
const EVENTS: [(&str, Figure); 3] = [
    ("system calls a call", |row| row.syscalls),
    ("context switches a call", |row| row.context_switches),
    ("allocations a call", |row| row.allocations),
];

/// Prints what this workspace's build costs beside the other one.
pub async fn measure(folder: &Path, other: PathBuf) -> Result<()> {
    ensure!(other.is_file(), "{} is no program", other.display());
    let this = Market::of(&folder.join("this"), None).await?;
    let other = Market::of(&folder.join("other"), Some(other)).await?;
    let allocations = AllocationPoints::place();
    println!(
        "\n| callers | | this | other | this / other: all | pairs, from least over middle to most |\n|---|---|---:|---:|---:|---|"
    );
    for callers in CALLERS {
        let (mut all, mut pairs) = (None, Vec::new());
        for number in 0..PAIRS {
            let take = |market| Turns::take(market, Way::Paid, callers);
            let pair = if number % 2 == 0 {
                (take(&this).await?, take(&other).await?)
            } else {
                let other = take(&other).await?;
                (take(&this).await?, other)
            };
            pairs.push(rows(&pair, callers));
            match &mut all {
                None => all = Some(pair),
                Some((this, other)) => {
                    this.add(pair.0)?;
                    other.add(pair.1)?;
                }
            }
        }
        let Some((of_this, of_other)) = all else { continue };
        let count = |market| calls::count(market, Way::Paid, callers, allocations.as_ref());
        let (counted, other_counted) = (count(&this).await?, count(&other).await?);
        let all = (
            of_this.row(callers, None, counted.as_ref()),
            of_other.row(callers, None, other_counted.as_ref()),
        );
        print("calls/s", &all, &pairs, |row| row.calls_per_second);
        print("both nodes, µs a call", &all, &pairs, Row::nodes_us);
        print("p50, ms", &all, &pairs, |row| row.p50_ms);
        print("p99, ms", &all, &pairs, |row| row.p99_ms);
        print("commits a call", &all, &pairs, |row| row.commits.unwrap_or_default());
        for (what, figure) in EVENTS {
            if let Some((this, other)) = figure(&all.0).zip(figure(&all.1)) {
                println!("| {callers} | {what} | {this} | {other} | {} | |", round(this / other));
            }
        }
    }
    this.close().await?;
    other.close().await
}

fn rows((this, other): &(Turns, Turns), callers: usize) -> (Row, Row) {
    (this.row(callers, None, None), other.row(callers, None, None))
}

fn print(what: &str, all: &(Row, Row), pairs: &[(Row, Row)], figure: impl Fn(&Row) -> f64) {
    let ratio = |(this, other): &(Row, Row)| round(figure(this) / figure(other));
    let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |index: usize| ratios.get(index).copied().unwrap_or(f64::NAN);
    println!(
        "| {} | {what} | {} | {} | {} | {} {} {} |",
        all.0.callers,
        figure(&all.0),
        figure(&all.1),
        ratio(all),
        at(0),
        at(ratios.len() / 2),
        at(ratios.len().saturating_sub(1)),
    );
}
