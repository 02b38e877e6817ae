//! Large networks in virtual time: the directory's own machine (`farthing-directory`), for each of thousands of nodes, over a
//! network that is made of a heap of events and a seed.
//!
//! Modelled are distances (a round trip takes 82 ms in the middle), the round trips of handshakes, loss, nodes that come and
//! go, limits on handshakes, and [`Adversary`]. Not modelled are processors, bandwidth, and signatures, which nobody can
//! forge here.

mod adversary;
mod meeting;
mod people;
mod promise;
mod world;

use std::time::Instant;

use farthing_directory::{CommandId, Input};
use serde::Serialize;

pub use self::adversary::Adversary;
use self::{
    adversary::{Lies, ground},
    people::Person,
    world::{Micros, World},
};
pub use farthing_directory::Dice;

/// The share of nodes that the adversary has, in a thousand.
const SHARE_PERMILLE: u64 = 300;
/// Wallets that are looked for; each so many times.
const SEARCHES_OF_A_WALLET: usize = 10;
/// Wallets that twenty ids are ground around.
const VICTIMS: usize = 5;
/// Of all nodes, so many leave in an hour and as many come.
const CHURN_PER_HOUR: u64 = 1;
const SECOND: Micros = 1_000_000;
/// Puts and look-ups begin so far apart.
const APART: Micros = 20_000;

/// One simulation.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Look-ups.
    pub lookups: usize,
    /// The same one gives the same result.
    pub seed: u64,
    /// The trouble.
    pub adversary: Adversary,
    /// Records come by reconciliation as well, so that everybody holds them before they are looked for.
    pub reconciled: bool,
}

impl Plan {
    /// Lists what a table has: each adversary, or the one of this number from 1 on; what no search survives, also with records
    /// that are reconciled.
    pub fn table(nodes: usize, lookups: usize, seed: u64, only: Option<usize>) -> Vec<Self> {
        let chosen =
            Adversary::ALL.into_iter().enumerate().filter(|(n, _)| only.is_none_or(|only| only == n + 1));
        let rows = |(_, adversary): (usize, Adversary)| {
            let told = if adversary.must_be_survived() { &[false][..] } else { &[false, true] };
            told.iter().map(move |reconciled| Self {
                nodes,
                lookups,
                seed,
                adversary,
                reconciled: *reconciled,
            })
        };
        chosen.flat_map(rows).collect()
    }
}

/// What came of a [`Plan`].
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The adversary, in words.
    pub situation: String,
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Look-ups.
    pub lookups: usize,
    /// The newest record was found, in percent of the look-ups.
    pub found_percent: f64,
    /// An older one was found, and none.
    pub old: usize,
    /// See `old`.
    pub not_found: usize,
    /// Virtual time until the newest record was told.
    pub p50_ms: u64,
    /// See `p50_ms`.
    pub p99_ms: u64,
    /// Questions of a look-up until it ended, of those that asked anybody: real nodes, with which these are compared, look for
    /// what they do not hold.
    pub questions: f64,
    /// Peers in a table.
    pub peers: f64,
    /// Real time of the simulation.
    pub took_secs: f64,
}

/// Simulates.
///
/// # Panics
/// When there are fewer than a hundred nodes.
pub fn run(plan: &Plan) -> Found {
    assert!(plan.nodes >= 100, "too few nodes to look for anybody");
    let began = Instant::now();
    let mut world = populated(plan);
    let wallets = wallets(plan, &mut world);
    let newest = publish(plan, &mut world, &wallets);
    let searches = search(plan, &mut world, &wallets, newest);
    summed_up(plan, &world, &searches, newest, began)
}

