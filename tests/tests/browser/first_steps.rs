//! The set-up in a browser, from the code to Home: what a person does there, and that each step can wait.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::wait::eventually;

use crate::{
    browser::Browser,
    site::{PASSWORD, has},
};

/// Types the code and a password; a new node then asks for its words to be written down.
pub async fn enter(browser: &Browser, node: &NodeProcess) -> Result<()> {
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let code = console.setup_code.context("no setup code")?;
    browser.goto("/panel").await?;
    browser.wait_for("Step 1 of 5").await?;
    browser.fill(&[("code", &code), ("password", PASSWORD), ("repeated", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Step 2 of 5").await
}

/// The words on the page, in their order.
pub async fn words(browser: &Browser) -> Result<Vec<String>> {
    eventually("the words are shown", async || Ok(has(browser, ".words li").await)).await?;
    let mut words = Vec::new();
    for item in browser.client.find_all(Locator::Css(".words li code")).await? {
        words.push(item.text().await?);
    }
    ensure!(words.len() == 24, "{} words", words.len());
    Ok(words)
}

/// The words that a page asks for, in the order of its fields.
pub async fn asked(browser: &Browser, words: &[String]) -> Result<Vec<(String, String)>> {
    browser.wait_for("Check three words").await?;
    let mut fields = Vec::new();
    for field in browser.client.find_all(Locator::Css("input[name^=w]")).await? {
        let name = field.attr("name").await?.context("no name")?;
        let number: usize = name.trim_start_matches('w').parse()?;
        let word = words.get(number - 1).context("no such word")?;
        fields.push((name, word.clone()));
    }
    ensure!(fields.len() == 3, "{fields:?}");
    Ok(fields)
}

/// Through every step: the words are written down, money waits, and a sample is looked at.
pub async fn walk(browser: &Browser, wallet: &str) -> Result<()> {
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("form[action='/panel/setup/words'] button").await?;
    let words = words(browser).await?;
    browser.press(".step-actions a.primary").await?;
    let fields = asked(browser, &words).await?;
    let typed: Vec<(&str, &str)> = fields.iter().map(|(name, word)| (name.as_str(), word.as_str())).collect();
    browser.fill(&typed).await?;
    if !browser.scripts {
        browser.fill(&[("console-password", PASSWORD)]).await?;
    }
    browser.press("button.primary").await?;

    browser.wait_for("Step 3 of 5").await?;
    browser.wait_for(wallet).await?;
    browser.wait_for("Waiting for USDC").await?;
    ensure!(has(browser, "svg.qr").await, "no picture of the address");
    browser.press("#live-next a.primary").await?;
    browser.wait_for("Step 4 of 5").await?;
    browser.press("#live-next a.primary").await?;
    browser.wait_for("Step 5 of 5").await?;
    sample_of_earthquakes(browser).await?;
    browser.press(".step-actions a.primary").await?;
    browser.wait_for("Welcome to Farthing").await
}

/// The service may take a moment to be known.
async fn sample_of_earthquakes(browser: &Browser) -> Result<()> {
    eventually("the earthquakes can be looked at", async || {
        browser.goto("/panel/setup/call").await?;
        for service in browser.client.find_all(Locator::Css(".choices li")).await? {
            // The list is exchanged when the node hears of another service.
            let Ok(text) = service.text().await else { return Ok(false) };
            if text.contains("arthquakes") {
                let Ok(link) = service.find(Locator::Css("a")).await else { return Ok(false) };
                return Ok(link.click().await.is_ok());
            }
        }
        Ok(false)
    })
    .await?;
    browser.wait_for("Free.").await?;
    eventually("the sample is a map", async || Ok(has(browser, "#tried svg.map circle.place").await)).await
}
