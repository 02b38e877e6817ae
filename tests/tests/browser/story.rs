//! The whole story of somebody who has never seen the console, in a real browser, with two owners and a chain.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing::{
    control::types::{Api, Console, ServiceFile, route},
    testnet::demo::{Demo, Setup},
};
use farthing_protocol::Usdc;
use farthing_tests::{
    upstream::Upstream,
    world::{PRICE, eventually, service_file},
};
use serde_json::json;

use crate::{
    appearance::set_up,
    browser::{Browser, Tools},
};

const FUNDS: Usdc = Usdc::from_micros(5_000_000);

#[tokio::test(flavor = "multi_thread")]
async fn somebody_new_buys_data_and_sells_some() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { funds: Usdc::ZERO, gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let console: Console = demo.consumer.control().get(route::CONSOLE).await?;
    let browser = Browser::open(&tools, console.url.trim_end_matches("/panel"), true).await?;
    set_up(&browser, &demo.consumer).await?;
    browser.wait_for("Fund the wallet").await?;

    finds_the_earthquakes(&browser).await?;
    tries_them_free(&browser).await?;
    funds_the_wallet(&browser, &demo).await?;
    buys_and_copies_the_code(&browser).await?;
    sells_and_earns(&browser, &demo).await?;

    let complaints = browser.complaints().await?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    browser.client.clone().close().await?;
    demo.stop().await
}

async fn finds_the_earthquakes(browser: &Browser) -> Result<()> {
    eventually("the search finds the earthquakes", async || {
        browser.goto("/panel/catalog").await?;
        browser.client.find(Locator::Id("q")).await?.send_keys("earthquake").await?;
        Ok(browser.wait_for_address("q=earthquake").await.is_ok()
            && browser.client.find(Locator::Css(".card h3 a")).await.is_ok())
    })
    .await?;
    browser.press(".card h3 a").await?;
    browser.wait_for("Recent earthquakes worldwide").await
}

async fn tries_them_free(browser: &Browser) -> Result<()> {
    browser.press("a.button.primary").await?;
    browser.wait_for_address("/sandbox").await?;
    browser.wait_for("Your wallet has no USDC").await?;
    browser.press("button[value=sample]").await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("you were not charged").await
}

/// Home says what is missing, and follows by itself when it arrives.
async fn funds_the_wallet(browser: &Browser, demo: &Demo) -> Result<()> {
    let sandbox = browser.client.current_url().await?;
    browser.goto("/panel").await?;
    browser.wait_for(&demo.consumer_wallet.to_string()).await?;
    demo.chain.fund(demo.consumer_wallet, FUNDS).await?;
    browser.wait_for("There is USDC to spend").await?;
    browser.client.goto(&format!("{}{}", sandbox.origin().ascii_serialization(), sandbox.path())).await?;
    Ok(())
}

async fn buys_and_copies_the_code(browser: &Browser) -> Result<()> {
    browser.press("button[value=live]").await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("You were charged 0.002 USDC").await?;
    ensure!(browser.client.find(Locator::Css("svg.map circle.place")).await.is_ok(), "no place on the map");
    let code = browser.client.find(Locator::Css("#code details[open] code")).await?.text().await?;
    ensure!(code.contains("$CONSUMER_SECRET") && code.contains("/v1/earthquakes/recent"), "{code}");
    browser.press("#code details[open] .copy").await?;
    eventually("the code is copied", async || {
        let button = browser.client.find(Locator::Css("#code details[open] .copy")).await?;
        Ok(button.text().await?.contains("Copied"))
    })
    .await?;
    browser.goto("/panel/activity").await?;
    browser.wait_for("GET /v1/earthquakes/recent").await
}

/// Another node finds the new service and pays for it.
async fn sells_and_earns(browser: &Browser, demo: &Demo) -> Result<()> {
    let upstream = Upstream::start().await?;
    let charge = farthing::control::types::Charge::Success;
    let file = ServiceFile { name: "My first service".to_owned(), ..service_file(&upstream.url(), charge) };
    let api: Api = demo.consumer.control().post(route::APIS, &file).await?;
    let buyer = &demo.planets;
    demo.chain.fund(buyer.wallet, FUNDS).await?;
    buyer.node.wait_for_usdc(FUNDS).await?;
    let call = json!({ "api_id_public": api.id, "method": "GET", "path": "/ok" });
    eventually("another node buys it", async || {
        Ok(buyer.node.control().post_raw(route::CALL, &call).await?.status == 200)
    })
    .await?;
    browser.goto("/panel").await?;
    browser.wait_for("My first service").await?;
    eventually("Home shows what was earned", async || {
        browser.goto("/panel").await?;
        let mine = browser.client.find(Locator::Css("section[aria-labelledby=mine]")).await?;
        Ok(mine.text().await?.contains(&PRICE.to_string()))
    })
    .await
    .context("nothing was earned")
}
