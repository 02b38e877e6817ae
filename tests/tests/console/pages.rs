//! What every page says, and what strangers' texts cannot do to it.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, Charge, OperationFile, SamplesFile, ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{
    command::farthing,
    console_pages::fixed_pages,
    upstream::Upstream,
    wait::eventually,
    world::{PRICE, service_file},
};
use farthing_values::Method;

use crate::support::{Browser, Node, Page};

/// Beside the pages that need nothing filled in: some of the others, and an address that is none.
const MORE: [&str; 7] = [
    "/panel/catalog?q=earth&online=1&sort=price",
    "/panel/settings/secrets/default",
    "/panel/help/problems",
    "/panel/help?q=channel",
    "/panel/help/design?part=lists",
    "/panel/help/design?part=figures",
    "/panel/nothing-here",
];

pub fn pages() -> Result<Vec<String>> {
    let mut pages = fixed_pages()?;
    pages.extend(MORE.map(ToOwned::to_owned));
    Ok(pages)
}

/// Larger ones are slow on a phone and hide what matters.
pub const HTML_BYTES_MAX: usize = 60 * 1024;

const POLICY: [&str; 9] = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
];

fn expect_headers(path: &str, page: &Page) -> Result<()> {
    for directive in POLICY {
        ensure!(page.header("content-security-policy").contains(directive), "{path}: no {directive}");
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        ensure!(page.header(name) == value, "{path}: {name} is {}", page.header(name));
    }
    ensure!(page.header("access-control-allow-origin").is_empty(), "{path}");
    Ok(())
}

/// Attributes and elements that the policy would refuse; none of ours has any.
fn expect_nothing_inline(path: &str, html: &str) -> Result<()> {
    for inline in [" style=", " onclick=", " onload=", " onerror=", "javascript:", "<style"] {
        ensure!(!html.contains(inline), "{path} has `{inline}`");
    }
    let scripts = html.matches("<script").count();
    ensure!(scripts == html.matches("<script type=\"module\" src=\"/assets/").count(), "{path}: a script");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_the_headers_and_every_page_is_small_and_kept_by_nobody() -> Result<()> {
    let node = Node::start().await?;
    let mut stranger = node.browser()?;
    for path in ["/", "/panel", "/panel/setup", "/ca.pem", "/api/v1/status", "/assets/none.css", "/nothing"] {
        expect_headers(path, &stranger.get(path).await?)?;
    }
    ensure!(stranger.get("/ca.pem").await?.body.starts_with("-----BEGIN CERTIFICATE-----"));
    let mut browser = node.set_up().await?;
    for path in &pages()? {
        let page = browser.get(path).await?;
        let expected = if path.ends_with("here") { 404 } else { 200 };
        ensure!(page.status == expected, "{path}: {page:?}");
        expect_headers(path, &page)?;
        expect_nothing_inline(path, &page.body)?;
        ensure!(page.header("cache-control") == "no-store", "{path}");
        ensure!(page.body.len() <= HTML_BYTES_MAX, "{path} has {} bytes", page.body.len());
        // Examples of addresses, and those of the configuration.
        let says_some =
            ["help", "apis/new", "configuration", "setup/reach"].iter().any(|part| path.contains(part));
        ensure!(!page.body.contains("http://") || says_some, "{path} names another server");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn styles_and_scripts_are_small_ours_and_kept_for_long() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), Charge::Success);
    let api = node.process.control().tell(endpoint::AddApi, &file).await?;
    // No page has more styles and scripts than the sandbox.
    let sandbox = format!("/panel/catalog/{}/sandbox", api.id);
    eventually("the service can be tried", async || {
        Ok(browser.get(&sandbox).await?.body.contains("Show free sample"))
    })
    .await?;
    for page in ["/panel/catalog", sandbox.as_str()] {
        has_small_parts(&mut browser, page).await?;
    }
    Ok(())
}

async fn has_small_parts(browser: &mut Browser, page: &str) -> Result<()> {
    let html = browser.get(page).await?.body;
    let (mut sizes, mut sent) = ((0, 0), (0, 0));
    for part in html.split('"').filter(|part| part.starts_with("/assets/")) {
        let asset = browser.get(part).await?;
        ensure!(asset.status == 200, "{part}");
        ensure!(asset.header("cache-control").contains("immutable"), "{part}");
        ensure!(!asset.body.contains("://") || part.ends_with(".svg"), "{part} names another server");
        match part.rsplit('.').next() {
            Some("css") => {
                sizes.0 += asset.body.len();
                sent.0 += sent_bytes(browser, part).await?;
            }
            Some("js") => {
                sizes.1 += asset.body.len();
                sent.1 += sent_bytes(browser, part).await?;
            }
            _ => {}
        }
    }
    ensure!((1..=48 * 1024).contains(&sizes.0) && (1..=40 * 1024).contains(&sizes.1), "{page}: {sizes:?}");
    ensure!(sent.0 <= 20 * 1024 && sent.1 <= 20 * 1024, "{page}: {sent:?} are sent");
    Ok(())
}

/// What a browser gets, which takes it compressed.
async fn sent_bytes(browser: &Browser, path: &str) -> Result<usize> {
    let request = browser.request(reqwest::Method::GET, path);
    let response = request.header("accept-encoding", "gzip, deflate, br").send().await?;
    ensure!(response.headers()["content-encoding"] == "deflate", "{path}: {:?}", response.headers());
    ensure!(response.headers()["vary"] == "accept-encoding", "{path}: {:?}", response.headers());
    Ok(response.bytes().await?.len())
}

