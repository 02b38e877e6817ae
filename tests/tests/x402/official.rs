//! The official clients buy with their default settings (`tests/x402`).

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use farthing_tests::tell::tell;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::shop::Shop;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("x402")
}

/// Whether a client is installed, of which this is a part. Where it is not, a loud word says so.
fn is_there(part: &str) -> Result<bool> {
    let part = folder().join(part);
    if part.exists() {
        return Ok(true);
    }
    let missing = format!("{} is missing: run `make x402-deps`", part.display());
    ensure!(env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a test with official x402 clients, because {missing}\n"));
    Ok(false)
}

fn javascript(version: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(folder().join("client.mjs")).arg(version);
    command
}

fn python() -> Command {
    let mut command = Command::new(folder().join(".venv/bin/python"));
    command.arg(folder().join("client.py"));
    command
}

/// What a client says of its call; one with a body has an effect.
async fn buy(shop: &Shop, mut client: Command, path: &str, body: Option<&str>) -> Result<Value> {
    let (url, key) = (shop.url(path)?, format!("0x{}", hex::encode(shop.payer.to_bytes())));
    client.args([url, key]).args(body).kill_on_drop(true);
    let output = client.output().await.context("the client does not start")?;
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .with_context(|| format!("{said}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Has a client buy a call of each kind, and checks what it was told.
async fn buy_both(shop: &Shop, client: impl Fn() -> Command, network: &str) -> Result<()> {
    for (path, body) in [("/ok?a=b", None), ("/echo", Some("{\"quake\":7}"))] {
        let calls = shop.upstream.hits() + 1;
        let said = buy(shop, client(), path, body).await?;
        assert_eq!(said["status"], 200, "{said}");
        let expected = body.map_or_else(|| format!("{{\"n\":{calls}}}"), str::to_owned);
        assert_eq!(said["body"], json!(expected), "{said}");
        let payment = &said["payment"];
        assert_eq!((&payment["success"], &payment["network"]), (&json!(true), &json!(network)), "{said}");
        assert_eq!(payment["payer"], shop.payer.address().to_string(), "{said}");
        assert_eq!((shop.upstream.hits(), shop.transactions().await?), (calls, calls));
        shop.check(calls).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_javascript_clients_of_both_versions_buy_with_their_default_settings() -> Result<()> {
    if !is_there("node_modules/x402-fetch/package.json")? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    buy_both(&shop, || javascript("2"), "eip155:84532").await?;
    buy_both(&shop, || javascript("1"), "base-sepolia").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_python_client_buys_with_its_default_settings() -> Result<()> {
    if !is_there(".venv/.installed")? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    buy_both(&shop, python, "eip155:84532").await
}
