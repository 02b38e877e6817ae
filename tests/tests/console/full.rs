//! A node that knows 5,000 services and made 100,000 calls, or a million: every page is there, small, and shows a part of what is
//! many.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CatalogQuery, Charge, HistoryEntry, SeriesRange},
};
use farthing_os::clock;
use farthing_tests::{
    full::{self, BETWEEN_CALLS_SECS, LISTINGS},
    upstream::Upstream,
    world::service_file,
};

use crate::{
    pages::{HTML_BYTES_MAX, pages},
    support::{Browser, Node, set_up},
};

/// Rows of tables and items of lists on one page; a longer one is read by nobody.
const ROWS_MAX: usize = 250;
/// As the route says.
const CSV_LINES_MAX: usize = 20_000;
/// Pages whose lists are long on such a node.
const LONG: [&str; 20] = [
    "/panel/catalog?q=live+earthquakes",
    "/panel/catalog?q=global&category=science&sort=price",
    "/panel/catalog?page=40",
    "/panel/catalog?q=zzzzzz",
    "/panel/finance/history?kind=bought&state=failed",
    "/panel/finance/history?kind=served",
    "/panel/finance/history?from=2026-01-01",
    // Nothing fits: no page looks through everything for it.
    "/panel/finance/history?kind=bought&state=charged",
    "/panel/finance/history?service=0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b",
    "/panel/activity?outcome=answered",
    "/panel/activity?service=0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b",
    "/panel/activity?secret=nobody",
    "/panel/finance/history?group=service",
    "/panel/finance/history?group=day&kind=bought",
    "/panel/help/console",
    "/panel/help/security",
    "/panel?range=hour",
    "/panel?range=month",
    "/panel?range=year",
    "/panel/finance?range=month",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_full_node_is_there_and_small_and_its_lists_are_bounded() -> Result<()> {
    let mut node = Node::with(vec![("network.name".to_owned(), full::NETWORK.to_owned())]).await?;
    let wallet = node.process.status().await?.address.0;
    node.process.stop().await?;
    let (calls, began) = (full::calls()?, Instant::now());
    full::fill(node.process.data_dir(), wallet, calls).await?;
    println!("filled with {LISTINGS} listings and {calls} calls in {:?}", began.elapsed());
    let began = Instant::now();
    node.process.restart(Vec::new()).await?;
    println!("started in {:?}", began.elapsed());
    let upstream = Upstream::start().await?;
    let own = node
        .process
        .control()
        .tell(endpoint::AddApi, &service_file(&upstream.url(), Charge::Success))
        .await?;

    let mut browser = set_up(&node.process).await?;
    let (stranger, owner) = stranger(&node).await?;
    let services =
        ["overview", "samples", "versions"].map(|part| format!("/panel/catalog/{}?part={part}", own.id));
    let owns = ["", "/edit", "/operations"].map(|part| format!("/panel/apis/{}{part}", own.id));
    let others = ["reference", "sandbox", "sdk"].map(|part| format!("/panel/catalog/{}/{part}", own.id));
    let longer = LONG.iter().map(ToString::to_string);
    let mut slowest = (Duration::ZERO, String::new());
    for path in pages()?.into_iter().chain(longer).chain(services).chain(owns).chain(others) {
        let began = Instant::now();
        judge(&mut browser, &path).await?;
        slowest = slowest.max((began.elapsed(), path));
    }
    println!("the slowest page took {:?}: {}", slowest.0, slowest.1);
    judge(&mut browser, &format!("/panel/owners/{owner}")).await?;
    // Its owner is nowhere: the page says what is known of it, and what is not.
    let page = browser.get(&format!("/panel/catalog/{stranger}")).await?;
    ensure!(page.status == 200 && page.body.len() <= HTML_BYTES_MAX, "{page:?}");

    let year = node.process.control().ask(endpoint::Series.with("range", SeriesRange::Year)).await?;
    ensure!(year.bought.outcomes.failed == calls, "{:?}", year.bought);
    has_its_oldest_calls(&node, &mut browser, calls).await?;
    let home = browser.get("/panel?range=month").await?;
    ensure!(home.body.contains("<path class=\"bars failed\""), "{home:?}");

    let csv = browser.get("/panel/finance/history.csv").await?;
    let csv = if csv.status == 303 { browser.get(csv.header("location")).await? } else { csv };
    let lines = csv.body.lines().count();
    ensure!(csv.status == 200 && (1_000..=CSV_LINES_MAX + 2).contains(&lines), "{lines} lines");
    let json = browser.get("/panel/finance/history.json?kind=bought").await?;
    let entries: Vec<HistoryEntry> = serde_json::from_str(&json.body)?;
    ensure!(json.header("content-disposition").ends_with("farthing-history.json\""), "{:?}", json.headers);
    ensure!((1_000..=CSV_LINES_MAX).contains(&entries.len()), "{} entries", entries.len());
    Ok(())
}

/// The first thousand of the calls are there, in the history and in the log.
async fn has_its_oldest_calls(node: &Node, browser: &mut Browser, calls: u64) -> Result<()> {
    let until_secs = clock::now_secs() - (calls - 1_000) * BETWEEN_CALLS_SECS;
    let control = node.process.control();
    let history = control.ask(endpoint::History.with("limit", 500).with("to", until_secs)).await?;
    let log = control.ask(endpoint::Calls.with("limit", 500).with("to", until_secs)).await?;
    ensure!(history.entries.len() == 500 && log.calls.len() == 500, "{history:?}\n{log:?}");
    let oldest = full::call_id(0);
    let found = control.ask(endpoint::Calls.with("limit", 1).with("call_id", oldest)).await?;
    ensure!(
        found.calls.len() == 1 && found.next.is_none(),
        "found without looking through the others: {found:?}"
    );
    for page in ["finance/history", "activity"] {
        let page = browser.get(&format!("/panel/{page}?to={until_secs}")).await?;
        ensure!(page.status == 200 && page.body.matches("<tr").count() > 20, "{page:?}");
    }
    Ok(())
}

async fn judge(browser: &mut Browser, path: &str) -> Result<()> {
    let page = browser.get(path).await?;
    let expected = if path.ends_with("here") { 404 } else { 200 };
    ensure!(page.status == expected, "{path}: {page:?}");
    ensure!(page.body.len() <= HTML_BYTES_MAX, "{path} has {} bytes", page.body.len());
    let rows = page.body.matches("<tr").count() + page.body.matches("<li").count();
    ensure!(rows <= ROWS_MAX, "{path} has {rows} rows");
    Ok(())
}

/// One of the services whose owners are not there, and its owner's wallet.
async fn stranger(node: &Node) -> Result<(String, String)> {
    let everything = CatalogQuery::default();
    let all = node.process.control().tell(endpoint::CatalogSearch, &everything).await?;
    ensure!(all.total >= LISTINGS && all.hits.len() < 500, "{} of {}", all.hits.len(), all.total);
    let query = CatalogQuery { words: "earthquakes".to_owned(), limit: Some(1), ..CatalogQuery::default() };
    let page = node.process.control().tell(endpoint::CatalogSearch, &query).await?;
    let hit = page.hits.first().context("nothing is found")?;
    Ok((hit.id.to_string(), hit.owner.to_string()))
}
