//! Without a mouse.

use anyhow::{Context, Result, ensure};
use fantoccini::{
    Locator,
    actions::{InputSource as _, KeyAction, KeyActions},
    key::Key,
};
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_testnet::{
    NodeOptions, NodeProcess,
    demo::{Demo, Setup},
};
use farthing_tests::{
    nodes::no_chain,
    upstream::Upstream,
    wait::eventually,
    world::{PRICE, service_file},
};

use serde_json::json;

use crate::{
    browser::{Browser, Tools},
    first_steps,
    site::set_up,
};

/// A node that lives without a chain, and where its console is.
pub async fn node(folder: &tempfile::TempDir) -> Result<(NodeProcess, String)> {
    let options = NodeOptions::new(folder.path().join("node"));
    let node = NodeProcess::start_on(no_chain(), options).await?;
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let origin = console.origin().to_owned();
    Ok((node, origin))
}

/// A browser that has set the console of such a node up, the node, where its console is, and its folder. `None` where no browser
/// can be opened.
pub async fn opened() -> Result<Option<(Browser, NodeProcess, String, tempfile::TempDir)>> {
    let Some(tools) = Tools::find() else { return Ok(None) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &node).await?;
    Ok(Some((browser, node, origin, folder)))
}

/// Types into whatever has the focus.
pub async fn press(browser: &Browser, keys: &str) -> Result<()> {
    browser.client.active_element().await?.send_keys(keys).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_set_up_and_searched_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let code = node.control().ask(endpoint::ShowConsole).await?.setup_code.context("no code")?;
    let browser = Browser::open(&tools, &origin, true).await?;
    browser.goto("/panel").await?;
    eventually("the code can be typed", async || {
        Ok(browser.client.execute("return document.activeElement.id", Vec::new()).await? == "code")
    })
    .await?;
    let tab = String::from(char::from(Key::Tab));
    let enter = String::from(char::from(Key::Enter));
    for keys in [&code, &tab, "four random words", &tab, "four random words", &enter] {
        press(&browser, keys).await?;
    }
    walks_through_the_steps(&browser, &enter).await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), farthing_control::types::Charge::Success);
    node.control().tell(endpoint::AddApi, &file).await?;
    // The first stop leads past the navigation.
    let body = browser.client.find(Locator::Css("body")).await?;
    body.send_keys(&tab).await?;
    ensure!(browser.client.active_element().await?.text().await?.contains("Skip"));
    browser.goto("/panel/catalog").await?;
    browser.client.find(Locator::Css("body")).await?.send_keys("/").await?;
    press(&browser, "nothing like it").await?;
    // Whoever pauses between two keys sees the results of a part of it first.
    eventually("the address follows all that is typed", async || {
        Ok(browser.client.current_url().await?.query() == Some("q=nothing+like+it"))
    })
    .await?;
    browser.wait_for("No services match").await?;
    browser.end().await
}

/// The steps that follow the password: the words and three of them, then on by their buttons.
async fn walks_through_the_steps(browser: &Browser, enter: &str) -> Result<()> {
    browser.wait_for("Step 2 of 5").await?;
    tab_to(browser, "#console-password").await?;
    press(browser, "four random words").await?;
    press(browser, enter).await?;
    let words = first_steps::words(browser).await?;
    tab_to(browser, "a.button.primary").await?;
    press(browser, enter).await?;
    for (name, word) in first_steps::asked(browser, &words).await? {
        tab_to(browser, &format!("input[name={name}]")).await?;
        press(browser, &word).await?;
    }
    press(browser, enter).await?;
    for step in ["Step 3 of 5", "Step 4 of 5", "Step 5 of 5"] {
        browser.wait_for(step).await?;
        tab_to(browser, ".step-actions a:first-child").await?;
        press(browser, enter).await?;
    }
    browser.wait_for("Welcome to Farthing").await
}

