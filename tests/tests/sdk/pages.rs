//! Every language walks through pages of a service that is sold: what it hears, and what it pays.

use std::fs;

use anyhow::{Context, Result, ensure};
use farthing_bridge::read;
use farthing_protocol::Usdc;
use farthing_sdk::{Language, Options, generate};
use farthing_testnet::demo::{Demo, Setup};
use farthing_tests::{command::farthing, wait::eventually};
use tokio::task::JoinSet;

use super::{languages::Toolchain, shelf};

/// Writes the client of the shelf, compiles and runs the language's program with it.
async fn walk(toolchain: Toolchain, id: String, variables: Vec<(&'static str, String)>) -> Result<()> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let shelf = read(shelf::document().to_string().as_bytes());
    let shelf = shelf.map_err(|error| anyhow::anyhow!("{error:?}"))?.description;
    let options = Options { service_id: id, package: Some("shelf".to_owned()), ..Options::default() };
    let folder = tempfile::tempdir()?;
    for file in generate(&shelf, language, &options)?.files {
        let path = folder.path().join("shelf").join(file.path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, file.text)?;
    }
    let out = toolchain.run_one(folder.path(), ("shelf", "pages"), &variables).await?;
    if toolchain.is_parsed_only {
        return Ok(());
    }
    let said: Vec<&str> = out.lines().map(str::trim_end).collect();
    ensure!(said == shelf::EXPECTED, "it says:\n{out}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_language_pays_each_page_it_walks_through_and_none_that_is_refused() -> Result<()> {
    let toolchains = Toolchain::all_here()?;
    let folder = tempfile::tempdir()?;
    let demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let id = shelf::publish(&demo).await?.id.to_string();
    eventually("the consumer knows the shelf", async || {
        Ok(farthing(&demo.consumer, &["catalog", "show", &id]).await?.code == 0)
    })
    .await?;
    let spent_before = demo.consumer.status().await?.spent_today.0;
    let variables = vec![
        ("FARTHING_URL", demo.gateway_url.clone()),
        ("CONSUMER_SECRET", demo.secret.clone()),
        ("FARTHING_CA_FILE", demo.consumer.ca_file().display().to_string()),
    ];
    let mut running = JoinSet::new();
    for toolchain in toolchains.clone() {
        let (id, variables) = (id.clone(), variables.clone());
        running
            .spawn(async move { walk(toolchain, id, variables).await.with_context(|| toolchain.language) });
    }
    let mut problems = Vec::new();
    while let Some(ended) = running.join_next().await {
        problems.extend(ended?.err().map(|problem| format!("{problem:#}")));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    let run = toolchains.iter().filter(|toolchain| !toolchain.is_parsed_only).count();
    let due = Usdc::from_micros(shelf::PRICE.micros() * shelf::PAGES * u64::try_from(run)?);
    let spent =
        demo.consumer.status().await?.spent_today.0.checked_sub(spent_before).context("less than before")?;
    ensure!(spent == due, "{run} languages spent {spent} USDC, and not {due}");
    farthing_tests::agreement::end(demo).await
}
