//! Port 3000: scripts buy calls here.
//!
//! `POST /internal/call` authenticates the caller by its consumer secret, reads the call, buys it, and answers
//! with the service's own status, headers and body. What is not the service's answer is a [`Problem`].

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use farthing_protocol::limits;
use serde_json::json;

use crate::{
    consumer::{Bought, BuyError, Consumer},
    status::Readiness,
};

pub mod auth;
pub mod call;
pub mod metrics;
pub mod problem;

use auth::Secrets;
use problem::Problem;

/// The JSON around a body adds escapes: a little more than the body itself may arrive.
const REQUEST_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX + limits::CALL_HEAD_BYTES_MAX;

/// What the gateway serves from.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub consumer: Consumer,
    pub secrets: Arc<Secrets>,
    pub readiness: Readiness,
}

/// The routes of port 3000. Host and origin checks, connection limits and TLS are the accept loop's.
pub fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/internal/call", post(buy))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::show))
        .route("/openapi.json", get(|| async { openapi() }))
        .fallback(|| async { Problem::no_such_route("there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            let mut problem = Problem::no_such_route("this address does not have that method");
            problem.status = StatusCode::METHOD_NOT_ALLOWED;
            problem
        })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(gateway)
}

async fn buy(
    State(gateway): State<Gateway>,
    auth::Consumer(secret): auth::Consumer,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let started = Instant::now();
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Problem::too_large(format!("the request has more than {REQUEST_BYTES_MAX} bytes"))
                .into_response();
        }
        Err(rejection) => return Problem::malformed(rejection.body_text()).into_response(),
    };
    answer(&gateway.consumer, &secret, &headers, &body, started).await
}

/// Reads, buys and answers; shared with the control socket's `call`.
pub async fn answer(
    consumer: &Consumer,
    secret: &str,
    headers: &HeaderMap,
    body: &[u8],
    started: Instant,
) -> Response {
    let order = match call::read_order(secret, headers, body) {
        Ok(order) => order,
        Err(problem) => return problem.into_response(),
    };
    let call_id = order.call_id;
    match consumer.buy(order).await {
        Ok(bought) => bought_response(bought, started.elapsed()),
        Err(error) => {
            log(&error);
            Problem::from(&error).with_call_id(call_id).into_response()
        }
    }
}

/// The service's answer, with what it cost and where the time went.
fn bought_response(bought: Bought, total: Duration) -> Response {
    let status = StatusCode::from_u16(bought.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, bought.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in &bought.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    let timing = bought.timing;
    let gateway = total.saturating_sub(timing.network).saturating_sub(timing.funding);
    let network = timing.network.saturating_sub(timing.owner);
    let owner = timing.owner.saturating_sub(timing.upstream);
    let millis = |duration: Duration| {
        let micros = duration.as_micros();
        format!("{}.{:03}", micros / 1000, micros % 1000)
    };
    let server_timing = format!(
        "gateway;dur={}, funding;dur={}, network;dur={}, owner;dur={}, upstream;dur={}",
        millis(gateway),
        millis(timing.funding),
        millis(network),
        millis(owner),
        millis(timing.upstream),
    );
    for (name, value) in [
        ("x-farthing-call-id", bought.call_id.to_string()),
        ("x-farthing-price-usdc", bought.price.to_string()),
        ("x-farthing-charged", bought.charged.to_string()),
        ("x-farthing-receipt", format!("0x{}", hex::encode(bought.receipt))),
        ("server-timing", server_timing),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn log(error: &BuyError) {
    match error {
        BuyError::BadAnswer { .. } | BuyError::LedgerClosed(_) | BuyError::NotStored(_) => {
            tracing::error!(%error, "a call failed");
        }
        _ => tracing::debug!(%error, "a call was not bought"),
    }
}

async fn ready(State(gateway): State<Gateway>) -> Response {
    let waiting_for = gateway.readiness.waiting_for();
    let status = if waiting_for.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({ "ready": waiting_for.is_empty(), "waiting_for": waiting_for });
    (status, axum::Json(body)).into_response()
}

/// This port, described for generators and readers.
fn openapi() -> Response {
    let problem = json!({
        "description": "The answer is the network's, not the service's: see docs/problems.md",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut responses = json!({
        "default": {
            "description": "The service's own answer",
            "headers": {
                "x-farthing-call-id": { "schema": { "type": "string", "format": "uuid" } },
                "x-farthing-price-usdc": { "schema": { "type": "string" } },
                "x-farthing-charged": { "schema": { "type": "string" } },
                "x-farthing-receipt": { "schema": { "type": "string" } },
                "server-timing": { "schema": { "type": "string" } },
            },
        },
    });
    for status in [400, 401, 402, 403, 404, 405, 409, 413, 429, 502, 503, 504] {
        responses[status.to_string()] = problem.clone();
    }
    let texts =
        json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } });
    axum::Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "Farthing gateway", "version": env!("CARGO_PKG_VERSION") },
        "paths": {
            "/internal/call": {
                "post": {
                    "operationId": "call",
                    "summary": "Buy one call of a service",
                    "security": [{ "secret": [] }],
                    "requestBody": {
                        "required": true,
                        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Call" } } },
                    },
                    "responses": responses,
                },
            },
        },
        "components": {
            "securitySchemes": { "secret": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Call": {
                    "type": "object",
                    "required": ["api_id_public", "path", "method"],
                    "additionalProperties": false,
                    "properties": {
                        "api_id_public": { "type": "string", "format": "uuid" },
                        "path": { "type": "string", "examples": ["/v1/earthquakes/recent"] },
                        "method": { "type": "string", "examples": ["GET"] },
                        "params": texts,
                        "headers": texts,
                        "body": { "description": "JSON, or a string that is sent as text" },
                        "max_price": { "type": "string", "description": "In USDC", "examples": ["0.01"] },
                        "call_id": {
                            "type": "string",
                            "maxLength": 128,
                            "description": "Repeats with the same id are charged once; `Idempotency-Key` is the same",
                        },
                    },
                },
                "Problem": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "next", "charged"],
                    "properties": {
                        "type": { "type": "string" },
                        "title": { "type": "string" },
                        "status": { "type": "integer" },
                        "detail": { "type": "string" },
                        "next": { "type": "string" },
                        "charged": {
                            "type": ["boolean", "null"],
                            "description": "null: not known yet; repeat the call with the same call_id",
                        },
                        "call_id": { "type": "string", "format": "uuid" },
                    },
                },
            },
        },
    }))
    .into_response()
}
