//! One node's catalog with many listings: disk, memory, search, and agreement with a neighbour that lacks some.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use farthing_catalog::{Catalog, Limits, Options, Query, Sort, Source, Step, Verdict};
use farthing_protocol::{
    Address, Listing, SecretKey, ServiceNonce, Signed, Usdc, listing::ServiceKind, sync::SyncMessage, wire,
};
use farthing_simulation::Dice;
use farthing_tests::{
    nodes::{bytes_of, copy},
    report::{processor_time, quantile, resident_mib, rounded},
};
use serde::Serialize;

use super::{network_name, now_secs, population::key, traffic::count};

/// Places of each catalog: a node has as many as its owner sets.
pub(super) const LISTINGS_MAX: usize = 2_000_000;
/// Listings of one owner, of the 64 it may have.
pub(super) const PER_OWNER: usize = 20;
/// Listings offered at once.
pub(super) const BATCH: usize = 500;
const NEIGHBOUR: Address = Address::from_bytes([1; 20]);
/// The catalog that is measured, in the folder of a run.
pub(super) const HERE: &str = "here";
/// Until when the owners' records are valid: longer than any run.
pub(super) const VALID_SECS: u64 = 24 * 3600;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub listings: usize,
    /// Listings that the neighbour lacks.
    pub missing: usize,
    pub searches: usize,
}

/// What was found. Sizes in MiB and KiB, of 1024.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    pub listings: usize,
    /// Taken per second: examined, verified, stored and indexed.
    pub taken_per_second: f64,
    pub disk_mib: f64,
    /// Of a process that does nothing but open the catalog and search once.
    pub idle_memory_mib: u64,
    pub open_secs: f64,
    pub missing: usize,
    pub reconciliation_ms: f64,
    /// Both ways, the missing listings included.
    pub reconciliation_kib: f64,
    pub reconciliation_messages: usize,
    pub searches: usize,
    pub hits_median: usize,
    pub search_median_ms: f64,
    pub search_p99_ms: f64,
    /// The same without the time that the machine gave to other processes.
    pub search_p99_processor_ms: f64,
    /// Of checks made between the searches, median: what this machine takes for a known amount of work.
    pub signature_check_ms: f64,
    /// A search, in signature checks (medians); to compare runs on different machines.
    pub search_in_signature_checks: f64,
}

/// Fills a catalog in `folder` and measures it. `idle_command` is a program that opens the catalog named by its
/// last argument and prints what [`idle`] found.
pub async fn run(plan: Plan, folder: &Path, idle_command: &[String]) -> Result<Section> {
    let measured = measure(plan, folder).await?;
    let idle = idle_in_a_process_of_its_own(idle_command, &folder.join(HERE))?;
    Ok(Section { idle_memory_mib: idle.memory_mib, open_secs: idle.open_secs, ..measured })
}

/// The same without what only a process of its own can tell, which is left at zero.
pub async fn measure(plan: Plan, folder: &Path) -> Result<Section> {
    ensure!(plan.listings <= LISTINGS_MAX, "a catalog has {LISTINGS_MAX} places here");
    let (here, there) = (folder.join(HERE), folder.join("there"));
    let catalog = open(&here, LISTINGS_MAX)?;
    let started = Instant::now();
    take(&catalog, network_name().as_str(), 0..plan.listings - plan.missing).await?;
    catalog.settled().await?;
    let taken = started.elapsed();
    drop(catalog);
    copy(&here, &there)?;

    let (catalog, neighbour) = (open(&here, LISTINGS_MAX)?, open(&there, LISTINGS_MAX)?);
    for number in 0..plan.listings.div_ceil(PER_OWNER) {
        catalog.owner_seen(owner(number).address(), now_secs() + VALID_SECS);
        neighbour.owner_seen(owner(number).address(), now_secs() + VALID_SECS);
    }
    take(&catalog, network_name().as_str(), plan.listings - plan.missing..plan.listings).await?;
    let started = Instant::now();
    let cost = reconcile(&neighbour, &catalog, false, now_secs()).await?;
    let reconciled = started.elapsed();
    ensure!(
        neighbour.counts().listings == plan.listings,
        "the neighbour still lacks some: {:?}",
        neighbour.counts()
    );
    drop(neighbour);

    catalog.settled().await?;
    let searched = search(&catalog, plan.searches).await?;
    drop(catalog);
    Ok(Section {
        listings: plan.listings,
        taken_per_second: rounded(count((plan.listings - plan.missing) as u64) / taken.as_secs_f64()),
        disk_mib: rounded(count(bytes_of(&here)?) / 1024.0 / 1024.0),
        idle_memory_mib: 0,
        open_secs: 0.0,
        missing: plan.missing,
        reconciliation_ms: millis(reconciled),
        reconciliation_kib: rounded(count(cost.bytes as u64) / 1024.0),
        reconciliation_messages: cost.messages,
        searches: plan.searches,
        hits_median: quantile(&searched.hits, 50).unwrap_or_default(),
        search_median_ms: at(&searched.times, 50),
        search_p99_ms: at(&searched.times, 99),
        search_p99_processor_ms: at(&searched.processor_times, 99),
        signature_check_ms: at(&searched.checks, 50),
        search_in_signature_checks: rounded(at(&searched.times, 50) / at(&searched.checks, 50)),
    })
}

