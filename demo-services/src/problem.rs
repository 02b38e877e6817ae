//! An error as a client sees it: RFC 9457 `application/problem+json`.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// An error, in words for a person and in fields for a program.
#[derive(Debug, Serialize)]
pub struct Problem {
    #[serde(serialize_with = "status_number")]
    pub status: StatusCode,
    pub title: &'static str,
    /// One sentence: what was wrong, and what would be right.
    pub detail: String,
    /// The query parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The input that would have been accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The name the client probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<&'static str>,
}

impl Problem {
    pub fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, detail: detail.into(), parameter: None, expected: None, did_you_mean: None }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = axum::Json(&self).into_response();
        *response.status_mut() = self.status;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/problem+json"));
        response
    }
}

fn status_number<S: serde::Serializer>(status: &StatusCode, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u16(status.as_u16())
}
