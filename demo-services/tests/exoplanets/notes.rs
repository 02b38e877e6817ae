//! Notes: the only thing that clients can change.

use serde_json::{Value, json};

use super::support::Exoplanets;

const ADD: &str = "mutation($planet: String!, $text: String!) { addNote(planet: $planet, text: $text) {
    id text planet { name notes { text } }
} }";

async fn add(service: &Exoplanets, planet: &str, text: &str) -> Value {
    service.ask_with(ADD, json!({ "planet": planet, "text": text })).await["addNote"].take()
}

/// Code and message of a note that is refused.
async fn refused(service: &Exoplanets, planet: &str, text: &str) -> (Value, String) {
    let variables = json!({ "planet": planet, "text": text });
    let body = service.request(&json!({ "query": ADD, "variables": variables })).await.body;
    let error = &body["errors"][0];
    (error["extensions"]["code"].clone(), error["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_note_is_kept_with_its_planet_until_it_is_removed() {
    let service = Exoplanets::start().await;
    let note = add(&service, "11 Com b", "  \u{1fa90} giant \n").await;
    assert_eq!(note["text"], "\u{1fa90} giant");
    assert_eq!(note["planet"], json!({ "name": "11 Com b", "notes": [{ "text": "\u{1fa90} giant" }] }));
    let second = add(&service, "11 Com b", "again").await;
    assert_ne!(second["id"], note["id"]);

    let of_planet =
        r#"{ planet(name: "11 Com b") { notes { id } } other: planet(name: "14 Her b") { notes { id } } }"#;
    let both = json!({ "planet": { "notes": [{ "id": note["id"] }, { "id": second["id"] }] }, "other": { "notes": [] } });
    assert_eq!(service.ask(of_planet).await, both);

    let remove = "mutation($id: ID!) { removeNote(id: $id) { text } }";
    let removed = service.ask_with(remove, json!({ "id": note["id"] })).await;
    assert_eq!(removed["removeNote"]["text"], note["text"]);
    assert_eq!(service.ask(of_planet).await["planet"]["notes"], json!([{ "id": second["id"] }]));
    let again = format!("mutation {{ removeNote(id: {}) {{ id }} }}", note["id"]);
    assert_eq!(service.refusal(&again).await.0, "NOT_FOUND");
}

#[tokio::test]
async fn notes_are_forgotten_when_the_service_is_restarted() {
    let service = Exoplanets::start().await;
    add(&service, "11 Com b", "remember me").await;
    service.server.stop().await;
    let restarted = Exoplanets::start().await;
    let planet = restarted.ask(r#"{ planet(name: "11 Com b") { notes { id } } }"#).await;
    assert_eq!(planet["planet"]["notes"], json!([]));
}

#[tokio::test]
async fn a_note_has_a_planet_and_from_one_to_five_hundred_characters() {
    let service = Exoplanets::start().await;
    assert_eq!(refused(&service, "11 Com z", "text").await.0, "NOT_FOUND");
    for text in ["", " \n ", &"ö".repeat(501)] {
        let (code, message) = refused(&service, "11 Com b", text).await;
        assert_eq!(code, "BAD_USER_INPUT");
        assert!(message.contains("from 1 to 500 characters"), "{message}");
    }
    add(&service, "11 Com b", "ö").await;
    assert_eq!(add(&service, "11 Com b", &"ö".repeat(500)).await["text"], "ö".repeat(500));
}

#[tokio::test]
async fn a_planet_has_twenty_notes_and_the_service_a_thousand() {
    let service = Exoplanets::start().await;
    for _ in 0..20 {
        add(&service, "11 Com b", "one of twenty").await;
    }
    let (code, message) = refused(&service, "11 Com b", "one too many").await;
    assert_eq!(code, "CONFLICT");
    assert!(message.contains("11 Com b already has 20 notes"), "{message}");

    let names = service.ask("{ planets(limit: 51) { name } }").await["planets"].take();
    let others = names.as_array().unwrap().iter().map(|planet| planet["name"].as_str().unwrap());
    for planet in others.filter(|name| *name != "11 Com b").take(49) {
        let twenty: String =
            (0..20).map(|note| format!("n{note}: addNote(planet: $p, text: \"x\") {{ id }} ")).collect();
        service.ask_with(&format!("mutation($p: String!) {{ {twenty} }}"), json!({ "p": planet })).await;
    }
    let last = names[50]["name"].as_str().unwrap();
    let (code, message) = refused(&service, last, "one too many").await;
    assert_eq!((code, message.contains("1000 notes")), (json!("CONFLICT"), true), "{message}");

    service.ask(r#"mutation { removeNote(id: "note:0") { id } }"#).await;
    add(&service, last, "room again").await;
}