/// A service whose every text is an attack.
fn hostile(upstream: &str) -> ServiceFile {
    const SCRIPT: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>";
    ServiceFile {
        name: format!("Evil {}", &SCRIPT[..25]),
        summary: SCRIPT.to_owned(),
        category: "\"><script>".to_owned(),
        tags: vec!["<b>tag</b>".to_owned()],
        description: format!(
            "# Title\n\nA \u{202e}turned\u{200b} word. {SCRIPT}\n\n[click](javascript:alert(1)) ![p](https://tracker.example/p.png)"
        ),
        upstream: upstream.to_owned(),
        operations: vec![OperationFile::named(Method::Get, "/ok".to_owned())],
        ..ServiceFile::priced(PRICE)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_texts_are_shown_and_do_nothing() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let api = node.process.control().tell(endpoint::AddApi, &hostile(&upstream.url())).await?;
    eventually("the service is in the catalog", async || {
        Ok(browser.get("/panel/catalog").await?.body.contains("Evil"))
    })
    .await?;
    for path in all_pages_of(&api) {
        let page = browser.get(&path).await?;
        ensure!(page.status == 200, "{path}: {page:?}");
        expect_headers(&path, &page)?;
        for alive in ["<script>", "<img src=x", "<b>tag", "\u{202e}", "\u{200b}"] {
            ensure!(!page.body.contains(alive), "{path}: {alive:?} in {}", page.body);
        }
        // The preview of client code shows the text of its README, where a link is what it is written as.
        for linked in ["javascript:", "tracker.example"].iter().filter(|_| !path.ends_with("/sdk")) {
            ensure!(!page.body.contains(linked), "{path}: {linked:?} in {}", page.body);
        }
        ensure!(page.body.len() <= HTML_BYTES_MAX, "{path}");
    }
    document_is_downloaded(&mut browser, &api).await
}

fn all_pages_of(api: &Api) -> Vec<String> {
    let parts = ["overview", "samples", "versions"];
    let service = parts.map(|part| format!("/panel/catalog/{}?part={part}", api.id));
    let own = ["reference", "sandbox", "sdk"].map(|part| format!("/panel/catalog/{}/{part}", api.id));
    ["/panel", "/panel/catalog", "/panel/catalog?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E&tag=%3Cb%3E"]
        .map(ToOwned::to_owned)
        .into_iter()
        .chain(service)
        .chain(own)
        .collect()
}

async fn document_is_downloaded(browser: &mut Browser, api: &Api) -> Result<()> {
    let page = browser.get(&format!("/panel/catalog/{}/openapi.json", api.id)).await?;
    ensure!(page.status == 200 && page.header("content-disposition").starts_with("attachment"), "{page:?}");
    ensure!(page.body.starts_with('{'), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_narrows_to_services_with_free_samples() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let document = serde_json::json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": { "/ok": { "get": { "responses": { "200": { "description": "ok", "content": {
            "application/json": { "schema": { "type": "object" }, "example": { "a": 1 } } } } } } } },
    });
    let with = |name: &str, samples| ServiceFile {
        name: name.to_owned(),
        upstream: "http://127.0.0.1:9".to_owned(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "a.json".to_owned())),
        samples,
        ..ServiceFile::priced(PRICE)
    };
    for file in [with("With some", SamplesFile::Described), with("With none", SamplesFile::None)] {
        node.process.control().tell(endpoint::AddApi, &file).await?;
    }
    eventually("both are in the catalog", async || {
        Ok(browser.get("/panel/catalog").await?.body.contains("2 services"))
    })
    .await?;
    let all = browser.get("/panel/catalog").await?.body;
    let facet =
        "<a href=\"/panel/catalog?samples=1\"><span>Free samples</span><span class=\"count\">1</span></a>";
    ensure!(all.contains(facet) && all.contains("With none"), "{all}");
    ensure!(all.matches("· free samples").count() == 1, "{all}");
    let narrowed = browser.get("/panel/catalog?samples=1").await?.body;
    ensure!(narrowed.contains("With some") && !narrowed.contains("With none"), "{narrowed}");
    ensure!(narrowed.contains("aria-current=\"true\"><span>Free samples</span>"), "{narrowed}");
    let found = farthing(&node.process, &["catalog", "search", "--free-samples"]).await?;
    ensure!(found.ends_with(0)?.out.contains("With some") && !found.out.contains("With none"), "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_hears_that_something_changed() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    ensure!(node.browser()?.get("/panel/events").await?.status == 303, "strangers hear nothing");
    let mut events = browser.request(reqwest::Method::GET, "/panel/events").send().await?;
    ensure!(events.headers()["content-type"] == "text/event-stream");
    node.process.control().tell(endpoint::AddApi, &hostile(&upstream.url())).await?;
    let heard = async {
        loop {
            let chunk = events.chunk().await?.context("the stream ended")?;
            // Browsers pass on no event without data.
            if String::from_utf8_lossy(&chunk).contains("event: changed\ndata: ") {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), heard).await??;
    ensure!(browser.get("/panel").await?.body.contains("Evil"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_although_a_page_is_open() -> Result<()> {
    let (mut node, browser) = Node::opened().await?;
    let _events = browser.request(reqwest::Method::GET, "/panel/events").send().await?;
    let began = std::time::Instant::now();
    node.process.stop().await?;
    ensure!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    Ok(())
}
