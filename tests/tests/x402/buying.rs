//! Buying from x402 servers: from another node, and from a server that lies, asks again, loses answers and takes nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::{Router, response::Redirect};
use farthing_control::{
    endpoint,
    types::{CallOutcome, HistoryState, NewX402Server, X402Question},
};
use farthing_testnet::{NodeOptions, NodeProcess, demo::metrics};
use farthing_tests::{
    command::farthing,
    upstream::{Upstream, serve},
    wait::eventually,
    world::{Answer, PRICE},
};
use farthing_values::{Address, Usdc, limits::RESPONSE_BODY_BYTES_DEFAULT};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    buyer::{Buyer, ENOUGH},
    server::{Manner, Server},
    shop::{Shop, chain_of},
};

/// `{"sold":true}` in two members of gzip.
const IN_TWO_MEMBERS: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xab\x56\x2a\xce\xcf\x49\x51\xb2\x02\x00\
    \x3c\x51\x7e\x05\x08\x00\x00\x00\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x2b\x29\x2a\x4d\xad\x05\x00\
    \xdd\xe1\x42\x6f\x05\x00\x00\x00";
/// The same in one member, with the checksum of something else.
const DAMAGED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xab\x56\x2a\xce\xcf\x49\x51\xb2\x2a\x29\x2a\x4d\xad\x05\x00\
    \x83\x6d\x3a\x5b\x0d\x00\x00\x00";
/// The same in one block of brotli, which this node does not unpack.
const IN_BROTLI: &[u8] = b"\x0b\x06\x80{\"sold\":true}\x03";

/// A shop's chain, a server there, and a node that buys from it.
async fn market() -> Result<(Shop, Server, Buyer)> {
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;
    Ok((shop, server, buyer))
}

/// Checks the problem of an answer, and what it says was charged.
pub fn expect(answer: &Answer, problem: &str, charged: &Value) -> Result<()> {
    let is_it = answer.problem() == problem && answer.charged() == *charged;
    ensure!(is_it, "not {problem}, charged {charged}: {answer:?}");
    Ok(())
}

