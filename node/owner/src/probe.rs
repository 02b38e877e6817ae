//! The owner's own questions to its service's server: without a caller and without a payment.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use farthing_bridge::Request;

use super::upstream::{Permit, Sealed, Upstream, UpstreamAnswer, UpstreamRequest};

/// A question of the owner's.
struct Probe(UpstreamRequest);

impl Sealed for Probe {}

impl Permit for Probe {
    fn request(&self) -> UpstreamRequest {
        self.0.clone()
    }
}

/// Sends a request without a body, for a sample. `html` says that a web page is an answer to it.
pub(super) async fn ask(
    upstream: &Upstream,
    (request, html): (Request, bool),
    accept: &str,
    deadline: Duration,
) -> UpstreamAnswer {
    let headers = BTreeMap::from([("accept".to_owned(), accept.to_owned())]);
    let body = Bytes::new();
    send(upstream, UpstreamRequest { request, headers, body, deadline, time: None, call: None, html }).await
}

/// Sends a request as that of a call.
pub(super) async fn send(upstream: &Upstream, request: UpstreamRequest) -> UpstreamAnswer {
    upstream.fetch(&Probe(request)).await
}