/// A catalog with so many places.
pub(super) fn open(folder: &Path, places: usize) -> Result<Catalog> {
    let own = key("own", 0).address();
    let (catalog, opened) = Catalog::open(folder, options(network_name().as_str(), own, places))?;
    ensure!(opened.notices.is_empty(), "a fresh catalog is damaged: {:?}", opened.notices);
    Ok(catalog)
}

fn options(network: &str, wallet: Address, places: usize) -> Options {
    Options { limits: Limits::for_listings(places), ..Options::new(network, wallet) }
}

async fn take(catalog: &Catalog, network: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    for first in numbers.clone().step_by(BATCH) {
        let batch = first..numbers.end.min(first + BATCH);
        let listings = batch.map(|number| signed(network, number)).collect::<Result<Vec<_>>>()?;
        store(catalog, listings).await?;
    }
    Ok(())
}

/// Has the catalog store these listings, whose owners are there.
pub(super) async fn store(catalog: &Catalog, listings: Vec<Signed<Listing>>) -> Result<()> {
    for listing in &listings {
        catalog.owner_seen(listing.claimed()?.owner, now_secs() + VALID_SECS);
    }
    let verdicts = catalog.offer(listings, Source::Fetched(NEIGHBOUR.into()), now_secs()).await;
    let refused = verdicts.iter().find(|verdict| **verdict != Verdict::Stored);
    ensure!(refused.is_none(), "a listing was not stored: {refused:?}");
    Ok(())
}

/// What a session sends, both ways.
pub(super) struct Cost {
    pub(super) bytes: usize,
    pub(super) messages: usize,
}

/// Has `from` open a session with `with`, in which each takes what it lacks, message by message, as the network would carry them.
pub(super) async fn reconcile(
    from: &Catalog,
    with: &Catalog,
    knows_shards: bool,
    at_secs: u64,
) -> Result<Cost> {
    let (mut bytes, mut messages) = (0, 0);
    let mut carry = |message: &SyncMessage| -> Result<SyncMessage> {
        let frame = wire::encode(message);
        (bytes, messages) = (bytes + frame.len(), messages + 1);
        Ok(wire::decode(&frame)?)
    };
    let (mut initiator, mut message) = from.initiator(NEIGHBOUR, knows_shards, at_secs).await?;
    let mut responder = with.responder(NEIGHBOUR, at_secs);
    loop {
        let answer = responder.on(carry(&message)?, at_secs).await?;
        match initiator.on(carry(&answer)?, at_secs).await? {
            Step::Send(next) => message = next,
            Step::Done(_) => return Ok(Cost { bytes, messages }),
        }
    }
}

/// What searches found and took, each in order.
#[derive(Default)]
struct Searched {
    hits: Vec<usize>,
    times: Vec<Duration>,
    processor_times: Vec<Duration>,
    checks: Vec<Duration>,
}

async fn search(catalog: &Catalog, searches: usize) -> Result<Searched> {
    let mut searched = Searched::default();
    let mut dice = Dice::new(1);
    let yardstick = signed(network_name().as_str(), 0)?;
    for number in 0..searches {
        let query = query(number, &mut dice);
        let (spent, started) = (processor_time()?, Instant::now());
        let page = catalog.search(query, now_secs()).await?;
        searched.times.push(started.elapsed());
        searched.processor_times.push(processor_time()?.saturating_sub(spent));
        searched.hits.push(page.total);
        let started = Instant::now();
        yardstick.clone().verify()?;
        searched.checks.push(started.elapsed());
    }
    let Searched { hits, times, processor_times, checks } = &mut searched;
    hits.sort_unstable();
    [times, processor_times, checks].into_iter().for_each(|all| all.sort());
    Ok(searched)
}

/// A quantile of `sorted` in milliseconds.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    quantile(sorted, percent).map_or(f64::NAN, millis)
}

/// What people ask for, in turns: a word, two words, an unfinished word, a word with filters, and no word.
pub(super) fn query(number: usize, dice: &mut Dice) -> Query {
    let page = Query { limit: Some(20), ..Query::default() };
    let (subject, quality) = (pick(&SUBJECTS, dice), pick(&QUALITIES, dice));
    match number % 6 {
        0 => Query { words: subject.to_owned(), ..page },
        1 => Query { words: format!("{quality} {subject}"), ..page },
        2 => Query { words: subject.chars().take(3).collect(), ..page },
        3 => Query {
            words: format!("{subject} {}", pick(&PLACES, dice)),
            category: Some(pick(&CATEGORIES, dice).to_owned()),
            online: true,
            ..page
        },
        4 => Query {
            words: quality.to_owned(),
            kind: Some(ServiceKind::Rest),
            price_max: Some(Usdc::from_micros(10_000)),
            sort: Sort::Price,
            ..page
        },
        _ => Query { tag: Some(subject.to_owned()), sort: Sort::Name, ..page },
    }
}

