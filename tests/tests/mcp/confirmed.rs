//! A price above the amount that the user set: nothing is bought before the user agrees, in the agent's program or in the node's
//! console, and then once. Both doors are the same: standard input and output, and the node's port.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use farthing_control::{
    endpoint,
    types::{Approval, ApprovalState, NewSecret, Secret, SecretLimits},
};
use farthing_testnet::{NodeProcess, demo::Demo, program};
use farthing_tests::{agreement, command::fed, wait::eventually};
use farthing_values::Usdc;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    agent::{Agent, Instructed, Said},
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

fn search() -> Value {
    step("search_catalog", json!({ "query": "recent earthq" }))
}

/// The agent asks for a call that its user has to approve.
fn asking() -> Vec<Value> {
    vec![
        search(),
        step(
            "get_sample",
            json!({ "service": "{{0.services.0.id}}", "operation": "GET /v1/earthquakes/recent" }),
        ),
        step("call_service", earthquakes("5", "0.0015")),
        step("call_service", earthquakes("5", "0.002")),
        step("spending_status", json!({})),
    ]
}

/// The agent repeats it, and others, after its user has approved that call.
fn buying() -> Vec<Value> {
    let mut again = earthquakes("5", "0.002");
    again["call_id"] = json!("{{2.call_id}}");
    let mut confirmed = earthquakes("5", "0.002");
    confirmed["confirm_token"] = json!("made up");
    vec![
        search(),
        step("call_service", earthquakes("6", "0.002")),
        step("call_service", earthquakes("5", "0.002")),
        step("call_service", again),
        step("call_service", earthquakes("5", "0.002")),
        step("call_service", confirmed),
        step("spending_status", json!({})),
    ]
}

/// Checks that an agent was sent to its user with a call.
fn check_asked(error: &Value) {
    let told = (&error["code"], &error["price_usdc"], &error["charged"]);
    assert_eq!(told, (&json!("confirmation-needed"), &json!("0.002"), &json!(false)), "{error}");
    let page = error["approve_at"].as_str().unwrap_or_default();
    assert!(page.starts_with("https://") && page.ends_with("/panel/finance/approvals"), "{error}");
    assert!(error.get("confirm_token").is_none(), "no agent answers for its user: {error}");
}

/// Checks what the agent was told in each step. Returns the id of the call that it bought.
fn check(said: &Said) -> Result<String> {
    check_asked(said.error(1)?);
    let bought = said.data(2)?;
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")));
    let again = said.data(3)?;
    assert_eq!((&again["body"], &again["call_id"]), (&bought["body"], &bought["call_id"]));
    check_asked(said.error(4)?);
    assert_eq!(said.error(5)?["code"], "invalid-arguments", "no argument confirms a price");
    assert_eq!(said.data(6)?["spent_today_usdc"], "0.002", "an approval buys once");
    assert!(said.questions.is_empty());
    Ok(bought["call_id"].as_str().context("no call id")?.to_owned())
}

/// The calls of a secret that wait for the user.
async fn waiting(demo: &Demo, secret: &str) -> Result<Vec<Approval>> {
    let mut all = demo.consumer.control().ask(endpoint::Approvals).await?;
    all.retain(|approval| approval.secret == secret && approval.state == ApprovalState::Waiting);
    Ok(all)
}

/// Buys with an approval of the user at one door.
async fn buys_once(agent: Instructed<'_>, demo: &Demo, secret: &str) -> Result<Said> {
    let asked = agent.does(&asking()).await?;
    assert_eq!(asked.data(1)?["samples"][0]["status"], 200);
    let above = asked.error(2)?;
    assert_eq!((&above["code"], &above["charged"]), (&json!("price-above-cap"), &json!(false)));
    check_asked(asked.error(3)?);
    let before = asked.data(4)?;
    assert_eq!(
        (&before["spent_today_usdc"], &before["confirm_above_usdc"]),
        (&json!("0.00"), &json!("0.001"))
    );
    let found = waiting(demo, secret).await?;
    let [waiting] = &found[..] else { bail!("one call waits: {found:?}") };
    assert_eq!((waiting.call.params["limit"].as_str(), waiting.service_name.as_str()), ("5", "Earthquakes"));
    demo.consumer.control().ask(endpoint::ApproveCall.of(&waiting.id)).await?;
    let said = agent.does(&buying()).await?;
    let call_id = check(&said)?;
    eventually("the log has the call with its receipt, which holds", async || {
        let at = endpoint::ShowCall.of(&call_id).with("verify", true);
        let Ok(shown) = demo.consumer.control().ask(at).await else { return Ok(false) };
        let is_of_the_agent = shown.call.secret.as_deref() == Some(secret);
        Ok(is_of_the_agent && shown.verdict.is_some_and(|verdict| verdict.holds))
    })
    .await?;
    Ok(said)
}

