//! A price above the amount that the user set: nothing is bought before it is confirmed, by a token or by the user, and
//! then once. Both doors are the same: standard input and output, and the node's port.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use farthing_control::{
    endpoint,
    types::{NewSecret, Secret, SecretLimits},
};
use farthing_protocol::Usdc;
use farthing_testnet::demo::Demo;
use farthing_tests::{agreement, wait::eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    agent::{Agent, Said},
    earthquakes, start, step,
};

/// Below the price of the earthquakes.
const CONFIRM_ABOVE: Usdc = Usdc::from_micros(1_000);

/// Makes a secret whose user confirms prices. Returns the secret itself.
pub async fn confirming(demo: &Demo, name: &str) -> Result<String> {
    let limits = SecretLimits { confirm_above: Some(CONFIRM_ABOVE.into()), ..SecretLimits::default() };
    let new = NewSecret { name: name.to_owned(), limits };
    let Secret { secret } = demo.consumer.control().tell(endpoint::CreateSecret, &new).await?;
    Ok(secret)
}

/// The call of the earthquakes with a token.
fn confirmed(limit: &str, token: &str) -> Value {
    let mut call = earthquakes(limit, "0.002");
    call["confirm_token"] = json!(token);
    step("call_service", call)
}

fn script() -> Vec<Value> {
    let token = "{{3.error.confirm_token}}";
    vec![
        step("search_catalog", json!({ "query": "recent earthq" })),
        step(
            "get_sample",
            json!({ "service": "{{0.services.0.id}}", "operation": "GET /v1/earthquakes/recent" }),
        ),
        step("call_service", earthquakes("5", "0.0015")),
        step("call_service", earthquakes("5", "0.002")),
        confirmed("5", "made up"),
        confirmed("6", token),
        step("spending_status", json!({})),
        confirmed("5", token),
        confirmed("5", token),
        step("spending_status", json!({})),
    ]
}

/// Checks what the agent was told in each step. Returns the id of the call that it bought.
fn check(said: &Said) -> Result<String> {
    assert_eq!(said.data(1)?["samples"][0]["status"], 200);
    let above = said.error(2)?;
    assert_eq!((&above["code"], &above["charged"]), (&json!("price-above-cap"), &json!(false)));
    let asked = said.error(3)?;
    assert_eq!(
        (&asked["code"], &asked["price_usdc"], &asked["charged"]),
        (&json!("confirmation-needed"), &json!("0.002"), &json!(false))
    );
    for wrong in [4, 5] {
        assert_eq!(said.error(wrong)?["code"], "unknown-token", "step {wrong}");
    }
    let before = said.data(6)?;
    assert_eq!(
        (&before["spent_today_usdc"], &before["confirm_above_usdc"]),
        (&json!("0.00"), &json!("0.001"))
    );
    let bought = said.data(7)?;
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")));
    assert_eq!(bought["call_id"], asked["call_id"], "the call that was asked about");
    let again = said.data(8)?;
    assert_eq!((&again["body"], &again["call_id"]), (&bought["body"], &bought["call_id"]));
    assert_eq!(said.data(9)?["spent_today_usdc"], "0.002", "a token buys once");
    assert!(said.questions.is_empty());
    Ok(bought["call_id"].as_str().context("no call id")?.to_owned())
}

