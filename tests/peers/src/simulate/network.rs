//! The life of one network: it grows, idles, loses a third of its nodes, and is joined by liars.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use farthing_network::NetworkLimits;
use farthing_simulation::Adversary;
use farthing_tests::report::{self, Progress, Table, rounded};
use serde::Serialize;

use super::{
    directory::{self, Lookups},
    hostile::{Hostiles, Victims},
    news::{self, Spread},
    population::{Kind, Machine, Population},
    traffic::{self, Idle},
};

/// How large, and how long.
#[derive(Debug, Clone)]
pub struct Plan {
    pub nodes: usize,
    /// Nodes of another network, in which listings are gossiped.
    pub gossiping: usize,
    /// Look-ups in every situation.
    pub lookups: usize,
    /// Between the last node's joining and the first measurement.
    pub settle: Duration,
    /// How long idle traffic is watched.
    pub watch: Duration,
    /// Listings that are published to see how they spread.
    pub listings: usize,
}

/// What was found so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    pub nodes: usize,
    pub grown: Vec<Grown>,
    pub idle: Vec<Idle>,
    pub news: Vec<Spread>,
    pub lookups: Vec<Lookups>,
    pub calibration: Option<Calibration>,
}

/// Questions of a look-up while everybody is there: by these nodes, and by as many in virtual time, which are not in one place.
#[derive(Debug, Clone, Serialize)]
pub struct Calibration {
    pub nodes: usize,
    pub questions: f64,
    pub questions_in_virtual_time: f64,
    /// Of those in virtual time.
    pub apart_percent: f64,
    pub holds: bool,
}

impl Calibration {
    fn of(nodes: usize, questions: f64, questions_in_virtual_time: f64) -> Self {
        let apart = 100.0 * (questions - questions_in_virtual_time).abs() / questions_in_virtual_time;
        let (apart_percent, holds) = (rounded(apart), apart <= APART_PERCENT_MAX);
        Self { nodes, questions, questions_in_virtual_time, apart_percent, holds }
    }

    fn print_promise(&self) {
        let promise = format!(
            "look-ups among {} real nodes and in virtual time take as many questions, within {APART_PERCENT_MAX} % ({} and \
             {}, {} % apart)",
            self.nodes, self.questions, self.questions_in_virtual_time, self.apart_percent
        );
        report::print_promise(promise, self.holds);
    }
}

/// How a network came to be.
#[derive(Debug, Clone, Serialize)]
pub struct Grown {
    pub nodes: usize,
    pub gossip: bool,
    pub grown_secs: f64,
    /// Spent on processors by all of them meanwhile.
    pub processor_secs: f64,
    /// Nodes that had met nobody when the next ones joined.
    pub alone: usize,
    /// Connections that an average node had made or taken by then.
    pub connections_per_node: f64,
    /// Of the process with all nodes.
    pub resident_mib: u64,
}

/// Threads for the nodes that stay, one for each core of a small machine.
const STAYING_THREADS: usize = 2;
/// Nodes that join between two lines of progress.
const TOLD_OF: usize = 100;
/// Nodes of the small network whose idle traffic is compared with the target: each has ten peers.
pub const SMALL_NETWORK: usize = 11;
/// Sizes for which the spread without gossip is counted.
const RECONCILING: [usize; 3] = [1_000, 100_000, 1_000_000];
/// Of a thousand records: a part of all, as the default store has in the network that these nodes stand for.
const SPARSE_RECORDS_MAX: usize = 64;
const SEED: u64 = 0xfa_2719;
/// The title of what idle nodes come to.
pub const IDLE: &str = "Traffic and memory of an average idle node";
/// How far real look-ups and those in virtual time may be apart for the latter to stand for the former.
const APART_PERCENT_MAX: f64 = 10.0;
/// The smallest network that is simulated in virtual time.
const SIMULATED_MIN: usize = 100;
/// Few of them would differ by chance alone; they cost little in virtual time.
const SIMULATED_LOOKUPS_MIN: usize = 1_000;

/// Runs the whole life. What is found is printed, and given to `keep`, as soon as it is known: whoever ends a long run
/// early has what came before.
pub fn run(plan: &Plan, keep: impl FnMut(&Section) -> Result<()>) -> Result<()> {
    let observer = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    observer.block_on(live(plan, keep))
}

