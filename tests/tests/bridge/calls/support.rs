//! What these tests share: files for sources, calls with parameters.

use anyhow::{Result, ensure};
use farthing_control::types::{Api, ServiceFile, SourceFile, SourceKind};
use farthing_tests::{
    recorder::Recorder,
    world::{Answer, PRICE, World},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// A service whose source is a text.
pub fn described_by(kind: SourceKind, text: &str) -> ServiceFile {
    let source = SourceFile::given(kind, text.to_owned(), "the test's own".to_owned());
    ServiceFile { name: name(kind), source: Some(source), ..ServiceFile::priced(PRICE) }
}

/// OpenAPI documents name themselves.
fn name(kind: SourceKind) -> String {
    if kind == SourceKind::Graphql { "Test service".to_owned() } else { String::new() }
}

/// A service whose source is fetched.
pub fn described_at(kind: SourceKind, url: String) -> ServiceFile {
    let source = SourceFile::at(kind, url);
    ServiceFile { name: name(kind), source: Some(source), ..ServiceFile::priced(PRICE) }
}

/// The planet service behind a recorder, for sale.
pub async fn planets(world: &World) -> Result<(Recorder, Api)> {
    use farthing_demo_services::exoplanets;
    let recorder = Recorder::before(exoplanets::router(exoplanets::embedded()?)).await?;
    let api =
        world.publish(&described_at(SourceKind::Graphql, format!("{}/graphql", recorder.url()))).await?;
    Ok((recorder, api))
}

/// A call of `api` with parameters.
pub async fn call(world: &World, api: &Api, method: &str, path: &str, params: Value) -> Result<Answer> {
    let body =
        json!({ "api_id_public": api.id.to_string(), "path": path, "method": method, "params": params });
    world.call(&body).await
}

/// `GET path` that must succeed, as JSON.
pub async fn get(world: &World, api: &Api, path: &str, params: Value) -> Result<Value> {
    let answer = call(world, api, "GET", path, params).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    Ok(answer.json())
}

/// A call that must be refused before it is priced or sent: status 400, `charged` false, and `words` in the detail.
pub fn refused(answer: &Answer, words: &[&str]) -> Result<()> {
    let problem = answer.json();
    ensure!(answer.status == StatusCode::BAD_REQUEST, "{answer:?}");
    ensure!(problem["charged"] == false, "{problem}");
    let detail = problem["detail"].as_str().unwrap_or_default();
    for word in words {
        ensure!(detail.contains(word), "`{detail}` does not say `{word}`");
    }
    Ok(())
}
