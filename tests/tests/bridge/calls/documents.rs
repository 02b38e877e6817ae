//! What a service offers is free to read.

use anyhow::{Context, Result, ensure};
use farthing_tests::world::{FUNDS, World};
use reqwest::StatusCode;
use serde_json::json;

use super::support::{call, planets, refused};

#[tokio::test(flavor = "multi_thread")]
async fn openapi_and_schema_of_a_service_are_free_and_reach_nobody() -> Result<()> {
    let world = World::start().await?;
    let (recorder, api) = planets(&world).await?;
    let before = recorder.hits();
    for (params, version) in [(json!({}), "3.1.0"), (json!({ "version": "3.0" }), "3.0.3")] {
        let answer = call(&world, &api, "GET", "/openapi.json", params).await?;
        ensure!(answer.status == StatusCode::OK, "{answer:?}");
        ensure!(
            answer.header("x-farthing-charged") == "0" && answer.header("content-type") == "application/json"
        );
        let document = answer.json();
        ensure!(document["openapi"] == version, "{}", document["openapi"]);
        let server = document["servers"][0]["url"].as_str().context("no server")?;
        let gateway = world.consumer.status().await?.gateway_url;
        ensure!(server == format!("{gateway}/services/{}", api.id), "{server}");
        ensure!(document["paths"]["/planets"]["get"]["parameters"].is_array(), "{document}");
        ensure!(document["paths"]["/addNote"].is_null(), "what is not offered is not described");
    }
    let schema = call(&world, &api, "GET", "/schema.graphql", json!({})).await?;
    let schema = String::from_utf8_lossy(&schema.body).into_owned();
    ensure!(schema.contains("type Planet") && !schema.contains("addNote"), "{schema}");

    let url = format!("{}/services/{}/openapi.json", world.consumer.status().await?.gateway_url, api.id);
    let direct = world.client().get(&url).bearer_auth(&world.secret).send().await?;
    ensure!(direct.status() == StatusCode::OK, "{direct:?}");
    refused(
        &call(&world, &api, "GET", "/openapi.json", json!({ "version": "2" })).await?,
        &["version", "3.1"],
    )?;
    refused(&call(&world, &api, "GET", "/openapi.json", json!({ "v": "2" })).await?, &["version"])?;
    ensure!(recorder.hits() == before);
    ensure!(world.settle_and_check(FUNDS).await?.is_zero());
    Ok(())
}
