//! Without scripts: every page once, and what scripts only make more convenient.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;

use crate::{
    browser::{Browser, Tools},
    places::places,
    site::{Site, set_up},
};

/// A page that says less is not there.
const WORDS_MIN: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_every_page_is_there() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let mut site = Site::start().await?;
    let browser = site.open(&tools, false).await?;
    set_up(&browser, &site.demo.consumer).await?;
    site.furnish(&browser).await?;
    for (name, place) in &places()? {
        browser.goto(&site.address(place)?).await?;
        let heading = browser.client.find(Locator::Css("main h1, main h3")).await;
        let heading = heading.with_context(|| format!("{name} has no heading"))?.text().await?;
        let text = browser.text().await?;
        ensure!(!heading.is_empty() && text.split_whitespace().count() >= WORDS_MIN, "{name}: {text}");
        ensure!(!text.contains("Page not found"), "{name}: {text}");
    }
    searches(&browser).await?;
    chooses_an_operation(&browser, &site).await?;
    browser.end().await?;
    farthing_tests::agreement::end(site.demo).await
}

async fn searches(browser: &Browser) -> Result<()> {
    browser.goto("/panel/catalog").await?;
    browser.fill(&[("q", "submarines")]).await?;
    browser.press("#filters button").await?;
    browser.wait_for("No services match").await
}

/// Another operation is chosen by a link, and the code brought up to date by a button.
async fn chooses_an_operation(browser: &Browser, site: &Site) -> Result<()> {
    browser.goto(&site.address("/panel/catalog/{own}/sandbox")?).await?;
    browser.press(".leaves a[href$='harbour%7D']").await?;
    browser.wait_for_address("harbour").await?;
    let field = browser.client.find(Locator::Css("input[name='p.harbour']")).await?;
    field.clear().await?;
    field.send_keys("esbjerg").await?;
    browser.press("button[value=code]").await?;
    browser.wait_for("esbjerg").await
}
