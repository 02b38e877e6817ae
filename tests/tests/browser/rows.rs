//! Rows that are whole: the fields of filters on a tablet, tabs and a picture on a phone, charts on a desk. And what is
//! left of a page that is zoomed to 400 %.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{Charge, ServiceFile},
};
use farthing_tests::{upstream::Upstream, wait::eventually, world::service_file};
use serde_json::json;

use crate::{browser::Browser, keyboard::opened};

const HEIGHT: u32 = 800;

/// The lower edges of what a selector finds, each once: one for a row that is whole.
async fn edges(browser: &Browser, selector: &str) -> Result<Vec<i64>> {
    let ask = format!(
        "const parts = [...document.querySelectorAll('{selector}')];
        return [...new Set(parts.map((part) => Math.round(part.getBoundingClientRect().bottom)))];"
    );
    let found = browser.client.execute(&ask, Vec::new()).await?;
    Ok(found.as_array().into_iter().flatten().filter_map(serde_json::Value::as_i64).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_button_of_filters_ends_their_last_row_on_a_tablet() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.resize(768, HEIGHT).await?;
    for (place, row) in [
        ("/panel/activity", "#from, #to, #call_id, .filters > button"),
        ("/panel/finance/history", "#service, #with, #group, .filters > button"),
    ] {
        browser.goto(place).await?;
        let edges = edges(&browser, row).await?;
        ensure!(edges.len() == 1, "{place}: {edges:?}");
    }
    browser.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_chart_is_alone_in_a_row_and_tabs_are_one_row_under_a_finger() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let file = ServiceFile { name: "Colours".to_owned(), ..service_file(&upstream.url(), Charge::Success) };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    browser.resize(1440, HEIGHT).await?;
    browser.goto(&format!("/panel/apis/{}", api.id)).await?;
    let charts = "section:has(> .plot)";
    ensure!(edges(&browser, charts).await?.len() == 1, "three charts are one row of a desk");
    browser.resize(1000, HEIGHT).await?;
    ensure!(edges(&browser, charts).await?.len() == 2, "one above two");
    let others = "section:has(> .plot) ~ section:has(> .plot)";
    ensure!(edges(&browser, others).await?.len() == 1, "the two are one row");

    let place = format!("/panel/catalog/{}", api.id);
    browser.resize(360, HEIGHT).await?;
    browser.devtools("Emulation.setTouchEmulationEnabled", json!({ "enabled": true })).await?;
    eventually("the service is in the catalog", async || {
        browser.goto(&place).await?;
        Ok(edges(&browser, ".tabs").await?.len() == 1)
    })
    .await?;
    ensure!(edges(&browser, ".tabs a").await?.len() == 1, "the tabs are one row");
    let widest = browser.overflow().await?;
    ensure!(widest.is_none(), "wider than the window: {widest:?}");

    browser.goto("/panel/setup/fund").await?;
    let beside = "const code = document.querySelector('.qr').getBoundingClientRect();
        const room = document.querySelector('.deposit').getBoundingClientRect();
        return Math.round(code.left - room.left) - Math.round(room.right - code.right);";
    let beside = browser.client.execute(beside, Vec::new()).await?;
    ensure!(
        beside.as_i64().is_some_and(|pixels| pixels.abs() <= 1),
        "the code is not in the middle: {beside}"
    );
    browser.end().await
}

/// A desk of 1280 by 1024 pixels at 400 %.
const ZOOMED: [u32; 2] = [320, 256];

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_zoomed_to_400_percent_shows_itself_and_breaks_long_names() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let file = ServiceFile {
        // As long as names and tags may be, without a place to break at.
        name: format!("שירות 🪐 {}", "N".repeat(72)),
        tags: vec!["T".repeat(32)],
        ..service_file(&upstream.url(), Charge::Success)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    let [width, height] = ZOOMED;
    browser.resize(width, height).await?;
    let (own, listed) = (format!("/panel/apis/{}", api.id), format!("/panel/catalog/{}", api.id));
    eventually("the service is in the catalog", async || {
        browser.goto(&listed).await?;
        Ok(edges(&browser, ".tabs").await?.len() == 1)
    })
    .await?;
    let more = ["edit", "operations", "retire"].map(|part| format!("{own}/{part}"));
    for place in ["/panel/catalog".to_owned(), listed, own.clone()].into_iter().chain(more) {
        browser.goto(&place).await?;
        let widest = browser.overflow().await?;
        ensure!(widest.is_none(), "{place} is wider than the window: {widest:?}");
    }
    // No bar stays above what is read.
    browser.goto(&own).await?;
    let seen = "scrollTo(0, 600);
        const heights = [0.05, 0.5, 0.95].map((part) => innerHeight * part);
        return heights.every((y) => document.elementFromPoint(innerWidth / 2, y).closest('.content'));";
    ensure!(browser.client.execute(seen, Vec::new()).await? == true, "bars cover the page");
    browser.end().await
}
