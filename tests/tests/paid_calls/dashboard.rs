//! The dashboard in `deploy/grafana`: a real Prometheus looks at two nodes as docs/metrics.md tells it to, every panel has
//! something to show, and what many callers buy meanwhile is counted.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    calls::{cost, expect_served, free_port, setting},
    tell::tell,
    wait::eventually,
    world::{Setup, World},
};
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Url;
use serde_json::Value;
use tokio::process::{Child, Command};

/// Callers at once, and calls of all.
const CALLERS: usize = 64;
const CALLS: u32 = 512;

/// Debian's Prometheus in a process of its own, which looks at both nodes every second.
struct Prometheus {
    url: String,
    _child: Child,
    folder: tempfile::TempDir,
}

impl Prometheus {
    /// `None`, said loudly, where it is not installed.
    async fn start(world: &World) -> Result<Option<Self>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program =
            std::env::split_paths(&path).map(|folder| folder.join("prometheus")).find(|file| file.is_file());
        let Some(program) = program else {
            ensure!(
                std::env::var_os("CI").is_none(),
                "prometheus is not installed (apt-get install prometheus)"
            );
            tell(
                "\n  SKIPPED: the dashboard in Prometheus, because there is no prometheus (apt-get install prometheus).\n",
            );
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let mut config = "global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n".to_owned();
        let documented = documented()?;
        for (node, name) in [(&world.owner, "owner"), (&world.consumer, "consumer")] {
            let secret = folder.path().join(format!("{name}-secret"));
            std::fs::write(&secret, node.secret().await?)?;
            let gateway = node.status().await?.gateway_url;
            let target = gateway.strip_prefix("https://").context("no TLS")?;
            let mut entry = documented.clone();
            for (shown, there) in [
                ("job_name: farthing", format!("job_name: {name}")),
                ("/data/tls/ca.pem", node.ca_file().display().to_string()),
                ("/etc/prometheus/farthing-secret", secret.display().to_string()),
                ("localhost:3000", target.to_owned()),
            ] {
                ensure!(entry.contains(shown), "docs/metrics.md does not show {shown}: {documented}");
                entry = entry.replace(shown, &there);
            }
            config += &entry;
        }
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let port = free_port()?;
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let prometheus = Self { url: format!("http://127.0.0.1:{port}"), _child: child, folder };
        let ready = format!("{}/-/ready", prometheus.url);
        eventually("Prometheus is ready", async || {
            Ok(world.client().get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()))
        })
        .await
        .with_context(|| prometheus.log())?;
        Ok(Some(prometheus))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The values of a query now.
    async fn values(&self, world: &World, query: &str) -> Result<Vec<f64>> {
        let told = self.asked(world, "query", ("query", query)).await?;
        let result = told["result"].as_array().with_context(|| format!("{query}: {told}"))?;
        let value = |series: &Value| series["value"][1].as_str()?.parse::<f64>().ok();
        let values: Option<Vec<f64>> = result.iter().map(value).collect();
        values.with_context(|| format!("{query}: {told}"))
    }

    /// The values of a label of these series, asked for as Grafana does.
    async fn choices(&self, world: &World, (series, label): (&str, &str)) -> Result<Vec<String>> {
        let told = self.asked(world, &format!("label/{label}/values"), ("match[]", series)).await?;
        Ok(serde_json::from_value(told)?)
    }

    /// The data of an answer.
    async fn asked(&self, world: &World, what: &str, parameter: (&str, &str)) -> Result<Value> {
        let url = Url::parse_with_params(&format!("{}/api/v1/{what}", self.url), [parameter])?;
        let told: Value = serde_json::from_str(&world.client().get(url).send().await?.text().await?)?;
        ensure!(told["status"] == "success", "{parameter:?}: {told}");
        Ok(told["data"].clone())
    }
}

/// What docs/metrics.md has for one node in the list of what is scraped.
fn documented() -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let text = std::fs::read_to_string(file)?;
    let list = text.split("```yaml\nscrape_configs:\n").nth(1).and_then(|rest| rest.split("```").next());
    Ok(list.context("docs/metrics.md shows nothing to scrape")?.to_owned())
}

