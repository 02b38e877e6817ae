//! A node that sells to x402 clients: official ones with their default settings, and one that the test plays itself, which sends
//! copies, dies, empties its wallet and sends what is no payment. And a node that buys: from that one, and from a server that
//! the test plays, which lies, asks again, loses answers and takes nothing; by itself, for an agent, and for generated client code.

mod agents;
mod books;
mod buyer;
mod buying;
mod client_code;
mod deaths;
mod official;
mod opinions;
mod refused;
mod server;
mod shop;

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::Check};
use farthing_testnet::{demo::metrics, rpc};
use farthing_tests::{nodes::set_price, upstream::Gate, wait::eventually, world::PRICE};
use farthing_values::Usdc;
use futures::{StreamExt, stream::FuturesUnordered};
use reqwest::{Method, StatusCode};
use serde_json::json;
use shop::{FUNDS, Shop, told};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_offered_paid_answered_and_in_the_books() -> Result<()> {
    let shop = Shop::open().await?;
    assert_eq!(shop.owner.status().await?.x402_url, Some(shop.address()?));
    let offer = shop.ask(Method::GET, "/ok", &[]).await?;
    ensure!(offer.status == StatusCode::PAYMENT_REQUIRED, "{offer:?}");
    let terms = told(&offer, "payment-required");
    let accepted = &terms["accepts"][0];
    assert_eq!((&accepted["network"], &accepted["amount"]), (&json!("eip155:84532"), &json!("2000")));
    assert_eq!(accepted["payTo"], shop.wallet.to_string());
    assert_eq!(terms["resource"]["url"], shop.url("/ok")?);
    assert_eq!(offer.json()["accepts"][0]["network"], "base-sepolia", "version 1 reads the body");
    assert_eq!((offer.header("cache-control"), shop.upstream.hits()), ("no-store", 0));

    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!((answer.json(), answer.header("x-farthing-charged")), (json!({ "n": 1 }), "0.002"));
    assert!(answer.header("cache-control").contains("private"));
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let paid = told(&answer, "payment-response");
    assert_eq!((&paid["success"], &paid["network"]), (&json!(true), &json!("eip155:84532")));
    assert!(paid["transaction"].as_str().is_some_and(|hash| hash.len() == 66), "{paid}");

    let again = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    assert_eq!(
        (again.body, told_transaction(&again.headers)),
        (answer.body, told_transaction(&answer.headers))
    );
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (1, 1));
    let elsewhere = shop.pay(Method::GET, "/slow/1", &shop.payment(1)).await?;
    assert_eq!(elsewhere.status, StatusCode::CONFLICT, "one payment is one call: {elsewhere:?}");
    shop.check(1).await?;

    let counts = metrics(&shop.owner).await?;
    let count = |outcome: &str| {
        counts.get(&format!("farthing_calls_total{{side=\"owner\",outcome=\"{outcome}\"}}")).copied()
    };
    assert_eq!((count("charged"), count("repeated")), (Some(1), Some(1)));
    let history = shop.owner.control().ask(endpoint::History).await?;
    let served = serde_json::to_string(&history.entries)?;
    ensure!(served.contains("GET /ok") && served.contains("\"payment\""), "{served}");
    Ok(())
}

