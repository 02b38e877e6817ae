//! The owner's key: added on the owner's node, seen by the upstream alone.

use anyhow::{Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, OperationFile, ServiceFile, SourceKind},
};
use farthing_tests::{
    recorder::Recorder,
    world::{FUNDS, World},
};
use farthing_values::Method;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{call, described_by, refused};

const WEATHER: &str = r##"
openapi: 3.0.3
info: { title: Weather, version: "1" }
servers: [{ url: "https://weather.example" }]
security: [{ header: [] }, { query: [] }]
paths:
  /now:
    get:
      parameters:
        - { name: city, in: query, required: true, schema: { type: string } }
        - { name: appid, in: query, schema: { type: string } }
        - { name: X-Api-Key, in: header, schema: { type: string } }
      responses: { "200": { description: Weather } }
  /any:
    get:
      responses: { "200": { description: Anything } }
  /form:
    post:
      requestBody: { content: { application/x-www-form-urlencoded: { schema: { type: object } } } }
      responses: { "200": { description: Taken } }
  /openapi.json:
    get:
      responses: { "200": { description: The server's own } }
components:
  securitySchemes:
    header: { type: apiKey, in: header, name: X-Api-Key }
    query: { type: apiKey, in: query, name: appid }
"##;
const KEY: &str = "the-owners-own-key";
const APP: &str = "the-owners-app-id";

async fn weather(world: &World) -> Result<(Recorder, Api)> {
    let recorder = Recorder::start().await?;
    let mut file = ServiceFile { upstream: recorder.url(), ..described_by(SourceKind::Openapi, WEATHER) };
    file.upstream_headers.insert("x-api-key".to_owned(), KEY.to_owned());
    file.upstream_query.insert("appid".to_owned(), APP.to_owned());
    file.operations = vec![
        OperationFile { any_params: true, ..OperationFile::named(Method::Get, "/any".to_owned()) },
        OperationFile::named(Method::Post, "/form".to_owned()),
    ];
    let api = world.publish(&file).await?;
    Ok((recorder, api))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owners_key_can_neither_be_read_nor_overridden() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = weather(&world).await?;
    let answer = call(&world, &api, "GET", "/now", json!({ "city": "Oslo" })).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    let seen = recorder.seen();
    ensure!(seen[0].target == format!("/now?city=Oslo&appid={APP}"), "{:?}", seen[0].target);
    ensure!(seen[0].headers["x-api-key"] == KEY);

    for (path, params) in [
        ("/now", json!({ "city": "Oslo", "appid": "mine" })),
        ("/now", json!({ "city": "Oslo", "APPID": "mine" })),
        ("/now", json!({ "city": "Oslo", "x-api-key": "mine" })),
        ("/any", json!({ "appid": "mine" })),
        ("/any", json!({ "AppId": "mine" })),
        ("/any", json!({ "appid[]": "mine" })),
    ] {
        let answer = call(&world, &api, "GET", path, params.clone()).await?;
        refused(&answer, &[]).map_err(|error| error.context(format!("{path} {params}")))?;
    }
    let header = json!({
        "api_id_public": api.id.to_string(), "path": "/now", "method": "GET", "params": { "city": "Oslo" },
        "headers": { "X-Api-Key": "mine" },
    });
    refused(&world.call(&header).await?, &["x-api-key"])?;
    let form = json!({
        "api_id_public": api.id.to_string(), "path": "/form", "method": "POST", "body": { "a": "1", "AppId": "mine" },
    });
    refused(&world.call(&form).await?, &["AppId"])?;
    let encoded = json!({
        "api_id_public": api.id.to_string(), "path": "/form", "method": "POST", "body": "a=1&appid=mine",
        "headers": { "content-type": "application/x-www-form-urlencoded" },
    });
    refused(&world.call(&encoded).await?, &["appid"])?;
    ensure!(recorder.hits() == 1, "{:?}", recorder.seen());

    let mut told = String::new();
    for path in ["/openapi.json"] {
        let document = call(&world, &api, "GET", path, json!({})).await?;
        ensure!(document.status == StatusCode::OK);
        told.push_str(&String::from_utf8_lossy(&document.body));
    }
    ensure!(!told.contains("appid") && !told.to_ascii_lowercase().contains("x-api-key"), "{told}");
    let shown = world.owner.control().ask(endpoint::ShowApi.of(api.id)).await?;
    ensure!(shown.secrets == ["x-api-key", "appid"], "{:?}", shown.secrets);
    told.push_str(&serde_json::to_string(&shown)?);
    told.push_str(&world.owner.log());
    told.push_str(&world.consumer.log());
    ensure!(!told.contains(KEY) && !told.contains(APP), "a secret was told");
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_and_authority_of_the_caller_stay_at_the_gateway() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = weather(&world).await?;
    for name in ["authorization", "cookie", "host", "x-forwarded-for", "connection"] {
        let body = json!({
            "api_id_public": api.id.to_string(), "path": "/now", "method": "GET", "params": { "city": "Oslo" },
            "headers": { name: "evil" },
        });
        refused(&world.call(&body).await?, &[name])?;
    }
    ensure!(recorder.hits() == 0);
    let answer: Value = call(&world, &api, "GET", "/now", json!({ "city": "Oslo" })).await?.json();
    ensure!(answer == json!({}));
    let seen = recorder.seen();
    for name in ["authorization", "cookie", "x-forwarded-for"] {
        ensure!(!seen[0].headers.contains_key(name), "{:?}", seen[0].headers);
    }
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

/// What the owner's node adds is in no request that the recorder has seen.
fn saw_no_key(recorder: &Recorder) -> Result<()> {
    for seen in recorder.seen() {
        ensure!(!seen.target.contains(APP), "{:?}", seen.target);
        ensure!(!seen.headers.values().any(|value| value == KEY), "{:?}", seen.headers);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_gets_the_owners_key_only_when_it_is_given_again() -> Result<()> {
    let world = World::start().await?;
    let (_first, api) = weather(&world).await?;
    let edit = endpoint::EditApi.of(api.id);
    let control = world.owner.control();

    let other = Recorder::start().await?;
    control.tell(edit.clone(), &serde_json::from_value(json!({ "upstream": other.url() }))?).await?;
    let answer = call(&world, &api, "GET", "/now", json!({ "city": "Oslo" })).await?;
    ensure!(answer.status == StatusCode::OK && other.hits() == 1, "{answer:?}");
    saw_no_key(&other)?;
    let shown = control.ask(endpoint::ShowApi.of(api.id)).await?;
    ensure!(shown.secrets.is_empty(), "{:?}", shown.secrets);

    let given = json!({ "upstream": other.url(), "upstream_headers": { "x-api-key": KEY } });
    control.tell(edit.clone(), &serde_json::from_value(given)?).await?;
    call(&world, &api, "GET", "/now", json!({ "city": "Oslo" })).await?;
    ensure!(other.seen().last().is_some_and(|seen| seen.headers["x-api-key"] == KEY), "{:?}", other.seen());

    // The same by publishing in its place, and by reading a description at another server.
    let third = Recorder::start().await?;
    let file =
        ServiceFile { upstream: third.url(), id: Some(api.id), ..described_by(SourceKind::Openapi, WEATHER) };
    world.publish(&file).await?;
    call(&world, &api, "GET", "/now", json!({ "city": "Oslo" })).await?;
    ensure!(third.hits() == 1, "{:?}", third.seen());
    saw_no_key(&third)?;

    let given = json!({ "upstream_headers": { "x-api-key": KEY } });
    control.tell(edit, &serde_json::from_value(given)?).await?;
    let fourth = Recorder::start().await?;
    let rescan = endpoint::RescanApi.of(api.id);
    let source = json!({ "source": { "kind": "openapi", "url": format!("{}/openapi.json", fourth.url()) }, "apply": true });
    let refused = control.tell(rescan, &serde_json::from_value(source)?).await;
    ensure!(refused.is_err() && fourth.hits() > 0, "it answers {{}}, which is no description: {refused:?}");
    saw_no_key(&fourth)?;
    Ok(())
}
