//! Tables with long names in them, on a desk, a tablet and a phone.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_control::{
    endpoint,
    types::{Charge, ServiceFile},
};
use farthing_tests::{upstream::Upstream, wait::eventually, world::service_file};

use crate::{browser::Browser, keyboard::opened};

const WIDTHS: [u32; 3] = [1280, 768, 360];
const HEIGHT: u32 = 800;
/// As long as names may be.
const NAME: &str = "Tides of every harbour of the North Sea, the Baltic and the Channel, in a row...";

/// Whether what was earned lies inside the window, and whether the table is as wide as its place.
async fn seen(browser: &Browser) -> Result<[bool; 2]> {
    let ask = "const cell = document.querySelector('td[data-label^=Earned]');
        const words = document.createRange();
        words.selectNodeContents(cell);
        const box = words.getBoundingClientRect();
        const place = cell.closest('.scroll');
        return [box.width > 0 && box.left >= 0 && box.right <= place.getBoundingClientRect().right,
            place.scrollWidth <= place.clientWidth];";
    let told = browser.client.execute(ask, Vec::new()).await?;
    Ok([told[0] == true, told[1] == true])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_name_hides_no_earnings_and_all_of_it_is_there_on_demand() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let file = ServiceFile { name: NAME.to_owned(), ..service_file(&upstream.url(), Charge::Success) };
    node.control().tell(endpoint::AddApi, &file).await?;
    for width in WIDTHS {
        browser.resize(width, HEIGHT).await?;
        browser.goto("/panel/apis").await?;
        let [is_earned_seen, is_whole] = seen(&browser).await?;
        ensure!(is_earned_seen, "what was earned is clipped at {width} pixels");
        ensure!(is_whole || width > 1000, "the table is moved sideways at {width} pixels");
        browser.goto("/panel").await?;
        let [is_earned_seen, is_whole] = seen(&browser).await?;
        ensure!(is_earned_seen && (is_whole || width > 640), "Home clips what was earned at {width} pixels");
    }
    for page in ["/panel", "/panel/apis"] {
        browser.goto(page).await?;
        // In one step: the page exchanges its rows for newer ones by itself, as soon as the server was looked at, for example.
        let name = "return document.querySelector('.list td a').innerText";
        let name = browser.client.execute(name, Vec::new()).await?;
        let name = name.as_str().context("no name")?;
        ensure!(name.ends_with('…') && name.chars().count() < NAME.len(), "{page}: {name}");
    }
    // A phone's bar covers what is at its edge, where the driver would leave it.
    let to_the_middle = "document.querySelector('.whole > summary').scrollIntoView({ block: 'center' })";
    browser.client.execute(to_the_middle, Vec::new()).await?;
    browser.press(".whole > summary").await?;
    eventually("the whole name is shown", async || {
        let shown = browser.client.find(Locator::Css(".whole > bdi")).await?.text().await;
        Ok(shown.is_ok_and(|shown| shown == NAME))
    })
    .await?;
    browser.end().await
}
