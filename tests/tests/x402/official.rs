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

/// Contracts for other ways to pay. The facilitator of the server for axum starts only on a chain that has code there.
const WANTED_CODE: [&str; 3] = [
    "0xdAcD51A54883eb67D95FAEb2BBfdC4a9a6BD2a3B",
    "0x000000000022D473030F116dDEE9F6B43aC78BA3",
    "0x402085c248EeA27D92E8b30b2C58ed07f9E20001",
];

/// The folder of the official packages.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("x402")
}

/// Whether a program or a package is there. Where it is not, a loud word says so.
fn is_there(part: &Path) -> Result<bool> {
    if part.exists() {
        return Ok(true);
    }
    let missing = format!("{} is missing: run `make x402-deps`", part.display());
    ensure!(env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a test with official x402 packages, because {missing}\n"));
    Ok(false)
}

/// Whether an npm package is installed.
fn has_package(name: &str) -> Result<bool> {
    is_there(&folder().join("node_modules").join(name).join("package.json"))
}

/// Whether the Python packages are installed.
pub fn has_python() -> Result<bool> {
    is_there(&folder().join(".venv/.installed"))
}

fn javascript(package: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(folder().join("client.mjs")).arg(package);
    command
}

fn python(library: &str) -> Command {
    let mut command = Command::new(folder().join(".venv/bin/python"));
    command.arg(folder().join("client.py")).arg(library);
    command
}

/// A program of `tests/x402/rust`, which `make x402-deps` builds in a folder of the target folder that this test is in.
fn rust(name: &str) -> Result<PathBuf> {
    let own = env::current_exe()?;
    let target = own.ancestors().nth(3).context("the test is in no target folder")?;
    Ok(target.join("x402/debug").join(name).with_extension(env::consts::EXE_EXTENSION))
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
    if !has_package("x402-fetch")? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    buy_both(&shop, || javascript("@x402/fetch"), "eip155:84532").await?;
    buy_both(&shop, || javascript("x402-fetch"), "base-sepolia").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_clients_for_axios_of_both_versions_buy_with_their_default_settings() -> Result<()> {
    if !has_package("x402-axios")? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    buy_both(&shop, || javascript("@x402/axios"), "eip155:84532").await?;
    buy_both(&shop, || javascript("x402-axios"), "base-sepolia").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_python_clients_buy_with_their_default_settings() -> Result<()> {
    if !has_python()? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    buy_both(&shop, || python("httpx"), "eip155:84532").await?;
    buy_both(&shop, || python("requests"), "eip155:84532").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_rust_client_buys_with_its_default_settings() -> Result<()> {
    let client = rust("client")?;
    if !is_there(&client)? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    let of = |version: &str| {
        let mut command = Command::new(&client);
        command.arg(version);
        command
    };
    buy_both(&shop, || of("2"), "eip155:84532").await?;
    buy_both(&shop, || of("1"), "base-sepolia").await
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

/// Buys two calls from an official server, and checks what was paid.
async fn buy_from(shop: &Shop, server: Command) -> Result<()> {
    let (_server, url) = open_server(shop, server).await?;
    let buyer = Buyer::start(shop, &url).await?;
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
        buyer.check(shop, paid).await?;
    }
    // Whether or not it has kept its answer, no payment is taken twice.
    let again = buyer.call("/ok", "call 1", Some(ENOUGH)).await?;
    ensure!(again.status.is_success() || again.problem() == "answer-no-longer-kept", "{again:?}");
    buyer.check(shop, Usdc::from_micros(2 * PRICE.micros())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_buys_from_the_official_server_for_express_with_its_default_settings() -> Result<()> {
    if !has_package("@x402/express")? {
        return Ok(());
    }
    let mut server = Command::new("node");
    server.arg(folder().join("server.mjs"));
    buy_from(&Shop::open().await?, server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_buys_from_the_official_server_for_fastapi_with_its_default_settings() -> Result<()> {
    if !has_python()? {
        return Ok(());
    }
    let mut server = Command::new(folder().join(".venv/bin/python"));
    server.arg(folder().join("server.py"));
    buy_from(&Shop::open().await?, server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_buys_from_the_official_server_for_axum_with_its_default_settings() -> Result<()> {
    let server = rust("server")?;
    if !is_there(&server)? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    for address in WANTED_CODE {
        rpc::call(&shop.anvil.url(), "anvil_setCode", json!([address, "0x00"])).await?;
    }
    buy_from(&shop, Command::new(server)).await
}
