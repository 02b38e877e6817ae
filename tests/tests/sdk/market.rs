//! A market in which programs of every language buy, and code written where they find it.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_bridge::{description::ApiDescription, read};
use farthing_sdk::Sdk;
use farthing_testnet::{
    NodeProcess,
    demo::{Demo, Setup},
};
use farthing_tests::{command::farthing, wait::eventually};
use farthing_values::Usdc;
use tokio::task::JoinSet;

use super::languages::Toolchain;

/// The environment of a program.
pub type Variables = Vec<(&'static str, String)>;

/// The demo on ports of its own.
pub async fn open(folder: &Path) -> Result<Demo> {
    Demo::start(folder, Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await
}

/// The variables that every program needs to buy.
pub fn variables(demo: &Demo) -> Variables {
    vec![
        ("FARTHING_URL", demo.gateway_url.clone()),
        ("CONSUMER_SECRET", demo.secret.clone()),
        ("FARTHING_CA_FILE", demo.consumer.ca_file().display().to_string()),
    ]
}

pub async fn until_known(node: &NodeProcess, service: &str) -> Result<()> {
    eventually("the consumer knows the service", async || {
        Ok(farthing(node, &["catalog", "show", service]).await?.code == 0)
    })
    .await
}

pub fn described(text: &[u8]) -> Result<ApiDescription> {
    Ok(read(text).map_err(|error| anyhow::anyhow!("{error:?}"))?.description)
}

pub fn write(sdk: &Sdk, folder: &Path) -> Result<()> {
    for file in &sdk.files {
        let path = folder.join(&file.path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, &file.text)?;
    }
    Ok(())
}

/// Has programs of every language that is here buy side by side. Each says what it has to pay, and that is what is spent.
pub async fn in_every_language<F>(demo: &Demo, program: impl Fn(Toolchain) -> F) -> Result<()>
where
    F: Future<Output = Result<Usdc>> + Send + 'static,
{
    let spent_before = demo.consumer.status().await?.spent_today.0;
    let mut running = JoinSet::new();
    for toolchain in Toolchain::all_here()? {
        let program = program(toolchain);
        running.spawn(async move { program.await.with_context(|| toolchain.language) });
    }
    let (mut due, mut problems) = (Usdc::ZERO, Vec::new());
    while let Some(ended) = running.join_next().await {
        match ended? {
            Ok(paid) => due = due.saturating_add(paid),
            Err(problem) => problems.push(format!("{problem:#}")),
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    let spent =
        demo.consumer.status().await?.spent_today.0.checked_sub(spent_before).context("less than before")?;
    ensure!(spent == due, "the languages spent {spent} USDC, and not {due}");
    Ok(())
}
