//! Requests that buy nothing: payments that do not pay, and requests that nobody offers.

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::{anvil::Anvil, rpc};
use farthing_tests::{upstream::Gate, wait::eventually};
use farthing_values::{Address, SecretKey, TransferAuthorization, Usdc};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    server::{PAYEE, take},
    shop::{FUNDS, Shop, told, written},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_does_not_pay_is_told_why_and_reaches_no_service() -> Result<()> {
    let shop = Shop::open().await?;
    let (asked, poor) = (shop.authorization(1), SecretKey::from_bytes(&[2; 32])?);
    let less = Usdc::from_micros(1_999);
    let of_the_payer = |authorization: TransferAuthorization| authorization.sign(&shop.domain(), &shop.payer);
    let cases = [
        (
            of_the_payer(TransferAuthorization { value: less, ..asked }),
            "invalid_exact_evm_payload_authorization_value",
        ),
        (
            of_the_payer(TransferAuthorization { to: shop.token, ..asked }),
            "invalid_exact_evm_payload_recipient_mismatch",
        ),
        (
            of_the_payer(TransferAuthorization { valid_before_secs: 1, ..asked }),
            "invalid_exact_evm_payload_authorization_valid_before",
        ),
        (
            of_the_payer(TransferAuthorization { valid_after_secs: 3_999_999_999, ..asked }),
            "invalid_exact_evm_payload_authorization_valid_after",
        ),
        (asked.sign(&shop.domain(), &poor), "invalid_exact_evm_payload_signature"),
        // Of a wallet that is a contract: no key signs for it.
        (
            of_the_payer(TransferAuthorization { from: shop.token, ..asked }),
            "invalid_exact_evm_payload_signature",
        ),
        (
            TransferAuthorization { from: poor.address(), ..asked }.sign(&shop.domain(), &poor),
            "insufficient_funds",
        ),
    ];
    for (payment, code) in cases {
        let answer = shop.pay(Method::GET, "/ok", &payment).await?;
        ensure!(answer.status == StatusCode::PAYMENT_REQUIRED, "{code}: {answer:?}");
        assert_eq!(told(&answer, "payment-required")["error"], code);
        ensure!(answer.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{answer:?}");
    }
    // A payer whose address has code, as EIP-7702 allows: the token asks the code, and not the key.
    let payer = shop.payer.address().to_string();
    rpc::call(&shop.anvil.url(), "anvil_setCode", json!([payer, "0xfe"])).await?;
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    assert_eq!(told(&answer, "payment-required")["error"], "invalid_transaction_state", "{answer:?}");
    rpc::call(&shop.anvil.url(), "anvil_setCode", json!([payer, "0x"])).await?;

    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (0, 0));
    let answer = shop.pay(Method::GET, "/ok", &shop.payment(1)).await?;
    ensure!(answer.status == StatusCode::OK, "what was refused is not used up: {answer:?}");
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_expires_soon_by_the_chains_date_is_refused_although_the_clock_is_behind() -> Result<()>
{
    let (shop, hour_secs) = (Shop::open().await?, 3_600);
    let url = shop.anvil.url();
    rpc::call(&url, "evm_increaseTime", json!([hour_secs])).await?;
    rpc::call(&url, "evm_mine", json!([])).await?;
    let block = rpc::call(&url, "eth_getBlockByNumber", json!(["latest", false])).await?;
    let number = |name: &str| {
        let digits = block[name].as_str().unwrap_or_default().trim_start_matches("0x");
        u64::from_str_radix(digits, 16)
    };
    let (newest, dated_secs) = (number("number")?, number("timestamp")?);
    eventually("the owner's node has seen the block", async || {
        Ok(shop.owner.status().await?.chain.head >= Some(newest))
    })
    .await?;
    let valid_for = |secs: u64| {
        let asked = TransferAuthorization { valid_before_secs: dated_secs + secs, ..shop.authorization(1) };
        asked.sign(&shop.domain(), &shop.payer)
    };
    let (too_short, enough) = (valid_for(100), valid_for(300));
    let answer = shop.pay(Method::GET, "/ok", &too_short).await?;
    assert_eq!(answer.status, StatusCode::PAYMENT_REQUIRED, "{answer:?}");
    assert_eq!(
        told(&answer, "payment-required")["error"],
        "invalid_exact_evm_payload_authorization_valid_before"
    );
    assert_eq!(shop.upstream.hits(), 0);
    let answer = shop.pay(Method::GET, "/ok", &enough).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_nothing_that_is_offered_is_refused_without_terms() -> Result<()> {
    let shop = Shop::open().await?;
    let nothing = Address::ZERO.to_string();
    let elsewhere = format!("{}/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/ok", shop.address()?);
    for (url, status) in [
        (shop.url("/unknown")?, StatusCode::NOT_FOUND),
        (elsewhere, StatusCode::NOT_FOUND),
        (format!("{}/{nothing}/ok", shop.address()?), StatusCode::BAD_REQUEST),
        (format!("{}/", shop.address()?), StatusCode::NOT_FOUND),
    ] {
        let answer = shop.ask_at(Method::GET, &url, &[]).await?;
        ensure!(answer.status == status && answer.header("payment-required").is_empty(), "{url}: {answer:?}");
    }
    let malformed = shop.ask(Method::GET, "/ok", &[("payment-signature", "{}".to_owned())]).await?;
    assert_eq!(malformed.status, StatusCode::BAD_REQUEST, "{malformed:?}");

    let listed = shop.ask_at(Method::GET, &format!("{}/.well-known/x402", shop.address()?), &[]).await?;
    let resources = listed.json()["resources"].to_string();
    ensure!(resources.contains(&shop.url("/ok")?), "{resources}");
    let preflight =
        shop.ask(Method::OPTIONS, "/ok", &[("origin", "https://page.example".to_owned())]).await?;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    let allowed = preflight.header("access-control-allow-headers");
    ensure!(
        allowed.contains("payment-signature") && allowed.contains("access-control-expose-headers"),
        "{allowed}"
    );
    assert_eq!(shop.upstream.hits(), 0);
    shop.check(0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_calls_names_a_wallet_only_if_its_key_signed_the_payment() -> Result<()> {
    let (shop, stranger) = (Shop::open().await?, SecretKey::from_bytes(&[2; 32])?);
    // Nobody sells this path, so the payment is not looked at.
    for key in [&stranger, &shop.payer] {
        let payment = shop.authorization(1).sign(&shop.domain(), key);
        let answer = shop.pay(Method::GET, "/unknown", &payment).await?;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
    }
    let refused = endpoint::Calls.with("limit", 500).with("outcome", "refused");
    let page = shop.owner.control().ask(refused).await?;
    let mut named: Vec<_> = page.calls.iter().map(|call| call.peer.map(|peer| peer.0)).collect();
    named.sort_unstable();
    assert_eq!(named, [None, Some(shop.payer.address())], "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_that_the_chain_cannot_be_asked_about_do_not_fill_the_log() -> Result<()> {
    let mut shop = Shop::open().await?;
    // The node's own chain is gone with this.
    shop.anvil = tokio::task::spawn_blocking(Anvil::start).await??;
    let payments: Vec<_> = (1..=120).map(|number| shop.payment(number)).collect();
    // Not all at once: one address has so many connections.
    for some in payments.chunks(40) {
        let asking = some.iter().map(|payment| shop.pay(Method::GET, "/ok", payment));
        for answer in futures::future::try_join_all(asking).await? {
            ensure!(answer.status == StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
        }
    }
    let lines = shop.owner.log().matches("cannot be asked about a payment").count();
    // So many in a minute, which may have ended meanwhile.
    ensure!((1..=60).contains(&lines), "{lines} lines");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_keeps_failing_is_tried_no_more_often_than_uncharged_calls_are_served() -> Result<()> {
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
    assert_eq!(answer?.status, StatusCode::PAYMENT_REQUIRED);
    eventually("a copy is told to come back", async || {
        let copies = (0..40).map(|_| shop.pay_for(&held, "/held", &payment));
        let answers = futures::future::try_join_all(copies).await?;
        Ok(answers.iter().any(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS))
    })
    .await?;
    assert_eq!((gate.count(), shop.transactions().await?), (1, 0));
    shop.check(0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_without_money_has_the_chain_asked_no_more_often_than_uncharged_calls_are_served()
-> Result<()> {
    let (shop, poor) = (Shop::open().await?, SecretKey::from_bytes(&[2; 32])?);
    let authorization = TransferAuthorization { from: poor.address(), ..shop.authorization(1) };
    let payment = authorization.sign(&shop.domain(), &poor);
    eventually("a copy is told to come back", async || {
        let copies = (0..40).map(|_| shop.pay(Method::GET, "/ok", &payment));
        let answers = futures::future::try_join_all(copies).await?;
        Ok(answers.iter().any(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS))
    })
    .await?;
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (0, 0));
    shop.check(0).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_payment_that_fails_in_its_block_is_withheld_until_it_is_paid() -> Result<()> {
    let shop = Shop::open().await?;
    let (url, payment) = (shop.anvil.url(), shop.payment(1));
    // It leaves nothing, and comes first in the block.
    let all = TransferAuthorization { to: PAYEE, value: FUNDS, ..shop.authorization(2) };
    let all = written(&all.sign(&shop.domain(), &shop.payer));
    rpc::call(&url, "evm_setAutomine", json!([false])).await?;
    let emptying = async {
        eventually("the transaction is sent", async || {
            Ok(rpc::call(&url, "txpool_status", json!([])).await?["pending"] == "0x1")
        })
        .await?;
        take(&url, &all).await?;
        rpc::call(&url, "evm_mine", json!([])).await?;
        rpc::call(&url, "evm_setAutomine", json!([true])).await?;
        anyhow::Ok(())
    };
    let (answer, emptied) = tokio::join!(shop.pay(Method::GET, "/ok", &payment), emptying);
    emptied?;
    let answer = answer?;
    ensure!(answer.status == StatusCode::PAYMENT_REQUIRED, "{answer:?}");
    assert_eq!(told(&answer, "payment-response")["success"], false, "{answer:?}");
    assert_eq!(answer.header("payment-required"), "", "no terms to pay anew");
    ensure!(answer.json()["n"].is_null(), "the answer leaked: {answer:?}");
    assert_eq!((shop.transactions().await?, shop.earned().await?), (1, Usdc::ZERO), "it was in the block");

    shop.deployer.mint(shop.token, shop.payer.address(), FUNDS).await?;
    let answer = shop.pay(Method::GET, "/ok", &payment).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (1, 2));
    shop.check(1).await
}
