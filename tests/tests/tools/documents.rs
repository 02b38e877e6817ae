//! Generated OpenAPI documents, judged by three validators that know nothing of each other.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    inspect::{inspected, write_exoplanets},
    kit::{Kit, Said, folder, run, tell},
};

/// Of the collection of real documents, those with the most unusual contents.
const EXAMPLES: [&str; 6] = [
    "3.1/json/train-travel.json",
    "3.1/json/petstore.json",
    "3.0/json/star-trek.json",
    "3.0/json/circular.json",
    "3.0/json/complex-nesting.json",
    "2.0/json/petstore.json",
];

#[tokio::test]
async fn other_validators_find_no_error_in_what_is_published() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let documents = documents(&kit, &folder).await?;
    let (specification, redocly, spectral) = tokio::try_join!(
        specification(&kit, &documents),
        redocly(&kit, &documents),
        spectral(&kit, &documents)
    )?;
    let mut complaints = String::new();
    for (name, said) in
        [("openapi-spec-validator", specification), ("redocly", redocly), ("spectral", spectral)]
    {
        if said.code != 0 {
            complaints.push_str(&format!("{name} ended with {}:\n{}{}\n", said.code, said.out, said.err));
        }
    }
    ensure!(complaints.is_empty(), "{complaints}");
    tell(&format!("{} published documents are valid for three validators", documents.len()));
    Ok(())
}

#[tokio::test]
async fn every_validator_notices_a_document_that_is_wrong() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("wrong.json");
    let answer = json!({ "200": { "content": { "application/json": { "schema": { "type": "thing" } } } } });
    let wrong = json!({
        "openapi": "3.1.0",
        "info": { "title": "Wrong", "version": "1" },
        "paths": { "/a/{id}": { "get": { "operationId": "a", "responses": answer } } },
    });
    std::fs::write(&path, wrong.to_string())?;
    let wrong = [path];
    let (specification, redocly, spectral) =
        tokio::try_join!(specification(&kit, &wrong), redocly(&kit, &wrong), spectral(&kit, &wrong))?;
    for (said, says) in
        [(specification, "thing"), (redocly, "path-parameters-defined"), (spectral, "oas3-schema")]
    {
        ensure!(said.code == 1 && said.out.contains(says), "nothing of `{says}`: {said:?}");
    }
    Ok(())
}

/// Writes the documents of everything there is to publish, in both versions.
async fn documents(kit: &Kit, folder: &TempDir) -> Result<Vec<PathBuf>> {
    let exoplanets = folder.path().join("exoplanets.graphql");
    write_exoplanets(&exoplanets).await?;
    let mut sources = vec![exoplanets];
    for own in ["schemas", "documents"] {
        let own = std::fs::read_dir(given(own))?;
        let own: std::io::Result<BTreeSet<_>> = own.map(|entry| Ok(entry?.path())).collect();
        sources.extend(own?);
    }
    sources.extend(EXAMPLES.map(|example| kit.package("@readme/oas-examples").join(example)));
    let mut documents = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        for version in ["3.1", "3.0"] {
            let document = inspected(source, &[&format!("--openapi={version}")]).await?;
            let parsed: Value =
                serde_json::from_str(&document).with_context(|| source.display().to_string())?;
            ensure!(
                parsed["openapi"].as_str().is_some_and(|written| written.starts_with(version)),
                "{document}"
            );
            let name = source.file_stem().unwrap_or_default().to_string_lossy();
            let path = folder.path().join(format!("{index}-{name}-{version}.json"));
            std::fs::write(&path, document)?;
            documents.push(path);
        }
    }
    Ok(documents)
}

async fn specification(kit: &Kit, documents: &[PathBuf]) -> Result<Said> {
    run(kit.python("openapi-spec-validator").args(["--validation-errors", "all"]).args(documents), b"").await
}

async fn redocly(kit: &Kit, documents: &[PathBuf]) -> Result<Said> {
    let mut command = kit.npm("redocly");
    command.arg("lint").arg("--config").arg(given("redocly.yaml"));
    run(command.args(["--format=stylish", "--max-problems=1000"]).args(documents), b"").await
}

async fn spectral(kit: &Kit, documents: &[PathBuf]) -> Result<Said> {
    let mut command = kit.npm("spectral");
    command.arg("lint").arg("--ruleset").arg(given("spectral.yaml"));
    run(command.args(["--fail-severity=error", "--display-only-failures"]).args(documents), b"").await
}

/// What the repository gives the tools.
fn given(name: &str) -> PathBuf {
    folder().join(name)
}
