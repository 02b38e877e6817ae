//! A collection of other people's documents: each registers, and what is then published is a valid document again.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{
    inspect::{inspect, inspected},
    kit::{self, Kit, run, tell},
};

/// Files of the collection that offer nothing, by the end of their path, each with what is said of it.
const NO_DOCUMENTS: [(&str, &str); 3] = [
    ("3.0/json/openapi-workshop/title.json", "no paths"),
    ("3.1/json/webhooks.json", "no paths"),
    ("3.1/yaml/webhooks.yaml", "no paths"),
];

#[tokio::test]
async fn every_document_of_the_collection_registers() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut refused = String::new();
    let mut published = Vec::new();
    let documents = documents(&kit)?;
    for (index, path) in documents.iter().enumerate() {
        let said = inspect(path.as_os_str(), &["--json"]).await?;
        let expected = NO_DOCUMENTS.iter().find(|(end, _)| path.ends_with(end));
        match (said.code, expected) {
            (0, None) => {
                let document = folder.path().join(format!("{index}.json"));
                std::fs::write(&document, inspected(path, &["--openapi"]).await?)?;
                published.push(document);
            }
            (0, Some((end, reason))) => refused.push_str(&format!("{end} registers, although {reason}\n")),
            (_, None) => refused.push_str(&said.err),
            (_, Some((_, reason))) => ensure!(said.err.contains(reason), "{}: {}", path.display(), said.err),
        }
    }
    ensure!(refused.is_empty(), "{refused}");
    ensure!(published.len() > 100, "that is another collection: {} of {}", published.len(), documents.len());
    let said = run(kit.python("openapi-spec-validator").args(&published), b"").await?;
    let wrong = said.out.lines().filter(|line| !line.ends_with(": OK")).collect::<Vec<_>>().join("\n");
    ensure!(said.code == 0, "{wrong}\n{}", said.err);
    tell(&format!(
        "{} documents of the collection register, and what is published is valid",
        published.len()
    ));
    Ok(())
}

#[tokio::test]
async fn swagger_is_understood_as_another_converter_understands_it() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let is_swagger = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "2.0");
    let swagger = documents(&kit)?.into_iter().filter(is_swagger);
    let mut compared = 0;
    for path in swagger.chain([kit::folder().join("documents/legacy.yaml")]) {
        let converted = run(kit.npm("swagger2openapi").arg(&path), b"").await?;
        ensure!(converted.code == 0, "{}: {}", path.display(), converted.err);
        let theirs = folder.path().join("converted.json");
        std::fs::write(&theirs, converted.out)?;
        let (ours, theirs) =
            (inspected(&path, &["--openapi"]).await?, inspected(&theirs, &["--openapi"]).await?);
        let [ours, theirs] = [ours, theirs].map(|document| serde_json::from_str::<Value>(&document));
        let (ours, theirs) = (ours?, theirs?);
        ensure!(ours == theirs, "{}: ours\n{ours:#}\ntheirs\n{theirs:#}", path.display());
        compared += 1;
    }
    ensure!(compared >= 10, "only {compared} documents were compared");
    Ok(())
}

/// All JSON and YAML files, in order.
fn documents(kit: &Kit) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders: Vec<_> =
        ["2.0", "3.0", "3.1"].map(|version| kit.package("@readme/oas-examples").join(version)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "json" || kind == "yaml" || kind == "yml") {
                found.insert(path);
            }
        }
    }
    Ok(found)
}
