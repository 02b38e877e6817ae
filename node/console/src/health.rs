//! `/healthz` and `/readyz`, as port 3000 has them: for whoever watches over the process, without a log-in.
//!
//! They tell what a node waits for, and nothing of its owner's.

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use farthing_control::endpoint;
use http::{StatusCode, header};

use super::ConsoleState;

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

/// Hands on the node's own word and status.
async fn ready(State(panel): State<ConsoleState>) -> Response {
    match panel.node().exchange(endpoint::Health, Bytes::new()).await {
        Ok(answer) => {
            (answer.status, [(header::CONTENT_TYPE, "application/json")], answer.body).into_response()
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
