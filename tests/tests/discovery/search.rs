//! What a search finds, and what it says of it.

use anyhow::{Context, Result, ensure};
use farthing_control::types::{CatalogQuery, CatalogSort, CatalogState};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    command::farthing,
    nodes::{Nodes, all_find, offer, only, publish, search, set_price, words},
    wait::eventually,
};
use farthing_values::Usdc;

use crate::gossip::with_and_without_gossip;

const UPSTREAM: &str = "http://127.0.0.1:9";

with_and_without_gossip!(
    search_narrows_by_category_tag_and_price_and_sorts,
    a_name_that_imitates_an_older_one_is_flagged_with_both_wallets,
    an_owner_that_left_is_shown_as_away,
);

async fn search_narrows_by_category_tag_and_price_and_sorts(mut nodes: Nodes) -> Result<()> {
    let all = nodes.star(2).await?;
    for (name, category, tag, micros) in [
        ("Seismic events", "Geology", "quake", 5_000),
        ("Seismic stations", "Geology", "station", 1_000),
        ("Seismic waves at sea", "Ocean", "quake", 3_000),
    ] {
        let mut file = offer(name, UPSTREAM);
        (file.category, file.tags) = (category.to_owned(), vec![tag.to_owned()]);
        let api = publish(&all[0], &file).await?;
        set_price(&all[0], &api, Usdc::from_micros(micros)).await?;
    }
    all_find(&all, &words("seismic"), 3).await?;
    let consumer = &all[1];
    let asked = |query: CatalogQuery| async move {
        let page = search(consumer, &query).await?;
        Ok::<_, anyhow::Error>(page.hits.into_iter().map(|hit| hit.name).collect::<Vec<_>>())
    };
    let seismic = || words("seismic");
    ensure!(
        asked(CatalogQuery { category: Some("Ocean".into()), ..seismic() }).await?
            == ["Seismic waves at sea"]
    );
    let with_tag =
        asked(CatalogQuery { tag: Some("quake".into()), sort: CatalogSort::Name, ..seismic() }).await?;
    ensure!(with_tag == ["Seismic events", "Seismic waves at sea"], "{with_tag:?}");
    eventually("the prices have arrived", async || {
        let query = CatalogQuery {
            price_max: Some(Usdc::from_micros(3_000).into()),
            sort: CatalogSort::Price,
            ..seismic()
        };
        Ok(asked(query).await? == ["Seismic stations", "Seismic waves at sea"])
    })
    .await?;
    let page = search(consumer, &seismic()).await?;
    let geology = page.counts.categories.iter().find(|count| count.value.eq_ignore_ascii_case("geology"));
    ensure!(geology.context("no such category")?.count == 2, "{:?}", page.counts);
    // The operations' own words, from the details.
    eventually("operations are found", async || {
        Ok(search(consumer, &words("tremors week")).await?.total == 3)
    })
    .await?;
    the_command_narrows_as_well(consumer).await?;
    // Half a word, a typing mistake, and what a query language would choke on.
    for text in ["seis", "seismik events", "\"seismic:(*^", "  SEISMIC  "] {
        ensure!(search(consumer, &words(text)).await?.total > 0, "{text}");
    }
    Ok(())
}

/// Every option of `farthing catalog search` alone, for people and for programs.
async fn the_command_narrows_as_well(consumer: &NodeProcess) -> Result<()> {
    for (options, found) in [
        (&["--category", "Ocean"][..], &["Seismic waves at sea"][..]),
        (&["--tag", "quake", "--sort", "name"], &["Seismic events", "Seismic waves at sea"]),
        (&["--max-price", "0.003", "--sort", "price"], &["Seismic stations", "Seismic waves at sea"]),
        (
            &["--kind", "rest", "--sort", "name"],
            &["Seismic events", "Seismic stations", "Seismic waves at sea"],
        ),
        (&["--kind", "graphql"], &[]),
    ] {
        let arguments = [&["catalog", "search", "seismic"], options].concat();
        let answer =
            farthing(consumer, &[&arguments[..], &["--json"]].concat()).await?.ends_with(0)?.json()?;
        let hits = answer["hits"].as_array().context("no hits")?;
        let names: Vec<_> = hits.iter().filter_map(|hit| hit["name"].as_str()).collect();
        ensure!(names == found, "{options:?}: {names:?}");
        let shown = farthing(consumer, &arguments).await?.ends_with(0)?.out.clone();
        ensure!(found.iter().all(|name| shown.contains(name)), "{options:?}: {shown}");
    }
    for (options, named) in [(["--kind", "soap"], "rest, graphql"), (["--max-price", "cheap"], "--max-price")]
    {
        let told = farthing(consumer, &[&["catalog", "search"], &options[..]].concat()).await?;
        ensure!(told.ends_with(2)?.err.contains(named), "{options:?}: {told:?}");
    }
    Ok(())
}

async fn a_name_that_imitates_an_older_one_is_flagged_with_both_wallets(mut nodes: Nodes) -> Result<()> {
    let all = nodes.star(3).await?;
    let original = publish(&all[0], &offer("Paypal Rates", UPSTREAM)).await?;
    all_find(&all, &words("paypal rates"), 1).await?;
    // A Cyrillic letter in place of the Latin one.
    publish(&all[1], &offer("P\u{0430}ypal Rates", UPSTREAM)).await?;
    all_find(&all, &words("rates"), 2).await?;
    // These nodes have known neither for long, so they do not say which of the two is the imitation.
    let page = search(&all[2], &words("rates")).await?;
    for hit in &page.hits {
        let other = hit.look_alike.as_ref().context("no warning")?;
        ensure!(other.owner != hit.owner && other.service != hit.id);
        ensure!([hit.id, other.service].contains(&original.id));
    }
    Ok(())
}

async fn an_owner_that_left_is_shown_as_away(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    publish(&all[0], &offer("Here and gone", UPSTREAM)).await?;
    let query = words("gone");
    eventually("the owner is online", async || {
        let page = search(&all[1], &query).await?;
        Ok(page.total == 1 && only(&page)?.state == CatalogState::Online)
    })
    .await?;
    // A node that stops in order says goodbye.
    all[0].stop().await?;
    eventually("the owner is away", async || {
        Ok(only(&search(&all[1], &query).await?)?.state == CatalogState::Away)
    })
    .await?;
    ensure!(search(&all[1], &CatalogQuery { online: true, ..query }).await?.total == 0);
    Ok(())
}
