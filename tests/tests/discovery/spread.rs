//! How what one node publishes comes to all others, with gossip and without.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    nodes::{Nodes, all_find, counted, offer, only, publish, search, set_price, show, words},
    tell::tell,
    wait::eventually,
};
use farthing_values::Usdc;

use crate::gossip::with_and_without_gossip;

const UPSTREAM: &str = "http://127.0.0.1:9";
/// What nodes count: listings they heard of by gossip, and comparisons of catalogs that brought something.
const GOSSIPED: &str = "farthing_catalog_gossiped_total";
const BROUGHT: &str = "farthing_catalog_comparisons_fruitful_total";

with_and_without_gossip!(
    what_is_published_changed_and_retired_is_seen_by_every_node,
    two_halves_that_meet_know_each_others_services,
    after_a_partition_heals_one_comparison_brings_everything,
    a_node_that_was_away_catches_up,
    what_was_found_is_kept_over_restarts_and_without_any_peer,
    a_damaged_store_is_rebuilt_from_the_neighbours,
    services_follow_their_node_to_another_network_and_back_and_nothing_is_called_damaged,
);

/// The owner is known to nobody but the first node; the rest hear of it from each other.
async fn what_is_published_changed_and_retired_is_seen_by_every_node(mut nodes: Nodes) -> Result<()> {
    let all = nodes.star(5).await?;
    let api = publish(&all[1], &offer("Earthquakes of the world", UPSTREAM)).await?;
    all_find(&all, &words("earthquakes"), 1).await?;

    // A change and a retirement go the same way.
    set_price(&all[1], &api, Usdc::from_micros(7_000)).await?;
    for node in &all {
        eventually("the new price is seen", async || {
            Ok(only(&search(node, &words("earthquakes")).await?)?.price.0 == Usdc::from_micros(7_000))
        })
        .await?;
    }
    all[1].control().ask(endpoint::RemoveApi.of(api.id.0)).await?;
    all_find(&all, &words("earthquakes"), 0).await
}

/// The promise is about nodes that have met: who came a moment ago may not have said yet that it listens, and then
/// hears of the first services by comparing. Every one of them is found; one of them must have been found as promised.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_service_is_gossiped_to_all_of_five_nodes_within_five_seconds() -> Result<()> {
    const SERVICES: usize = 10;
    const PROMISED: Duration = Duration::from_secs(5);
    let mut nodes = Nodes::new()?;
    let all = nodes.star(5).await?;
    let (owner, others) = (&all[1], [&all[0], &all[2], &all[3], &all[4]]);
    let mut seen = Vec::new();
    for number in 0..SERVICES {
        let before = counted_by_all(&others, GOSSIPED).await?;
        let published = Instant::now();
        publish(owner, &offer(&format!("Volcano {number}"), UPSTREAM)).await?;
        all_find(&all, &words("volcano"), number + 1).await?;
        let took = published.elapsed();
        let after = counted_by_all(&others, GOSSIPED).await?;
        let gossiped = after.iter().zip(before).filter(|(after, before)| **after > *before).count();
        tell(&format!(
            "  discovery: found by five nodes after {took:.1?}, {gossiped} of four heard of it by gossip"
        ));
        if gossiped == others.len() && took <= PROMISED {
            return Ok(());
        }
        seen.push((took, gossiped));
    }
    bail!("never by gossip alone within {PROMISED:?}: {seen:?}")
}

async fn counted_by_all(nodes: &[&NodeProcess], name: &str) -> Result<Vec<u64>> {
    let counts = nodes.iter().map(|node| counted(node, name));
    futures::future::try_join_all(counts).await
}

