//! `make bench`: how long the console's pages take on a full node, of 5,000 listings and 100,000 calls, or as many
//! as `FARTHING_FULL_CALLS` says.
//!
//! A node is made, stopped, filled and started again; then every page is asked for over one warm TLS connection.
//! The table goes to standard output and, as JSON, to `target/bench/pages.json`.

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    full::{self, LISTINGS},
    nodes::no_chain,
};
use hdrhistogram::Histogram;
use reqwest::{Certificate, Client, header};
use serde::Serialize;

const LOOKS: usize = 200;
const WARM_UP: usize = 20;
const PASSWORD: &str = "four random words";
const REPORT: &str = "target/bench/pages.json";
const PAGES: [(&str, &str); 16] = [
    ("home", "/panel"),
    ("catalog", "/panel/catalog"),
    ("search", "/panel/catalog?q=live+earthquakes"),
    ("search with facets", "/panel/catalog?q=global&category=science&sort=price"),
    ("search without hits", "/panel/catalog?q=zzzzzz"),
    ("activity", "/panel/activity"),
    ("my APIs", "/panel/apis"),
    ("register", "/panel/apis/new"),
    ("finance", "/panel/finance"),
    ("history", "/panel/finance/history"),
    ("history, failed alone", "/panel/finance/history?kind=bought&state=failed"),
    ("limits", "/panel/finance/limits"),
    ("settings", "/panel/settings"),
    ("backup", "/panel/settings/backup"),
    ("network", "/panel/network"),
    ("help", "/panel/help/problems"),
];

/// Times in milliseconds, from the request to the last byte.
#[derive(Debug, Serialize)]
struct Page {
    p50_ms: f64,
    p95_ms: f64,
    bytes: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    farthing_serve::tls::install_provider();
    let folder = tempfile::tempdir()?;
    let data_dir = folder.path().join("node");
    let options = NodeOptions::new(&data_dir).set("network.name", &full::NETWORK);
    // A full node shows its pages without a chain as well.
    let mut node = NodeProcess::start_on(no_chain(), options).await?;
    let wallet = node.status().await?.address.0;
    node.stop().await?;
    let calls = full::calls()?;
    println!("Filling a node with {LISTINGS} listings and {calls} calls …");
    full::fill(&data_dir, wallet, calls).await?;
    node.restart(Vec::new()).await?;

    let browser = Browser::log_in(&node).await?;
    let found = browser.get("/panel/catalog").await?;
    ensure!(found.contains(&format!("{LISTINGS} services")), "the catalog is not full: {found}");
    let mut report = BTreeMap::new();
    println!("\n  {:<22} {:>10} {:>10} {:>10}", "page", "p50 ms", "p95 ms", "bytes");
    for (name, path) in PAGES {
        let page = browser.measure(path).await?;
        println!("  {name:<22} {:>10} {:>10} {:>10}", page.p50_ms, page.p95_ms, page.bytes);
        report.insert(name, page);
    }
    if let Some(folder) = Path::new(REPORT).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(REPORT, serde_json::to_string_pretty(&report)? + "\n")?;
    println!("  written to {REPORT}");
    node.stop().await
}

/// Somebody logged in.
struct Browser {
    client: Client,
    origin: String,
    cookie: String,
}

impl Browser {
    async fn log_in(node: &NodeProcess) -> Result<Self> {
        let console = node.control().ask(endpoint::ShowConsole).await?;
        let origin = console.origin().to_owned();
        let host = reqwest::Url::parse(&origin)?.host_str().context("no host")?.to_owned();
        let pem = fs::read(node.ca_file())?;
        let client = Client::builder()
            .tls_certs_only([Certificate::from_pem(&pem)?])
            .resolve(&host, std::net::SocketAddr::from(([127, 0, 0, 1], 0)))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        let code = console.setup_code.context("no setup code")?;
        let words = PASSWORD.replace(' ', "+");
        let answer = client
            .post(format!("{origin}/panel/setup"))
            .header(header::ORIGIN, &origin)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(format!("code={code}&password={words}&repeated={words}"))
            .send()
            .await?;
        let cookie = answer.headers().get(header::SET_COOKIE).context("nobody was let in")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { client, origin, cookie })
    }

    async fn get(&self, path: &str) -> Result<String> {
        let request = self.client.get(format!("{}{path}", self.origin)).header(header::COOKIE, &self.cookie);
        let answer = request.send().await?;
        ensure!(answer.status() == 200, "{path}: {}", answer.status());
        Ok(answer.text().await?)
    }

    async fn measure(&self, path: &str) -> Result<Page> {
        let mut times = Histogram::<u64>::new_with_bounds(1, 60_000_000, 3)?;
        let mut bytes = 0;
        for look in 0..WARM_UP + LOOKS {
            let began = Instant::now();
            bytes = self.get(path).await?.len();
            if look >= WARM_UP {
                times.record(u64::try_from(began.elapsed().as_micros())?)?;
            }
        }
        let millis = |micros: u64| f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1_000.0;
        Ok(Page {
            p50_ms: millis(times.value_at_quantile(0.5)),
            p95_ms: millis(times.value_at_quantile(0.95)),
            bytes,
        })
    }
}
