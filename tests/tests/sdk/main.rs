//! Client code in every language: generated from what the network publishes, compiled strictly, and run against paid
//! calls of two services.

mod document;
mod dropping;
mod hostile;
mod languages;
mod leaving;
mod offers;
mod pages;
mod program;
mod sandbox;
mod shelf;
mod things;
mod traps;
mod twins;
mod uploads;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use farthing_sdk::Language;
use farthing_testnet::demo::{Demo, Setup};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    dropping::Dropping,
    languages::Toolchain,
    leaving::Leaving,
    offers::{Offers, spent_by},
    traps::Traps,
};

/// So many languages are under way: the one that takes longest begins first.
const AT_A_TIME: usize = 2;

/// Generates, compiles and runs one language.
async fn try_out(
    toolchain: Toolchain,
    demo: Arc<Demo>,
    offers: Arc<Offers>,
    mut variables: Vec<(&'static str, String)>,
) -> Result<()> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let folder = tempfile::tempdir()?;
    offers.write(&demo, language, folder.path()).await?;
    let mut dropping = Vec::new();
    for name in ["DROPPING_URL", "DROPPING_PLANETS_URL", "DROPPING_THINGS_URL"] {
        let one = Dropping::start(&demo.gateway_url).await?;
        variables.push((name, one.url.clone()));
        dropping.push(one);
    }
    let leaving = Leaving::start().await?;
    variables.push(("LEAVING_URLS", leaving.urls.clone()));
    let out = toolchain.run(folder.path(), &variables).await?;
    if toolchain.is_parsed_only {
        return Ok(());
    }
    offers.check(language, &out)?;
    // Of things nothing is sent again: the client was told not to.
    let is_repeated = |index: usize| dropping[index].connections() > 1;
    ensure!(is_repeated(0) && is_repeated(1) && !is_repeated(2), "what was cut was not sent again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_of_every_language_buys_is_refused_free_and_pays_a_repeated_call_once() -> Result<()> {
    let toolchains = Toolchain::all_here()?;
    let folder = tempfile::tempdir()?;
    let demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let (demo, offers) = {
        let offers = Offers::of(&demo).await?;
        (Arc::new(demo), Arc::new(offers))
    };
    let spent_before = demo.consumer.status().await?.spent_today.0;
    let stranger = farthing_serve::tls::own(&folder.path().join("stranger"), &[])?;
    let stranger = stranger.ca_file.context("an authority of its own")?;
    let traps = Traps::set(folder.path()).await?;
    let mut variables = vec![
        ("FARTHING_URL", demo.gateway_url.clone()),
        ("CONSUMER_SECRET", demo.secret.clone()),
        ("FARTHING_CA_FILE", demo.consumer.ca_file().display().to_string()),
        ("WRONG_CA_FILE", stranger.display().to_string()),
    ];
    variables.extend(traps.variables());
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    let mut running = JoinSet::new();
    for toolchain in toolchains.clone() {
        let (slots, demo, offers) = (Arc::clone(&slots), Arc::clone(&demo), Arc::clone(&offers));
        let variables = variables.clone();
        running.spawn(async move {
            let _slot = slots.acquire().await?;
            try_out(toolchain, demo, offers, variables).await.with_context(|| toolchain.language)
        });
    }
    let mut problems = Vec::new();
    while let Some(ended) = running.join_next().await {
        problems.extend(ended?.err().map(|problem| format!("{problem:#}")));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    ensure!(traps.caught() == 0, "{} calls went to a proxy", traps.caught());
    let run = toolchains.iter().filter(|toolchain| !toolchain.is_parsed_only);
    let run: Vec<Language> = run.filter_map(|toolchain| Language::parse(toolchain.language)).collect();
    let due: u64 = run.iter().map(|language| spent_by(*language).micros()).sum();
    let spent =
        demo.consumer.status().await?.spent_today.0.checked_sub(spent_before).context("less than before")?;
    ensure!(spent.micros() == due, "{run:?} spent {spent} USDC, and not {due} micros");
    let demo = Arc::into_inner(demo).context("somebody still uses the demo")?;
    farthing_tests::agreement::end(demo).await
}
