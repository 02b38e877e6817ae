//! Services that the user pinned to a secret: each operation is a tool, which buys within the limits of the secret.

use anyhow::{Context, Result, ensure};
use farthing_testnet::program;
use farthing_tests::{agreement, command::fed};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    SECRET,
    confirmed::{asks_over_http, confirming},
    start,
};

/// Without a search, a description or a UUID.
const OPERATION: &str = "GET /v1/earthquakes/recent";

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_of_a_pinned_service_is_a_tool_that_buys_for_this_secret_alone() -> Result<()> {
    let folder = TempDir::new()?;
    let demo = start(&folder).await?;
    let run = async |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(program("farthing")?);
        command.arg("secret").args(arguments).arg("--data").arg(demo.consumer.data_dir());
        let output = fed(&mut command, b"").await?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    run(&["pin", SECRET, "Earthquakes"]).await?;
    let secret = run(&["show", SECRET]).await?;
    let other = confirming(&demo, "other").await?;
    let tools = async |secret: &str| -> Result<Vec<Value>> {
        let listed = asks_over_http(&demo.consumer, secret, "tools/list", json!({})).await?;
        listed["tools"].as_array().cloned().context("no tools")
    };
    let pinned = tools(secret.trim()).await?;
    assert!((7..=36).contains(&pinned.len()), "{pinned:?}");
    assert_eq!(tools(&other).await?.len(), 6, "another secret has no tool for it");
    let is_it = |tool: &&Value| tool["description"].as_str().is_some_and(|words| words.contains(OPERATION));
    let tool = pinned.iter().find(is_it).context("no tool for the operation")?;
    let name = tool["name"].as_str().context("no name")?;
    assert_eq!(tool["annotations"]["readOnlyHint"], false, "{tool}");
    let params = &tool["inputSchema"]["properties"]["params"]["properties"];
    ensure!(params.get("limit").is_some() && !tool.to_string().contains("$ref"), "{tool}");
    let call = async |secret: &str, max_price: &str| {
        let arguments = json!({ "params": { "format": "geojson", "limit": 5 }, "max_price": max_price });
        asks_over_http(&demo.consumer, secret, "tools/call", json!({ "name": name, "arguments": arguments }))
            .await
    };
    let dear = call(secret.trim(), "0.001").await?;
    assert_eq!(dear["structuredContent"]["error"]["code"], "price-above-cap", "{dear}");
    let bought = call(secret.trim(), "0.002").await?;
    let bought = &bought["structuredContent"];
    assert_eq!((&bought["status"], &bought["charged"]), (&json!(200), &json!("0.002")), "{bought}");
    assert!(call(&other, "0.002").await?.is_null(), "there is no tool of this name");
    run(&["unpin", SECRET]).await?;
    assert_eq!(tools(secret.trim()).await?.len(), 6);
    agreement::end(demo).await
}
