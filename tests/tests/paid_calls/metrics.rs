//! What a node counts: named in its reference, and right while many buy.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    pin::pin,
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    calls::{cost, expect_served, setting},
    wait::eventually,
    world::{Setup, World},
};
use futures::{StreamExt, TryStreamExt, stream};

/// Callers at once, and calls of each.
const CALLERS: usize = 64;
const CALLS: usize = 512;

/// The text of `/metrics`.
async fn scraped(node: &NodeProcess) -> Result<String> {
    let url = format!("{}/metrics", node.status().await?.gateway_url);
    let text = node.https_client()?.get(url).send().await?.error_for_status()?.text().await?;
    ensure!(text.ends_with("\n# EOF\n"), "it ends in the middle: {text}");
    Ok(text)
}

/// Names and values: `farthing_calls_total{side="owner",outcome="free"}` and `7`.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' ')).collect()
}

/// Tells whether a sample is a counter's or a histogram's.
fn only_grows(sample: &str) -> bool {
    let name = sample.split('{').next().unwrap_or_default();
    ["_total", "_count", "_bucket", "_sum"].iter().any(|kind| name.ends_with(kind))
}

/// Type, labels and meaning.
type Described = (String, BTreeSet<String>, String);

/// What a node says of what it counts, by name.
fn told(text: &str) -> Result<BTreeMap<String, Described>> {
    let comment = |line: &str, of: &str| {
        let (name, rest) = line.strip_prefix(of)?.split_once(' ')?;
        Some((name.to_owned(), rest.trim_end_matches('.').to_owned()))
    };
    let kinds: BTreeMap<_, _> = text.lines().filter_map(|line| comment(line, "# TYPE ")).collect();
    let helps: BTreeMap<_, _> = text.lines().filter_map(|line| comment(line, "# HELP ")).collect();
    let mut labels = BTreeMap::<String, BTreeSet<String>>::new();
    for sample in samples(text).into_keys() {
        let (name, pairs) = sample.trim_end_matches('}').split_once('{').unwrap_or((sample, ""));
        let suffixes = ["", "_total", "_info", "_bucket", "_sum", "_count"];
        let mut families = suffixes.into_iter().filter_map(|suffix| name.strip_suffix(suffix));
        let family = families.find(|family| kinds.contains_key(*family));
        let family = family.with_context(|| format!("{sample} has no type"))?;
        let names = pairs.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        labels.entry(family.to_owned()).or_default().extend(names.filter(|name| name != "le"));
    }
    let described = |(name, kind): (String, String)| -> Result<(String, Described)> {
        let help = helps.get(&name).with_context(|| format!("{name} has no help"))?;
        let labels = labels.get(&name).with_context(|| format!("{name} has no sample"))?;
        Ok((name, (kind, labels.clone(), help.clone())))
    };
    kinds.into_iter().map(described).collect()
}

/// The rows of a table of docs/metrics.md whose heading begins so, each with the marks of code taken off.
fn rows(heading: &str) -> Result<Vec<Vec<String>>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let text = std::fs::read_to_string(file)?;
    let table = text.split(heading).nth(1).with_context(|| format!("no table {heading}"))?;
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    Ok(rows
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect())
}

#[tokio::test]
async fn the_reference_names_every_metric_with_its_type_labels_and_meaning_and_no_other() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let mut counted = BTreeMap::new();
    let mut outcomes = BTreeSet::new();
    eventually("both sides have counted the call", async || {
        for node in [&world.owner, &world.consumer] {
            let text = scraped(node).await?;
            counted.extend(told(&text)?);
            let ends = samples(&text)
                .into_keys()
                .filter_map(|name| name.split_once("outcome=\"")?.1.split('"').next());
            outcomes.extend(ends.map(str::to_owned));
        }
        Ok(["farthing_call_served_seconds", "farthing_wallet_usdc"]
            .iter()
            .all(|name| counted.contains_key(*name)))
    })
    .await?;
    let described = |row: Vec<String>| {
        let [name, kind, labels, meaning] = <[String; 4]>::try_from(row).ok()?;
        let labels = labels.split_whitespace().map(str::to_owned).collect();
        Some((name, (kind, labels, meaning)))
    };
    let reference: Option<BTreeMap<String, Described>> =
        rows("| name | type | labels | meaning |\n")?.into_iter().map(described).collect();
    let reference = reference.context("a row has not four cells")?;
    for (name, metric) in &counted {
        ensure!(reference.get(name) == Some(metric), "docs/metrics.md needs a row of {name}: {metric:?}");
    }
    for name in reference.keys() {
        ensure!(counted.contains_key(name), "no node has {name}, which docs/metrics.md names");
    }
    let named: BTreeSet<String> =
        rows("| outcome | meaning |\n")?.into_iter().filter_map(|row| row.into_iter().next()).collect();
    ensure!(named == outcomes, "docs/metrics.md has {named:?}, a node {outcomes:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_scraped_while_64_callers_buy_never_falls_and_ends_exact() -> Result<()> {
    let room = ["gateway.connections_max", "gateway.connections_per_ip_max"].map(|name| setting(name, "400"));
    let world = World::with(Setup { consumer_settings: room.concat(), ..Setup::default() }).await?;
    let mut before = BTreeMap::<String, f64>::new();
    let mut scrapes = 0;
    let calls = stream::iter(0..CALLS).map(|_| world.get("/ok")).buffer_unordered(CALLERS);
    let mut buying = pin!(calls.try_collect::<Vec<_>>());
    let answers = loop {
        tokio::select! {
            answers = &mut buying => break answers?,
            text = scraped(&world.consumer) => {
                let text = text?;
                for (name, value) in samples(&text).into_iter().filter(|(name, _)| only_grows(name)) {
                    let value: f64 = value.parse().with_context(|| format!("{name} {value}"))?;
                    let earlier = before.insert(name.to_owned(), value).unwrap_or_default();
                    ensure!(value >= earlier, "{name} fell from {earlier} to {value}");
                }
                scrapes += 1;
            }
        }
    };
    ensure!(scrapes > 0, "nothing was scraped");
    for answer in &answers {
        expect_served(answer)?;
    }
    let calls = u64::try_from(CALLS)?;
    let charged = cost(calls).to_string();
    for (node, side) in [(&world.consumer, "consumer"), (&world.owner, "owner")] {
        let expected = [
            (format!("farthing_calls_total{{side=\"{side}\",outcome=\"charged\"}}"), calls.to_string()),
            (format!("farthing_charged_usdc_total{{side=\"{side}\"}}"), charged.clone()),
            (format!("farthing_channel_spent_usdc{{side=\"{side}\"}}"), charged.clone()),
            (format!("farthing_channel_reserved_usdc{{side=\"{side}\"}}"), "0.0".to_owned()),
        ];
        let mut last = String::new();
        eventually("all is counted", async || {
            last = scraped(node).await?;
            let samples = samples(&last);
            Ok(expected.iter().all(|(name, value)| samples.get(name.as_str()) == Some(&value.as_str())))
        })
        .await
        .with_context(|| format!("{side}: {expected:?} in {last}"))?;
        let went = |way: &str| -> Result<usize> {
            let name = format!("farthing_network_requests_total{{side=\"{side}\",way=\"{way}\"}}");
            Ok(samples(&last).get(name.as_str()).context(name.clone())?.parse()?)
        };
        ensure!(went("direct")? >= CALLS && went("relayed")? == 0, "{side}: {last}");
    }
    world.settle_for(cost(calls)).await
}
