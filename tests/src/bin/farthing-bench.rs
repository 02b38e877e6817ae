//! `make bench`: what a paid call costs beside a direct one, measured in one run on this machine.
//!
//! Absolute times depend on the machine and on what else it does; the ratios, taken in the same run, are what
//! to compare. The table goes to standard output and, as JSON, to `target/bench/report.json`. `farthing-bench crowded`
//! measures that row alone, and writes nothing.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use farthing_protocol::{Usdc, wire::NetworkName};
use farthing_testnet::{
    NodeProcess,
    anvil::Anvil,
    demo::{Demo, Setup, metrics, recent_earthquakes, tempdir, transiting_planets},
};
use farthing_tests::{
    crowd::{Crowd, Slow},
    simulate::report::resident_mib_of,
};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

const WARM_UP: usize = 50;
const SEQUENTIAL: usize = 500;
const CONCURRENCY: usize = 64;
const CONCURRENT: usize = 6_000;
/// Quiet and crowded take turns so often.
const ROUNDS: usize = 7;
const CALLS_OF_A_ROUND: usize = 400;
const HOSTILE_WALLETS: usize = 2;
/// Of each of them.
const SLOW_STREAMS: usize = 64;
const REPORT: &str = "target/bench/report.json";

/// Times in milliseconds, memory in MiB.
#[derive(Debug, Default, Serialize)]
struct Report {
    direct_p50_ms: f64,
    direct_p99_ms: f64,
    paid_p50_ms: f64,
    paid_p99_ms: f64,
    paid_minus_direct_p50_ms: f64,
    /// The same GraphQL query posted to the service itself.
    graphql_direct_p50_ms: f64,
    bridged_p50_ms: f64,
    bridged_minus_direct_p50_ms: f64,
    /// What the bridge adds to a paid call: the difference above, less that of a plain call.
    bridge_p50_ms: f64,
    parts_p50_ms: Parts,
    paid_calls_per_second: f64,
    paid_concurrent_p50_ms: f64,
    paid_concurrent_p99_ms: f64,
    direct_calls_per_second: f64,
    two_proxies_p50_ms: Option<f64>,
    two_proxies_p99_ms: Option<f64>,
    idle_memory_mib: u64,
    loaded_memory_mib: u64,
    cold_start_ms: f64,
    restart_ms: f64,
    ledger_commits_per_call_sequential: f64,
    ledger_commits_per_call_concurrent: f64,
    signatures_per_call: f64,
    crowded: Crowded,
}

/// One honest payer, alone and while two wallets have 64 call streams each open that carry a byte a second; medians of
/// the rounds.
#[derive(Debug, Default, Serialize)]
struct Crowded {
    quiet_p50_ms: f64,
    quiet_p99_ms: f64,
    crowded_p50_ms: f64,
    crowded_p99_ms: f64,
    p50_ratio: f64,
    p99_ratio: f64,
    /// Streams open at the end of a crowded round, and begun until then, in the round with the fewest.
    streams_open: usize,
    streams_begun: usize,
}

