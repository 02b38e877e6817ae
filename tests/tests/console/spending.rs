//! Stopping, limits, secrets and the history in the console.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::PriceRequest};
use farthing_tests::{
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use farthing_values::Usdc;

use crate::support::{Node, set_up};

const LIMITS: &str = "/panel/finance/limits";
const SECRETS: &str = "/panel/settings/secrets";

#[tokio::test(flavor = "multi_thread")]
async fn spending_is_stopped_with_one_button_and_resumed_for_the_password() -> Result<()> {
    let world = World::start().await?;
    let mut browser = set_up(&world.consumer).await?;
    ensure!(world.get("/ok").await?.status == 200);
    ensure!(browser.get(LIMITS).await?.body.contains("0.002 USDC spent"));
    let page = browser.post("/panel/finance/stop", &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    for place in ["/panel", "/panel/help", LIMITS] {
        let page = browser.get(place).await?;
        ensure!(page.body.contains("All spending is stopped"), "{place}: {page:?}");
    }
    ensure!(world.get("/ok").await?.status == 503, "nothing is bought");
    let page = browser.post("/panel/finance/resume", &[]).await?;
    ensure!(page.status == 303, "{page:?}");
    ensure!(!browser.get("/panel").await?.body.contains("All spending is stopped"));
    ensure!(world.get("/ok").await?.status == 200);

    // The history has both calls and the deposit, the file as well.
    world.wait_until_decided().await?;
    let page = browser.get("/panel/finance/history").await?;
    for part in ["Test service", "GET /ok", "Deposit", "0.002"] {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    let page = browser.get("/panel/finance/history?kind=bought&state=charged").await?;
    ensure!(page.body.contains("Test service") && !page.body.contains("Deposit"), "{page:?}");
    let page = browser.get("/panel/finance/history.csv?kind=bought").await?;
    ensure!(page.status == 200 && page.body.lines().count() == 3, "{page:?}");
    ensure!(page.header("content-disposition").starts_with("attachment"), "{page:?}");
    let page = browser.get("/panel/finance/history?from=yesterday").await?;
    ensure!(page.status == 422 && page.body.contains("from"), "{page:?}");
    let mut seller = set_up(&world.owner).await?;
    seller.post("/panel/finance/claim", &[]).await?;
    let page = seller.get("/panel/finance/settlements/1").await?;
    ensure!(page.status == 200 && page.body.contains("GET /ok"), "{page:?}");
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_is_narrowed_by_names_and_added_up_by_service_and_by_day() -> Result<()> {
    const HISTORY: &str = "/panel/finance/history";
    let world = World::start().await?;
    world.buy(3).await?;
    world.wait_until_decided().await?;
    let mut browser = set_up(&world.consumer).await?;
    let (service, seller) = (world.api.id.to_string(), world.owner_wallet.to_string());
    let page = browser.get(HISTORY).await?;
    for part in [
        format!("<option value=\"{service}\">Test service</option>"),
        format!("<option value=\"{seller}\">"),
        "owner of Test service</option>".to_owned(),
        "<dt>Spent on calls</dt><dd>0.006 USDC</dd><dd class=\"hint\">3 bought</dd>".to_owned(),
    ] {
        ensure!(page.body.contains(&part), "{part}: {page:?}");
    }
    let sums = "data-label=\"Spent, USDC\">0.006</td>";
    let page = browser.get(&format!("{HISTORY}?group=service")).await?;
    ensure!(
        page.body.contains(sums) && page.body.contains(&format!("{HISTORY}?service={service}")),
        "{page:?}"
    );
    let page = browser.get(&format!("{HISTORY}?group=day&kind=bought&with={seller}")).await?;
    let today = farthing_os::clock::date(farthing_os::clock::now_secs());
    let link = format!("{HISTORY}?kind=bought&#38;with={seller}&#38;from={today}&#38;to={today}");
    // The calls may lie on both sides of midnight.
    ensure!(page.body.contains(&link) || !page.body.contains(sums), "{page:?}");
    ensure!(page.body.contains("<dd>0.006 USDC</dd>"), "{page:?}");

    for id in [&service, &seller] {
        let page = browser.get(&format!("{HISTORY}?kind=bought&id={id}")).await?;
        ensure!(page.body.contains(&format!("<option value=\"{id}\" selected>")), "{id}: {page:?}");
        ensure!(page.body.contains("3 bought"), "{id}: {page:?}");
    }
    let page = browser.get(&format!("{HISTORY}?id=Earthquakes")).await?;
    ensure!(page.status == 422 && page.body.contains("“Earthquakes” is neither"), "{page:?}");
    let nobody = "0x00000000000000000000000000000000000000aa";
    let page = browser.get(&format!("{HISTORY}?with={nobody}")).await?;
    ensure!(page.status == 200 && page.body.contains("No entries to show"), "{page:?}");
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raised_price_is_accepted_in_the_console_and_by_no_repeat() -> Result<()> {
    const ACCEPT: &str = "/panel/finance/accept";
    const RAISED: Usdc = Usdc::from_micros(3_000);
    let world = World::start().await?;
    let mut browser = set_up(&world.consumer).await?;
    ensure!(world.get("/ok").await?.status == 200);
    let raise = PriceRequest { price: RAISED.into(), operation: None };
    world.owner.control().tell(endpoint::PriceApi.of(world.api.id), &raise).await?;
    let service = world.api.id.to_string();
    eventually("the consumer is told of the price", async || {
        Ok(world.get("/ok").await?.problem() == "price-changed")
    })
    .await?;
    for repeat in 1..=9 {
        let answer = world.get("/ok").await?;
        ensure!(answer.problem() == "price-changed", "repeat {repeat} is taken for a yes: {answer:?}");
        ensure!(answer.charged() == false, "repeat {repeat}: {answer:?}");
    }
    assert_eq!(world.upstream.hits(), 1);
    let fields = [("service", service.as_str()), ("up_to", "0.003")];
    let page = browser.post(ACCEPT, &fields).await?;
    ensure!(page.status == 303 && page.header("location").starts_with(LIMITS), "{page:?}");
    ensure!(world.get("/ok").await?.status == 200);
    world.wait_until_decided().await?;
    world.settle_for(PRICE.saturating_add(RAISED)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_changed_for_the_password_and_mistakes_are_named() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    let fields = |price_max| [("price_max", price_max), ("per_day", "3"), ("per_secret_day", "2")];
    let page = browser.post(LIMITS, &fields("0,5")).await?;
    ensure!(page.status == 422 && page.body.contains("Maximum price per call is “0,5”"), "{page:?}");
    let page = browser.post(LIMITS, &fields("0.5")).await?;
    ensure!(page.status == 303, "{page:?}");
    let state = node.process.control().ask(endpoint::Spending).await?;
    ensure!(state.limits.price_max.to_string() == "0.50", "{state:?}");
    node.restart(&mut browser).await?;
    for path in [LIMITS, "/panel/finance/resume"] {
        let page = browser.press(path, &fields("9")).await?;
        ensure!(page.asks_for_password(), "{page:?}");
    }
    ensure!(browser.press("/panel/finance/stop", &[]).await?.header("location") == LIMITS, "never asked");
    let page = browser.post(LIMITS, &[("reset", "1")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let state = node.process.control().ask(endpoint::Spending).await?;
    ensure!(state.limits == state.configured && state.stopped.is_some(), "{state:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_made_limited_replaced_and_ended() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    const UUID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    let wrong = [("name", "dashboard"), ("services", "earthquakes")];
    let page = browser.post(SECRETS, &wrong).await?;
    ensure!(page.status == 422 && page.body.contains("not the UUID"), "{page:?}");
    let page = browser.post(SECRETS, &[("name", "no spaces please")]).await?;
    ensure!(page.status == 422 && page.body.contains("Nothing was changed"), "{page:?}");
    let page = browser.post(SECRETS, &[("name", "dashboard"), ("per_day", "1"), ("services", UUID)]).await?;
    ensure!(page.status == 200 && page.body.contains("farthing_sk_"), "{page:?}");
    let secret = |body: &str| -> Result<String> {
        let at = body.find("farthing_sk_").context("no secret")?;
        Ok(body[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
    };
    let first = secret(&page.body)?;
    for path in [SECRETS, "/panel/settings/secrets/dashboard"] {
        let page = browser.get(path).await?;
        ensure!(page.body.contains("1.00 USDC per day, 1 service"), "{page:?}");
        ensure!(!page.body.contains("farthing_sk_"), "it is shown when asked for: {page:?}");
    }
    let own = "/panel/settings/secrets/dashboard";
    ensure!(secret(&browser.post(&format!("{own}/show"), &[]).await?.body)? == first);
    let page = browser.post(own, &[("price_max", "0.1")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let all = node.process.control().ask(endpoint::Secrets).await?;
    let found = all.iter().find(|secret| secret.name == "dashboard").context("it is gone")?;
    ensure!(found.limits.services.is_none() && found.limits.per_day.is_none(), "{found:?}");
    let page = browser.post(&format!("{own}/rotate"), &[]).await?;
    ensure!(secret(&page.body)? != first, "{page:?}");
    let page = browser.post(&format!("{own}/revoke"), &[]).await?;
    ensure!(page.header("location") == format!("{SECRETS}?done=secret-ended"), "{page:?}");
    ensure!(browser.get(page.header("location")).await?.body.contains("Secret revoked"));
    ensure!(browser.get(own).await?.status == 404, "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_listed_and_their_levels_changed_for_the_password() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    const ALERTS: &str = "/panel/finance/alerts";
    browser.post("/panel/finance/stop", &[]).await?;
    eventually("the stop is an alert", async || {
        Ok(browser.get(ALERTS).await?.body.to_lowercase().contains("spending is stopped"))
    })
    .await?;
    let fields = |usdc_below| [("usdc_below", usdc_below), ("eth_below", "0.01"), ("channel_below", "0")];
    let page = browser.post(ALERTS, &fields("little")).await?;
    ensure!(page.status == 422 && page.body.contains("USDC in the wallet is “little”"), "{page:?}");
    let page = browser.post(ALERTS, &fields("2.5")).await?;
    ensure!(page.status == 303, "{page:?}");
    ensure!(browser.get(ALERTS).await?.body.contains("value=\"2.50\""));
    node.restart(&mut browser).await?;
    let page = browser.press(ALERTS, &fields("9")).await?;
    ensure!(page.asks_for_password(), "{page:?}");
    ensure!(browser.get(ALERTS).await?.body.contains("value=\"2.50\""), "nothing changed");
    Ok(())
}
