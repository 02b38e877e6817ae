//! `/metrics`: what the node counts, in the Prometheus text format, for this machine or with the secret.

use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use farthing_serve::ClientAddress;

use super::{Gateway, auth, problem::Problem};

/// One line per fact, with its meaning above it.
pub async fn show(
    State(gateway): State<Gateway>,
    Extension(client): Extension<ClientAddress>,
    secret: Result<auth::Consumer, Problem>,
) -> Response {
    if let Err(problem) = secret.as_ref()
        && !client.0.ip().to_canonical().is_loopback()
    {
        return problem.clone().into_response();
    }
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
