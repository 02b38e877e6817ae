//! A whole node, as people run it, whose catalog holds many listings: what it takes to start, to sit there and to search.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use farthing_catalog::{Query, Sort};
use farthing_control::{
    endpoint,
    types::{CatalogKind, CatalogQuery, CatalogSort, Text},
};
use farthing_protocol::listing::ServiceKind;
use farthing_simulation::Dice;
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::report::{Progress, memory_mib, quantile, rounded};
use serde::Serialize;

use super::catalog;

/// Between the start and the look at the memory: what a start allocates has been given back by then.
const SETTLE: Duration = Duration::from_secs(10);

/// What was found. Sizes in MiB, of 1024 KiB.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    pub listings: usize,
    /// From the process's start until it answers.
    pub start_secs: f64,
    /// The same node before it had any listing.
    pub memory_empty_mib: u64,
    pub memory_idle_mib: u64,
    pub memory_after_searches_mib: u64,
    pub searches: usize,
    pub hits_median: usize,
    /// Through the control socket, with the page of results made and read.
    pub search_median_ms: f64,
    pub search_p99_ms: f64,
}

/// Fills the catalog of a node on a chain of its own and measures that node.
pub async fn run(listings: usize, searches: usize) -> Result<Section> {
    let progress = Progress::begin();
    let folder = tempfile::tempdir()?;
    let chain = LocalChain::start().await?;
    let mut node = NodeProcess::start(&chain, NodeOptions::new(folder.path())).await?;
    let status = node.status().await?;
    tokio::time::sleep(SETTLE).await;
    let memory_empty_mib = memory_mib(&node)?;
    node.stop().await?;

    progress.tell("filling the catalog");
    let learned = folder.path().join("networks").join(&status.network);
    catalog::fill(&learned, &status.network, status.address.0, listings).await?;

    progress.tell("starting the node with it");
    let started = Instant::now();
    // More than the network is laid out for, its owner says so.
    let places = listings.max(200_000).to_string();
    node.restart(vec![("FARTHING_CATALOG__LISTINGS_MAX".to_owned(), places)]).await?;
    let start_secs = rounded(started.elapsed().as_secs_f64());
    tokio::time::sleep(SETTLE).await;
    let memory_idle_mib = memory_mib(&node)?;

    progress.tell("searching");
    let (mut times, mut hits) = (Vec::new(), Vec::new());
    let mut dice = Dice::new(1);
    for number in 0..searches {
        let query = asked(catalog::query(number, &mut dice));
        let started = Instant::now();
        let page = node.control().tell(endpoint::CatalogSearch, &query).await?;
        times.push(started.elapsed());
        hits.push(page.total);
    }
    times.sort();
    hits.sort_unstable();
    let memory_after_searches_mib = memory_mib(&node)?;
    node.stop().await?;
    let hits_median = quantile(&hits, 50).unwrap_or_default();
    ensure!(hits_median > 0, "the node finds nothing: its catalog is not the one that was filled");
    let millis =
        |percent| quantile(&times, percent).map_or(f64::NAN, |time| rounded(time.as_secs_f64() * 1000.0));
    Ok(Section {
        listings,
        start_secs,
        memory_empty_mib,
        memory_idle_mib,
        memory_after_searches_mib,
        searches,
        hits_median,
        search_median_ms: millis(50),
        search_p99_ms: millis(99),
    })
}

/// The query as the node is asked it.
fn asked(query: Query) -> CatalogQuery {
    CatalogQuery {
        words: query.words,
        category: query.category,
        tag: query.tag,
        kind: query.kind.map(|kind| match kind {
            ServiceKind::Rest => CatalogKind::Rest,
            ServiceKind::Graphql => CatalogKind::Graphql,
        }),
        price_max: query.price_max.map(Text),
        online: query.online,
        samples: query.samples,
        sort: match query.sort {
            Sort::Name => CatalogSort::Name,
            Sort::Price => CatalogSort::Price,
            _ => CatalogSort::default(),
        },
        limit: query.limit,
        ..CatalogQuery::default()
    }
}