fn told_transaction(headers: &reqwest::header::HeaderMap) -> Option<String> {
    headers.get("payment-response").and_then(|value| value.to_str().ok()).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_copies_at_once_are_one_call_and_one_payment() -> Result<()> {
    let shop = Shop::open().await?;
    for (number, method) in [(1, Method::GET), (2, Method::POST)] {
        let before = shop.upstream.hits();
        let payment = shop.payment(number);
        let copies = (0..50).map(|_| shop.pay(method.clone(), "/ok", &payment));
        let answers = futures::future::try_join_all(copies).await?;
        let first = answers.first().context("no answer")?;
        for answer in &answers {
            ensure!(answer.status == StatusCode::OK && answer.body == first.body, "{answer:?}");
        }
        assert_eq!(shop.upstream.hits() - before, 1, "{method}");
        assert_eq!(shop.transactions().await?, u64::from(number));
        shop.check(u64::from(number)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_has_its_answer_when_it_comes_back() -> Result<()> {
    let (mut gate, shop) = (Gate::start().await?, Shop::open().await?);
    let held = shop.publish(&gate.url(), "/held").await?;
    let payment = shop.payment(1);
    {
        let asking = shop.pay_for(&held, "/held", &payment);
        tokio::select! {
            answer = asking => anyhow::bail!("answered already: {answer:?}"),
            asked = gate.asked() => asked?,
        }
    }
    gate.open();
    let answer = shop.pay_for(&held, "/held", &payment).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(gate.count(), 1);
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_that_empties_its_wallet_meanwhile_gets_no_answer_until_it_has_paid() -> Result<()> {
    let (mut gate, shop) = (Gate::start().await?, Shop::open().await?);
    let held = shop.publish(&gate.url(), "/held").await?;
    let payment = shop.payment(1);
    let work = async {
        gate.asked().await?;
        shop.empty_the_payer().await?;
        gate.open();
        anyhow::Ok(())
    };
    let (answer, worked) = tokio::join!(shop.pay_for(&held, "/held", &payment), work);
    worked?;
    let answer = answer?;
    ensure!(answer.status == StatusCode::PAYMENT_REQUIRED, "{answer:?}");
    let word = told(&answer, "payment-response");
    assert_eq!((&word["success"], &word["transaction"]), (&json!(false), &json!("")));
    assert_eq!(answer.header("payment-required"), "", "no terms to pay anew");
    ensure!(!String::from_utf8_lossy(&answer.body).contains("held"), "the answer leaked: {answer:?}");
    assert_eq!((shop.transactions().await?, shop.earned().await?), (0, Usdc::ZERO));
    let port = check_of_the_port(&shop).await?;
    ensure!(port.good && port.detail.contains("refused 1 payment of served calls"), "{port:?}");

    // The same payment, once the payer has the money again: the service is not asked again.
    shop.deployer.mint(shop.token, shop.payer.address(), FUNDS).await?;
    let answer = shop.pay_for(&held, "/held", &payment).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(gate.count(), 1);
    let charged = "farthing_calls_total{side=\"owner\",outcome=\"charged\"}";
    assert_eq!(
        metrics(&shop.owner).await?.get(charged),
        Some(&1),
        "the first answer of a payment is a charged call"
    );
    let port = check_of_the_port(&shop).await?;
    ensure!(port.good && port.detail.ends_with(&shop.address()?), "it can be reached: {port:?}");
    shop.check(1).await
}

async fn check_of_the_port(shop: &Shop) -> Result<Check> {
    let doctor = shop.owner.control().ask(endpoint::Doctor).await?;
    doctor.checks.into_iter().find(|check| check.name == "x402").context("no check of the port")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_not_worth_its_gas_any_more_is_taken_once_gas_is_cheap_again() -> Result<()> {
    let (mut gate, shop) = (Gate::start().await?, Shop::open().await?);
    let held = shop.publish(&gate.url(), "/held").await?;
    let payment = shop.payment(1);
    let work = async {
        gate.asked().await?;
        shop.base_fee("0x3b9aca00").await?;
        eventually("the node offers nothing at this price of gas", async || {
            Ok(shop.ask(Method::GET, "/ok", &[]).await?.status == StatusCode::NOT_FOUND)
        })
        .await?;
        gate.open();
        anyhow::Ok(())
    };
    let (answer, worked) = tokio::join!(shop.pay_for(&held, "/held", &payment), work);
    worked?;
    let answer = answer?;
    ensure!(answer.status == StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    assert_eq!(told(&answer, "payment-response")["errorReason"], "settlement_pending");
    assert_eq!((shop.transactions().await?, shop.earned().await?), (0, Usdc::ZERO));

    shop.base_fee("0x0").await?;
    shop.until_open().await?;
    let answer = shop.pay_for(&held, "/held", &payment).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(gate.count(), 1);
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_costs_nothing_and_its_payment_still_buys() -> Result<()> {
    let shop = Shop::open().await?;
    shop.upstream.fail(true);
    let failed = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    assert_eq!(failed.status, StatusCode::BAD_GATEWAY, "{failed:?}");
    shop.upstream.fail(false);
    let declined = shop.pay(Method::GET, "/status/404", &shop.payment(2)).await?;
    assert_eq!(declined.status, StatusCode::NOT_FOUND, "{declined:?}");
    assert_eq!((declined.header("x-farthing-charged"), declined.header("payment-response")), ("0.00", ""));
    assert_eq!((shop.transactions().await?, shop.earned().await?), (0, Usdc::ZERO));
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_payments_at_once_leave_when_each_is_paid() -> Result<()> {
    let shop = Shop::open().await?;
    let payments: Vec<_> = (1..=12).map(|number| shop.payment(number)).collect();
    let mut asking: FuturesUnordered<_> =
        payments.iter().map(|payment| shop.pay(Method::GET, "/ok", payment)).collect();
    let mut answered = 0;
    while let Some(answer) = asking.next().await {
        let answer = answer?;
        ensure!(answer.status == StatusCode::OK, "{answer:?}");
        answered += 1;
        let earned = shop.earned().await?;
        ensure!(
            earned >= Usdc::from_micros(answered * PRICE.micros()),
            "{answered} answers for {earned} USDC"
        );
    }
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (12, 12));
    shop.check(12).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_holds_for_a_while_after_the_price_has_changed() -> Result<()> {
    let shop = Shop::open().await?;
    let old = shop.ask(Method::GET, "/ok", &[]).await?;
    assert_eq!(told(&old, "payment-required")["accepts"][0]["amount"], "2000");
    set_price(&shop.owner, &shop.api, Usdc::from_micros(2 * PRICE.micros())).await?;
    let new = shop.ask(Method::GET, "/ok", &[]).await?;
    assert_eq!(told(&new, "payment-required")["accepts"][0]["amount"], "4000");
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("x-farthing-charged"), "0.002");
    let never_offered = shop.pay(Method::GET, "/html", &shop.payment(2)).await?;
    let terms = told(&never_offered, "payment-required");
    assert_eq!(terms["error"], "invalid_exact_evm_payload_authorization_value", "{never_offered:?}");
    assert_eq!(terms["accepts"][0]["amount"], "4000");
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_whose_block_the_chain_takes_back_is_brought_again_and_charged_once() -> Result<()> {
    let (shop, payment) = (Shop::open().await?, 1);
    let url = shop.anvil.url();
    let before = rpc::call(&url, "evm_snapshot", json!([])).await?;
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(payment)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    // The blocks since then are replaced by others, in which there is no payment.
    rpc::call(&url, "evm_revert", json!([before])).await?;
    rpc::call(&url, "anvil_mine", json!(["0x8"])).await?;
    eventually("the payment is brought again", async || Ok(shop.earned().await? == PRICE)).await?;
    let again = shop.pay(Method::GET, "/ok", &shop.payment(payment)).await?;
    ensure!(again.status == StatusCode::OK && again.body == answer.body, "{again:?}");
    assert_eq!(shop.upstream.hits(), 1);
    shop.check(1).await?;
    let counts = metrics(&shop.owner).await?;
    let charged = counts.get("farthing_calls_total{side=\"owner\",outcome=\"charged\"}");
    assert_eq!(charged.copied(), Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_was_taken_back_and_refused_is_brought_again_once_its_payer_has_the_money()
-> Result<()> {
    let shop = Shop::open().await?;
    let url = shop.anvil.url();
    let before = rpc::call(&url, "evm_snapshot", json!([])).await?;
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    rpc::call(&url, "evm_revert", json!([before])).await?;
    // Before the chain is as long again as the node has seen it.
    shop.empty_the_payer().await?;
    rpc::call(&url, "anvil_mine", json!(["0x8"])).await?;
    eventually("the payment is refused", async || {
        Ok(shop.owner.log().contains("has taken back a payment and refuses it now"))
    })
    .await?;
    assert_eq!(shop.earned().await?, Usdc::ZERO);
    // No block is taken back from here on: the node tries by itself.
    shop.deployer.mint(shop.token, shop.payer.address(), FUNDS).await?;
    eventually("the payment is brought again", async || Ok(shop.earned().await? == PRICE)).await?;
    let again = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(again.status == StatusCode::OK && again.body == answer.body, "{again:?}");
    assert_eq!(shop.upstream.hits(), 1);
    shop.check(1).await
}
