//! One price buys any selection: how many lists a query may have within each other, who allows more, and what an owner is
//! told of it.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{OperationFile, ServiceFile, SourceKind},
};
use farthing_tests::{
    command::farthing,
    recorder::{Recorder, Scripted},
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use farthing_values::{Method, Usdc};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{call, described_by, get, refused};

/// Everybody has friends, who have friends.
const PEOPLE: &str =
    "type Query { users(first: Int): [User!]! } type User { name: String! friends: [User!]! }";
const FOUND: &str =
    r#"{"data":{"users":[{"name":"Ada","friends":[{"name":"Bob","friends":[{"name":"Cy"}]}]}]}}"#;

fn fields(text: &str) -> Value {
    json!({ "fields": text })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_more_lists_than_are_allowed_is_free_and_reaches_nobody_until_its_owner_allows_it()
-> Result<()> {
    let world = World::start().await?;
    let recorder = Recorder::start().await?;
    recorder.answer_with(Scripted::json(200, FOUND));
    let file = ServiceFile { upstream: recorder.url(), ..described_by(SourceKind::Graphql, PEOPLE) };
    let api = world.publish(&file).await?;
    get(&world, &api, "/users", fields("name,friends.name")).await?;
    ensure!(recorder.hits() == 1);
    for deep in
        ["friends.friends.name", "name,friends(name,friends(name))", "friends.friends.friends.friends.name"]
    {
        let answer = call(&world, &api, "GET", "/users", fields(deep)).await?;
        refused(&answer, &["User.friends", "3 nested lists", "at most 2"]).context(deep)?;
    }
    ensure!(recorder.hits() == 1, "what is refused reaches nobody");
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{audit:?}");
    ensure!((audit.calls_bought, audit.calls_undecided) == (1, 0), "only the answered call is in the books");

    let allowed = OperationFile { lists: Some(3), ..OperationFile::named(Method::Get, "/users".to_owned()) };
    let api = world.publish(&ServiceFile { id: Some(api.id), operations: vec![allowed], ..file }).await?;
    // A consumer learns of the new version within seconds, and refuses by the one it knows until then.
    eventually("three lists are answered", async || {
        let answer = call(&world, &api, "GET", "/users", fields("friends.friends.name")).await?;
        Ok(answer.status == StatusCode::OK)
    })
    .await?;
    let answer = call(&world, &api, "GET", "/users", fields("friends.friends.friends.name")).await?;
    refused(&answer, &["4 nested lists", "at most 3"])?;
    ensure!(recorder.hits() == 2, "{}", recorder.hits());
    let charged = Usdc::from_micros(2 * PRICE.micros());
    ensure!(world.settle_and_check(FUNDS).await? == charged, "the two that were answered");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_registers_an_api_is_told_the_worst_query_of_each_operation() -> Result<()> {
    let world = World::start().await?;
    let folder = tempfile::tempdir()?;
    let schema = folder.path().join("people.graphql");
    std::fs::write(&schema, PEOPLE)?;
    let schema = schema.display().to_string();
    let expect = |what: &str, text: &str| {
        for words in ["query users", "2 nested lists", "`fields=friends`", "limit them there", "`lists`"] {
            ensure!(text.contains(words), "{what} does not say `{words}`:\n{text}");
        }
        anyhow::Ok(())
    };
    let inspected = farthing(&world.owner, &["bridge", "inspect", &schema]).await?;
    expect("bridge inspect", &inspected.ends_with(0)?.out)?;
    let upstream = ["--upstream", "http://127.0.0.1:9/graphql", "--name", "People", "--price", "0.002"];
    let words = [&["api", "add", "--yes", "--graphql", schema.as_str()], &upstream[..]].concat();
    let added = farthing(&world.owner, &words).await?;
    added.ends_with(0)?;
    expect("api add", &format!("{}{}", added.out, added.err))?;
    let apis = world.owner.control().ask(endpoint::Apis).await?;
    let people = apis.iter().find(|api| api.name == "People").context("it is not there")?;
    let shown = farthing(&world.owner, &["api", "show", &people.id.to_string()]).await?;
    expect("api show", &shown.ends_with(0)?.out)
}
