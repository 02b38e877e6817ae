//! From `localhost`, which people type and all programs of the machine share, to the node's own name.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use reqwest::{Method, header};

use crate::support::{Browser, Node, PASSWORD};

/// A browser that stays at the address that people type.
async fn at_localhost(node: &Node) -> Result<Browser> {
    let console = node.console().await?;
    Browser::of(&node.process, console.url.trim_end_matches("/panel"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_at_localhost_leads_to_the_nodes_own_name_and_says_nothing_else() -> Result<()> {
    let node = Node::start().await?;
    node.set_up().await?;
    let mut typed = at_localhost(&node).await?;
    let there = format!("data-there=\"{}\"", node.url);
    for path in ["/", "/panel", "/panel/catalog?q=earth", "/panel/finance/send"] {
        let page = typed.get(path).await?;
        ensure!(page.status == 200 && page.body.contains(&there), "{path}: {page:?}");
        let policy = page.header("content-security-policy");
        ensure!(policy.contains(&format!("connect-src 'self' {};", node.url)), "{policy}");
    }
    let page = typed.get("/panel/catalog?q=earth").await?;
    let stay = "url=/panel/stay?next=%2Fpanel%2Fcatalog%3Fq%3Dearth\"></noscript>";
    ensure!(page.body.contains(stay), "without scripts one goes on here: {page:?}");
    let label = node.url.trim_start_matches("https://").split('.').next().context("no name")?;
    ensure!(label.len() == 32 && label.bytes().all(|byte| byte.is_ascii_hexdigit()), "{label}");
    // A certificate that did not name it would have been refused.
    let mut there = node.browser()?;
    let page = there.get("/panel/catalog?q=earth").await?;
    ensure!(page.header("location") == "/panel/login?next=%2Fpanel%2Fcatalog%3Fq%3Dearth", "{page:?}");
    let asked = async |origin: &str| {
        let request = there.request(Method::GET, "/reached").header(header::ORIGIN, origin);
        let answer = request.send().await?;
        Ok::<_, anyhow::Error>(answer.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN).cloned())
    };
    ensure!(asked("https://localhost:3002").await?.is_some());
    for origin in ["http://localhost:3002", "https://evil.example", "https://localhost.evil.example", "null"]
    {
        ensure!(asked(origin).await?.is_none(), "{origin} learns that the console is there");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_stays_the_same_over_restarts() -> Result<()> {
    let mut node = Node::start().await?;
    let name = |url: &str| url.rsplit_once(':').map(|(name, _)| name.to_owned());
    node.process.stop().await?;
    node.process.restart(Vec::new()).await?;
    ensure!(name(node.console().await?.origin()) == name(&node.url), "what a browser stored is lost");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_name_is_not_found_localhost_goes_on_and_every_change_asks_for_the_password() -> Result<()>
{
    let node = Node::start().await?;
    node.set_up().await?;
    let mut stays = at_localhost(&node).await?;
    let page = stays.get("/panel/stay?next=%2Fpanel%2Fcatalog").await?;
    ensure!(page.status == 200 && page.body.contains("<h1>Log in</h1>"), "{page:?}");
    ensure!(page.field("next")? == "/panel/catalog", "{page:?}");
    let fields = [("password", PASSWORD), ("next", "/panel/catalog")];
    let page = stays.post("/panel/login", &fields).await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/catalog", "{page:?}");
    ensure!(stays.key.is_none() && stays.device.is_some(), "a key is handed over, or no device is known");
    ensure!(stays.get("/panel").await?.body.contains("<nav class=\"places\""), "it is logged in here");
    let page = stays.get("/panel/stay?next=%2Fpanel%2Fcatalog").await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/catalog", "{page:?}");
    const STOP: &str = "/panel/finance/stop";
    let stopped = async || -> Result<bool> {
        let state = node.process.control().ask(endpoint::Spending).await?;
        Ok(state.stopped.is_some())
    };
    ensure!(stays.press(STOP, &[]).await?.asks_for_password() && !stopped().await?);
    let page = stays.press(STOP, &[("console_password", PASSWORD)]).await?;
    ensure!(page.status == 303 && stopped().await?, "{page:?}");
    Ok(())
}

/// Any page may open an address of the console, and any server of this machine set a cookie of `localhost`.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_keeps_a_browser_at_localhost() -> Result<()> {
    let node = Node::start().await?;
    let there = format!("data-there=\"{}\"", node.url);
    let led = async |browser: &mut Browser, path: &str| -> Result<()> {
        let page = browser.get(path).await?;
        let policy = page.header("content-security-policy");
        ensure!(page.status == 200 && page.body.contains(&there), "{path} leads nowhere: {page:?}");
        ensure!(policy.contains(&format!("connect-src 'self' {};", node.url)), "{path}: {policy}");
        Ok(())
    };
    let mut lured = at_localhost(&node).await?;
    // Neither before the console is set up nor afterwards.
    for round in ["before", "after"] {
        led(&mut lured, "/panel/stay?next=%2Fpanel%2Ffinance").await.context(round)?;
        for cookie in ["farthing-stay", "__Host-farthing-console"] {
            lured.cookies.push((cookie.to_owned(), "1".to_owned()));
        }
        for path in ["/panel", "/panel/login", "/panel/setup", "/panel/finance", "/panel/stay"] {
            led(&mut lured, path).await.context(round)?;
        }
        if round == "before" {
            node.set_up().await?;
        }
    }
    Ok(())
}
