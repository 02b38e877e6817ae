//! schemathesis calls the exoplanets through two nodes, as the published document says and as it does not say.
//!
//! Right calls and wrong ones must be answered as the document promises: with a declared status, media type and form,
//! and never with a failure of the server. The calls are paid, and at the end both books and the chain agree.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use farthing_control::types::Api;
use farthing_testnet::{ServiceProcess, program};
use farthing_tests::world::{FUNDS, World};
use farthing_values::Usdc;
use tokio::process::Command;

use crate::kit::{Kit, folder, run, tell};

/// Low, because thousands of calls are made.
const PRICE: &str = "0.0001";

#[tokio::test]
async fn the_exoplanets_keep_what_their_document_promises() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let world = World::start().await?;
    let exoplanets = ServiceProcess::start("exoplanets").await?;
    let api = register(world.owner.data_dir(), &exoplanets.url).await?;
    let service = format!("{}/services/{}", world.consumer.status().await?.gateway_url, api.id);
    let nowhere = tempfile::tempdir()?;
    let said = run(
        kit.python("schemathesis")
            .arg("--config-file")
            .arg(folder().join("schemathesis.toml"))
            .arg("run")
            .arg(format!("{service}/openapi.json"))
            .env("SCHEMATHESIS_HOOKS", folder().join("only_declared.py"))
            .env("FARTHING_SERVICE_URL", &service)
            .env("FARTHING_CA_FILE", world.consumer.ca_file())
            .env("CONSUMER_SECRET", &world.secret)
            .current_dir(nowhere.path()),
        b"",
    )
    .await?;
    ensure!(said.code == 0, "{}\n{}", said.out, said.err);
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged > Usdc::ZERO, "no call was served, so nothing was shown:\n{}", said.out);
    let summary = said.out.lines().find(|line| line.contains("generated")).unwrap_or_default();
    tell(&format!("schemathesis: {}, {charged} USDC were charged", summary.trim()));
    Ok(())
}

/// As an owner does it. Declined calls are charged as well: an owner's node limits what it does for nothing, and many of
/// these calls name planets that do not exist.
async fn register(owner: &Path, url: &str) -> Result<Api> {
    let mut command = Command::new(program("farthing")?);
    command
        .arg("--data")
        .arg(owner)
        .args(["--json", "api", "add", "--graphql"])
        .arg(format!("{url}/graphql"));
    command.args(["--name", "Exoplanets", "--price", PRICE, "--charge", "answered", "--writes", "--yes"]);
    let said = run(&mut command, b"").await?;
    ensure!(said.code == 0, "{}", said.err);
    serde_json::from_str(&said.out).with_context(|| said.out.clone())
}
