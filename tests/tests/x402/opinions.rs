//! What others say of a payment that this node made: a chain endpoint that lies, and the server.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use farthing_control::{endpoint, types::HistoryState};
use farthing_testnet::rpc;
use farthing_tests::{command::farthing, liar::Liar, wait::eventually, world::PRICE};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    buyer::{Buyer, ENOUGH},
    buying::expect,
    server::{Manner, Server},
    shop::{CHAIN_ID, Shop},
};

const HOUR_SECS: u64 = 3_600;

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_dates_its_blocks_ahead_ends_no_payment_that_can_be_taken() -> Result<()> {
    let shop = Shop::open().await?;
    let (server, liar) = (Server::start(&shop).await?, Liar::start().await?);
    let buyer = Buyer::start_behind(&liar, &shop, &server.url).await?;
    server.behave(Manner::Refuses);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    liar.date_ahead(HOUR_SECS);
    let asked = liar.asked_of_payments();
    // The first question may have come with a date of before.
    eventually("the node looks twice at its payment", async || Ok(liar.asked_of_payments() >= asked + 2))
        .await?;
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    assert_eq!(buyer.spent().await?, PRICE, "it may be taken yet");
    liar.tell_the_truth();
    server.behave(Manner::Quiet);
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    buyer.until_it_ends(HistoryState::Charged).await?;
    assert_eq!(server.payments().len(), 1);
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_payment_is_signed_while_the_newest_block_is_dated_far_from_the_clock() -> Result<()> {
    let shop = Shop::open().await?;
    let (server, liar) = (Server::start(&shop).await?, Liar::start().await?);
    liar.date_ahead(HOUR_SECS);
    let buyer = Buyer::start_behind(&liar, &shop, &server.url).await?;
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    expect(&answer, "chain-unreachable", &json!(false))?;
    let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
    ensure!(detail.contains("seconds after this machine's clock"), "{detail}");
    ensure!(server.payments().is_empty(), "nothing was signed");
    buyer.check(&shop, Usdc::ZERO).await?;
    liar.tell_the_truth();
    eventually("the node sees the block's true date", async || {
        Ok(buyer.call("/v1/data", "one", Some(ENOUGH)).await?.status == StatusCode::OK)
    })
    .await?;
    assert_eq!(server.payments().len(), 1);
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_says_whether_the_chain_showed_its_payment_or_only_the_server_says_so() -> Result<()> {
    for (manner, words) in
        [(Manner::Honest, "taken, as the server says"), (Manner::Quiet, "taken, as the chain shows")]
    {
        let shop = Shop::open().await?;
        let server = Server::start(&shop).await?;
        let buyer = Buyer::start(&shop, &server.url).await?;
        server.behave(manner);
        let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
        ensure!(answer.status == StatusCode::OK, "{manner:?}: {answer:?}");
        let entry = buyer.until_it_ends(HistoryState::Charged).await?;
        let shown = farthing(&buyer.node, &["calls", &entry.id]).await?.ok()?.out;
        ensure!(shown.contains(words) && !shown.contains("Claim"), "{manner:?}: {shown}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_that_are_open_together_are_asked_about_together() -> Result<()> {
    const CALLS: usize = 8;
    let shop = Shop::open().await?;
    let (server, liar) = (Server::start(&shop).await?, Liar::start().await?);
    let mut buyer = Buyer::start_behind(&liar, &shop, &server.url).await?;
    server.behave(Manner::Refuses);
    // A restart takes its time.
    server.offer(&json!({ "maxTimeoutSeconds": 600 }));
    for number in 0..CALLS {
        let answer = buyer.call("/v1/data", &format!("call {number}"), Some(ENOUGH)).await?;
        expect(&answer, "undecided", &Value::Null)?;
    }
    buyer.restart(None).await?;
    // They are taken up one after the other, so a few of them may come a second later.
    eventually("half of them are asked about in one request", async || {
        Ok(liar.payments_at_once_max() >= CALLS / 2)
    })
    .await?;
    buyer.let_payments_lapse(&shop).await?;
    eventually("all of them end", async || {
        let bought = buyer.bought().await?;
        Ok(bought.len() == CALLS && bought.iter().all(|entry| entry.state == HistoryState::Failed))
    })
    .await?;
    buyer.check(&shop, Usdc::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lets_a_repeat_wait_holds_up_the_end_of_no_other_payment() -> Result<()> {
    const CALLS: usize = 6;
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;
    server.behave(Manner::Refuses);
    for number in 0..CALLS {
        let answer = buyer.call("/v1/data", &format!("call {number}"), Some(ENOUGH)).await?;
        expect(&answer, "undecided", &Value::Null)?;
    }
    let _held = server.hold_offers().await;
    server.behave(Manner::Waits);
    let others_end = async {
        eventually("the repeat waits at the server", async || Ok(server.waiting() > 0)).await?;
        buyer.let_payments_lapse(&shop).await?;
        eventually("all other calls end", async || {
            let bought = buyer.bought().await?;
            let ended = bought.iter().filter(|entry| entry.state == HistoryState::Failed).count();
            Ok(ended == CALLS - 1)
        })
        .await
    };
    tokio::select! {
        repeated = buyer.call("/v1/data", "call 0", Some(ENOUGH)) => {
            bail!("the repeat ended before the others: {repeated:?}")
        }
        ended = others_end => ended,
    }
}

async fn newest_block(shop: &Shop) -> Result<u64> {
    let newest = rpc::call(&shop.anvil.url(), "eth_blockNumber", json!([])).await?;
    Ok(u64::from_str_radix(newest.as_str().unwrap_or_default().trim_start_matches("0x"), 16)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_took_is_promised_to_no_other_before_the_balance_shows_it() -> Result<()> {
    let shop = Shop::open().await?;
    let (server, liar) = (Server::start(&shop).await?, Liar::start().await?);
    let mut buyer = Buyer::start_behind(&liar, &shop, &server.url).await?;
    let limits = json!({ "price_max": "2", "per_day": "5", "per_secret_day": "5" });
    buyer.node.control().tell(endpoint::LimitSpending, &serde_json::from_value(limits)?).await?;
    // A restart takes its time.
    server.offer(&json!({ "amount": "600000", "maxTimeoutSeconds": 600 }));
    liar.stand_at(newest_block(&shop).await?);
    let answer = buyer.call("/v1/data", "one", Some("1")).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    for restarts in [true, false] {
        let refused = buyer.call("/v1/data", "two", Some("1")).await?;
        expect(&refused, "insufficient-funds", &json!(false))?;
        if restarts {
            buyer.restart(None).await?;
        }
    }
    liar.tell_the_truth();
    server.offer(&json!({ "amount": "300000" }));
    eventually("the price is set aside no longer, once the balance is less by it", async || {
        Ok(buyer.call("/v1/data", "two", Some("1")).await?.status == StatusCode::OK)
    })
    .await?;
    assert_eq!(server.payments().len(), 2);
    buyer.check(&shop, Usdc::from_micros(900_000)).await
}

/// A call that ended as not charged although the token has taken its payment: the node's endpoint hides that.
async fn hidden() -> Result<(Shop, Server, Arc<Liar>, Buyer)> {
    let shop = Shop::open().await?;
    let (server, liar) = (Server::start(&shop).await?, Liar::start().await?);
    let buyer = Buyer::start_behind(&liar, &shop, &server.url).await?;
    liar.stand_at(newest_block(&shop).await?);
    server.behave(Manner::Breaks);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    eventually("the payment is taken", async || Ok(server.earned(&shop).await? == PRICE)).await?;
    buyer.let_payments_lapse(&shop).await?;
    buyer.until_it_ends(HistoryState::Failed).await?;
    server.behave(Manner::Honest);
    Ok((shop, server, liar, buyer))
}

/// Checks that its call counts as charged now, and that its books hold.
async fn found(server: &Server, buyer: &Buyer) -> Result<()> {
    let entry = buyer.until_it_ends(HistoryState::Charged).await?;
    ensure!(entry.amount.0 == PRICE && server.payments().len() == 1, "{entry:?}");
    let audit = buyer.node.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_an_endpoint_hid_is_found_when_its_call_is_repeated() -> Result<()> {
    let (_shop, server, liar, buyer) = hidden().await?;
    liar.tell_the_truth();
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK && answer.header("x-farthing-charged") == "0.002", "{answer:?}");
    found(&server, &buyer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_asks_for_something_else_finds_the_payment_and_never_says_that_nothing_was_paid()
-> Result<()> {
    let (_shop, server, liar, buyer) = hidden().await?;
    liar.tell_the_truth();
    liar.keep_payments_back();
    for path in ["/v1/data", "/v1/other"] {
        // Nobody tells now.
        expect(&buyer.call(path, "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    }
    liar.tell_the_truth();
    eventually("the endpoint is asked again", async || {
        Ok(buyer.call("/v1/other", "one", Some(ENOUGH)).await?.problem() != "undecided")
    })
    .await?;
    let answer = buyer.call("/v1/other", "one", Some(ENOUGH)).await?;
    expect(&answer, "call-id-conflict", &json!(false))?;
    ensure!(!answer.json()["next"].to_string().contains("Nothing was paid"), "{answer:?}");
    found(&server, &buyer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_an_endpoint_hid_is_found_at_the_next_start() -> Result<()> {
    let (_shop, server, liar, mut buyer) = hidden().await?;
    liar.tell_the_truth();
    buyer.restart(None).await?;
    found(&server, &buyer).await?;
    assert_eq!(server.copies(), 1, "nobody repeated the call");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_counts_as_not_taken_is_not_forgotten_before_the_chain_was_asked() -> Result<()> {
    let (shop, server, liar, mut buyer) = hidden().await?;
    liar.tell_the_truth();
    liar.keep_payments_back();
    buyer.let_days_pass(&shop).await?;
    let asked = liar.asked_of_payments();
    buyer.restart(None).await?;
    eventually("the node asks at its start", async || Ok(liar.asked_of_payments() > asked)).await?;
    liar.tell_the_truth();
    found(&server, &buyer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_payment_in_another_token_than_the_settings_name_says_so_and_waits_for_its_own() -> Result<()>
{
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let mut buyer = Buyer::start(&shop, &server.url).await?;
    server.behave(Manner::Refuses);
    // Two restarts take their time.
    server.offer(&json!({ "maxTimeoutSeconds": 600 }));
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    expect(&answer, "undecided", &Value::Null)?;
    let id = answer.json()["call_id"].as_str().map(str::to_owned).context("no call id")?;

    buyer.restart_with(shop.deployer.test_usdc("USDC", shop.deployer.address()).await?).await?;
    let place = format!("the token {} on chain {CHAIN_ID}", shop.token);
    let shown = farthing(&buyer.node, &["calls", &id]).await?.ok()?.out;
    ensure!(shown.contains(&place) && shown.contains("does not ask"), "{shown}");
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    expect(&answer, "undecided", &Value::Null)?;
    ensure!(answer.json()["detail"].to_string().contains(&place), "{answer:?}");
    assert_eq!(server.copies(), 1, "nothing is sent");

    buyer.restart(None).await?;
    server.behave(Manner::Honest);
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(server.payments().len(), 1);
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_to_a_removed_server_says_that_nobody_asks_about_a_payment_in_another_token() -> Result<()> {
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let mut buyer = Buyer::start(&shop, &server.url).await?;
    server.behave(Manner::Refuses);
    server.offer(&json!({ "maxTimeoutSeconds": 600 }));
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    farthing(&buyer.node, &["x402", "remove", &buyer.server.to_string(), "--yes"]).await?.ok()?;
    buyer.restart_with(shop.deployer.test_usdc("USDC", shop.deployer.address()).await?).await?;
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    expect(&answer, "undecided", &Value::Null)?;
    let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
    let place = format!("the token {} on chain {CHAIN_ID}", shop.token);
    ensure!(detail.contains(&place) && detail.contains("does not ask"), "{detail}");
    Ok(())
}
