//! The head of an answer: what it rules out before the body is waited for.

use farthing_bridge::headers::is_asked_for;
use farthing_protocol::Outcome;
use http::{HeaderValue, StatusCode, header};

use super::{Failure, Fault, Most, Upstream, UpstreamRequest};

impl Upstream {
    /// Rejects an answer that its head rules out, whatever the server speaks.
    pub(super) fn check_head(
        &self,
        request: &UpstreamRequest,
        response: &reqwest::Response,
        most: Most,
    ) -> Result<(), Failure> {
        let status = response.status();
        let failure = |fault| Err(Failure::new(fault, status.as_u16()));
        if !(200..600).contains(&status.as_u16()) {
            return failure(Fault::UnknownStatus);
        }
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return failure(Fault::Redirect);
        }
        if status == StatusCode::NOT_MODIFIED && !request.names_a_condition() {
            return failure(Fault::Unchanged);
        }
        let codings = request.codings();
        let is_readable = |value: &HeaderValue| {
            let said = value.to_str().unwrap_or_default();
            said.eq_ignore_ascii_case("identity") || is_asked_for(said, codings.as_deref())
        };
        let mut encodings = response.headers().get_all(header::CONTENT_ENCODING).iter();
        // Two ways at once are one after the other, and none that a caller asks for.
        if encodings.next().is_some_and(|first| !is_readable(first)) || encodings.next().is_some() {
            return failure(Fault::Packed);
        }
        if response.content_length().is_some_and(|bytes| bytes > most.bytes as u64) {
            return failure(most.above);
        }
        Ok(())
    }
}

/// Judges the answer of an HTTP service by its status and its content type. `html` says that a web page is an answer.
pub(super) fn judge(response: &reqwest::Response, html: bool) -> Result<Outcome, Failure> {
    let status = response.status();
    if status.is_server_error() {
        return Err(Failure::new(Fault::ServerError, status.as_u16()));
    }
    if status.is_client_error() {
        return Ok(Outcome::Declined);
    }
    let is_page = |kind: &HeaderValue| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/html");
    if !html && response.headers().get(header::CONTENT_TYPE).is_some_and(is_page) {
        return Err(Failure::new(Fault::WebPage, status.as_u16()));
    }
    Ok(Outcome::Answered)
}
