//! The commands that documents print, followed as they stand: each block of `sh` is run by a real shell, or named here with
//! what tries the same. The quickstarts have a test of their own.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    http::header::CONTENT_TYPE,
    response::IntoResponse,
    routing::{get, post},
};
use farthing_control::types::{ServiceFile, SourceFile, SourceKind};
use farthing_demo_services::exoplanets;
use farthing_tests::{
    calls::cost,
    command::{Ran, farthing, path},
    pictures::picture,
    upstream,
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use tokio::process::Command;

/// Blocks that are not run here: the document, how the block begins, and what tries the same.
const ELSEWHERE: [(&str, &str, &str); 16] = [
    ("CONTRIBUTING.md", "make check", ".ci/run"),
    ("README.md", "make demo", ".ci/run"),
    ("README.md", "make test", ".ci/run"),
    ("README.md", "make compose-up", "deploy/test/compose-test.sh"),
    ("deploy/README.md", "farthing init", "tests/tests/first_steps/quickstart.rs"),
    ("deploy/README.md", "make image", "deploy/test/compose-test.sh"),
    ("deploy/README.md", "docker compose", "deploy/test/compose-test.sh"),
    ("deploy/README.md", "make compose-up", "deploy/test/compose-test.sh"),
    ("deploy/README.md", "sudo nano", "deploy/test/dist-test.sh"),
    ("deploy/README.md", "sudo useradd", "deploy/test/dist-test.sh"),
    ("docs/agents.md", "farthing mcp install claude-desktop --secret agent --write", "node/cli/src/mcp.rs"),
    ("docs/console.md", "curl --cacert /data", "tests/tests/console/api.rs"),
    ("docs/network.md", "sysctl", "tests/tests/nat/forwarding.rs"),
    ("docs/network.md", "farthing run", "tests/tests/first_steps/quickstart.rs"),
    ("docs/sdk.md", "curl http://localhost:3003", "tests/tests/paid_calls/same_machine.rs"),
    ("docs/sdk.md", "answer=$(./quakes", "tests/tests/sdk/document.rs"),
];

/// Everything that the examples name: a search, an order, planets, photos and images.
const DESCRIPTION: &str = r#"{
  "openapi": "3.1.0",
  "info": { "title": "Examples", "version": "1" },
  "paths": {
    "/planets": { "get": {
      "parameters": [
        { "name": "discoveryMethod", "in": "query", "schema": { "type": "string" } },
        { "name": "limit", "in": "query", "schema": { "type": "integer" } }],
      "responses": { "200": { "description": "Planets", "content": { "application/json": { "example": [{ "id": 1 }] } } } } } },
    "/search": { "get": {
      "responses": { "200": { "description": "Found", "content": { "application/json": { "example": [{ "id": 1 }] } } } } } },
    "/orders": { "post": {
      "requestBody": { "content": { "application/json": {} } },
      "responses": { "200": { "description": "Ordered" } } } },
    "/photos": { "post": {
      "requestBody": { "required": true, "content": { "multipart/form-data": { "schema": {
        "type": "object", "required": ["photo"],
        "properties": { "photo": { "type": "string", "format": "binary" } } } } } },
      "responses": { "200": { "description": "Kept" } } } },
    "/images": { "post": {
      "requestBody": { "required": true, "content": { "image/png": {} } },
      "responses": { "200": { "description": "Kept" } } } }
  }
}"#;

/// What the examples buy: planets, a photo and an image.
const CALLS: u64 = 3;

/// A block of `sh`.
struct Block {
    document: String,
    script: String,
}

/// The blocks of all documents but the quickstarts. The changelog and the decisions speak of their time.
fn blocks() -> Result<Vec<Block>> {
    let folder = root().join("docs").read_dir()?;
    let in_docs = folder.flatten().filter_map(|entry| Some(format!("docs/{}", entry.file_name().to_str()?)));
    let elsewhere = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "deploy/README.md"].map(str::to_owned);
    let mut documents: Vec<String> = in_docs.filter(|name| name.ends_with(".md")).chain(elsewhere).collect();
    documents.retain(|name| !name.contains("quickstart"));
    documents.sort();
    let mut blocks = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(root().join(&document)).with_context(|| document.clone())?;
        let scripts =
            text.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()));
        blocks.extend(scripts.map(|script| Block { document: document.clone(), script }));
    }
    Ok(blocks)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Those that are run here.
