//! Further rows of the report: where a warm call's time goes, the bridge, slow strangers, starts.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use farthing_peers::crowd::{Crowd, Slow};
use farthing_protocol::wire::NetworkName;
use farthing_testnet::{
    NodeProcess,
    anvil::Anvil,
    demo::{Demo, recent_earthquakes, tempdir, transiting_planets},
};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{at, histogram, micros, millis, round};

const WARM_UP: usize = 50;
const SEQUENTIAL: usize = 500;
/// Quiet and crowded take turns so often.
const ROUNDS: usize = 7;
const CALLS_OF_A_ROUND: usize = 400;
pub const HOSTILE_WALLETS: usize = 2;
/// Of each of them.
pub const SLOW_STREAMS: usize = 64;

/// Planets bought as REST through the bridge, beside the same query posted to the service. Times in milliseconds, p50.
#[derive(Debug, Serialize)]
pub struct Bridged {
    pub direct_graphql_ms: f64,
    pub bridged_ms: f64,
    pub paid_minus_direct_ms: f64,
}

/// From a start until the node can buy and sell, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Starts {
    pub restart_ms: f64,
    /// From nothing, with a new wallet.
    pub cold_ms: f64,
}

/// One honest payer, alone and while two wallets have 64 call streams each open that carry a byte a second; medians of
/// the rounds.
#[derive(Debug, Default, Serialize)]
pub struct Crowded {
    pub quiet_p50_ms: f64,
    pub quiet_p99_ms: f64,
    pub crowded_p50_ms: f64,
    pub crowded_p99_ms: f64,
    pub p50_ratio: f64,
    pub p99_ratio: f64,
    /// Streams open at the end of a crowded round, and begun until then, in the round with the fewest.
    pub streams_open: usize,
    pub streams_begun: usize,
}

/// Where a sequential paid call's time goes, from `server-timing`, medians.
#[derive(Debug, Default, Serialize)]
pub struct Parts {
    pub gateway: f64,
    pub network: f64,
    pub owner: f64,
    pub upstream: f64,
    /// What the client saw beyond these: its own TLS and HTTP.
    pub client: f64,
}

/// One call at a time, by the client that scripts in Rust use.
pub async fn parts(demo: &Demo) -> Result<Parts> {
    let paid = Paid::new(demo)?;
    for _ in 0..WARM_UP {
        paid.call().await?;
    }
    let mut parts = [histogram()?, histogram()?, histogram()?, histogram()?, histogram()?];
    for _ in 0..SEQUENTIAL {
        let (elapsed, timing) = paid.call().await?;
        let named = ["gateway", "network", "owner", "upstream"].map(|name| part(&timing, name));
        let sum: f64 = named.iter().sum();
        for (histogram, millis) in parts.iter_mut().zip(named.into_iter().chain([millis(elapsed) - sum])) {
            histogram.record(whole(millis * 1000.0))?;
        }
    }
    let [gateway, network, owner, upstream, client] = parts.each_ref().map(|histogram| at(histogram, 0.5));
    Ok(Parts { gateway, network, owner, upstream, client })
}

/// Planets bought as REST and asked for as GraphQL, beside the same query posted to the service.
pub async fn bridged(demo: &Demo) -> Result<Bridged> {
    let bridged = Paid { body: transiting_planets(&demo.planets.api).to_string(), ..Paid::new(demo)? };
    bridged.call().await?;
    let seen = demo.planets.service.last_line_with("received ").await.context("the service saw no query")?;
    let (query, variables) = seen.rsplit_once(" with ").context("no variables in the log")?;
    let direct = DirectGraphql {
        client: reqwest::Client::builder().no_proxy().build()?,
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
    let (direct_graphql_ms, bridged_ms) = (at(&direct_times, 0.5), at(&bridged_times, 0.5));
    Ok(Bridged { direct_graphql_ms, bridged_ms, paid_minus_direct_ms: round(bridged_ms - direct_graphql_ms) })
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

/// Quiet and crowded rounds in turns, so that both see the same machine.
pub async fn crowded(demo: &Demo) -> Result<Crowded> {
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

/// From nothing to ready with a new wallet, and with an old one.
pub async fn starts(demo: &mut Demo) -> Result<Starts> {
    demo.consumer.stop().await?;
    let started = Instant::now();
    demo.consumer.restart_until_ready(Vec::new()).await?;
    let restart_ms = millis(started.elapsed());
    let fresh = tempdir()?;
    let started = Instant::now();
    let options = farthing_testnet::NodeOptions::new(fresh.0.join("node"));
    let mut node = NodeProcess::start(&demo.chain, options).await?;
    node.wait_until_ready().await?;
    let cold_ms = millis(started.elapsed());
    node.stop().await?;
    Ok(Starts { restart_ms, cold_ms })
}

pub fn path_and_query() -> String {
    "/v1/earthquakes/recent?format=geojson&minmagnitude=4.5&limit=5".to_owned()
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

/// `name;dur=1.234` in a `server-timing` header.
fn part(timing: &str, name: &str) -> f64 {
    let mut parts = timing.split(", ").filter_map(|part| part.split_once(";dur="));
    parts.find(|(part, _)| *part == name).and_then(|(_, millis)| millis.parse().ok()).unwrap_or(0.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before the cast")]
fn whole(value: f64) -> u64 {
    value.clamp(1.0, 60_000_000.0) as u64
}
