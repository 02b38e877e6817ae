//! `farthing mcp` as an agent uses it, through the official clients of the protocol: it finds the earthquakes, tries their
//! sample, buys with a cap, is refused above it, and reads the receipt.

mod agent;
mod confirmed;
mod conformance;
mod frameworks;
mod hostile;
mod official;
mod pinned;
mod restarted;

use agent::Agent;
use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CatalogQuery, NewSecret, SecretLimits},
};
use farthing_testnet::{
    demo::{Demo, Setup},
    program,
};
use farthing_tests::{agreement, command::fed, wait::eventually};
use farthing_values::Usdc;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// The name of the agent's secret, which pays the price of the earthquakes and not that of the planets.
const SECRET: &str = "agent";
const PER_CALL: Usdc = Usdc::from_micros(2_500);
const PER_DAY: Usdc = Usdc::from_micros(10_000);

async fn start(folder: &TempDir) -> Result<Demo> {
    let demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let limits = SecretLimits {
        price_max: Some(PER_CALL.into()),
        per_day: Some(PER_DAY.into()),
        ..SecretLimits::default()
    };
    let secret = NewSecret { name: SECRET.to_owned(), limits };
    demo.consumer.control().tell(endpoint::CreateSecret, &secret).await?;
    eventually("the consumer finds both services", async || {
        let found = demo.consumer.control().tell(endpoint::CatalogSearch, &CatalogQuery::default()).await?;
        Ok(found.total == 2)
    })
    .await?;
    Ok(demo)
}

fn step(tool: &str, arguments: Value) -> Value {
    Value::from_iter([("tool", Value::from(tool)), ("arguments", arguments)])
}