async fn live(plan: &Plan, mut keep: impl FnMut(&Section) -> Result<()>) -> Result<()> {
    let progress = Progress::begin();
    let mut found = Section { nodes: plan.nodes, ..Section::default() };
    progress.tell(format_args!("{SMALL_NETWORK} nodes, idle"));
    found.idle.push(as_shipped_idle(SMALL_NETWORK, plan.settle, plan.watch).await?);
    report::print_table(IDLE, &found.idle)?;
    found.idle.iter().for_each(Idle::print_promise);
    keep(&found)?;

    progress.tell(format_args!("{} nodes that gossip", plan.gossiping));
    let (grown, idle, news) = gossiping_network(plan, &progress).await?;
    report::print_table("Nodes that joined", &[&grown])?;
    report::print_table(IDLE, &[&idle])?;
    report::print_table("Seconds until a new listing is known (medians)", &news)?;
    found.grown.push(grown);
    found.idle.push(idle);
    found.news = news;
    keep(&found)?;

    progress.tell(format_args!("{} nodes without gossip", plan.nodes));
    let before_mib = report::resident_mib()?;
    let machines = Machines::new()?;
    let mut population = Population::new(directory_only(), SEED);
    let places: Vec<&Machine> = (0..plan.nodes).map(|number| machines.of(number)).collect();
    let grown = grow(&mut population, &places, &progress).await?;
    report::print_table("Nodes that joined", &[&grown])?;
    found.grown.push(grown);
    keep(&found)?;
    tokio::time::sleep(plan.settle).await;
    progress.tell("watching them idle");
    let idle = traffic::idle("without gossip", &population.members, plan.watch, before_mib).await?;
    report::print_table(IDLE, &[&idle])?;
    found.idle.push(idle);
    keep(&found)?;

    let mut table = Table::begin("Look-ups of wallets that the node does not know");
    situations(plan, population, machines, &progress, |lookups| {
        table.row(&lookups)?;
        found.lookups.push(lookups);
        keep(&found)
    })
    .await?;
    found.calibration = found.lookups.first().and_then(|lookups| calibrate(plan, lookups));
    report::print_table("Questions of a look-up", found.calibration.as_slice())?;
    found.calibration.iter().for_each(Calibration::print_promise);
    keep(&found)
}

/// Compares the look-ups of these nodes with those of the same machine in virtual time.
fn calibrate(plan: &Plan, lookups: &Lookups) -> Option<Calibration> {
    let (nodes, adversary) = (plan.nodes, Adversary::Nobody);
    let simulated = (nodes >= SIMULATED_MIN).then(|| {
        let lookups = plan.lookups.max(SIMULATED_LOOKUPS_MIN);
        farthing_simulation::run(&farthing_simulation::Plan {
            nodes,
            lookups,
            seed: 1,
            adversary,
            reconciled: false,
        })
    })?;
    Some(Calibration::of(nodes, lookups.requests, simulated.questions))
}

/// The same, of consumers: whoever wants to know how listings travel need not have a thousand records travel first.
/// They take note of listings instead of keeping them.
fn consumers() -> Kind {
    Kind { publishes: false, catalogs: false, ..Kind::as_shipped() }
}

/// Nodes that learn of others from the directory alone and remember few, as in a network of which a node's
/// store holds a small part.
fn directory_only() -> Kind {
    Kind {
        gossip: false,
        publishes: true,
        catalogs: false,
        limits: NetworkLimits { records_max: SPARSE_RECORDS_MAX, ..NetworkLimits::default() },
    }
}

/// Nodes as they are shipped, each with its catalog, watched while nobody wants anything of them.
pub async fn as_shipped_idle(nodes: usize, settle: Duration, watch: Duration) -> Result<Idle> {
    let before_mib = report::resident_mib()?;
    let machine = Machine::new(STAYING_THREADS)?;
    let mut population = Population::new(Kind::as_shipped(), SEED);
    for together in vec![&machine; nodes].chunks(TOLD_OF) {
        population.grow(together).await?;
    }
    tokio::time::sleep(settle).await;
    traffic::idle("as shipped", &population.members, watch, before_mib).await
}

