//! The places of a sale at which a node may die, each followed by a restart and a copy of the request.

use anyhow::{Context, Result, ensure};
use farthing_testnet::rpc;
use farthing_tests::{upstream::Gate, wait::eventually};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::shop::{FUNDS, Shop, written};

/// Place, method of the call, status of the copy's answer, and how often the service was asked in all.
type Case = (&'static str, Method, StatusCode, u64);

const CASES: [Case; 8] = [
    ("x402.before_upstream", Method::GET, StatusCode::OK, 1),
    ("x402.before_upstream", Method::POST, StatusCode::CONFLICT, 0),
    ("x402.after_upstream", Method::GET, StatusCode::OK, 2),
    ("x402.after_upstream", Method::POST, StatusCode::CONFLICT, 1),
    ("x402.before_settlement", Method::GET, StatusCode::OK, 1),
    ("x402.before_settlement", Method::POST, StatusCode::OK, 1),
    ("x402.after_settlement", Method::GET, StatusCode::OK, 1),
    ("x402.after_settlement", Method::POST, StatusCode::OK, 1),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_dies_anywhere_is_paid_for_an_answer_once_and_else_not_at_all() -> Result<()> {
    let mut shop = Shop::open().await?;
    let (mut number, mut paid) = (0, 0);
    for (place, method, status, hits) in CASES {
        number += 1;
        let case = format!("{place} {method}");
        let (payment, before) = (shop.payment(number), shop.upstream.hits());
        shop.restart(Some(place)).await?;
        let died = shop.pay(method.clone(), "/ok", &payment).await;
        ensure!(died.is_err(), "{case}: {died:?}");
        shop.restart(None).await?;
        let answer = shop.pay(method.clone(), "/ok", &payment).await.context(case.clone())?;
        ensure!(answer.status == status, "{case}: {answer:?}");
        assert_eq!(shop.upstream.hits() - before, hits, "{case}");
        paid += u64::from(status == StatusCode::OK);
        shop.check(paid).await.context(case.clone())?;
        assert_eq!(shop.transactions().await?, paid, "{case}");
        // Neither a second copy nor the ones before change anything.
        let again = shop.pay(method, "/ok", &payment).await?;
        ensure!(again.status == status && again.body == answer.body, "{case}: {again:?}");
    }
    shop.check(paid).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_killed_while_the_payment_is_under_way_is_paid_once_and_answers() -> Result<()> {
    let mut shop = Shop::open().await?;
    let (url, payment) = (shop.anvil.url(), shop.payment(1));
    rpc::call(&url, "evm_setAutomine", json!([false])).await?;
    let sent = eventually("the transaction is sent", async || {
        let pool = rpc::call(&url, "txpool_status", json!([])).await?;
        Ok(pool["pending"] == "0x1")
    });
    tokio::select! {
        answer = shop.pay(Method::GET, "/ok", &payment) => anyhow::bail!("answered already: {answer:?}"),
        waited = sent => waited?,
    }
    shop.owner.kill().await?;
    rpc::call(&url, "evm_setAutomine", json!([true])).await?;
    rpc::call(&url, "evm_mine", json!([])).await?;
    shop.restart(None).await?;
    let answer = shop.pay(Method::GET, "/ok", &payment).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (1, 1));
    shop.check(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_made_again_from_a_backup_is_paid_for_no_answer_that_the_backup_lacks() -> Result<()>
{
    let (mut gate, mut shop) = (Gate::start().await?, Shop::open().await?);
    let held = shop.publish(&gate.url(), "/held").await?;
    let [paid, unpaid] = [1, 2].map(|number| shop.payment(number));
    let answer = shop.pay(Method::GET, "/ok", &paid).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    let work = async {
        gate.asked().await?;
        shop.empty_the_payer().await?;
        gate.open();
        anyhow::Ok(())
    };
    let (answer, worked) = tokio::join!(shop.pay_for(&held, "/held", &unpaid), work);
    worked?;
    assert_eq!(answer?.status, StatusCode::PAYMENT_REQUIRED);

    shop.back_up().await?;
    shop.restore().await?;
    let answer = shop.pay(Method::GET, "/ok", &paid).await?;
    ensure!(answer.status == StatusCode::CONFLICT, "an empty answer is none: {answer:?}");
    shop.deployer.mint(shop.token, shop.payer.address(), FUNDS).await?;
    let answer = shop.pay_for(&held, "/held", &unpaid).await?;
    ensure!(answer.status == StatusCode::OK && !answer.body.is_empty(), "{answer:?}");
    assert_eq!((shop.upstream.hits(), gate.count()), (1, 2), "the service is asked for what is not paid yet");
    shop.check(2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_made_again_from_a_backup_asks_nobody_to_pay_twice_for_a_call_that_it_lacks()
-> Result<()> {
    let (mut gate, mut shop) = (Gate::start().await?, Shop::open().await?);
    let held = shop.publish(&gate.url(), "/held").await?;
    let payment = written(&shop.payment(3));
    let url = |shop: &Shop| shop.address().map(|address| format!("{address}/{}/held", held.id));
    // The backup has the beginning of this call, and nothing of the other two.
    let backing_up = async {
        gate.asked().await?;
        shop.back_up().await?;
        gate.open();
        anyhow::Ok(())
    };
    let (at, header) = (url(&shop)?, [("payment-signature", payment)]);
    let (answer, worked) = tokio::join!(shop.ask_at(Method::DELETE, &at, &header), backing_up);
    worked?;
    assert_eq!(answer?.status, StatusCode::OK);
    let sold = [(1, Method::GET), (2, Method::POST)];
    for (number, method) in &sold {
        let answer = shop.pay(method.clone(), "/ok", &shop.payment(*number)).await?;
        ensure!(answer.status == StatusCode::OK, "{answer:?}");
    }

    shop.restore().await?;
    for has_money in [true, false] {
        if !has_money {
            shop.empty_the_payer().await?;
        }
        let mut answers = vec![shop.ask_at(Method::DELETE, &url(&shop)?, &header).await?];
        for (number, method) in &sold {
            answers.push(shop.pay(method.clone(), "/ok", &shop.payment(*number)).await?);
        }
        for answer in answers {
            ensure!(answer.status == StatusCode::CONFLICT, "{has_money}: {answer:?}");
            assert_eq!(answer.header("payment-required"), "", "no terms to pay anew");
            let detail = answer.json()["detail"].to_string();
            ensure!(detail.contains("taken or cancelled") && detail.contains("backup"), "{detail}");
        }
    }
    assert_eq!((shop.upstream.hits(), gate.count(), shop.transactions().await?), (2, 1, 3));
    shop.check(3).await
}
