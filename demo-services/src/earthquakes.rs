//! Recent earthquakes, as the U.S. Geological Survey publishes them.
//!
//! An [`Edition`] is parsed once, from the embedded week or from a [`Feed`], and kept in memory with each event's
//! own JSON beside the few fields that queries look at. A request then reads its query (`query`), filters the
//! newest edition (`catalog`) and joins the stored JSON into one answer (`answer`): no parsing, no I/O.

mod answer;
mod catalog;
mod feed;
mod query;
mod time;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::sync::watch;

pub use self::answer::{Edition, Source};
pub use self::catalog::{EarthquakeCatalog, EarthquakeCatalogError};
pub use self::feed::{Feed, FeedError};

use self::query::EarthquakeQuery;
use crate::problem::Problem;

/// 31 January to 7 February 2018; see `data/README.md`.
const EMBEDDED_WEEK: &str = include_str!("../data/earthquakes.geojson");

/// This service's API description, OpenAPI 3.1.
const OPENAPI: &str = include_str!("earthquakes/openapi.json");

type Editions = watch::Receiver<Arc<Edition>>;

/// The embedded week as the first edition; a [`Feed`] may send newer ones.
pub fn embedded() -> Result<watch::Sender<Arc<Edition>>, EarthquakeCatalogError> {
    let catalog = EarthquakeCatalog::parse(EMBEDDED_WEEK.as_bytes())?;
    Ok(watch::Sender::new(Arc::new(Edition::embedded(catalog))))
}

/// The service's routes over the newest of `editions`.
pub fn router(editions: Editions) -> Router {
    Router::new()
        .route("/v1/earthquakes/recent", get(recent))
        .route("/v1/earthquakes/{id}", get(event))
        .route("/openapi.json", get(openapi))
        .route("/healthz", get(health))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(editions)
}

async fn recent(State(editions): State<Editions>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let query = EarthquakeQuery::parse(query.as_deref().unwrap_or_default())?;
    let edition = Arc::clone(&editions.borrow());
    Ok(json_text(edition.answer(&query)))
}

async fn event(State(editions): State<Editions>, Path(id): Path<String>) -> Result<Response, Problem> {
    let edition = Arc::clone(&editions.borrow());
    let event = edition.catalog.find(&id).ok_or_else(|| {
        let detail = "no event has that id; see `features[].id` of /v1/earthquakes/recent";
        Problem::new(StatusCode::NOT_FOUND, "Unknown event", detail)
    })?;
    Ok(json_text(event.json.get().to_owned()))
}

async fn openapi() -> Response {
    json_text(OPENAPI.to_owned())
}

async fn health(State(editions): State<Editions>) -> Response {
    let edition = Arc::clone(&editions.borrow());
    axum::Json(json!({ "status": "ok", "events": edition.catalog.len(), "source": edition.source }))
        .into_response()
}

async fn unknown_path() -> Problem {
    let detail = "this service has /v1/earthquakes/recent, /v1/earthquakes/{id}, /openapi.json and /healthz";
    Problem::new(StatusCode::NOT_FOUND, "Unknown path", detail)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} can be read with GET, not {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Wrong method", detail)
}

fn json_text(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response()
}
