//! x402 servers on their pages: asked before they are added, shown as what they are, called, priced and removed.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{NewX402Server, X402Server},
};
use farthing_tests::{
    asks::asks,
    command::{Ran, path},
    world::World,
};
use farthing_values::Usdc;
use serde_json::json;
use tokio::process::Command;

use crate::{
    pages::HTML_BYTES_MAX,
    support::{Browser, Node, set_up},
};

const PAGE: &str = "/panel/x402";
const ADD: &str = "/panel/x402/add";
const MICROS: u64 = 2_000;
/// Words of a server that would like to be more than text.
const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}<b>";

async fn servers(world: &World) -> Result<Vec<X402Server>> {
    Ok(world.consumer.control().ask(endpoint::X402Servers).await?)
}

/// A world, a server that asks [`MICROS`] for everything, and a browser at the consumer's console.
async fn market(description: &str) -> Result<(World, String, Browser)> {
    let world = World::start().await?;
    let url = asks(world.chain.token, MICROS, description).await?;
    let browser = set_up(&world.consumer).await?;
    Ok((world, url, browser))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_shown_before_it_is_added_and_only_the_key_adds_it() -> Result<()> {
    let (world, url, mut browser) = market("Tides").await?;
    let empty = browser.get(PAGE).await?;
    ensure!(empty.status == 200 && empty.body.contains("You have added no x402 servers yet"), "{empty:?}");
    ensure!(
        browser.get("/panel/catalog").await?.body.contains("href=\"/panel/x402\""),
        "the way to the page"
    );

    let fields = [("url", url.as_str()), ("max_price", "0.01")];
    for path in [PAGE, ADD] {
        let page = browser.thief().press(path, &fields).await?;
        ensure!(page.asks_for_password(), "{path}: {page:?}");
    }
    let page = browser.press(PAGE, &fields).await?;
    ensure!(page.status == 200, "{page:?}");
    for words in [
        "Add this x402 server?",
        "0.002 USDC",
        "<code><bdi>eip155:31337</bdi></code>",
        "“<bdi>Tides</bdi>”",
        "0x0707070707070707070707070707070707070707",
        "0.01 USDC",
    ] {
        ensure!(page.body.contains(words), "no {words} in {}", page.body);
    }
    ensure!(servers(&world).await?.is_empty(), "it is only shown");

    let page = browser.post_and_follow(ADD, &fields).await?;
    let server = servers(&world).await?.pop().context("it was not added")?;
    ensure!(server.max_price.map(|most| most.0) == Some(Usdc::from_micros(10_000)), "{server:?}");
    let id = server.id.to_string();
    for words in ["Server added.", id.as_str(), "0.002 USDC", "Tides", "No calls yet", "--max-price 0.01"] {
        ensure!(page.body.contains(words), "no {words} in {}", page.body);
    }
    let list = browser.get(PAGE).await?;
    ensure!(
        list.body.contains("“<bdi>Tides</bdi>”") && list.body.contains("on <bdi>eip155:31337"),
        "{list:?}"
    );
    ensure!(
        list.body.contains(&format!("href=\"{PAGE}/{id}\"")) && list.body.contains("1 server"),
        "{list:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_added_is_refused_in_words_beside_its_field() -> Result<()> {
    let (world, url, mut browser) = market("Tides").await?;
    for (address, price, field, words) in [
        ("http://127.0.0.1:9/", "0.01", "url", "does not answer"),
        ("data.example", "0.01", "url", "must look like"),
        ("http://169.254.169.254/", "0.01", "url", "no server can be there"),
        ("http://user:word@127.0.0.1:9/", "0.01", "url", "without user name"),
        (url.as_str(), "0.001999", "max-price", "asks 0.002 USDC"),
        (url.as_str(), "much", "max-price", "not an amount of USDC"),
        (url.as_str(), "", "max-price", "is missing"),
    ] {
        let page = browser.press(PAGE, &[("url", address), ("max_price", price)]).await?;
        ensure!(page.status == 422, "{address} {price}: {page:?}");
        let (_, beside) = page.body.split_once(&format!("id=\"{field}-problem\"")).context("no problem")?;
        let beside = beside.split_once("</p>").map_or(beside, |(beside, _)| beside);
        ensure!(beside.contains(words) && beside.contains("Nothing was added."), "{words}: {beside}");
        ensure!(page.body.contains("aria-invalid=\"true\""), "{words}");
        ensure!(page.body.contains(&format!("value=\"{address}\"")), "what was typed is still there");
    }
    ensure!(servers(&world).await?.is_empty());
    // At the limit.
    let page = browser.press(PAGE, &[("url", url.as_str()), ("max_price", "0.002")]).await?;
    ensure!(page.status == 200 && page.body.contains("Add this x402 server?"), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_server_are_text_and_pages_of_many_servers_stay_small() -> Result<()> {
    let (world, url, mut browser) = market(&format!("{HOSTILE}{}", "x".repeat(400))).await?;
    let control = world.consumer.control();
    let long = "/שלום".repeat(60);
    for number in 0..17 {
        let new = NewX402Server { url: format!("{url}/{number}{long}"), max_price: None };
        control.tell(endpoint::AddX402Server, &new).await?;
    }
    let id = servers(&world).await?.pop().context("no server")?.id;
    let shown = browser.press(PAGE, &[("url", url.as_str()), ("max_price", "1")]).await?;
    let mut pages = vec![("the offer".to_owned(), shown)];
    for path in
        [PAGE.to_owned(), format!("{PAGE}?page=2"), format!("{PAGE}/{id}"), format!("{PAGE}/{id}/remove")]
    {
        let page = browser.get(&path).await?;
        pages.push((path, page));
    }
    for (path, page) in &pages {
        ensure!(page.status == 200 && page.body.len() <= HTML_BYTES_MAX, "{path}: {page:?}");
        ensure!(!page.body.contains("<script>alert") && !page.body.contains('\u{202e}'), "{path}: {page:?}");
        ensure!(!page.body.contains(&"x".repeat(301)), "{path}: {page:?}");
    }
    let (_, offer) = &pages[0];
    ensure!(offer.body.contains("&#60;script&#62;alert(1)"), "it is shown as text: {offer:?}");
    ensure!(pages[1].1.body.contains("17 servers") && pages[1].1.body.contains("rel=\"next\""));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_server_lead_to_its_page_until_it_is_removed() -> Result<()> {
    let (world, url, mut browser) = market("Tides").await?;
    let new = NewX402Server { url: url.clone(), max_price: None };
    let id = world.consumer.control().tell(endpoint::AddX402Server, &new).await?.id.to_string();
    let place = format!("{PAGE}/{id}");
    // It costs more than the call allows. The log has it nevertheless.
    let call = json!({ "api_id_public": id, "method": "GET", "path": "/v1/tides", "max_price": "0.000001" });
    let answer = world.call(&call).await?;
    ensure!(answer.problem() == "price-above-cap", "{answer:?}");
    let log = browser.get("/panel/activity").await?;
    let (_, rest) = log.body.split_once("href=\"/panel/activity/").context("no call in the log")?;
    let key = rest.split('"').next().unwrap_or_default();
    let call = browser.get(&format!("/panel/activity/{key}")).await?;
    let link = format!("/panel/catalog/{id}");
    ensure!(call.body.contains(&format!("href=\"{link}\"")), "{call:?}");
    let led = browser.get(&link).await?;
    ensure!(led.status == 303 && led.header("location") == place, "{led:?}");
    for part in ["sandbox", "sdk", "reference"] {
        let page = browser.get(&format!("{link}/{part}")).await?;
        ensure!(page.status == 404 && page.body.contains("is an x402 server"), "{part}: {page:?}");
    }

    // The path that was called last is asked again, and its price limited.
    let page = browser.post_and_follow(&place, &[("path", "v1/waves")]).await?;
    ensure!(
        page.body.contains("The server answered.") && page.body.contains("&#39;/v1/waves&#39;"),
        "{page:?}"
    );
    let page = browser.press(&place, &[("path", "?q=1")]).await?;
    ensure!(page.status == 422 && page.body.contains("id=\"path-problem\""), "{page:?}");
    let price = format!("{place}/price");
    let page = browser.press(&price, &[("max_price", "cheap")]).await?;
    ensure!(page.status == 422 && page.body.contains("not an amount of USDC"), "{page:?}");
    let page = browser.post_and_follow(&price, &[("max_price", "0.5")]).await?;
    ensure!(page.body.contains("Highest price saved.") && page.body.contains("0.50 USDC"), "{page:?}");
    ensure!(
        page.body.contains("&#39;/v1/waves&#39;"),
        "the path that was asked last is still shown: {page:?}"
    );

    let remove = format!("{place}/remove");
    ensure!(browser.get(&remove).await?.body.contains("Remove server"));
    ensure!(browser.thief().press(&remove, &[]).await?.asks_for_password(), "a cookie alone removes nothing");
    ensure!(servers(&world).await?.len() == 1, "it is only asked");
    let page = browser.post_and_follow(&remove, &[]).await?;
    ensure!(page.body.contains("Server removed.") && servers(&world).await?.is_empty(), "{page:?}");
    for gone in [&place, &remove, &link] {
        let page = browser.get(gone).await?;
        ensure!(page.status == 404, "{gone}: {page:?}");
    }
    Ok(())
}

/// The text below a heading of the page, as a person copies it.
fn copied(page: &str, heading: &str) -> Result<String> {
    let (_, rest) = page.split_once(&format!("<h3>{heading}</h3>")).context("no such heading")?;
    let (_, rest) = rest.split_once("<code>").context("no code")?;
    let (text, _) = rest.split_once("</code>").context("no end")?;
    let signs = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    Ok(signs.iter().fold(text.to_owned(), |text, &(written, sign)| text.replace(written, sign)))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_page_of_a_server_shows_to_copy_calls_it_and_pays_no_more_than_it_says() -> Result<()> {
    let world = World::start().await?;
    let mut browser = set_up(&world.consumer).await?;
    // More than the highest price in the examples.
    let url = asks(world.chain.token, 10 * MICROS, "Tides").await?;
    let new = NewX402Server { url, max_price: None };
    let id = world.consumer.control().tell(endpoint::AddX402Server, &new).await?.id.to_string();
    let page = browser.get(&format!("{PAGE}/{id}")).await?;
    let folder = tempfile::tempdir()?;
    std::fs::copy(world.consumer.ca_file(), folder.path().join("farthing-ca.pem"))?;
    let for_agents = copied(&page.body, "Agent: arguments of call_service")?;
    let arguments: serde_json::Value = serde_json::from_str(&for_agents)?;
    ensure!(arguments["service"] == id && arguments["max_price"] == "0.01", "{arguments}");
    for (way, is_refusal) in [("Command line", true), ("curl", false)] {
        let script = copied(&page.body, way)?;
        ensure!(script.contains(&id), "{way}: {script}");
        let mut shell = Command::new("sh");
        shell
            .args(["-eu", "-c", &script])
            .current_dir(folder.path())
            .env("PATH", path()?)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("FARTHING_NODE__DATA_DIR", world.consumer.data_dir())
            .env("CONSUMER_SECRET", &world.secret)
            .kill_on_drop(true);
        let ran = Ran::of(shell.output().await?)?;
        ensure!((ran.code != 0) == is_refusal, "{way}: {ran:?}");
        let said = format!("{}{}", ran.out, ran.err);
        ensure!(said.contains("0.02 USDC"), "{way}: the price is told: {ran:?}");
    }
    ensure!(world.consumer.status().await?.spent_today.0.is_zero(), "nothing was paid");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_added_and_its_highest_price_changed_only_after_the_password_was_entered_lately()
-> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    // A server that is away is added as well.
    let fields = [("url", "http://127.0.0.1:9/"), ("max_price", "0.01")];
    let added = browser.press(ADD, &fields).await?;
    ensure!(added.status == 303, "the password was entered a moment ago: {added:?}");
    let place = added.header("location").split('?').next().unwrap_or_default();
    let price = format!("{place}/price");

    node.restart(&mut browser).await?;
    for (path, fields) in [(ADD, &fields[..]), (price.as_str(), &[("max_price", "5")][..])] {
        let page = browser.press(path, fields).await?;
        ensure!(page.asks_for_password(), "{path}: {page:?}");
    }
    let prices = async || -> Result<Vec<Option<Usdc>>> {
        let servers = node.process.control().ask(endpoint::X402Servers).await?;
        Ok(servers.iter().map(|server| server.max_price.map(|most| most.0)).collect())
    };
    ensure!(prices().await? == [Some(Usdc::from_micros(10_000))], "nothing was changed");
    let page = browser.post(&price, &[("max_price", "5")]).await?;
    ensure!(page.status == 303, "{page:?}");
    ensure!(prices().await? == [Some(Usdc::from_micros(5_000_000))]);
    Ok(())
}