/// Goes on with the tabulator until what has the focus fits. It is pressed rather than typed: what is typed into a field for files is
/// taken for the name of one.
pub async fn tab_to(browser: &Browser, selector: &str) -> Result<()> {
    const STOPS_MAX: usize = 80;
    let value = char::from(Key::Tab);
    let fits = format!("return document.activeElement.matches('{selector}')");
    for _ in 0..STOPS_MAX {
        if browser.client.execute(&fits, Vec::new()).await?.as_bool() == Some(true) {
            return Ok(());
        }
        let keys = KeyActions::new("keyboard".to_owned());
        let pressed = keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        browser.client.perform_actions(pressed).await?;
    }
    anyhow::bail!("the tabulator does not lead to {selector}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_tried_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let upstream = Upstream::start().await?;
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" }, "paths": {
        "/colours": { "get": { "parameters": [{ "name": "limit", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "ok", "content": { "application/json": {
                "example": [{ "name": "ochre" }], "schema": { "type": "array" } } } } } } } } });
    let file = ServiceFile {
        name: "Colours".to_owned(),
        upstream: upstream.url(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "colours.json".to_owned())),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &node).await?;
    let enter = String::from(char::from(Key::Enter));
    eventually("the service can be tried", async || {
        browser.goto(&format!("/panel/catalog/{}", api.id)).await?;
        Ok(browser.text().await?.contains("Try it"))
    })
    .await?;
    tab_to(&browser, "a.button.primary").await?;
    press(&browser, &enter).await?;
    browser.wait_for_address("/sandbox").await?;
    tab_to(&browser, "input[type=number]").await?;
    press(&browser, "7").await?;
    eventually("the code follows what is typed", async || {
        let code = browser.client.find(Locator::Css("#code input:checked + label + .code-box code")).await?;
        Ok(code.text().await.is_ok_and(|code| code.contains("\"limit\": \"7\"")))
    })
    .await?;
    tab_to(&browser, "button[value=sample]").await?;
    press(&browser, &enter).await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("ochre").await?;
    browser.wait_for("you were not charged").await?;
    ensure!(upstream.hits() == 0, "a sample asks nobody");
    browser.end().await
}

/// Twenty days in which the number of the day is answered.
const DAYS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_one_stop_and_arrows_lead_from_value_to_value() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let days: Vec<_> =
        (1..=DAYS).map(|day| json!({ "date": format!("2024-01-{day:02}"), "high": day })).collect();
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Days", "version": "1" }, "paths": {
        "/days": { "get": { "responses": { "200": { "description": "ok", "content": { "application/json": {
            "example": days, "schema": { "type": "array" } } } } } } } } });
    let file = ServiceFile {
        name: "Days".to_owned(),
        upstream: upstream.url(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "days.json".to_owned())),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    eventually("the service can be tried", async || {
        browser.goto(&format!("/panel/catalog/{}/sandbox", api.id)).await?;
        Ok(browser.text().await?.contains("Show free sample"))
    })
    .await?;
    browser.press("button[value=sample]").await?;
    let shown = browser.wait_for_address("call=").await?;
    let place = format!("{}?{}&view=chart", shown.path(), shown.query().unwrap_or_default());
    browser.goto(&place).await?;
    tab_to(&browser, ".plot").await?;
    for (key, at) in [
        (Key::Right, DAYS),
        (Key::Left, DAYS - 1),
        (Key::Home, 1),
        (Key::Left, 1),
        (Key::PageUp, 11),
        (Key::Up, 12),
        (Key::End, DAYS),
    ] {
        press(&browser, &char::from(key).to_string()).await?;
        let said = "const plot = document.activeElement; return [plot.getAttribute('role'),
            plot.getAttribute('aria-valuenow'), plot.getAttribute('aria-valuetext'),
            plot.querySelector('.told').innerText, plot.querySelectorAll('.here').length]";
        let said = browser.client.execute(said, Vec::new()).await?;
        let words = said[2].as_str().unwrap_or_default().to_owned();
        let now = at.to_string();
        ensure!(said[0] == "slider" && said[1] == now && said[4] == 1, "{key:?}: {said}");
        ensure!(words.ends_with(&format!(" {at}")) && said[3] == words, "{key:?}: {said}");
    }
    points_at_a_value(&browser).await?;
    // One stop: the next one is the table.
    press(&browser, &char::from(Key::Tab).to_string()).await?;
    let is_behind = "return !document.activeElement.closest('.plot')";
    ensure!(browser.client.execute(is_behind, Vec::new()).await?.as_bool() == Some(true));
    let wrong = browser.violations().await?;
    ensure!(wrong.is_empty(), "{wrong:#?}");
    browser.end().await
}

