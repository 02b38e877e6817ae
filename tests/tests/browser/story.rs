//! The whole story of somebody who has never seen the console, in a real browser, with two owners and a chain.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use fantoccini::Locator;
use farthing_control::endpoint;
use farthing_testnet::demo::{Demo, Setup};
use farthing_tests::{tell::tell, wait::eventually};
use farthing_values::Usdc;
use serde_json::json;
use tokio::process::Command;

use crate::{
    browser::{Browser, Tools},
    first_steps,
    site::{PASSWORD, has},
    tides,
};

const FUNDS: Usdc = Usdc::from_micros(5_000_000);
/// What the new service costs.
const PRICE: &str = "0.004";
/// The button beside the code that is shown.
const COPY: &str = "#code input:checked + label + .code-box .copy";

#[tokio::test(flavor = "multi_thread")]
async fn somebody_new_buys_data_and_sells_some() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { funds: Usdc::ZERO, gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), true).await?;
    first_steps::enter(&browser, &demo.consumer).await?;
    first_steps::walk(&browser, &demo.consumer_wallet.to_string()).await?;
    browser.wait_for("Fund the wallet").await?;

    finds_the_earthquakes(&browser).await?;
    tries_them_free(&browser).await?;
    funds_the_wallet(&browser, &demo).await?;
    buys_one_call(&browser).await?;
    let code = copies_the_code(&browser).await?;
    runs_the_code(&code, &demo, folder.path()).await?;
    browser.goto("/panel/activity").await?;
    browser.wait_for("GET /v1/earthquakes/recent").await?;

    let description = folder.path().join("tides.json");
    let url = tides::start().await?;
    std::fs::write(&description, tides::document("Tides", &url).to_string())?;
    registers_a_service(&browser, &description).await?;
    sells_and_earns(&browser, &demo).await?;

    browser.end().await?;
    farthing_tests::agreement::end(demo).await
}

async fn finds_the_earthquakes(browser: &Browser) -> Result<()> {
    eventually("the search finds the earthquakes", async || {
        browser.goto("/panel/catalog").await?;
        browser.client.find(Locator::Id("q")).await?.send_keys("earthquake").await?;
        Ok(browser.wait_for_address("q=earthquake").await.is_ok() && has(browser, ".card h2 a").await)
    })
    .await?;
    browser.press(".card h2 a").await?;
    browser.wait_for("Recent earthquakes worldwide").await
}

async fn tries_them_free(browser: &Browser) -> Result<()> {
    browser.press("a.button.primary").await?;
    browser.wait_for_address("/sandbox").await?;
    browser.wait_for("Your wallet does not have enough USDC").await?;
    browser.press("button[value=sample]").await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("you were not charged").await
}

/// Home says what is missing and leads to the address, whose page follows by itself when the money arrives.
async fn funds_the_wallet(browser: &Browser, demo: &Demo) -> Result<()> {
    let sandbox = browser.client.current_url().await?;
    browser.goto("/panel").await?;
    browser.wait_for("Fund the wallet").await?;
    browser.press("a[href='/panel/setup/fund']").await?;
    browser.wait_for("Waiting for USDC").await?;
    demo.chain.fund(demo.consumer_wallet, FUNDS).await?;
    browser.wait_for("5.00 USDC received").await?;
    browser.goto("/panel").await?;
    browser.wait_for("You have USDC to spend").await?;
    browser.goto(sandbox.path()).await
}

async fn buys_one_call(browser: &Browser) -> Result<()> {
    browser.press("button[value=live]").await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("You were charged 0.002 USDC").await?;
    ensure!(has(browser, "svg.map circle.place").await, "no place on the map");
    Ok(())
}

