//! Streams of events, which open pages follow.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, Response};

use crate::support::{Browser, Node, PASSWORD};

/// As long as a machine may take that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

async fn stream(browser: &Browser) -> Result<Response> {
    let events = browser.request(Method::GET, "/panel/events").send().await?;
    ensure!(events.headers()["content-type"] == "text/event-stream", "{events:?}");
    Ok(events)
}

/// Waits until a stream names an event.
async fn hears(events: &mut Response, name: &str) -> Result<()> {
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
