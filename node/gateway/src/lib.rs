//! Port 3000: scripts buy calls here.
//!
//! `POST /internal/call` authenticates the caller by its consumer secret, reads the call, buys it, and answers
//! with the service's own status, headers and body. What is not the service's answer is a [`Problem`].
//! [`services`] takes the same calls at an address of each service's own, and a service's documents are free.
//! [`x402`] is a port of its own, at which this node sells to strangers.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use farthing_bridge::headers::codings;
use farthing_control::types::{HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_RECEIPT, HEADER_TIMING};
use farthing_discovery::CatalogError;
use farthing_node::{
    consumer::{BuyError, Consumer, Order, spending::Grant},
    foreign::ForeignCalls,
    handles::Handles,
    secrets::Secrets,
    status::Readiness,
};
use farthing_protocol::{CallId, limits};
use farthing_shared::refused::RefusedCalls;
use serde_json::{Value, json};

mod answer;
pub mod auth;
pub mod call;
mod documents;
pub mod metrics;
mod noted;
mod own_headers;
pub mod problem;
pub mod services;
pub mod x402;

use answer::AnswerReader;
pub use documents::Documents;
use documents::WrittenDocument;
use noted::AskedCall;
use problem::Problem;

/// The most that arrives at a service's own address. A little more than a body, so that it is told what a body may have.
const SERVICE_REQUEST_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX + limits::CALL_HEAD_BYTES_MAX;
/// The most that arrives elsewhere: a body as base64, and the JSON around it.
const REQUEST_BYTES_MAX: usize = limits::REQUEST_BODY_BYTES_MAX.div_ceil(3) * 4 + limits::CALL_HEAD_BYTES_MAX;

/// The one address beside those of calls at which a secret is looked at.
const METRICS: &str = "/metrics";

/// Of the memory for bodies, free documents take one part in so many.
const DOCUMENTS_PART: usize = 4;

/// The parts that the gateway serves from.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub consumer: Consumer,
    pub foreign: ForeignCalls,
    pub secrets: Arc<Secrets>,
    pub readiness: Readiness,
    pub documents: Documents,
    /// The address of this gateway, as far as the node knows: `https://localhost:3000`.
    pub url: String,
    /// True if a proxy on this machine may ask for callers of elsewhere.
    pub is_behind_proxy: bool,
    /// Calls that are answered with a problem.
    pub refused: RefusedCalls,
}

/// The routes of port 3000. Host and origin checks, connection limits and TLS are the accept loop's.
pub fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/internal/call", post(buy))
        .route(
            "/services/{id}/{*path}",
            any(services::buy).layer(DefaultBodyLimit::max(SERVICE_REQUEST_BYTES_MAX)),
        )
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(METRICS, get(metrics::show))
        .route("/openapi.json", get(|| async { Json(&*OPENAPI) }))
        .fallback(|| async { Problem::no_such_route("there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            let mut problem = Problem::no_such_route("this address does not accept that method");
            problem.status = StatusCode::METHOD_NOT_ALLOWED;
            problem
        })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        // Each handler and each of its extractors clones the state.
        .with_state(Arc::new(gateway))
}

/// The address at which a call comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entrance {
    /// As JSON, with the call's method, path and headers in it.
    InJson,
    /// At the service's own address, where these are the request's.
    AtItsAddress,
}

async fn buy(
    State(gateway): State<Arc<Gateway>>,
    auth::Authenticated(grant): auth::Authenticated,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let started = Instant::now();
    let body = match whole(body) {
        Ok(body) => body,
        Err(problem) => return gateway.refuse(AskedCall::by(&grant, started), problem),
    };
    let origin = gateway.origin(&headers, &uri);
    answer(&gateway, grant, &origin, &headers, &body, started).await
}

/// The body of a request, or why it is none. The limit that counts is that of a call's body, at each address.
fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Problem::too_large(format!(
                "the request is too large: the body of a call may have at most {} bytes",
                limits::REQUEST_BODY_BYTES_MAX
            ));
        }
        Problem::malformed(rejection.body_text())
    })
}

/// Reads, buys and answers; `origin` is this gateway as the caller reaches it. Shared with the control socket's `call`.
pub async fn answer(
    gateway: &Gateway,
    grant: Arc<Grant>,
    origin: &str,
    headers: &HeaderMap,
    body: &[u8],
    started: Instant,
) -> Response {
    let asked = AskedCall::by(&grant, started);
    match call::read_order(grant, headers, body) {
        Ok(order) => carry_out(gateway, order, (origin, Entrance::InJson), started).await,
        Err(problem) => gateway.refuse(asked, problem),
    }
}

