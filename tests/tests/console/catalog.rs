//! The catalog: looked up by an id or a wallet, asked for categories, and on a node that keeps some of the network's shards.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Charge, ServiceFile},
};
use farthing_tests::{
    calls::setting, command::farthing, upstream::Upstream, wait::eventually, world::service_file,
};
use farthing_values::Address;
use serde_json::json;

use crate::{register::begin, support::Node};

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_of_some_shards_says_what_was_searched_and_what_its_numbers_are_of() -> Result<()> {
    for (shards, is_part) in [("4", true), ("all", false)] {
        let node = Node::with(setting("catalog.shards", shards)).await?;
        let mut browser = node.set_up().await?;
        let page = browser.get("/panel/catalog").await?;
        for words in
            ["16 shards. It knows no index node", "The numbers count only the services that your node keeps."]
        {
            ensure!(page.body.contains(words) == is_part, "{shards}, {words}: {page:?}");
        }
        let told = farthing(&node.process, &["catalog", "search"]).await?.ok()?;
        ensure!(told.out.contains("Your node keeps 4 of the network's 16 shards.") == is_part, "{told:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_or_a_wallet_that_is_pasted_leads_to_the_service_or_to_its_owner() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = ServiceFile { name: "Colours".to_owned(), ..service_file(&upstream.url(), Charge::Success) };
    let id = node.process.control().tell(endpoint::AddApi, &file).await?.id.to_string();
    let wallet = node.process.status().await?.address.to_string();
    let service = format!("/panel/catalog/{id}");
    eventually("the service is in the catalog", async || Ok(browser.get(&service).await?.status == 200))
        .await?;
    // With the spaces that come along when one copies.
    let led = browser.get(&format!("/panel/catalog?q=+{id}+&online=1")).await?;
    ensure!(led.status == 303 && led.header("location") == service, "{led:?}");
    let led = browser.get(&format!("/panel/catalog?q={}", wallet.to_lowercase())).await?;
    let owner = format!("/panel/owners/{wallet}");
    ensure!(led.status == 303 && led.header("location") == owner, "{led:?}");
    let page = browser.get(&owner).await?;
    for words in [wallet.as_str(), "This is the wallet of your node.", "<bdi>Colours</bdi>", "1 service."] {
        ensure!(page.status == 200 && page.body.contains(words), "{words}: {page:?}");
    }
    // A card and the page of a service lead to it, too.
    for path in ["/panel/catalog", service.as_str()] {
        let page = browser.get(path).await?;
        ensure!(page.body.contains(&format!("href=\"{owner}\"")), "{path}: {page:?}");
    }
    for unknown in ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "0x12"] {
        let page = browser.get(&format!("/panel/catalog?q={unknown}")).await?;
        ensure!(page.status == 200 && page.body.contains("No services match."), "{unknown}: {page:?}");
    }
    ensure!(browser.get("/panel/owners/0x12").await?.status == 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_has_the_name_that_the_user_gave_wherever_its_services_are_listed() -> Result<()> {
    const NAME: &str = "<b>Tides</b> שלום 🪐";
    const SHOWN: &str = "<bdi>&#60;b&#62;Tides&#60;/b&#62; שלום 🪐</bdi>";
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), Charge::Success);
    let id = node.process.control().tell(endpoint::AddApi, &file).await?.id;
    let owner = format!("/panel/owners/{}", node.process.status().await?.address);
    let name = format!("{owner}/name");
    eventually("the service is in the catalog", async || {
        Ok(browser.get("/panel/catalog").await?.body.contains(&id.to_string()))
    })
    .await?;
    ensure!(browser.thief().press(&name, &[("name", NAME)]).await?.asks_for_password());
    let page = browser.post_and_follow(&name, &[("name", NAME)]).await?;
    ensure!(
        page.body.contains("Name saved.") && page.body.contains(&format!("<h1>{SHOWN}</h1>")),
        "{page:?}"
    );
    for path in ["/panel/catalog".to_owned(), format!("/panel/catalog/{id}")] {
        let page = browser.get(&path).await?;
        // The name stands beside the wallet and never in its place.
        ensure!(page.body.contains(SHOWN) && page.body.contains(&owner), "{path}: {page:?}");
    }
    // No other wallet gets the name, and what was typed is still there.
    let other = format!("/panel/owners/{}", Address::from_bytes([7; 20]));
    for (typed, words) in [(NAME.to_uppercase(), "already"), ("x".repeat(41), "more than 40 characters")] {
        let page = browser.press(&format!("{other}/name"), &[("name", &typed)]).await?;
        ensure!(page.status == 422 && page.body.contains(words), "{words}: {page:?}");
        ensure!(page.body.contains("Nothing was changed.") && page.body.contains("id=\"name-problem\""));
    }
    ensure!(browser.get(&other).await?.body.contains("<h1>Owner 0x0707…0707</h1>"));
    let page = browser.post_and_follow(&name, &[("name", " ")]).await?;
    ensure!(!page.body.contains(SHOWN), "{page:?}");
    ensure!(!browser.get("/panel/catalog").await?.body.contains(SHOWN));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_starred_service_is_listed_above_the_search_until_its_star_is_removed() -> Result<()> {
    const LIST: &str = "<nav aria-label=\"Starred services\">";
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = service_file(&upstream.url(), Charge::Success);
    let id = node.process.control().tell(endpoint::AddApi, &file).await?.id;
    let place = format!("/panel/catalog/{id}");
    eventually("the service has a page", async || Ok(browser.get(&place).await?.status == 200)).await?;
    ensure!(!browser.get("/panel/catalog").await?.body.contains(LIST));
    let star = format!("{place}/star");
    ensure!(browser.thief().press(&star, &[("starred", "1")]).await?.asks_for_password());
    let page = browser.post_and_follow(&star, &[("starred", "1")]).await?;
    ensure!(
        page.body.contains("Service starred.") && page.body.contains(">Remove star</button>"),
        "{page:?}"
    );
    // Whatever is searched for.
    let page = browser.get("/panel/catalog?q=zzzzzz").await?;
    let (_, list) = page.body.split_once(LIST).context("no list")?;
    ensure!(list.split("</nav>").next().is_some_and(|list| list.contains(&place)), "{page:?}");
    let page = browser.post_and_follow(&star, &[("starred", "0")]).await?;
    ensure!(page.body.contains("Star removed.") && page.body.contains(">Star</button>"), "{page:?}");
    ensure!(!browser.get("/panel/catalog").await?.body.contains(LIST));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn categories_that_the_node_knows_are_suggested_for_a_service() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let file = ServiceFile {
        category: "harbour tides".to_owned(),
        ..service_file(&upstream.url(), Charge::Success)
    };
    let id = node.process.control().tell(endpoint::AddApi, &file).await?.id;
    let suggested = "<datalist id=\"categories\"><option value=\"harbour tides\"></option></datalist>";
    eventually("the category is known where a service is changed", async || {
        Ok(browser.get(&format!("/panel/apis/{id}/edit")).await?.body.contains(suggested))
    })
    .await?;
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Waves", "version": "1" },
        "servers": [{ "url": upstream.url() }],
        "paths": { "/ok": { "get": { "responses": { "200": { "description": "Fine" } } } } } });
    let draft = begin(&mut browser, &document.to_string(), "0.002").await?;
    let page = browser.get(&format!("{draft}/details")).await?;
    ensure!(page.status == 200 && page.body.contains(suggested), "{page:?}");
    ensure!(page.body.contains(" list=\"categories\""), "{page:?}");
    Ok(())
}
