//! The earthquakes service as its clients meet it: real servers, real sockets, the real binary.

#[path = "../common/service.rs"]
mod service;
mod support;

use std::time::Duration;

use farthing_demo_services::earthquakes::{self, Feed};
use serde_json::Value;

use service::{Server, get, get_json};
use support::{feed_of, post, wait_until};

async fn earthquakes() -> Server {
    Server::start(earthquakes::router(earthquakes::embedded().unwrap().subscribe())).await
}

fn times(answer: &Value) -> Vec<i64> {
    let features = answer["features"].as_array().unwrap();
    features.iter().map(|feature| feature["properties"]["time"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn the_newest_strong_earthquakes_come_first_in_the_surveys_own_shape() {
    let server = earthquakes().await;
    let answer =
        get_json(&server.url("/v1/earthquakes/recent?format=geojson&minmagnitude=4.5&limit=5")).await;

    assert_eq!(answer["type"], "FeatureCollection");
    assert_eq!(answer["metadata"]["count"], 5);
    assert_eq!(answer["metadata"]["title"], "USGS All Earthquakes, Past Week");
    let times = times(&answer);
    assert_eq!(times.len(), 5);
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    for feature in answer["features"].as_array().unwrap() {
        assert!(feature["properties"]["mag"].as_f64().unwrap() >= 4.5);
        assert!(feature["properties"]["place"].is_string());
        assert_eq!(feature["geometry"]["coordinates"].as_array().unwrap().len(), 3);
    }
    assert_eq!(answer["bbox"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn an_answer_says_that_it_was_made_from_the_embedded_week() {
    let server = earthquakes().await;
    let source = &get_json(&server.url("/v1/earthquakes/recent?limit=1")).await["metadata"]["source"];
    assert_eq!(source["kind"], "snapshot");
    assert_eq!(source["since"], 1_517_968_154_000_i64);
    assert_eq!(get_json(&server.url("/healthz")).await["events"], 1707);
}

#[tokio::test]
async fn every_event_of_the_survey_is_served_unchanged() {
    let server = earthquakes().await;
    let answer = get_json(&server.url("/v1/earthquakes/recent?limit=2000")).await;
    let published: Value = serde_json::from_str(include_str!("../../data/earthquakes.geojson")).unwrap();
    assert_eq!(answer["features"], published["features"]);
    assert_eq!(answer["bbox"], published["bbox"]);
}

#[tokio::test]
async fn time_and_place_narrow_an_answer() {
    let server = earthquakes().await;
    let query = "starttime=2018-02-06&endtime=2018-02-06T23:59:59.999Z\
                 &minlatitude=23&maxlatitude=25&minlongitude=121&maxlongitude=122.5&limit=2000";
    let answer = get_json(&server.url(&format!("/v1/earthquakes/recent?{query}"))).await;
    let features = answer["features"].as_array().unwrap();
    assert!(!features.is_empty());
    for feature in features {
        assert!(
            (1_517_875_200_000..1_517_961_600_000).contains(&feature["properties"]["time"].as_i64().unwrap())
        );
        assert!(feature["properties"]["place"].as_str().unwrap().contains("Taiwan"));
    }
}

#[tokio::test]
async fn a_limit_of_one_is_the_newest_and_nothing_matching_is_an_empty_collection() {
    let server = earthquakes().await;
    let newest = get_json(&server.url("/v1/earthquakes/recent?limit=1")).await;
    assert_eq!(newest["features"][0]["id"], "ci37868143");
    let none = get_json(&server.url("/v1/earthquakes/recent?minmagnitude=9.9")).await;
    assert_eq!(none["metadata"]["count"], 0);
    assert_eq!(none["features"], serde_json::json!([]));
    assert_eq!(none.get("bbox"), None);
}

#[tokio::test]
async fn one_event_is_found_by_its_id() {
    let server = earthquakes().await;
    let event = get_json(&server.url("/v1/earthquakes/ci37868143")).await;
    assert_eq!(event["properties"]["place"], "4km W of Castaic, CA");
    let (status, problem) = get(&server.url("/v1/earthquakes/us0000")).await;
    assert_eq!((status, &problem["title"]), (404, &Value::from("Unknown event")));
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused_with_the_right_name() {
    let server = earthquakes().await;
    let (status, problem) = get(&server.url("/v1/earthquakes/recent?minmag=4.5")).await;
    assert_eq!(status, 400);
    assert_eq!(problem["status"], 400);
    assert_eq!(problem["parameter"], "minmag");
    assert_eq!(problem["did_you_mean"], "minmagnitude");
    assert_eq!(problem["detail"], "there is no parameter `minmag`; did you mean `minmagnitude`?");
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_say_what_there_is() {
    let server = earthquakes().await;
    let (status, problem) = get(&server.url("/v2/earthquakes")).await;
    assert_eq!(status, 404);
    assert!(problem["detail"].as_str().unwrap().contains("/v1/earthquakes/recent"));

    let posted = post(&server.url("/v1/earthquakes/recent")).await;
    assert_eq!(posted.status(), 405);
    assert!(posted.headers()["allow"].to_str().unwrap().contains("GET"));
    assert_eq!(posted.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn the_api_description_covers_every_route_that_sells() {
    let server = earthquakes().await;
    let document = get_json(&server.url("/openapi.json")).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/healthz", "/v1/earthquakes/recent", "/v1/earthquakes/{id}"]);
    assert_references_resolve(&document, &document);
}

fn assert_references_resolve(document: &Value, part: &Value) {
    if let Some(reference) = part.get("$ref").and_then(Value::as_str) {
        let pointer = reference.strip_prefix('#').expect("references stay inside the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    match part {
        Value::Object(fields) => fields.values().for_each(|field| assert_references_resolve(document, field)),
        Value::Array(items) => items.iter().for_each(|item| assert_references_resolve(document, item)),
        _ => {}
    }
}

#[tokio::test]
async fn a_live_feed_replaces_the_week_and_outlives_its_own_failure() {
    let feed = feed_of("nn1", 1_700_000_000_000).await;
    let editions = earthquakes::embedded().unwrap();
    let server = Server::start(earthquakes::router(editions.subscribe())).await;
    let url = feed.server.url("/feed.geojson?key=secret").parse().unwrap();
    let following = tokio::spawn(Feed::new(url, Duration::from_millis(20)).unwrap().follow(editions));
    let recent = server.url("/v1/earthquakes/recent");

    let live = wait_until(&recent, |answer| answer["metadata"]["source"]["kind"] == "feed").await;
    assert_eq!(live["features"][0]["id"], "nn1");
    assert_eq!(live["metadata"]["source"]["url"], feed.server.url("/feed.geojson"), "without its key");
    assert_eq!(live["metadata"]["count"], 1);

    // Unchanged data is asked for conditionally, and seen to be current.
    let since = live["metadata"]["source"]["since"].as_i64().unwrap();
    let checked = live["metadata"]["source"]["checked"].as_i64().unwrap();
    let current =
        wait_until(&recent, |answer| answer["metadata"]["source"]["checked"].as_i64() > Some(checked)).await;
    assert_eq!(current["metadata"]["source"]["since"].as_i64(), Some(since));
    assert!(feed.not_modified() > 0);

    feed.publish("nn2", 1_700_000_100_000);
    wait_until(&recent, |answer| answer["features"][0]["id"] == "nn2").await;

    feed.withdraw();
    let failing = wait_until(&recent, |answer| answer["metadata"]["source"]["failing_since"].is_i64()).await;
    assert_eq!(failing["features"][0]["id"], "nn2", "the last good data stays");

    feed.publish("nn3", 1_700_000_200_000);
    let back = wait_until(&recent, |answer| answer["features"][0]["id"] == "nn3").await;
    assert_eq!(back["metadata"]["source"].get("failing_since"), None);

    feed.server.stop().await;
    let gone = wait_until(&recent, |answer| answer["metadata"]["source"]["failing_since"].is_i64()).await;
    assert_eq!(gone["features"][0]["id"], "nn3");
    following.abort();
}

#[tokio::test]
async fn a_feed_that_answers_nonsense_changes_nothing() {
    let feed = feed_of("nn1", 1_700_000_000_000).await;
    let editions = earthquakes::embedded().unwrap();
    let server = Server::start(earthquakes::router(editions.subscribe())).await;
    let url = feed.server.url("/feed.geojson").parse().unwrap();
    let following = tokio::spawn(Feed::new(url, Duration::from_millis(20)).unwrap().follow(editions));
    let recent = server.url("/v1/earthquakes/recent");
    wait_until(&recent, |answer| answer["features"][0]["id"] == "nn1").await;

    for nonsense in ["<html>be right back</html>", "", "{}", r#"{"features":[{}]}"#] {
        feed.publish_text(nonsense);
        let failing =
            wait_until(&recent, |answer| answer["metadata"]["source"]["failing_since"].is_i64()).await;
        assert_eq!(failing["features"][0]["id"], "nn1", "after {nonsense:?}");
        feed.publish("nn1", 1_700_000_000_000);
        wait_until(&recent, |answer| answer["metadata"]["source"].get("failing_since").is_none()).await;
    }
    following.abort();
}

#[test]
fn the_program_names_its_port_answers_and_ends_cleanly_on_sigterm() {
    service::assert_names_its_port_answers_and_ends(env!("CARGO_BIN_EXE_earthquakes"));
}

#[test]
fn a_taken_port_is_reported_with_what_to_do() {
    service::assert_reports_a_taken_port(env!("CARGO_BIN_EXE_earthquakes"));
}
