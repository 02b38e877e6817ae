//! What 100,000 listings cost one node: disk, memory, reconciliation and search.
//!
//! ```text
//! cargo run --workspace --example scale -- 100000
//! ```
//!
//! Fills a catalog in a temporary folder with listings of varied words, owners and prices. A second process opens
//! it, so that its memory is the catalog's alone, searches it, and reconciles it with a peer that lacks 100.

use std::{
    error::Error,
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use farthing_catalog::{Catalog, Limits, Options, Query, Sort, Source, Step, Summary};
use farthing_protocol::{
    Address, Listing, SecretKey, ServiceId, ServiceNonce, Signed, Usdc, call::ChargePolicy, keccak256,
    listing::ServiceKind, wire,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const NOW_SECS: u64 = 1_767_323_045;
/// Listings in one offer, as in one frame.
const BATCH: usize = 2_000;
const MISSING: u64 = 100;
const QUERIES: u64 = 400;

const CATEGORIES: [&str; 12] = [
    "weather",
    "science",
    "finance",
    "transport",
    "maps",
    "language",
    "health",
    "sports",
    "energy",
    "space",
    "news",
    "government",
];
const SUBJECTS: [&str; 40] = [
    "earthquakes",
    "exoplanets",
    "rainfall",
    "tides",
    "exchange rates",
    "train delays",
    "street names",
    "translations",
    "air quality",
    "football results",
    "power prices",
    "satellites",
    "headlines",
    "elections",
    "recipes",
    "flights",
    "postal codes",
    "holidays",
    "proteins",
    "asteroids",
    "patents",
    "books",
    "museums",
    "birds",
    "rivers",
    "volcanoes",
    "parking",
    "bicycles",
    "charging stations",
    "invoices",
    "currencies",
    "poems",
    "lyrics",
    "chess games",
    "auctions",
    "job offers",
    "court rulings",
    "census data",
    "soil samples",
    "tree registers",
];
const QUALITIES: [&str; 20] = [
    "live",
    "historic",
    "hourly",
    "daily",
    "global",
    "european",
    "regional",
    "verified",
    "open",
    "fast",
    "complete",
    "curated",
    "predicted",
    "annotated",
    "anonymous",
    "official",
    "crowdsourced",
    "high resolution",
    "minimal",
    "raw",
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [full, lacking] => measure(Path::new(full), Path::new(lacking)).await,
        [count] => fill(count.parse()?).await,
        _ => fill(100_000).await,
    }
}

async fn fill(count: u64) -> Outcome<()> {
    let signed = sign_all(count);
    println!("{count} listings of {} owners, {} bytes each", count / 20, wire::encode(&signed[0]).len());
    let temporary = tempfile::tempdir()?;
    // Kept when it is named, so that measuring can be repeated.
    let folder = std::env::var_os("FARTHING_SCALE_FOLDER").map_or(temporary.path().to_owned(), Into::into);
    let (full, lacking) = (folder.join("full"), folder.join("lacking"));
    let (catalog, _) = open(&full)?;
    let began = Instant::now();
    offer(&catalog, &signed).await;
    println!("verified and stored in {:.1?}", began.elapsed());
    catalog.settled().await?;
    println!("found by search after {:.1?}", began.elapsed());
    drop(catalog);
    println!("disk: {}", disk(&full)?);
    let (peer, _) = open(&lacking)?;
    offer(&peer, &without(&signed, |number| number % (count / MISSING) != 0)).await;
    peer.settled().await?;
    drop((peer, signed));
    let status = Command::new(std::env::current_exe()?).args([&full, &lacking]).status()?;
    if status.success() { Ok(()) } else { Err("the second process failed".into()) }
}

async fn measure(full: &Path, lacking: &Path) -> Outcome<()> {
    let before = memory_kib();
    let began = (Instant::now(), processor());
    let (catalog, opened) = open(full)?;
    let elapsed = (began.0.elapsed(), processor() - began.1);
    println!("opened in {:.1?} ({:.1?} of a core), {} to index", elapsed.0, elapsed.1, opened.indexing);
    println!(
        "memory when idle: {} MiB, {} of them the catalog's",
        memory_kib() / 1024,
        (memory_kib() - before) / 1024
    );

    for sort in [Sort::Relevance, Sort::Price, Sort::Newest, Sort::Name] {
        let timed =
            time_queries(&catalog, |_| Query { sort, limit: Some(20), ..Query::default() }, 40).await?;
        println!("search without words by {sort:?}: {timed}");
    }
    let timed = time_queries(&catalog, varied, QUERIES).await?;
    println!("search, varied words and filters: {timed}");
    println!("memory after searching: {} MiB", memory_kib() / 1024);

    let (peer, _) = open(lacking)?;
    reconcile(&peer, &catalog, "a peer lacking 100 spread over all").await?;
    reconcile(&peer, &catalog, "equal peers").await?;
    println!("memory with the peer in the same process: {} MiB", memory_kib() / 1024);
    Ok(())
}

fn open(folder: &Path) -> Outcome<(Catalog, farthing_catalog::Opened)> {
    let limits = Limits { strangers_max: 200_000, fetched_burst: 1_000_000, ..Limits::default() };
    let options = Options { limits, ..Options::new("local-scale", Address::from_bytes([1; 20])) };
    Ok(Catalog::open(folder, options)?)
}

async fn offer(catalog: &Catalog, listings: &[Signed<Listing>]) {
    for batch in listings.chunks(BATCH) {
        catalog.offer(batch.to_vec(), Source::Fetched(Address::from_bytes([2; 20]).into()), NOW_SECS).await;
    }
}

fn without(listings: &[Signed<Listing>], keep: impl Fn(u64) -> bool) -> Vec<Signed<Listing>> {
    (0..).zip(listings).filter(|(number, _)| keep(*number)).map(|(_, listing)| listing.clone()).collect()
}

/// Signed on every core.
fn sign_all(count: u64) -> Vec<Signed<Listing>> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let part = count.div_ceil(cores);
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..cores)
            .map(|core| {
                scope.spawn(move || (core * part..count.min((core + 1) * part)).filter_map(sign).collect())
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|_| Vec::new())).collect()
    })
}

