//! The owner's key: added on the owner's node, seen by the upstream alone.

use anyhow::{Result, ensure};
use farthing::control::types::{Api, ApiShown, OperationFile, ServiceFile, SourceKind, route};
use farthing_protocol::call::Method;
use farthing_tests::{
    recorder::Recorder,
    world::{FUNDS, World},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{call, described_by, refused};

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
    file.operations =
        vec![OperationFile { any_params: true, ..OperationFile::named(Method::Get, "/any".to_owned()) }];
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
    let shown: ApiShown = world.owner.control().get(&route::API.replace("{id}", &api.id.to_string())).await?;
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