/// Calls the server. The change is made after the server was asked and before it makes its offer.
async fn call_meanwhile(
    (server, buyer): (&Server, &Buyer),
    call_id: &str,
    change: impl Future<Output = Result<()>>,
) -> Result<Answer> {
    let (held, asked) = (server.hold_offers().await, server.asked());
    let changing = async {
        eventually("the server is asked", async || Ok(server.asked() > asked)).await?;
        change.await?;
        drop(held);
        anyhow::Ok(())
    };
    let (answer, changed) = tokio::join!(buyer.call("/v1/data", call_id, Some(ENOUGH)), changing);
    changed?;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_another_nodes_port_is_paid_once_answered_and_in_every_book() -> Result<()> {
    let shop = Shop::open().await?;
    let buyer = Buyer::start(&shop, &format!("{}/{}", shop.address()?, shop.api.id)).await?;
    expect(&buyer.call("/ok", "one", None).await?, "price-above-cap", &json!(false))?;
    expect(&buyer.call("/ok", "one", Some("0.001")).await?, "price-above-cap", &json!(false))?;
    buyer.check(&shop, Usdc::ZERO).await?;

    let answer = buyer.call("/ok", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!((answer.json(), answer.header("x-farthing-charged")), (json!({ "n": 1 }), "0.002"));
    assert_eq!(answer.header("payment-response"), "", "what is between the two nodes stays there");
    let again = buyer.call("/ok", "one", Some(ENOUGH)).await?;
    ensure!(again.status == StatusCode::OK && again.body == answer.body, "{again:?}");
    assert_eq!([&answer, &again].map(|answer| answer.header("x-farthing-receipt")), ["", ""]);
    expect(&buyer.call("/html", "one", Some(ENOUGH)).await?, "call-id-conflict", &json!(false))?;
    assert_eq!(shop.upstream.hits(), 1);
    shop.check(1).await?;
    buyer.check(&shop, PRICE).await?;

    let entry = buyer.until_it_ends(HistoryState::Charged).await?;
    assert_eq!((entry.what.as_str(), entry.amount.0, entry.status), ("GET /ok", PRICE, Some(200)));
    assert_eq!((entry.service, entry.peer.map(|peer| peer.0)), (Some(buyer.server), Some(shop.wallet)));
    ensure!(
        entry.transaction.is_some()
            && entry.name.ends_with(&format!("/{}", shop.api.id))
            && entry.name.contains(':'),
        "{entry:?}"
    );
    let counts = metrics(&buyer.node).await?;
    let count = |outcome: &str| {
        counts.get(&format!("farthing_calls_total{{side=\"consumer\",outcome=\"{outcome}\"}}")).copied()
    };
    assert_eq!((count("charged"), count("repeated")), (Some(1), Some(1)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_and_called_until_they_are_removed() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    let control = buyer.node.control();
    let listed = control.ask(endpoint::X402Servers).await?;
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [buyer.server]);
    // As a person does it: the same server again keeps its id.
    let id = buyer.server.to_string();
    let added = farthing(&buyer.node, &["x402", "add", &server.url]).await?.ok()?;
    ensure!(added.out.contains(&id), "{added:?}");
    let shown = farthing(&buyer.node, &["x402", "list", "--json"]).await?.ok()?.json()?;
    assert_eq!((&shown[0]["id"], shown.as_array().map(Vec::len)), (&json!(id), Some(1)));
    let called = ["call", &id, "GET", "/v1/data", "--max-price", ENOUGH];
    assert_eq!(farthing(&buyer.node, &called).await?.ok()?.out, "{\"sold\":true}");
    farthing(&buyer.node, &["secret", "create", "agent"]).await?.ok()?;
    let pinned = farthing(&buyer.node, &["secret", "pin", "agent", &id]).await?;
    ensure!(pinned.code == 2 && pinned.err.contains("is an x402 server"), "{pinned:?}");
    let told = farthing(&buyer.node, &["catalog", "show", &id]).await?;
    let is_said = told.err.contains("is an x402 server") && told.err.contains("max_price");
    ensure!(told.code != 0 && is_said, "{told:?}");
    server.speak_version_one();
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    assert_eq!(answer.json(), json!({ "sold": true }));
    farthing(&buyer.node, &["x402", "remove", &id]).await?.fails(2, &["it gets another UUID", "--yes"])?;
    farthing(&buyer.node, &["x402", "remove", &id, "--yes"]).await?.ok()?;
    ensure!(control.ask(endpoint::X402Servers).await?.is_empty());
    let answer = buyer.call("/v1/data", "two", Some(ENOUGH)).await?;
    expect(&answer, "unknown-service", &json!(false))?;
    ensure!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("removed")), "{answer:?}");
    buyer.check(&shop, Usdc::from_micros(2 * PRICE.micros())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_lies_or_is_too_dear_is_refused_and_nothing_is_signed() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    let elsewhere = "0x0000000000000000000000000000000000000001";
    for (changed, max_price, problem) in [
        (json!({ "extra": { "name": "USD Coin", "version": "2" } }), ENOUGH, "no-common-scheme"),
        (json!({ "extra": { "name": "USDC", "version": "1" } }), ENOUGH, "no-common-scheme"),
        (json!({ "network": "eip155:8453" }), ENOUGH, "no-common-scheme"),
        (json!({ "asset": elsewhere }), ENOUGH, "no-common-scheme"),
        (json!({ "scheme": "upto" }), ENOUGH, "no-common-scheme"),
        (json!({ "payTo": buyer.wallet.to_string() }), ENOUGH, "no-common-scheme"),
        (json!({ "amount": "10001" }), ENOUGH, "price-above-cap"),
        (json!({ "amount": "10001" }), "1", "over-limit"),
    ] {
        let before = server.offer(&changed);
        let answer = buyer.call("/v1/data", "one", Some(max_price)).await?;
        expect(&answer, problem, &json!(false))?;
        ensure!(answer.json()["detail"].as_str().is_some_and(|detail| detail.len() > 20), "{answer:?}");
        let listed = buyer.node.control().ask(endpoint::X402Servers).await?;
        let heard = listed.first().and_then(|server| server.terms.clone()).context("no terms are kept")?;
        ensure!(heard.refused.is_some() == (problem == "no-common-scheme"), "{heard:?}");
        ensure!(heard.price.is_some() != heard.refused.is_some(), "{heard:?}");
        server.offer(&before);
    }
    ensure!(server.payments().is_empty(), "{:?}", server.payments());
    buyer.check(&shop, Usdc::ZERO).await?;
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "an id that paid nothing is not used up: {answer:?}");
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_again_after_it_was_paid_gets_no_second_payment() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::AsksAgain);
    for _ in 0..3 {
        let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
        ensure!(["undecided", "answer-no-longer-kept"].contains(&answer.problem().as_str()), "{answer:?}");
    }
    let entry = buyer.until_it_ends(HistoryState::Charged).await?;
    ensure!(entry.transaction.is_some() && entry.status.is_none(), "{entry:?}");
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "answer-no-longer-kept", &json!(true))?;
    assert_eq!((server.payments().len(), server.copies()), (1, 4));
    assert_eq!(server.earned(&shop).await?, PRICE);
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_word_on_its_payment_is_given_and_the_chain_says_what_it_cost() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Quiet);
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    assert_eq!((answer.status, answer.header("x-farthing-charged")), (StatusCode::OK, "undecided"));
    let entry = buyer.until_it_ends(HistoryState::Charged).await?;
    ensure!(entry.transaction.is_some() && entry.status == Some(200), "{entry:?}");
    let again = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    assert_eq!((again.status, again.header("x-farthing-charged")), (StatusCode::OK, "0.002"));
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_payment_nobody_takes_is_an_answer_in_the_log_and_costs_nothing() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Gives);
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    assert_eq!((answer.status, answer.header("x-farthing-charged")), (StatusCode::OK, "undecided"));
    let logged = async || -> Result<(Option<u16>, Option<Usdc>, String)> {
        let log = buyer.node.control().ask(endpoint::Calls.with("outcome", "answered")).await?.calls;
        let [call] = &log[..] else { anyhow::bail!("{log:#?}") };
        ensure!(call.problem.is_none(), "{call:?}");
        Ok((call.status, call.charged.map(|charged| charged.0), call.key.clone()))
    };
    let (status, charged, key) = logged().await?;
    assert_eq!((status, charged), (Some(200), None), "it may be taken yet");
    let shown = farthing(&buyer.node, &["calls", &key]).await?.ok()?.out;
    ensure!(shown.contains("not known yet"), "{shown}");
    buyer.let_payments_lapse(&shop).await?;
    let entry = buyer.until_it_ends(HistoryState::Free).await?;
    assert_eq!((entry.status, entry.reason), (Some(200), None));
    assert_eq!(logged().await?, (Some(200), Some(Usdc::ZERO), key));
    buyer.check(&shop, Usdc::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_server_packs_unasked_is_readable() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Packs("gzip", IN_TWO_MEMBERS));
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK && answer.header("content-encoding").is_empty(), "{answer:?}");
    assert_eq!(answer.json(), json!({ "sold": true }));
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_node_cannot_unpack_is_handed_out_as_it_came() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    for (number, (coding, bytes)) in [("gzip", DAMAGED), ("br", IN_BROTLI)].into_iter().enumerate() {
        server.behave(Manner::Packs(coding, bytes));
        let answer = buyer.call("/v1/data", &format!("call {number}"), Some(ENOUGH)).await?;
        ensure!(answer.status == StatusCode::OK && answer.body == bytes, "{answer:?}");
        let told = ["content-encoding", "x-farthing-charged"].map(|name| answer.header(name));
        assert_eq!(told, [coding, "0.002"]);
    }
    buyer.check(&shop, Usdc::from_micros(2 * PRICE.micros())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_is_charged_once_and_can_be_asked_for_again() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Breaks);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    buyer.until_it_ends(HistoryState::Charged).await?;
    buyer.check(&shop, PRICE).await?;
    // The note of what its caller was told gives way to its end.
    let log = buyer.node.control().ask(endpoint::Calls).await?.calls;
    let [paid] = &log[..] else { anyhow::bail!("{log:#?}") };
    assert_eq!((paid.outcome, paid.charged.map(|charged| charged.0)), (CallOutcome::Failed, Some(PRICE)));
    let problem = paid.problem.as_ref().context("no problem")?;
    ensure!(problem.code.is_none() && problem.detail.contains("took the payment"), "{problem:?}");
    server.behave(Manner::Honest);
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK && answer.header("x-farthing-charged") == "0.002", "{answer:?}");
    assert_eq!((server.payments().len(), server.copies()), (1, 2));
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_copies_of_a_call_at_once_are_one_payment() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    let copies = (0..50).map(|_| buyer.call("/v1/data", "one", Some(ENOUGH)));
    for answer in futures::future::try_join_all(copies).await? {
        ensure!(
            answer.status == StatusCode::OK && answer.header("x-farthing-charged") == "0.002",
            "{answer:?}"
        );
    }
    assert_eq!((server.payments().len(), server.earned(&shop).await?), (1, PRICE));
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_nobody_takes_is_counted_until_its_time_is_over_and_its_call_id_signs_no_other()
-> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Refuses);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    assert_eq!(buyer.spent().await?, PRICE, "it may be taken yet");
    buyer.let_payments_lapse(&shop).await?;
    let entry = buyer.until_it_ends(HistoryState::Failed).await?;
    ensure!(entry.reason.is_some_and(|reason| reason.contains("did not take the payment")));
    buyer.check(&shop, Usdc::ZERO).await?;
    server.behave(Manner::Honest);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "call-id-conflict", &json!(false))?;
    assert_eq!(server.payments().len(), 1);
    let answer = buyer.call("/v1/data", "two", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payment_of_a_server_that_was_removed_ends_as_the_chain_says_and_no_owner_is_asked() -> Result<()>
{
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Refuses);
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "undecided", &Value::Null)?;
    let id = buyer.server.to_string();
    farthing(&buyer.node, &["x402", "remove", &id, "--yes"]).await?.ok()?;
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    expect(&answer, "undecided", &Value::Null)?;
    ensure!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains(&id)), "{answer:?}");
    assert_eq!(buyer.spent().await?, PRICE, "it may be taken yet");
    buyer.let_payments_lapse(&shop).await?;
    buyer.until_it_ends(HistoryState::Failed).await?;
    buyer.check(&shop, Usdc::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_that_dies_around_its_payment_sends_the_same_one_after_its_restart() -> Result<()> {
    let (shop, server, mut buyer) = market().await?;
    for (number, place) in [(1, "foreign.before_send"), (2, "foreign.after_answer")] {
        let call_id = format!("call {number}");
        buyer.restart(Some(place)).await?;
        let died = buyer.call("/v1/data", &call_id, Some(ENOUGH)).await;
        ensure!(died.is_err(), "{place}: {died:?}");
        buyer.restart(None).await?;
        assert_eq!(buyer.spent().await?, Usdc::from_micros(PRICE.micros() * number), "{place}");
        let answer = buyer.call("/v1/data", &call_id, Some(ENOUGH)).await?;
        ensure!(answer.status == StatusCode::OK, "{place}: {answer:?}");
        assert_eq!(server.payments().len() as u64, number, "{place}");
        buyer.check(&shop, Usdc::from_micros(PRICE.micros() * number)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_that_stays_away_learns_after_its_restart_what_became_of_its_payment() -> Result<()> {
    let (shop, server, mut buyer) = market().await?;
    server.behave(Manner::AsksAgain);
    buyer.restart(Some("foreign.after_answer")).await?;
    ensure!(buyer.call("/v1/data", "one", Some(ENOUGH)).await.is_err());
    buyer.restart(None).await?;
    buyer.until_it_ends(HistoryState::Charged).await?;
    assert_eq!(server.copies(), 1, "the chain was asked, and not the server");
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_promised_to_a_server_stays_in_the_wallet() -> Result<()> {
    let (shop, server, buyer) = market().await?;
    server.behave(Manner::Refuses);
    let control = buyer.node.control();
    let limits = json!({ "price_max": "2", "per_day": "5", "per_secret_day": "5" });
    control.tell(endpoint::LimitSpending, &serde_json::from_value(limits)?).await?;
    server.offer(&json!({ "amount": "600000" }));
    expect(&buyer.call("/v1/data", "one", Some("1")).await?, "undecided", &Value::Null)?;
    expect(&buyer.call("/v1/data", "two", Some("1")).await?, "insufficient-funds", &json!(false))?;
    let to = Address::from_bytes([9; 20]).to_string();
    let sent = farthing(&buyer.node, &["wallet", "send", &to, "--usdc", "0.5", "--yes"]).await?;
    let told = sent.ends_with(5)?.err.clone();
    for words in ["at most 0.40 USDC", "0.60 USDC are promised to x402 servers, until"] {
        ensure!(told.contains(words), "no `{words}`: {told}");
    }
    buyer.let_payments_lapse(&shop).await?;
    buyer.until_it_ends(HistoryState::Failed).await?;
    server.behave(Manner::Honest);
    eventually("what was set aside is free again", async || {
        Ok(buyer.call("/v1/data", "three", Some("1")).await?.status == StatusCode::OK)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_a_private_network_is_neither_added_nor_asked_where_such_places_are_not_reached()
-> Result<()> {
    let (shop, folder) = (Shop::open().await?, tempfile::tempdir()?);
    let options = NodeOptions::new(folder.path().join("buyer")).set("network.allow_private", &false);
    let options = options.set("network.rendezvous", &"off").set("network.upnp", &false);
    let node = NodeProcess::start_on(chain_of(&shop.anvil), options).await?;
    let control = node.control();
    let inside = Upstream::start().await?;
    for url in [shop.address()?, inside.url(), "http://10.0.0.7/api".to_owned()] {
        let asked = control.tell(endpoint::AskX402Server, &X402Question { url: url.clone() }).await.err();
        let added =
            control.tell(endpoint::AddX402Server, &NewX402Server { url, max_price: None }).await.err();
        for refused in [asked, added] {
            let told = refused.map(|error| error.to_string()).unwrap_or_default();
            ensure!(told.contains("private network"), "{told}");
        }
    }
    assert_eq!(inside.hits(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_what_it_asks_and_no_call_costs_more_than_the_user_allows_it() -> Result<()> {
    let (_shop, server, buyer) = market().await?;
    let control = buyer.node.control();
    let listed = control.ask(endpoint::X402Servers).await?;
    let terms =
        listed.first().and_then(|server| server.terms.clone()).context("it was not asked when added")?;
    ensure!(terms.price.map(|price| price.0) == Some(PRICE) && terms.status == 402, "{terms:?}");
    ensure!(terms.network.as_deref() == Some("eip155:84532") && terms.refused.is_none(), "{terms:?}");

    // Without a payment, and at a path that nobody has called.
    server.offer(&json!({ "amount": "3000", "description": "Tides" }));
    let question = X402Question { url: format!("{}/v1/tides", server.url) };
    let terms = control.tell(endpoint::AskX402Server, &question).await?;
    ensure!(terms.price.map(|price| price.0) == Some(Usdc::from_micros(3_000)), "{terms:?}");
    ensure!(terms.description.as_deref() == Some("Tides") && server.copies() == 0, "{terms:?}");

    let most = Some(Usdc::from_micros(2_999).into());
    let new = NewX402Server { url: server.url.clone(), max_price: most };
    let changed = control.tell(endpoint::AddX402Server, &new).await?;
    ensure!(changed.id == buyer.server && changed.max_price == most, "{changed:?}");
    expect(&buyer.call("/v1/data", "one", Some(ENOUGH)).await?, "price-above-cap", &json!(false))?;
    ensure!(server.copies() == 0, "nothing was signed");
    server.offer(&json!({ "amount": "2999" }));
    let answer = buyer.call("/v1/data", "two", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "at the limit: {answer:?}");
    eventually("the figures of the server have the call", async || {
        let bought = control.ask(endpoint::Series.with("service", buyer.server)).await?.bought;
        Ok((bought.charged.0, bought.outcomes.answered) == (Usdc::from_micros(2_999), 1))
    })
    .await?;

    server.offer(&json!({ "network": "eip155:1" }));
    let terms = control.tell(endpoint::AskX402Server, &question).await?;
    let refused = terms.refused.clone().unwrap_or_default();
    ensure!(terms.price.is_none() && refused.contains("another chain"), "{terms:?}");
    let nobody = X402Question { url: "http://127.0.0.1:9/".to_owned() };
    let refused = control.tell(endpoint::AskX402Server, &nobody).await.err().map(|error| error.to_string());
    ensure!(refused.unwrap_or_default().contains("does not answer"));

    // What is not sold is not read: this answer is larger than that of any call may be.
    let free =
        serve(Router::new().fallback(|| async { vec![b'x'; RESPONSE_BODY_BYTES_DEFAULT + 1] })).await?;
    let terms = control.tell(endpoint::AskX402Server, &X402Question { url: free }).await?;
    ensure!(terms.status == 200 && terms.price.is_none() && terms.refused.is_none(), "{terms:?}");
    // A server cannot lead the question elsewhere.
    let to = format!("{}/v1/tides", server.url);
    let leads = serve(Router::new().fallback(move || async move { Redirect::temporary(&to) })).await?;
    let asked = server.asked();
    let terms = control.tell(endpoint::AskX402Server, &X402Question { url: leads }).await?;
    ensure!(terms.status == 307 && terms.price.is_none() && server.asked() == asked, "{terms:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_comes_too_late_to_be_paid_is_refused_and_nothing_is_signed() -> Result<()> {
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let time = ("limits.call_total_ms".to_owned(), "5000".to_owned());
    let buyer = Buyer::start_with(&shop, &server.url, Some(time)).await?;
    // Less than a fifth of the time is left then.
    let late = async {
        tokio::time::sleep(Duration::from_millis(4_300)).await;
        anyhow::Ok(())
    };
    let answer = call_meanwhile((&server, &buyer), "one", late).await?;
    expect(&answer, "owner-unreachable", &json!(false))?;
    ensure!(server.payments().is_empty(), "nothing was signed");
    buyer.check(&shop, Usdc::ZERO).await?;
    let answer = buyer.call("/v1/data", "one", Some(ENOUGH)).await?;
    ensure!(answer.status == StatusCode::OK, "the same id buys in time: {answer:?}");
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_a_lower_price_and_a_removal_also_count_for_a_call_whose_server_is_being_asked() -> Result<()>
{
    let (shop, server, buyer) = market().await?;
    let control = buyer.node.control();
    let stop = async {
        control.ask(endpoint::StopSpending).await?;
        anyhow::Ok(())
    };
    let answer = call_meanwhile((&server, &buyer), "none", stop).await?;
    expect(&answer, "spending-stopped", &json!(false))?;
    control.ask(endpoint::ResumeSpending).await?;

    let most = Some(Usdc::from_micros(PRICE.micros() - 1).into());
    let new = NewX402Server { url: server.url.clone(), max_price: most };
    let lower = async {
        control.tell(endpoint::AddX402Server, &new).await?;
        anyhow::Ok(())
    };
    let answer = call_meanwhile((&server, &buyer), "one", lower).await?;
    expect(&answer, "price-above-cap", &json!(false))?;
    let remove = async {
        control.ask(endpoint::RemoveX402Server.of(buyer.server)).await?;
        anyhow::Ok(())
    };
    let answer = call_meanwhile((&server, &buyer), "two", remove).await?;
    expect(&answer, "unknown-service", &json!(false))?;
    ensure!(server.payments().is_empty(), "nothing was signed");
    buyer.check(&shop, Usdc::ZERO).await
}
