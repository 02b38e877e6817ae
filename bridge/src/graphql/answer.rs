//! Turns the upstream's answer into a REST answer.
//!
//! The body is judged, not only the status: data without errors is a success, data with errors a partial one, and
//! errors alone become the status they stand for (bridge.md, "Answers"). The value of the root field is taken as
//! it is, a slice of the upstream's bytes; only where aliases were needed ([`rename`]) are its keys looked at.
//!
//! Invariant: at most [`ERRORS_MAX`] errors are carried, each with message, path and code, shortened and without
//! anything else that the upstream said.

mod envelope;
mod errors;
mod rename;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use self::envelope::Envelope;
pub use self::errors::UpstreamError;
use super::{coerce::quote, selection::aliases::Renames};
use crate::{media::without_parameters, shown};

/// Upstream errors that are carried.
pub const ERRORS_MAX: usize = 5;
/// Longest [`GraphqlAnswer::warnings`]: it travels in a header.
pub const WARNINGS_BYTES_MAX: usize = 4 * 1024;

/// The facts about a request that are needed to read its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrap {
    field: String,
    renames: Option<Arc<Renames>>,
}

impl Unwrap {
    pub(super) fn new(field: &str, renames: Option<Arc<Renames>>) -> Self {
        Self { field: field.to_owned(), renames }
    }
}

/// The answer for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphqlAnswer<'a> {
    /// HTTP.
    pub status: u16,
    pub content_type: &'static str,
    /// The root field's value as JSON, or a problem document (RFC 9457) with the upstream's errors.
    pub body: Cow<'a, [u8]>,
    pub verdict: Verdict,
    /// At most [`ERRORS_MAX`].
    pub errors: Vec<UpstreamError>,
}

/// The outcome of a request: whether there is something to pay for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All that was asked for; charged.
    Ok,
    /// Data, and errors beside it; charged.
    Partial,
    /// Nothing; not charged.
    Failed,
}

impl Verdict {
    #[must_use]
    pub const fn is_charged(self) -> bool {
        matches!(self, Self::Ok | Self::Partial)
    }
}

impl GraphqlAnswer<'_> {
    /// The errors beside the data as one line of ASCII JSON, for `x-farthing-warnings`; `None` without any. Errors
    /// that would make it longer than [`WARNINGS_BYTES_MAX`] are left out.
    pub fn warnings(&self) -> Option<String> {
        let errors = if self.verdict == Verdict::Partial { &self.errors[..] } else { &[] };
        let mut line = String::from("[");
        for error in errors {
            let error = error.to_json_ascii();
            if line.len() + error.len() + 2 <= WARNINGS_BYTES_MAX {
                if line.len() > 1 {
                    line.push(',');
                }
                line.push_str(&error);
            }
        }
        line.push(']');
        (line.len() > 2).then_some(line)
    }
}

/// Unwraps what the upstream answered to a request. `status` is used in words only.
pub fn answer<'a>(unwrap: &Unwrap, status: u16, content_type: &str, body: &'a [u8]) -> GraphqlAnswer<'a> {
    let text = std::str::from_utf8(body).ok();
    let Some(envelope) = text.and_then(|text| Envelope::read(text, &unwrap.field)) else {
        let kind = shown(without_parameters(content_type));
        return failed(502, &format!("the service answered {status} with {kind}, not with JSON"), Vec::new());
    };
    let renames = unwrap.renames.as_deref();
    let errors = errors::read(envelope.errors.unwrap_or("[]"), renames, &unwrap.field);
    match envelope.value {
        Some(value) if errors.count == 0 => answered(value, renames, Verdict::Ok, Vec::new()),
        Some(value) if value != "null" => answered(value, renames, Verdict::Partial, errors.list),
        _ if errors.count > 0 => {
            let message = errors.list.first().map_or("", |error| &error.message);
            let message = if message.is_empty() { "the service gave no reason" } else { message };
            failed(errors.status.unwrap_or(502), message, errors.list.clone())
        }
        _ => failed(502, &format!("the service answered {status} with neither data nor errors"), Vec::new()),
    }
}

fn answered<'a>(
    value: &'a str,
    renames: Option<&Renames>,
    verdict: Verdict,
    errors: Vec<UpstreamError>,
) -> GraphqlAnswer<'a> {
    let body = match renames {
        None => Cow::Borrowed(value.as_bytes()),
        Some(renames) => Cow::Owned(rename::rename(value, renames).into_bytes()),
    };
    GraphqlAnswer { status: 200, content_type: "application/json", body, verdict, errors }
}

fn failed(status: u16, detail: &str, errors: Vec<UpstreamError>) -> GraphqlAnswer<'static> {
    let title = match status {
        400 => "The service refused the arguments",
        403 => "The service forbids this",
        404 => "The service has no such thing",
        409 => "The service is in another state",
        429 => "The service was asked too often",
        _ => "The service failed",
    };
    let mut body =
        format!("{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{status},\"detail\":");
    quote(detail, &mut body);
    if !errors.is_empty() {
        let errors: Vec<_> = errors.iter().map(UpstreamError::to_json).collect();
        body.push_str(",\"errors\":[");
        body.push_str(&errors.join(","));
        body.push(']');
    }
    body.push('}');
    let body = Cow::Owned(body.into_bytes());
    GraphqlAnswer { status, content_type: "application/problem+json", body, verdict: Verdict::Failed, errors }
}