/// Buys with a token at both doors. Returns the version of the protocol there, if the client tells it.
pub async fn buys_once_at_both_doors(agent: &Agent, demo: &Demo) -> Result<[Option<String>; 2]> {
    confirming(demo, "by-stdio").await?;
    let secret = confirming(demo, "by-http").await?;
    let by_stdio = agent.of_secret(&demo.consumer, "by-stdio").does(&script()).await?;
    let by_http = agent.over_http(&demo.consumer, &secret).does(&script()).await?;
    assert_eq!(by_stdio.tools, by_http.tools, "both doors have the same tools");
    for (name, said) in [("by-stdio", &by_stdio), ("by-http", &by_http)] {
        let call_id = check(said).with_context(|| name.to_owned())?;
        eventually("the log has the call with its receipt, which holds", async || {
            let at = endpoint::ShowCall.of(&call_id).with("verify", true);
            let Ok(shown) = demo.consumer.control().ask(at).await else { return Ok(false) };
            let is_of_the_agent = shown.call.secret.as_deref() == Some(name);
            Ok(is_of_the_agent && shown.verdict.is_some_and(|verdict| verdict.holds))
        })
        .await?;
    }
    Ok([by_stdio.version, by_http.version])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_above_the_amount_is_bought_once_after_its_price_was_confirmed_at_both_doors() -> Result<()> {
    let Some(agent) = Agent::find()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    buys_once_at_both_doors(&agent, &demo).await?;
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_program_can_ask_its_user_the_user_decides() -> Result<()> {
    let Some(agent) = Agent::find()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    confirming(&demo, "asked").await?;
    let steps = [
        step("search_catalog", json!({ "query": "recent earthq" })),
        step("call_service", earthquakes("5", "0.002")),
    ];
    let does =
        async |answer| agent.of_secret(&demo.consumer, "asked").whose_user_says(answer).does(&steps).await;
    for no in ["decline", "cancel"] {
        let said = does(no).await?;
        let error = said.error(1)?;
        assert_eq!((&error["code"], &error["charged"]), (&json!("not-confirmed"), &json!(false)), "{no}");
        assert!(error.get("confirm_token").is_none(), "no agent answers for a user that was asked");
    }
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    let said = does("accept").await?;
    assert_eq!(said.data(1)?["charged"], "0.002");
    let [question] = &said.questions[..] else { panic!("{:?}", said.questions) };
    assert!(question.contains("0.002 USDC") && question.contains("/v1/earthquakes/recent"), "{question}");
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_at_the_nodes_port_opens_to_secrets_alone_and_not_to_web_pages() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let url = format!("{}/mcp", demo.gateway_url);
    let https = demo.consumer.https_client()?;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let asked = |bearer: &str| {
        https
            .post(&url)
            .header("authorization", format!("Bearer {bearer}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(list.clone())
    };
    let listed = asked(&demo.secret).send().await?;
    assert_eq!(listed.status(), 200);
    let listed: Value = serde_json::from_str(&listed.text().await?)?;
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(6), "{listed}");
    let wrong = asked("farthing_sk_wrong").send().await?;
    assert_eq!(wrong.status(), 401);
    assert!(wrong.text().await?.contains("urn:farthing:problem:unauthorized"));
    let page = asked(&demo.secret).header("origin", "https://evil.example").send().await?;
    assert_eq!(page.status(), 403);
    assert!(page.text().await?.contains("urn:farthing:problem:origin-refused"));
    let rebound = asked(&demo.secret).header("host", "evil.example").send().await?;
    assert_eq!(rebound.status(), 421);
    agreement::end(demo).await
}

/// Calls the earthquakes as a program that says over HTTP that it shows forms. Returns what it was told.
async fn buys_over_http(demo: &Demo, secret: &str, token: Option<&str>) -> Result<Value> {
    let mut arguments = earthquakes("5", "0.002");
    arguments["service"] = json!(demo.earthquakes.api.id.to_string());
    arguments["confirm_token"] = json!(token);
    let shows_forms = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "call_service", "arguments": arguments, "_meta": shows_forms },
    });
    let sent = demo
        .consumer
        .https_client()?
        .post(format!("{}/mcp", demo.gateway_url))
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .body(call.to_string())
        // It waited for a user that nobody could ask, for five minutes.
        .timeout(Duration::from_secs(60))
        .send();
    Ok(serde_json::from_str(&sent.await?.text().await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_finds_no_question_of_a_revoked_one_of_its_name() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let earlier = confirming(&demo, "asked").await?;
    let told = buys_over_http(&demo, &earlier, None).await?;
    let token = told["result"]["structuredContent"]["error"]["confirm_token"].as_str().context("no token")?;
    let revoked = demo.consumer.control().ask(endpoint::RevokeSecret.of("asked")).await?;
    let created_secs = revoked.created_secs.context("no time")?;
    eventually("the next second", async || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(now.as_secs() > created_secs)
    })
    .await?;
    let later = confirming(&demo, "asked").await?;
    let told = buys_over_http(&demo, &later, Some(token)).await?;
    assert_eq!(told["result"]["structuredContent"]["error"]["code"], "unknown-token", "{told}");
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_says_over_http_that_it_shows_forms_gets_a_token_at_once() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let secret = confirming(&demo, "asked").await?;
    let told = buys_over_http(&demo, &secret, None).await?;
    let error = &told["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "confirmation-needed", "{told}");
    assert!(error["confirm_token"].is_string(), "{told}");
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    agreement::end(demo).await
}
