//! Client code in every language: generated from what the network publishes, compiled strictly, and run against paid
//! calls of two services.

mod document;
mod dropping;
mod hostile;
mod languages;
mod leaving;
mod market;
mod offers;
mod pages;
mod program;
#[path = "../../../protocol/tests/support/random.rs"]
mod random;
mod sandbox;
mod shelf;
#[path = "../../../bridge/sdk/src/tests/texts.rs"]
mod texts;
mod things;
mod traps;
mod twins;
mod uploads;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use farthing_sdk::Language;
use farthing_testnet::demo::Demo;
use farthing_values::Usdc;
use tokio::sync::Semaphore;

use self::{
    dropping::Dropping,
    languages::Toolchain,
    leaving::Leaving,
    market::{Variables, in_every_language},
    offers::{Offers, spent_by},
    traps::Traps,
};

/// So many languages are under way: the one that takes longest begins first.
const AT_A_TIME: usize = 2;

/// Generates, compiles and runs one language; what that costs.
async fn try_out(
    toolchain: Toolchain,
    demo: Arc<Demo>,
    offers: Arc<Offers>,
    mut variables: Variables,
) -> Result<Usdc> {
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
        return Ok(Usdc::ZERO);
    }
    offers.check(language, &out)?;
    // Of things nothing is sent again: the client was told not to.
    let is_repeated = |index: usize| dropping[index].connections() > 1;
    ensure!(is_repeated(0) && is_repeated(1) && !is_repeated(2), "what was cut was not sent again");
    Ok(spent_by(language))
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_of_every_language_buys_is_refused_free_and_pays_a_repeated_call_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let demo = market::open(folder.path()).await?;
    let (demo, offers) = {
        let offers = Offers::of(&demo).await?;
        (Arc::new(demo), Arc::new(offers))
    };
    let stranger = farthing_serve::tls::own(&folder.path().join("stranger"), &[])?;
    let stranger = stranger.ca_file.context("an authority of its own")?;
    let traps = Traps::set(folder.path()).await?;
    let mut variables = market::variables(&demo);
    variables.push(("WRONG_CA_FILE", stranger.display().to_string()));
    variables.extend(traps.variables());
    let slots = Arc::new(Semaphore::new(AT_A_TIME));
    in_every_language(&demo, |toolchain| {
        let (slots, demo, offers) = (Arc::clone(&slots), Arc::clone(&demo), Arc::clone(&offers));
        let variables = variables.clone();
        async move {
            let _slot = slots.acquire().await?;
            try_out(toolchain, demo, offers, variables).await
        }
    })
    .await?;
    ensure!(traps.caught() == 0, "{} calls went to a proxy", traps.caught());
    let demo = Arc::into_inner(demo).context("somebody still uses the demo")?;
    farthing_tests::agreement::end(demo).await
}