/// Where a sequential paid call's time goes, from `server-timing`, medians.
#[derive(Debug, Default, Serialize)]
struct Parts {
    gateway: f64,
    network: f64,
    owner: f64,
    upstream: f64,
    /// What the client saw beyond these: its own TLS and HTTP.
    client: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempdir()?;
    let setup = Setup {
        funds: Usdc::from_micros(1_000_000_000),
        gateway_port: 0,
        panel_port: 0,
        settings: [
            ("spending.per_day", "1000"),
            ("spending.per_secret_day", "1000"),
            ("spending.deposit_prices", "10000"),
            ("spending.deposit_max", "100"),
            ("gateway.connections_per_ip_max", "256"),
            ("gateway.connections_max", "256"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
    };
    let started = Instant::now();
    let mut demo = Demo::start(&folder.0, setup).await?;
    println!("Ready after {:.1} s. Measuring …", started.elapsed().as_secs_f64());
    let mut report = Report { idle_memory_mib: memory_mib(&demo.consumer)?, ..Report::default() };
    if std::env::args().nth(1).is_some_and(|row| row == "crowded") {
        println!("{}", serde_json::to_string_pretty(&crowded(&demo).await?)?);
        return demo.stop().await;
    }

    sequential(&demo, &mut report).await?;
    bridged(&demo, &mut report).await?;
    concurrent(&demo, &mut report).await?;
    report.crowded = crowded(&demo).await?;
    proxies(&demo, &folder.0, &mut report).await?;
    starts(&mut demo, &mut report).await?;
    demo.stop().await?;
    print(&report)
}

/// One call at a time: direct and paid take turns, so that both see the same machine.
async fn sequential(demo: &Demo, report: &mut Report) -> Result<()> {
    let (direct, paid) = (direct(demo)?, Paid::new(demo)?);
    for _ in 0..WARM_UP {
        direct.call().await?;
        paid.call().await?;
    }
    let (mut direct_times, mut paid_times) = (histogram()?, histogram()?);
    let mut parts = [histogram()?, histogram()?, histogram()?, histogram()?, histogram()?];
    let before = counters(demo).await?;
    for _ in 0..SEQUENTIAL {
        direct_times.record(micros(direct.call().await?.0))?;
        let (elapsed, timing) = paid.call().await?;
        paid_times.record(micros(elapsed))?;
        let named = ["gateway", "network", "owner", "upstream"].map(|name| part(&timing, name));
        let sum: f64 = named.iter().sum();
        for (histogram, millis) in parts.iter_mut().zip(named.into_iter().chain([millis(elapsed) - sum])) {
            histogram.record(whole(millis * 1000.0))?;
        }
    }
    let after = counters(demo).await?;
    report.direct_p50_ms = at(&direct_times, 0.5);
    report.direct_p99_ms = at(&direct_times, 0.99);
    report.paid_p50_ms = at(&paid_times, 0.5);
    report.paid_p99_ms = at(&paid_times, 0.99);
    report.paid_minus_direct_p50_ms = round(report.paid_p50_ms - report.direct_p50_ms);
    let [gateway, network, owner, upstream, client] = parts.each_ref().map(|histogram| at(histogram, 0.5));
    report.parts_p50_ms = Parts { gateway, network, owner, upstream, client };
    report.ledger_commits_per_call_sequential = ratio(after.commits - before.commits, SEQUENTIAL);
    report.signatures_per_call = ratio(after.signatures - before.signatures, SEQUENTIAL);
    Ok(())
}

/// Planets bought as REST and asked for as GraphQL, beside the same query posted to the service.
async fn bridged(demo: &Demo, report: &mut Report) -> Result<()> {
    let bridged = Paid { body: transiting_planets(&demo.planets.api).to_string(), ..Paid::new(demo)? };
    bridged.call().await?;
    let seen = demo.planets.service.last_line_with("received ").await.context("the service saw no query")?;
    let (query, variables) = seen.rsplit_once(" with ").context("no variables in the log")?;
    let direct = DirectGraphql {
        client: direct(demo)?.client,
        url: format!("{}/graphql", demo.planets.service.url),
        body: json!({ "query": query, "variables": serde_json::from_str::<Value>(variables)? }).to_string(),
    };
    for _ in 0..WARM_UP {
        direct.call().await?;
        bridged.call().await?;
    }
    let (mut direct_times, mut bridged_times) = (histogram()?, histogram()?);
    for _ in 0..SEQUENTIAL {
        direct_times.record(micros(direct.call().await?))?;
        bridged_times.record(micros(bridged.call().await?.0))?;
    }
    report.graphql_direct_p50_ms = at(&direct_times, 0.5);
    report.bridged_p50_ms = at(&bridged_times, 0.5);
    report.bridged_minus_direct_p50_ms = round(report.bridged_p50_ms - report.graphql_direct_p50_ms);
    report.bridge_p50_ms = round(report.bridged_minus_direct_p50_ms - report.paid_minus_direct_p50_ms);
    Ok(())
}

struct DirectGraphql {
    client: reqwest::Client,
    url: String,
    body: String,
}

impl DirectGraphql {
    async fn call(&self) -> Result<Duration> {
        let started = Instant::now();
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let response = request.body(self.body.clone()).send().await?.error_for_status()?;
        response.bytes().await?;
        Ok(started.elapsed())
    }
}

/// 64 callers at once, everything on this machine.
async fn concurrent(demo: &Demo, report: &mut Report) -> Result<()> {
    let before = counters(demo).await?;
    let (rate, times) = load(Arc::new(Paid::new(demo)?)).await?;
    let after = counters(demo).await?;
    report.paid_calls_per_second = rate;
    report.paid_concurrent_p50_ms = at(&times, 0.5);
    report.paid_concurrent_p99_ms = at(&times, 0.99);
    report.ledger_commits_per_call_concurrent = ratio(after.commits - before.commits, CONCURRENT);
    report.loaded_memory_mib = memory_mib(&demo.consumer)?;
    report.direct_calls_per_second = load(Arc::new(direct(demo)?)).await?.0;
    Ok(())
}

async fn load<C: Callable + 'static>(caller: Arc<C>) -> Result<(f64, Histogram<u64>)> {
    let started = Instant::now();
    let workers: Vec<_> = (0..CONCURRENCY)
        .map(|_| {
            let caller = Arc::clone(&caller);
            tokio::spawn(async move {
                let mut times = histogram()?;
                for _ in 0..CONCURRENT / CONCURRENCY {
                    times.record(micros(caller.once().await?))?;
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = histogram()?;
    for worker in workers {
        times.add(worker.await??)?;
    }
    let calls = CONCURRENT / CONCURRENCY * CONCURRENCY;
    Ok((round(f64::from(u32::try_from(calls)?) / started.elapsed().as_secs_f64()), times))
}

/// Quiet and crowded rounds in turns, so that both see the same machine.
async fn crowded(demo: &Demo) -> Result<Crowded> {
    let paid = Paid::new(demo)?;
    let slow = Slow {
        to: demo.earthquakes.node.loopback_address().await?,
        network: NetworkName::new(Anvil::CHAIN_ID.to_string())?,
        wallets: HOSTILE_WALLETS,
        streams: SLOW_STREAMS,
    };
    for _ in 0..WARM_UP {
        paid.call().await?;
    }
    let (mut quiet, mut beside) = (Vec::new(), Vec::new());
    let (mut open, mut begun) = (usize::MAX, usize::MAX);
    for _ in 0..ROUNDS {
        quiet.push(round_of(&paid).await?);
        let crowd = Crowd::start(slow.clone())?;
        crowd.wait_until_begun(HOSTILE_WALLETS * SLOW_STREAMS).await?;
        beside.push(round_of(&paid).await?);
        (open, begun) = (open.min(crowd.open()), begun.min(crowd.begun()));
    }
    let of = |rounds: &[Histogram<u64>], quantile| median(rounds.iter().map(|times| at(times, quantile)));
    let (quiet_p50_ms, quiet_p99_ms) = (of(&quiet, 0.5), of(&quiet, 0.99));
    let (crowded_p50_ms, crowded_p99_ms) = (of(&beside, 0.5), of(&beside, 0.99));
    Ok(Crowded {
        quiet_p50_ms,
        quiet_p99_ms,
        crowded_p50_ms,
        crowded_p99_ms,
        p50_ratio: round(crowded_p50_ms / quiet_p50_ms),
        p99_ratio: round(crowded_p99_ms / quiet_p99_ms),
        streams_open: open,
        streams_begun: begun,
    })
}

async fn round_of(paid: &Paid) -> Result<Histogram<u64>> {
    let mut times = histogram()?;
    for _ in 0..CALLS_OF_A_ROUND {
        times.record(micros(paid.call().await?.0))?;
    }
    Ok(times)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// A stranger's way to sell an API: two TLS proxies in a row before the service.
async fn proxies(demo: &Demo, folder: &Path, report: &mut Report) -> Result<()> {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        println!("(nginx is not installed; the two proxies are not measured)");
        return Ok(());
    }
    let proxies = farthing_tests::proxies::Proxies::start(folder, &demo.earthquakes.service.url, 2)?;
    let caller = proxies.caller(&path_and_query())?;
    let mut times = histogram()?;
    for _ in 0..WARM_UP {
        caller.call().await?;
    }
    for _ in 0..SEQUENTIAL {
        times.record(micros(caller.call().await?))?;
    }
    report.two_proxies_p50_ms = Some(at(&times, 0.5));
    report.two_proxies_p99_ms = Some(at(&times, 0.99));
    Ok(())
}

/// From nothing to ready with a new wallet, and with an old one.
async fn starts(demo: &mut Demo, report: &mut Report) -> Result<()> {
    demo.consumer.stop().await?;
    let started = Instant::now();
    demo.consumer.restart(Vec::new()).await?;
    demo.consumer.wait_until_ready().await?;
    report.restart_ms = millis(started.elapsed());
    let fresh = tempdir()?;
    let started = Instant::now();
    let options = farthing_testnet::NodeOptions::new(fresh.0.join("node"));
    let mut node = NodeProcess::start(&demo.chain, options).await?;
    node.wait_until_ready().await?;
    report.cold_start_ms = millis(started.elapsed());
    node.stop().await
}

trait Callable: Send + Sync {
    fn once(&self) -> impl Future<Output = Result<Duration>> + Send;
}

struct Direct {
    client: reqwest::Client,
    url: String,
}

fn path_and_query() -> String {
    "/v1/earthquakes/recent?format=geojson&minmagnitude=4.5&limit=5".to_owned()
}

fn direct(demo: &Demo) -> Result<Direct> {
    farthing_serve::tls::install_provider();
    let client = reqwest::Client::builder().no_proxy().build()?;
    Ok(Direct { client, url: format!("{}{}", demo.earthquakes.service.url, path_and_query()) })
}

impl Direct {
    async fn call(&self) -> Result<(Duration, String)> {
        let started = Instant::now();
        let response = self.client.get(&self.url).send().await?.error_for_status()?;
        response.bytes().await?;
        Ok((started.elapsed(), String::new()))
    }
}

impl Callable for Direct {
    async fn once(&self) -> Result<Duration> {
        Ok(self.call().await?.0)
    }
}

struct Paid {
    client: reqwest::Client,
    url: String,
    secret: String,
    body: String,
}

impl Paid {
    fn new(demo: &Demo) -> Result<Self> {
        Ok(Self {
            client: demo.consumer.https_client()?,
            url: format!("{}/internal/call", demo.gateway_url),
            secret: demo.secret.clone(),
            body: recent_earthquakes(&demo.earthquakes.api).to_string(),
        })
    }

    /// The time it took, and what the node says of its parts.
    async fn call(&self) -> Result<(Duration, String)> {
        let started = Instant::now();
        let request = self.client.post(&self.url).bearer_auth(&self.secret).body(self.body.clone());
        let response = request.send().await?;
        let status = response.status();
        let timing = response.headers().get("server-timing").and_then(|value| value.to_str().ok());
        let timing = timing.unwrap_or_default().to_owned();
        let body = response.bytes().await?;
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        Ok((started.elapsed(), timing))
    }
}

impl Callable for Paid {
    async fn once(&self) -> Result<Duration> {
        Ok(self.call().await?.0)
    }
}

/// What both nodes counted together.
struct Counters {
    commits: u64,
    signatures: u64,
}

async fn counters(demo: &Demo) -> Result<Counters> {
    let (owner, consumer) = (metrics(&demo.earthquakes.node).await?, metrics(&demo.consumer).await?);
    let sum = |name: &str| owner.get(name).zip(consumer.get(name)).map(|(a, b)| a + b).context("metric");
    Ok(Counters {
        commits: sum("farthing_ledger_commits_total")?,
        signatures: sum("farthing_signatures_total")?,
    })
}

/// Resident memory of a node's process.
fn memory_mib(node: &NodeProcess) -> Result<u64> {
    resident_mib_of(node.pid().context("the node has ended")?)
}

fn print(report: &Report) -> Result<()> {
    let json = serde_json::to_value(report)?;
    println!();
    for (name, value) in json.as_object().context("a report is an object")? {
        match value.as_object() {
            Some(parts) => parts.iter().for_each(|(part, value)| println!("  {name}.{part:<22} {value}")),
            None => println!("  {name:<36} {value}"),
        }
    }
    println!(
        "\n  a paid call takes {:.1} times a direct one (p50); throughput is {:.0} % of direct",
        report.paid_p50_ms / report.direct_p50_ms,
        report.paid_calls_per_second / report.direct_calls_per_second * 100.0,
    );
    if let Some(proxied) = report.two_proxies_p50_ms {
        println!("  and {:.1} times one through two TLS proxies", report.paid_p50_ms / proxied);
    }
    let crowded = &report.crowded;
    println!(
        "  beside {HOSTILE_WALLETS} wallets with {SLOW_STREAMS} slow streams each, {:.1} times a quiet one's p50 and {:.1} \
         times its p99",
        crowded.p50_ratio, crowded.p99_ratio,
    );
    if let Some(folder) = Path::new(REPORT).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(REPORT, serde_json::to_string_pretty(report)? + "\n")?;
    println!("  written to {REPORT}");
    Ok(())
}

/// `name;dur=1.234` in a `server-timing` header.
fn part(timing: &str, name: &str) -> f64 {
    let mut parts = timing.split(", ").filter_map(|part| part.split_once(";dur="));
    parts.find(|(part, _)| *part == name).and_then(|(_, millis)| millis.parse().ok()).unwrap_or(0.0)
}

fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn millis(duration: Duration) -> f64 {
    round(duration.as_secs_f64() * 1000.0)
}

/// A percentile in milliseconds.
fn at(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    round(Duration::from_micros(histogram.value_at_quantile(quantile)).as_secs_f64() * 1000.0)
}

fn ratio(count: u64, of: usize) -> f64 {
    let (count, of) = (u32::try_from(count).unwrap_or(u32::MAX), u32::try_from(of).unwrap_or(u32::MAX));
    round(f64::from(count) / f64::from(of))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before the cast")]
fn whole(value: f64) -> u64 {
    value.clamp(1.0, 60_000_000.0) as u64
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
