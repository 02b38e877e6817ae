//! `farthing testnet demo`: one paid call and a hundred more between two nodes, told in plain words, with the
//! money counted on chain before and after. `farthing testnet up` leaves the same running.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use farthing_protocol::{Address, Usdc};
use serde::Serialize;
use serde_json::{Value, json};

use crate::control::types::{
    Api, Channel, OperationFile, ParameterFile, ServiceFile, Settled, Text, WalletBalance, route,
};

use super::{
    LocalChain,
    process::{NodeOptions, NodeProcess, ServiceProcess, program},
    rpc,
};

const MORE_CALLS: usize = 100;
const PRICE: Usdc = Usdc::from_micros(2_000);
const GATEWAY_PORT: u16 = 3000;
const PATH: &str = "/v1/earthquakes/recent";

/// `report.json`: the demo in figures. Times in milliseconds, amounts in micro-USDC.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
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
    /// Chain requests that a call waited for, on both nodes. Rule 1 says none.
    pub rpc_requests_during_calls: u64,
    /// Chain requests of the background watchers in the same time: one look a poll, however many calls.
    pub rpc_watch_requests_during_calls: u64,
}

/// What the demo starts with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Test USDC in the consumer's wallet.
    pub funds: Usdc,
    pub gateway_port: u16,
    /// Settings of both nodes, `section.key` and value.
    pub settings: Vec<(String, String)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            funds: Usdc::from_micros(10_000_000),
            gateway_port: free_or_any(GATEWAY_PORT),
            settings: Vec::new(),
        }
    }
}

/// Two nodes, a service and a chain.
#[derive(Debug)]
pub struct Demo {
    pub chain: LocalChain,
    pub service: ServiceProcess,
    pub owner: NodeProcess,
    pub consumer: NodeProcess,
    pub owner_wallet: Address,
    pub consumer_wallet: Address,
    pub api: Api,
    pub secret: String,
    pub gateway_url: String,
}

impl Demo {
    /// Starts everything, funds the consumer and publishes the service.
    ///
    /// # Errors
    /// What did not start, with its log.
    pub async fn start(folder: &Path, setup: Setup) -> anyhow::Result<Self> {
        say("Starting a local Ethereum chain with a test USDC and the payment channel contract …");
        let chain = LocalChain::start().await?;
        say("Starting the earthquake service, a plain HTTP server that knows nothing of Farthing …");
        let service = ServiceProcess::start("earthquakes").await?;
        say("Starting two nodes: an owner who sells, and a consumer who buys …");
        let mut options = NodeOptions::new(folder.join("owner"));
        options.settings.clone_from(&setup.settings);
        let owner = NodeProcess::start(&chain, options).await?;
        let join = owner.loopback_address().await?;
        let mut options = NodeOptions::new(folder.join("consumer")).bootstrap([join]);
        options.gateway_port = setup.gateway_port;
        options.settings = setup.settings;
        let consumer = NodeProcess::start(&chain, options).await?;
        let (owner_status, consumer_status) = (owner.status().await?, consumer.status().await?);
        let (owner_wallet, consumer_wallet) = (owner_status.address.0, consumer_status.address.0);
        say(&format!("  owner    {owner_wallet}"));
        say(&format!("  consumer {consumer_wallet}"));

        chain.fund(owner_wallet, Usdc::ZERO).await?;
        chain.fund(consumer_wallet, setup.funds).await?;
        owner.wait_until_ready().await?;
        consumer.wait_until_ready().await?;
        consumer.wait_for_usdc(setup.funds).await?;
        say(&format!(
            "The consumer's wallet received {} test USDC, and both a little ETH for gas.",
            setup.funds
        ));

        let api: Api = owner.control().post(route::APIS, &service_file(&service.url)).await?;
        say(&format!("The owner publishes “{}” for {} USDC a call, as {}.", api.name, api.price, api.id));
        let secret = consumer.secret().await?;
        Ok(Self {
            chain,
            service,
            owner,
            consumer,
            owner_wallet,
            consumer_wallet,
            api,
            secret,
            gateway_url: consumer_status.gateway_url,
        })
    }

    /// Stops the nodes in good order; the rest ends with them.
    ///
    /// # Errors
    /// When a node does not stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.consumer.stop().await?;
        self.owner.stop().await?;
        self.service.kill().await
    }

    /// The body of the call that the demo makes.
    #[must_use]
    pub fn call_body(&self) -> Value {
        json!({
            "api_id_public": self.api.id.to_string(),
            "path": PATH,
            "method": "GET",
            "params": { "format": "geojson", "minmagnitude": "4.5", "limit": "5" },
        })
    }
}

