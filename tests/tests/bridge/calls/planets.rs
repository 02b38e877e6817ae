//! GraphQL bought as REST: the exoplanet service, through the bridge.

use anyhow::{Context, Result, ensure};
use farthing_tests::world::{FUNDS, PRICE, World};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{call, get, planets, refused};

#[tokio::test(flavor = "multi_thread")]
async fn planets_are_bought_by_rest_and_asked_for_by_graphql() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = planets(&world).await?;
    let before = recorder.hits();
    let answer =
        call(&world, &api, "GET", "/planets", json!({ "discoveryMethod": "Transit", "limit": "5" })).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    ensure!(answer.header("x-farthing-charged") == PRICE.to_string());
    ensure!(answer.header("content-type").starts_with("application/json"));
    let bought = answer.json();
    ensure!(bought.as_array().is_some_and(|planets| planets.len() == 5), "{bought}");
    ensure!(bought[0]["discoveryMethod"] == "Transit" && bought[0]["name"].is_string(), "{bought}");

    let seen = recorder.seen();
    ensure!(seen.len() == before + 1, "one request reached the service");
    let sent: Value = serde_json::from_slice(&seen[before].body)?;
    ensure!(seen[before].target == "/graphql" && seen[before].method == "POST");
    ensure!(sent["variables"] == json!({ "discoveryMethod": "Transit", "limit": 5 }), "{sent}");
    let query = sent["query"].as_str().context("no query")?;
    ensure!(!query.contains("Transit"), "what a caller says never stands in the query: {query}");

    // The same asked of the service itself.
    let direct = reqwest::Client::new()
        .post(format!("{}/graphql", recorder.url()))
        .json(&sent)
        .send()
        .await?
        .json::<Value>()
        .await?;
    ensure!(direct["data"]["planets"] == bought, "the answer is the service's own");
    world.settle_for(PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_chooses_fields_filters_and_pages() -> Result<()> {
    let world = World::start().await?;
    let (_, api) = planets(&world).await?;
    let chosen =
        get(&world, &api, "/planets", json!({ "limit": "2", "fields": "name,star(name,mass)" })).await?;
    let keys: Vec<_> = chosen[0].as_object().context("no planet")?.keys().cloned().collect();
    ensure!(keys == ["name", "star"], "{chosen}");

    let heavy = get(
        &world,
        &api,
        "/rankedPlanets",
        json!({ "by": "MASS", "filter.mass.lt": "1", "limit": "3", "fields": "name,mass" }),
    )
    .await?;
    let masses: Vec<f64> =
        heavy.as_array().context("no list")?.iter().filter_map(|planet| planet["mass"].as_f64()).collect();
    ensure!(masses.len() == 3 && masses.iter().all(|mass| *mass < 1.0), "{heavy}");
    ensure!(masses.is_sorted_by(|a, b| a >= b), "{heavy}");

    let page = get(&world, &api, "/planetsConnection", json!({})).await?;
    ensure!(page["totalCount"] == 6_291, "{page}");
    let found = get(&world, &api, "/search", json!({ "text": "kepler-22" })).await?;
    ensure!(
        found.as_array().is_some_and(|all| all.iter().all(|one| one["__typename"].is_string())),
        "{found}"
    );
    let names: Vec<_> =
        found.as_array().context("no list")?.iter().flat_map(|one| one.as_object()).flatten().collect();
    ensure!(names.iter().all(|(key, _)| !key.contains("__alias")), "aliases are renamed back: {found}");
    ensure!(get(&world, &api, "/planet", json!({ "name": "no such planet" })).await?.is_null());
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_parameter_is_refused_free_with_the_nearest_right_name() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = planets(&world).await?;
    let before = recorder.hits();
    for (path, params, words) in [
        ("/planets", json!({ "limt": "5" }), &["limt", "limit"][..]),
        ("/planets", json!({ "limit": "7.0" }), &["limit", "7.0", "whole number"]),
        ("/planets", json!({ "limit": "1e3" }), &["limit", "whole number"]),
        ("/planets", json!({ "limit": "3000000000" }), &["limit", "32"]),
        ("/planets", json!({ "limit": "+7" }), &["limit", "whole number"]),
        ("/planets", json!({ "limit": "" }), &["limit", "whole number"]),
        ("/planets", json!({ "fields": "nme" }), &["nme", "name"]),
        ("/planets", json!({ "fields": "name}{__schema" }), &["fields"]),
        ("/planet", json!({}), &["missing", "name"]),
        ("/rankedPlanets", json!({ "by": "MAS" }), &["by", "MAS", "MASS"]),
        ("/rankedPlanets", json!({ "by": "mass" }), &["by", "MASS"]),
        ("/rankedPlanets", json!({ "by": "MASS", "filter.mas.gt": "1" }), &["filter", "mas", "mass"]),
        ("/rankedPlanets", json!({ "by": "MASS", "filter.mass.gt": "1,5" }), &["filter.mass.gt", "number"]),
        ("/rankedPlanets", json!({ "by": "MASS", "filter.mass.gt": "NaN" }), &["filter.mass.gt", "number"]),
        (
            "/rankedPlanets",
            json!({ "by": "MASS", "filter.controversial": "yes" }),
            &["filter.controversial", "true"],
        ),
        ("/rankedPlanets", json!({ "by": "MASS", "filter": "{\"mass\":1}" }), &["filter.mass"]),
        ("/rankedPlanets", json!({ "by": "MASS", "filter.near": "{}" }), &["ra", "dec"]),
        ("/rankedPlanets", json!({ "by": "MASS", "order": "null" }), &["order"]),
    ] {
        let answer = call(&world, &api, "GET", path, params.clone()).await?;
        refused(&answer, words).with_context(|| format!("{path} {params}"))?;
    }
    ensure!(recorder.hits() == before, "no refused call reached the service");
    ensure!(world.settle_and_check(FUNDS).await?.is_zero(), "a refused call costs nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_is_offered_only_when_its_owner_ticks_it() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = planets(&world).await?;
    let note = json!({ "planet": "11 Com b", "text": "a giant" });
    let answer = call(&world, &api, "POST", "/addNote", note.clone()).await?;
    ensure!(answer.status == StatusCode::NOT_FOUND, "{answer:?}");

    let mut file = super::support::described_at(
        farthing_control::types::SourceKind::Graphql,
        format!("{}/graphql", recorder.url()),
    );
    file.writes = true;
    let api = world.publish(&file).await?;
    let body = json!({
        "api_id_public": api.id.to_string(), "path": "/addNote", "method": "POST", "body": note,
    });
    let answer = world.call(&body).await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");
    ensure!(answer.json()["text"] == "a giant", "{answer:?}");
    let twice = json!({
        "api_id_public": api.id.to_string(), "path": "/addNote", "method": "POST", "body": note,
        "params": { "text": "another" },
    });
    refused(&world.call(&twice).await?, &["text", "twice"])?;
    world.settle_for(PRICE).await
}
