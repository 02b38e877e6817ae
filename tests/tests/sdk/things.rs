//! A service that keeps what it is given, and gives it back: whether clients write and read exactly is seen here.

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use farthing_control::types::{Charge, ServiceFile, SourceFile, SourceKind};
use farthing_tests::upstream::serve;
use farthing_values::Usdc;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub const DESCRIPTION: &str = include_str!("../../sdk/things.json");
pub const PRICE: Usdc = Usdc::from_micros(4_000);
/// More than a line that is cut lets through.
const LONG_CHARS: usize = 20_000;
/// More than any reader follows that takes a call of its own for each.
const DEPTH: usize = 100_000;

type Kept = Arc<Mutex<Vec<Value>>>;

/// The running service; it ends with the test's runtime.
#[derive(Debug)]
pub struct Things {
    url: String,
    kept: Kept,
}

impl Things {
    /// `POST /things` answers with what it got; `GET /things/long` with a long thing and `deep` with lists within lists,
    /// and every other one is missing.
    pub async fn start() -> Result<Self> {
        let kept = Kept::default();
        let router = Router::new()
            .route("/things", post(keep))
            .route("/things/{id}", get(thing))
            .with_state(Arc::clone(&kept));
        Ok(Self { url: serve(router).await?, kept })
    }

    /// As its owner publishes it: what is missing is paid for, too.
    pub fn service_file(&self) -> ServiceFile {
        let source = SourceFile::given(SourceKind::Openapi, DESCRIPTION.to_owned(), String::new());
        ServiceFile {
            name: "Things".to_owned(),
            upstream: self.url.clone(),
            charge: Charge::Answered,
            writes: true,
            source: Some(source),
            ..ServiceFile::priced(PRICE)
        }
    }

    /// What arrived with this label.
    pub fn kept(&self, label: &str) -> Vec<Value> {
        let kept = self.kept.lock();
        kept.iter().filter(|thing| thing["label"] == label).cloned().collect()
    }
}

/// The thing that the client in this language has to send: null where null was meant, nothing where nothing was, and
/// every digit.
pub fn exact(language: &str) -> Value {
    json!({
        "label": language,
        "count": 9_007_199_254_740_993_u64,
        "huge": u64::MAX,
        "nullable": null,
        "both": null,
        "pet": { "kind": "dog", "name": "Rex" },
        "loose": 7,
    })
}

async fn keep(State(kept): State<Kept>, body: Bytes) -> Response {
    let Ok(thing) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    kept.lock().push(thing);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn thing(Path(id): Path<String>) -> Response {
    if id == "deep" {
        let body = ["[".repeat(DEPTH), "]".repeat(DEPTH)].concat();
        return ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    if id != "long" {
        return (StatusCode::NOT_FOUND, axum::Json(json!({ "error": "no such thing" }))).into_response();
    }
    axum::Json(json!({ "label": "x".repeat(LONG_CHARS), "count": 1, "nullable": null })).into_response()
}
