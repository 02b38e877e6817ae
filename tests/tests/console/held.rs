//! A log-in that ends while a form is open: the reason is told, and what was typed is kept.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::world::{FUNDS, PRICE, World};

use crate::{
    sandbox::Sandbox,
    support::{Browser, Node, PASSWORD, Page},
};

const LIMITS: &str = "/panel/finance/limits";
const TYPED: [(&str, &str); 3] = [("price_max", "0.5"), ("per_day", "2.5"), ("per_secret_day", "2.5")];

/// A browser whose log-in another one has ended.
async fn ended(node: &Node) -> Result<Browser> {
    let browser = node.set_up().await?;
    let mut other = node.browser()?;
    ensure!(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    ensure!(other.post("/panel/settings/log-out-others", &[]).await?.status == 303);
    Ok(browser)
}

/// A hidden field as a browser reads it.
fn field(page: &Page, name: &str) -> Result<String> {
    Ok(page.field(name)?.replace("&#38;", "&"))
}

async fn price_max(node: &Node) -> Result<String> {
    let spending = node.process.control().ask(endpoint::Spending).await?;
    Ok(spending.limits.price_max.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_kept_over_the_log_in_and_sent_by_a_button() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = ended(&node).await?;
    let before = price_max(&node).await?;
    let page = browser.press(LIMITS, &TYPED).await?;
    ensure!(page.status == 403 && page.body.contains("Your session has ended"), "{page:?}");
    ensure!(page.body.contains("What you typed is kept") && price_max(&node).await? == before, "{page:?}");
    let key = browser.key.clone().context("no key")?;
    ensure!(!page.body.contains(&key), "{page:?}");
    let held = field(&page, "held")?;
    let next = field(&page, "next")?;
    ensure!(next == LIMITS, "{next}");
    let page = browser
        .post("/panel/login", &[("held", &held), ("next", &next), ("password", "a wrong one")])
        .await?;
    ensure!(page.status == 422 && field(&page, "held")? == held, "a wrong password loses nothing: {page:?}");
    let page =
        browser.post("/panel/login", &[("held", &held), ("next", &next), ("password", PASSWORD)]).await?;
    let place = page.header("location").to_owned();
    ensure!(page.status == 303 && place.starts_with("/panel/draft?kept="), "{page:?}");
    let page = browser.get(&place).await?;
    ensure!(page.body.contains("<dt>per_day</dt><dd><bdi>2.5</bdi></dd>"), "{page:?}");
    ensure!(page.body.contains(&format!("action=\"{LIMITS}\"")), "{page:?}");
    ensure!(page.body.contains(&format!("href=\"{LIMITS}\">Back to the page")), "{page:?}");
    ensure!(price_max(&node).await? == before, "nothing is sent by itself");
    let sent: Vec<(String, String)> =
        TYPED.iter().map(|(name, _)| Ok(((*name).to_owned(), field(&page, name)?))).collect::<Result<_>>()?;
    let sent: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ensure!(browser.press(LIMITS, &sent).await?.status == 303);
    ensure!(price_max(&node).await? == "0.50", "{:?}", price_max(&node).await?);
    // Another log-in has none of it.
    let mut other = node.browser()?;
    ensure!(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    ensure!(other.get(&place).await?.body.contains("No unsent form"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_asked_for_after_the_log_in_ended_tells_the_reason_and_is_returned_to() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = ended(&node).await?;
    let page = browser.get("/panel/finance/send").await?;
    let place = page.header("location").to_owned();
    ensure!(place == "/panel/login?ended=1&next=%2Fpanel%2Ffinance%2Fsend", "{page:?}");
    let page = browser.get(&place).await?;
    ensure!(page.body.contains("Your session has ended"), "{page:?}");
    let next = field(&page, "next")?;
    let page = browser.post("/panel/login", &[("next", &next), ("password", PASSWORD)]).await?;
    ensure!(page.header("location") == "/panel/finance/send", "{page:?}");
    // Who never was here is told nothing of an end.
    let page = node.browser()?.get("/panel/finance/send").await?;
    ensure!(page.header("location") == "/panel/login?next=%2Fpanel%2Ffinance%2Fsend", "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_and_a_button_alone_are_not_held() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = ended(&node).await?;
    let page = browser.press("/panel/settings/backup", &[("passphrase", "very secret words")]).await?;
    ensure!(page.status == 403 && page.body.contains("contains a secret"), "{page:?}");
    ensure!(!page.body.contains("very secret words"), "{page:?}");
    let page = browser.press("/panel/finance/stop", &[]).await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/login?ended=1", "{page:?}");
    let spending = node.process.control().ask(endpoint::Spending).await?;
    ensure!(spending.stopped.is_none(), "{spending:?}");
    // A stranger's form is not read.
    let page = node.browser()?.press(LIMITS, &TYPED).await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/login", "{page:?}");
    Ok(())
}

/// Every hidden field of the page that offers to send a form, but for the key.
fn hidden(page: &Page) -> Vec<(String, String)> {
    let offered = page.body.split("<h1>Your form was not sent</h1>").nth(1).unwrap_or_default();
    let inputs = offered.split("<input type=\"hidden\" name=\"").skip(1);
    let pair = |input: &str| {
        let (name, rest) = input.split_once("\" value=\"")?;
        let (value, _) = rest.split_once('"')?;
        Some((name.to_owned(), value.to_owned()))
    };
    inputs.filter_map(pair).filter(|(name, _)| name != "console_key").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_comes_after_the_cookie_was_deleted_is_kept_over_the_log_in_and_pays_once() -> Result<()>
{
    let world = World::start().await?;
    let mut sandbox = Sandbox::open_at(&world, &world.api.id.to_string()).await?;
    let form = sandbox.form("GET /ok").await?;
    // As a browser has it after a week, or when its owner deleted what the console had stored: the key may still be there.
    sandbox.browser.cookies.clear();
    let page = sandbox.press(&form, "live", &[]).await?;
    ensure!(page.status == 403 && page.body.contains("What you typed is kept"), "{page:?}");
    ensure!(world.upstream.hits() == 0, "nobody was logged in");
    let (held, next) = (field(&page, "held")?, field(&page, "next")?);
    ensure!(next == sandbox.address, "{next}");
    let fields = [("held", held.as_str()), ("next", next.as_str()), ("password", PASSWORD)];
    let page = sandbox.browser.post("/panel/login", &fields).await?;
    let place = page.header("location").to_owned();
    ensure!(page.status == 303 && place.starts_with("/panel/draft?kept="), "{page:?}");
    let draft = sandbox.browser.get(&place).await?;
    ensure!(draft.body.contains("Your form was not sent") && world.upstream.hits() == 0, "{draft:?}");
    ensure!(draft.body.contains(&format!("Call for {PRICE} USDC</button>")), "{draft:?}");
    ensure!(!draft.body.contains("<dt>nonce</dt>"), "nobody typed it: {draft:?}");
    let kept = hidden(&draft);
    let kept: Vec<_> = kept.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The button, and once more after *Back*.
    let sent = sandbox.browser.press(&sandbox.address, &kept).await?;
    let again = sandbox.browser.press(&sandbox.address, &kept).await?;
    ensure!(again.header("location") == sent.header("location"), "{again:?}");
    let (_, page) = sandbox.follow(&sent).await?;
    ensure!(page.body.contains(&format!("You were charged {PRICE} USDC.")), "{page:?}");
    ensure!(world.upstream.hits() == 1, "the service was asked once");
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == PRICE, "{charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_cannot_be_kept_says_how_to_send_it_after_the_log_in() -> Result<()> {
    let node = Node::start().await?;
    let mut browser = ended(&node).await?;
    let description = "x".repeat(20 * 1024);
    let long = [("price_max", "0.5"), ("note", description.as_str())];
    let parts: [(&str, Option<&str>, &[u8]); 2] =
        [("text", None, description.as_bytes()), ("file", Some("a.json"), b"{}")];
    for page in [browser.press(LIMITS, &long).await?, browser.upload("/panel/apis/new", &parts).await?] {
        ensure!(page.status == 403 && page.body.contains("Log in in another tab"), "{page:?}");
        ensure!(field(&page, "held")?.is_empty(), "{page:?}");
    }
    ensure!(price_max(&node).await? != "0.50", "nothing was changed");
    Ok(())
}
