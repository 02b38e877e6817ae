//! Which requests count: those of the pages under test. A browser's own pages, such as the one of a new tab, ask for
//! things too, other ones with every version and way of being installed.

use anyhow::{Result, ensure};
use axum::{Router, response::Html, routing::get};
use farthing_tests::upstream::serve;
use serde_json::{Value, json};

use crate::browser::{Browser, START_PAGE, STRANGER, Tools};

/// How the addresses of the browser's own pages begin.
const OWN_PAGES: [&str; 4] = ["chrome:", "chrome-untrusted:", "chrome-extension:", "devtools:"];

/// The address of a request that a page made, as opposed to the browser's own pages.
pub fn asked_by_a_page(event: &Value) -> Option<String> {
    let params = &event["params"];
    let is_request =
        event["method"] == "Network.requestWillBeSent" && !is_browsers_own(&params["documentURL"]);
    is_request.then(|| params["request"]["url"].as_str().unwrap_or_default().to_owned())
}

pub fn is_browsers_own(address: &Value) -> bool {
    address.as_str().is_some_and(|address| OWN_PAGES.iter().any(|scheme| address.starts_with(scheme)))
}

fn request(url: &str, document: &str) -> Value {
    json!({ "method": "Network.requestWillBeSent",
        "params": { "documentURL": document, "request": { "url": url } } })
}

#[test]
fn what_the_browsers_own_pages_ask_for_is_not_counted_and_what_ours_ask_for_is() {
    const BAR: &str = "chrome-untrusted://new-tab-page/one-google-bar?paramsencoded=";
    for (url, document, counts) in [
        (BAR, BAR, false),
        ("https://ogs.google.com/bar.js", BAR, false),
        ("https://www.gstatic.com/logo.png", "chrome://new-tab-page/", false),
        ("https://localhost:3002/assets/live.js", "https://localhost:3002/panel", true),
        ("https://tracker.example/x.png", "https://localhost:3002/panel", true),
        ("chrome://settings/", "https://localhost:3002/panel", true),
    ] {
        let counted = asked_by_a_page(&request(url, document));
        assert_eq!(counted.as_deref(), counts.then_some(url), "{url} for {document}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_begins_on_an_empty_page_and_its_new_tab_page_is_nobodys_request() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let page = format!("<link rel=icon href=data:,><img src=http://{STRANGER}:9/x.png>");
    let origin = serve(Router::new().route("/", get(async || Html(page)))).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    ensure!(browser.client.current_url().await?.as_str() == START_PAGE);
    // What it said of itself, so that a test that fails elsewhere can be repeated.
    let named = browser.named()?;
    ensure!(named.starts_with("chrom") && named.matches('.').count() == 3, "{named}");
    browser.client.goto("chrome://new-tab-page/").await?;
    browser.goto("/").await?;
    let asked = browser.requests().await?;
    ensure!(asked == [format!("{origin}/"), format!("http://{STRANGER}:9/x.png")], "{asked:?}");
    browser.close().await
}