/// Both are up and publish while neither knows where the other is. Then one is told, and the first comparison brings
/// both all that they lack: no second one had anything left to bring.
async fn after_a_partition_heals_one_comparison_brings_everything(mut nodes: Nodes) -> Result<()> {
    const APART: [(&str, &str); 2] = [("baltic", "Tides"), ("saharan", "Winds")];
    let mut all = nodes.star(2).await?;
    publish(&all[0], &offer("Before it all", UPSTREAM)).await?;
    all_find(&all, &words("before"), 1).await?;

    // It forgets whom it knew and comes back at another port, and nobody listens where it looks.
    all[1].stop().await?;
    std::fs::remove_file(all[1].data_dir().join("networks/31337/network.redb"))?;
    all[1]
        .restart(vec![("FARTHING_NETWORK__BOOTSTRAP".to_owned(), "/ip4/127.0.0.1/tcp/1".to_owned())])
        .await?;
    for (node, (place, name)) in all.iter().zip(APART) {
        for number in 0..3 {
            publish(node, &offer(&format!("{name} {place} {number}"), UPSTREAM)).await?;
        }
        all_find(std::slice::from_ref(node), &words(place), 3).await?;
    }
    for (node, (place, _)) in all.iter().zip(APART.into_iter().rev()) {
        ensure!(node.status().await?.peers == 0, "they are not apart");
        ensure!(search(node, &words(place)).await?.total == 0, "it knows of {place}");
    }

    all[1].stop().await?;
    let before = counted(&all[0], BROUGHT).await?;
    all[1].restart(Vec::new()).await?;
    all_find(&all, &words("tides"), 3).await?;
    all_find(&all, &words("winds"), 3).await?;
    // The session is counted when it is over, a moment after what it brought is found.
    for (node, before) in [(&all[0], before), (&all[1], 0)] {
        eventually("the comparison is counted", async || Ok(counted(node, BROUGHT).await? > before)).await?;
        let brought = counted(node, BROUGHT).await? - before;
        ensure!(brought == 1, "{brought} comparisons were needed:\n{}", node.log());
    }
    Ok(())
}

async fn two_halves_that_meet_know_each_others_services(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    let other = nodes.star(2).await?;
    publish(&all[1], &offer("Tides of the north", UPSTREAM)).await?;
    publish(&other[1], &offer("Winds of the south", UPSTREAM)).await?;
    all_find(&all, &words("tides"), 1).await?;
    all_find(&other, &words("winds"), 1).await?;
    all_find(&all, &words("winds"), 0).await?;
    let between = nodes.join(&[&all[0], &other[0]]).await?;
    all.extend(other);
    all.push(between);
    all_find(&all, &words("tides"), 1).await?;
    all_find(&all, &words("winds"), 1).await
}

async fn a_node_that_was_away_catches_up(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    let mut late = nodes.join(&[&all[0]]).await?;
    late.stop().await?;
    publish(&all[1], &offer("Published in its absence", UPSTREAM)).await?;
    late.restart(Vec::new()).await?;
    all.push(late);
    all_find(&all, &words("absence"), 1).await
}

async fn what_was_found_is_kept_over_restarts_and_without_any_peer(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    publish(&all[0], &offer("Kept for later", UPSTREAM)).await?;
    all_find(&all, &words("kept"), 1).await?;
    all[0].stop().await?;
    all[1].restart(Vec::new()).await?;
    ensure!(all[1].status().await?.peers == 0);
    only(&search(&all[1], &words("kept")).await?)?;
    Ok(())
}

async fn a_damaged_store_is_rebuilt_from_the_neighbours(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    publish(&all[0], &offer("Indestructible", UPSTREAM)).await?;
    all_find(&all, &words("indestructible"), 1).await?;
    all[1].stop().await?;
    std::fs::write(all[1].data_dir().join("networks/31337/catalog.redb"), b"not a database")?;
    all[1].restart(Vec::new()).await?;
    all_find(&all, &words("indestructible"), 1).await?;
    let log = all[1].log();
    ensure!(log.contains("damaged") && !log.contains("panicked"), "it says so:\n{log}");
    Ok(())
}

async fn services_follow_their_node_to_another_network_and_back_and_nothing_is_called_damaged(
    mut nodes: Nodes,
) -> Result<()> {
    let here = || vec![("FARTHING_NETWORK__NAME".to_owned(), "local-there".to_owned())];
    let mut all = nodes.star(2).await?;
    let api = publish(&all[1], &offer("Wandering", UPSTREAM)).await?;
    all_find(&all, &words("wandering"), 1).await?;

    // The owner alone goes to the other network, and finds nobody there.
    let mut owner = all.pop().context("two nodes")?;
    owner.stop().await?;
    owner.restart(here()).await?;
    let mut there = nodes.join_with(&[&owner], here()).await?;
    all_find(std::slice::from_ref(&there), &words("wandering"), 1).await?;
    there.stop().await?;

    // It returns, and everybody takes its newer listing.
    owner.stop().await?;
    owner.restart(Vec::new()).await?;
    all.push(owner);
    all_find(&all, &words("wandering"), 1).await?;
    eventually("the newer listing arrives", async || Ok(show(&all[0], api.id.0).await?.hit.version >= 3))
        .await?;
    let log = all[1].log();
    ensure!(log.matches("are listed here now").count() == 2, "once each way:\n{log}");
    ensure!(log.contains("records of the earlier network are kept") && !log.contains("damaged"), "{log}");
    Ok(())
}
