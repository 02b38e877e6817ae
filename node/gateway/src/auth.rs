//! Authentication of callers, by the consumer secret that they present.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use farthing_node::consumer::spending::Grant;
use farthing_serve::Desk;

use super::{Gateway, own_headers, problem::Problem};

/// Neither of two counts, whichever is right.
const TWICE_NEXT: &str = "Send one `Authorization: Bearer <CONSUMER_SECRET>`, and nothing else by that name.";

/// Proof that the caller presented a consumer secret, with what it may do.
#[derive(Clone, Debug)]
pub struct Authenticated(pub Arc<Grant>);

impl FromRequestParts<Gateway> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
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
        let grant = grant.ok_or_else(|| Problem::unauthorized("the secret is not this node's"))?;
        // Whoever has one secret, however limited, leaves connections to those who have others.
        if parts.extensions.get::<Desk>().is_some_and(|desk| !desk.works_for(&grant.name)) {
            return Err(Problem::no_connection());
        }
        Ok(Self(grant))
    }
}
