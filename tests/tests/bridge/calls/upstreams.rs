//! GraphQL servers that fail in every way: what the caller gets, and what it costs.

use anyhow::{Context, Result, ensure};
use farthing_control::types::{ServiceFile, SourceKind};
use farthing_tests::{
    recorder::{Recorder, Scripted},
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::Usdc;
use serde_json::json;

use super::support::{call, described_by};

const SCHEMA: &str = "type Query { thing(id: ID!): Thing } type Thing { id: ID! name: String }";

/// What the server says; what the caller gets: status, words of the body, and whether it is charged.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_judged_by_its_body_and_only_data_is_charged() -> Result<()> {
    let settings = vec![("limits.response_bytes_max".to_owned(), "100000".to_owned())];
    let world = World::with(Setup { owner_settings: settings, ..Setup::default() }).await?;
    let recorder = Recorder::start().await?;
    let file = ServiceFile { upstream: recorder.url(), ..described_by(SourceKind::Graphql, SCHEMA) };
    let api = world.publish(&file).await?;
    let error = |extensions: &str| {
        format!(
            r#"{{"data":null,"errors":[{{"message":"not today","path":["thing"],"extensions":{extensions},"stack":"secret line 7"}}]}}"#
        )
    };
    let huge = format!(r#"{{"data":{{"thing":{{"id":"1","name":"{}"}}}}}}"#, "x".repeat(200_000));
    let cases = [
        (
            Scripted::json(200, r#"{"data":{"thing":{"id":"1","name":"a"}}}"#),
            200,
            r#"{"id":"1","name":"a"}"#,
            true,
        ),
        (Scripted::json(200, r#"{"data":{"thing":null}}"#), 200, "null", true),
        (
            Scripted::json(
                200,
                r#"{"data":{"thing":{"id":"1","name":null}},"errors":[{"message":"no name"}]}"#,
            ),
            200,
            r#""name":null"#,
            true,
        ),
        (Scripted::json(200, &error("{}")), 502, "", false),
        (Scripted::json(200, &error(r#"{"code":"BAD_USER_INPUT"}"#)), 400, "not today", false),
        (Scripted::json(200, &error(r#"{"code":"GRAPHQL_VALIDATION_FAILED"}"#)), 400, "not today", false),
        (Scripted::json(200, &error(r#"{"code":"NOT_FOUND"}"#)), 404, "not today", false),
        (Scripted::json(200, &error(r#"{"code":"CONFLICT"}"#)), 409, "not today", false),
        (Scripted::json(200, &error(r#"{"code":"FORBIDDEN"}"#)), 403, "not today", false),
        (Scripted::json(200, &error(r#"{"code":"RATE_LIMITED"}"#)), 429, "not today", false),
        (Scripted::json(400, &error(r#"{"http":{"status":422}}"#)), 422, "not today", false),
        (Scripted::json(500, r#"{"data":{"thing":{"id":"1","name":"a"}}}"#), 200, r#""name":"a""#, true),
        (Scripted::json(200, "{}"), 502, "", false),
        (Scripted::json(200, r#"{"data":{}}"#), 502, "", false),
        (Scripted::json(200, "[1]"), 502, "", false),
        (Scripted::json(200, "{\"data\":{\"thing\":{\"id\":"), 502, "", false),
        (
            Scripted {
                headers: vec![("content-type", "text/html".to_owned())],
                ..Scripted::json(200, "<h1>Hello</h1>")
            },
            502,
            "",
            false,
        ),
        (
            Scripted { headers: vec![("location", "/elsewhere".to_owned())], ..Scripted::json(302, "{}") },
            502,
            "",
            false,
        ),
        (Scripted::json(200, &huge), 502, "", false),
    ];
    let mut expected = Usdc::ZERO;
    for (i, (says, status, words, is_charged)) in cases.into_iter().enumerate() {
        let shown = format!("case {i}: {} {}", says.status, says.body.chars().take(120).collect::<String>());
        recorder.answer_with(says);
        let answer = call(&world, &api, "GET", "/thing", json!({ "id": i.to_string() })).await?;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        ensure!(answer.status.as_u16() == status, "{shown}: {answer:?}");
        ensure!(body.contains(words), "{shown}: {body}");
        ensure!(!body.contains("secret line"), "{shown}: what else the service said stays with it: {body}");
        let charged: Usdc = answer.header("x-farthing-charged").parse().unwrap_or(Usdc::ZERO);
        let price = if is_charged { PRICE } else { Usdc::ZERO };
        ensure!(charged == price, "{shown}: charged {charged}");
        expected = expected.saturating_add(price);
        if i == 2 {
            ensure!(answer.header("x-farthing-warnings").contains("no name"), "{answer:?}");
        }
    }
    world.settle_for(expected).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_graphql_server_is_given_up_and_costs_nothing() -> Result<()> {
    let settings = vec![("limits.upstream_first_byte_ms".to_owned(), "300".to_owned())];
    let world = World::with(Setup { owner_settings: settings, ..Setup::default() }).await?;
    let slow = format!("{}/slow/20000", world.upstream.url());
    let file = ServiceFile { upstream: slow, ..described_by(SourceKind::Graphql, SCHEMA) };
    let api = world.publish(&file).await?;
    let answer = call(&world, &api, "GET", "/thing", json!({ "id": "1" })).await?;
    ensure!(answer.status.as_u16() == 504, "{answer:?}");
    ensure!(answer.charged() == false, "{answer:?}");
    ensure!(world.settle_and_check(FUNDS).await.context("money")?.is_zero());
    Ok(())
}
