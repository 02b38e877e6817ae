//! Generated requests, judged by graphql-js: random subsets of arguments, random values, random `fields`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    inspect::{inspected, measured, write_exoplanets},
    kit::{Kit, folder, run, tell},
};

/// The size that servers' own limits are known to allow.
const QUERY_BYTES_MAX: usize = 8 * 1024;

/// What the judge found.
#[derive(Debug, Deserialize)]
struct Verdict {
    requests: usize,
    operations: usize,
    bytes_max: usize,
    failed: usize,
    failures: Vec<Value>,
}

#[tokio::test]
async fn every_query_for_the_exoplanets_is_valid() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let schema = folder.path().join("exoplanets.graphql");
    write_exoplanets(&schema).await?;
    all_are_valid(&kit, &schema, 2_000).await
}

#[tokio::test]
async fn every_query_for_schemas_with_connections_unions_and_federation_is_valid() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    for name in ["films", "library", "shop"] {
        all_are_valid(&kit, &written(name), 2_000).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_query_for_github_is_valid_and_its_schema_is_read_in_seconds() -> Result<()> {
    /// The aim is 100 MB; a debug build with other allocators must not fail for it.
    const MEMORY_KIB_MAX: u64 = 400 * 1024;
    let Some(kit) = Kit::find()? else { return Ok(()) };
    let schema = kit.package("@octokit/graphql-schema").join("schema.graphql");
    let registered = measured(&schema).await?;
    let lines = std::fs::read_to_string(&schema)?.lines().count();
    tell(&format!(
        "GitHub's schema: {lines} lines read in {:.2} s with {} MB",
        registered.elapsed.as_secs_f64(),
        registered.memory_kib * 1024 / 1_000_000,
    ));
    let operations = registered.report["operations"].as_array().map_or(0, Vec::len);
    ensure!(operations > 250, "{operations} operations");
    ensure!(registered.memory_kib < MEMORY_KIB_MAX, "{} KiB of memory", registered.memory_kib);
    ensure!(lines > 60_000, "that is another schema: {lines} lines");
    all_are_valid(&kit, &schema, 2_000).await
}

#[tokio::test]
async fn the_judge_of_queries_notices_what_is_wrong() -> Result<()> {
    let Some(kit) = Kit::find()? else { return Ok(()) };
    for (query, variables, says) in [
        ("{ films }", "{}", "Cannot query field"),
        ("{ film { title ", "{}", "Syntax Error"),
        ("{ film }", "{}", "must have a selection of subfields"),
        ("query($id: Int) { film(id: $id) { title } }", "{}", "used in position expecting type"),
        ("query($id: ID) { film { title } }", "{}", "never used"),
        ("query($n: Int) { allFilms(first: $n) { totalCount } }", r#"{"n": 1.5}"#, "non-integer"),
        ("{ film { title } }", r#"{"n": 1}"#, "does not declare"),
        ("query A { film { title } } query B { film { title } }", "{}", "2 operations"),
    ] {
        let variables: Value = serde_json::from_str(variables)?;
        let line = serde_json::json!({ "operation": "film", "query": query, "variables": variables });
        let verdict = judge(&kit, &written("films"), line.to_string().as_bytes()).await?;
        let failures = Value::from(verdict.failures).to_string();
        ensure!(verdict.failed == 1 && failures.contains(says), "{query}: {failures}");
    }
    Ok(())
}

/// Generates `count` requests and has them judged.
async fn all_are_valid(kit: &Kit, schema: &Path, count: usize) -> Result<()> {
    let report: Value = serde_json::from_str(&inspected(schema, &["--json"]).await?)?;
    let operations = report["operations"].as_array().context("no operations")?.len();
    let requests = inspected(schema, &["--queries", &count.to_string(), "--seed", "7"]).await?;
    let verdict = judge(kit, schema, requests.as_bytes()).await?;
    let name = schema.file_stem().unwrap_or_default().to_string_lossy();
    tell(&format!(
        "{name}: {} requests over {} operations are valid, the longest query has {} bytes",
        verdict.requests, verdict.operations, verdict.bytes_max
    ));
    ensure!(
        verdict.failed == 0,
        "{name}: {} of {} requests are invalid, among them: {:#}",
        verdict.failed,
        verdict.requests,
        Value::from(verdict.failures)
    );
    ensure!(verdict.requests == count, "{name}: {} requests", verdict.requests);
    ensure!(verdict.operations == operations, "{name}: {} of {operations} operations", verdict.operations);
    ensure!(verdict.bytes_max <= QUERY_BYTES_MAX, "{name}: a query has {} bytes", verdict.bytes_max);
    Ok(())
}

async fn judge(kit: &Kit, schema: &Path, requests: &[u8]) -> Result<Verdict> {
    let said = run(kit.node("validate.mjs").arg(schema), requests).await?;
    let verdict: Verdict = serde_json::from_str(&said.out).with_context(|| said.err.clone())?;
    ensure!((said.code == 0) == (verdict.failed == 0), "{said:?}");
    Ok(verdict)
}

fn written(name: &str) -> PathBuf {
    folder().join("schemas").join(name).with_extension("graphql")
}
