//! The page of a consumer's application: what its visitors see, in both themes and at every width.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_testnet::demo::{Demo, Setup};
use farthing_tests::wait::eventually;

use crate::{
    appearance::Report,
    browser::{Browser, Tools},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_of_the_quake_map_sees_places_times_milliseconds_and_the_price() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let map = demo.quake_map(folder.path(), 0).await?;
    let browser = Browser::open(&tools, map.url.trim_end_matches('/'), true).await?;
    let mut report = Report::new()?;
    eventually("the button says the price", async || {
        browser.goto("/").await?;
        let button = browser.client.find(Locator::Css("form button")).await?.text().await?;
        Ok(button == "Buy for 0.002 USDC")
    })
    .await?;
    report.look(&browser, "quake-map").await?;
    browser.press("#magnitude option:nth-child(4)").await?;
    browser.press("button").await?;
    browser.wait_for("0.002 USDC").await?;
    browser.wait_for(" ms").await?;
    let dots = browser.client.find_all(Locator::Css("svg circle")).await?.len();
    let rows = browser.client.find_all(Locator::Css("tbody tr")).await?.len();
    ensure!(dots > 5 && dots == rows, "{dots} dots and {rows} rows");
    let row = browser.client.find(Locator::Css("tbody tr")).await.context("no row")?.text().await?;
    ensure!(row.contains(" km") && row.contains(':'), "a magnitude, a place and a time: {row}");
    // The data is of 2018, whatever day it is.
    let text = browser.text().await?;
    ensure!(text.contains(" from 2018-") || text.contains(" of 2018-"), "{text}");
    report.look(&browser, "quake-map-bought").await?;
    report.end()?;
    browser.close().await?;
    drop(map);
    farthing_tests::agreement::end(demo).await
}
