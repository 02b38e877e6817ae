//! A service that is registered, changed in the console: its texts, its server, what it offers; and whether it is found.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{AlertKind, ApiShown, Charge, DescriptionOrigin},
};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    command::farthing,
    upstream::Upstream,
    wait::eventually,
    world::{FUNDS, PRICE, World, service_file},
};
use serde_json::json;

use crate::{
    register::begin,
    support::{Node, PASSWORD, set_up},
};

async fn shown(node: &Node) -> Result<ApiShown> {
    let apis = node.process.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1, "{apis:?}");
    Ok(node.process.control().ask(endpoint::ShowApi.of(apis[0].id)).await?)
}

fn offers(shown: &ApiShown) -> Vec<&str> {
    shown.offers.iter().map(|offer| offer.path.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_server_of_a_service_are_changed_and_its_secrets_are_not_shown() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let (one, other) = (Upstream::start().await?, Upstream::start().await?);
    let api =
        node.process.control().tell(endpoint::AddApi, &service_file(&one.url(), Charge::Success)).await?;
    let edit = format!("/panel/apis/{}/edit", api.id);
    let page = browser.get(&edit).await?;
    ensure!(page.status == 200 && page.body.contains("Test service"), "{page:?}");
    let url = other.url();
    let fields = |version: &'static str, name: &'static str, upstream: &'static str| {
        [
            ("version", version),
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
        let page = browser.post(&edit, &fields("1", name, upstream)).await?;
        ensure!(page.status == 422 && page.body.to_lowercase().contains(wrong), "{wrong}: {page:?}");
        ensure!(!page.body.contains("very-secret-value"), "{page:?}");
    }
    ensure!(shown(&node).await?.api.listing_version == 1, "nothing was changed");
    let page = browser.post(&edit, &fields("1", "Another name", upstream)).await?;
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
    assert_eq!(now.origin, DescriptionOrigin::ByHand);
    ensure!(!browser.get(&edit).await?.body.contains("very-secret-value"));

    // A page that was opened before somebody else's change does not undo it.
    let page = browser.post(&edit, &fields("1", "Test service", upstream)).await?;
    ensure!(page.status == 422 && page.body.contains("because somebody changed it"), "{page:?}");
    ensure!(page.field("version")? == "2", "whoever sends it again has seen what is there now");
    ensure!(shown(&node).await?.api.name == "Another name");

    // Nothing different is no new version.
    let same = [
        ("version", "2"),
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

    // A secret is taken away without another in its place.
    let secrets = format!("/panel/apis/{}/secrets", api.id);
    for (fields, wrong) in
        [(&[("name", "X-Key")][..], "Confirm that"), (&[("name", "X-Other"), ("sure", "1")], "does not add")]
    {
        let page = browser.post(&secrets, fields).await?;
        ensure!(page.status == 422 && page.body.contains(wrong), "{wrong}: {page:?}");
    }
    ensure!(shown(&node).await?.secrets == ["X-Key"]);
    let page = browser.post(&secrets, &[("name", "X-Key"), ("sure", "1")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let now = shown(&node).await?;
    ensure!(now.secrets.is_empty() && now.api.listing_version == 3, "{now:?}");
    let id = api.id.to_string();
    let two = ["--upstream-header", "X-Key=a", "--upstream-query", "key=b"];
    farthing(&node.process, &[&["api", "edit", &id][..], &two].concat()).await?.ends_with(0)?;
    ensure!(shown(&node).await?.secrets == ["X-Key", "key"]);
    farthing(&node.process, &["api", "edit", &id, "--remove-secret", "x-key"]).await?.ends_with(0)?;
    ensure!(shown(&node).await?.secrets == ["key"], "the other stays");
    farthing(&node.process, &["api", "edit", &id, "--remove-secret", "x-key"]).await?.ends_with(2)?;
    let version = shown(&node).await?.api.listing_version;
    farthing(&node.process, &["api", "edit", &id])
        .await?
        .fails(2, &["there is nothing to change", "api price"])?;
    assert_eq!(shown(&node).await?.api.listing_version, version, "no version that differs in nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_another_server_does_not_get_are_said_to_be_dropped() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let (one, other) = (Upstream::start().await?, Upstream::start().await?);
    let file = service_file(&one.url(), Charge::Success);
    let api = node.process.control().tell(endpoint::AddApi, &file).await?;
    let id = api.id.to_string();
    let keys = ["api", "edit", &id, "--upstream-header", "X-Key=a", "--upstream-query", "key=b"];
    let told = farthing(&node.process, &keys).await?;
    ensure!(!told.ends_with(0)?.out.contains("Removed: "), "{told:?}");
    let fields = |version, upstream| {
        [
            ("version", version),
            ("name", "Other words"),
            ("summary", ""),
            ("description", ""),
            ("category", ""),
            ("tags", ""),
        ]
        .into_iter()
        .chain([("upstream", upstream), ("charge", "success")])
        .collect::<Vec<(&str, &str)>>()
    };
    let edit = format!("/panel/apis/{id}/edit");
    let (first, second) = (one.url(), other.url());
    let version = browser.get(&edit).await?.field("version")?;
    let page = browser.post(&edit, &fields(&version, first.as_str())).await?;
    ensure!(page.status == 303 && !page.header("location").contains("done="), "the same server: {page:?}");
    ensure!(shown(&node).await?.secrets == ["X-Key", "key"]);
    let version = browser.get(&edit).await?.field("version")?;
    let page = browser.post(&edit, &fields(&version, second.as_str())).await?;
    let place = page.header("location").to_owned();
    ensure!(place == format!("/panel/apis/{id}?changed=1&done=keys-dropped"), "{page:?}");
    ensure!(browser.get(&place).await?.body.contains("so they were removed"), "{page:?}");
    ensure!(shown(&node).await?.secrets.is_empty());

    farthing(&node.process, &keys).await?.ends_with(0)?;
    // Who takes one away by name knows.
    let told = farthing(&node.process, &["api", "edit", &id, "--remove-secret", "key"]).await?;
    ensure!(!told.ends_with(0)?.out.contains("Removed: "), "{told:?}");
    let told = farthing(&node.process, &["api", "edit", &id, "--upstream", &first]).await?;
    let said = format!("{}{}", told.ends_with(0)?.out, told.err);
    ensure!(said.contains("Removed: X-Key.") && said.contains("--upstream-header"), "{told:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_hidden_and_offered_again_and_a_later_reading_keeps_what_was_changed() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
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
    ensure!(page.body.contains("1 offered, 1 hidden") && !page.body.contains("Offer again"), "{page:?}");
    let page = browser.get(&format!("/panel/apis/{id}/operations")).await?;
    ensure!(page.body.contains("Hidden operations") && page.body.contains("Offer again"), "{page:?}");
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
async fn with_an_old_password_no_page_decides_what_others_may_call_with_the_owners_keys() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    let item = json!({ "get": { "responses": { "200": { "description": "Fine" } } } });
    let document = |paths: serde_json::Value| {
        json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" },
            "servers": [{ "url": "http://127.0.0.1:9" }], "paths": paths })
        .to_string()
    };
    let draft = begin(&mut browser, &document(json!({ "/a": item, "/b": item })), "0.1").await?;
    ensure!(browser.post(&format!("{draft}/preview"), &[]).await?.status == 303);
    let id = shown(&node).await?.api.id;
    let (own, price) = (format!("/panel/apis/{id}"), format!("/panel/apis/{id}/price"));
    node.restart(&mut browser).await?;

    let hide = [("operation", "GET /a"), ("price", "0.1"), ("go", "hide")];
    ensure!(browser.press(&price, &hide).await?.asks_for_password(), "hiding asks for the password");
    let newer = document(json!({ "/admin": item }));
    let file = ("file", Some("api.json"), newer.as_bytes());
    let operation = ("operation", None, &b"GET /a"[..]);
    for (path, go) in [("read-again", "apply"), ("read-again", "see"), ("offer", "offer"), ("offer", "hide")]
    {
        let parts = [operation, ("go", None, go.as_bytes()), file];
        let page = browser.upload(&format!("{own}/{path}"), &parts).await?;
        ensure!(page.status == 403 && page.body.contains("too long ago"), "{path} {go}: {page:?}");
    }
    ensure!(offers(&shown(&node).await?) == ["/a", "/b"], "nothing was changed");
    let page = browser.get(&own).await?;
    ensure!(page.body.contains("<label for=\"console-password\">Console password</label>"), "{page:?}");
    let password = ("console_password", None, PASSWORD.as_bytes());
    let page = browser.upload(&format!("{own}/read-again"), &[password, ("go", None, b"see"), file]).await?;
    ensure!(page.body.contains("Added: GET /admin"), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_consumers_and_the_owner_sees_that_its_listing_is_found() -> Result<()> {
    let mut world = World::start().await?;
    ensure!(world.get("/ok").await?.status == 200);
    let id = world.api.id.to_string();
    farthing(&world.owner, &["api", "edit", &id, "--name", "Found by others", "--hide", "GET /html"])
        .await?
        .ends_with(0)?;
    let own = endpoint::CatalogService.of(&id);
    eventually("the consumer has the new version", async || {
        let service = world.consumer.control().ask(own.clone()).await;
        Ok(service.is_ok_and(|service| service.hit.name == "Found by others"))
    })
    .await?;
    eventually("the consumer says that it has the listing", async || {
        let health = world.owner.control().ask(endpoint::ApiHealth.of(&id)).await?;
        Ok(health.asked == 1 && health.current == 1 && health.details_served == Some(true))
    })
    .await?;
    let mut browser = set_up(&world.owner).await?;
    let page = browser.get(&format!("/panel/apis/{id}?check=1")).await?;
    ensure!(page.body.contains("Seen by 1 of 1 connected node<"), "{page:?}");
    ensure!(page.body.contains("accepts connections, in"), "{page:?}");
    let told = farthing(&world.owner, &["api", "health", &id]).await?;
    ensure!(told.ends_with(0)?.out.contains("1 of 1 connected nodes"), "{told:?}");
    let page = browser.get(&format!("/panel/apis/{id}")).await?;
    ensure!(page.body.contains("Removed: GET /html") && page.body.contains("Version 1<"), "{page:?}");
    versions_are_told(&mut world, &id).await?;
    // Both nodes were restarted and find each other again first; a call that fails meanwhile is free.
    eventually("what is still offered is served", async || Ok(world.get("/ok").await?.status == 200)).await?;
    let hidden = world.get("/html").await?;
    ensure!(hidden.status == 404 && hidden.charged() == false, "{hidden:?}");
    let spent = world.settle_and_check(FUNDS).await?;
    ensure!(spent == PRICE.checked_mul(2).unwrap_or_default(), "{spent}");
    Ok(())
}

/// What was different, for the owner and for a stranger, over restarts of both.
async fn versions_are_told(world: &mut World, id: &str) -> Result<()> {
    let hidden = "removed: GET /html";
    let own = world.owner.control().ask(endpoint::ApiVersions.of(id)).await?;
    let numbers: Vec<u64> = own.iter().map(|note| note.version).collect();
    ensure!(numbers == [2, 1] && own[1].what == ["published"] && own[0].price.0 == PRICE, "{own:?}");
    for what in [hidden, "renamed to “Found by others”"] {
        ensure!(own[0].what.iter().any(|told| told == what), "{what}: {own:?}");
    }
    // A stranger has it from the owner, word for word, and sees the newest with the service.
    let told = world.consumer.control().ask(endpoint::CatalogVersions.of(id)).await?;
    ensure!(told == own, "{told:?}");
    let shown = farthing(&world.consumer, &["catalog", "show", id]).await?;
    ensure!(shown.ends_with(0)?.out.contains(hidden), "{shown:?}");
    let mut browser = set_up(&world.consumer).await?;
    let page = browser.get(&format!("/panel/catalog/{id}?part=versions")).await?;
    ensure!(
        page.body.contains("Removed: GET /html") && page.body.contains("The owner provides this history"),
        "{page:?}"
    );

    let median = async |node: &NodeProcess| -> Result<Option<u64>> {
        let apis = node.control().ask(endpoint::Apis).await?;
        Ok(apis.first().and_then(|api| api.upstream_median_us))
    };
    let before = median(&world.owner).await?;
    ensure!(before.is_some(), "nothing was measured");
    eventually("what was seen is kept", async || {
        let networks = std::fs::read_dir(world.consumer.data_dir().join("networks"))?;
        let mut kept = networks.filter_map(Result::ok).map(|network| network.path().join("versions.json"));
        Ok(kept.any(|file| file.exists()))
    })
    .await?;
    // Each comes back on another port. Were both away at once, neither would know where the other is.
    for node in [&mut world.owner, &mut world.consumer] {
        node.stop().await?;
        node.restart_until_ready(Vec::new()).await?;
        eventually("it is connected again", async || {
            let peers = node.control().ask(endpoint::Peers).await?;
            Ok(!peers.is_empty())
        })
        .await?;
    }
    ensure!(median(&world.owner).await? == before, "what the server takes is forgotten");
    let told = farthing(&world.owner, &["api", "versions", id]).await?;
    ensure!(told.ends_with(0)?.out.contains(hidden), "{told:?}");
    eventually("the consumer still knows what it saw", async || {
        let seen = farthing(&world.consumer, &["catalog", "versions", id]).await?;
        Ok(seen.code == 0 && seen.out.contains(hidden))
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_an_alert_until_it_is_back() -> Result<()> {
    let mut node = Node::start().await?;
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = server.local_addr()?;
    let file = service_file(&format!("http://{address}"), Charge::Success);
    let api = node.process.control().tell(endpoint::AddApi, &file).await?;
    let is_told = async |node: &Node| -> Result<bool> {
        let alerts = node.process.control().ask(endpoint::Alerts).await?;
        Ok(alerts
            .iter()
            .any(|alert| alert.kind == AlertKind::ServerDown && alert.subject == api.id.to_string()))
    };
    eventually("the server was looked at", async || {
        Ok(shown(&node).await?.api.health.is_some_and(|health| health.upstream_good))
    })
    .await?;
    ensure!(!is_told(&node).await?);
    drop(server);
    eventually("it is told that nobody answers there", async || is_told(&node).await).await?;
    let mut browser = node.set_up().await?;
    let page = browser.get("/panel/apis").await?;
    ensure!(page.body.contains("One of your servers accepts no calls"), "{page:?}");
    ensure!(page.body.contains("<span class=\"bad\">accepts no connection"), "{page:?}");
    node.process.stop().await?;
    node.process.restart(Vec::new()).await?;
    ensure!(is_told(&node).await?, "a restart forgets it");
    let _server = tokio::net::TcpListener::bind(address).await?;
    eventually("all is well again", async || Ok(!is_told(&node).await?)).await
}
