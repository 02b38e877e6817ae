//! What a soak has found: a table for people, JSON for programs, and in words what is wrong.

use anyhow::Result;
use farthing_tests::report::print_table;
use serde::Serialize;

use super::{
    faults::{Happened, Moment},
    flat::Verdict,
    load::Calls,
    samples::{Series, Total},
};

/// The whole run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub owners: usize,
    pub consumers: usize,
    /// Of the load.
    pub seconds: f64,
    /// It repeats the order of what happened.
    pub seed: u64,
    pub calls: Calls,
    pub happened: Happened,
    /// The run ended before its time, or somebody could not leave.
    pub ended_early: Option<String>,
    /// Between the books of two nodes, within one, or with the chain.
    pub differences: Vec<String>,
    /// More open files or threads at rest than before the load.
    pub left_behind: Vec<String>,
    pub verdicts: Vec<Verdict>,
    pub totals: Vec<Total>,
    /// Only in the JSON: every look at every node.
    pub series: Vec<Series>,
    /// Only in the JSON: what happened when, to be laid beside the looks.
    pub moments: Vec<Moment>,
}

/// A node as the table shows it, at the first look and at the last.
#[derive(Debug, Serialize)]
struct Row {
    node: String,
    restarts: u32,
    memory_mib: String,
    files: String,
    threads: String,
    disk_mib: String,
    rows: f64,
    judged: &'static str,
}

impl Report {
    /// Every reason for which the run has failed, a line each or more.
    pub fn failures(&self) -> Vec<String> {
        let growing = self.verdicts.iter().filter(|verdict| !verdict.is_flat).map(ToString::to_string);
        let found = self.ended_early.iter().chain(&self.differences).chain(&self.left_behind).cloned();
        found.chain(growing).collect()
    }

    /// Prints it for people.
    pub fn print(&self) -> Result<()> {
        print_table("Each node, at the first look and at the last", &self.rows())?;
        let every_tenth = self.totals.len().div_ceil(10).max(1);
        let shown: Vec<&Total> = self.totals.iter().step_by(every_tenth).collect();
        print_table("All nodes together", &shown)?;
        let Calls { answered, free, repeated, open } = self.calls;
        println!(
            "\n  {:.0} s of load: {answered} calls answered, {free} told to be free, {repeated} times asked again",
            self.seconds
        );
        println!("  for the same call, {open} open at the end. What happened: {:?}", self.happened);
        println!("  FARTHING_TEST_SEED={} repeats the order of what happened.\n", self.seed);
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let row = |series: &Series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            let is_judged = self.verdicts.iter().any(|verdict| verdict.of == series.name);
            Some(Row {
                node: series.name.clone(),
                restarts: last.life,
                memory_mib: both(first.memory_kib / 1024.0, last.memory_kib / 1024.0),
                files: both(first.files, last.files),
                threads: both(first.threads, last.threads),
                disk_mib: both(first.disk_kib / 1024.0, last.disk_kib / 1024.0),
                rows: last.rows,
                judged: if is_judged { "yes" } else { "no" },
            })
        };
        self.series.iter().filter_map(row).collect()
    }
}

fn both(first: f64, last: f64) -> String {
    format!("{first:.0} → {last:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            owners: 1,
            consumers: 1,
            seconds: 1.0,
            seed: 1,
            calls: Calls::default(),
            happened: Happened::default(),
            ended_early: None,
            differences: Vec::new(),
            left_behind: Vec::new(),
            verdicts: Vec::new(),
            totals: Vec::new(),
            series: Vec::new(),
            moments: Vec::new(),
        }
    }

    #[test]
    fn a_run_fails_for_each_reason_and_names_it() {
        let verdict = |is_flat| Verdict {
            of: "owner-1".to_owned(),
            figure: "threads",
            from: 10.0,
            to: 90.0,
            may_rise: 6.0,
            is_flat,
        };
        let nothing = Report { verdicts: vec![verdict(true)], ..report() };
        assert_eq!(nothing.failures(), Vec::<String>::new());
        let everything = Report {
            ended_early: Some("owner-1 has ended by itself".to_owned()),
            differences: vec!["X1: call a".to_owned()],
            left_behind: vec!["consumer-1: files".to_owned()],
            verdicts: vec![verdict(true), verdict(false)],
            ..report()
        };
        let growing = "owner-1: threads rose by 80, from 10 to 90, and may rise by 6";
        let expected = ["owner-1 has ended by itself", "X1: call a", "consumer-1: files", growing];
        assert_eq!(everything.failures(), expected);
    }
}
