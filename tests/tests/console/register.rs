//! Registering an API in the console: the whole way, mistakes on it, and what strangers' documents cannot do.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::CatalogKind};
use farthing_tests::{upstream::Upstream, wait::eventually};
use serde_json::{Value, json};

use crate::support::{Browser, Node, PASSWORD, Page};

const NEW: &str = "/panel/apis/new";
const HTML_BYTES_MAX: usize = 60 * 1024;

/// An OpenAPI document with these paths, all GET.
fn document(title: &str, server: &str, paths: &[&str]) -> Value {
    let answer = json!({ "200": { "description": "Fine", "content": { "application/json": {
        "schema": { "type": "object", "properties": { "n": { "type": "integer" } } } } } } });
    let paths: serde_json::Map<String, Value> = paths
        .iter()
        .map(|path| ((*path).to_owned(), json!({ "get": { "summary": "Gives", "responses": answer } })))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": "1", "description": "All about it." },
        "servers": [{ "url": server }],
        "paths": paths,
    })
}

/// Uploads a document, sets a price for what is ticked, and returns the address of the draft.
pub async fn begin(browser: &mut Browser, document: &str, price: &str) -> Result<String> {
    let parts = [
        ("file", Some("api.json"), document.as_bytes()),
        ("text", None, b"".as_slice()),
        ("url", None, b"".as_slice()),
    ];
    let page = browser.upload(NEW, &parts).await?;
    ensure!(page.status == 303, "{page:?}");
    let draft = page.header("location").to_owned();
    let page = set_price(browser, &draft, price).await?;
    ensure!(page.status == 303 && page.header("location").ends_with("/details"), "{page:?}");
    Ok(draft)
}

/// Sends the form of the second step with a price, and with what is ticked in it.
async fn set_price(browser: &mut Browser, draft: &str, price: &str) -> Result<Page> {
    let page = browser.get(draft).await?;
    let boxes = page.body.split("name=\"o\" value=\"").skip(1);
    let ticked = boxes.filter(|rest| rest.split('>').next().is_some_and(|tag| tag.contains("checked")));
    let ticked: Vec<&str> = ticked.filter_map(|rest| rest.split('"').next()).collect();
    let mut fields = vec![("page", "0"), ("price", price), ("go", "next")];
    fields.extend(ticked.iter().map(|index| ("o", *index)));
    browser.post(draft, &fields).await
}