fn run_here() -> Result<Vec<Block>> {
    let mut unused = BTreeSet::from(ELSEWHERE);
    let mut here = Vec::new();
    for block in blocks()? {
        let named = unused
            .iter()
            .copied()
            .find(|(document, begins, _)| *document == block.document && block.script.starts_with(*begins));
        match named {
            Some(named) => {
                unused.remove(&named);
            }
            None => here.push(block),
        }
    }
    ensure!(unused.is_empty(), "no document has these blocks: {unused:?}");
    for (document, begins, tries) in ELSEWHERE {
        ensure!(root().join(tries).is_file(), "{document}, {begins}: {tries} is not there");
    }
    ensure!(here.len() > 7, "{} blocks were found", here.len());
    Ok(here)
}

/// The server of the examples, which says where its description is. It ends with the test's runtime.
async fn serve() -> Result<String> {
    let anything = || async { ([(CONTENT_TYPE, "application/json")], "[]") };
    let router = Router::new()
        .route("/openapi.json", get(description))
        .route("/planets", get(anything))
        .route("/search", get(anything))
        .route("/orders", post(anything))
        .route("/photos", post(anything))
        .route("/images", post(anything));
    upstream::serve(router).await
}

async fn description() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION)
}

/// Puts what the examples name into the folder where they are typed.
fn lay_out(folder: &Path, world: &World) -> Result<()> {
    let of_service = std::fs::read_to_string(root().join("docs/service-file.md"))?;
    let of_service = of_service.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    std::fs::write(folder.join("service.toml"), of_service.context("no service file in the document")?)?;
    // JSON is YAML.
    std::fs::write(folder.join("openapi.yaml"), DESCRIPTION)?;
    std::fs::write(folder.join("passphrase.txt"), "four random words here\n")?;
    std::fs::write(folder.join("cat.png"), picture(640, 48))?;
    std::fs::copy(world.consumer.ca_file(), folder.join("ca.pem"))?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_block_of_commands_in_a_document_runs_as_it_stands() -> Result<()> {
    let blocks = run_here()?;
    let world = World::start().await?;
    let (server, graphql) =
        (serve().await?, upstream::serve(exoplanets::router(exoplanets::embedded()?)).await?);
    let source = SourceFile::at(SourceKind::Openapi, format!("{server}/openapi.json"));
    let file = ServiceFile {
        name: "Earthquakes".to_owned(),
        category: "geology".to_owned(),
        upstream: server.clone(),
        source: Some(source),
        writes: true,
        ..ServiceFile::priced(PRICE)
    };
    let id = world.publish(&file).await?.id.to_string();
    eventually("the consumer knows the service", async || {
        Ok(farthing(&world.consumer, &["catalog", "show", &id]).await?.code == 0)
    })
    .await?;

    let folder = tempfile::tempdir()?;
    lay_out(folder.path(), &world)?;
    let here = folder.path().display();
    let filled = [
        // It runs already.
        ("exoplanets &", ":".to_owned()),
        ("http://127.0.0.1:4002", graphql),
        ("http://127.0.0.1:8080", server),
        ("https://localhost:3000", world.consumer.status().await?.gateway_url),
        ("<wallet>", world.owner_wallet.to_string()),
        ("<service>", id.clone()),
        ("<uuid>", id),
        ("/mnt/elsewhere", here.to_string()),
        ("/var/lib/farthing", format!("{here}/restored")),
        // Here is no terminal to answer on.
        ("farthing api add", "farthing api add --yes".to_owned()),
    ];
    let path = path()?;
    for Block { document, script } in blocks {
        let put = |script: String, (shown, there): &(&str, String)| script.replace(*shown, there);
        let script = filled.iter().fold(script, put);
        let sells = script.contains("farthing api") || script.contains("net reach");
        let node = if sells { &world.owner } else { &world.consumer };
        let mut shell = Command::new("sh");
        shell
            .args(["-eu", "-c", &script])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env("FARTHING_NODE__DATA_DIR", node.data_dir())
            .env("CONSUMER_SECRET", &world.secret)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ran = Ran::of(shell.output().await?)?;
        ensure!(ran.code == 0, "{document}: `{script}` ended with {}:\n{}\n{}", ran.code, ran.out, ran.err);
    }
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(CALLS), "what the examples buy is answered");
    Ok(())
}
