//! Every language walks through pages of a service that is sold: what it hears, and what it pays.

use anyhow::{Context, Result, ensure};
use farthing_sdk::{Language, Options, generate};
use farthing_values::Usdc;

use super::{
    languages::Toolchain,
    market::{self, Variables, described, in_every_language, write},
    shelf,
};

/// Writes the client of the shelf, compiles and runs the language's program with it; what that costs.
async fn walk(toolchain: Toolchain, id: String, variables: Variables) -> Result<Usdc> {
    let language = Language::parse(toolchain.language).context("no such language")?;
    let shelf = described(shelf::document().to_string().as_bytes())?;
    let options = Options { service_id: id, package: Some("shelf".to_owned()), ..Options::default() };
    let folder = tempfile::tempdir()?;
    write(&generate(&shelf, language, &options)?, &folder.path().join("shelf"))?;
    let out = toolchain.run_one(folder.path(), ("shelf", "pages"), &variables).await?;
    if toolchain.is_parsed_only {
        return Ok(Usdc::ZERO);
    }
    let said: Vec<&str> = out.lines().map(str::trim_end).collect();
    ensure!(said == shelf::EXPECTED, "it says:\n{out}");
    Ok(shelf::PRICE.saturating_mul(shelf::PAGES))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_language_pays_each_page_it_walks_through_and_none_that_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let demo = market::open(folder.path()).await?;
    let id = shelf::publish(&demo).await?.id.to_string();
    market::until_known(&demo.consumer, &id).await?;
    let variables = market::variables(&demo);
    in_every_language(&demo, |toolchain| walk(toolchain, id.clone(), variables.clone())).await?;
    farthing_tests::agreement::end(demo).await
}
