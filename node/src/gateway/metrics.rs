//! `/metrics`: what the node counts, in the Prometheus text format.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use super::Gateway;

/// One line per fact. Names and units are listed in `docs/metrics.md`.
pub async fn show(State(gateway): State<Gateway>) -> Response {
    let text: String = gateway
        .readiness
        .metrics()
        .into_iter()
        .map(|(name, help, value)| format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"))
        .collect();
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
