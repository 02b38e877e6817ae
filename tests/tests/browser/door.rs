//! What is typed at `localhost`: led to the node's own name where the browser finds it, and usable where it does not.

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_tests::wait::eventually;

use crate::{
    browser::{Browser, Tools},
    keyboard::node,
    site::{PASSWORD, confirm, set_up},
};

const BOOKMARK: &str = "/panel/catalog?q=earth";

async fn log_in(browser: &Browser) -> Result<()> {
    browser.wait_for("Log in").await?;
    browser.fill(&[("password", PASSWORD)]).await?;
    browser.press("button.primary").await
}

async fn stop(browser: &Browser) -> Result<()> {
    browser.goto("/panel/finance/limits").await?;
    browser.press("form[action='/panel/finance/stop'] button").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_at_localhost_leads_to_the_same_page_under_the_nodes_own_name() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &node).await?;
    let typed = console.url.trim_end_matches("/panel");
    browser.client.goto(&format!("{typed}{BOOKMARK}")).await?;
    let there = browser.wait_for_address(&format!("{origin}{BOOKMARK}")).await?;
    ensure!(there.as_str() == format!("{origin}{BOOKMARK}"), "{there}");
    browser.client.delete_all_cookies().await?;
    // Another site may lead to where one stays, and another server of this machine sets whatever cookie it likes.
    browser.client.goto(&format!("{typed}/panel/stay?next=%2Fpanel%2Ffinance")).await?;
    browser.wait_for_address(&format!("{origin}/panel/login?next=%2Fpanel%2Ffinance")).await?;
    browser.client.goto(&format!("{typed}/api/v1/status")).await?;
    browser.client.execute("document.cookie = 'farthing-stay=1; path=/'", Vec::new()).await?;
    browser.client.goto(&format!("{typed}{BOOKMARK}")).await?;
    // A slow machine finds the other name at the second try. The page of that try has a form, too, and leads away from it.
    browser.wait_for_address(&format!("{origin}/panel/login?next=")).await?;
    log_in(&browser).await?;
    browser.wait_for_address(&format!("{origin}{BOOKMARK}")).await?;
    stop(&browser).await?;
    browser.wait_for("All spending is stopped").await?;
    browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn where_names_below_localhost_are_not_found_one_stays_and_the_password_is_asked_for() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, _) = node(&folder).await?;
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let typed = console.url.trim_end_matches("/panel");
    let browser = Browser::open_with(&tools, typed, true, false).await?;
    browser.goto("/panel").await?;
    browser.wait_for("Set up your node").await?;
    set_up(&browser, &node).await?;
    browser.client.goto(&format!("{typed}{BOOKMARK}")).await?;
    browser.wait_for_address(&format!("{typed}{BOOKMARK}")).await?;
    stop(&browser).await?;
    confirm(&browser).await?;
    eventually("spending is stopped", async || {
        let state = node.control().ask(endpoint::Spending).await?;
        Ok(state.stopped.is_some())
    })
    .await?;
    browser.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_a_bookmark_at_localhost_leads_to_its_page_there() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, _) = node(&folder).await?;
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let typed = console.url.trim_end_matches("/panel");
    let browser = Browser::open(&tools, typed, false).await?;
    browser.goto("/panel").await?;
    browser.wait_for("Set up your node").await?;
    set_up(&browser, &node).await?;
    browser.client.delete_all_cookies().await?;
    browser.goto(BOOKMARK).await?;
    log_in(&browser).await?;
    browser.wait_for_address(&format!("{typed}{BOOKMARK}")).await?;
    browser.close().await
}
