//! Open pages: they follow what happens by one stream of events, and say so when the node is away.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CatalogQuery, Charge, ServiceFile},
};
use farthing_testnet::NodeProcess;
use farthing_tests::{nodes::search, upstream::Upstream, wait::eventually, world::service_file};
use parking_lot::Mutex;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use crate::{
    browser::{Browser, START_PAGE, Tools},
    keyboard::{node, opened},
    site::{PASSWORD, set_up},
};

/// An address that stays while the node behind it gets another port at each start.
struct Door {
    url: String,
    leads_to: Arc<Mutex<SocketAddr>>,
}

impl Door {
    async fn open(node: &NodeProcess) -> Result<Self> {
        let leads_to = Arc::new(Mutex::new(console_of(node).await?));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let console = node.control().ask(endpoint::ShowConsole).await?;
        let name = console.origin().rsplit_once(':').context("no port")?.0.to_owned();
        let url = format!("{name}:{}", listener.local_addr()?.port());
        let shared = Arc::clone(&leads_to);
        tokio::spawn(async move {
            while let Ok((mut outside, _)) = listener.accept().await {
                let address = *shared.lock();
                tokio::spawn(async move {
                    if let Ok(mut inside) = TcpStream::connect(address).await {
                        let _ = copy_bidirectional(&mut outside, &mut inside).await;
                    }
                });
            }
        });
        Ok(Self { url, leads_to })
    }

    async fn lead_to(&self, node: &NodeProcess) -> Result<()> {
        *self.leads_to.lock() = console_of(node).await?;
        Ok(())
    }
}

async fn console_of(node: &NodeProcess) -> Result<SocketAddr> {
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let port = console.url.trim_end_matches("/panel").rsplit(':').next().context("no port")?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port.parse()?)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_left_open_says_that_the_node_is_away_and_goes_on_when_it_is_back() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (mut node, _) = node(&folder).await?;
    let door = Door::open(&node).await?;
    let browser = Browser::open(&tools, &door.url, true).await?;
    set_up(&browser, &node).await?;
    ensure!(!away(&browser).await?, "the node is there");
    node.stop().await?;
    eventually("the page says that the node is away", async || away(&browser).await).await?;

    node.restart(Vec::new()).await?;
    door.lead_to(&node).await?;
    eventually("the page has found the node again", async || Ok(!away(&browser).await?)).await?;
    // Still logged in, and what happens now is followed.
    offer(&node, &Upstream::start().await?, "Begun later").await?;
    browser.wait_for("Begun later").await?;
    browser.goto("/panel/settings").await?;
    browser.wait_for("Only this browser is logged in").await?;
    browser.close().await
}

/// Notes after how long the page says that the node is away, by the page's own clock: whatever the test waits for beside it.
const NOTE_AWAY: &str = "const away = document.getElementById('away'), from = performance.now();
    new MutationObserver(() => { if (!away.hidden) window.saidAfter ??= performance.now() - from; })
        .observe(away, { attributes: true });";
/// Five seconds after the last word of the node, with room for a busy machine.
const SAID_WITHIN_MS: f64 = 20_000.0;

#[tokio::test(flavor = "multi_thread")]
async fn a_page_left_open_says_since_when_a_node_that_hangs_does_not_answer() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    ensure!(!away(&browser).await?, "the node is there");
    browser.client.execute(NOTE_AWAY, Vec::new()).await?;
    // Its connections stay open: nothing but its silence tells.
    node.freeze()?;
    let said = eventually("the page says since when", async || {
        let text = "return document.getElementById('away').innerText";
        let text = browser.client.execute(text, Vec::new()).await?;
        let text = text.as_str().unwrap_or_default().to_owned();
        Ok(away(&browser).await? && text.contains("has not answered since") && text.contains(':'))
    })
    .await;
    node.thaw()?;
    said?;
    let after = browser.client.execute("return window.saidAfter", Vec::new()).await?;
    ensure!(after.as_f64().is_some_and(|after| after <= SAID_WITHIN_MS), "said after {after} ms");
    eventually("the page has found the node again", async || Ok(!away(&browser).await?)).await?;
    browser.close().await
}

