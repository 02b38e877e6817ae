//! The official clients buy with their default settings, and a node buys from the official servers (`tests/x402`).

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use farthing_chain::deploy::dev_account;
use farthing_control::types::HistoryState;
use farthing_testnet::rpc;
use farthing_tests::{tell::tell, world::PRICE};
use farthing_values::Usdc;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    buyer::{Buyer, ENOUGH},
    server::PAYEE,
    shop::Shop,
};

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
    tell(&format!("\n  SKIPPED: a test with official x402 packages, because {missing}\n"));
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

/// Starts an official server that sells for [`PRICE`]; returns it and its address. It ends when it is dropped.
async fn open_server(shop: &Shop, mut server: Command) -> Result<(Child, String)> {
    let key = format!("0x{}", hex::encode(dev_account(6)?.to_bytes()));
    server.args([shop.anvil.url(), key, PAYEE.to_string()]).kill_on_drop(true);
    let mut child = server.stdout(Stdio::piped()).spawn().context("the server does not start")?;
    let output = child.stdout.take().context("the server has no output")?;
    let url = BufReader::new(output).lines().next_line().await?.context("the server tells no address")?;
    Ok((child, url))
}

/// Buys a call of each kind from an official server, and checks what was paid.
async fn buy_from(server: Command) -> Result<()> {
    let shop = Shop::open().await?;
    let (_server, url) = open_server(&shop, server).await?;
    let buyer = Buyer::start(&shop, &url).await?;
    for number in 1..=2_u64 {
        let answer = buyer.call("/ok", &format!("call {number}"), Some(ENOUGH)).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
        assert_eq!(
            (answer.json(), answer.header("x-farthing-charged")),
            (json!({ "sold": number }), "0.002")
        );
        let entry = buyer.until_it_ends(HistoryState::Charged).await?;
        ensure!(entry.transaction.is_some(), "{entry:?}");
        let paid = Usdc::from_micros(PRICE.micros() * number);
        assert_eq!(rpc::usdc_of(&shop.anvil.url(), shop.token, PAYEE).await?, paid);
        buyer.check(&shop, paid).await?;
    }
    // Whether or not it has kept its answer, no payment is taken twice.
    let again = buyer.call("/ok", "call 1", Some(ENOUGH)).await?;
    ensure!(again.status.is_success() || again.problem() == "answer-no-longer-kept", "{again:?}");
    buyer.check(&shop, Usdc::from_micros(2 * PRICE.micros())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_buys_from_the_official_server_for_express_with_its_default_settings() -> Result<()> {
    if !is_there("node_modules/@x402/express/package.json")? {
        return Ok(());
    }
    let mut server = Command::new("node");
    server.arg(folder().join("server.mjs"));
    buy_from(server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_buys_from_the_official_server_for_fastapi_with_its_default_settings() -> Result<()> {
    if !is_there(".venv/.installed")? {
        return Ok(());
    }
    let mut server = Command::new(folder().join(".venv/bin/python"));
    server.arg(folder().join("server.py"));
    buy_from(server).await
}
