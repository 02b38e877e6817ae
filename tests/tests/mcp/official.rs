//! The official clients of protocol version 2026-07-28, on npm and for Python. Each buys at both doors within its caps, with
//! an approval in the console and with its user's consent, and nothing else.

use anyhow::{Context, Result};
use farthing_testnet::demo::Demo;
use farthing_tests::agreement;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    SECRET,
    agent::{Agent, Client, Instructed},
    confirmed::{buys_once_at_both_doors, confirming},
    earthquakes, start, step,
};

const VERSION: &str = "2026-07-28";

/// A call that costs more than the secret may pay for one.
fn planets(demo: &Demo) -> Value {
    json!({
        "service": demo.planets.api.id.to_string(), "method": "GET", "path": "/planets", "params": { "limit": 1 },
        "max_price": "1",
    })
}

/// Checks that the user decides, and is asked once for each call.
async fn asks_its_user(agent: Instructed<'_>) -> Result<()> {
    let steps = [
        step("search_catalog", json!({ "query": "recent earthq" })),
        step("call_service", earthquakes("5", "0.002")),
    ];
    let declined = agent.whose_user_says("decline").does(&steps).await?;
    let error = declined.error(1)?;
    assert_eq!((&error["code"], &error["charged"]), (&json!("not-confirmed"), &json!(false)), "{error}");
    assert!(error["call_id"].is_string() && error.get("confirm_token").is_none(), "{error}");
    let accepted = agent.whose_user_says("accept").does(&steps).await?;
    let bought = accepted.data(1)?;
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")));
    assert_ne!(bought["call_id"], error["call_id"], "a new call, a new question");
    for said in [declined, accepted] {
        let [question] = &said.questions[..] else { panic!("{:?}", said.questions) };
        assert!(question.contains("0.002 USDC") && question.contains("/v1/earthquakes/recent"), "{question}");
    }
    Ok(())
}

async fn buys_within_its_caps(client: Client) -> Result<()> {
    let Some(agent) = Agent::with(client)? else { return Ok(()) };
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let node = &demo.consumer;

    let said = agent.of_secret(node, SECRET).does(&[step("call_service", planets(&demo))]).await?;
    let above = said.error(0)?;
    assert_eq!((&above["code"], &above["charged"]), (&json!("over-limit"), &json!(false)), "{above}");
    assert!(said.instructions.contains("max_price") && said.tools.len() == 6, "{:?}", said.tools);

    for version in buys_once_at_both_doors(&agent, &demo).await? {
        assert_eq!(version.context("no version")?, VERSION);
    }
    let asked = "asked";
    let secret = confirming(&demo, asked).await?;
    for door in [agent.of_secret(node, asked), agent.over_http(node, &secret)] {
        asks_its_user(door).await?;
    }
    assert_eq!(
        node.status().await?.spent_today.0.to_string(),
        "0.008",
        "two by an approval, two by the user"
    );
    agreement::end(demo).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_client_of_the_newest_version_buys_within_its_caps_at_both_doors() -> Result<()> {
    buys_within_its_caps(Client::Npm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_buys_within_its_caps_at_both_doors() -> Result<()> {
    buys_within_its_caps(Client::Python).await
}