/// Has the clock of the browser's machine set back at each look.
const SET_BACK: &str = "let now = Date.now(); Date.now = () => (now -= 60000);";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_clock_is_set_back_says_that_a_node_that_hangs_does_not_answer() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.client.execute(SET_BACK, Vec::new()).await?;
    node.freeze()?;
    let said = eventually("the page says so", async || away(&browser).await).await;
    node.thaw()?;
    said?;
    browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_form_says_that_its_log_in_has_ended_and_keeps_what_was_typed() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.goto("/panel/finance/send").await?;
    browser.fill(&[("amount", "1.25")]).await?;
    let (form, other) = (browser.client.window().await?, browser.client.new_window(true).await?);
    browser.client.switch_to_window(other.handle).await?;
    // Another log-in ends the one of before.
    browser.goto("/panel").await?;
    browser.client.delete_all_cookies().await?;
    browser.goto("/panel/login").await?;
    browser.fill(&[("password", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Home").await?;
    browser.goto("/panel/settings").await?;
    browser.press("form[action='/panel/settings/log-out-others'] button").await?;
    browser.wait_for_address("done=logged-out").await?;
    browser.client.switch_to_window(form).await?;
    let ended =
        "return document.getElementById('ended').hidden ? '' : document.getElementById('amount').value";
    eventually("the form says so, and has what was typed", async || {
        Ok(browser.client.execute(ended, Vec::new()).await? == "1.25")
    })
    .await?;
    browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_sent_after_the_cookies_were_deleted_is_sent_by_a_button_after_the_log_in() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    const SAVE: &str = "form[action='/panel/finance/limits'] button.primary";
    let price_max = async || -> Result<String> {
        Ok(node.control().ask(endpoint::Spending).await?.limits.price_max.to_string())
    };
    let before = price_max().await?;
    browser.goto("/panel/finance/limits").await?;
    browser.fill(&[("price_max", "0.07")]).await?;
    browser.client.delete_all_cookies().await?;
    browser.press(SAVE).await?;
    browser.wait_for("What you typed is kept").await?;
    browser.fill(&[("password", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Your form was not sent").await?;
    ensure!(price_max().await? == before, "nothing is sent by itself");
    browser.press(SAVE).await?;
    eventually("the form is sent", async || Ok(price_max().await? == "0.07")).await?;
    browser.close().await
}

async fn away(browser: &Browser) -> Result<bool> {
    let shown = "return !document.getElementById('away').hidden";
    Ok(browser.client.execute(shown, Vec::new()).await?.as_bool() == Some(true))
}

async fn offer(node: &NodeProcess, upstream: &Upstream, name: &str) -> Result<()> {
    let file = ServiceFile { name: name.to_owned(), ..service_file(&upstream.url(), Charge::Success) };
    node.control().tell(endpoint::AddApi, &file).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_follows_by_one_stream_of_events() -> Result<()> {
    let Some((browser, node, origin, _folder)) = opened().await? else { return Ok(()) };
    // A page opens its stream after it is loaded: only one that has none, and ends the one before, asks for nothing later.
    browser.client.goto(START_PAGE).await?;
    browser.requests().await?;
    browser.goto("/panel").await?;
    let upstream = Upstream::start().await?;
    for name in ["One of two", "Two of two"] {
        offer(&node, &upstream, name).await?;
        browser.wait_for(name).await?;
    }
    let requests = browser.requests().await?;
    let streams = requests.iter().filter(|url| url.contains("/panel/events?")).count();
    ensure!(streams == 1, "{requests:?}");
    ensure!(requests.iter().all(|url| url.starts_with(&origin) || url.starts_with("data:")), "{requests:?}");
    browser.end().await
}

/// Keeps pages that were fetched from being used, until they are let go.
const HOLD: &str = "const gate = new Promise((resolve) => { window.letGo = resolve; });
    const onload = Object.getOwnPropertyDescriptor(XMLHttpRequestEventTarget.prototype, 'onload');
    Object.defineProperty(XMLHttpRequest.prototype, 'onload', { set(use) {
        onload.set.call(this, () => { window.isHeld = true; gate.then(() => use.call(this)); }); } });
    const send = XMLHttpRequest.prototype.send;
    XMLHttpRequest.prototype.send = function (...body) { window.sent += 1; send.apply(this, body); };";
/// Lets them go, and counts the pages that are fetched for it at once: before any later event of the stream is heard.
const LET_GO: &str = "window.sent = 0; window.letGo();
    return new Promise((resolve) => setTimeout(() => resolve(window.sent), 0));";
/// The node counts its catalog at every fifth look for changes: after so many it has told all that happened before.
const LOOKS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_a_newer_page_is_on_its_way_is_seen_as_well() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.client.execute(HOLD, Vec::new()).await?;
    let upstream = Upstream::start().await?;
    offer(&node, &upstream, "Told at first").await?;
    eventually("a newer page is on its way", async || {
        Ok(browser.client.execute("return window.isHeld === true", Vec::new()).await? == true)
    })
    .await?;
    offer(&node, &upstream, "Told meanwhile").await?;
    let everything = CatalogQuery::default();
    eventually("the catalog has both", async || Ok(search(&node, &everything).await?.total == 2)).await?;
    browser.heard().await?;
    let mut looks = 0;
    eventually("the page has heard of both", async || {
        looks += browser.heard().await?.len();
        Ok(looks > LOOKS)
    })
    .await?;
    let sent = browser.client.execute(LET_GO, Vec::new()).await?;
    ensure!(sent == 1, "pages that were fetched once more: {sent}");
    browser.wait_for("Told meanwhile").await?;
    browser.end().await
}
