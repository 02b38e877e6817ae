//! The whole story without scripts: the set-up, an API that is registered, and a call that is bought.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::demo::{Demo, Setup};
use farthing_tests::wait::eventually;
use farthing_values::Usdc;

use crate::{
    browser::{Browser, Tools},
    first_steps,
    site::{PASSWORD, confirm, has},
    tides,
};

const FUNDS: Usdc = Usdc::from_micros(5_000_000);
const PRICE: &str = "0.004";

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_somebody_new_registers_an_api_and_buys_a_call() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { funds: Usdc::ZERO, gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), false).await?;
    first_steps::enter(&browser, &demo.consumer).await?;
    first_steps::walk(&browser, &demo.consumer_wallet.to_string()).await?;

    let description = folder.path().join("tides.json");
    std::fs::write(&description, tides::document("Tides", &tides::start().await?).to_string())?;
    registers_an_api(&browser, &description).await?;
    let apis = demo.consumer.control().ask(endpoint::Apis).await?;
    let api = apis.first().context("it is not registered")?;
    ensure!(api.name == tides::NAME && api.price.to_string() == PRICE, "{api:?}");

    demo.chain.fund(demo.consumer_wallet, FUNDS).await?;
    demo.consumer.wait_for_usdc(FUNDS).await?;
    buys_a_call(&browser).await?;
    let spent = demo.consumer.status().await?.spent_today.to_string();
    ensure!(spent == "0.002", "one press is one call: {spent}");
    browser.end().await?;
    farthing_tests::agreement::end(demo).await
}

/// Through the four steps. Without a key, each change asks for the password.
async fn registers_an_api(browser: &Browser, description: &Path) -> Result<()> {
    browser.goto("/panel/apis").await?;
    browser.press(".heading a.button.primary").await?;
    browser.wait_for("Nothing is published until the last step").await?;
    browser.choose_file("file", description).await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press(".sheet > .actions button.primary").await?;
    browser.wait_for("2 can be offered, 0 left out").await?;
    browser.fill(&[("price", PRICE)]).await?;
    browser.press(".actions button[value=next]").await?;
    confirm(browser).await?;
    browser.wait_for("Public information").await?;
    browser.fill(&[("name", tides::NAME), ("summary", tides::SUMMARY)]).await?;
    browser.press(".sheet > .actions button[value=next]").await?;
    confirm(browser).await?;
    browser.wait_for("This is what other people see").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("form[action*='/preview'] button.primary").await?;
    browser.wait_for("Your service is live.").await
}

async fn buys_a_call(browser: &Browser) -> Result<()> {
    eventually("the search finds the earthquakes", async || {
        browser.goto("/panel/catalog?q=earthquake").await?;
        Ok(has(browser, ".card h2 a").await)
    })
    .await?;
    browser.press(".card h2 a").await?;
    browser.wait_for("Recent earthquakes worldwide").await?;
    browser.press("a.button.primary").await?;
    browser.wait_for("Call for 0.002 USDC").await?;
    browser.press("button[value=live]").await?;
    confirm(browser).await?;
    browser.wait_for_address("call=").await?;
    // The page asks for itself again until the call has ended.
    browser.wait_for("You were charged 0.002 USDC").await?;
    browser.goto("/panel/activity").await?;
    browser.wait_for("GET /v1/earthquakes/recent").await
}