/// A world whose nodes know each other. The last ones are not there yet; before them are the ground ones.
fn populated(plan: &Plan) -> World {
    let mut dice = Dice::new(plan.seed);
    let coming = plan.nodes / 50;
    let number = |n: usize| u32::try_from(n).expect("fewer than four billion nodes");
    let mut people: Vec<Person> =
        (0..plan.nodes + coming).map(|n| Person::new(number(n), &mut dice)).collect();
    let first_ground = people.len();
    if plan.adversary == Adversary::Ground {
        for victim in 0..VICTIMS {
            let name = people[victim].record.clone();
            let first = number(people.len());
            people.extend(ground(&name, &people[..first_ground], first, &mut dice));
        }
    }
    let is_coming = |n: usize| (plan.nodes..first_ground).contains(&n);
    let mut world = World::new(people, |n| !is_coming(n), dice);
    for n in 0..world.nodes.len() {
        let is_one = match plan.adversary {
            Adversary::Nobody => false,
            Adversary::Ground => n >= first_ground,
            _ => !is_coming(n) && world.dice.happens(SHARE_PERMILLE),
        };
        world.nodes[n].is_liar = is_one;
    }
    meeting::meet(&mut world, plan.adversary == Adversary::First);
    let liars = world.nodes.iter().filter(|node| node.is_liar);
    let liars = liars.map(|node| node.person.contact.clone()).collect();
    world.lies = Lies::new(plan.adversary, liars, plan.nodes, &mut world.dice);
    world
}

/// The wallets that are looked for: of honest nodes.
fn wallets(plan: &Plan, world: &mut World) -> Vec<usize> {
    if plan.adversary == Adversary::Ground {
        return (0..VICTIMS).collect();
    }
    let count = (plan.lookups / SEARCHES_OF_A_WALLET).max(1);
    (0..count).map(|_| honest(world, plan.nodes)).collect()
}

fn honest(world: &mut World, nodes: usize) -> usize {
    loop {
        let node = world.dice.index(nodes);
        if world.nodes[node].is_there && !world.nodes[node].is_liar {
            return node;
        }
    }
}

/// Puts the wallets' records into the directory, and lets the adversary turn; returns the number of the newest.
fn publish(plan: &Plan, world: &mut World, wallets: &[usize]) -> u64 {
    let liars: Vec<usize> = (0..world.nodes.len()).filter(|n| world.nodes[*n].is_liar).collect();
    let set = |world: &mut World, is_liar: bool| {
        liars.iter().for_each(|liar| world.nodes[*liar].is_liar = is_liar);
    };
    let is_old = plan.adversary == Adversary::Old;
    if is_old || plan.adversary.turns_after_puts() {
        set(world, false);
    }
    put_all(world, wallets, 1);
    set(world, true);
    if plan.adversary == Adversary::Gone {
        liars.iter().for_each(|liar| world.leave(*liar));
    }
    if is_old {
        put_all(world, wallets, 2);
    }
    1 + u64::from(is_old)
}

fn put_all(world: &mut World, wallets: &[usize], seq: u64) {
    for n in 0..wallets.len() {
        world.plan(n as u64 * APART, n);
    }
    let end = world.now + wallets.len() as u64 * APART + 20 * SECOND;
    world.run_until(end, |world, n| {
        let record = world.record_of(wallets[n], seq);
        world.input(wallets[n], Input::Put(CommandId(0), record));
    });
    world.told.clear();
}

/// A look-up: when it began.
struct Search {
    id: CommandId,
    began: Micros,
}

fn search(plan: &Plan, world: &mut World, wallets: &[usize], newest: u64) -> Vec<Search> {
    let count = plan.lookups;
    let length = count as u64 * APART;
    (0..count).for_each(|n| world.plan(n as u64 * APART, n));
    let changes = usize::try_from(plan.nodes as u64 * CHURN_PER_HOUR * length / (3600 * SECOND)).unwrap_or(0);
    let changes = changes.clamp(2, plan.nodes / 50);
    (0..changes).for_each(|n| world.plan(n as u64 * length / changes as u64, count + n));
    let mut searches = Vec::new();
    let end = world.now + length + 10 * SECOND;
    world.run_until(end, |world, n| {
        if n >= count {
            return churn(world, plan, wallets, plan.nodes + n - count);
        }
        let wallet = wallets[n % wallets.len()];
        let name = world.nodes[wallet].person.record.clone();
        let searcher = loop {
            let node = honest(world, plan.nodes);
            if node != wallet {
                break node;
            }
        };
        if plan.reconciled {
            let (source, record) = (world.nodes[wallet].person.key(), world.record_of(wallet, newest));
            world.input(searcher, Input::Told(source, record));
        }
        let id = CommandId(n as u64 + 1);
        searches.push(Search { id, began: world.now });
        world.input(searcher, Input::Find(id, name));
    });
    searches
}

