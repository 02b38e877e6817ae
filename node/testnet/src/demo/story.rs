//! The demo as it is told: what is bought, what it costs, where the money went.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use farthing_control::{
    endpoint,
    types::{CatalogQuery, CatalogSamples, Channel},
};
use farthing_values::Usdc;
use serde::Serialize;
use serde_json::Value;

use super::{Demo, DemoOwner, NodeProcess, Setup, metrics, offers, say, tempdir};
use crate::rpc;

const MORE_CALLS: usize = 100;
/// A new service is known everywhere after a second or so.
const FOUND_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// `report.json`: the demo in figures. Times in milliseconds, amounts in micro-USDC.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// From looking for the first service until the consumer's own catalog had it.
    pub found_ms: f64,
    pub first_call_ms: f64,
    pub warm_p50_ms: f64,
    pub warm_p99_ms: f64,
    pub calls: usize,
    pub charged_micros: u64,
    pub owner_gain_micros: u64,
    pub consumer_loss_micros: u64,
    pub onchain_transactions: u64,
    pub settled_tx: String,
    pub features_returned: usize,
    /// The first call of the planet service: through the bridge, to GraphQL.
    pub bridged_call_ms: f64,
    pub planets_returned: usize,
    /// The query that the planet service received.
    pub graphql_sent: String,
    /// Chain requests that a call waited for, on both nodes. Rule 1 says none.
    pub rpc_requests_during_calls: u64,
    /// Chain requests in the background in the same time: of watchers and upkeep, however many calls.
    pub rpc_watch_requests_during_calls: u64,
}

/// Runs the demo and writes its report.
pub async fn run(report_file: Option<&Path>) -> anyhow::Result<Report> {
    let folder = tempdir()?;
    let demo = Demo::start(&folder.0, Setup::default()).await?;
    let result = tell(&demo).await;
    say("Stopping everything.");
    demo.stop().await?;
    let report = result?;
    if let Some(file) = report_file {
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(file, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| format!("{} cannot be written", file.display()))?;
        say(&format!("The figures are in {}.", file.display()));
    }
    Ok(report)
}

async fn tell(demo: &Demo) -> anyhow::Result<Report> {
    let before = Balances::of(demo).await?;
    let client = demo.consumer.https_client()?;

    say("");
    let found = find(demo).await?;
    say(&format!("A script calls POST {}/internal/call", demo.gateway_url));
    let first = buy(demo, &client, &offers::recent_earthquakes(&demo.earthquakes.api)).await?;
    let features = first.earthquakes()?;
    let mut charged = first.charged;
    say(&format!(
        "The first call took {} ms: it opened a payment channel on chain, then bought {} earthquakes:",
        first.millis,
        features.len()
    ));
    features.iter().for_each(|feature| say(&format!("  {feature}")));
    say(&format!("It cost {} USDC; the owner signed a receipt ({}…).", first.charged, &first.receipt[..18]));

    let calls = more_calls(demo, &client).await?;
    charged = charged.checked_add(calls.charged).context("overflow")?;

    say("");
    say("Another script asks for planets in the same way: GET /planets?discoveryMethod=Transit&limit=5");
    let bridged = buy(demo, &client, &offers::transiting_planets(&demo.planets.api)).await?;
    let planets = bridged.planets()?;
    planets.iter().for_each(|planet| say(&format!("  {planet}")));
    let sent =
        demo.planets.service.last_line_with("received ").await.context("the service received no query")?;
    say(&format!(
        "It took {} ms and cost {} USDC. The planet service, a GraphQL server, received",
        bridged.millis, bridged.charged
    ));
    say(&format!("  {sent}"));

    say("");
    let transaction = settle(demo, &demo.earthquakes).await?;
    settle(demo, &demo.planets).await?;
    close_channels(demo).await?;
    say("The channels are closed, and the rest of the deposits came back to the consumer.");

    let after = Balances::of(demo).await?;
    let (gain, planet_gain, loss) = before.changes(&after)?;
    say_changes(&before, &after, [gain, planet_gain, loss]);
    let transactions = transactions(demo).await?;
    let all = charged.checked_add(bridged.charged).context("overflow")?;
    say(&format!("{} calls, {all} USDC, {transactions} transactions on chain.", MORE_CALLS + 2));
    ensure!(
        gain == charged && planet_gain == bridged.charged && loss == all,
        "the money does not add up: charged {charged} and {}, owners +{gain} and +{planet_gain}, consumer -{loss}",
        bridged.charged
    );
    say("The money adds up to the last millionth of a dollar.");
    Ok(Report {
        found_ms: round(found),
        first_call_ms: round(first.millis),
        warm_p50_ms: round(calls.p50),
        warm_p99_ms: round(calls.p99),
        calls: MORE_CALLS + 2,
        charged_micros: all.micros(),
        owner_gain_micros: gain.saturating_add(planet_gain).micros(),
        consumer_loss_micros: loss.micros(),
        onchain_transactions: transactions,
        settled_tx: transaction,
        features_returned: features.len(),
        bridged_call_ms: round(bridged.millis),
        planets_returned: planets.len(),
        graphql_sent: sent,
        rpc_requests_during_calls: calls.waited,
        rpc_watch_requests_during_calls: calls.watch,
    })
}

