//! The life of one network: it grows, idles, loses a third of its nodes, and is joined by liars.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use farthing_network::NetworkLimits;
use serde::Serialize;

use super::{
    directory::{self, Lookups},
    hostile::{Hostiles, Victims},
    news::{self, Spread},
    population::{Kind, Machine, Population},
    report::{self, Progress, Table, rounded},
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
/// Of a thousand records; the default store of 10,000 is a smaller part of the network these nodes stand for.
const SPARSE_RECORDS_MAX: usize = 64;
const SEED: u64 = 0xfa_2719;

/// Runs the whole life. What is found is printed, and given to `keep`, as soon as it is known: whoever ends a long run
/// early has what came before.
///
/// # Errors
/// When nodes cannot be started or meet nobody, and those of `keep`.
pub fn run(plan: &Plan, keep: impl FnMut(&Section) -> Result<()>) -> Result<()> {
    let observer = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    observer.block_on(live(plan, keep))
}

async fn live(plan: &Plan, mut keep: impl FnMut(&Section) -> Result<()>) -> Result<()> {
    let progress = Progress::begin();
    let mut found = Section { nodes: plan.nodes, ..Section::default() };
    progress.tell(format_args!("{SMALL_NETWORK} nodes, idle"));
    found.idle.push(as_shipped_idle(SMALL_NETWORK, plan.settle, plan.watch).await?);
    report::print_table("Traffic of an average idle node", &found.idle)?;
    keep(&found)?;

    progress.tell(format_args!("{} nodes that gossip", plan.gossiping));
    let (grown, idle, news) = gossiping_network(plan, &progress).await?;
    report::print_table("Nodes that joined", &[&grown])?;
    report::print_table("Traffic of an average idle node", &[&idle])?;
    report::print_table("Seconds until a new listing is known (medians)", &news)?;
    found.grown.push(grown);
    found.idle.push(idle);
    found.news = news;
    keep(&found)?;

    progress.tell(format_args!("{} nodes without gossip", plan.nodes));
    let machines = Machines::new()?;
    let mut population = Population::new(directory_only(), SEED);
    let places: Vec<&Machine> = (0..plan.nodes).map(|number| machines.of(number)).collect();
    let grown = grow(&mut population, &places, &progress).await?;
    report::print_table("Nodes that joined", &[&grown])?;
    found.grown.push(grown);
    keep(&found)?;
    tokio::time::sleep(plan.settle).await;
    progress.tell("watching them idle");
    let idle = traffic::idle("without gossip", &population.members, plan.watch).await?;
    report::print_table("Traffic of an average idle node", &[&idle])?;
    found.idle.push(idle);
    keep(&found)?;

    let mut table = Table::begin("Look-ups of wallets that the node does not know");
    situations(plan, population, machines, &progress, |lookups| {
        table.row(&lookups)?;
        found.lookups.push(lookups);
        keep(&found)
    })
    .await
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
///
/// # Errors
/// When nodes cannot be started.
pub async fn as_shipped_idle(nodes: usize, settle: Duration, watch: Duration) -> Result<Idle> {
    let machine = Machine::new(STAYING_THREADS)?;
    let mut population = Population::new(Kind::as_shipped(), SEED);
    for together in vec![&machine; nodes].chunks(TOLD_OF) {
        population.grow(together).await?;
    }
    tokio::time::sleep(settle).await;
    traffic::idle("as shipped", &population.members, watch).await
}

async fn gossiping_network(plan: &Plan, progress: &Progress) -> Result<(Grown, Idle, Vec<Spread>)> {
    let machine = Machine::new(STAYING_THREADS)?;
    let mut population = Population::new(consumers(), SEED);
    let grown = grow(&mut population, &vec![&machine; plan.gossiping], progress).await?;
    tokio::time::sleep(plan.settle).await;
    let idle = traffic::idle("consumers that gossip", &population.members, plan.watch).await?;
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
    keep(directory::look_up(&mut population, "everybody there", plan.lookups).await?)?;

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
