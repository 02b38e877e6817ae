//! Without a mouse.

use anyhow::{Context, Result, ensure};
use fantoccini::{Locator, key::Key};
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_testnet::{
    NodeOptions, NodeProcess,
    demo::{Demo, Setup},
};
use farthing_tests::{
    nodes::no_chain,
    upstream::Upstream,
    wait::eventually,
    world::{PRICE, service_file},
};

use serde_json::json;

use crate::{
    browser::{Browser, Tools},
    first_steps,
    site::set_up,
};

/// A node that lives without a chain, and where its console is.
pub async fn node(folder: &tempfile::TempDir) -> Result<(NodeProcess, String)> {
    let options = NodeOptions::new(folder.path().join("node"));
    let node = NodeProcess::start_on(no_chain(), options).await?;
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let origin = console.origin().to_owned();
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
    let code = node.control().ask(endpoint::ShowConsole).await?.setup_code.context("no code")?;
    let browser = Browser::open(&tools, &origin, true).await?;
    browser.goto("/panel").await?;
    let tab = String::from(char::from(Key::Tab));
    let enter = String::from(char::from(Key::Enter));
    for keys in [&code, &tab, "four random words", &tab, "four random words", &enter] {
        press(&browser, keys).await?;
    }
    walks_through_the_steps(&browser, &enter).await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), farthing_control::types::Charge::Success);
    node.control().tell(endpoint::AddApi, &file).await?;
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

/// The steps that follow the password: the words and three of them, then on by their buttons.
async fn walks_through_the_steps(browser: &Browser, enter: &str) -> Result<()> {
    browser.wait_for("Step 2 of 5").await?;
    tab_to(browser, "#console-password").await?;
    press(browser, "four random words").await?;
    press(browser, enter).await?;
    let words = first_steps::words(browser).await?;
    tab_to(browser, "a.button.primary").await?;
    press(browser, enter).await?;
    for (name, word) in first_steps::asked(browser, &words).await? {
        tab_to(browser, &format!("input[name={name}]")).await?;
        press(browser, &word).await?;
    }
    press(browser, enter).await?;
    for step in ["Step 3 of 5", "Step 4 of 5", "Step 5 of 5"] {
        browser.wait_for(step).await?;
        tab_to(browser, ".step-actions a.primary").await?;
        press(browser, enter).await?;
    }
    browser.wait_for("Welcome to Farthing").await
}

/// Goes on with the tabulator until what has the focus fits.
async fn tab_to(browser: &Browser, selector: &str) -> Result<()> {
    const STOPS_MAX: usize = 80;
    let tab = String::from(char::from(Key::Tab));
    let fits = format!("return document.activeElement.matches('{selector}')");
    for _ in 0..STOPS_MAX {
        if browser.client.execute(&fits, Vec::new()).await?.as_bool() == Some(true) {
            return Ok(());
        }
        press(browser, &tab).await?;
    }
    anyhow::bail!("the tabulator does not lead to {selector}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_tried_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let upstream = Upstream::start().await?;
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" }, "paths": {
        "/colours": { "get": { "parameters": [{ "name": "limit", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "ok", "content": { "application/json": {
                "example": [{ "name": "ochre" }], "schema": { "type": "array" } } } } } } } } });
    let file = ServiceFile {
        name: "Colours".to_owned(),
        upstream: upstream.url(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "colours.json".to_owned())),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &node).await?;
    let enter = String::from(char::from(Key::Enter));
    eventually("the service can be tried", async || {
        browser.goto(&format!("/panel/catalog/{}", api.id)).await?;
        Ok(browser.text().await?.contains("Try it"))
    })
    .await?;
    tab_to(&browser, "a.button.primary").await?;
    press(&browser, &enter).await?;
    browser.wait_for_address("/sandbox").await?;
    tab_to(&browser, "input[type=number]").await?;
    press(&browser, "7").await?;
    eventually("the code follows what is typed", async || {
        let code = browser.client.find(Locator::Css("#code details[open] code")).await?;
        Ok(code.text().await.is_ok_and(|code| code.contains("\"limit\": \"7\"")))
    })
    .await?;
    tab_to(&browser, "button[value=sample]").await?;
    press(&browser, &enter).await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("ochre").await?;
    browser.wait_for("you were not charged").await?;
    let complaints = browser.complaints().await?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    ensure!(upstream.hits() == 0, "a sample asks nobody");
    browser.client.clone().close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_call_is_paid_for_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), true).await?;
    set_up(&browser, &demo.consumer).await?;
    let sandbox = format!("/panel/catalog/{}/sandbox", demo.earthquakes.api.id);
    eventually("the service can be called", async || {
        browser.goto(&sandbox).await?;
        Ok(browser.text().await?.contains("Call for 0.002 USDC"))
    })
    .await?;
    tab_to(&browser, "button[value=live]").await?;
    let enter = String::from(char::from(Key::Enter));
    press(&browser, &enter).await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("You were charged 0.002 USDC").await?;
    let spent = demo.consumer.status().await?.spent_today.to_string();
    ensure!(spent == "0.002", "one press is one call: {spent}");
    let complaints = browser.complaints().await?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    browser.client.clone().close().await?;
    farthing_tests::agreement::end(demo).await
}
