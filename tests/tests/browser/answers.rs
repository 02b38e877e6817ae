//! An answer as a tree: folded, searched and copied from, and by keyboard. And a picture as a picture.

use anyhow::{Context, Result, ensure};
use axum::{Router, http::header, routing::get};
use fantoccini::{Locator, key::Key};
use farthing_control::{
    endpoint,
    types::{OperationFile, ServiceFile, SourceFile, SourceKind},
};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    upstream::serve,
    wait::eventually,
    world::{PRICE, World},
};
use farthing_values::Method;
use serde_json::{Value, json};

use crate::{
    browser::{Browser, Tools},
    keyboard::opened,
    site::{has, set_up},
};

/// One pixel.
const PICTURE: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn colours() -> Value {
    json!({ "colours": [
        { "name": "umber", "of what": { "earth": ["iron", "manganese"] } },
        { "name": "ochre", "of what": { "earth": ["iron"], "grams": 12.50 } },
    ] })
}

/// The sample of a service, as a tree.
async fn tree() -> Result<Option<(Browser, NodeProcess, tempfile::TempDir)>> {
    let Some((browser, node, _, folder)) = opened().await? else { return Ok(None) };
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" }, "paths": {
        "/colours": { "get": { "responses": { "200": { "description": "ok", "content": { "application/json": {
            "example": colours(), "schema": { "type": "object" } } } } } } } } });
    let file = ServiceFile {
        name: "Colours".to_owned(),
        upstream: "http://127.0.0.1:9".to_owned(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "colours.json".to_owned())),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    eventually("the service can be tried", async || {
        browser.goto(&format!("/panel/catalog/{}/sandbox", api.id)).await?;
        Ok(has(&browser, "button[value=sample]:enabled").await)
    })
    .await?;
    browser.press("button[value=sample]").await?;
    let url = browser.wait_for_address("call=").await?;
    browser.goto(&format!("{}?{}&view=tree", url.path(), url.query().unwrap_or_default())).await?;
    eventually("the tools are there", async || {
        let tools = browser.client.find(Locator::Id("tree-tools")).await?;
        Ok(tools.is_displayed().await?)
    })
    .await?;
    Ok(Some((browser, node, folder)))
}

/// What the two buttons would copy now.
async fn copied(browser: &Browser) -> Result<[String; 2]> {
    let ask = "return ['copy-value', 'copy-path'].map((id) => document.getElementById(id).dataset.copy);";
    Ok(serde_json::from_value(browser.client.execute(ask, Vec::new()).await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_searched_and_its_values_and_paths_are_copied() -> Result<()> {
    let Some((browser, _node, _folder)) = tree().await? else { return Ok(()) };
    let violations = browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    // It lies in what is folded until it is found.
    browser.fill(&[("tree-search", "MANGANESE")]).await?;
    eventually("one value is found", async || {
        Ok(browser.client.find(Locator::Id("tree-found")).await?.text().await? == "1 found")
    })
    .await?;
    browser.press("#tree .hit").await?;
    let expected = ["manganese", "colours[0][\"of what\"].earth[1]"];
    ensure!(copied(&browser).await? == expected, "{:?}", copied(&browser).await?);
    browser.fill(&[("tree-search", "12.5")]).await?;
    browser.press("#tree .hit").await?;
    ensure!(copied(&browser).await?[1] == "colours[1][\"of what\"].grams", "{:?}", copied(&browser).await?);
    let violations = browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    browser.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_arrows_lead_through_a_tree_and_fold_it() -> Result<()> {
    let Some((browser, _node, _folder)) = tree().await? else { return Ok(()) };
    browser.client.execute("document.getElementById('tree').focus()", Vec::new()).await?;
    let press = async |key: Key| -> Result<String> {
        browser.client.active_element().await?.send_keys(&String::from(char::from(key))).await?;
        Ok(copied(&browser).await?[1].clone())
    };
    ensure!(press(Key::Down).await? == "colours", "the first");
    ensure!(press(Key::Down).await? == "colours[0]", "what is open is entered");
    ensure!(press(Key::Down).await? == "colours[1]", "what is folded is passed");
    ensure!(press(Key::Right).await? == "colours[1]", "it unfolds");
    ensure!(press(Key::Down).await? == "colours[1].name");
    ensure!(press(Key::Up).await? == "colours[1]");
    ensure!(press(Key::Left).await? == "colours[1]", "it folds");
    ensure!(press(Key::Down).await? == "colours[1]", "it is the last then");
    ensure!(press(Key::Home).await? == "colours");
    browser.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_seen_under_the_consoles_policy() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let world = World::start().await?;
    let router =
        Router::new().route("/pixel", get(async || ([(header::CONTENT_TYPE, "image/gif")], PICTURE)));
    let file = ServiceFile {
        name: "Pixels".to_owned(),
        upstream: serve(router).await?,
        operations: vec![OperationFile::named(Method::Get, "/pixel".to_owned())],
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), true).await?;
    set_up(&browser, &world.consumer).await?;
    let sandbox = format!("/panel/catalog/{}/sandbox", api.id);
    eventually("the service can be called", async || {
        browser.goto(&sandbox).await?;
        Ok(has(&browser, "button[value=live]:enabled").await)
    })
    .await?;
    browser.press("button[value=live]").await?;
    browser.wait_for(&format!("You were charged {PRICE} USDC")).await?;
    eventually("the picture is there", async || {
        let width = "return document.querySelector('img.preview').naturalWidth";
        Ok(browser.client.execute(width, Vec::new()).await?.as_u64() == Some(1))
    })
    .await?;
    let violations = browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    let shown = browser.client.find(Locator::Css("img.preview")).await?.attr("src").await?;
    ensure!(shown.context("no address")?.starts_with(&sandbox));
    browser.end().await?;
    world.settle_for(PRICE).await
}