fn sign(number: u64) -> Option<Signed<Listing>> {
    let key = SecretKey::from_bytes(&keccak256(&[b"owner", &(number / 20).to_be_bytes()])).ok()?;
    Signed::sign(&listing(number, key.address()), &key).ok()
}

fn listing(number: u64, owner: Address) -> Listing {
    let dice = keccak256(&[b"listing", &number.to_be_bytes()]);
    let pick = |at: usize, of: usize| usize::from(u16::from_be_bytes([dice[at], dice[at + 1]])) % of;
    let (subject, quality) = (SUBJECTS[pick(0, 40)], QUALITIES[pick(2, 20)]);
    let (other, region) = (SUBJECTS[pick(4, 40)], syllables(&dice[6..10]));
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&dice[16..]);
    let nonce = ServiceNonce::from_bytes(nonce);
    Listing {
        network: "local-scale".to_owned(),
        service: ServiceId::derive(owner, nonce),
        owner,
        seq: 1,
        name: format!("{quality} {subject} of {region}"),
        summary: format!(
            "{quality} {subject} and {other} for {region}, with {} records a day",
            pick(10, 9_999)
        ),
        category: CATEGORIES[pick(12, 12)].to_owned(),
        tags: [pick(14, 40), pick(11, 40), pick(13, 40)].map(|tag| SUBJECTS[tag].to_owned()).to_vec(),
        kind: if dice[9] < 200 { ServiceKind::Rest } else { ServiceKind::Graphql },
        price: Usdc::from_micros(10_u64.pow(u32::from(dice[8] % 6)) * u64::from(dice[7])),
        charge_policy: ChargePolicy::Success,
        accepts: Vec::new(),
        operations_count: 12,
        details_hash: dice,
        details_bytes: 4_000,
        created_secs: NOW_SECS - 40_000_000,
        updated_secs: NOW_SECS - 1 - (number * 7_919) % 30_000_000,
        tombstone: false,
        paused: false,
        samples_count: 0,
        history: None,
        nonce,
    }
}

/// A made-up place: thousands of different ones.
fn syllables(dice: &[u8]) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "ko", "ri", "men", "tal", "su", "ver", "no", "lin", "dor", "esh", "um", "gra", "pi", "tov",
        "ca",
    ];
    dice.iter().take(3).map(|die| SYLLABLES[usize::from(die % 16)]).collect()
}