/// Runs the demo and writes its report.
///
/// # Errors
/// When something fails, or the money does not add up.
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
    let owner_before = demo.chain.usdc_of(demo.owner_wallet).await?;
    let consumer_before = demo.chain.usdc_of(demo.consumer_wallet).await?;
    let client = demo.consumer.https_client()?;

    say("");
    say(&format!("A script calls POST {}/internal/call", demo.gateway_url));
    let first = buy(demo, &client).await?;
    let mut charged = first.charged;
    say(&format!(
        "The first call took {} ms: it opened a payment channel on chain, then bought {} earthquakes:",
        first.millis,
        first.features.len()
    ));
    for feature in &first.features {
        say(&format!("  {feature}"));
    }
    say(&format!("It cost {} USDC; the owner signed a receipt ({}…).", first.charged, &first.receipt[..18]));

    let before = (requests(&demo.owner).await?, requests(&demo.consumer).await?);
    let mut millis = Vec::with_capacity(MORE_CALLS);
    for _ in 0..MORE_CALLS {
        let call = buy(demo, &client).await?;
        charged = charged.checked_add(call.charged).context("overflow")?;
        millis.push(call.millis);
    }
    let after = (requests(&demo.owner).await?, requests(&demo.consumer).await?);
    millis.sort_by(f64::total_cmp);
    let (p50, p99) = (millis[MORE_CALLS / 2], millis[MORE_CALLS * 99 / 100]);
    say("");
    say(&format!("{MORE_CALLS} more calls: half of them within {p50:.1} ms, 99 % within {p99:.1} ms."));
    let waited = after.0.waited - before.0.waited + after.1.waited - before.1.waited;
    say(&format!("None of them waited for the chain: {waited} chain requests on their path."));

    let unclaimed: WalletBalance = demo.owner.control().get(route::WALLET).await?;
    say(&format!(
        "The owner now holds vouchers worth {} USDC and claims them in one transaction …",
        unclaimed.unclaimed
    ));
    let settled: Settled = demo.owner.control().post(route::SETTLE, &json!({})).await?;
    let settled_tx = settled.transactions.first().cloned().context("nothing was settled")?;
    say(&format!("  settled {} USDC in transaction {settled_tx}", settled.claimed));

    let channels: Vec<Channel> = demo.consumer.control().get(route::CHANNELS).await?;
    let channel = channels.first().context("the consumer has no channel")?;
    let close = route::CHANNEL_CLOSE.replace("{id}", &channel.id.to_string());
    let _: Channel = demo.consumer.control().post(&close, &json!({})).await?;
    wait_until_closed(demo).await?;
    say("The channel is closed, and the rest of the deposit came back to the consumer.");

    let owner_after = demo.chain.usdc_of(demo.owner_wallet).await?;
    let consumer_after = demo.chain.usdc_of(demo.consumer_wallet).await?;
    let gain = owner_after.checked_sub(owner_before).context("the owner lost money")?;
    let loss = consumer_before.checked_sub(consumer_after).context("the consumer gained money")?;
    say("");
    say("                 before        after");
    say(&format!("  owner    {owner_before:>12} {owner_after:>12}   +{gain} USDC"));
    say(&format!("  consumer {consumer_before:>12} {consumer_after:>12}   -{loss} USDC"));
    let url = demo.chain.rpc_url();
    let transactions = rpc::transactions_of(&url, demo.owner_wallet).await?
        + rpc::transactions_of(&url, demo.consumer_wallet).await?;
    let calls = MORE_CALLS + 1;
    say(&format!("{calls} calls, {charged} USDC, {transactions} transactions on chain."));
    ensure!(
        gain == charged && loss == charged,
        "the money does not add up: charged {charged}, owner +{gain}, consumer -{loss}"
    );
    say("The money adds up to the last millionth of a dollar.");
    Ok(Report {
        first_call_ms: round(first.millis),
        warm_p50_ms: round(p50),
        warm_p99_ms: round(p99),
        calls,
        charged_micros: charged.micros(),
        owner_gain_micros: gain.micros(),
        consumer_loss_micros: loss.micros(),
        onchain_transactions: transactions,
        settled_tx,
        features_returned: first.features.len(),
        rpc_requests_during_calls: waited,
        rpc_watch_requests_during_calls: after.0.watch - before.0.watch + after.1.watch - before.1.watch,
    })
}

struct Bought {
    millis: f64,
    charged: Usdc,
    receipt: String,
    /// One line for each earthquake.
    features: Vec<String>,
}

async fn buy(demo: &Demo, client: &reqwest::Client) -> anyhow::Result<Bought> {
    let started = Instant::now();
    let response = client
        .post(format!("{}/internal/call", demo.gateway_url))
        .bearer_auth(&demo.secret)
        .body(demo.call_body().to_string())
        .send()
        .await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await?;
    let millis = round(started.elapsed().as_secs_f64() * 1000.0);
    ensure!(status.is_success(), "the call failed with {status}: {}", String::from_utf8_lossy(&body));
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&body)?;
    let features = answer["features"].as_array().context("the answer has no features")?;
    let line = |feature: &Value| {
        let properties = &feature["properties"];
        format!("M {:<4} {}", properties["mag"], properties["place"].as_str().unwrap_or("somewhere"))
    };
    Ok(Bought {
        millis,
        charged: header("x-farthing-charged").parse()?,
        receipt: header("x-farthing-receipt").to_owned(),
        features: features.iter().map(line).collect(),
    })
}

