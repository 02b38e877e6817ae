//! The log and the history of an owner that sold a call to an x402 client.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{AlertKind, CallShown, HistoryKind, HistoryState},
};
use farthing_testnet::rpc;
use farthing_tests::{command::farthing, wait::eventually, world::PRICE};
use farthing_values::{Address, SignedTransfer, TransferAuthorization, Usdc};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::shop::{Shop, told};

/// Buys the call of the first payment, and returns the transaction that paid it.
async fn sell(shop: &Shop) -> Result<String> {
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    let transaction = told(&answer, "payment-response")["transaction"].as_str().map(str::to_owned);
    transaction.context("no transaction")
}

/// The only call that was sold, with the verdict on its receipt.
async fn sold(shop: &Shop) -> Result<CallShown> {
    let control = shop.owner.control();
    let calls = control.ask(endpoint::Calls.with("limit", 10).with("side", "served")).await?.calls;
    let key = &calls.first().context("no call")?.key;
    Ok(control.ask(endpoint::ShowCall.of(key).with("verify", true)).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_call_is_shown_with_the_transaction_that_paid_it() -> Result<()> {
    let shop = Shop::open().await?;
    let transaction = sell(&shop).await?;
    let shown = sold(&shop).await?;
    let verdict = shown.verdict.context("no verdict")?;
    ensure!(verdict.holds && verdict.words.contains("A transaction of the payer paid"), "{verdict:?}");
    let payment = shown.settlement.context("no settlement")?;
    assert_eq!((payment.state, payment.seen_on_chain), (HistoryState::Confirmed, Some(true)));
    assert_eq!(payment.transaction, Some(transaction));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_call_is_found_by_its_call_id_alone() -> Result<()> {
    let shop = Shop::open().await?;
    sell(&shop).await?;
    let id = sold(&shop).await?.call.call_id.context("no call id")?.to_string();
    let found = farthing(&shop.owner, &["calls", &id]).await?;
    found.ends_with(0)?;
    ensure!(found.out.contains("GET /ok"), "{found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_told_of_a_payment_that_was_taken_back_and_is_lost() -> Result<()> {
    let shop = Shop::open().await?;
    let url = shop.anvil.url();
    let before = rpc::call(&url, "evm_snapshot", json!([])).await?;
    let transaction = sell(&shop).await?;
    rpc::call(&url, "evm_revert", json!([before])).await?;
    // The payer uses the number for somebody else, before the chain is as long again as the node has seen it.
    let other = TransferAuthorization { to: Address::from_bytes([0x99; 20]), ..shop.authorization(1) };
    bring(&shop, &other.sign(&shop.domain(), &shop.payer)).await?;
    rpc::call(&url, "anvil_mine", json!(["0x8"])).await?;
    eventually("the log tells it", async || Ok(shop.owner.log().contains("a payment, and it is lost")))
        .await?;
    assert_eq!(shop.earned().await?, Usdc::ZERO);
    let shown = sold(&shop).await?;
    assert_eq!(shown.call.charged.map(|charged| charged.0), Some(Usdc::ZERO), "it brings nothing");
    assert_eq!(shown.settlement.context("no settlement")?.state, HistoryState::Lost);
    ensure!(shown.verdict.is_some_and(|verdict| !verdict.holds), "nothing pays it");
    let control = shop.owner.control();
    let history = control.ask(endpoint::History).await?.entries;
    for kind in [HistoryKind::Served, HistoryKind::Adjustment] {
        let entry = history.iter().find(|entry| entry.kind == kind).context("the history lacks an entry")?;
        let is_told =
            entry.reason.as_ref().is_some_and(|reason| reason.contains("has taken back its payment"));
        ensure!(entry.state == HistoryState::Lost && entry.amount.0 == PRICE && is_told, "{entry:?}");
    }
    let sent = history.iter().find(|entry| entry.kind == HistoryKind::Transaction && entry.id == transaction);
    assert_eq!(sent.context("no transaction")?.state, HistoryState::Failed, "no block has it");
    let days = control.ask(endpoint::HistoryDays).await?;
    let (served, earned) = days.iter().fold((0, Usdc::ZERO), |(served, earned), day| {
        (served + day.served, earned.saturating_add(day.earned.0))
    });
    assert_eq!((served, earned), (1, Usdc::ZERO), "the call was served, and brings nothing");
    assert_eq!(control.ask(endpoint::Series).await?.served.charged.0, Usdc::ZERO);
    let alerts = control.ask(endpoint::Alerts).await?;
    let is_told = alerts
        .iter()
        .any(|alert| alert.kind == AlertKind::SalesLost && alert.cause.contains("0.002 USDC for 1 call,"));
    ensure!(is_told, "{alerts:?}");
    let again = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    let response = told(&again, "payment-response");
    ensure!(again.status == StatusCode::OK && response.is_null(), "no transaction pays it: {again:?}");
    shop.check(0).await
}

/// Has a stranger bring a payment to the token.
async fn bring(shop: &Shop, payment: &SignedTransfer) -> Result<()> {
    let SignedTransfer { authorization, signature } = payment;
    let address = |address: Address| format!("{:0>64}", hex::encode(address.as_bytes()));
    let bytes = signature.as_bytes();
    let words = [
        address(authorization.from),
        address(authorization.to),
        format!("{:064x}", authorization.value.micros()),
        format!("{:064x}", authorization.valid_after_secs),
        format!("{:064x}", authorization.valid_before_secs),
        hex::encode(authorization.nonce),
        format!("{:064x}", bytes[64]),
        hex::encode(&bytes[..64]),
    ];
    // 0xe3ee160e is the selector of transferWithAuthorization with v, r and s (EIP-3009).
    let data = format!("0xe3ee160e{}", words.concat());
    let url = shop.anvil.url();
    let accounts = rpc::call(&url, "eth_accounts", json!([])).await?;
    let transaction =
        json!({ "from": accounts[5], "to": shop.token.to_string(), "data": data, "gas": "0x7a120" });
    rpc::call(&url, "eth_sendTransaction", json!([transaction])).await?;
    Ok(())
}
