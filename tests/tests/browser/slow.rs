//! A call that takes long: its page counts the seconds, and goes over into the answer by itself.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Charge, OperationFile, ServiceFile},
};
use farthing_tests::{
    upstream::Gate,
    wait::eventually,
    world::{PRICE, World, service_file},
};
use farthing_values::Method;
use serde_json::{Value, json};

use crate::{
    browser::{Browser, Tools},
    site::{confirm, set_up},
};

/// What a page hears after a change before a button is let go. Each takes two seconds, and a newer page far less.
const EVENTS_AFTER: usize = 2;

/// A browser before the answer of a call that waits for a gate.
struct Waiting {
    world: World,
    gate: Gate,
    browser: Browser,
}

impl Waiting {
    async fn begin(tools: &Tools, scripts: bool) -> Result<Self> {
        let (world, mut gate) = (World::start().await?, Gate::start().await?);
        let file = ServiceFile {
            name: "Held".to_owned(),
            upstream: gate.url(),
            operations: vec![OperationFile {
                // Longer than a browser takes on a busy machine.
                timeout_secs: Some(120),
                ..OperationFile::named(Method::Get, "/held".to_owned())
            }],
            ..ServiceFile::priced(PRICE)
        };
        let api = world.publish(&file).await?;
        let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
        let browser = Browser::open(tools, console.origin(), scripts).await?;
        set_up(&browser, &world.consumer).await?;
        let sandbox = format!("/panel/catalog/{}/sandbox", api.id);
        eventually("the service can be called", async || {
            browser.goto(&sandbox).await?;
            Ok(browser.text().await?.contains(&format!("Call for {PRICE} USDC")))
        })
        .await?;
        browser.press("button[value=live]").await?;
        if !scripts {
            confirm(&browser).await?;
        }
        browser.wait_for_address("call=").await?;
        browser.wait_for("Under way").await?;
        gate.asked().await?;
        Ok(Self { world, gate, browser })
    }

    /// The seconds that the page counts, read in one step: the page exchanges the element for a newer one by itself.
    async fn elapsed(&self) -> Result<String> {
        let told = "return document.querySelector('[data-elapsed]')?.textContent ?? null";
        let told = self.browser.client.execute(told, Vec::new()).await?;
        Ok(told.as_str().context("no seconds")?.to_owned())
    }

    /// Where the middle of the button is.
    async fn button(&self) -> Result<Value> {
        let place = "const button = document.querySelector('#live-answer button');
            button.scrollIntoView({ block: 'center' });
            const box = button.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];";
        Ok(self.browser.client.execute(place, Vec::new()).await?)
    }

    /// Presses the mouse at a place, or releases it.
    async fn mouse(&self, event: &str, place: &Value) -> Result<()> {
        let params =
            json!({ "type": event, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
        self.browser.devtools("Input.dispatchMouseEvent", params).await?;
        Ok(())
    }

    /// Lets the answer come, for which nobody presses anything.
    async fn ends_answered(self) -> Result<()> {
        self.gate.open();
        self.browser.wait_for(&format!("You were charged {PRICE} USDC")).await?;
        ensure!(!self.browser.text().await?.contains("Under way"), "nothing of it is left");
        self.browser.end().await?;
        self.world.settle_for(PRICE).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_counts_its_seconds_and_its_page_becomes_the_answer() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let waiting = Waiting::begin(&tools, true).await?;
    let first = waiting.elapsed().await?;
    eventually("the seconds go on", async || Ok(waiting.elapsed().await? != first)).await?;
    let violations = waiting.browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    // Whoever is about to press Cancel is no reason to keep the answer back.
    waiting
        .browser
        .client
        .execute("document.querySelector('#live-answer button').focus()", Vec::new())
        .await?;
    waiting.ends_answered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_page_of_a_slow_call_looks_again_by_itself() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    Waiting::begin(&tools, false).await?.ends_answered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_ends_on_the_same_page() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let waiting = Waiting::begin(&tools, true).await?;
    waiting.browser.press("#live-answer button").await?;
    waiting.browser.wait_for("You stopped waiting").await?;
    let violations = waiting.browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    waiting.ends_answered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_is_held_down_while_something_changes_still_does_what_it_says() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let waiting = Waiting::begin(&tools, true).await?;
    let place = waiting.button().await?;
    waiting.mouse("mousePressed", &place).await?;
    waiting.browser.heard().await?;
    let other = service_file(&waiting.world.upstream.url(), Charge::Success);
    let other = ServiceFile { name: "Offered meanwhile".to_owned(), ..other };
    waiting.world.consumer.control().tell(endpoint::AddApi, &other).await?;
    let mut heard: Vec<String> = Vec::new();
    eventually("the page hears that something changed", async || {
        heard.extend(waiting.browser.heard().await?);
        Ok(heard.iter().skip_while(|event| *event != "changed").count() > EVENTS_AFTER)
    })
    .await?;
    waiting.mouse("mouseReleased", &place).await?;
    waiting.browser.wait_for("You stopped waiting").await?;
    waiting.ends_answered().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_from_its_row_in_the_log() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let Waiting { world, gate, browser } = Waiting::begin(&tools, true).await?;
    browser.goto("/panel/activity").await?;
    browser.press(".calls form button").await?;
    browser.wait_for_address("done=call-cancelled").await?;
    let page = browser.text().await?;
    ensure!(page.contains("Undecided") && !page.contains("Under way"), "{page}");
    gate.open();
    browser.end().await?;
    world.settle_for(PRICE).await
}