/// The consumer looks into its own catalog until the service has come to it, and looks at a free sample.
async fn find(demo: &Demo) -> anyhow::Result<f64> {
    let query = CatalogQuery { words: "recent earthq".to_owned(), ..CatalogQuery::default() };
    let (started, id) = (Instant::now(), demo.earthquakes.api.id);
    say("The consumer searches its own catalog for “recent earthq”. Every node keeps all listings:");
    let hit = loop {
        let page = demo.consumer.control().tell(endpoint::CatalogSearch, &query).await?;
        if let Some(hit) = page.hits.into_iter().find(|hit| hit.id == id) {
            break hit;
        }
        ensure!(started.elapsed() < FOUND_WITHIN, "the consumer's node did not find the service in time");
        tokio::time::sleep(LOOK_EVERY).await;
    };
    let found_ms = started.elapsed().as_secs_f64() * 1_000.0;
    say(&format!("  {}  {} USDC  {}  of {}", hit.name, hit.price, hit.kind, hit.owner));
    let at = endpoint::CatalogSamples.of(id);
    let samples: CatalogSamples = demo.consumer.control().ask(at).await?;
    say(&format!("It can look at {} sample answers for free.", samples.samples.len()));
    say("");
    Ok(found_ms)
}

struct Balances {
    earthquakes: Usdc,
    planets: Usdc,
    consumer: Usdc,
}

impl Balances {
    async fn of(demo: &Demo) -> anyhow::Result<Self> {
        Ok(Self {
            earthquakes: demo.chain.usdc_of(demo.earthquakes.wallet).await?,
            planets: demo.chain.usdc_of(demo.planets.wallet).await?,
            consumer: demo.chain.usdc_of(demo.consumer_wallet).await?,
        })
    }

    /// Computes what the owners gained and the consumer lost.
    fn changes(&self, after: &Self) -> anyhow::Result<(Usdc, Usdc, Usdc)> {
        let gain = |before: Usdc, after: Usdc| after.checked_sub(before).context("an owner lost money");
        let loss = self.consumer.checked_sub(after.consumer).context("the consumer gained money")?;
        Ok((gain(self.earthquakes, after.earthquakes)?, gain(self.planets, after.planets)?, loss))
    }
}

fn say_changes(before: &Balances, after: &Balances, [gain, planet_gain, loss]: [Usdc; 3]) {
    say("");
    say("                         before        after");
    say(&format!("  earthquake owner {:>12} {:>12}   +{gain} USDC", before.earthquakes, after.earthquakes));
    say(&format!("  planet owner     {:>12} {:>12}   +{planet_gain} USDC", before.planets, after.planets));
    say(&format!("  consumer         {:>12} {:>12}   -{loss} USDC", before.consumer, after.consumer));
}

/// The results of many calls in a row.
struct Calls {
    charged: Usdc,
    p50: f64,
    p99: f64,
    waited: u64,
    watch: u64,
}

async fn more_calls(demo: &Demo, client: &reqwest::Client) -> anyhow::Result<Calls> {
    let owner = &demo.earthquakes.node;
    let body = offers::recent_earthquakes(&demo.earthquakes.api);
    let before = (requests(owner).await?, requests(&demo.consumer).await?);
    let mut charged = Usdc::ZERO;
    let mut millis = Vec::with_capacity(MORE_CALLS);
    for _ in 0..MORE_CALLS {
        let call = buy(demo, client, &body).await?;
        charged = charged.checked_add(call.charged).context("overflow")?;
        millis.push(call.millis);
    }
    let after = (requests(owner).await?, requests(&demo.consumer).await?);
    millis.sort_by(f64::total_cmp);
    let (p50, p99) = (millis[MORE_CALLS / 2], millis[MORE_CALLS * 99 / 100]);
    let waited = after.0.waited - before.0.waited + after.1.waited - before.1.waited;
    let watch = after.0.watch - before.0.watch + after.1.watch - before.1.watch;
    say("");
    say(&format!(
        "{MORE_CALLS} more calls: half of them took at most {p50:.1} ms, 99 % at most {p99:.1} ms."
    ));
    say(&format!("Chain requests that someone waited for during these calls: {waited}."));
    Ok(Calls { charged, p50, p99, waited, watch })
}

