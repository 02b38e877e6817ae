//! A clock that jumps while the console is used: nobody stays logged in for it, nothing typed is lost, and open pages go on.

use anyhow::{Result, ensure};
use farthing_tests::{clock::Clock, wait::eventually};

use crate::{
    live::{first, hears, stream},
    pages::pages,
    support::{Browser, Node, PASSWORD},
};

const HOUR_SECS: i64 = 3_600;
const DAY_SECS: i64 = 24 * HOUR_SECS;
const LIMITS: &str = "/panel/finance/limits";
const RESUME: &str = "/panel/finance/resume";
const STOP: &str = "/panel/finance/stop";
/// Looks in a row that find nothing new.
const QUIET_LOOKS: u32 = 3;

/// A node whose clock a test sets, and a browser that has set its console up.
async fn opened(folder: &tempfile::TempDir) -> Result<(Clock, Node, Browser)> {
    let clock = Clock::ahead(folder.path(), 0).await?;
    let node = Node::in_environment(Vec::new(), clock.environment()).await?;
    let browser = node.set_up().await?;
    Ok((clock, node, browser))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_typed_before_the_clock_was_set_back_is_asked_for_again_and_times_ahead_say_so()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let (clock, _node, mut browser) = opened(&folder).await?;
    clock.set(HOUR_SECS)?;
    ensure!(browser.press(STOP, &[]).await?.status == 303);
    ensure!(browser.press(RESUME, &[]).await?.asks_for_password(), "it was typed an hour ago");
    ensure!(browser.press(RESUME, &[("console_password", PASSWORD)]).await?.status == 303);
    ensure!(browser.press(STOP, &[]).await?.status == 303);
    clock.set(0)?;
    let page = browser.get(LIMITS).await?;
    ensure!(page.body.contains("in the future"), "{page:?}");
    ensure!(browser.press(RESUME, &[]).await?.asks_for_password(), "nobody knows when it was typed");
    ensure!(browser.press(RESUME, &[("console_password", PASSWORD)]).await?.status == 303);
    ensure!(browser.press(STOP, &[]).await?.status == 303);
    ensure!(browser.press(RESUME, &[]).await?.status == 303, "it was typed a moment ago");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_a_day_ends_the_log_in_and_keeps_what_was_typed_and_every_page_is_there()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let (clock, _node, mut browser) = opened(&folder).await?;
    let mut events = stream(&browser).await?;
    hears(&mut events, "here").await?;
    clock.set(DAY_SECS)?;
    hears(&mut events, "ended").await?;
    let page = browser.press(LIMITS, &[("price_max", "0.5")]).await?;
    ensure!(page.status == 403 && page.body.contains("What you typed is kept"), "{page:?}");
    ensure!(browser.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    for secs in [DAY_SECS, 0, -DAY_SECS] {
        clock.set(secs)?;
        for path in pages()? {
            let page = browser.get(&path).await?;
            let expected = if path.ends_with("here") { 404 } else { 200 };
            ensure!(page.status == expected, "{path} at {secs} s: {page:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_hears_of_a_call_after_the_clock_was_set_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (clock, node, browser) = opened(&folder).await?;
    let client = node.process.https_client()?;
    let url = format!("{}/internal/call", node.process.status().await?.gateway_url);
    let secret = node.process.secret().await?;
    let refused = async || -> Result<()> {
        let answer = client.post(&url).bearer_auth(&secret).body("no call").send().await?;
        ensure!(answer.status() == 400, "{answer:?}");
        Ok(())
    };
    // Where there is one call, a look also tells whether there is another one below it.
    refused().await?;
    clock.set(HOUR_SECS)?;
    refused().await?;
    clock.set(0)?;
    let (mut last, mut quiet): (Option<String>, u32) = (None, 0);
    eventually("a page hears of nothing more", async || {
        let (_, word, number) = first(&browser, "older", last.as_deref()).await?;
        last = Some(number);
        quiet = if word == "here" { quiet + 1 } else { 0 };
        Ok(quiet == QUIET_LOOKS)
    })
    .await?;
    // The log shows it below the one that is dated an hour ahead.
    refused().await?;
    let (_, word, _) = first(&browser, "older", last.as_deref()).await?;
    ensure!(word == "changed", "{word}");
    Ok(())
}