fn dashboard() -> Result<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/grafana/farthing.json");
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

/// What the choices above the panels are made from, each with the label whose values are chosen from.
fn variables() -> Result<Vec<(String, String)>> {
    let dashboard = dashboard()?;
    let all = dashboard["templating"]["list"].as_array().context("no variables")?;
    let asked = all.iter().filter(|variable| variable["type"] == "query");
    let read = |variable: &Value| {
        let query = variable["query"].as_str()?.replace("$job", "owner");
        let (series, label) = query.strip_prefix("label_values(")?.strip_suffix(')')?.rsplit_once(", ")?;
        Some((series.to_owned(), label.to_owned()))
    };
    asked.map(|variable| read(variable).with_context(|| format!("it asks nothing: {variable}"))).collect()
}

/// The queries of the dashboard, each with the title of its panel; what Grafana fills in is filled in.
fn queries() -> Result<Vec<(String, String)>> {
    let dashboard = dashboard()?;
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().context("no panels")? {
        let title = panel["title"].as_str().context("a panel without a title")?;
        let targets = panel["targets"].as_array().with_context(|| format!("{title} asks nothing"))?;
        ensure!(!targets.is_empty(), "{title} asks nothing");
        for target in targets {
            let query = target["expr"].as_str().with_context(|| format!("{title} asks nothing"))?;
            let query = query.replace("$__rate_interval", "1m").replace("$instance", ".+");
            // Each node has a job of its own here.
            let query = query.replace("job=\"$job\"", "job=~\"owner|consumer\"");
            ensure!(!query.contains('$'), "{title}: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    Ok(queries)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_of_the_dashboard_shows_something_in_prometheus() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let Some(prometheus) = Prometheus::start(&world).await? else { return Ok(()) };
    let mut silent = queries()?;
    ensure!(silent.len() > 20, "{silent:?}");
    let shown = eventually("every query shows a number", async || {
        // What is shown by the second needs calls between two looks.
        expect_served(&world.get("/ok").await?)?;
        let mut still_silent = Vec::new();
        for (title, query) in std::mem::take(&mut silent) {
            let values = prometheus.values(&world, &query).await?;
            if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
                still_silent.push((title, query));
            }
        }
        silent = still_silent;
        Ok(silent.is_empty())
    });
    shown.await.with_context(|| format!("{silent:?}\n{}", prometheus.log()))?;
    let mut choices = Vec::new();
    for (series, label) in variables()? {
        choices.push(prometheus.choices(&world, (series.as_str(), label.as_str())).await?.len());
    }
    assert_eq!(choices, [2, 1], "two jobs, and one node of the first");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_counts_each_call_that_64_callers_buy_on_both_sides_and_once() -> Result<()> {
    let room = ["gateway.connections_max", "gateway.connections_per_ip_max"].map(|name| setting(name, "400"));
    let world = World::with(Setup { consumer_settings: room.concat(), ..Setup::default() }).await?;
    let Some(prometheus) = Prometheus::start(&world).await? else { return Ok(()) };
    eventually("both nodes are scraped", async || Ok(prometheus.values(&world, "up").await? == [1.0, 1.0]))
        .await
        .with_context(|| prometheus.log())?;
    let calls = stream::iter(0..CALLS).map(|_| world.get("/ok")).buffer_unordered(CALLERS);
    for answer in calls.try_collect::<Vec<_>>().await? {
        expect_served(&answer)?;
    }
    let charged = "sum(farthing_calls_total{outcome=\"charged\"})";
    eventually("Prometheus has them all", async || {
        Ok(prometheus.values(&world, charged).await? == [f64::from(2 * CALLS)])
    })
    .await
    .with_context(|| prometheus.log())?;
    let resets = prometheus.values(&world, "sum(resets(farthing_calls_total[1h]))").await?;
    assert_eq!(resets, [0.0], "a counter fell while they bought");
    world.settle_for(cost(CALLS.into())).await
}
