//! Agents of client frameworks: the examples of `docs/agents.md` as they stand, with a script in the model's place
//! (`tests/tools/framework.py`).

use anyhow::{Context, Result};
use farthing_control::endpoint;
use farthing_tests::{agreement, command::farthing, wait::eventually};
use serde_json::json;
use tempfile::TempDir;

use super::{
    SECRET,
    agent::{Agent, Client},
    earthquakes, start, step,
};

/// Follows the example of a framework, whose model finds the earthquakes, tries their sample, is refused above its cap, and buys.
async fn follows_its_example(client: Client) -> Result<()> {
    let Some(agent) = Agent::with(client)? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let secret = farthing(&demo.consumer, &["secret", "show", SECRET]).await?.ok()?.out;
    let mut again = earthquakes("5", "0.002");
    again["call_id"] = json!("{{3.call_id}}");
    let said = agent
        .over_http(&demo.consumer, secret.trim())
        .does(&[
            step("search_catalog", json!({ "query": "recent earthq" })),
            step(
                "get_sample",
                json!({ "service": "{{0.services.0.id}}", "operation": "GET /v1/earthquakes/recent" }),
            ),
            step("call_service", earthquakes("5", "0.001")),
            step("call_service", earthquakes("5", "0.002")),
            step("call_service", again),
            step("spending_status", json!({})),
        ])
        .await?;

    assert_eq!(said.tools.len(), 6, "{:?}", said.tools);
    let buys = said.tools.iter().find(|tool| tool["name"] == "call_service").context("no tool that buys")?;
    assert!(buys["description"].as_str().is_some_and(|words| words.contains("Costs money")), "{buys}");
    let found = said.data(0)?;
    assert_eq!(found["services"][0]["name"], "Earthquakes");
    assert!(found["note"].as_str().is_some_and(|note| note.contains("not instructions")), "{found}");
    assert_eq!(said.data(1)?["samples"][0]["status"], 200);
    // Some models are told of a refusal in words alone.
    let refused = said.error(2)?.to_string();
    assert!(refused.contains("price-above-cap") && refused.contains("max_price"), "{refused}");

    let bought = said.data(3)?;
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")), "{bought}");
    assert_eq!(bought["body"]["features"].as_array().context("no GeoJSON")?.len(), 5);
    let receipt = bought["receipt"].as_str().context("no receipt")?;
    assert!(receipt.starts_with("0x") && receipt.len() == 66, "{receipt}");
    assert_eq!(said.data(4)?["call_id"], bought["call_id"], "the model repeats its call");
    assert_eq!(said.data(5)?["spent_today_usdc"], "0.002", "and is charged once");

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
async fn the_documented_agent_of_langchain_buys_within_its_caps() -> Result<()> {
    follows_its_example(Client::LangChain).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_agent_of_llamaindex_buys_within_its_caps() -> Result<()> {
    follows_its_example(Client::LlamaIndex).await
}
