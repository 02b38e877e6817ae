//! The simulations of `make simulate`, small: rates are asserted, times are not.

mod shards;

use farthing_network::NetworkLimits;
use farthing_peers::simulate::{
    catalog,
    directory::{self, Lookups},
    hostile::{Hostiles, Victims},
    news,
    population::{Kind, Machine, Population},
    rest,
};

const NODES: usize = 30;
const LOOKUPS: usize = 40;

/// Nodes that remember few records, so that there is something to look for.
async fn forgetful(machines: &[&Machine]) -> Population {
    let limits = NetworkLimits { records_max: 6, ..NetworkLimits::default() };
    let mut population = Population::new(Kind { gossip: false, publishes: true, catalogs: false, limits }, 1);
    assert_eq!(population.grow(machines).await.unwrap(), 0);
    population
}

/// Looks up again what was not found, as whoever wants to call somebody does: a node may have joined a moment
/// ago, and its record is put once a minute at most.
async fn most_are_found(population: &mut Population, percent: f64) -> Lookups {
    for _ in 0..5 {
        let found = directory::look_up(population, "", LOOKUPS).await.unwrap();
        assert_eq!(found.forged, 0, "{found:?}");
        if found.current_percent >= percent {
            return found;
        }
    }
    panic!("never were {percent} % found");
}

#[tokio::test]
async fn look_ups_succeed_while_a_third_of_the_nodes_is_gone() {
    let (staying, failing) = (Machine::new(1).unwrap(), Machine::new(1).unwrap());
    let place = |number| if number % 3 == 2 { &failing } else { &staying };
    let mut population = forgetful(&(0..NODES).map(place).collect::<Vec<_>>()).await;
    most_are_found(&mut population, 90.0).await;
    drop(failing);
    population.forget(|number| number % 3 == 2);
    most_are_found(&mut population, 90.0).await;
}

#[tokio::test]
async fn look_ups_succeed_while_a_third_of_the_nodes_answers_nothing() {
    let (staying, mut failing) = (Machine::new(1).unwrap(), Machine::new(1).unwrap());
    let place = |number| if number % 3 == 2 { &failing } else { &staying };
    let mut population = forgetful(&(0..NODES).map(place).collect::<Vec<_>>()).await;
    most_are_found(&mut population, 90.0).await;
    // Nothing is closed: whoever asks them waits.
    failing.stall().unwrap();
    population.forget(|number| number % 3 == 2);
    most_are_found(&mut population, 90.0).await;
}

#[tokio::test]
async fn liars_may_hide_a_record_but_never_forge_one() {
    let machine = Machine::new(1).unwrap();
    let mut population = forgetful(&[&machine; NODES]).await;
    let victims = population.members.iter().map(|member| (member.wallet, member.key.clone()));
    let victims = Victims::new(victims.collect());
    let mut hostiles = Hostiles::default();
    while hostiles.len() < NODES / 2 {
        hostiles.join(&population.introducers(), &victims).await.unwrap();
    }
    let found = most_are_found(&mut population, 70.0).await;
    assert!(found.requests > 0.0, "the directory was asked: {found:?}");
}

#[tokio::test]
async fn a_new_listing_reaches_every_node_by_gossip() {
    let machine = Machine::new(1).unwrap();
    let kind = Kind { gossip: true, publishes: true, catalogs: false, limits: NetworkLimits::default() };
    let mut population = Population::new(kind, 2);
    population.grow(&[&machine; NODES]).await.unwrap();
    // Neighbours that were met a moment ago may not have said yet that they listen.
    let mut spread = news::by_gossip(&mut population, 1).await.unwrap();
    for _ in 0..5 {
        if spread.reached_percent > 99.0 {
            return;
        }
        spread = news::by_gossip(&mut population, 1).await.unwrap();
    }
    panic!("{spread:?}");
}

#[test]
fn without_gossip_news_takes_a_few_reconciliations_more_in_a_network_a_thousand_times_as_large() {
    let (small, large) = (news::by_reconciliation(100, 3), news::by_reconciliation(100_000, 3));
    let (small, large) = (small.all_secs.unwrap(), large.all_secs.unwrap());
    assert!(small < 12.0 * 300.0, "{small} s");
    assert!(large < small + 10.0 * 300.0, "{large} s");
}

#[tokio::test]
async fn a_neighbour_that_lacks_few_of_many_listings_gets_them_for_few_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = catalog::Plan { listings: 2_000, missing: 20, searches: 60 };
    let found = catalog::measure(plan, folder.path()).await.unwrap();
    assert!(found.reconciliation_kib < 100.0, "{found:?}");
    assert!(found.disk_mib < 50.0, "{found:?}");
    assert!(found.hits_median > 0, "{found:?}");
}

#[tokio::test]
async fn a_full_catalog_beside_a_larger_one_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let plan = catalog::Plan { listings: 2_000, missing: 1, searches: 6 };
    catalog::measure(plan, folder.path()).await.unwrap();
    let found = rest::run(plan.listings, folder.path()).await.unwrap();
    // Naming all of both takes 48 KB: 4 B/s if each side does so once in six hours, 320 B/s if it does so every time.
    assert!(found.bytes_per_second < 60.0, "{found:?}");
    assert!(found.refused < 1_000, "{found:?}");
}