/// Buys what is for sale, and hands out what is free.
async fn carry_out(
    gateway: &Gateway,
    order: Order,
    (origin, asked): (&str, Entrance),
    started: Instant,
) -> Response {
    let call_id = order.call_id;
    let called = AskedCall::of(&order, started);
    // Buying refuses what is out of scope, and notes it as it notes every call.
    let is_in_scope = order.in_scope().is_ok();
    if gateway.foreign.has(order.service) {
        // It has no listing: its server alone knows what it sells.
        let reader = AnswerReader::of_server(&order, asked);
        let bought =
            gateway.foreign.buy(order).await.map(|bought| answer::bought(bought, &reader, started.elapsed()));
        let answer = bought.map_err(|error| refused(&error, call_id));
        return answer.unwrap_or_else(|problem| gateway.refuse(called, problem.with_call_id(call_id)));
    }
    let document = if is_in_scope { gateway.document(&order, origin).await } else { None };
    let answer = match document {
        Some(document) => document.map(IntoResponse::into_response),
        None => {
            // No listing is looked for on behalf of whoever may not call it.
            let order = if is_in_scope { gateway.as_its_owner_takes_it(order).await } else { order };
            let reader = AnswerReader::of(&order, asked);
            let bought = gateway.consumer.buy(order).await.map_err(|e| gateway.foreign.explain(call_id, e));
            bought
                .map(|bought| answer::bought(bought, &reader, started.elapsed()))
                .map_err(|e| refused(&e, call_id))
        }
    };
    answer.unwrap_or_else(|problem| gateway.refuse(called, problem.with_call_id(call_id)))
}

impl Gateway {
    pub fn of(node: &Handles) -> Self {
        let documents = node.budget.part(node.budget.bytes_max() / DOCUMENTS_PART);
        let gateway = &node.config.gateway;
        Self {
            consumer: node.consumer.clone(),
            foreign: node.foreign.clone(),
            secrets: node.secrets.clone(),
            readiness: node.readiness.clone(),
            documents: Documents::new(documents, node.catalog.clone()),
            url: node.gateway_url(),
            is_behind_proxy: !gateway.tls || !gateway.trusted_proxies.is_empty(),
            refused: node.refused.clone(),
        }
    }

    /// This gateway as a caller reaches it, which may be by another name or port than the node knows.
    fn origin(&self, headers: &HeaderMap, uri: &Uri) -> String {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        // HTTP/2 has no `Host`.
        let host = host.or_else(|| uri.authority().map(Authority::as_str));
        let scheme = self.url.split("://").next().unwrap_or("https");
        host.map_or_else(|| self.url.clone(), |host| format!("{scheme}://{host}"))
    }

    /// The order without what its owner's node may refuse: those of before pass no wish for a packed answer on, and nobody
    /// needs one.
    async fn as_its_owner_takes_it(&self, mut order: Order) -> Order {
        let Some(said) = order.headers.remove("accept-encoding") else { return order };
        let known = self.consumer.service(order.service, &order.grant, order.max_price).await;
        // Whoever is unknown now may have answered this very call before.
        let packs_answers = known.ok().is_none_or(|known| known.api().description().packs_answers);
        let packed = codings(&said).filter(|_| packs_answers);
        order.headers.extend(packed.map(|codings| ("accept-encoding".to_owned(), codings)));
        order
    }

    /// The free document that an order asks for, if it asks for one.
    async fn document(&self, order: &Order, origin: &str) -> Option<Result<WrittenDocument, Problem>> {
        if !farthing_discovery::documents::is_path(&order.path) {
            return None;
        }
        let known = match self.consumer.service(order.service, &order.grant, order.max_price).await {
            Ok(known) => known,
            Err(error) => return Some(Err(refused(&error, order.call_id))),
        };
        let document = farthing_discovery::documents::asked(&known, order.method, &order.path)?;
        let server = services::address(origin, order.service);
        Some(self.documents.write(order, known, document, server).await)
    }
}

fn refused(error: &BuyError, call_id: CallId) -> Problem {
    match error {
        BuyError::BadAnswer { .. }
        | BuyError::Ledger(_)
        | BuyError::Unread(_)
        | BuyError::Service(CatalogError::Store(_))
        | BuyError::NotStored(_) => {
            tracing::error!(%call_id, %error, "a call failed");
        }
        _ => tracing::debug!(%call_id, %error, "a call was not bought"),
    }
    Problem::from(error)
}

async fn ready(State(gateway): State<Arc<Gateway>>) -> Response {
    let health = gateway.readiness.health();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

/// This port, described for generators and readers: the document beside this file, with what each operation answers.
static OPENAPI: LazyLock<Value> = LazyLock::new(|| {
    let problem = json!({
        "description": "The network answered, not the service: see docs/problems.md",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut responses = json!({
        "default": {
            "description": "The service's own answer",
            "headers": {
                (HEADER_CALL_ID): { "schema": { "type": "string", "format": "uuid" } },
                (HEADER_PRICE): { "schema": { "type": "string" } },
                (HEADER_CHARGED): { "schema": { "type": "string" } },
                (HEADER_RECEIPT): { "schema": { "type": "string" } },
                (HEADER_TIMING): { "schema": { "type": "string" } },
            },
        },
    });
    for status in [400, 401, 402, 403, 404, 405, 409, 410, 413, 429, 502, 503, 504] {
        responses[status.to_string()] = problem.clone();
    }
    let mut document: Value = serde_json::from_str(include_str!("openapi.json")).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    for (path, method) in [("/services/{id}/{path}", "get"), ("/internal/call", "post")] {
        document["paths"][path][method]["responses"] = responses.clone();
    }
    document
});
