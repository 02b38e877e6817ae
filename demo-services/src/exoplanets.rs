//! The confirmed planets of other stars over GraphQL, from the NASA Exoplanet Archive.
//!
//! The table is parsed once into a [`PlanetCatalog`]. A request's body is read here, its cost is bounded (`cost`), it is
//! executed against the `schema`, whose resolvers look into the catalog, and the outcome is written (`answer`).

mod answer;
mod catalog;
mod cost;
mod discovery_method;
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
use tokio::sync::Semaphore;

pub use self::catalog::{PlanetCatalog, PlanetCatalogError};

use self::answer::{GraphqlAnswer, MediaType};
use self::schema::{Notes, Schema};
use crate::problem::Problem;

/// The archive's composite table of 2 June 2026; see `data/README.md`.
const EMBEDDED_TABLE: &str = include_str!("../data/exoplanets.csv");

/// Far more than a person writes, and room for the variables of a program.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The largest answer takes 40 MB while it is made. More at a time would not be faster, and need more memory.
const EXECUTING_MAX: usize = 8;

/// The state that the routes share.
struct Service {
    schema: Schema,
    /// The schema as text, written once.
    sdl: String,
    catalog: Arc<PlanetCatalog>,
    notes: Arc<Notes>,
    /// One permit for each request that is being executed.
    executing: Arc<Semaphore>,
}

/// The archive's table, as it is part of this program.
pub fn embedded() -> Result<PlanetCatalog, PlanetCatalogError> {
    PlanetCatalog::parse(EMBEDDED_TABLE.as_bytes())
}

/// The service's routes over a catalog, with no notes yet.
pub fn router(catalog: PlanetCatalog) -> Router {
    let schema = schema::schema();
    let sdl = schema.as_sdl();
    let service = Service {
        schema,
        sdl,
        catalog: Arc::new(catalog),
        notes: Arc::default(),
        executing: Arc::new(Semaphore::new(EXECUTING_MAX)),
    };
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
    tracing::debug!(target: "graphql", "received {} with {}", request.query, variables(&request));
    let permit = Arc::clone(&service.executing).acquire_owned().await;
    // The largest answers take a tenth of a second, which must not hold up other connections. The permit goes along,
    // because the work is finished even when the client has gone.
    let answer = move || {
        let _permit = permit.expect("the semaphore is never closed");
        GraphqlAnswer::to(&request, &service)
    };
    match tokio::task::spawn_blocking(answer).await {
        Ok(answer) => answer.written(media_type),
        Err(error) => {
            tracing::error!(%error, "a request could not be executed");
            let message = "this service failed; the request was not answered";
            GraphqlAnswer::failed(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_SERVER_ERROR", message)
                .written(media_type)
        }
    }
}

fn variables(request: &GraphQLRequest) -> String {
    request
        .variables
        .as_ref()
        .and_then(|given| serde_json::to_string(given).ok())
        .unwrap_or_else(|| "{}".to_owned())
}

/// The body is not `{query, variables, operationName}`; a GraphQL client still looks for `errors`.
fn unreadable(rejection: &JsonRejection) -> GraphqlAnswer {
    let (status, code) = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
        _ => (StatusCode::BAD_REQUEST, "BAD_REQUEST"),
    };
    let expected = format!(
        "the body must be JSON of at most {BODY_BYTES_MAX} bytes, {{\"query\": …, \"variables\": …, \
         \"operationName\": …}}, sent as application/json"
    );
    GraphqlAnswer::failed(status, code, &format!("{expected}: {}", rejection.body_text()))
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
        "/graphql" => format!("/graphql accepts queries with POST, not {method}"),
        path => format!("{path} can be read with GET, not {method}"),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Wrong method", detail)
}
