//! How long a new listing is on its way to everybody: measured, with gossip and by sessions alone; and counted, for
//! networks larger than can be run.

use std::time::{Duration, Instant};

use anyhow::Result;
use farthing_protocol::{Listing, ServiceNonce, Signed};
use farthing_simulation::Dice;
use farthing_tests::report::{quantile, rounded};
use serde::Serialize;

use super::{
    arrivals::hash,
    network_name, now_secs,
    population::{Kind, Machine, Population},
    traffic::count,
};

/// A node reconciles with one random peer this often (see `network.md`).
const RECONCILED_EVERY_SECS: f64 = 300.0;
/// News that has not reached everybody by then has got lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same without gossip: the session of every five minutes is what brings the last ones.
const PATIENCE_WITHOUT_GOSSIP: Duration = Duration::from_secs(900);
/// A look at who has heard, between which the simulation goes on.
const LOOK: Duration = Duration::from_millis(100);

/// How news spread, over several listings.
#[derive(Debug, Clone, Serialize)]
pub struct Spread {
    pub way: String,
    pub nodes: usize,
    pub listings: usize,
    /// Nodes that were reached, in percent.
    pub reached_percent: f64,
    /// None when no listing reached so many.
    pub half_of_nodes_secs: Option<f64>,
    pub ninety_nine_percent_secs: Option<f64>,
    pub all_secs: Option<f64>,
}

/// Publishes `listings` from random nodes, one after the other, and waits for each. The times are the medians
/// over listings.
pub async fn by_gossip(population: &mut Population, listings: usize) -> Result<Spread> {
    measured("gossip, measured", population, listings, PATIENCE).await
}

/// The same among nodes of which each keeps its catalog and compares it with others, as the node does. Without gossip
/// these comparisons are all there is.
pub async fn into_catalogs(nodes: usize, gossip: bool, listings: usize, settle: Duration) -> Result<Spread> {
    let machine = Machine::new(2)?;
    let mut population = Population::new(Kind { gossip, ..Kind::as_shipped() }, nodes as u64);
    population.grow(&vec![&machine; nodes]).await?;
    tokio::time::sleep(settle).await;
    let (way, patience) = match gossip {
        true => ("into catalogs, with gossip", PATIENCE),
        false => ("into catalogs, without gossip", PATIENCE_WITHOUT_GOSSIP),
    };
    measured(way, &mut population, listings, patience).await
}

async fn measured(
    way: &str,
    population: &mut Population,
    listings: usize,
    patience: Duration,
) -> Result<Spread> {
    let others = population.members.len() - 1;
    let (mut reached, mut times) = (0, [Vec::new(), Vec::new(), Vec::new()]);
    for number in 0..listings {
        let index = population.dice.index(population.members.len());
        let teller = &population.members[index];
        let listing = Signed::sign(&listing(teller.wallet, number), &teller.key)?;
        let started = Instant::now();
        match &teller.holding {
            Some(holding) => holding.publish(&listing).await?,
            None => {
                anyhow::ensure!(teller.handle.gossip_listing(&listing).await, "a node had nobody to tell");
            }
        }
        let content = hash(&listing);
        while population.arrivals.of(content).len() < others && started.elapsed() < patience {
            tokio::time::sleep(LOOK).await;
        }
        let arrived = population.arrivals.of(content);
        reached += arrived.len().min(others);
        for (times, percent) in times.iter_mut().zip([50, 99, 100]) {
            if let Some(last) = arrived.get((others * percent).div_ceil(100).saturating_sub(1)) {
                times.push(last.duration_since(started));
            }
        }
    }
    let [half, ninety_nine, all] = times.map(median);
    Ok(Spread {
        way: way.to_owned(),
        nodes: population.members.len(),
        listings,
        reached_percent: rounded(100.0 * count(reached as u64) / count((listings * others) as u64)),
        half_of_nodes_secs: half,
        ninety_nine_percent_secs: ninety_nine,
        all_secs: all,
    })
}

/// Nobody gossips; every node reconciles with a random node every five minutes, at a moment of its own, after
/// which both have what either had. This counts sessions and models nothing else: a session takes no time, and
/// whom a node meets is any node, not one of its neighbours.
pub fn by_reconciliation(nodes: usize, listings: usize) -> Spread {
    let mut dice = Dice::new(nodes as u64);
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..listings {
        for (times, time) in times.iter_mut().zip(reconcile(nodes, &mut dice)) {
            times.push(Duration::from_secs_f64(time));
        }
    }
    let [half, ninety_nine, all] = times.map(median);
    Spread {
        way: "reconciliation alone, modelled".to_owned(),
        nodes,
        listings,
        reached_percent: 100.0,
        half_of_nodes_secs: half,
        ninety_nine_percent_secs: ninety_nine,
        all_secs: all,
    }
}

fn median(mut times: Vec<Duration>) -> Option<f64> {
    times.sort();
    quantile(&times, 50).map(|time| rounded(time.as_secs_f64()))
}

/// Seconds until 50, 99 and 100 percent of the nodes have it.
fn reconcile(nodes: usize, dice: &mut Dice) -> [f64; 3] {
    const MOMENTS: usize = 1 << 20;
    let mut moments: Vec<(usize, usize)> = (0..nodes).map(|node| (dice.index(MOMENTS), node)).collect();
    moments.sort_unstable();
    let mut has = vec![false; nodes];
    has[dice.index(nodes)] = true;
    let (mut having, mut reached) = (1, Vec::new());
    for period in 0_u64.. {
        for &(moment, node) in &moments {
            let peer = dice.index(nodes);
            if has[node] != has[peer] {
                (has[node], has[peer]) = (true, true);
                having += 1;
            }
            let periods = count(period) + count(moment as u64) / count(MOMENTS as u64);
            while let Some(percent) = [50, 99, 100].get(reached.len())
                && having * 100 >= nodes * percent
            {
                reached.push(periods * RECONCILED_EVERY_SECS);
            }
        }
        if let [half, ninety_nine, all] = reached[..] {
            return [half, ninety_nine, all];
        }
    }
    [f64::NAN; 3]
}

fn listing(owner: farthing_protocol::Address, number: usize) -> Listing {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    let nonce = ServiceNonce::from_bytes(nonce);
    Listing {
        name: format!("Simulated service {number}"),
        summary: "What a simulated node sells".to_owned(),
        category: "simulation".to_owned(),
        tags: vec!["simulation".to_owned()],
        operations_count: 1,
        details_bytes: 1,
        ..Listing::first(network_name().as_str(), owner, nonce, now_secs())
    }
}
