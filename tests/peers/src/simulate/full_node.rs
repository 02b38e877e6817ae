//! A whole node, as people run it, that holds many listings and records: what it takes to start, to sit there and to search.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use farthing_catalog::{Query, Sort};
use farthing_control::{
    endpoint,
    types::{CatalogKind, CatalogQuery, CatalogSort, LookupRequest, Text},
};
use farthing_network::save_records;
use farthing_protocol::{
    Address, NodeRecord, Signed,
    listing::ServiceKind,
    record::{FLAG_ACCEPTS_CALLS, FLAG_CALL_STREAMS},
    wire::NetworkName,
};
use farthing_simulation::Dice;
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::report::{Progress, memory_mib, print_promise, quantile, rounded};
use libp2p::Multiaddr;
use serde::Serialize;

use super::{
    catalog::{self, VALID_SECS, owner},
    now_secs,
};

/// Between the start and the look at the memory: what a start allocates has been given back by then.
const SETTLE: Duration = Duration::from_secs(10);
/// The node verifies each record again when it starts.
const KNOWN_WITHIN: Duration = Duration::from_secs(600);
/// What a node keeps of others' records.
const RECORDS_MAX: usize = 100_000;
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of an idle node with 100,000 listings and as many records, in bytes.
const MEMORY_MAX: u64 = 120_000_000;

/// What was found. Sizes in MiB, of 1024 KiB.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    pub listings: usize,
    /// Records of other nodes, those of the listings' owners among them.
    pub records: usize,
    /// From the process's start until it answers.
    pub start_secs: f64,
    /// From then on until it knows all records.
    pub records_known_secs: f64,
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

impl Section {
    /// Says whether the node takes as little memory as it has to.
    pub fn print_promise(&self) {
        let found = self.memory_idle_mib * 1024 * 1024;
        let promise = format!(
            "an idle node with {} listings and {} records takes at most {} MB ({} MB)",
            self.listings,
            self.records,
            MEMORY_MAX / 1_000_000,
            found / 1_000_000
        );
        print_promise(promise, found <= MEMORY_MAX);
    }
}

/// Fills the catalog and the records of a node on a chain of its own and measures that node.
pub async fn run(listings: usize, records: usize, searches: usize) -> Result<Section> {
    ensure!(records <= RECORDS_MAX, "a node keeps {RECORDS_MAX} records");
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
    progress.tell("writing the records");
    let last = know(&learned, &status.network, records)?;

    progress.tell("starting the node with it");
    let started = Instant::now();
    // More than the network is laid out for, its owner says so.
    let places = listings.max(200_000).to_string();
    node.restart(vec![("FARTHING_CATALOG__LISTINGS_MAX".to_owned(), places)]).await?;
    let start_secs = rounded(started.elapsed().as_secs_f64());
    if let Some(last) = last {
        wait_until_known(&node, last).await?;
    }
    let records_known_secs = rounded(started.elapsed().as_secs_f64() - start_secs);
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
        records,
        start_secs,
        records_known_secs,
        memory_empty_mib,
        memory_idle_mib,
        memory_after_searches_mib,
        searches,
        hits_median,
        search_median_ms: millis(50),
        search_p99_ms: millis(99),
    })
}

/// Writes records of so many owners into the folder of a node that is not running. Returns the wallet whose record it reads last.
fn know(folder: &Path, network: &str, records: usize) -> Result<Option<Address>> {
    let last = (0..records).map(|number| owner(number).address()).max_by_key(|wallet| *wallet.as_bytes());
    let signed = (0..records).map(|number| record(network, number, last)).collect::<Result<Vec<_>>>()?;
    save_records(folder, &NetworkName::new(network)?, &signed)?;
    Ok(last)
}

/// A record with two addresses, as most have. That of the wallet that is looked up has none, so that nobody is dialled.
fn record(network: &str, number: usize, looked_up: Option<Address>) -> Result<Signed<NodeRecord>> {
    let key = owner(number);
    // 198.18.0.0/15 is kept for measurements.
    let host = format!("/ip4/198.18.{}.{}", number / 256 % 256, number % 256);
    let addresses = match looked_up == Some(key.address()) {
        true => Vec::new(),
        false => vec![format!("{host}/tcp/3001"), format!("{host}/udp/3001/quic-v1")],
    };
    let addresses = addresses.iter().map(|address| Ok(address.parse::<Multiaddr>()?.to_vec().into()));
    let record = NodeRecord {
        network: network.to_owned(),
        public_key: key.public_key(),
        net_key: None,
        seq: 1,
        issued_secs: now_secs(),
        expires_secs: now_secs() + VALID_SECS,
        flags: FLAG_ACCEPTS_CALLS | FLAG_CALL_STREAMS,
        protocol_min: 1,
        protocol_max: 1,
        addresses: addresses.collect::<Result<_>>()?,
        listings_count: 0,
        listings_root: [0; 32],
        agent: "farthing/0.1.0".to_owned(),
    };
    Ok(Signed::sign(&record, &key)?)
}

async fn wait_until_known(node: &NodeProcess, wallet: Address) -> Result<()> {
    let until = Instant::now() + KNOWN_WITHIN;
    let request = LookupRequest { wallet: Text(wallet) };
    while node.control().tell(endpoint::Lookup, &request).await?.record.is_none() {
        ensure!(Instant::now() < until, "the node does not know all records after {KNOWN_WITHIN:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
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
