//! Streams of events, which open pages follow.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::wait::eventually;
use reqwest::{Method, Response};

use crate::support::{Browser, Node, PASSWORD, Page};

/// As long as a machine may take that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn stream(browser: &Browser) -> Result<Response> {
    let events = browser.request(Method::GET, "/panel/events").send().await?;
    ensure!(events.headers()["content-type"] == "text/event-stream", "{events:?}");
    Ok(events)
}

/// Waits until a stream names an event.
pub async fn hears(events: &mut Response, name: &str) -> Result<()> {
    let mut heard = String::new();
    let hearing = async {
        loop {
            let chunk = events.chunk().await?.with_context(|| format!("the stream ended: {heard}"))?;
            heard.push_str(&String::from_utf8_lossy(&chunk));
            if heard.contains(&format!("event: {name}\ndata: ")) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, hearing).await?
}

/// The number of changes that a page is up to date with.
fn number(page: &Page) -> Result<String> {
    let rest = page.body.split_once(" data-changes=\"").context("the page carries no number")?.1;
    Ok(rest.chars().take_while(char::is_ascii_digit).collect())
}

/// Opens a stream as a page with this number does, for the first time or, after event `last`, again. Returns the stream with the name
/// and the number of its first event.
pub async fn first(browser: &Browser, since: &str, last: Option<&str>) -> Result<(Response, String, String)> {
    let mut request = browser.request(Method::GET, &format!("/panel/events?since={since}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut events = request.send().await?;
    let mut heard = String::new();
    while !heard.contains("\n\n") {
        let chunk = tokio::time::timeout(PATIENCE, events.chunk()).await??;
        heard.push_str(&String::from_utf8_lossy(&chunk.context("the stream ended")?));
    }
    let field = |name: &str| {
        let value = heard.lines().find_map(|line| line.strip_prefix(name));
        value.map(ToOwned::to_owned).with_context(|| format!("no field {name}in {heard}"))
    };
    let (word, number) = (field("event: ")?, field("id: ")?);
    Ok((events, word, number))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_hears_at_once_what_changed_before_its_stream_was_open() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    let mut shown = String::new();
    // A node that has just started still changes by itself.
    eventually("a page hears of no change that it shows", async || {
        shown = number(&browser.get("/panel").await?)?;
        Ok(first(&browser, &shown, None).await?.1 == "here")
    })
    .await?;
    node.process.control().ask(endpoint::StopSpending).await?;
    for unlike in [shown.as_str(), "", "unknown"] {
        let (mut events, word, _) = first(&browser, unlike, None).await?;
        ensure!(word == "changed", "{unlike}: {word}");
        // It is told once.
        hears(&mut events, "here").await?;
    }
    node.restart(&mut browser).await?;
    let newer = number(&browser.get("/panel").await?)?;
    let (before, after): (u64, u64) = (shown.parse()?, newer.parse()?);
    ensure!(after > before, "{before}, and {after} after a restart: a number comes a second time");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_connects_again_hears_what_changed_since_its_last_event() -> Result<()> {
    let (node, browser) = Node::opened().await?;
    let mut last: Option<String> = None;
    eventually("a page hears of no change that it has heard of", async || {
        let (_, word, number) = first(&browser, "older", last.as_deref()).await?;
        last = Some(number);
        Ok(word == "here")
    })
    .await?;
    node.process.control().ask(endpoint::StopSpending).await?;
    let (_, word, _) = first(&browser, "older", last.as_deref()).await?;
    ensure!(word == "changed", "{word}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_hears_again_and_again_that_the_node_is_there() -> Result<()> {
    let (_node, browser) = Node::opened().await?;
    let mut events = stream(&browser).await?;
    for _ in 0..3 {
        hears(&mut events, "here").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_hears_that_its_log_in_has_ended_and_nothing_more() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let mut other = node.browser()?;
    ensure!(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    let mut events = stream(&other).await?;
    hears(&mut events, "here").await?;
    ensure!(browser.post("/panel/settings/log-out-others", &[]).await?.status == 303);
    hears(&mut events, "ended").await?;
    let rest = tokio::time::timeout(PATIENCE, events.chunk()).await??;
    ensure!(rest.is_none(), "{rest:?}");
    ensure!(other.get("/panel").await?.status == 303);
    Ok(())
}
