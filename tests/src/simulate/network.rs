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
    report::{self, Progress, rounded},
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

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    pub nodes: usize,
    pub grown_secs: f64,
    /// Nodes that had met nobody when the next ones joined.
    pub alone: usize,
    /// Of the process with all nodes.
    pub resident_mib: u64,
    pub resident_kib_per_node: u64,
    pub idle: Vec<Idle>,
    pub news: Vec<Spread>,
    pub lookups: Vec<Lookups>,
}

/// Threads for the nodes that stay, one for each core of a small machine.
const STAYING_THREADS: usize = 2;
/// Nodes that join between two lines of progress.
const TOLD_OF: usize = 100;
/// Nodes of the small network whose idle traffic is compared with the target: each has ten peers.
const SMALL_NETWORK: usize = 11;
/// Sizes for which the spread without gossip is counted.
const RECONCILING: [usize; 3] = [1_000, 100_000, 1_000_000];
/// Of a thousand records; the default store of 10,000 is a smaller part of the network these nodes stand for.
const SPARSE_RECORDS_MAX: usize = 64;
const SEED: u64 = 0xfa_2719;

/// Runs the whole life, printing what is found on the way.
///
/// # Errors
/// When nodes cannot be started or meet nobody.
pub fn run(plan: &Plan) -> Result<Section> {
    let observer = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    observer.block_on(live(plan))
}

async fn live(plan: &Plan) -> Result<Section> {
    let progress = Progress::begin();
    progress.tell(format_args!("{SMALL_NETWORK} nodes, idle"));
    let small = small_network(plan.settle, plan.watch).await?;
    progress.tell(format_args!("{} nodes that gossip", plan.gossiping));
    let news = gossiping_network(plan).await?;
    report::print_table("Seconds until a new listing is known (medians)", &news)?;
    let machines = Machines::new()?;
    let mut population = Population::new(directory_only(), SEED);
    let started = Instant::now();
    let places: Vec<&Machine> = (0..plan.nodes).map(|number| machines.of(number)).collect();
    let mut alone = 0;
    for together in places.chunks(TOLD_OF) {
        alone += population.grow(together).await?;
        let there = population.members.len();
        progress.tell(format_args!(
            "{there} of {} nodes have joined; {} MiB",
            plan.nodes,
            report::resident_mib()?
        ));
    }
    let grown_secs = rounded(started.elapsed().as_secs_f64());
    println!("\n{} nodes joined in {grown_secs} s; {alone} of them met nobody at first", plan.nodes);
    tokio::time::sleep(plan.settle).await;
    progress.tell("watching them idle");
    let idle = vec![small, traffic::idle(&population.members, plan.watch).await?];
    report::print_table("Traffic of an average idle node", &idle)?;
    let resident_mib = report::resident_mib()?;
    let resident_kib_per_node = resident_mib * 1024 / plan.nodes.max(1) as u64;
    println!("\n{resident_mib} MiB for all of them, {resident_kib_per_node} KiB each");
    let lookups = situations(plan, population, machines, &progress).await?;
    report::print_table("Look-ups of wallets that the node does not know", &lookups)?;
    Ok(Section {
        nodes: plan.nodes,
        grown_secs,
        alone,
        resident_mib,
        resident_kib_per_node,
        idle,
        news,
        lookups,
    })
}

/// Nodes as they are shipped.
fn as_shipped() -> Kind {
    Kind { gossip: true, limits: NetworkLimits::default() }
}

/// Nodes that learn of others from the directory alone and remember few, as in a network of which a node's
/// store holds a small part.
fn directory_only() -> Kind {
    Kind {
        gossip: false,
        limits: NetworkLimits { records_max: SPARSE_RECORDS_MAX, ..NetworkLimits::default() },
    }
}

/// Nodes with ten peers each, as they are shipped, watched while nobody wants anything of them.
///
/// # Errors
/// When nodes cannot be started.
pub async fn small_network(settle: Duration, watch: Duration) -> Result<Idle> {
    let machine = Machine::new(1)?;
    let mut population = Population::new(as_shipped(), SEED);
    population.grow(&[&machine; SMALL_NETWORK]).await?;
    tokio::time::sleep(settle).await;
    traffic::idle(&population.members, watch).await
}

async fn gossiping_network(plan: &Plan) -> Result<Vec<Spread>> {
    let machine = Machine::new(STAYING_THREADS)?;
    let mut population = Population::new(as_shipped(), SEED);
    population.grow(&vec![&machine; plan.gossiping]).await?;
    tokio::time::sleep(plan.settle).await;
    let measured = news::by_gossip(&mut population, plan.listings).await?;
    let modelled = RECONCILING.map(|nodes| news::by_reconciliation(nodes, plan.listings));
    Ok([measured].into_iter().chain(modelled).collect())
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
) -> Result<Vec<Lookups>> {
    progress.tell("look-ups");
    let mut found = vec![directory::look_up(&mut population, "everybody there", plan.lookups).await?];

    progress.tell("10 % of the nodes go silent");
    machines.tenth.stall()?;
    population.forget(|number| number % 10 == 5);
    found.push(directory::look_up(&mut population, "10 % gone", plan.lookups).await?);
    progress.tell("30 % of the nodes are silent");
    machines.two_tenths.stall()?;
    population.forget(|number| matches!(number % 10, 2 | 8));
    found.push(directory::look_up(&mut population, "30 % gone", plan.lookups).await?);

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
        found.push(directory::look_up(&mut population, situation, plan.lookups).await?);
    }
    Ok(found)
}
