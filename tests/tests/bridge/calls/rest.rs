//! REST services described by OpenAPI: what reaches the upstream, and what never does.

use anyhow::{Context, Result, ensure};
use farthing_control::types::{OperationFile, ServiceFile, SourceKind};
use farthing_tests::{
    recorder::{Recorder, Scripted},
    world::{FUNDS, PRICE, World},
};
use farthing_values::{Method, Usdc};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{call, described_by, refused};

pub const LIBRARY: &str = r##"
openapi: 3.1.0
info: { title: Library, version: 1.0, description: Books and who reads them. }
paths:
  /books/{id}:
    get:
      summary: One book
      parameters:
        - { name: id, in: path, required: true, example: sea/white, schema: { type: string } }
      responses: { 200: { description: A book, content: { application/json: { schema: { $ref: "#/components/schemas/Book" } } } } }
    delete:
      parameters:
        - { name: id, in: path, required: true, schema: { type: string } }
      responses: { 204: { description: Gone } }
  /books/{id}.pdf:
    get:
      parameters:
        - { name: id, in: path, required: true, schema: { type: integer } }
      responses: { 200: { description: The book as a file } }
  /search:
    get:
      parameters:
        - { name: q, in: query, required: true, schema: { type: string, minLength: 2 } }
        - { name: tags, in: query, schema: { type: array, items: { type: string, enum: [new, old] } } }
        - { name: ids, in: query, explode: false, schema: { type: array, items: { type: integer } } }
        - { name: range, in: query, style: deepObject, schema: { type: object, additionalProperties: false, properties: { from: { type: integer }, to: { type: integer } } } }
        - { name: x-tenant, in: header, schema: { type: string } }
      responses: { 200: { description: Found } }
  /books:
    post:
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Book" } } }
      responses: { 201: { description: Made } }
  /form:
    post:
      requestBody:
        content: { application/x-www-form-urlencoded: { schema: { type: object, properties: { name: { type: string }, n: { type: integer } } } } }
      responses: { 200: { description: Taken } }
components:
  schemas:
    Book:
      type: object
      required: [title]
      additionalProperties: false
      properties:
        title: { type: string }
        year: { type: [integer, "null"] }
        similar: { type: array, items: { $ref: "#/components/schemas/Book" } }
"##;