/// Presses the button beside the code, and returns what can then be pasted.
async fn copies_the_code(browser: &Browser) -> Result<String> {
    let origin = browser.client.current_url().await?.origin().ascii_serialization();
    let may = json!({ "origin": origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    browser.devtools("Browser.grantPermissions", may).await?;
    // It says so for two seconds, in which a busy machine may not look.
    let note = "const button = document.querySelector(arguments[0]);
        const note = () => { if (button.innerText.includes('Copied')) button.dataset.said = 'Copied'; };
        new MutationObserver(note).observe(button, { childList: true, characterData: true, subtree: true });";
    browser.client.execute(note, vec![json!(COPY)]).await?;
    browser.press(COPY).await?;
    eventually("the code is copied", async || Ok(has(browser, &format!("{COPY}[data-said=Copied]")).await))
        .await?;
    let read = "const done = arguments[0];
        navigator.clipboard.readText().then(done, (error) => done(`nothing: ${error}`));";
    let copied = browser.client.execute_async(read, Vec::new()).await?;
    let copied = copied.as_str().context("no text")?.to_owned();
    let shown = browser
        .client
        .find(Locator::Css("#code input:checked + label + .code-box code"))
        .await?
        .text()
        .await?;
    ensure!(copied.trim() == shown.trim() && copied.contains("$CONSUMER_SECRET"), "{copied}\n{shown}");
    Ok(copied)
}

/// Runs what was copied as a person does, with the two variables that the page names.
async fn runs_the_code(code: &str, demo: &Demo, folder: &std::path::Path) -> Result<()> {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().await.is_err() {
        ensure!(std::env::var_os("CI").is_none(), "curl is not installed");
        tell("\n  SKIPPED: running the copied code, because there is no curl.\n");
        return Ok(());
    }
    let file = folder.join("call.sh");
    std::fs::write(&file, code)?;
    let ran = Command::new("bash")
        .arg(&file)
        .env("CONSUMER_SECRET", &demo.secret)
        .env("FARTHING_CA_FILE", demo.consumer.ca_file())
        .output()
        .await?;
    let said = String::from_utf8_lossy(&ran.stdout);
    if !ran.status.success() || !said.contains("\"features\"") {
        bail!("the copied code does not work: {said}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
    Ok(())
}

/// From a file with a description to a service that is live, through the four steps.
async fn registers_a_service(browser: &Browser, description: &std::path::Path) -> Result<()> {
    browser.goto("/panel/apis").await?;
    browser.wait_for("You offer no services yet").await?;
    browser.press(".heading a.button.primary").await?;
    browser.wait_for_address("/panel/apis/new").await?;
    browser.choose_file("file", description).await?;
    browser.press(".sheet > .actions button.primary").await?;
    browser.wait_for("2 can be offered, 0 left out").await?;
    browser.fill(&[("price", PRICE)]).await?;
    browser.press(".actions button[value=next]").await?;
    browser.wait_for_address("/details").await?;
    browser
        .fill(&[
            ("name", tides::NAME),
            ("summary", tides::SUMMARY),
            ("category", "weather"),
            ("tags", "tides, sea"),
        ])
        .await?;
    browser.press(".sheet details > summary").await?;
    browser.press("button[value=try]").await?;
    browser.wait_for("200: the server answers").await?;
    let beside = "const box = document.getElementById('tried').getBoundingClientRect();
        return box.top >= 0 && box.top < innerHeight;";
    let seen = browser.client.execute(beside, Vec::new()).await?;
    ensure!(seen == true, "the result is where the button was pressed");
    browser.press(".sheet > .actions button[value=next]").await?;
    browser.wait_for_address("/preview").await?;
    browser.wait_for(tides::SUMMARY).await?;
    browser.wait_for("2 operations").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("form[action*='/preview'] button.primary").await?;
    browser.wait_for("Your service is live.").await
}

/// Another node finds the new service and pays for it; the page that is open shows it by itself.
async fn sells_and_earns(browser: &Browser, demo: &Demo) -> Result<()> {
    let apis = demo.consumer.control().ask(endpoint::Apis).await?;
    let api = apis.first().context("it is not registered")?;
    ensure!(api.name == tides::NAME && api.price.to_string() == PRICE, "{api:?}");
    let buyer = &demo.planets;
    demo.chain.fund(buyer.wallet, FUNDS).await?;
    buyer.node.wait_for_usdc(FUNDS).await?;
    let (client, secret) = (buyer.node.https_client()?, buyer.node.secret().await?);
    let gateway = format!("{}/internal/call", buyer.node.status().await?.gateway_url);
    let call = json!({ "api_id_public": api.id, "method": "GET", "path": "/v1/tides/esbjerg", "params": {} });
    eventually("another node buys it", async || {
        let answer = client.post(&gateway).bearer_auth(&secret).body(call.to_string()).send().await?;
        Ok(answer.status() == 200 && answer.text().await?.contains("height_m"))
    })
    .await?;
    let earned = format!("{PRICE} USDC");
    eventually("the open page shows what was earned", async || {
        let figures = browser.client.find(Locator::Id("live-figures")).await?.text().await;
        Ok(figures.is_ok_and(|text| text.contains(&earned)))
    })
    .await?;
    browser.goto("/panel/apis").await?;
    browser.wait_for(&earned).await?;
    browser.goto("/panel").await?;
    browser.wait_for(tides::NAME).await?;
    browser.goto("/panel/finance").await?;
    browser.wait_for(&format!("Earned, not claimed\n{earned}")).await
}
