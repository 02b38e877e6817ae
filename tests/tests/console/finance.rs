//! Finance in the console: what is shown, sending once and never twice, claiming and closing.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::NewPetname};
use farthing_tests::{
    agreement::until_closed,
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use farthing_values::{Address, Usdc};

use crate::{
    qr,
    support::{Node, set_up},
};

const SEND: &str = "/panel/finance/send";
const TO: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";

#[tokio::test(flavor = "multi_thread")]
async fn money_is_looked_at_and_then_sent_once() -> Result<()> {
    let world = World::start().await?;
    let mut browser = set_up(&world.consumer).await?;
    let page = browser.get("/panel/finance").await?;
    for part in ["5.00 USDC", "class=\"qr\"", &world.consumer_wallet.to_string(), "No channels yet"] {
        ensure!(page.body.contains(part), "{part}: {page:?}");
    }
    let page = browser.post(SEND, &[("to", TO), ("amount", "1.25"), ("coin", "usdc")]).await?;
    ensure!(page.status == 303, "{page:?}");
    let order = page.header("location").to_owned();
    let page = browser.get(&order).await?;
    ensure!(page.body.contains("Send 1.25 USDC now") && page.body.contains(TO), "{page:?}");
    let to: Address = TO.parse()?;
    ensure!(world.chain.usdc_of(to).await?.is_zero(), "a look sends nothing");
    // Two windows, and once more afterwards.
    let (mut one, mut two) = (browser.clone(), browser.clone());
    let (one, two) = tokio::join!(one.post(&order, &[]), two.post(&order, &[]));
    for page in [one?, two?, browser.post(&order, &[]).await?] {
        ensure!(page.status == 303 && page.header("location") == order, "{page:?}");
    }
    eventually("it is said to be sent", async || {
        Ok(browser.get(&order).await?.body.contains("1.25 USDC sent"))
    })
    .await?;
    ensure!(world.chain.usdc_of(to).await? == Usdc::from_micros(1_250_000), "once");
    // One state: nothing of the one before stands beside it.
    let page = browser.get(&order).await?;
    let (_, state) = page.body.split_once("id=\"live-order\"").context("no state")?;
    ensure!(state.starts_with(" data-live=\"whole\">\n<h1>1.25 USDC sent</h1>"), "{page:?}");
    for earlier in ["In the wallet", "console_password", "http-equiv", "Sending"] {
        ensure!(!page.body.contains(earlier), "{earlier}: {page:?}");
    }

    let page = browser.post(SEND, &[("to", TO), ("amount", "999"), ("coin", "usdc")]).await?;
    ensure!(page.status == 422 && page.body.contains("more than the wallet has"), "{page:?}");
    // Each of two is within what the wallet has, and both together are not.
    let left = world.chain.usdc_of(world.consumer_wallet).await?.to_string();
    let mut orders = Vec::new();
    for _ in 0..2 {
        let page = browser.post(SEND, &[("to", TO), ("amount", &left), ("coin", "usdc")]).await?;
        orders.push(page.header("location").to_owned());
    }
    browser.post(&orders[0], &[]).await?;
    eventually("the first is sent", async || {
        Ok(browser.get(&orders[0]).await?.body.contains("USDC sent</h1>"))
    })
    .await?;
    browser.post(&orders[1], &[]).await?;
    eventually("the second is not", async || {
        Ok(browser.get(&orders[1]).await?.body.contains("Nothing was sent"))
    })
    .await?;
    ensure!(world.chain.usdc_of(to).await? == FUNDS, "what there was, once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_earned_is_claimed_and_a_channel_closed_in_the_console() -> Result<()> {
    let world = World::start().await?;
    world.buy(3).await?;
    let mut buyer = set_up(&world.consumer).await?;
    let mut seller = set_up(&world.owner).await?;
    let page = seller.get("/panel/finance").await?;
    ensure!(page.body.contains("0.006 USDC") && page.body.contains("I sell"), "{page:?}");
    for told in ["Claimed 0.006 USDC from 1 channel.", "There is nothing to claim"] {
        let sent = seller.post("/panel/finance/claim", &[]).await?;
        let place = sent.header("location").to_owned();
        ensure!(sent.status == 303 && place.starts_with("/panel/finance?answer="), "{sent:?}");
        let page = seller.get(&place).await?;
        ensure!(page.status == 200 && page.body.contains(told), "{told}: {page:?}");
    }

    let page = buyer.get("/panel/finance").await?;
    ensure!(page.body.contains("I buy") && page.body.contains("calls at this week"), "{page:?}");
    world.wait_until_decided().await?;
    let control = world.consumer.control();
    let name = NewPetname { name: "Harbour office".to_owned() };
    control.tell(endpoint::GivePetname.of(world.owner_wallet), &name).await?;
    for place in ["/panel/finance", "/panel/finance/history?kind=bought", "/panel/activity"] {
        ensure!(buyer.get(place).await?.body.contains("Harbour office"), "{place} names who is paid");
    }
    let channels = control.ask(endpoint::Channels).await?;
    let close = format!("/panel/finance/channels/{}/close", channels.first().context("no channel")?.id);
    ensure!(buyer.get(&close).await?.body.contains("Close this channel?"));
    let sent = buyer.post(&close, &[]).await?;
    ensure!(sent.status == 303, "{sent:?}");
    let page = buyer.get(sent.header("location")).await?;
    ensure!(page.body.contains("This is the channel with"), "{page:?}");
    until_closed(&world.consumer).await?;
    eventually("what came back is told, and no claim", async || {
        let page = buyer.get("/panel/finance/history?kind=settlement").await?.body;
        let is_told = page.contains("Deposit returned") && !page.contains("Claim number");
        Ok(is_told && page.contains("<dt>Claimed</dt><dd>0.00 USDC</dd>"))
    })
    .await?;
    let page = buyer.get("/panel/finance/settlements/1").await?;
    ensure!(
        page.body.contains("<h1>Deposit returned</h1>") && !page.body.contains("not sent yet"),
        "{page:?}"
    );
    ensure!(buyer.get(&close).await?.header("location") == "/panel/finance", "there is nothing to close");
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sending_asks_for_the_password_and_names_every_mistake() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    for (to, amount, coin, words) in [
        ("0x12", "1", "usdc", "To is not an address"),
        (&TO.replace("7E5F", "7e5F"), "1", "usdc", "A character of this address is wrong"),
        (TO, "1,5", "usdc", "not an amount of USDC"),
        (TO, "-1", "eth", "not an amount of ETH"),
        (TO, "0", "usdc", "Amount is zero"),
    ] {
        let page = browser.post(SEND, &[("to", to), ("amount", amount), ("coin", coin)]).await?;
        ensure!(page.status == 422 && page.body.contains(words), "{words}: {page:?}");
        ensure!(page.body.contains("Nothing was sent"), "{page:?}");
    }
    let fields = [("to", TO), ("amount", "1"), ("coin", "usdc")];
    let page = browser.post(SEND, &fields).await?;
    let order = page.header("location").to_owned();
    ensure!(browser.get(&order).await?.status == 200);
    node.restart(&mut browser).await?;
    // With the key alone nothing leaves, whenever one logged in.
    let page = browser.press(SEND, &fields).await?;
    let newer = page.header("location").to_owned();
    for order in [&order, &newer] {
        let page = browser.press(order, &[]).await?;
        ensure!(page.asks_for_password() && page.body.contains("Nothing has been done yet"), "{page:?}");
    }
    ensure!(browser.get(&newer).await?.body.contains("Send 1.00 USDC now"), "it still waits");
    let page = browser.post(&order, &[]).await?;
    ensure!(page.status == 410 && page.body.contains("transactions first"), "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_to_pay_into_the_wallet_reads_as_its_address() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let address = node.process.status().await?.address.to_string();
    for path in ["/panel/finance", "/panel/setup/fund"] {
        let page = browser.get(path).await?;
        ensure!(qr::read(&page.body)? == address, "{path}: {}", qr::read(&page.body)?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_locked_earned_and_how_long_it_lasts_are_those_of_the_books() -> Result<()> {
    let world = World::start().await?;
    let calls: u64 = 4;
    world.buy(calls).await?;
    let mut buyer = set_up(&world.consumer).await?;
    let mut seller = set_up(&world.owner).await?;
    let tile = |page: &str, title: &str| -> Result<String> {
        let rest = page.split_once(&format!("<dt>{title}</dt><dd>")).context("no such tile")?.1;
        Ok(rest.split_once("</dd>").context("no end")?.0.to_owned())
    };
    // The deposit enters the wallet's balance and the channel's in one block, which the page may be ahead of.
    eventually("the wallet and the channel hold all there is", async || {
        let has = world.consumer.control().ask(endpoint::Wallet).await?;
        let spent = PRICE.checked_mul(calls).unwrap_or_default();
        let all = has.usdc.map_or(0, |usdc| usdc.0.micros()) + has.in_channels.0.micros() + spent.micros();
        Ok(all == FUNDS.micros() && !has.in_channels.0.is_zero())
    })
    .await?;
    let has = world.consumer.control().ask(endpoint::Wallet).await?;
    let page = buyer.get("/panel/finance").await?.body;
    ensure!(tile(&page, "Locked in channels")? == format!("{} USDC", has.in_channels), "{page}");
    ensure!(tile(&page, "In the wallet")? == format!("{} USDC", has.usdc.context("no balance")?), "{page}");
    ensure!(
        tile(&page, "Spent today")? == "0.008 USDC" && tile(&page, "Earned, not claimed")? == "0.00 USDC"
    );
    let page = seller.get("/panel/finance").await?.body;
    ensure!(tile(&page, "Earned, not claimed")? == "0.008 USDC", "{page}");
    ensure!(tile(&page, "Locked in channels")? == "0.00 USDC", "{page}");

    // 4.992 USDC at 0.002 a call.
    let figures = world.consumer.control().ask(endpoint::Figures).await?;
    ensure!(figures.bought_today == calls, "{figures:?}");
    let page = buyer.get("/panel/finance").await?.body;
    // What can be spent stands above every page: the wallet and what is left in channels.
    ensure!(page.contains("<b>4.992</b> test USDC"), "{page}");
    ensure!(page.contains("About 2,496 calls at this week&#39;s average cost"), "{page}");
    Ok(())
}
