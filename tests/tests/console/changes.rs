//! Changes of one service that come at once: each is made of the one before, and none is lost.

use anyhow::{Result, ensure};
use axum::{Router, extract::State, routing::get};
use farthing_control::{
    endpoint,
    types::{Api, ApiState, Charge, PriceRequest, RescanRequest, ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{
    command::farthing,
    recorder::Recorder,
    upstream::Upstream,
    wait::eventually,
    world::{PRICE, service_file},
};
use farthing_values::Usdc;
use futures::{FutureExt, future::try_join_all};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::Node;

/// The numbers of all versions, oldest first.
async fn versions(node: &Node, api: &Api) -> Result<Vec<u64>> {
    let told = node.process.control().ask(endpoint::ApiVersions.of(api.id)).await?;
    Ok(told.iter().rev().map(|note| note.version).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_come_at_once_are_all_in_the_last_version() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let (one, other) = (Upstream::start().await?, Upstream::start().await?);
    let control = node.process.control();
    let api = control.tell(endpoint::AddApi, &service_file(&one.url(), Charge::Success)).await?;
    let (edit, price) = (endpoint::EditApi.of(api.id), endpoint::PriceApi.of(api.id));
    let priced =
        |method: &str, path: &str| json!({ "price": "0.7", "operation": { "method": method, "path": path } });
    let edits = [
        json!({ "name": "Renamed" }),
        json!({ "summary": "Another line" }),
        json!({ "tags": ["one", "two"] }),
        json!({ "description": "Told anew" }),
        json!({ "charge": "answered" }),
        json!({ "upstream": other.url() }),
        json!({ "hide": [{ "method": "GET", "path": "/html" }] }),
        json!({ "hide": [{ "method": "GET", "path": "/redirect" }] }),
    ];
    let prices = [priced("GET", "/ok"), priced("POST", "/ok"), json!({ "price": "0.9" })];
    let edited = edits.iter().map(async |edit_to| {
        let request = serde_json::from_value(edit_to.clone())?;
        anyhow::Ok(node.process.control().tell(edit.clone(), &request).await?.api.listing_version)
    });
    let repriced = prices.iter().map(async |price_to| {
        let request = serde_json::from_value(price_to.clone())?;
        anyhow::Ok(node.process.control().tell(price.clone(), &request).await?.listing_version)
    });
    let paused = async { anyhow::Ok(control.ask(endpoint::PauseApi.of(api.id)).await?.listing_version) };
    let id = api.id.to_string();
    let typed = async |arguments: &[&str]| -> Result<u64> {
        let ran = farthing(&node.process, &[&["api", "edit", &id], arguments].concat()).await?;
        ran.ends_with(0)?;
        Ok(0)
    };
    let typed = [
        typed(&["--category", "weather"]).boxed(),
        typed(&["--hide", "GET /large/{bytes}"]).boxed(),
        typed(&["--hide", "GET /raw"]).boxed(),
    ];
    let in_console = async {
        let hide = [("operation", "GET /echo"), ("price", "0.1"), ("go", "hide")];
        let page = browser.post(&format!("/panel/apis/{id}/price"), &hide).await?;
        ensure!(page.status == 303, "{page:?}");
        anyhow::Ok(0)
    };
    let (mut numbers, more, paused, ..) = tokio::try_join!(
        try_join_all(edited),
        try_join_all(repriced),
        paused,
        try_join_all(typed),
        in_console
    )?;
    numbers.extend(more);
    numbers.push(paused);

    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    ensure!(numbers.len() == count, "two changes were published under one number: {numbers:?}");
    let all: Vec<u64> = (1..=17).collect();
    ensure!(versions(&node, &api).await? == all, "{:?}", versions(&node, &api).await?);
    let now = control.ask(endpoint::ShowApi.of(api.id)).await?;
    ensure!(now.api.listing_version == 17 && now.api.state == ApiState::Paused, "{now:?}");
    ensure!(
        now.api.name == "Renamed" && now.summary == "Another line" && now.tags == ["one", "two"],
        "{now:?}"
    );
    ensure!(now.description == "Told anew" && now.category == "weather" && now.charge == Charge::Answered);
    ensure!(now.api.upstream.trim_end_matches('/') == other.url(), "{now:?}");
    let mut hidden: Vec<&str> = now.hidden.iter().map(|operation| operation.path.as_str()).collect();
    hidden.sort_unstable();
    ensure!(hidden == ["/echo", "/html", "/large/{bytes}", "/raw", "/redirect"], "{hidden:?}");
    for offer in &now.offers {
        let micros = if offer.path == "/ok" { 700_000 } else { 900_000 };
        ensure!(offer.price.0 == Usdc::from_micros(micros), "{offer:?}");
    }
    Ok(())
}

const NEW_PRICE: Usdc = Usdc::from_micros(900_000);
const DESCRIPTION: &str = r#"{ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" }, "paths": {
    "/a": { "get": { "responses": { "200": { "description": "Fine" } } } } } }"#;

/// Answers with one operation at once, and with two when it is let.
async fn description(State((asked, let_go)): State<(watch::Sender<u32>, watch::Receiver<bool>)>) -> String {
    asked.send_modify(|asked| *asked += 1);
    if *asked.borrow() == 1 {
        return DESCRIPTION.to_owned();
    }
    let _ = let_go.clone().wait_for(|let_go| *let_go).await;
    let mut document: Value = serde_json::from_str(DESCRIPTION).unwrap_or_default();
    document["paths"]["/b"] = document["paths"]["/a"].clone();
    document.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_set_while_a_description_is_read_again_is_not_undone_by_it() -> Result<()> {
    let node = Node::start().await?;
    let ((asked, mut asked_now), (let_go, held)) = (watch::channel(0), watch::channel(false));
    let router = Router::new().route("/openapi.json", get(description)).with_state((asked, held));
    let server = Recorder::before(router).await?;
    let source = SourceFile::at(SourceKind::Openapi, format!("{}/openapi.json", server.url()));
    let file = ServiceFile { upstream: server.url(), source: Some(source), ..ServiceFile::priced(PRICE) };
    let control = node.process.control();
    let api = control.tell(endpoint::AddApi, &file).await?;

    let again = RescanRequest { source: None, apply: true };
    let read_again = control.tell(endpoint::RescanApi.of(api.id), &again);
    let priced = async {
        asked_now.wait_for(|asked| *asked == 2).await?;
        let request = PriceRequest { price: NEW_PRICE.into(), operation: None };
        let mut pricing = Box::pin(node.process.control().tell(endpoint::PriceApi.of(api.id), &request));
        // It waits for its turn. Were it to go ahead, it would be published by the time others are answered.
        let mut early = None;
        let shown = endpoint::ShowApi.of(api.id);
        for _ in 0..20 {
            tokio::select! {
                biased;
                priced = &mut pricing, if early.is_none() => early = Some(priced?),
                shown = node.process.control().ask(shown.clone()) => drop(shown?),
            }
        }
        let_go.send_replace(true);
        anyhow::Ok(match early {
            Some(priced) => priced,
            None => pricing.await?,
        })
    };
    let (read, priced) = tokio::try_join!(async { Ok(read_again.await?) }, priced)?;
    ensure!(read.applied && read.api.listing_version == 2, "{read:?}");
    ensure!(priced.listing_version == 3 && priced.price.0 == NEW_PRICE, "{priced:?}");
    let now = control.ask(endpoint::ShowApi.of(api.id)).await?;
    ensure!(now.api.price.0 == NEW_PRICE && now.offers.len() == 2, "{now:?}");
    ensure!(versions(&node, &api).await? == [1, 2, 3]);
    eventually("nothing of it is held any more", async || {
        Ok(node.process.control().ask(endpoint::PauseApi.of(api.id)).await.is_ok())
    })
    .await
}