/// Everything a node counts, by name.
///
/// # Errors
/// When the node does not answer.
pub async fn metrics(node: &NodeProcess) -> anyhow::Result<BTreeMap<String, u64>> {
    let url = format!("{}/metrics", node.status().await?.gateway_url);
    let text = node.https_client()?.get(url).send().await?.text().await?;
    let value = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(value).collect())
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
        let channels: Vec<Channel> = demo.consumer.control().get(route::CHANNELS).await?;
        if channels.iter().all(|channel| channel.state == "closed") {
            return Ok(());
        }
        ensure!(Instant::now() < until, "the channel is not closed:\n{}", demo.owner.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Leaves everything running until Ctrl-C, with lines to paste.
///
/// # Errors
/// What did not start.
pub async fn up() -> anyhow::Result<()> {
    let folder = tempdir()?;
    let demo = Demo::start(&folder.0, Setup::default()).await?;
    let ca = demo.consumer.ca_file();
    let (url, body) = (format!("{}/internal/call", demo.gateway_url), demo.call_body());
    say("");
    say("Everything is up. Paste one of these into another terminal:");
    say(&format!(
        "\ncurl --cacert '{}' '{url}' \\\n  -H 'Authorization: Bearer {}' \\\n  -d '{body}'",
        ca.display(),
        demo.secret
    ));
    let payload = demo.call_body();
    say(&format!(
        "\npython3 - <<'PY'\nimport json, ssl, urllib.request\n\
         context = ssl.create_default_context(cafile={:?})\n\
         request = urllib.request.Request({url:?}, data=json.dumps({payload}).encode(),\n    \
         headers={{\"Authorization\": \"Bearer {}\"}})\n\
         with urllib.request.urlopen(request, context=context) as answer:\n    \
         print(answer.headers[\"x-farthing-charged\"], \"USDC\")\n    \
         for feature in json.load(answer)[\"features\"]:\n        \
         print(feature[\"properties\"][\"mag\"], feature[\"properties\"][\"place\"])\nPY",
        ca.display().to_string(),
        demo.secret
    ));
    say(&format!(
        "\nThe command line talks to a node by its data folder, for instance:\n\n{} status --data '{}'",
        program("farthing")?.display(),
        demo.consumer.data_dir().display()
    ));
    say(&format!("{} status --data '{}'", program("farthing")?.display(), demo.owner.data_dir().display()));
    say("\nCtrl-C stops everything and forgets it.");
    tokio::signal::ctrl_c().await?;
    demo.stop().await
}

/// Magnitudes and time filters as the service documents them.
fn service_file(upstream: &str) -> ServiceFile {
    let parameter = |name: &str, kind, description: &str| ParameterFile {
        name: name.to_owned(),
        kind,
        description: description.to_owned(),
        place: crate::control::types::PlaceFile::Query,
        required: false,
        choices: Vec::new(),
    };
    use crate::control::types::KindFile::{Integer, Number, Text as Plain};
    ServiceFile {
        id: None,
        name: "Earthquakes".to_owned(),
        summary: "Recent earthquakes worldwide, as GeoJSON (USGS)".to_owned(),
        category: "geology".to_owned(),
        tags: vec!["earthquakes".to_owned(), "geojson".to_owned()],
        description: "Magnitude, place and time of recent earthquakes, newest first.".to_owned(),
        upstream: upstream.to_owned(),
        upstream_headers: BTreeMap::new(),
        price: PRICE.into(),
        charge: crate::control::types::Charge::Success,
        operations: vec![OperationFile {
            method: Text(farthing_protocol::call::Method::Get),
            path: PATH.to_owned(),
            summary: "Recent earthquakes, newest first".to_owned(),
            price: None,
            parameters: vec![
                parameter("format", Plain, "geojson"),
                parameter("minmagnitude", Number, "Only this magnitude and above"),
                parameter("maxmagnitude", Number, "Only this magnitude and below"),
                parameter("starttime", Plain, "Only from this time on (ISO 8601)"),
                parameter("endtime", Plain, "Only up to this time (ISO 8601)"),
                parameter("limit", Integer, "At most so many"),
            ],
            body: false,
            any_params: false,
        }],
    }
}

/// The port if nobody has it, else any: somebody else's server must not stop the demo.
fn free_or_any(port: u16) -> u16 {
    match std::net::TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => port,
        Err(_) => {
            say(&format!("  (port {port} is taken on this machine; the consumer uses another one)"));
            0
        }
    }
}

/// A folder that is removed with its value.
#[derive(Debug)]
pub struct TempDir(pub PathBuf);

/// # Errors
/// When the system has no room for temporary folders.
pub fn tempdir() -> anyhow::Result<TempDir> {
    let path = std::env::temp_dir().join(format!("farthing-testnet-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir_all(&path)?;
    Ok(TempDir(path))
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Left-overs in the system's temporary folder do no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn round(millis: f64) -> f64 {
    (millis * 100.0).round() / 100.0
}

#[expect(clippy::print_stdout, reason = "the story is this command's output")]
fn say(line: &str) {
    println!("{line}");
}
