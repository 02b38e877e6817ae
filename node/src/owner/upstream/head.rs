//! The head of an answer: what it rules out before the body is waited for.

use farthing_bridge::headers::is_asked_for;
use farthing_protocol::Outcome;
use http::{HeaderValue, StatusCode, header};

use super::{Failure, Upstream, UpstreamRequest};

impl Upstream {
    /// Rejects an answer that its head rules out, whatever the server speaks.
    pub(super) fn check_head(
        &self,
        request: &UpstreamRequest,
        response: &reqwest::Response,
    ) -> Result<(), Failure> {
        let status = response.status();
        let failure = |outcome, reason| Err(Failure::new(outcome, status.as_u16(), reason));
        if !(200..600).contains(&status.as_u16()) {
            return failure(Outcome::BadAnswer, "the upstream answers with a status that no answer has");
        }
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return failure(
                Outcome::BadAnswer,
                "the upstream redirects; register the address it redirects to",
            );
        }
        if status == StatusCode::NOT_MODIFIED && !request.names_a_condition() {
            return failure(
                Outcome::BadAnswer,
                "the upstream says that nothing has changed, and the call names nothing that its caller has",
            );
        }
        let codings = request.codings();
        let is_readable = |value: &HeaderValue| {
            let said = value.to_str().unwrap_or_default();
            said.eq_ignore_ascii_case("identity") || is_asked_for(said, codings.as_deref())
        };
        let mut encodings = response.headers().get_all(header::CONTENT_ENCODING).iter();
        // Two ways at once are one after the other, and none that a caller asks for.
        if encodings.next().is_some_and(|first| !is_readable(first)) || encodings.next().is_some() {
            return failure(Outcome::BadAnswer, "the upstream compresses although it was asked not to");
        }
        if response.content_length().is_some_and(|bytes| bytes > self.options.body_bytes_max as u64) {
            return failure(Outcome::Oversize, "the body is larger than limits.response_bytes_max");
        }
        Ok(())
    }
}

/// Judges the answer of an HTTP service by its status and its content type. `html` says that a web page is an answer.
pub(super) fn judge(response: &reqwest::Response, html: bool) -> Result<Outcome, Failure> {
    let status = response.status();
    if status.is_server_error() {
        let reason = "the upstream reports an error of its own";
        return Err(Failure::new(Outcome::ServerError, status.as_u16(), reason));
    }
    if status.is_client_error() {
        return Ok(Outcome::Declined);
    }
    let is_page = |kind: &HeaderValue| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/html");
    if !html && response.headers().get(header::CONTENT_TYPE).is_some_and(is_page) {
        let reason = "the upstream answers a web page, and the operation's description names none";
        return Err(Failure::new(Outcome::BadAnswer, status.as_u16(), reason));
    }
    Ok(Outcome::Answered)
}
