//! `make soak`: a network of node processes that buy from each other for an hour, while nodes are killed, servers and chain
//! endpoints fail, strangers flood and stall, owners change prices and backups are made.
//!
//! 1. `network` starts owners, consumers and a chain; the first calls open a channel for each pair.
//! 2. `load` buys, `faults` does its worst, `samples` looks at every process every few seconds.
//! 3. The load stops by itself. Open files and threads must come back to what they were before it.
//! 4. Everybody settles and leaves; `books` compares each pair call by call, and all of them with the chain.
//! 5. `flat` says what grew. `report` has all of it, also if something fails on the way.

mod books;
mod faults;
mod flat;
mod load;
mod network;
mod plan;
#[path = "../../../protocol/tests/support/random.rs"]
mod random;
mod report;
mod samples;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use farthing_tests::{market::until, report::Progress};
use tokio::time::MissedTickBehavior;

use self::{
    faults::{Faults, Happened, Moment},
    load::{Calls, Load, PATIENCE},
    network::Network,
    samples::{Counts, Samples},
};
pub use self::{plan::Plan, report::Report};

/// How long after its time a run waits for its calls and kills, on a machine that has no time for it.
const LATE_AT_MOST: Duration = Duration::from_secs(900);
/// Open files and threads that a node may have at rest beyond those before the load. Two connections to each other node come
/// to the files.
const FILES_SPARE: usize = 16;
const THREADS_SPARE: u64 = 16;

/// A run so far.
struct Run {
    network: Network,
    samples: Samples,
    /// Of each node, at rest before the load.
    before: Vec<Counts>,
    /// With the first calls of all pairs.
    calls: Calls,
    happened: Happened,
    moments: Vec<Moment>,
    seconds: f64,
}

/// Runs a whole soak. The report says what is wrong: [`Report::failures`].
pub async fn run(plan: &Plan) -> Result<Report> {
    let progress = Progress::begin();
    let seed = random::seed();
    let mut run = Run::begin(plan, &progress).await?;
    let mut differences = Vec::new();
    let ended = run.play(plan, seed, &progress, &mut differences).await;
    // A run that ended early says why, and not what it had no time to give back.
    let left_behind = if ended.is_ok() { run.left_behind(plan).await } else { Vec::new() };
    let stopped = run.network.stop().await;
    let ended_early = ended.and(stopped).err().map(|error| format!("{error:#}"));
    let mut verdicts = Vec::new();
    if plan.judges_growth {
        let of_nodes = run.samples.series.iter().flat_map(|series| flat::judge(series, run.seconds));
        verdicts = of_nodes.chain(flat::judge_times(&run.samples.totals)).collect();
    }
    Ok(Report {
        owners: plan.owners,
        consumers: plan.consumers,
        seconds: run.seconds,
        seed,
        calls: run.calls,
        happened: run.happened,
        ended_early,
        differences,
        left_behind,
        verdicts,
        totals: run.samples.totals,
        series: run.samples.series,
        moments: run.moments,
    })
}

impl Run {
    async fn begin(plan: &Plan, progress: &Progress) -> Result<Self> {
        progress.tell(format!("starting {} owners and {} consumers", plan.owners, plan.consumers));
        let mut network = Network::start(plan).await?;
        let mut calls = Calls::default();
        let gates = network.gates().await?;
        let first = gates.iter().map(load::Gate::buy_first_calls);
        for bought in futures::future::try_join_all(first).await? {
            calls.answered += bought;
        }
        drop(gates);
        progress.tell(format!("each consumer has a channel with each owner: {} calls", calls.answered));
        let mut before = Vec::new();
        for member in &mut network.members {
            let process = member.process()?;
            ensure!(process.is_some(), "{} does not run", member.name);
            before.extend(process.map(Counts::of).transpose()?);
        }
        let samples = Samples::of(&network);
        let (happened, moments) = Default::default();
        Ok(Self { network, samples, before, calls, happened, moments, seconds: 0.0 })
    }

    async fn play(
        &mut self,
        plan: &Plan,
        seed: u64,
        progress: &Progress,
        differences: &mut Vec<String>,
    ) -> Result<()> {
        let mut faults = Faults::new(seed, plan.fault_every);
        let load = Load::start(self.network.gates().await?, plan.calls_per_second)?;
        let mut ended = self.disturb(plan, &load, &mut faults, progress).await;
        if ended.is_ok() {
            ended = faults.end(&mut self.network).await;
        }
        // Whatever happened, the load ends and everything is counted.
        let calls = load.end().await;
        self.calls = Calls { answered: self.calls.answered + calls.answered, ..calls };
        self.happened = faults.happened();
        self.moments = faults.into_moments();
        ended?;
        progress.tell(format!("{calls:?}; waiting until every call is decided"));
        self.network.wait_until_ready().await?;
        books::until_decided(&self.network).await?;
        progress.tell("everybody settles and leaves; comparing the books of each pair");
        *differences = books::leave_and_compare(&self.network, &self.calls).await?;
        Ok(())
    }

    /// Looks and disturbs until the time is over, and there were as many calls and kills as are wanted.
    async fn disturb(
        &mut self,
        plan: &Plan,
        load: &Load,
        faults: &mut Faults,
        progress: &Progress,
    ) -> Result<()> {
        let began = Instant::now();
        let mut turns = tokio::time::interval(plan.sample_every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = began;
        let is_over = |load: &Load, faults: &Faults| {
            began.elapsed() >= plan.lasts
                && load.answered() >= plan.calls_least
                && faults.happened().kills >= plan.kills_least
        };
        while !is_over(load, faults) {
            turns.tick().await;
            self.seconds = began.elapsed().as_secs_f64();
            self.samples.take(&mut self.network, load, self.seconds).await?;
            faults.step(&mut self.network).await?;
            if told.elapsed() >= Duration::from_secs(60) {
                told = Instant::now();
                progress.tell(format!(
                    "{} calls answered, {} kills",
                    load.answered(),
                    faults.happened().kills
                ));
            }
            ensure!(
                began.elapsed() <= plan.lasts + LATE_AT_MOST,
                "only {} calls were answered and {} nodes killed in this time",
                load.answered(),
                faults.happened().kills
            );
        }
        Ok(())
    }

    /// What nodes still have open or run when everybody has left, and patience has ended.
    async fn left_behind(&mut self, plan: &Plan) -> Vec<String> {
        let mut found = Vec::new();
        let files_spare = FILES_SPARE + 2 * plan.nodes();
        for (member, before) in self.network.members.iter_mut().zip(&self.before) {
            let mut now = None;
            let given_back = until("what was open is closed again", PATIENCE, async || {
                let process = member.process()?;
                let counts = process.map(Counts::of).transpose()?;
                now = counts;
                Ok(counts.is_some_and(|now| {
                    now.files <= before.files + files_spare && now.threads <= before.threads + THREADS_SPARE
                }))
            })
            .await;
            if let Err(error) = given_back {
                found.push(format!(
                    "{}: {error}; before the load it was {before:?}, and now {now:?}",
                    member.name
                ));
            }
        }
        found
    }
}
