//! My APIs in the console: what was earned, and pausing, pricing, reading again, retiring.

use anyhow::{Result, ensure};
use farthing_control::{endpoint, types::Api};
use farthing_tests::{
    upstream::Upstream,
    world::{World, service_file},
};
use serde_json::json;

use crate::{register::begin, support::Node};

async fn api(node: &Node) -> Result<Api> {
    let apis = node.process.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1, "{apis:?}");
    Ok(apis[0].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_paused_resumed_priced_and_retired() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), farthing_control::types::Charge::Success);
    node.process.control().tell(endpoint::AddApi, &file).await?;
    let id = api(&node).await?.id.to_string();
    let own = format!("/panel/apis/{id}");
    ensure!(browser.get("/panel/apis").await?.body.contains("Test service"));
    let page = browser.post(&format!("{own}/state"), &[("state", "paused"), ("list", "1")]).await?;
    ensure!(page.header("location") == "/panel/apis?done=paused", "{page:?}");
    ensure!(browser.get(page.header("location")).await?.body.contains("Paused: nobody can call it"));
    ensure!(api(&node).await?.state.to_string() == "paused");
    ensure!(browser.get(&own).await?.body.contains("Resume"));
    browser.post(&format!("{own}/state"), &[("state", "live")]).await?;
    ensure!(api(&node).await?.state.to_string() == "published");

    let page = browser.post(&format!("{own}/price"), &[("price", "0.25")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let one = [("price", "1,5"), ("operation", "GET /ok")];
    let page = browser.post(&format!("{own}/price"), &one).await?;
    ensure!(page.status == 422 && page.body.contains("not an amount of USDC"), "{page:?}");
    let one = [("price", "1.5"), ("operation", "GET /no-such")];
    let page = browser.post(&format!("{own}/price"), &one).await?;
    ensure!(page.status == 422 && page.body.contains("no operation GET /no-such"), "{page:?}");
    let one = [("price", "1.5"), ("operation", "GET /ok"), ("page", "0")];
    let page = browser.post_and_follow(&format!("{own}/price"), &one).await?;
    ensure!(page.body.contains("aria-label=\"Price of GET /ok\"") && page.body.contains("1.5"), "{page:?}");
    let after = api(&node).await?;
    let price = |path: &str| {
        let operation = after.operations.iter().find(|operation| operation.path == path);
        operation.map(|operation| operation.price.to_string()).unwrap_or_default()
    };
    ensure!(after.price.to_string() == "0.25" && price("/ok") == "1.50" && price("/html") == "0.25");

    let retire = format!("{own}/retire");
    ensure!(browser.press(&retire, &[]).await?.asks_for_password());
    ensure!(api(&node).await?.id.to_string() == id, "it is there");
    ensure!(browser.get(&retire).await?.body.contains("cannot undo"));
    let page = browser.post(&retire, &[]).await?;
    ensure!(page.header("location").starts_with("/panel/apis?retired"), "{page:?}");
    let none = node.process.control().ask(endpoint::Apis).await?;
    ensure!(none.is_empty(), "{none:?}");
    for path in [own.as_str(), "/panel/apis/nonsense", &retire] {
        ensure!(browser.get(path).await?.status == 404, "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_description_is_compared_and_then_published() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let document = |paths: &[&str]| {
        let item = json!({ "get": { "responses": { "200": { "description": "Fine" } } } });
        let paths: serde_json::Map<_, _> =
            paths.iter().map(|path| ((*path).to_owned(), item.clone())).collect();
        json!({ "openapi": "3.1.0", "info": { "title": "Growing", "version": "1" },
            "servers": [{ "url": "http://127.0.0.1:9" }], "paths": paths })
        .to_string()
    };
    let draft = begin(&mut browser, &document(&["/a", "/b"]), "0.1").await?;
    let page = browser.post(&format!("{draft}/preview"), &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    let again = format!("/panel/apis/{}/read-again", api(&node).await?.id);
    let newer = document(&["/b", "/c"]);
    let page =
        browser.upload(&again, &[("file", Some("api.json"), newer.as_bytes()), ("go", None, b"see")]).await?;
    ensure!(page.body.contains("Added: GET /c") && page.body.contains("Removed: GET /a"), "{page:?}");
    ensure!(page.body.contains("Not published yet"), "{page:?}");
    ensure!(api(&node).await?.listing_version == 1);
    let broken = browser.upload(&again, &[("file", Some("api.json"), b"{"), ("go", None, b"apply")]).await?;
    ensure!(broken.status == 422 && broken.body.contains("Nothing was changed"), "{broken:?}");
    let file = ("file", Some("api.json"), newer.as_bytes());
    let page = browser.upload(&again, &[file, ("go", None, b"apply")]).await?;
    ensure!(page.body.contains("Published as version 2"), "{page:?}");
    ensure!(api(&node).await?.operations.len() == 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_earnings_and_failures_are_counted_by_service() -> Result<()> {
    let world = World::start().await?;
    for path in ["/ok", "/ok", "/status/404", "/status/500"] {
        world.get(path).await?;
    }
    let apis = world.owner.control().ask(endpoint::Apis).await?;
    let api = &apis[0];
    ensure!(api.calls == 2 && api.earned.to_string() == "0.004", "{api:?}");
    ensure!(api.errors == 1 && api.last_call_secs.is_some() && api.upstream_median_us.is_some(), "{api:?}");
    world.settle_and_check(farthing_tests::world::FUNDS).await?;
    Ok(())
}