/// Under the pointer a part of a chart is marked, and has the values of its row in the table behind.
async fn points_at_a_value(browser: &Browser) -> Result<()> {
    let place = "const part = document.querySelectorAll('.plot .hints rect')[2];
        part.scrollIntoView({ block: 'center' });
        const box = part.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2]";
    let place = browser.client.execute(place, Vec::new()).await?;
    let moved = json!({ "type": "mouseMoved", "x": place[0], "y": place[1] });
    browser.devtools("Input.dispatchMouseEvent", moved).await?;
    let told = "const part = document.querySelector('.plot .hints rect:hover');
        const row = document.querySelectorAll('.plot + details tbody tr')[2];
        return part && [part.querySelector('title').textContent, getComputedStyle(part).fillOpacity,
            row.cells[0].textContent, row.cells[1].textContent]";
    let mut told_now = json!(null);
    eventually("a part is under the pointer", async || {
        told_now = browser.client.execute(told, Vec::new()).await?;
        Ok(told_now.is_array())
    })
    .await?;
    let part = |at: usize| told_now[at].as_str().unwrap_or_default();
    ensure!(part(0).starts_with(part(2)) && part(0).ends_with(&format!(" {}", part(3))), "{told_now}");
    ensure!(part(1) == "0.16" && part(3) == "3", "{told_now}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_call_is_paid_for_by_keyboard_alone() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let setup = Setup { gateway_port: 0, panel_port: 0, ..Setup::default() };
    let demo = Demo::start(folder.path(), setup).await?;
    let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
    let browser = Browser::open(&tools, console.origin(), true).await?;
    set_up(&browser, &demo.consumer).await?;
    let sandbox = format!("/panel/catalog/{}/sandbox", demo.earthquakes.api.id);
    eventually("the service can be called", async || {
        browser.goto(&sandbox).await?;
        Ok(browser.text().await?.contains("Call for 0.002 USDC"))
    })
    .await?;
    tab_to(&browser, "button[value=live]").await?;
    let enter = String::from(char::from(Key::Enter));
    press(&browser, &enter).await?;
    browser.wait_for_address("call=").await?;
    browser.wait_for("You were charged 0.002 USDC").await?;
    let spent = demo.consumer.status().await?.spent_today.to_string();
    ensure!(spent == "0.002", "one press is one call: {spent}");
    browser.end().await?;
    farthing_tests::agreement::end(demo).await
}

/// On a phone five rows of filters stood above the first call.
#[tokio::test(flavor = "multi_thread")]
async fn filters_of_the_log_are_folded_on_a_phone_and_open_on_a_desk() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    browser.goto("/panel/activity?outcome=answered").await?;
    let is_seen = async |selector: &str| {
        let script = format!("return document.querySelector('{selector}').checkVisibility()");
        anyhow::Ok(browser.client.execute(&script, Vec::new()).await?.as_bool() == Some(true))
    };
    browser.resize(1280, 800).await?;
    ensure!(is_seen("#outcome").await? && !is_seen(".fold > summary").await?);
    browser.resize(390, 800).await?;
    ensure!(!is_seen("#outcome").await? && is_seen(".fold > summary").await?);
    ensure!(browser.text().await?.contains("1 active"));
    tab_to(&browser, ".fold > summary").await?;
    press(&browser, &char::from(Key::Enter).to_string()).await?;
    ensure!(is_seen("#outcome").await?);
    let wrong = browser.violations().await?;
    ensure!(wrong.is_empty(), "{wrong:#?}");
    browser.end().await
}
