//! The chain's settings in the console: tested, stored, and in force after a restart of the node by itself.

use anyhow::{Result, ensure};
use axum::{Json, Router, routing::post};
use farthing_control::endpoint;
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::{command::farthing, upstream::serve, wait::eventually};
use serde_json::{Value, json};

use crate::support::{Node, set_up};

const CHAIN: &str = "/panel/settings/chain";

/// An endpoint of another chain.
async fn another_chain() -> Result<String> {
    let answer = async |Json(asked): Json<Value>| {
        let one = |asked: &Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": "0x1"});
        Json(match asked.as_array() {
            Some(asked) => asked.iter().map(one).collect(),
            None => one(&asked),
        })
    };
    Ok(serve(Router::new().fallback(post(answer))).await? + "/v2/very-secret-key")
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_tested_before_they_are_taken_and_hold_after_a_restart_from_the_console() -> Result<()>
{
    let chain = LocalChain::start().await?;
    let folder = tempfile::tempdir()?;
    let data_dir = folder.path().join("node");
    std::fs::create_dir(&data_dir)?;
    let settings = format!(
        "[chain]\npreset = \"local\"\nrpc_urls = [\"http://127.0.0.1:9\"]\nchain_id = 31337\ntoken = \"{}\"\n\
         poll_interval_ms = 100\n",
        chain.token
    );
    std::fs::write(data_dir.join("farthing.toml"), &settings)?;
    let process = NodeProcess::start_on(Vec::new(), NodeOptions::new(&data_dir)).await?;
    let mut browser = set_up(&process).await?;
    let page = browser.get(CHAIN).await?;
    ensure!(page.body.contains("127.0.0.1:9") && !page.body.contains("Restart the node now"), "{page:?}");

    let other = another_chain().await?;
    for (urls, confirmations, wrong) in [
        ("http://127.0.0.1:9", "", "cannot be reached"),
        (other.as_str(), "", "serves chain 1, not chain 31337"),
        ("ftp://127.0.0.1", "", "chain.rpc_urls"),
        ("", "0", "chain.confirmations"),
        ("", "many", "whole number"),
    ] {
        let page = browser.post(CHAIN, &[("rpc_urls", urls), ("confirmations", confirmations)]).await?;
        ensure!(page.status == 422 && page.body.contains(wrong), "{urls}: {page:?}");
        ensure!(!page.body.contains("very-secret-key"), "{page:?}");
    }
    let typed = farthing(&process, &["chain", "set", "--confirmations", "0"]).await?;
    typed.fails(2, &["chain.confirmations", "Nothing was changed."])?;
    ensure!(!data_dir.join("settings.toml").exists(), "nothing was stored");

    let url = chain.rpc_url();
    let page = browser.post(CHAIN, &[("rpc_urls", &url), ("confirmations", "2")]).await?;
    ensure!(page.status == 200 && page.body.contains("Restart the node now"), "{page:?}");
    ensure!(page.body.contains("block") && page.body.contains("settings.toml"), "{page:?}");
    let before = process.pid();
    let page = browser.post("/panel/settings/restart", &[]).await?;
    ensure!(page.status == 200 && page.body.contains("The node restarts"), "{page:?}");
    eventually("the node runs with the new settings", async || {
        let settings = process.control().ask(endpoint::ChainSettings).await;
        Ok(settings.is_ok_and(|settings| settings.in_force && settings.confirmations == 2))
    })
    .await?;
    // A chain that rests has no second block above the contracts otherwise.
    chain.fund(process.status().await?.address.0, "1".parse()?).await?;
    ensure!(process.pid() == before, "whoever watches the process notices nothing");
    process.wait_until_ready().await?;
    ensure!(
        std::fs::read_to_string(data_dir.join("farthing.toml"))? == settings,
        "the user's own file is left alone"
    );
    let console = process.control().ask(endpoint::ShowConsole).await?;
    browser.moved_to(&console.url);
    let page = browser.get("/panel/settings/configuration").await?;
    ensure!(page.status == 200 && page.body.contains("settings.toml"), "{page:?}");

    let back = farthing(&process, &["chain", "set", "--reset", "--json"]).await?;
    let back = back.ends_with(0)?.json()?;
    ensure!(
        back["settings"]["in_force"] == false && back["settings"]["endpoints"][0] == "127.0.0.1:9",
        "{back}"
    );
    farthing(&process, &["restart"]).await?.ends_with(0)?;
    eventually("the node runs with the configuration's settings", async || {
        let settings = process.control().ask(endpoint::ChainSettings).await;
        Ok(settings.is_ok_and(|settings| settings.in_force && settings.endpoints == ["127.0.0.1:9"]))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_environment_says_of_the_chain_is_changed_there() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let page = browser.get(CHAIN).await?;
    ensure!(page.body.contains("FARTHING_CHAIN__RPC_URLS") && page.body.contains("disabled"), "{page:?}");
    let page = browser.post(CHAIN, &[("rpc_urls", "http://127.0.0.1:9")]).await?;
    ensure!(page.status == 422 && page.body.contains("which overrides what you set here"), "{page:?}");
    Ok(())
}
