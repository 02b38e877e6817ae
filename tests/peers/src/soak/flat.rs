//! Flat, or growing: the rule of a soak. Pure.
//!
//! 1. A node is judged by its longest life between two restarts, if that is at least half of the run.
//! 2. The first third of this life is warm-up. The straight line of the least squares through the rest is its trend.
//! 3. From its beginning to its end, the trend may rise by a part of its beginning and by what is allowed beside that: each
//!    limit says how much, and for what.

use std::fmt;

use serde::Serialize;

use super::samples::{Point, Series, Total};

/// With fewer points a line says nothing.
const POINTS_LEAST: usize = 12;
/// Memory may rise by this part: an allocator does not give everything back.
const MEMORY_RATIO: f64 = 0.2;
const MEMORY_BESIDE_KIB: f64 = 8.0 * 1024.0;
/// What the databases of a node keep of their files in memory: 32 MiB of the ledger, and 5 of the catalog. While the data
/// grows, the memory may grow with it up to this.
const CACHES_KIB: f64 = 40.0 * 1024.0;
const FILES_RATIO: f64 = 0.2;
const FILES_BESIDE: f64 = 16.0;
const THREADS_RATIO: f64 = 0.2;
const THREADS_BESIDE: f64 = 4.0;
/// A call in the ledger, with its answer and its places in the indexes.
const ROW_KIB: f64 = 8.0;
/// Logs, and what a database takes at once.
const DISK_BESIDE_KIB: f64 = 16.0 * 1024.0;
/// The median of the calls' times may double: other work on the machine doubles it as well.
const TIME_RATIO: f64 = 1.0;
const TIME_BESIDE_MS: f64 = 5.0;

/// A straight line, by its values at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trend {
    from: f64,
    to: f64,
}

impl Trend {
    /// The line with the least squares through pairs of second and value; `None` if there are too few.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let (first, last) = (points.first()?.0, points.last()?.0);
        if points.len() < POINTS_LEAST || last <= first {
            return None;
        }
        let count = points.len() as f64;
        let mean_at = points.iter().map(|(at, _)| at).sum::<f64>() / count;
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / count;
        let covariance: f64 = points.iter().map(|(at, value)| (at - mean_at) * (value - mean)).sum();
        let variance: f64 = points.iter().map(|(at, _)| (at - mean_at).powi(2)).sum();
        let slope = covariance / variance;
        let at = |second: f64| (mean + slope * (second - mean_at)).max(0.0);
        Some(Self { from: at(first), to: at(last) })
    }

    fn risen(self) -> f64 {
        (self.to - self.from).max(0.0)
    }

    fn judged(self, of: &str, figure: &'static str, may_rise: f64) -> Verdict {
        let is_flat = self.risen() <= may_rise;
        Verdict { of: of.to_owned(), figure, from: self.from, to: self.to, may_rise, is_flat }
    }
}

/// Whether one figure of one node is flat.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// A node, or the whole network.
    pub of: String,
    pub figure: &'static str,
    /// Both ends of the trend after the warm-up.
    pub from: f64,
    pub to: f64,
    pub may_rise: f64,
    pub is_flat: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, figure, from, to, may_rise, .. } = self;
        let risen = to - from;
        write!(
            f,
            "{of}: {figure} rose by {risen:.0}, from {from:.0} to {to:.0}, and may rise by {may_rise:.0}"
        )
    }
}

/// Judges what one node takes; nothing if it did not live long enough.
pub fn judge(series: &Series, run_secs: f64) -> Vec<Verdict> {
    node(series, run_secs).unwrap_or_default()
}

fn node(series: &Series, run_secs: f64) -> Option<Vec<Verdict>> {
    let lives = series.points.chunk_by(|one, next| one.life == next.life);
    let life = lives.max_by(|one, other| seconds(one).total_cmp(&seconds(other)))?;
    if seconds(life) * 2.0 < run_secs {
        return None;
    }
    let warm_at = life.first()?.at_secs + seconds(life) / 3.0;
    let warm: Vec<&Point> = life.iter().filter(|point| point.at_secs >= warm_at).collect();
    let trend = |value: fn(&Point) -> f64| {
        let pairs: Vec<(f64, f64)> = warm.iter().map(|point| (point.at_secs, value(point))).collect();
        Trend::of(&pairs)
    };
    let memory = trend(|point| point.memory_kib)?;
    let files = trend(|point| point.files)?;
    let threads = trend(|point| point.threads)?;
    let disk = trend(|point| point.disk_kib)?;
    let rows = trend(|point| point.rows)?.risen();
    let cached = disk.risen().min(CACHES_KIB);
    let of = &series.name;
    Some(vec![
        memory.judged(of, "memory in KiB", memory.from * MEMORY_RATIO + MEMORY_BESIDE_KIB + cached),
        files.judged(of, "open files", files.from * FILES_RATIO + FILES_BESIDE),
        threads.judged(of, "threads", threads.from * THREADS_RATIO + THREADS_BESIDE),
        disk.judged(of, "disk in KiB", rows * ROW_KIB + DISK_BESIDE_KIB),
    ])
}