/// Makes a query as people type it: words, unfinished ones, mistyped ones, with and without filters.
fn varied(number: u64) -> Query {
    let dice = keccak256(&[b"query", &number.to_be_bytes()]);
    let subject = SUBJECTS[usize::from(dice[0]) % 40];
    let words = match dice[1] % 6 {
        0 => subject.to_owned(),
        1 => format!("{} {subject}", QUALITIES[usize::from(dice[2]) % 20]),
        2 => subject.chars().take(3).collect(),
        3 => format!("{subject} {}", syllables(&dice[6..10])),
        4 => subject.chars().rev().skip(1).collect::<String>().chars().rev().chain(['x']).collect(),
        _ => subject.chars().take(1).collect(),
    };
    let category = (dice[3] < 60).then(|| CATEGORIES[usize::from(dice[4]) % 12].to_owned());
    let price_max = (dice[5] < 60).then(|| Usdc::from_micros(1_000));
    let sort = [Sort::Relevance, Sort::Price, Sort::Newest, Sort::Name]
        [usize::from(dice[10].saturating_sub(192)) / 16];
    Query { words, category, price_max, sort, limit: Some(20), ..Query::default() }
}

async fn search(catalog: &Catalog, query: &Query) -> Outcome<usize> {
    Ok(catalog.search(query.clone(), NOW_SECS).await?.total)
}

async fn time_queries(catalog: &Catalog, query: impl Fn(u64) -> Query, count: u64) -> Outcome<String> {
    let (mut times, mut processor_times) = (Vec::new(), Vec::new());
    let mut found = 0;
    for number in 0..count {
        let query = query(number);
        let began = (Instant::now(), processor());
        found += search(catalog, &query).await?;
        times.push((began.0.elapsed(), query));
        processor_times.push(processor() - began.1);
    }
    times.sort_by_key(|(time, _)| *time);
    processor_times.sort();
    let of_processor = |percent: usize| processor_times[(processor_times.len() - 1) * percent / 100];
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].0;
    let slowest = times.last().map(|(time, query)| (*time, query.words.clone(), query.sort)).unwrap_or((
        Duration::ZERO,
        String::new(),
        Sort::Name,
    ));
    Ok(format!(
        "p50 {:.1?}, p99 {:.1?}; of a core p50 {:.1?}, p99 {:.1?}; {} found on average; slowest {slowest:?}",
        at(50),
        at(99),
        of_processor(50),
        of_processor(99),
        found as u64 / count
    ))
}

async fn reconcile(from: &Catalog, with: &Catalog, what: &str) -> Outcome<()> {
    let began = (Instant::now(), processor());
    let (one, other) = (Address::from_bytes([3; 20]), Address::from_bytes([4; 20]));
    let (mut initiator, mut message) = from.initiator(other, NOW_SECS)?;
    let mut responder = with.responder(one, NOW_SECS);
    let (mut messages, mut bytes) = (0, 0);
    loop {
        let answer = responder.on(message.clone(), NOW_SECS).await?;
        messages += 2;
        bytes += wire::encode(&message).len() + wire::encode(&answer).len();
        match initiator.on(answer, NOW_SECS).await? {
            Step::Send(next) => message = next,
            Step::Done(summary) => {
                let elapsed = (began.0.elapsed(), processor() - began.1);
                let (kib, Summary { lacked, stored, .. }) = (bytes / 1024, summary);
                println!(
                    "{what}: {:.1?} ({:.1?} of a core), {messages} messages, {kib} KiB, {stored} of {lacked} stored",
                    elapsed.0, elapsed.1
                );
                return Ok(());
            }
        }
    }
}

/// Bytes of every file, by name.
fn disk(folder: &Path) -> Outcome<String> {
    fn bytes(path: &Path) -> std::io::Result<u64> {
        if !path.is_dir() {
            return Ok(path.metadata()?.len());
        }
        fs::read_dir(path)?.map(|entry| bytes(&entry?.path())).sum()
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        parts.push(format!(
            "{} {} MB",
            entry.file_name().to_string_lossy(),
            bytes(&entry.path())? / 1_000_000
        ));
    }
    Ok(format!("{} MB: {}", bytes(folder)? / 1_000_000, parts.join(", ")))
}

/// Resident memory of this process, as Linux counts it.
fn memory_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Time that all threads of this process spent on a core: what remains on a machine that does nothing else.
fn processor() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    times.filter_map(|times| times.split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
}
