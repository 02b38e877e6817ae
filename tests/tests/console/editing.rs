//! A service that is registered, changed in the console: its texts, its server, what it offers; and whether it is found.

use anyhow::{Result, ensure};
use farthing::control::types::{Api, ApiShown, CatalogService, Charge, ListingHealth, route};
use farthing_tests::{
    command::farthing,
    upstream::Upstream,
    world::{FUNDS, PRICE, World, eventually, service_file},
};
use serde_json::json;

use crate::{
    register::begin,
    support::{Node, set_up},
};

async fn shown(node: &Node) -> Result<ApiShown> {
    let apis: Vec<Api> = node.process.control().get(route::APIS).await?;
    ensure!(apis.len() == 1, "{apis:?}");
    Ok(node.process.control().get(&route::API.replace("{id}", &apis[0].id.to_string())).await?)
}

fn offers(shown: &ApiShown) -> Vec<&str> {
    shown.offers.iter().map(|offer| offer.path.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_server_of_a_service_are_changed_and_its_secrets_are_not_shown() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = node.set_up().await?;
    let (one, other) = (Upstream::start().await?, Upstream::start().await?);
    let api: Api =
        node.process.control().post(route::APIS, &service_file(&one.url(), Charge::Success)).await?;
    let edit = format!("/panel/apis/{}/edit", api.id);
    let page = browser.get(&edit).await?;
    ensure!(page.status == 200 && page.body.contains("Test service"), "{page:?}");
    let url = other.url();
    let fields = |name: &'static str, upstream: &'static str| {
        [
            ("name", name),
            ("summary", "In one line, newly"),
            ("description", "# Newly\r\n\r\nTold."),
            ("category", "weather"),
            ("tags", "one, two"),
            ("upstream", upstream),
            ("charge", "answered"),
            ("header_name", "X-Key"),
            ("header_value", "very-secret-value"),
        ]
    };
    let upstream: &'static str = url.leak();
    for (name, upstream, wrong) in [
        ("", upstream, "name is empty"),
        ("Another name", "ftp://127.0.0.1", "upstream"),
        ("Another name", "http://169.254.169.254/", "upstream"),
    ] {
        let page = browser.post(&edit, &fields(name, upstream)).await?;
        ensure!(page.status == 422 && page.body.to_lowercase().contains(wrong), "{wrong}: {page:?}");
        ensure!(!page.body.contains("very-secret-value"), "{page:?}");
    }
    ensure!(shown(&node).await?.api.listing_version == 1, "nothing was changed");
    let page = browser.post(&edit, &fields("Another name", upstream)).await?;
    ensure!(page.header("location") == format!("/panel/apis/{}?changed=1", api.id), "{page:?}");
    ensure!(browser.get(page.header("location")).await?.body.contains("Published as version 2"));
    let now = shown(&node).await?;
    ensure!(
        now.api.id == api.id
            && now.api.name == "Another name"
            && now.api.upstream.trim_end_matches('/') == upstream
    );
    ensure!(now.summary == "In one line, newly" && now.description == "# Newly\n\nTold.", "{now:?}");
    ensure!(now.category == "weather" && now.tags == ["one", "two"] && now.charge == Charge::Answered);
    ensure!(now.secrets == ["X-Key"] && offers(&now).len() == api.operations.len(), "{now:?}");
    ensure!(!browser.get(&edit).await?.body.contains("very-secret-value"));

    // Nothing different is no new version.
    let same = [
        ("name", "Another name"),
        ("summary", "In one line, newly"),
        ("description", "# Newly\r\n\r\nTold."),
        ("category", "weather"),
        ("tags", "one, two"),
        ("upstream", now.api.upstream.as_str()),
        ("charge", "answered"),
    ];
    let page = browser.post(&edit, &same).await?;
    ensure!(page.header("location") == format!("/panel/apis/{}", api.id), "{page:?}");
    ensure!(shown(&node).await?.api.listing_version == 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_hidden_and_offered_again_and_a_later_reading_keeps_what_was_changed() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = node.set_up().await?;
    let item = json!({ "get": { "responses": { "200": { "description": "Fine" } } } });
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" },
        "servers": [{ "url": "http://127.0.0.1:9" }], "paths": { "/a": item, "/b": item } })
    .to_string();
    let draft = begin(&mut browser, &document, "0.1").await?;
    let page = browser.post(&format!("{draft}/preview"), &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    let id = shown(&node).await?.api.id;
    let offer = format!("/panel/apis/{id}/offer");
    let go = |operation: &'static str, go: &'static str| {
        [("operation", None, operation.as_bytes()), ("go", None, go.as_bytes())]
    };
    let hide = [("operation", "GET /a"), ("price", "0.1"), ("go", "hide")];
    let page = browser.post(&format!("/panel/apis/{id}/price"), &hide).await?;
    ensure!(page.status == 303, "{page:?}");
    let now = shown(&node).await?;
    ensure!(offers(&now) == ["/b"] && now.hidden.len() == 1 && now.hidden[0].path == "/a", "{now:?}");
    ensure!(now.samples.iter().all(|sample| sample.operation != "GET /a"), "{now:?}");
    let page = browser.get(&format!("/panel/apis/{id}")).await?;
    ensure!(page.body.contains("Not offered") && page.body.contains("Offer again"), "{page:?}");
    for (operation, what, wrong) in [
        ("GET /b", "hide", "leaves nothing to offer"),
        ("GET /c", "hide", "not offered"),
        ("GET /b", "offer", "not hidden"),
        ("GET /a", "offer", "was the file"),
    ] {
        let page = browser.upload(&offer, &go(operation, what)).await?;
        ensure!(page.status == 422 && page.body.contains(wrong), "{operation} {what}: {page:?}");
    }
    let named = ["api", "edit", &id.to_string(), "--name", "Renamed", "--tag", "kept"];
    farthing(&node.process, &named).await?.ends_with(0)?;
    let [operation, what] = go("GET /a", "offer");
    let file = ("file", Some("api.json"), document.as_bytes());
    let page = browser.upload(&offer, &[operation, what, file]).await?;
    ensure!(page.status == 303, "{page:?}");
    let now = shown(&node).await?;
    ensure!(offers(&now) == ["/a", "/b"] && now.hidden.is_empty(), "{now:?}");
    ensure!(now.api.name == "Renamed" && now.tags == ["kept"], "a reading lost what was changed: {now:?}");
    farthing(&node.process, &["api", "edit", &id.to_string(), "--hide", "GET /b"]).await?.ends_with(0)?;
    ensure!(offers(&shown(&node).await?) == ["/a"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_consumers_and_the_owner_sees_that_its_listing_is_found() -> Result<()> {
    let world = World::start().await?;
    ensure!(world.get("/ok").await?.status == 200);
    let id = world.api.id.to_string();
    farthing(&world.owner, &["api", "edit", &id, "--name", "Found by others", "--hide", "GET /html"])
        .await?
        .ends_with(0)?;
    let own = route::CATALOG_SERVICE.replace("{id}", &id);
    eventually("the consumer has the new version", async || {
        let service = world.consumer.control().get::<CatalogService>(&own).await;
        Ok(service.is_ok_and(|service| service.hit.name == "Found by others"))
    })
    .await?;
    let health = route::API_HEALTH.replace("{id}", &id);
    eventually("the consumer says that it has the listing", async || {
        let health: ListingHealth = world.owner.control().get(&health).await?;
        Ok(health.asked == 1 && health.current == 1 && health.details_served == Some(true))
    })
    .await?;
    let mut browser = set_up(&world.owner).await?;
    let page = browser.get(&format!("/panel/apis/{id}?check=1")).await?;
    ensure!(page.body.contains("Seen by 1 of 1 connected node<"), "{page:?}");
    ensure!(page.body.contains("takes connections"), "{page:?}");
    let told = farthing(&world.owner, &["api", "health", &id]).await?;
    ensure!(told.ends_with(0)?.out.contains("1 of 1 connected nodes"), "{told:?}");
    ensure!(world.get("/ok").await?.status == 200, "what is still offered is served");
    let hidden = world.get("/html").await?;
    ensure!(hidden.status == 404 && hidden.charged() == false, "{hidden:?}");
    let spent = world.settle_and_check(FUNDS).await?;
    ensure!(spent == PRICE.checked_mul(2).unwrap_or_default(), "{spent}");
    Ok(())
}
