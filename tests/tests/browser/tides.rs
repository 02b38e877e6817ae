//! A server that somebody could have, with its description: what is offered in these tests.

use anyhow::Result;
use axum::{
    Json, Router,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use farthing_tests::upstream::serve;
use serde_json::{Value, json};

/// What registering begins with.
pub const NAME: &str = "Harbour tides";
pub const SUMMARY: &str = "High and low water of North Sea harbours, a week ahead";

/// Heights in metres above chart datum.
const TIDES: [(&str, &str, f64); 6] = [
    ("high", "2026-11-22T04:12:00Z", 3.1),
    ("low", "2026-11-22T10:31:00Z", 0.4),
    ("high", "2026-11-22T16:40:00Z", 3.3),
    ("low", "2026-11-22T22:58:00Z", 0.3),
    ("high", "2026-11-23T05:06:00Z", 3.2),
    ("low", "2026-11-23T11:24:00Z", 0.4),
];

/// Starts the server, which ends with the test, and says where it is.
pub async fn start() -> Result<String> {
    let router = Router::new()
        .route("/v1/harbours", get(|| async { Json(harbours()) }))
        .route("/v1/tides/{harbour}", get(tides_of));
    serve(router).await
}

async fn tides_of(Path(harbour): Path<String>) -> Response {
    if harbours().as_array().is_some_and(|all| all.iter().any(|one| one["id"] == harbour.as_str())) {
        Json(tides()).into_response()
    } else {
        (StatusCode::NOT_FOUND, Json(json!({ "error": "no such harbour" }))).into_response()
    }
}

fn harbours() -> Value {
    json!([
        { "id": "lowestoft", "name": "Lowestoft", "country": "GB" },
        { "id": "ijmuiden", "name": "IJmuiden", "country": "NL" },
        { "id": "esbjerg", "name": "Esbjerg", "country": "DK" },
    ])
}

fn tides() -> Value {
    TIDES.map(|(kind, time, height)| json!({ "kind": kind, "time": time, "height_m": height })).into()
}

/// The server's OpenAPI description.
pub fn document(title: &str, url: &str) -> Value {
    let answer = |schema: Value, example: Value| {
        json!({ "200": { "description": "Fine", "content": { "application/json": {
            "schema": { "type": "array", "items": schema }, "example": example } } } })
    };
    let text = json!({ "type": "string" });
    json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": "1.4", "description":
            "Predictions of **high and low water**, in metres above chart datum.\n\n\
             - computed from the harmonic constants of each gauge\n- a week ahead, renewed every morning\n\n\
             Not for navigation." },
        "servers": [{ "url": url }],
        "paths": {
            "/v1/harbours": { "get": {
                "summary": "Harbours with a gauge",
                "responses": answer(
                    json!({ "type": "object", "properties": { "id": text, "name": text, "country": text } }),
                    harbours(),
                ),
            } },
            "/v1/tides/{harbour}": { "get": {
                "summary": "High and low water of a harbour",
                "parameters": [
                    { "name": "harbour", "in": "path", "required": true, "example": "ijmuiden",
                      "description": "Its id in the list of harbours", "schema": text },
                    { "name": "days", "in": "query", "description": "How far ahead",
                      "schema": { "type": "integer", "minimum": 1, "maximum": 7, "default": 2 } },
                ],
                "responses": answer(
                    json!({ "type": "object", "properties": {
                        "kind": { "type": "string", "enum": ["high", "low"] }, "time": text,
                        "height_m": { "type": "number" } } }),
                    tides(),
                ),
            } },
        },
    })
}
