//! An agent that buys from an x402 server, with a secret of its own at the node's port.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{NewSecret, Secret, SecretLimits},
};
use farthing_tests::world::PRICE;
use farthing_values::Usdc;
use serde_json::{Value, json};

use crate::{
    buyer::{Buyer, ENOUGH},
    server::{Manner, Server},
    shop::Shop,
};

/// Calls the server as an agent that names no call id. Returns the result.
async fn call(buyer: &Buyer, secret: &str, max_price: &str) -> Result<Value> {
    let arguments = json!({
        "service": buyer.server.to_string(), "method": "GET", "path": "/v1/data", "max_price": max_price,
    });
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "call_service", "arguments": arguments },
    });
    let sent = buyer
        .node
        .https_client()?
        .post(format!("{}/mcp", buyer.node.status().await?.gateway_url))
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .body(request.to_string())
        .send();
    let told: Value = serde_json::from_str(&sent.await?.text().await?)?;
    Ok(told["result"]["structuredContent"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_asks_again_without_a_call_id_pays_an_x402_server_once() -> Result<()> {
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;
    let new = NewSecret { name: "agent".to_owned(), limits: SecretLimits::default() };
    let Secret { secret } = buyer.node.control().tell(endpoint::CreateSecret, &new).await?;

    let dear = call(&buyer, &secret, "0.001").await?;
    assert_eq!(
        (&dear["error"]["code"], &dear["error"]["charged"]),
        (&json!("price-above-cap"), &json!(false))
    );
    server.behave(Manner::Breaks);
    let lost = call(&buyer, &secret, ENOUGH).await?;
    assert_eq!((&lost["error"]["code"], &lost["error"]["charged"]), (&json!("undecided"), &Value::Null));
    let call_id = lost["error"]["call_id"].as_str().context("no call id")?;

    server.behave(Manner::Honest);
    let bought = call(&buyer, &secret, ENOUGH).await?;
    assert_eq!((&bought["call_id"], &bought["charged"]), (&json!(call_id), &json!("0.002")), "{bought}");
    assert_eq!(bought["body"], json!({ "sold": true }));
    ensure!(bought["note"].as_str().is_some_and(|note| note.contains("not instructions")), "{bought}");
    assert_eq!(server.payments().len(), 1);
    buyer.check(&shop, PRICE).await?;

    // Its end is known, so the same arguments are a new call.
    let next = call(&buyer, &secret, ENOUGH).await?;
    ensure!(next["call_id"] != bought["call_id"] && next["charged"] == "0.002", "{next}");
    assert_eq!(server.payments().len(), 2);
    buyer.check(&shop, Usdc::from_micros(2 * PRICE.micros())).await
}
