//! Generated client code buys from an x402 server as from any service, within its price limit.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use farthing_bridge::read;
use farthing_control::types::HistoryState;
use farthing_sdk::{Language, Options, generate};
use farthing_tests::{command::farthing, world::PRICE};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    buyer::Buyer,
    official::{folder, has_python},
    server::{Manner, Server},
    shop::Shop,
};

/// What the server sells, described by its user.
const DESCRIPTION: &str = r#"{
  "openapi": "3.1.0", "info": {"title": "Data", "version": "1"},
  "paths": {"/v1/data": {"get": {"operationId": "getData", "responses": {"200": {"description": "ok",
    "content": {"application/json": {"schema": {"type": "object", "required": ["sold"],
      "properties": {"sold": {"type": "boolean"}}}}}}}}}}
}"#;

/// Two calls above what they may cost, and one that is sent twice.
const PROGRAM: &str = r#"
import client_code as code

for most in (None, "0.001"):
    try:
        code.Client(max_price=most).get_data()
        print("bought")
    except code.NodeError as error:
        print(error.code, error.charged)
client = code.Client(max_price="0.01")
once = code.CallOptions(call_id="order-7")
answer = client.get_data(options=once)
print(answer.value.sold, answer.charged, answer.receipt)
print(client.get_data(options=once).value.sold)
"#;

const SAID: &str = "price-above-cap False\nprice-above-cap False\nTrue 0.002 None\nTrue\n";

/// A call of which nobody says yet whether it was paid.
const UNDECIDED_PROGRAM: &str = r#"
import client_code as code

client = code.Client(max_price="0.01")
answer = client.get_data()
print(answer.value.sold, answer.charged, answer.headers["x-farthing-charged"])
"#;

/// A call above what it may cost, and one that is sent twice.
const OPEN_PROGRAM: &str = r#"
import client_code as code

try:
    code.Client(max_price="0.001").call("GET", "/v1/data", {"limit": 1})
except code.NodeError as error:
    print(error.code, error.charged)
client = code.Client(max_price="0.01")
once = code.CallOptions(call_id="order-7")
for _ in range(2):
    answer = client.call("GET", "/v1/data", {"limit": 1}, options=once)
    print(answer.value["sold"])
"#;

const OPEN_SAID: &str = "price-above-cap False\nTrue\nTrue\n";

#[tokio::test(flavor = "multi_thread")]
async fn generated_client_code_pays_an_x402_server_once_and_within_its_price_limit() -> Result<()> {
    if !has_python()? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;

    let here = described(&buyer)?;
    let (said, errors) = ran(&buyer, here.path(), PROGRAM).await?;
    ensure!(said == SAID, "{said}\n{errors}");
    assert_eq!(server.payments().len(), 1, "the call is paid once");
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_client_code_says_that_it_is_not_known_yet_what_was_charged() -> Result<()> {
    if !has_python()? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;
    server.behave(Manner::Quiet);
    let here = described(&buyer)?;
    let (said, errors) = ran(&buyer, here.path(), UNDECIDED_PROGRAM).await?;
    ensure!(said == "True None undecided\n", "{said}\n{errors}");
    buyer.until_it_ends(HistoryState::Charged).await?;
    buyer.check(&shop, PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_of_a_server_that_describes_nothing_buys_any_path_within_its_price_limit() -> Result<()> {
    if !has_python()? {
        return Ok(());
    }
    let shop = Shop::open().await?;
    let server = Server::start(&shop).await?;
    let buyer = Buyer::start(&shop, &server.url).await?;
    let (id, here) = (buyer.server.to_string(), tempfile::tempdir()?);
    for language in Language::all() {
        let output = here.path().join(language.name()).display().to_string();
        let generate = ["sdk", "generate", &id, "-l", language.name(), "-o", &output, "--single-file"];
        farthing(&buyer.node, &generate).await?.ok()?;
    }
    let mut files = std::fs::read_dir(here.path().join("python"))?;
    let code = files.find_map(|file| {
        let path = file.ok()?.path();
        path.extension().is_some_and(|end| end == "py").then_some(path)
    });
    std::fs::copy(code.context("no code")?, here.path().join("client_code.py"))?;
    let (said, errors) = ran(&buyer, here.path(), OPEN_PROGRAM).await?;
    ensure!(said == OPEN_SAID, "{said}\n{errors}");
    assert_eq!(server.payments().len(), 1, "the call is paid once");
    buyer.check(&shop, PRICE).await
}

/// The client code of the server's description, in a folder.
fn described(buyer: &Buyer) -> Result<TempDir> {
    let description = read(DESCRIPTION.as_bytes()).map_err(|error| anyhow!("{error:?}"))?.description;
    let options = Options { service_id: buyer.server.to_string(), single_file: true, ..Options::default() };
    let files = generate(&description, Language::Python, &options)?.files;
    let code = files.iter().find(|file| file.path.ends_with(".py")).context("no code")?;
    let here = tempfile::tempdir()?;
    std::fs::write(here.path().join("client_code.py"), &code.text)?;
    Ok(here)
}

/// Runs a program beside the client code; returns what it said, and its errors.
async fn ran(buyer: &Buyer, here: &Path, script: &str) -> Result<(String, String)> {
    let mut program = Command::new(folder().join(".venv/bin/python"));
    program
        .args(["-c", script])
        .current_dir(here)
        .env("FARTHING_URL", buyer.node.status().await?.gateway_url)
        .env("CONSUMER_SECRET", buyer.node.secret().await?)
        .env("FARTHING_CA_FILE", buyer.node.ca_file())
        .kill_on_drop(true);
    let ran = program.output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&ran.stdout), text(&ran.stderr)))
}