/// What the form of the third step holds, with some of it changed.
async fn details(browser: &mut Browser, draft: &str, changed: &[(&str, &str)]) -> Result<Page> {
    let place = format!("{draft}/details");
    let page = browser.get(&place).await?;
    ensure!(page.status == 200, "{page:?}");
    let value = |name: &str| -> String {
        let Some(at) = page.body.find(&format!(" name=\"{name}\"")) else { return String::new() };
        let rest = &page.body[at..];
        let end = rest.find('>').unwrap_or(rest.len());
        let value = rest[..end].split_once("value=\"").map_or("", |(_, value)| value);
        value.split('"').next().unwrap_or_default().to_owned()
    };
    let names = ["name", "summary", "category", "tags", "upstream", "header_name", "query_name"];
    let mut fields: Vec<(String, String)> = names.map(|name| (name.to_owned(), value(name))).to_vec();
    for name in ["description", "header_value", "query_value", "charge", "samples"] {
        fields.push((name.to_owned(), String::new()));
    }
    for (name, value) in changed {
        fields.retain(|(own, _)| own != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.post(&place, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drafts_keys_go_to_a_server_only_after_the_password() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    node.restart(&mut browser).await?;
    let upstream = Upstream::start().await?;
    let document = document("Weather of today", &upstream.url(), &["/ok"]);
    let draft = begin(&mut browser, &document.to_string(), "0.002").await?;
    const TYPED: [&str; 12] = [
        "name",
        "summary",
        "description",
        "category",
        "tags",
        "charge",
        "samples",
        "upstream",
        "header_name",
        "header_value",
        "query_name",
        "query_value",
    ];
    let tried: Vec<(&str, &str)> = TYPED.iter().map(|name| (*name, "")).chain([("go", "try")]).collect();
    let page = browser.press(&format!("{draft}/details"), &tried).await?;
    ensure!(page.asks_for_password(), "{page:?}");
    ensure!(upstream.hits() == 0, "nothing was sent");
    // Here the browser types the password.
    let page = details(&mut browser, &draft, &[("go", "try")]).await?;
    ensure!(page.status == 200 && page.body.contains("200: the server answers"), "{page:?}");
    ensure!(upstream.hits() == 1, "one request");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_api_is_reviewed_tried_and_registered_and_another_node_has_it() -> Result<()> {
    let node = Node::start().await?;
    let bootstrap = node.process.loopback_address().await?;
    let other = Node::with(vec![("network.bootstrap".to_owned(), bootstrap)]).await?;
    let (mut browser, mut stranger) = (node.set_up().await?, other.set_up().await?);
    let upstream = Upstream::start().await?;
    let document = document("Weather of today", &upstream.url(), &["/ok", "/html", "/slow/{millis}"]);

    let draft = begin(&mut browser, &document.to_string(), "0.002").await?;
    let page = browser.get(&draft).await?;
    ensure!(page.status == 200 && page.body.contains("OpenAPI 3.1"), "{page:?}");
    ensure!(page.body.contains("api.json") && page.body.contains("/slow/{millis}"), "{page:?}");
    ensure!(browser.get("/panel/apis").await?.body.contains("Weather of today"), "it is not finished");

    // The path without a declared parameter may be left out by the bridge; what is ticked is by its number.
    let tick = |path: &str| -> Result<String> {
        let at = page.body.find(path).context("no such row")?;
        let at = page.body[..at].rfind("<label for=\"o").context("no label")? + 13;
        Ok(page.body[at..].chars().take_while(char::is_ascii_digit).collect())
    };
    let (ok, html) = (tick("/ok<")?, tick("/html<")?);
    let own = format!("p{ok}");
    let cheap = [("page", "0"), ("o", &ok), ("o", &html), (&own, "cheap"), ("go", "next")];
    let page = browser.post(&draft, &cheap).await?;
    ensure!(page.body.contains("not an amount of USDC") && page.body.contains("“cheap”"), "{page:?}");
    let page = browser.post(&draft, &[("page", "0"), ("go", "next")]).await?;
    ensure!(page.body.contains("No operation is selected"), "{page:?}");
    for (wrong, words) in
        [("free", "Price is “free”"), ("", "Price is missing"), ("-1", "not an amount of USDC")]
    {
        let page =
            browser.post(&draft, &[("page", "0"), ("o", &ok), ("price", wrong), ("go", "next")]).await?;
        ensure!(page.body.contains(words) && page.body.contains("id=\"result\""), "{wrong}: {page:?}");
    }
    let fields = [("page", "0"), ("o", ok.as_str()), (&own, "0.005"), ("price", "0.002"), ("go", "next")];
    let page = browser.post(&draft, &fields).await?;
    ensure!(page.status == 303 && page.header("location").ends_with("/details"), "{page:?}");

    let page = details(&mut browser, &draft, &[("go", "try")]).await?;
    ensure!(page.status == 200 && page.body.contains("200: the server answers"), "{page:?}");
    ensure!(upstream.hits() == 1, "one request");
    let page = details(&mut browser, &draft, &[("upstream", "http://127.0.0.1:9"), ("go", "try")]).await?;
    ensure!(page.body.contains("No answer"), "{page:?}");
    ensure!(page.body.contains("id=\"tried\""), "the address of the button leads to it: {page:?}");
    let fixed = [("tags", "rain, sun"), ("upstream", &upstream.url()), ("go", "next")];
    let page = details(&mut browser, &draft, &fixed).await?;
    ensure!(page.status == 303 && page.header("location").ends_with("/preview"), "{page:?}");

    let preview = format!("{draft}/preview");
    let page = browser.get(&preview).await?;
    for part in ["Weather of today", "All about it.", "0.005", "rain", "GET /ok", "1 operation"] {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    ensure!(!page.body.contains("GET /html</bdi></code></td>"), "it was not ticked: {page:?}");
    let none = node.process.control().ask(endpoint::Apis).await?;
    ensure!(none.is_empty(), "nothing is published before the button is pressed");

    let page = browser.post(&preview, &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    let place = page.header("location").to_owned();
    ensure!(browser.get(&place).await?.body.contains("Your service is live."));
    ensure!(browser.get(&preview).await?.header("location") == place, "an old page leads to the service");
    ensure!(browser.post(&preview, &[]).await?.header("location") == place, "it is registered once");
    let apis = node.process.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1 && apis[0].operations[0].price.to_string() == "0.005", "{apis:?}");
    eventually("another node has it", async || {
        Ok(stranger.get("/panel/catalog").await?.body.contains("Weather of today"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worst_query_of_an_operation_stands_where_its_price_is_chosen() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let schema = "type Query { users: [User!]! } type User { name: String! friends: [User!]! }";
    let page = browser.upload(NEW, &[("text", None, schema.as_bytes())]).await?;
    ensure!(page.status == 303, "{page:?}");
    let page = browser.get(page.header("location")).await?;
    for words in ["1 warning", "GET /users", "2 nested lists", "fields=friends", "name=\"p0\""] {
        ensure!(page.body.contains(words), "`{words}` is not in {}", page.body);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_schema_and_a_scanned_server_become_services() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let schema = "type Query { planet(id: ID!): String moons: Int } type Mutation { land(id: ID!): Int }";
    let page = browser.upload(NEW, &[("text", None, schema.as_bytes())]).await?;
    ensure!(page.status == 303, "{page:?}");
    let draft = page.header("location").to_owned();
    let page = browser.get(&draft).await?;
    ensure!(page.body.contains("2 of 3 selected") && page.body.contains("mutation"), "{page:?}");
    ensure!(set_price(&mut browser, &draft, "0").await?.status == 303, "it is free");
    let page = details(&mut browser, &draft, &[("go", "next")]).await?;
    ensure!(page.status == 422 && page.body.contains("Name is missing; a GraphQL schema"), "{page:?}");
    let page = details(&mut browser, &draft, &[("name", "Planets"), ("go", "next")]).await?;
    ensure!(page.status == 422 && page.body.contains("Address is missing"), "{page:?}");
    let secret = [
        ("name", "Planets"),
        ("upstream", "http://127.0.0.1:9/graphql"),
        ("header_name", "X-Key"),
        ("header_value", "an-upstream-secret"),
    ];
    let page = details(&mut browser, &draft, &secret).await?;
    ensure!(page.status == 303, "{page:?}");
    for path in [format!("{draft}/details"), format!("{draft}/preview")] {
        let page = browser.get(&path).await?;
        ensure!(page.status == 200 && page.body.contains("X-Key"), "{page:?}");
        ensure!(!page.body.contains("an-upstream-secret"), "secrets are not shown: {page:?}");
    }
    let page = browser.post(&format!("{draft}/preview"), &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    let apis = node.process.control().ask(endpoint::Apis).await?;
    let shown = node.process.control().ask(endpoint::ShowApi.of(apis[0].id)).await?;
    ensure!(
        shown.kind.0 == CatalogKind::Graphql && shown.secrets == ["X-Key"] && shown.offers.len() == 2,
        "{shown:?}"
    );

    let text = document("Found by looking", "/", &["/ok"]).to_string();
    let server = farthing_tests::upstream::raw(Box::leak(
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        )
        .into_boxed_str()
        .into_boxed_bytes(),
    ))
    .await?;
    let page = browser.upload(NEW, &[("url", None, server.as_bytes())]).await?;
    ensure!(page.status == 303, "{page:?}");
    let draft = page.header("location").to_owned();
    ensure!(browser.get(&draft).await?.body.contains("Found by looking"));
    let page = browser.post(&format!("{draft}/discard"), &[]).await?;
    ensure!(page.status == 303 && browser.get(&draft).await?.status == 410, "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_finds_nothing_folds_what_it_tried_and_name_and_price_are_asked_once() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let nothing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = farthing_tests::upstream::raw(nothing).await?;
    let page = browser.upload(NEW, &[("url", None, server.as_bytes())]).await?;
    let (before, after) = page.body.split_once("id=\"result\"").context("no result")?;
    ensure!(
        page.status == 422 && after.contains("Read the description"),
        "it stands above its button: {page:?}"
    );
    ensure!(!before.contains("tried:"), "{page:?}");
    let result = after.split("</div>").next().unwrap_or_default();
    let (said, folded) = result.split_once("<details><summary>").context("nothing is folded")?;
    ensure!(said.contains("was found at") && !said.contains("/openapi.json"), "{said}");
    let (folded, next) = folded.split_once("</details>").context("it has no end")?;
    ensure!(folded.contains("/openapi.json"), "{folded}");
    ensure!(next.contains("Give the description") && next.contains("farthing api add FILE"), "{next}");

    let text = document("Once", "http://127.0.0.1:9", &["/ok"]).to_string();
    let draft = begin(&mut browser, &text, "0.1").await?;
    let (mut names, mut prices) = (0, 0);
    for place in [NEW.to_owned(), draft.clone(), format!("{draft}/details"), format!("{draft}/preview")] {
        let page = browser.get(&place).await?;
        names += page.body.matches(" id=\"name\"").count();
        prices += page.body.matches(" id=\"price\"").count();
    }
    ensure!((names, prices) == (1, 1), "name is asked {names} times, price {prices} times");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_is_told_and_nothing_is_published() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let broken = b"openapi: 3.1.0\ninfo: {title: X, version: '1'\npaths: {}\n".as_slice();
    let good = document("Fine", "http://127.0.0.1:9", &["/ok"]).to_string();
    for (parts, status, words) in [
        (vec![("text", None, b"".as_slice())], 422, "No description was given"),
        (vec![("text", None, broken)], 422, "cannot be read as"),
        (
            vec![("text", None, good.as_bytes()), ("url", None, b"http://127.0.0.1:9")],
            422,
            "More than one description",
        ),
        (vec![("url", None, b"http://127.0.0.1:9/x")], 422, "Check that the server runs"),
        (vec![("url", None, b"http://169.254.169.254/")], 422, "cannot be an upstream"),
        (vec![("file", Some("a.zip"), b"PK\xff\xfe")], 400, "not text in UTF-8"),
        (vec![("file", Some("none.json"), b"")], 422, "is empty"),
        (vec![("text", None, good.as_bytes()), ("header_name", None, b"X-Key")], 422, "name but no value"),
    ] {
        let page = browser.upload(NEW, &parts).await?;
        ensure!(page.status == status && page.body.contains(words), "{words}: {page:?}");
    }
    let large = vec![b' '; 17 * 1024 * 1024];
    let page = browser.upload(NEW, &[("file", Some("large.json"), &large)]).await?;
    ensure!(page.status == 413 && page.body.contains("16 MiB"), "{page:?}");
    // Without the proof of the page nothing is looked at.
    let request = browser.upload_with(NEW, "0", &[("text", None, good.as_bytes())]);
    ensure!(browser.send(request).await?.status == 403);
    let key = browser.key.clone().context("no key")?;
    let request = browser.upload_with(NEW, &key, &[]).header("sec-fetch-site", "cross-site");
    ensure!(browser.send(request).await?.status == 403);
    let mut nobody = node.browser()?;
    let request = nobody.upload_with(NEW, "0", &[("text", None, good.as_bytes())]);
    let page = nobody.send(request).await?;
    ensure!(page.status == 403 && page.body.contains("<h1>Log in to continue</h1>"), "{page:?}");
    ensure!(!browser.get("/panel/apis").await?.body.contains("Drafts:"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_documents_are_shown_and_do_nothing_however_large_they_are() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    const SCRIPT: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>";
    let paths: Vec<String> = (0..300).map(|i| format!("/v1/{}/{i}", "thing".repeat(12))).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut hostile = document(&format!("{SCRIPT}\u{202e}\u{200b}"), "http://127.0.0.1:9", &paths);
    hostile["info"]["description"] = json!(format!("{SCRIPT} [a](javascript:alert(1))\u{202e}"));
    for item in hostile["paths"].as_object_mut().context("no paths")?.values_mut() {
        item["get"]["summary"] = json!(format!("{SCRIPT}\u{202e}{}", "long ".repeat(100)));
    }
    // A paste of four megabytes.
    hostile["x-padding"] = json!("y".repeat(4 * 1024 * 1024));
    let text = hostile.to_string();
    let page = browser.upload(NEW, &[("text", None, text.as_bytes())]).await?;
    ensure!(page.status == 303, "{page:?}");
    let draft = page.header("location").to_owned();
    let second = browser.post(&draft, &[("page", "0"), ("price", "0.1"), ("go", "all")]).await?;
    ensure!(second.status == 303, "{second:?}");
    let named = details(&mut browser, &draft, &[("name", "Harmless"), ("go", "next")]).await?;
    ensure!(named.status == 303, "{named:?}");
    let places = ["", "?page=1", "?page=99", "/details", "/preview"];
    for path in places.map(|place| format!("{draft}{place}")).iter().chain([&"/panel/apis".to_owned()]) {
        let page = browser.get(path).await?;
        ensure!(page.status == 200, "{path}: {page:?}");
        for alive in ["<script>", "<img src=x", "\"javascript:", "\u{202e}", "\u{200b}"] {
            ensure!(!page.body.contains(alive), "{path}: {alive:?} in {}", page.body);
        }
        ensure!(page.body.len() <= HTML_BYTES_MAX, "{path} has {} bytes", page.body.len());
    }
    let page = browser.post(&format!("{draft}/preview"), &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    let page = browser.get(page.header("location")).await?;
    ensure!(page.status == 200 && page.body.len() <= HTML_BYTES_MAX, "{} bytes", page.body.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_belongs_to_its_browser_and_a_lost_one_is_said_to_be() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    let text = document("Mine", "http://127.0.0.1:9", &["/ok"]).to_string();
    let draft = begin(&mut browser, &text, "0.1").await?;
    let mut other = node.browser()?;
    eventually("another browser is logged in", async || {
        Ok(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303)
    })
    .await?;
    ensure!(other.get(&draft).await?.status == 410, "a draft is its session's alone");
    ensure!(other.post(&format!("{draft}/preview"), &[]).await?.status == 410);
    // Two windows press the button at once.
    let preview = format!("{draft}/preview");
    let (mut one, mut two) = (browser.clone(), browser.clone());
    let (one, two) = tokio::join!(one.post(&preview, &[]), two.post(&preview, &[]));
    for page in [one?, two?] {
        ensure!(page.status == 303 || page.status == 409, "{page:?}");
    }
    let apis = node.process.control().ask(endpoint::Apis).await?;
    ensure!(apis.len() == 1, "{apis:?}");
    let draft = begin(&mut browser, &text, "0.1").await?;
    node.restart(&mut browser).await?;
    for place in ["", "/details", "/preview"] {
        let page = browser.get(&format!("{draft}{place}")).await?;
        ensure!(page.status == 410 && page.body.contains("restart"), "{page:?}");
    }
    let page = browser.post(&format!("{draft}/preview"), &[]).await?;
    ensure!(page.status == 410 && page.body.contains("Nothing was published"), "{page:?}");
    Ok(())
}
