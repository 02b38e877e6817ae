//! The confirmed planets of other stars over GraphQL, from the NASA Exoplanet Archive.
//!
//! The table is parsed once into a [`Catalog`]. A request's body is read here, its cost is bounded (`cost`), it is
//! executed against the `schema`, whose resolvers look into the catalog, and the outcome is written (`answer`).

mod answer;
mod catalog;
mod cost;
mod refusal;
mod schema;

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use juniper::http::GraphQLRequest;
use serde_json::json;

pub use self::catalog::{Catalog, CatalogError};

use self::answer::{Answer, MediaType};
use self::schema::{Notes, Schema};
use crate::problem::Problem;

/// The archive's composite table of 2 June 2026; see `data/README.md`.
const EMBEDDED_TABLE: &str = include_str!("../data/exoplanets.csv");

/// Eight times the longest query that a gateway writes, and room for its variables.
const BODY_BYTES_MAX: usize = 64 << 10;

/// What the routes share.
struct Service {
    schema: Schema,
    /// The schema as text, written once.
    sdl: String,
    catalog: Arc<Catalog>,
    notes: Arc<Notes>,
}

/// The archive's table, as it is part of this program.
pub fn embedded() -> Result<Catalog, CatalogError> {
    Catalog::parse(EMBEDDED_TABLE.as_bytes())
}

/// The service's routes over a catalog, with no notes yet.
pub fn router(catalog: Catalog) -> Router {
    let schema = schema::schema();
    let sdl = schema.as_sdl();
    let service = Service { schema, sdl, catalog: Arc::new(catalog), notes: Arc::default() };
    Router::new()
        .route("/graphql", post(graphql).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)))
        .route("/schema.graphql", get(sdl_text))
        .route("/healthz", get(health))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::new(service))
}

async fn graphql(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Result<Json<GraphQLRequest>, JsonRejection>,
) -> Response {
    let media_type = MediaType::accepted(&headers);
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return unreadable(&rejection).written(media_type),
    };
    // The largest answers take a large part of a second, which must not hold up other connections.
    match tokio::task::spawn_blocking(move || Answer::to(&request, &service)).await {
        Ok(answer) => answer.written(media_type),
        Err(error) => {
            tracing::error!(%error, "a request could not be executed");
            let message = "this service failed; the request was not answered";
            Answer::failed(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_SERVER_ERROR", message)
                .written(media_type)
        }
    }
}

/// The body is not `{query, variables, operationName}`; a GraphQL client still looks for `errors`.
fn unreadable(rejection: &JsonRejection) -> Answer {
    let (status, code) = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
        _ => (StatusCode::BAD_REQUEST, "BAD_REQUEST"),
    };
    let expected = format!(
        "the body must be JSON of at most {BODY_BYTES_MAX} bytes, {{\"query\": …, \"variables\": …, \
         \"operationName\": …}}, sent as application/json"
    );
    Answer::failed(status, code, &format!("{expected}: {}", rejection.body_text()))
}

async fn sdl_text(State(service): State<Arc<Service>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], service.sdl.clone()).into_response()
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let source =
        json!({ "kind": "snapshot", "name": "NASA Exoplanet Archive, PSCompPars", "date": "2026-06-02" });
    let planets = service.catalog.len();
    Json(json!({ "status": "ok", "planets": planets, "source": source })).into_response()
}

async fn unknown_path() -> Problem {
    let detail = "this service has POST /graphql, and /schema.graphql and /healthz to read";
    Problem::new(StatusCode::NOT_FOUND, "Unknown path", detail)
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let detail = match uri.path() {
        "/graphql" => format!("/graphql takes questions with POST, not {method}"),
        path => format!("{path} can be read with GET, not {method}"),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Wrong method", detail)
}