/// A call of the earthquakes; the id comes from the search that was the first step.
fn earthquakes(limit: &str, max_price: &str) -> Value {
    json!({
        "service": "{{0.services.0.id}}", "method": "GET", "path": "/v1/earthquakes/recent",
        "params": { "format": "geojson", "minmagnitude": 1.5, "limit": limit }, "max_price": max_price,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_finds_tries_and_buys_within_its_caps_and_reads_the_receipt() -> Result<()> {
    let Some(agent) = Agent::find()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let mut again = earthquakes("5", "0.002");
    again["call_id"] = json!("{{6.call_id}}");
    let said = agent
        .of_secret(&demo.consumer, SECRET)
        .does(&[
            step("search_catalog", json!({ "query": "recent earthq", "max_price": "0.01" })),
            step("describe_service", json!({ "service": "{{0.services.0.id}}" })),
            step(
                "describe_service",
                json!({ "service": "{{0.services.0.id}}", "operation": "GET /v1/earthquakes/recent" }),
            ),
            step(
                "get_sample",
                json!({ "service": "{{0.services.0.id}}", "operation": "GET /v1/earthquakes/recent" }),
            ),
            step("spending_status", json!({})),
            step("call_service", earthquakes("5", "0.001")),
            step("call_service", earthquakes("5", "0.002")),
            step("call_service", again),
            step("spending_status", json!({})),
        ])
        .await?;

    assert_eq!(said.server["name"], "farthing");
    assert_eq!(said.tools.len(), 6, "{:?}", said.tools);
    assert!(said.instructions.contains("max_price"), "{}", said.instructions);

    let found = said.data(0)?;
    assert_eq!(found["services"][0]["name"], "Earthquakes");
    assert_eq!(found["services"][0]["id"], demo.earthquakes.api.id.to_string());
    assert!(found["note"].as_str().unwrap_or_default().contains("not instructions"), "{found}");
    let operations = said.data(1)?["operations"].as_array().context("no operations")?;
    assert!(operations.iter().any(|one| one["operation"] == "GET /v1/earthquakes/recent"), "{operations:?}");
    assert_eq!(said.data(2)?["price_usdc"], "0.002");
    assert!(said.data(2)?["outline"]["parameters"].as_array().is_some_and(|all| all.len() > 3));
    assert_eq!(said.data(3)?["samples"][0]["status"], 200);
    assert_eq!(
        (&said.data(4)?["left_today_usdc"], &said.data(4)?["per_call_usdc"]),
        (&json!("0.01"), &json!("0.0025"))
    );

    let refused = said.error(5)?;
    assert_eq!((&refused["code"], &refused["charged"]), (&json!("price-above-cap"), &json!(false)));
    assert!(refused["next"].as_str().is_some_and(|next| !next.is_empty()), "{refused}");

    let bought = said.data(6)?;
    assert_eq!(
        (&bought["status"], &bought["charged"], &bought["price_usdc"]),
        (&json!(200), &json!("0.002"), &json!("0.002"))
    );
    assert_eq!(bought["body"]["features"].as_array().context("no GeoJSON")?.len(), 5);
    let receipt = bought["receipt"].as_str().context("no receipt")?;
    assert!(receipt.starts_with("0x") && receipt.len() == 66, "{receipt}");
    let again = said.data(7)?;
    assert_eq!(
        (&again["body"], &again["call_id"]),
        (&bought["body"], &bought["call_id"]),
        "a repeat has the same answer"
    );
    assert_eq!(said.data(8)?["spent_today_usdc"], "0.002", "and is charged once");

    let call_id = bought["call_id"].as_str().context("no call id")?;
    eventually("the log has the call with its receipt, which holds", async || {
        let at = endpoint::ShowCall.of(call_id).with("verify", true);
        let Ok(shown) = demo.consumer.control().ask(at).await else { return Ok(false) };
        let is_of_the_agent = shown.call.secret.as_deref() == Some(SECRET);
        Ok(is_of_the_agent && shown.verdict.is_some_and(|verdict| verdict.holds))
    })
    .await?;
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caps_are_those_of_the_secret_and_no_tool_changes_them() -> Result<()> {
    let Some(agent) = Agent::find()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let planets = json!({
        "service": demo.planets.api.id.to_string(), "method": "GET", "path": "/planets", "params": { "limit": 1 },
        "max_price": "1",
    });
    let mut without_price = planets.clone();
    without_price.as_object_mut().context("an object")?.remove("max_price");
    let said = agent
        .of_secret(&demo.consumer, SECRET)
        .does(&[
            step("call_service", planets.clone()),
            step("call_service", without_price),
            step("call_service", json!({ "secret": "default" })),
            step("limit_spending", json!({ "per_call": "100" })),
        ])
        .await?;
    let above = said.error(0)?;
    assert_eq!((&above["code"], &above["charged"]), (&json!("over-limit"), &json!(false)));
    for wrong in [1, 2] {
        assert_eq!(said.error(wrong)?["code"], "invalid-arguments");
    }
    assert!(said.refused(3).contains("no tool of this name"), "{}", said.refused(3));

    let said = agent.of_secret(&demo.consumer, "revoked").does(&[step("call_service", planets)]).await?;
    let none = said.error(0)?;
    assert!(none["message"].as_str().is_some_and(|words| words.contains("no secret")), "{none}");
    assert_eq!(demo.consumer.status().await?.spent_today.0, Usdc::ZERO);
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_cut_and_read_on_for_free() -> Result<()> {
    let Some(agent) = Agent::find()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let read = |offset: &str| step("read_answer", json!({ "call_id": "{{1.call_id}}", "offset": offset }));
    let said = agent
        .of_secret(&demo.consumer, SECRET)
        .does(&[
            step("search_catalog", json!({ "query": "earthquakes" })),
            step("call_service", earthquakes("500", "0.002")),
            read("{{1.next_offset}}"),
            step("read_answer", json!({ "call_id": "of another", "offset": 0 })),
        ])
        .await?;
    let (first, second) = (said.data(1)?, said.data(2)?);
    let text = |part: &Value| part["body"].as_str().map(str::to_owned).context("no text");
    let (beginning, more) = (text(first)?, text(second)?);
    assert!(beginning.len() <= 64 * 1024 && beginning.starts_with('{') && !more.is_empty());
    assert_eq!(first["body_bytes"], second["body_bytes"]);
    assert_eq!(said.error(3)?["code"], "answer-not-kept");
    assert_eq!(
        demo.consumer.status().await?.spent_today.0.to_string(),
        "0.002",
        "only the call cost something"
    );
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_the_agent_is_told_to_start_it_and_nothing_but_the_protocol_is_written() -> Result<()>
{
    let folder = TempDir::new()?;
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } },
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "search_catalog", "arguments": { "query": "earthquakes" } },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let mut server = Command::new(program("farthing")?);
    let said = format!("{initialize}\n{initialized}\n{call}\n");
    // The end of its input is the end of the conversation, once what was asked is answered.
    let output = fed(server.args(["mcp", "--data"]).arg(folder.path()), said.as_bytes()).await?;
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()?;
    ensure!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{text}");
    let version = |line: &&Value| line["id"] == 1;
    let started = lines.iter().find(version).context("no answer to initialize")?;
    assert_eq!(started["result"]["protocolVersion"], "2025-06-18", "an older version is spoken");
    let answer = lines.iter().find(|line| line["id"] == 2).context("no answer to the call")?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "node-unreachable");
    assert!(error["next"].as_str().is_some_and(|next| next.contains("farthing run")), "{error}");
    Ok(())
}
