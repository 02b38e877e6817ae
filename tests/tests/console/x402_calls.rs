//! Calls of an x402 server from its page: named before they are made, paid once, shown like any other.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CancelStage, NewX402Server},
};
use farthing_tests::{asks::Till, calls::expect_refused, wait::eventually, world::World};
use farthing_values::Usdc;
use serde_json::json;

use crate::{
    pages::HTML_BYTES_MAX,
    sandbox::is_under_way,
    support::{Browser, Page, set_up},
};

const MICROS: u64 = 2_000;
const CHARGED: &str = "You were charged 0.002 USDC.";
/// The highest price of the server.
const LIMIT: Usdc = Usdc::from_micros(10_000);
/// A call as it is typed.
const TYPED: [(&str, &str); 5] = [
    ("method", "GET"),
    ("path", "v1/tides"),
    ("extra", "limit=5\nport=Hull"),
    ("body", ""),
    ("max_price", "0.5"),
];

/// A server of the consumer, and a browser at the page that calls it.
struct Calls {
    world: World,
    till: Till,
    /// Requests that came when the server was added.
    asked_before: usize,
    browser: Browser,
    place: String,
}

impl Calls {
    async fn start() -> Result<Self> {
        let world = World::start().await?;
        let till = Till::start(world.chain.token, MICROS).await?;
        let new = NewX402Server { url: till.url.clone(), max_price: Some(LIMIT.into()) };
        let id = world.consumer.control().tell(endpoint::AddX402Server, &new).await?.id;
        let browser = set_up(&world.consumer).await?;
        let asked_before = till.requests();
        Ok(Self { world, till, asked_before, browser, place: format!("/panel/x402/{id}/call") })
    }

    /// Requests that came for calls.
    fn requests(&self) -> usize {
        self.till.requests() - self.asked_before
    }

    /// Goes on from the form with what is typed, some of it changed.
    async fn go_on(&mut self, changed: &[(&str, &str)]) -> Result<Page> {
        let kept = TYPED.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
        let fields: Vec<_> = kept.chain(changed).chain(&[("act", "look")]).copied().collect();
        self.browser.press(&self.place, &fields).await
    }

    /// Presses the button that pays.
    async fn pay(&mut self, browser: Option<Browser>, asked: &Page) -> Result<Page> {
        let (nonce, price) = (asked.field("nonce")?, asked.field("price")?);
        let own = [("nonce", nonce.as_str()), ("price", price.as_str()), ("act", "live")];
        let fields = [&TYPED[..], &own].concat();
        browser.unwrap_or_else(|| self.browser.clone()).press(&self.place, &fields).await
    }

    /// The page that a press leads to, once the call has ended.
    async fn ended(&mut self, sent: &Page) -> Result<Page> {
        let place = led(sent)?;
        eventually("the call has ended", async || Ok(!is_under_way(&self.browser.get(&place).await?)))
            .await?;
        self.browser.get(&place).await
    }
}