/// Somebody leaves, and somebody new comes by a node that is there.
fn churn(world: &mut World, plan: &Plan, wallets: &[usize], newcomer: usize) {
    let gone = honest(world, plan.nodes);
    if !wallets.contains(&gone) {
        world.leave(gone);
    }
    let introducer = honest(world, plan.nodes);
    world.nodes[newcomer].is_there = true;
    world.connect(newcomer, introducer);
}

fn summed_up(plan: &Plan, world: &World, searches: &[Search], newest: u64, began: Instant) -> Found {
    let (mut times, mut old, mut questions) = (Vec::new(), 0, Vec::new());
    for search in searches {
        let Some(told) = world.told.get(&search.id) else { continue };
        questions.extend(told.done.map(|(_, questions)| questions));
        match told.found.iter().find(|(_, seq)| *seq == newest) {
            Some((at, _)) => times.push((at - search.began) / 1000),
            None => old += usize::from(!told.found.is_empty()),
        }
    }
    times.sort_unstable();
    let quantile = |percent: usize| {
        times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    let peers: usize = world.nodes[..plan.nodes].iter().map(|node| node.directory.peers()).sum();
    let on = if plan.reconciled { ", records reconciled" } else { "" };
    Found {
        situation: format!("{}{on}", plan.adversary.words()),
        nodes: plan.nodes,
        lookups: searches.len(),
        found_percent: ratio(100 * times.len() as u64, searches.len() as u64),
        old,
        not_found: searches.len() - times.len() - old,
        p50_ms: quantile(50),
        p99_ms: quantile(99),
        questions: mean_of_asked(&questions),
        peers: ratio(peers as u64, plan.nodes as u64),
        took_secs: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
    }
}

/// Leaves out what the node held itself and told without a question.
fn mean_of_asked(questions: &[u32]) -> f64 {
    let asked = questions.iter().filter(|questions| **questions > 0).count();
    ratio(questions.iter().copied().map(u64::from).sum(), asked as u64)
}

/// With two digits after the point.
fn ratio(part: u64, whole: u64) -> f64 {
    let hundredths = 100 * part / whole.max(1);
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_that_knows_one_node_comes_to_know_as_many_as_others_and_is_found() {
        let adversary = Adversary::Nobody;
        let plan = Plan { nodes: 1000, lookups: 1, seed: 1, adversary, reconciled: false };
        let mut world = populated(&plan);
        let newcomer = plan.nodes;
        world.nodes[newcomer].is_there = true;
        world.connect(newcomer, 0);
        world.run_until(30 * SECOND, |_, _| {});
        let known = |node: usize| world.nodes[node].directory.peers();
        assert!(10 * known(newcomer) > 9 * known(1), "{} and {}", known(newcomer), known(1));

        put_all(&mut world, &[newcomer], 1);
        let name = world.nodes[newcomer].person.record.clone();
        world.input(7, Input::Find(CommandId(1), name));
        world.run_until(world.now + 5 * SECOND, |_, _| {});
        assert_eq!(world.told[&CommandId(1)].found.iter().map(|(_, seq)| *seq).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_a_node_holds_itself_says_nothing_of_how_many_questions_a_look_up_takes() {
        assert_eq!(mean_of_asked(&[0, 40, 0, 44]), 42.0);
        assert_eq!(mean_of_asked(&[0, 0]), 0.0);
    }

    #[test]
    fn dead_connections_and_denied_dials_leave_nothing_behind() {
        let adversary = Adversary::Gone;
        let plan = Plan { nodes: 300, lookups: 100, seed: 1, adversary, reconciled: false };
        let mut world = populated(&plan);
        let wallets = wallets(&plan, &mut world);
        let newest = publish(&plan, &mut world, &wallets);
        let searches = search(&plan, &mut world, &wallets, newest);
        assert!(searches.iter().all(|search| world.told[&search.id].done.is_some()), "each look-up ends");
        world.run_until(world.now + 60 * SECOND, |_, _| {});
        assert!(world.is_idle(), "nothing goes on for ever");
    }
}
