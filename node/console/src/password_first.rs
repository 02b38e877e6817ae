//! The page that asks for the password before a form is sent again with it.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::{access::Refused, page::Rendered, theme::Theme};

/// The reason that the password is asked for.
#[derive(Debug)]
pub(super) enum Why {
    Dangerous,
    NoKey,
    Refused(Refused),
}

/// Asks for the password, and holds the form that needs it.
#[derive(Template)]
#[template(path = "password-first.html")]
pub struct PasswordFirst {
    pub(super) theme: Theme,
    pub(super) address: String,
    pub(super) pairs: Vec<(String, String)>,
    pub(super) why: Why,
}

farthing_os::hidden!(PasswordFirst { why });

impl IntoResponse for PasswordFirst {
    fn into_response(self) -> Response {
        match &self.why {
            Why::Dangerous | Why::NoKey => (StatusCode::FORBIDDEN, Rendered(&self)).into_response(),
            Why::Refused(refused) => not_taken(&self, refused),
        }
    }
}

/// A page that says why a password was not taken, and when to try again.
pub(super) fn not_taken(page: &impl Template, refused: &Refused) -> Response {
    let mut response = (status_of(refused), Rendered(page)).into_response();
    if let Some(secs) = wait_of(refused) {
        response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    response
}

/// Returns the status of a page which says that a password was not taken.
pub(super) const fn status_of(refused: &Refused) -> StatusCode {
    match refused {
        Refused::Wait(_) | Refused::Busy => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// Seconds until the next try, where that is why.
pub(super) fn wait_of(refused: &Refused) -> Option<u64> {
    match refused {
        Refused::Wait(left) => Some(left.as_secs().max(1)),
        Refused::Busy => Some(1),
        _ => None,
    }
}