async fn gossiping_network(plan: &Plan, progress: &Progress) -> Result<(Grown, Idle, Vec<Spread>)> {
    let before_mib = report::resident_mib()?;
    let machine = Machine::new(STAYING_THREADS)?;
    let mut population = Population::new(consumers(), SEED);
    let grown = grow(&mut population, &vec![&machine; plan.gossiping], progress).await?;
    tokio::time::sleep(plan.settle).await;
    let idle = traffic::idle("consumers that gossip", &population.members, plan.watch, before_mib).await?;
    let measured = news::by_gossip(&mut population, plan.listings).await?;
    let modelled = RECONCILING.map(|nodes| news::by_reconciliation(nodes, plan.listings));
    Ok((grown, idle, [measured].into_iter().chain(modelled).collect()))
}

/// Has nodes join, and tells how far that is.
async fn grow(population: &mut Population, places: &[&Machine], progress: &Progress) -> Result<Grown> {
    let (started, spent) = (Instant::now(), report::processor_time()?);
    let mut alone = 0;
    for together in places.chunks(TOLD_OF) {
        alone += population.grow(together).await?;
        let (there, all) = (population.members.len(), places.len());
        progress.tell(format_args!("{there} of {all} nodes have joined; {} MiB", report::resident_mib()?));
    }
    let connections = population.members.iter().map(|member| member.handle.counters().connections_opened);
    Ok(Grown {
        nodes: places.len(),
        gossip: population.kind.gossip,
        grown_secs: rounded(started.elapsed().as_secs_f64()),
        // What threads that have ended since spent is missing.
        processor_secs: rounded(report::processor_time()?.saturating_sub(spent).as_secs_f64()),
        alone,
        connections_per_node: rounded(
            traffic::count(connections.sum()) / traffic::count(places.len() as u64),
        ),
        resident_mib: report::resident_mib()?,
    })
}

/// Where the nodes run: most stay; a tenth and two tenths fail, spread over the order of joining.
struct Machines {
    staying: Machine,
    tenth: Machine,
    two_tenths: Machine,
}

impl Machines {
    fn new() -> Result<Self> {
        let (staying, tenth, two_tenths) =
            (Machine::new(STAYING_THREADS)?, Machine::new(1)?, Machine::new(1)?);
        Ok(Self { staying, tenth, two_tenths })
    }

    const fn of(&self, number: usize) -> &Machine {
        match number % 10 {
            5 => &self.tenth,
            2 | 8 => &self.two_tenths,
            _ => &self.staying,
        }
    }
}

/// Look-ups while everybody is there, after failures, and among liars.
async fn situations(
    plan: &Plan,
    mut population: Population,
    mut machines: Machines,
    progress: &Progress,
    mut keep: impl FnMut(Lookups) -> Result<()>,
) -> Result<()> {
    progress.tell("look-ups");
    keep(directory::look_up(&mut population, "all present", plan.lookups).await?)?;

    progress.tell("10 % of the nodes go silent");
    machines.tenth.stall()?;
    population.forget(|number| number % 10 == 5);
    keep(directory::look_up(&mut population, "10 % gone", plan.lookups).await?)?;
    progress.tell("30 % of the nodes are silent");
    machines.two_tenths.stall()?;
    population.forget(|number| matches!(number % 10, 2 | 8));
    keep(directory::look_up(&mut population, "30 % gone", plan.lookups).await?)?;

    let Machines { staying: _staying, tenth, two_tenths } = machines;
    drop((tenth, two_tenths));
    let victims: Victims = Arc::new(population.members.iter().map(|m| (m.wallet, m.key.clone())).collect());
    let mut hostiles = Hostiles::default();
    for (situation, of_ten) in [("10 % hostile", 1), ("30 % hostile", 3)] {
        while hostiles.len() * (10 - of_ten) < population.members.len() * of_ten {
            hostiles.join(&population.introducers(), &victims).await?;
        }
        progress.tell(format_args!("{situation}: {} liars have joined", hostiles.len()));
        tokio::time::sleep(plan.settle).await;
        keep(directory::look_up(&mut population, situation, plan.lookups).await?)?;
    }
    Ok(())
}

#[test]
fn a_calibration_holds_within_ten_percent_either_way() {
    let holds = |questions| Calibration::of(100, questions, 40.0).holds;
    assert!(holds(36.0) && holds(44.0));
    assert!(!holds(35.9) && !holds(44.1));
    assert_eq!(Calibration::of(100, 42.0, 40.0).apart_percent, 5.0);
}
