//! The reference and the sandbox of a service with hundreds of operations, in a real browser.

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{upstream::Upstream, wait::eventually, world::PRICE};
use serde_json::{Map, Value, json};

use crate::{
    browser::Browser,
    keyboard::{opened, press, tab_to},
    site::has,
};

/// More than a list of choices ever had.
const OPERATIONS: usize = 300;
const CODE: &str = "#code input:checked + label + .code-box code";

fn document() -> Value {
    let operation = |at: usize| {
        let limit =
            json!({ "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": 100 } });
        let answer = json!({ "description": "All of them", "content": { "application/json": {
            "schema": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } },
            "example": [{ "name": "ochre" }] } } });
        let operation = json!({ "summary": format!("Colours of shelf {at}"), "parameters": [limit],
            "responses": { "200": answer } });
        (format!("/room{}/shelf{at}", at / 50), json!({ "get": operation }))
    };
    let paths: Map<String, Value> = (0..OPERATIONS).map(operation).collect();
    json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" }, "paths": paths })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_found_read_and_tried_by_keyboard_alone() -> Result<()> {
    let Some((browser, node, _, _folder)) = opened().await? else { return Ok(()) };
    let upstream = Upstream::start().await?;
    let source = SourceFile::given(SourceKind::Openapi, document().to_string(), "colours.json".to_owned());
    let file = ServiceFile {
        name: "Colours".to_owned(),
        upstream: upstream.url(),
        source: Some(source),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.control().tell(endpoint::AddApi, &file).await?;
    let reference = format!("/panel/catalog/{}/reference", api.id);
    eventually("the operations are known", async || {
        browser.goto(&reference).await?;
        Ok(browser.text().await?.contains("300 operations"))
    })
    .await?;
    panes_are_side_by_side_or_below_another(&browser).await?;

    // Found as one types, from wherever one is.
    browser.client.find(Locator::Css("body")).await?.send_keys("/").await?;
    press(&browser, "shelf 299").await?;
    // Between two keys the results of a part of it may come: the 11 operations of shelf 29, for example.
    browser.wait_for_address("q=shelf+299").await?;
    let count = "return document.getElementById('count').textContent";
    let count = browser.client.execute(count, Vec::new()).await?;
    ensure!(count == "1 of 300 operations", "{count}");
    let enter = "\u{e007}";
    tab_to(&browser, ".leaves a").await?;
    press(&browser, enter).await?;
    eventually("the operation is shown", async || {
        // The results of the page before name it, too.
        let Ok(heading) = browser.client.find(Locator::Id("operation")).await else { return Ok(false) };
        Ok(heading.text().await.is_ok_and(|heading| heading == "Colours of shelf 299"))
    })
    .await?;
    browser.wait_for("at most 100").await?;
    tab_to(&browser, ".languages a[href*=\"language=python\"]").await?;
    press(&browser, enter).await?;
    browser.wait_for_address("language=python").await?;
    ensure!(has(&browser, ".languages a[aria-current][href*='language=python']").await, "Python is open");
    no_violations(&browser).await?;

    tab_to(&browser, "a.try").await?;
    press(&browser, enter).await?;
    browser.wait_for_address("/sandbox").await?;
    tab_to(&browser, "input[type=number]").await?;
    press(&browser, "7").await?;
    eventually("the code follows in the language that was open", async || {
        let code = browser.client.find(Locator::Css(CODE)).await?.text().await;
        Ok(code.is_ok_and(|code| {
            code.contains("import ") && code.contains("shelf299") && code.contains("\"7\"")
        }))
    })
    .await?;
    // An arrow goes on to the next language.
    tab_to(&browser, "#code input:checked").await?;
    press(&browser, "\u{e014}").await?;
    ensure!(has(&browser, "#code-typescript:checked").await, "another language is open");
    no_violations(&browser).await?;
    panes_are_side_by_side_or_below_another(&browser).await?;
    browser.end().await
}

async fn no_violations(browser: &Browser) -> Result<()> {
    let violations = browser.violations().await?;
    ensure!(violations.is_empty(), "{violations:?}");
    Ok(())
}

/// Three panes on a desk, each beside the one before; one below another on a phone.
async fn panes_are_side_by_side_or_below_another(browser: &Browser) -> Result<()> {
    let ask = "return [...document.querySelectorAll('.workbench > *')].map((pane) => {
        const box = pane.getBoundingClientRect();
        return [box.left, box.right, box.top, box.bottom].map(Math.round); })";
    for (width, is_desk) in [(360, false), (1280, true)] {
        browser.resize(width, 800).await?;
        let panes = browser.client.execute(ask, Vec::new()).await?;
        let panes: Vec<[i64; 4]> = serde_json::from_value(panes).context("no panes")?;
        ensure!(panes.len() == 3, "{panes:?}");
        for (one, next) in panes.iter().zip(&panes[1..]) {
            let follows = if is_desk { one[1] <= next[0] } else { one[3] <= next[2] };
            ensure!(follows, "{width} px: {panes:?}");
        }
        ensure!(browser.overflow().await?.is_none(), "{:?}", browser.overflow().await?);
    }
    Ok(())
}
