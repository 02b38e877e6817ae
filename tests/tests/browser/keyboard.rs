//! Without a mouse, and without scripts.

use anyhow::{Context, Result, ensure};
use fantoccini::{Locator, key::Key};
use farthing::{
    control::types::{Api, Console, route},
    testnet::{NodeOptions, NodeProcess},
};
use farthing_tests::{
    upstream::Upstream,
    world::{PRICE, eventually, service_file},
};

use crate::{
    appearance::set_up,
    browser::{Browser, Tools},
};

async fn node(folder: &tempfile::TempDir) -> Result<(NodeProcess, String)> {
    let options = NodeOptions::new(folder.path().join("node"));
    // Nothing listens there.
    let chain = [
        ("chain.preset", "local"),
        ("chain.rpc_urls", "http://127.0.0.1:9"),
        ("chain.token", "0x00000000000000000000000000000000000000aa"),
    ];
    let chain = chain.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let node = NodeProcess::start_on(chain, options).await?;
    let console: Console = node.control().get(route::CONSOLE).await?;
    let origin = console.url.trim_end_matches("/panel").to_owned();
    Ok((node, origin))
}

/// Types into whatever has the focus.
async fn press(browser: &Browser, keys: &str) -> Result<()> {
    browser.client.active_element().await?.send_keys(keys).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_set_up_and_searched_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), farthing::control::types::Charge::Success);
    let _: Api = node.control().post(route::APIS, &file).await?;
    let code = node.control().get::<Console>(route::CONSOLE).await?.setup_code.context("no code")?;
    let browser = Browser::open(&tools, &origin, true).await?;
    browser.goto("/panel").await?;
    let tab = String::from(char::from(Key::Tab));
    let enter = String::from(char::from(Key::Enter));
    for keys in [&code, &tab, "four random words", &tab, "four random words", &enter] {
        press(&browser, keys).await?;
    }
    eventually("Home is there", async || Ok(browser.client.current_url().await?.path() == "/panel")).await?;
    // The first stop leads past the navigation.
    let body = browser.client.find(Locator::Css("body")).await?;
    body.send_keys(&tab).await?;
    ensure!(browser.client.active_element().await?.text().await?.contains("Skip"));
    browser.goto("/panel/catalog").await?;
    browser.client.find(Locator::Css("body")).await?.send_keys("/").await?;
    press(&browser, "nothing like it").await?;
    eventually("the results follow what is typed", async || {
        Ok(browser.client.find(Locator::Id("results")).await?.text().await?.contains("Nothing fits"))
    })
    .await?;
    let url = browser.client.current_url().await?;
    ensure!(url.query() == Some("q=nothing+like+it"), "{url}");
    let complaints = browser.complaints().await?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    browser.client.clone().close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_everything_is_there() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), farthing::control::types::Charge::Success);
    let api: Api = node.control().post(route::APIS, &file).await?;
    let browser = Browser::open(&tools, &origin, false).await?;
    set_up(&browser, &node).await?;
    eventually("the service is listed", async || {
        browser.goto("/panel/catalog").await?;
        Ok(browser.client.find(Locator::Css("main")).await?.text().await?.contains(&api.name))
    })
    .await?;
    browser.client.find(Locator::Id("q")).await?.send_keys("submarines").await?;
    browser.client.find(Locator::Css("#filters button")).await?.click().await?;
    ensure!(browser.client.find(Locator::Id("results")).await?.text().await?.contains("Nothing fits"));
    for (path, words) in [
        ("/panel".to_owned(), api.name.clone()),
        (format!("/panel/catalog/{}", api.id), format!("{PRICE} USDC per call")),
        (format!("/panel/catalog/{}?part=endpoints", api.id), "/slow/{millis}".to_owned()),
        ("/panel/activity".to_owned(), "No calls yet".to_owned()),
        ("/panel/network".to_owned(), "Test now".to_owned()),
        ("/panel/help".to_owned(), "Problems".to_owned()),
    ] {
        browser.goto(&path).await?;
        let text = browser.client.find(Locator::Css("main")).await?.text().await?;
        ensure!(text.contains(&words), "{path} does not say `{words}`: {text}");
    }
    browser.client.clone().close().await?;
    Ok(())
}