/// The key of the owner of this number; the first ones have listings.
pub(super) fn owner(number: usize) -> SecretKey {
    key("owner", number)
}

fn signed(network: &str, number: usize) -> Result<Signed<Listing>> {
    let key = owner(number / PER_OWNER);
    let mut dice = Dice::new(number as u64);
    let (subject, quality) = (pick(&SUBJECTS, &mut dice), pick(&QUALITIES, &mut dice));
    let (place, other) = (pick(&PLACES, &mut dice), pick(&SUBJECTS, &mut dice));
    let mut nonce = [7; 16];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    let nonce = ServiceNonce::from_bytes(nonce);
    let age_secs = dice.below(30 * 24 * 3600);
    let listing = Listing {
        name: format!("{quality} {subject} {place} {number}"),
        summary: format!("Answers questions about {subject} and {other} in {place}: {quality}, by the call."),
        category: pick(&CATEGORIES, &mut dice).to_owned(),
        tags: vec![subject.to_owned(), place.to_owned()],
        kind: if dice.below(4) == 0 { ServiceKind::Graphql } else { ServiceKind::Rest },
        price: Usdc::from_micros(dice.below(50_000)),
        operations_count: 5,
        details_hash: [7; 32],
        details_bytes: 10_000,
        ..Listing::first(network, key.address(), nonce, now_secs() - age_secs)
    };
    Ok(Signed::sign(&listing, &key)?)
}

fn pick(words: &[&'static str], dice: &mut Dice) -> &'static str {
    words[dice.index(words.len())]
}

const CATEGORIES: [&str; 8] =
    ["science", "weather", "finance", "transport", "language", "images", "health", "sports"];
const QUALITIES: [&str; 20] = [
    "accurate", "archived", "bulk", "cached", "current", "daily", "detailed", "early", "exact", "fast",
    "fresh", "global", "hourly", "live", "local", "open", "precise", "quick", "trusted", "verified",
];
const SUBJECTS: [&str; 40] = [
    "addresses",
    "aircraft",
    "airports",
    "asteroids",
    "auctions",
    "bridges",
    "buses",
    "clouds",
    "currencies",
    "distances",
    "earthquakes",
    "elections",
    "exoplanets",
    "ferries",
    "floods",
    "forecasts",
    "forests",
    "fuels",
    "glaciers",
    "harbours",
    "holidays",
    "lakes",
    "libraries",
    "matches",
    "medicines",
    "metals",
    "mountains",
    "museums",
    "patents",
    "postcodes",
    "prices",
    "rainfall",
    "recipes",
    "rivers",
    "satellites",
    "ships",
    "stocks",
    "tides",
    "trains",
    "volcanoes",
];
const PLACES: [&str; 30] = [
    "Accra", "Athens", "Bergen", "Bogota", "Busan", "Cairo", "Chennai", "Cork", "Dakar", "Dresden", "Fiji",
    "Geneva", "Hanoi", "Izmir", "Jakarta", "Kyoto", "Lagos", "Lima", "Lyon", "Malmo", "Nairobi", "Oslo",
    "Porto", "Quito", "Riga", "Seville", "Tunis", "Turin", "Utrecht", "Zagreb",
];

/// What a process that only has the catalog open takes.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    pub open_secs: f64,
    pub memory_mib: u64,
}

/// Fills the catalog in `folder` of a node that is not running: `listings` by others than its wallet.
pub async fn fill(folder: &Path, network: &str, wallet: Address, listings: usize) -> Result<()> {
    fs::create_dir_all(folder)?;
    let (catalog, opened) = Catalog::open(folder, options(network, wallet, LISTINGS_MAX))?;
    ensure!(opened.notices.is_empty(), "the node's catalog is damaged: {:?}", opened.notices);
    take(&catalog, network, 0..listings).await?;
    Ok(catalog.settled().await?)
}

/// Opens the catalog in `folder`, searches once, and looks at this process, which should do nothing else.
pub async fn idle(folder: &Path) -> Result<Idle> {
    let started = Instant::now();
    let catalog = open(folder, LISTINGS_MAX)?;
    let open_secs = rounded(started.elapsed().as_secs_f64());
    catalog.search(Query { words: "earthquakes".to_owned(), ..Query::default() }, now_secs()).await?;
    Ok(Idle { open_secs, memory_mib: resident_mib()? })
}

fn idle_in_a_process_of_its_own(command: &[String], folder: &Path) -> Result<Idle> {
    let (program, arguments) = command.split_first().context("no command")?;
    let output = Command::new(program).args(arguments).arg(folder).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (open_secs, memory_mib) = said.trim().split_once(' ').context("not two numbers")?;
    Ok(Idle { open_secs: open_secs.parse()?, memory_mib: memory_mib.parse()? })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}
