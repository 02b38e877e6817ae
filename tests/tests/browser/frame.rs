//! What surrounds every page: a sidebar, a rail or a bar, and the search field under `/`.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;

use crate::{browser::Browser, keyboard::opened};

const HEIGHT: u32 = 800;

/// Where the navigation is: left, top, width and height in pixels, and how many of its links are seen.
async fn navigation(browser: &Browser, width: u32) -> Result<[f64; 5]> {
    browser.resize(width, HEIGHT).await?;
    let ask = "const box = document.querySelector('nav.places').getBoundingClientRect();
        const links = [...document.querySelectorAll('nav.places li a')];
        return [box.left, box.top, box.width, box.height, links.filter((link) => link.offsetParent).length];";
    let found = browser.client.execute(ask, Vec::new()).await?;
    let numbers: Vec<f64> =
        found.as_array().context("no list")?.iter().filter_map(serde_json::Value::as_f64).collect();
    numbers.try_into().map_err(|numbers| anyhow::anyhow!("{numbers:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_navigation_is_a_sidebar_a_rail_or_a_bar_and_a_slash_leads_to_the_search() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    let [left, _, width, height, links] = navigation(&browser, 1280).await?;
    ensure!(left == 0.0 && width > 200.0 && height >= 800.0 && links == 8.0, "a sidebar: {width} × {height}");
    let [left, _, width, height, links] = navigation(&browser, 768).await?;
    ensure!(left == 0.0 && width < 100.0 && height >= 800.0 && links == 8.0, "a rail: {width} × {height}");
    let [_, top, width, height, links] = navigation(&browser, 360).await?;
    ensure!(width == 360.0 && (top + height - 800.0).abs() < 1.0 && links == 5.0, "a bar: {top} + {height}");
    // The others are in the menu there.
    browser.press("details.menu > summary").await?;
    let more = browser.client.find_all(Locator::Css(".more a")).await?;
    ensure!(more.len() == 3 && more[0].is_displayed().await?, "the menu has the other pages");
    browser.press(".more li:first-child a").await?;
    browser.wait_for_address("/panel/network").await?;

    browser.resize(1280, HEIGHT).await?;
    browser.goto("/panel").await?;
    browser.client.find(Locator::Css("body")).await?.send_keys("/").await?;
    let field = browser.client.active_element().await?.attr("id").await?;
    ensure!(field.as_deref() == Some("search"), "{field:?}");
    browser.close().await
}