/// The address that a press leads to.
fn led(sent: &Page) -> Result<String> {
    ensure!(sent.status == 303, "{sent:?}");
    Ok(sent.header("location").trim_end_matches("#answer").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_server_names_its_price_and_the_wallet_first_and_is_paid_once() -> Result<()> {
    let mut calls = Calls::start().await?;
    let one = calls.place.trim_end_matches("/call").to_owned();
    let link = format!("href=\"{}\"", calls.place);
    ensure!(calls.browser.get(&one).await?.body.contains(&link), "the way to the form");
    let place = calls.place.clone();
    let form = calls.browser.get(&place).await?;
    ensure!(form.status == 200 && form.body.contains("of this server is 0.01 USDC"), "{form:?}");

    let asked = calls.go_on(&[]).await?;
    let wallet = calls.world.consumer.status().await?.address.to_string();
    ensure!(asked.status == 200 && asked.body.len() <= HTML_BYTES_MAX, "{asked:?}");
    // More than the server may cost was typed.
    for words in ["Call for at most 0.01 USDC", wallet.as_str(), "limit", "Hull"] {
        ensure!(asked.body.contains(words), "no {words} in {}", asked.body);
    }
    let thief = calls.browser.thief();
    ensure!(calls.pay(Some(thief), &asked).await?.asks_for_password(), "a cookie alone pays nothing");
    ensure!(calls.requests() == 0, "the server knows of nothing yet");

    let sent = calls.pay(None, &asked).await?;
    let page = calls.ended(&sent).await?;
    for words in [CHARGED, "GET /v1/tides?limit=5", "aria-label=\"Answer as a tree\"", "value=\"v1/tides\""] {
        ensure!(page.body.contains(words), "no {words} in {}", page.body);
    }
    ensure!(page.status == 200 && page.body.len() <= HTML_BYTES_MAX, "{}", page.body.len());
    let again = calls.pay(None, &asked).await?;
    ensure!(led(&again)? == led(&sent)?, "it is the same call: {again:?}");
    let download = led(&sent)?.replace("?call", "/answer?call");
    ensure!(calls.browser.get(&download).await?.body.contains("GET /v1/tides"), "{download}");
    ensure!(calls.till.payments() == 1, "paid once");
    let spent = calls.world.consumer.status().await?.spent_today.0;
    ensure!(spent == Usdc::from_micros(MICROS), "{spent}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_server_that_cannot_be_read_or_costs_more_than_its_button_says_is_not_paid() -> Result<()>
{
    let mut calls = Calls::start().await?;
    for (name, value, words) in [
        ("method", "FETCH", "Choose a method"),
        ("path", "/v1/tides?port=Hull", "Leave the query out"),
        ("extra", "port", "is not a parameter"),
        ("body", "{", "is not JSON"),
        ("max_price", "much", "not an amount of USDC"),
    ] {
        let page = calls.go_on(&[(name, value)]).await?;
        ensure!(page.status == 422 && page.body.contains(words), "{name}: {page:?}");
        ensure!(page.body.contains("Nothing was sent, and you were not charged."), "{name}: {page:?}");
        ensure!(page.body.contains("limit=5") || name == "extra", "what was typed is still there: {page:?}");
    }
    ensure!(calls.requests() == 0, "nothing was sent");

    let asked = calls.go_on(&[("max_price", "0.001")]).await?;
    ensure!(asked.body.contains("Call for at most 0.001 USDC"), "{asked:?}");
    // Another price in the form does not count: the button has said this one.
    let sent = calls.pay(None, &asked).await?;
    let page = calls.ended(&sent).await?;
    ensure!(page.body.contains("You were not charged.") && page.body.contains("0.002 USDC"), "{page:?}");
    ensure!(calls.till.payments() == 0 && calls.requests() > 0, "the server was asked, and not paid");
    Ok(())
}

/// Nothing here needs a script.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_server_that_is_under_way_says_so_and_is_let_go() -> Result<()> {
    let mut calls = Calls::start().await?;
    let held = calls.till.hold_answers().await;
    let asked = calls.go_on(&[]).await?;
    let place = led(&calls.pay(None, &asked).await?)?;
    let page = calls.browser.get(&place).await?;
    let refresh = format!("<noscript><meta http-equiv=\"refresh\" content=\"2; url={}?call=", calls.place);
    for words in
        [refresh.as_str(), "data-elapsed=", ">Stop waiting</button>", "if the server took the payment"]
    {
        ensure!(page.body.contains(words), "no {words} in {}", page.body);
    }
    let call = place.split("call=").last().unwrap_or_default().to_owned();
    let cancel = format!("{}/cancel", calls.place);
    let sent = calls.browser.thief().press(&cancel, &[("call", &call)]).await?;
    ensure!(led(&sent)? == place, "{sent:?}");
    ensure!(calls.browser.get(&place).await?.body.contains("You stopped waiting"));
    drop(held);
    eventually("the page says how it ended", async || {
        Ok(calls.browser.get(&place).await?.body.contains(CHARGED))
    })
    .await?;
    ensure!(calls.till.payments() == 1, "paid once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_call_of_a_server_is_cancelled_and_the_payment_that_was_sent_counts_once() -> Result<()> {
    let calls = Calls::start().await?;
    let held = calls.till.hold_answers().await;
    let id = calls.place.split('/').nth(3).context("no id")?;
    let asked = json!({ "api_id_public": id, "method": "GET", "path": "/v1/tides", "max_price": "0.01" });
    let control = calls.world.consumer.control();
    let cancels = async {
        eventually("the server has the payment", async || Ok(calls.till.payments() == 1)).await?;
        let log = control.ask(endpoint::Calls.with("outcome", "under-way")).await?;
        let call = log.calls.into_iter().next().context("no call is under way")?;
        let cancelled = control.ask(endpoint::CancelCall.of(&call.key)).await?;
        ensure!(cancelled.stage == CancelStage::Promised, "{cancelled:?}");
        anyhow::Ok(call.key)
    };
    // The server answers only afterwards.
    let (answer, key) = tokio::try_join!(calls.world.call(&asked), cancels)?;
    expect_refused("a cancelled call", &answer, 409, "cancelled")?;
    drop(held);
    let price = Usdc::from_micros(MICROS);
    eventually("the server's word on the payment is booked", async || {
        let shown = control.ask(endpoint::ShowCall.of(&key)).await?;
        Ok(shown.call.charged.is_some_and(|charged| charged.0 == price))
    })
    .await?;
    let spent = calls.world.consumer.status().await?.spent_today.0;
    ensure!((calls.till.payments(), spent) == (1, price), "paid once: {spent}");
    Ok(())
}