/// Judges the median time of answered calls, of the whole network after the first third of the run.
pub fn judge_times(totals: &[Total]) -> Option<Verdict> {
    let warm_at = totals.last()?.at_secs / 3.0;
    let warm = totals.iter().filter(|total| total.at_secs >= warm_at && total.calls.calls > 0);
    let times: Vec<(f64, f64)> = warm.map(|total| (total.at_secs, total.calls.p50_ms)).collect();
    let trend = Trend::of(&times)?;
    Some(trend.judged("the network", "median time in ms", trend.from * TIME_RATIO + TIME_BESIDE_MS))
}

fn seconds(life: &[Point]) -> f64 {
    match life {
        [first, .., last] => last.at_secs - first.at_secs,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::load::Window;

    const RUN_SECS: f64 = 900.0;

    /// A quarter of an hour of one node: a cache that fills in the first minutes, noise, and rows that cost 2 KiB each.
    fn steady() -> Series {
        let point = |number: u32| {
            let at_secs = f64::from(number) * 5.0;
            let noise = f64::from(number * 7 % 5);
            Point {
                at_secs,
                life: 0,
                memory_kib: 45_000.0 + at_secs.min(300.0) * 150.0 + noise * 300.0,
                files: 80.0 + noise,
                threads: 12.0 + noise,
                disk_kib: 20_000.0 + at_secs * 6.0,
                rows: at_secs * 3.0,
            }
        };
        Series { name: "owner-1".to_owned(), points: (0..180).map(point).collect() }
    }

    fn growing(grow: impl Fn(&mut Point)) -> Vec<String> {
        let mut series = steady();
        series.points.iter_mut().for_each(grow);
        let verdicts = judge(&series, RUN_SECS);
        assert_eq!(verdicts.len(), 4, "{verdicts:?}");
        verdicts.into_iter().filter(|verdict| !verdict.is_flat).map(|verdict| verdict.to_string()).collect()
    }

    #[test]
    fn a_cache_that_fills_rows_on_disk_and_noise_are_flat() {
        assert_eq!(growing(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_figure_that_goes_on_rising_is_named_with_its_node() {
        type Growth = fn(&mut Point);
        let grown: [(&str, Growth); 4] = [
            ("memory in KiB", |point| point.memory_kib += point.at_secs * 70.0),
            ("open files", |point| point.files += point.at_secs / 15.0),
            ("threads", |point| point.threads += point.at_secs / 60.0),
            ("disk in KiB", |point| point.disk_kib += point.at_secs * 60.0),
        ];
        for (figure, grow) in grown {
            let found = growing(grow);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(&format!("owner-1: {figure} rose by ")), "{found:?}");
        }
    }

    #[test]
    fn memory_may_rise_with_the_ledger_as_far_as_it_is_cached() {
        let found = |disk: f64, rows: f64, memory: f64| {
            growing(move |point| {
                point.disk_kib += point.at_secs * disk;
                point.rows += point.at_secs * rows;
                point.memory_kib += point.at_secs * memory;
            })
        };
        assert_eq!(found(0.0, 0.0, 60.0).len(), 1, "no ledger explains it");
        assert_eq!(found(20.0, 10.0, 60.0).len(), 0);
        assert_eq!(found(20.0, 10.0, 120.0).len(), 1, "more than the ledger");
        assert_eq!(found(200.0, 100.0, 150.0).len(), 1, "more than the caches");
    }

    #[test]
    fn a_node_that_never_lived_for_half_of_the_run_is_not_judged() {
        let mut series = steady();
        series.points.iter_mut().skip(80).for_each(|point| point.life = 1);
        assert_eq!(judge(&series, RUN_SECS).len(), 4, "100 of 180 points are one life");
        series.points.iter_mut().skip(120).for_each(|point| point.life = 2);
        assert!(judge(&series, RUN_SECS).is_empty());
    }

    #[test]
    fn times_may_double_after_the_warm_up_and_windows_without_a_call_say_nothing() {
        let judged = |p50_ms: fn(f64) -> f64| {
            let total = |number: u32| {
                let at_secs = f64::from(number) * 5.0;
                let calls = u64::from(number % 7);
                let p50_ms = if calls > 0 { p50_ms(at_secs) } else { 0.0 };
                let calls = Window { calls, p50_ms, p99_ms: 900.0 };
                Total { at_secs, up: 4, memory_mib: 1.0, files: 1.0, threads: 1.0, disk_mib: 1.0, calls }
            };
            judge_times(&(0..180).map(total).collect::<Vec<_>>()).unwrap()
        };
        assert!(judged(|_| 20.0).is_flat);
        assert!(judged(|at| if at < 250.0 { 2.0 } else { 20.0 }).is_flat, "warm-up");
        assert!(judged(|at| 20.0 + at / 60.0).is_flat);
        let slower = judged(|at| 20.0 + at / 10.0);
        assert!(!slower.is_flat && slower.to_string().starts_with("the network: median time"), "{slower}");
    }
}
