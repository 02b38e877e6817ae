//! Without a mouse: an API is registered, money is sent, and a setting is changed.

use anyhow::{Context, Result, ensure};
use fantoccini::key::Key;
use farthing_control::endpoint;
use farthing_tests::{upstream::Upstream, wait::eventually, world::World};
use farthing_values::{Address, Usdc};
use serde_json::json;

use crate::{
    browser::{Browser, Tools},
    keyboard::{opened, press, tab_to},
    site::{PASSWORD, set_up},
};

const PRICE: &str = "0.004";
const TO: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";

/// Goes on with the tabulator to a field or a button, and types there.
async fn types(browser: &Browser, selector: &str, keys: &str) -> Result<()> {
    tab_to(browser, selector).await?;
    press(browser, keys).await
}

fn enter() -> String {
    String::from(char::from(Key::Enter))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_is_registered_by_keyboard_alone() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" },
        "servers": [{ "url": upstream.url() }],
        "paths": { "/colours": { "get": { "responses": { "200": { "description": "ok" } } } } } });
    browser.goto("/panel/apis").await?;
    types(&browser, ".heading a.button.primary", &enter()).await?;
    browser.wait_for("Nothing is published until the last step").await?;
    types(&browser, "#text", &document.to_string()).await?;
    types(&browser, ".sheet > .actions button.primary", &enter()).await?;
    browser.wait_for("What your node found").await?;
    types(&browser, "#price", PRICE).await?;
    types(&browser, ".actions button.primary", &enter()).await?;
    browser.wait_for("Public information").await?;
    types(&browser, "#name", "Colours of a day").await?;
    types(&browser, ".sheet > .actions button.primary", &enter()).await?;
    browser.wait_for("This is what other people see").await?;
    types(&browser, "#console-password", PASSWORD).await?;
    types(&browser, ".narrow button.primary", &enter()).await?;
    eventually("the service is registered", async || {
        let apis = node.control().ask(endpoint::Apis).await?;
        Ok(apis.iter().any(|api| api.name == "Colours of a day" && api.price.to_string() == PRICE))
    })
    .await?;
    browser.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_sent_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let world = World::start().await?;
    let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), true).await?;
    set_up(&browser, &world.consumer).await?;
    browser.goto("/panel/finance").await?;
    types(&browser, "a[href$=send]", &enter()).await?;
    browser.wait_for("You review everything before it is sent").await?;
    types(&browser, "#to", TO).await?;
    types(&browser, "#amount", "1.25").await?;
    types(&browser, "form.narrow button.primary", &enter()).await?;
    browser.wait_for("You cannot undo this").await?;
    let to: Address = TO.parse()?;
    ensure!(world.chain.usdc_of(to).await?.is_zero(), "a look sends nothing");
    types(&browser, "#console-password", PASSWORD).await?;
    types(&browser, "form.narrow button.primary", &enter()).await?;
    browser.wait_for("1.25 USDC sent").await?;
    ensure!(world.chain.usdc_of(to).await? == Usdc::from_micros(1_250_000), "one press sends once");
    browser.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_created_and_limited_in_the_settings_by_keyboard_alone() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.goto("/panel/settings").await?;
    types(&browser, "a[href$=secrets]", &enter()).await?;
    browser.wait_for("Create a secret").await?;
    types(&browser, "#name", "dashboard").await?;
    types(&browser, "form.narrow button.primary", &enter()).await?;
    browser.wait_for("Enter your password").await?;
    types(&browser, "#console-password", PASSWORD).await?;
    types(&browser, "main form button.primary", &enter()).await?;
    eventually("the secret is there", async || {
        let secrets = node.control().ask(endpoint::Secrets).await?;
        Ok(secrets.iter().any(|secret| secret.name == "dashboard"))
    })
    .await?;
    browser.goto("/panel/settings/secrets/dashboard").await?;
    types(&browser, "#per_day", "2.5").await?;
    press(&browser, &enter()).await?;
    eventually("the secret has its limit", async || {
        let secrets = node.control().ask(endpoint::Secrets).await?;
        let limited = secrets.iter().find(|secret| secret.name == "dashboard").context("no secret")?;
        Ok(limited.limits.per_day.as_ref().is_some_and(|limit| limit.0 == Usdc::from_micros(2_500_000)))
    })
    .await?;
    browser.end().await
}