/// The transaction in which an owner claims what it holds.
async fn settle(demo: &Demo, seller: &DemoOwner) -> anyhow::Result<String> {
    let unclaimed = seller.node.control().ask(endpoint::Wallet).await?;
    say(&format!(
        "The owner of “{}” holds vouchers worth {} USDC and claims them in one transaction …",
        seller.api.name, unclaimed.unclaimed
    ));
    let settled = seller.node.control().ask(endpoint::Settle).await?;
    let transaction = settled.transactions.first().cloned().context("nothing was settled")?;
    say(&format!("  settled {} USDC in transaction {transaction}", settled.claimed));
    ensure!(demo.chain.usdc_of(seller.wallet).await? >= settled.claimed.0, "the claim is not on chain");
    Ok(transaction)
}

async fn close_channels(demo: &Demo) -> anyhow::Result<()> {
    let channels = demo.consumer.control().ask(endpoint::Channels).await?;
    ensure!(channels.len() == 2, "the consumer has {} channels", channels.len());
    for channel in channels {
        let close = endpoint::CloseChannel.of(channel.id);
        let _: Channel = demo.consumer.control().ask(close).await?;
    }
    wait_until_closed(demo).await
}

async fn transactions(demo: &Demo) -> anyhow::Result<u64> {
    let url = demo.chain.rpc_url();
    let mut all = 0;
    for wallet in [demo.earthquakes.wallet, demo.planets.wallet, demo.consumer_wallet] {
        all += rpc::transactions_of(&url, wallet).await?;
    }
    Ok(all)
}

struct BoughtCall {
    millis: f64,
    charged: Usdc,
    receipt: String,
    answer: Value,
}

impl BoughtCall {
    /// One line for each earthquake.
    fn earthquakes(&self) -> anyhow::Result<Vec<String>> {
        let features = self.answer["features"].as_array().context("the answer has no features")?;
        let line = |feature: &Value| {
            let properties = &feature["properties"];
            format!("M {:<4} {}", properties["mag"], properties["place"].as_str().unwrap_or("somewhere"))
        };
        Ok(features.iter().map(line).collect())
    }

    /// One line for each planet.
    fn planets(&self) -> anyhow::Result<Vec<String>> {
        let planets = self.answer.as_array().context("the answer is no list")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |planet: &Value| {
            format!(
                "{:24} of {:20} a year of {} days",
                text(&planet["name"]),
                text(&planet["hostStar"]),
                planet["orbitalPeriod"]
            )
        };
        Ok(planets.iter().map(line).collect())
    }
}

async fn buy(demo: &Demo, client: &reqwest::Client, body: &Value) -> anyhow::Result<BoughtCall> {
    let started = Instant::now();
    let response = client
        .post(format!("{}/internal/call", demo.gateway_url))
        .bearer_auth(&demo.secret)
        .body(body.to_string())
        .send()
        .await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await?;
    let millis = round(started.elapsed().as_secs_f64() * 1000.0);
    ensure!(status.is_success(), "the call failed with {status}: {}", String::from_utf8_lossy(&body));
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Ok(BoughtCall {
        millis,
        charged: header("x-farthing-charged").parse()?,
        receipt: header("x-farthing-receipt").to_owned(),
        answer: serde_json::from_slice(&body)?,
    })
}

/// Chain requests a node has made so far.
struct Requests {
    /// Someone waited for these.
    waited: u64,
    watch: u64,
}

async fn requests(node: &NodeProcess) -> anyhow::Result<Requests> {
    let values = metrics(node).await?;
    let value = |name: &str| values.get(name).copied().with_context(|| format!("no metric {name}"));
    Ok(Requests {
        waited: value("farthing_chain_requests_write_total")?
            + value("farthing_chain_requests_on_demand_total")?,
        watch: value("farthing_chain_requests_watch_total")?,
    })
}

async fn wait_until_closed(demo: &Demo) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let channels = demo.consumer.control().ask(endpoint::Channels).await?;
        if channels.iter().all(|channel| channel.state.is_closed()) {
            return Ok(());
        }
        ensure!(Instant::now() < until, "a channel is not closed:\n{}", demo.consumer.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn round(millis: f64) -> f64 {
    (millis * 100.0).round() / 100.0
}