/// Buys with an approval at both doors. Returns the version of the protocol there, if the client tells it.
pub async fn buys_once_at_both_doors(agent: &Agent, demo: &Demo) -> Result<[Option<String>; 2]> {
    confirming(demo, "by-stdio").await?;
    let secret = confirming(demo, "by-http").await?;
    let by_stdio = buys_once(agent.of_secret(&demo.consumer, "by-stdio"), demo, "by-stdio").await?;
    let by_http = buys_once(agent.over_http(&demo.consumer, &secret), demo, "by-http").await?;
    assert_eq!(by_stdio.tools, by_http.tools, "both doors have the same tools");
    Ok([by_stdio.version, by_http.version])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_above_the_amount_is_bought_once_after_its_user_approved_it_at_both_doors() -> Result<()> {
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
    for shown in ["for 0.002 USDC?", "\"Earthquakes\"", "Path: \"/v1/earthquakes/recent\"", "\"limit\":\"5\""]
    {
        assert!(question.contains(shown), "{shown}: {question}");
    }
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
async fn buys_over_http(demo: &Demo, secret: &str) -> Result<Value> {
    let mut arguments = earthquakes("5", "0.002");
    arguments["service"] = json!(demo.earthquakes.api.id.to_string());
    let shows_forms = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let call = json!({ "name": "call_service", "arguments": arguments, "_meta": shows_forms });
    Ok(asks_over_http(&demo.consumer, secret, "tools/call", call).await?["structuredContent"].clone())
}

/// Asks the door at a node's port. Returns the result.
pub async fn asks_over_http(node: &NodeProcess, secret: &str, method: &str, params: Value) -> Result<Value> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let sent = node
        .https_client()?
        .post(format!("{}/mcp", node.status().await?.gateway_url))
        .header("authorization", format!("Bearer {secret}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
        .body(request.to_string())
        // It waited for a user that nobody could ask, for five minutes.
        .timeout(Duration::from_secs(60))
        .send();
    let told: Value = serde_json::from_str(&sent.await?.text().await?)?;
    Ok(told["result"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_has_no_approval_of_a_revoked_one_of_its_name() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let earlier = confirming(&demo, "asked").await?;
    check_asked(&buys_over_http(&demo, &earlier).await?["error"]);
    for approval in waiting(&demo, "asked").await? {
        demo.consumer.control().ask(endpoint::ApproveCall.of(&approval.id)).await?;
    }
    let revoked = demo.consumer.control().ask(endpoint::RevokeSecret.of("asked")).await?;
    let created_secs = revoked.created_secs.context("no time")?;
    eventually("the next second", async || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(now.as_secs() > created_secs)
    })
    .await?;
    let later = confirming(&demo, "asked").await?;
    check_asked(&buys_over_http(&demo, &later).await?["error"]);
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_is_not_bought_and_the_command_line_decides_as_the_console_does() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let secret = confirming(&demo, "asked").await?;
    check_asked(&buys_over_http(&demo, &secret).await?["error"]);
    let run = async |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(program("farthing")?);
        command.arg("mcp").args(arguments).arg("--data").arg(demo.consumer.data_dir());
        let output = fed(&mut command, b"").await?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let listed = run(&["approvals"]).await?;
    let found = waiting(&demo, "asked").await?;
    let [asked] = &found[..] else { bail!("one call waits: {found:?}") };
    for shown in [asked.id.as_str(), "waiting", "asked", "0.002", "Earthquakes", "/v1/earthquakes/recent"] {
        ensure!(listed.contains(shown), "{shown}: {listed}");
    }
    run(&["refuse", asked.id.as_str()]).await?;
    let told = buys_over_http(&demo, &secret).await?;
    let refused = &told["error"];
    assert_eq!(
        (&refused["code"], &refused["charged"]),
        (&json!("not-confirmed"), &json!(false)),
        "{refused}"
    );
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    let other = confirming(&demo, "other").await?;
    let told = buys_over_http(&demo, &other).await?;
    check_asked(&told["error"]);
    let again = buys_over_http(&demo, &other).await?;
    assert_eq!(again["error"]["approval_id"], told["error"]["approval_id"], "one id for one question");
    // The agent's words are enough.
    run(&["approve", told["error"]["approval_id"].as_str().context("no id")?]).await?;
    let bought = buys_over_http(&demo, &other).await?;
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")), "{bought}");
    agreement::end(demo).await
}
