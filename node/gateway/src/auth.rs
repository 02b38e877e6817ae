//! Authentication of callers, by the consumer secret that they present.

use std::{sync::Arc, time::Instant};

use axum::{extract::FromRequestParts, http::request::Parts};
use farthing_node::consumer::spending::Grant;
use farthing_serve::Desk;

use super::{Gateway, METRICS, noted::AskedCall, own_headers, problem::Problem};

/// Neither of two counts, whichever is right.
const TWICE_NEXT: &str = "Send exactly one `Authorization: Bearer <CONSUMER_SECRET>` header.";

/// Proof that the caller presented a consumer secret, with what it may do.
#[derive(Clone, Debug)]
pub struct Authenticated(pub Arc<Grant>);

impl FromRequestParts<Arc<Gateway>> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Problem> {
        let is_call = parts.uri.path() != METRICS;
        // Counted and nothing more: whoever has no secret can send as many of these as it likes.
        let grant = grant_of(parts, gateway).inspect_err(|_| {
            if is_call {
                gateway.count_wrong_secret();
            }
        })?;
        // Whoever has one secret, however limited, leaves connections to those who have others.
        if parts.extensions.get::<Desk>().is_some_and(|desk| !desk.works_for(&grant.name)) {
            let problem = Problem::no_connection();
            gateway.note(AskedCall::by(&grant, Instant::now()), &problem);
            return Err(problem);
        }
        Ok(Self(grant))
    }
}

/// The grant of the presented secret.
fn grant_of(parts: &Parts, gateway: &Gateway) -> Result<Arc<Grant>, Problem> {
    let header = own_headers::only(&parts.headers, "Authorization")
        .map_err(|twice| Problem { next: TWICE_NEXT, ..Problem::unauthorized(twice.detail) })?;
    let header = header.ok_or_else(|| Problem::unauthorized("the header `Authorization` is missing"))?;
    let secret = header
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim())
        .ok_or_else(|| Problem::unauthorized("`Authorization` must be `Bearer <CONSUMER_SECRET>`"))?;
    let grant = gateway.secrets.grant_of(secret).map(Arc::new);
    grant.ok_or_else(|| Problem::unauthorized("the secret is not one of this node's secrets"))
}
