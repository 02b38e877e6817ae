//! The browser's button Back.

use anyhow::{Result, ensure};
use farthing_tests::wait::eventually;

use crate::{
    browser::{Browser, START_PAGE, Tools},
    first_steps,
    keyboard::node,
    site::{PASSWORD, has},
};

/// More than the pages that one goes through here.
const BACK_MAX: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn going_back_through_the_set_up_never_asks_to_send_a_form_again() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    browser.goto("/panel/setup").await?;
    browser.fill(&[("code", "AAAA-AAAA-AAAA"), ("password", PASSWORD), ("repeated", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Wrong setup code").await?;
    first_steps::enter(&browser, &node).await?;
    browser.fill(&[("console-password", "a wrong password")]).await?;
    browser.press("form[action='/panel/setup/words'] button").await?;
    browser.wait_for("Wrong password").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("form[action='/panel/setup/words'] button").await?;
    let words = first_steps::words(&browser).await?;
    browser.press(".step-actions a.primary").await?;
    let fields = first_steps::asked(&browser, &words).await?;
    let wrong: Vec<(&str, &str)> = fields.iter().map(|(name, _)| (name.as_str(), "wrong")).collect();
    browser.fill(&wrong).await?;
    browser.press("button.primary").await?;
    eventually("the mistake is told", async || Ok(has(&browser, ".problem").await)).await?;
    let fields = first_steps::asked(&browser, &words).await?;
    let typed: Vec<(&str, &str)> = fields.iter().map(|(name, word)| (name.as_str(), word.as_str())).collect();
    browser.fill(&typed).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Step 3 of 5").await?;
    browser.press("#live-next a.primary").await?;
    browser.wait_for("Step 4 of 5").await?;
    browser.press("form[action='/panel/setup/reach'] button").await?;
    browser.wait_for("Step 4 of 5").await?;
    let mut seen = 0;
    for _ in 0..BACK_MAX {
        browser.client.back().await?;
        if browser.client.current_url().await?.as_str() == START_PAGE {
            break;
        }
        eventually("a page of the console is there", async || Ok(browser.text().await.is_ok())).await?;
        seen += 1;
    }
    ensure!(seen >= 5, "{seen} pages");
    browser.close().await
}
