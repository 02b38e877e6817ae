//! Settings in the console: the consumer secret, who is logged in, what the node runs with.

use anyhow::{Context, Result, ensure};
use farthing_tests::wait::eventually;
use serde_json::Value;

use crate::support::{Node, PASSWORD};

const SECRET: &str = "/panel/settings/secret";
const ROTATE: &str = "/panel/settings/secret/rotate";

#[tokio::test(flavor = "multi_thread")]
async fn the_consumer_secret_is_shown_and_replaced_for_a_fresh_password_alone() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let secret = node.process.secret().await?;
    ensure!(!browser.get("/panel/settings").await?.body.contains(&secret));
    ensure!(browser.post(SECRET, &[]).await?.body.contains(&secret));
    // Each time anew, however lately it was typed.
    for page in [browser.press(SECRET, &[]).await?, browser.press(ROTATE, &[]).await?] {
        ensure!(page.asks_for_password() && !page.body.contains("farthing_sk_"), "{page:?}");
    }
    for place in [SECRET, ROTATE] {
        let page = browser.get(place).await?;
        ensure!(
            page.status == 200 && !page.body.contains("farthing_sk_"),
            "nothing is shown on GET: {page:?}"
        );
    }
    ensure!(node.process.secret().await? == secret, "nothing was replaced");
    ensure!(browser.get(ROTATE).await?.body.contains("stops working at once"));
    ensure!(node.process.secret().await? == secret, "nothing changes on GET");
    let page = browser.post(ROTATE, &[]).await?;
    let fresh = node.process.secret().await?;
    ensure!(fresh != secret && page.body.contains(&fresh) && !page.body.contains(&secret), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_rows_with_a_name_and_the_operations_for_programs_are_a_page_of_their_own() -> Result<()>
{
    let (node, mut browser) = Node::opened().await?;
    let page = browser.get("/panel/settings").await?;
    let rows =
        page.body.split("<ul class=\"settings\">").skip(1).filter_map(|rest| rest.split("</ul>").next());
    let rows: Vec<&str> = rows.flat_map(|list| list.split("<li>").skip(1)).collect();
    ensure!(rows.len() >= 12, "{} rows", rows.len());
    ensure!(rows.iter().all(|row| row.starts_with("<h3>") && row.contains("<p")), "{rows:#?}");
    ensure!(page.body.contains("href=\"/panel/settings/operations\""), "{page:?}");

    let shown = browser.get("/panel/settings/operations").await?;
    let document: Value = serde_json::from_str(&browser.get("/api/v1/openapi.json").await?.body)?;
    for (path, item) in document["paths"].as_object().context("no paths")? {
        for method in item.as_object().context("no item")?.keys() {
            let operation = format!(">{} {path}</code>", method.to_uppercase());
            ensure!(shown.body.contains(&operation), "{operation} is not in {shown:?}");
        }
    }
    ensure!(!page.body.contains(&node.process.secret().await?));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn other_browsers_are_counted_and_logged_out() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    ensure!(browser.get("/panel/settings").await?.body.contains("Only this browser"));
    let mut other = node.browser()?;
    eventually("another browser is logged in", async || {
        Ok(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303)
    })
    .await?;
    ensure!(browser.get("/panel/settings").await?.body.contains("2 browsers"));
    browser.post("/panel/settings/log-out-others", &[]).await?;
    ensure!(other.get("/panel/settings").await?.header("location").starts_with("/panel/login"));
    ensure!(browser.get("/panel/settings").await?.body.contains("Only this browser"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_in_force_is_shown_with_its_sources_and_without_secrets() -> Result<()> {
    let settings = [("node.name", "A name of its own"), ("panel.password", "from the configuration")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let node = Node::with(settings).await?;
    let mut browser = node.browser()?;
    eventually("the password is taken", async || {
        let fields = [("password", "from the configuration")];
        Ok(browser.post("/panel/login", &fields).await?.status == 303)
    })
    .await?;
    let page = browser.get("/panel/settings/configuration").await?;
    for part in ["A name of its own", "FARTHING_NODE__NAME", "spending.price_max", "default", "(set)"] {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    ensure!(!page.body.contains("from the configuration"), "{page:?}");
    let page = browser.get("/panel/settings").await?;
    ensure!(page.body.contains("The node's configuration sets the password"), "{page:?}");
    let page = browser.get("/panel/settings/diagnostics").await?;
    ensure!(page.body.contains("the books add up") && page.body.contains("Problems found"), "{page:?}");
    Ok(())
}
