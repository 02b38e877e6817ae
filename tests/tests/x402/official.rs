//! The official clients buy with their default settings (`tests/x402/client.mjs`).

use std::{env, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_tests::tell::tell;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::shop::Shop;

/// Whether they are installed. Where they are not, a loud word says so.
fn are_there() -> Result<bool> {
    let part = Path::new(env!("CARGO_MANIFEST_DIR")).join("x402/node_modules/x402-fetch/package.json");
    if part.exists() {
        return Ok(true);
    }
    let missing = format!("{} is missing: run `make x402-deps`", part.display());
    ensure!(env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a test with official x402 clients, because {missing}\n"));
    Ok(false)
}

/// What a client of a version says of its call; one with a body has an effect.
async fn buy(shop: &Shop, version: &str, path: &str, body: Option<&str>) -> Result<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("x402/client.mjs");
    let (url, key) = (shop.url(path)?, format!("0x{}", hex::encode(shop.payer.to_bytes())));
    let mut command = Command::new("node");
    command.arg(script).args([version, url.as_str(), key.as_str()]).args(body).kill_on_drop(true);
    let output = command.output().await.context("node")?;
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .with_context(|| format!("{said}\n{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_clients_of_both_versions_buy_with_their_default_settings() -> Result<()> {
    if !are_there()? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    let mut calls = 0;
    for (version, network) in [("2", "eip155:84532"), ("1", "base-sepolia")] {
        for (path, body) in [("/ok?a=b", None), ("/echo", Some("{\"quake\":7}"))] {
            let said = buy(&shop, version, path, body).await?;
            calls += 1;
            assert_eq!(said["status"], 200, "{said}");
            let expected = body.map_or_else(|| format!("{{\"n\":{calls}}}"), str::to_owned);
            assert_eq!(said["body"], json!(expected), "{said}");
            let payment = &said["payment"];
            assert_eq!((&payment["success"], &payment["network"]), (&json!(true), &json!(network)), "{said}");
            assert_eq!(payment["payer"], shop.payer.address().to_string(), "{said}");
        }
    }
    assert_eq!((shop.upstream.hits(), shop.transactions().await?), (calls, calls));
    shop.check(calls).await
}