async fn library(world: &World) -> Result<(Recorder, farthing_control::types::Api)> {
    let recorder = Recorder::start().await?;
    let mut file = ServiceFile {
        upstream: format!("{}/base", recorder.url()),
        ..described_by(SourceKind::Openapi, LIBRARY)
    };
    file.writes = true;
    file.operations = vec![
        OperationFile { exclude: true, ..OperationFile::named(Method::Delete, "/books/{id}".to_owned()) },
        OperationFile {
            price: Some(Usdc::from_micros(5_000).into()),
            ..OperationFile::named(Method::Get, "/search".to_owned())
        },
    ];
    let api = world.publish(&file).await?;
    Ok((recorder, api))
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_bodies_arrive_in_the_style_of_the_description() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = library(&world).await?;
    ensure!(api.name == "Library" && api.operations.len() == 5, "{api:?}");
    let params = json!({
        "q": "the sea", "tags": "new,old", "ids": "[1,2]", "range.from": "3", "range.to": "9", "x-tenant": "blue",
    });
    let answer = call(&world, &api, "GET", "/search", params).await?;
    ensure!(answer.status == StatusCode::OK && answer.header("x-farthing-charged") == "0.005", "{answer:?}");
    let id = json!({ "id": "a/b c" });
    call(&world, &api, "GET", "/books/{id}", id).await?;
    call(&world, &api, "GET", "/books/7.pdf", json!({})).await?;
    let body = |path: &str, body: Value| json!({ "api_id_public": api.id.to_string(), "path": path, "method": "POST", "body": body });
    world.call(&body("/books", json!({ "title": "Moby-Dick", "year": null }))).await?;
    world.call(&body("/form", json!({ "name": "Ishmael & co", "n": 3 }))).await?;
    let seen = recorder.seen();
    let targets: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
    ensure!(
        targets
            == [
                "/base/search?q=the%20sea&tags=new&tags=old&ids=1,2&range%5Bfrom%5D=3&range%5Bto%5D=9",
                "/base/books/a%2Fb%20c",
                "/base/books/7.pdf",
                "/base/books",
                "/base/form",
            ],
        "{targets:?}"
    );
    ensure!(seen[0].headers.get("x-tenant").is_some_and(|tenant| tenant == "blue"));
    ensure!(seen[3].body == r#"{"title":"Moby-Dick","year":null}"#, "{:?}", seen[3].body);
    ensure!(seen[4].headers["content-type"] == "application/x-www-form-urlencoded");
    ensure!(
        seen[4].body == "name=Ishmael%20%26%20co&n=3" || seen[4].body == "name=Ishmael+%26+co&n=3",
        "{:?}",
        seen[4].body
    );
    let charged = PRICE.saturating_mul(4).saturating_add(Usdc::from_micros(5_000));
    world.settle_for(charged).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_reaches_the_upstream_outside_the_templates() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = library(&world).await?;
    for path in [
        "books/1",
        "//books/1",
        "/books//1",
        "/books/../secret",
        "/books/./1",
        "/books/%2e%2e/secret",
        "/books/%2E%2E",
        "/books/..%2fsecret",
        "/books/%2e%2e%2fsecret",
        "/books/1%2f..%2f..%2fsecret",
        "/books/..;/secret",
        "/books/..%3b",
        "/books\\1",
        "/books/1%5c..%5csecret",
        "/books/1?admin=1",
        "/books/1#x",
        "/books/1%00",
        "/books/%zz",
        "/books/1%",
        "/books/\u{1}",
        "/books/%0d%0aHost:%20evil",
        "/books/%252e%252e/secret",
        "http://127.0.0.1:1/books/1",
        "/@evil/books/1",
        "/secret",
        "/base/books/1",
        "/books/1/secret",
        "/books",
        "",
        "/",
        "/books/x.pdf",
        "/books/.",
    ] {
        let answer = call(&world, &api, "GET", path, json!({})).await?;
        let refused = matches!(answer.status.as_u16(), 400 | 404 | 405);
        ensure!(refused && answer.charged() == false, "{path}: {answer:?}");
    }
    for value in ["..", ".", "../secret", "a/../../secret", "a/./b", "..\\secret", "a\u{0}b"] {
        let answer = call(&world, &api, "GET", "/books/{id}", json!({ "id": value })).await?;
        refused(&answer, &["id"]).with_context(|| value.to_owned())?;
    }
    let answer = call(&world, &api, "DELETE", "/books/1", json!({})).await?;
    ensure!(
        answer.status == StatusCode::METHOD_NOT_ALLOWED,
        "an excluded operation is not there: {answer:?}"
    );
    ensure!(recorder.hits() == 0, "{:?}", recorder.seen());
    world.settle_for(Usdc::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_fit_the_description_is_refused_free() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = library(&world).await?;
    for (path, params, words) in [
        ("/search", json!({}), &["missing", "q"][..]),
        ("/search", json!({ "q": "x" }), &["q", "2"]),
        ("/search", json!({ "q": "xx", "tag": "new" }), &["tag", "tags"]),
        ("/search", json!({ "q": "xx", "tags": "new,odl" }), &["tags[1]", "odl", "old"]),
        ("/search", json!({ "q": "xx", "ids": "1,x" }), &["ids[1]", "whole number"]),
        ("/search", json!({ "q": "xx", "range.form": "1" }), &["range", "form", "from"]),
        ("/search", json!({ "q": "xx", "cookie": "a" }), &["cookie"]),
        ("/books/{id}", json!({}), &["missing", "id"]),
    ] {
        let answer = call(&world, &api, "GET", path, params.clone()).await?;
        refused(&answer, words).with_context(|| format!("{path} {params}"))?;
    }
    for (body, words) in [
        (json!({ "title": 7 }), &["body.title", "text"][..]),
        (json!({ "year": 7 }), &["title"]),
        (json!({ "title": "a", "yaer": 7 }), &["yaer", "year"]),
        (json!({ "title": "a", "similar": [{ "title": 1 }] }), &["similar[0].title"]),
        (json!([]), &["object"]),
        (json!("no json"), &["application/json"]),
    ] {
        let body =
            json!({ "api_id_public": api.id.to_string(), "path": "/books", "method": "POST", "body": body });
        refused(&world.call(&body).await?, words).with_context(|| body.to_string())?;
    }
    let nobody = json!({ "api_id_public": api.id.to_string(), "path": "/books", "method": "POST" });
    refused(&world.call(&nobody).await?, &["body"])?;
    let not_here = json!({ "api_id_public": api.id.to_string(), "path": "/search", "method": "GET", "params": { "q": "xx" }, "body": {} });
    refused(&world.call(&not_here).await?, &["body"])?;
    ensure!(recorder.hits() == 0, "{:?}", recorder.seen());
    world.settle_for(Usdc::ZERO).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_an_address_of_its_own_at_the_gateway() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = library(&world).await?;
    recorder.answer_with(Scripted::json(200, r#"[{"title":"Moby-Dick"}]"#));
    let base = format!("{}/services/{}", world.consumer.status().await?.gateway_url, api.id);
    let get = |target: &str| world.client().get(format!("{base}{target}")).bearer_auth(&world.secret);
    let answer = get("/search?q=the+sea&tags=new&tags=old&ids=1,2&range[from]=3")
        .header("x-tenant", "blue")
        .send()
        .await?;
    ensure!(answer.status() == StatusCode::OK, "{:?}", answer.text().await?);
    ensure!(answer.headers()["x-farthing-charged"] == "0.005");
    ensure!(answer.text().await? == r#"[{"title":"Moby-Dick"}]"#);
    let seen = recorder.seen();
    ensure!(
        seen[0].target == "/base/search?q=the%20sea&tags=new&tags=old&ids=1,2&range%5Bfrom%5D=3",
        "{:?}",
        seen[0]
    );
    ensure!(seen[0].headers.get("x-tenant").is_some_and(|tenant| tenant == "blue"));
    ensure!(seen[0].headers.get("authorization").is_none(), "the gateway's secret stays at the gateway");
    let made = world
        .client()
        .post(format!("{base}/books"))
        .bearer_auth(&world.secret)
        .header("content-type", "application/json")
        .header("idempotency-key", "one book")
        .body(r#"{"title":"Emma"}"#);
    let twice = (made.try_clone().context("clone")?.send().await?, made.send().await?);
    ensure!(twice.0.status() == StatusCode::OK && twice.1.status() == StatusCode::OK, "{twice:?}");
    ensure!(recorder.hits() == 2, "a repeat under one key is served once");
    for (target, status) in
        [("/search?q=x", 400), ("/nothing", 404), ("/books/..%2fsecret", 400), ("/search?q=xx&odd=1", 400)]
    {
        let answer = get(target).send().await?;
        ensure!(answer.status().as_u16() == status, "{target}: {}", answer.text().await?);
    }
    let dear = get("/search?q=xx").header("x-farthing-max-price", "0.001").send().await?;
    ensure!(dear.status() == StatusCode::PAYMENT_REQUIRED, "{}", dear.text().await?);
    let stranger = world.client().get(format!("{base}/search?q=xx")).send().await?;
    ensure!(stranger.status() == StatusCode::UNAUTHORIZED);
    ensure!(recorder.hits() == 2);
    world.settle_and_check(FUNDS).await?;
    Ok(())
}
