//! A guard before every request: our own names only, changes by our own pages only, pages for those logged in.
//!
//! [`same_site`] stands before every route. What a handler may do then follows from what it takes: a [`Session`]
//! reads, a [`super::form::Form`] changes.

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderName, Method, header, request::Parts};

use super::{
    ConsoleState,
    access::{ABSOLUTE_SECS, Session, Token},
    failure::Failure,
};

/// The prefix makes browsers refuse it from other hosts, paths and plain connections.
pub(super) const COOKIE: &str = "__Host-farthing-console";
/// The header in which programs send the session's key.
pub(super) const KEY_HEADER: &str = "x-console-key";

pub(super) fn is_unsafe(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The session of a request's cookie.
pub(super) fn session_of(panel: &ConsoleState, headers: &HeaderMap) -> Option<Session> {
    panel.access().session(&Token::presented(cookie(headers, COOKIE)?))
}

pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// The cookie that holds a session's token.
pub(super) fn cookie_of(token: &Token) -> (HeaderName, String) {
    let token = token.expose();
    let value =
        format!("{COOKIE}={token}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={ABSOLUTE_SECS}");
    (header::SET_COOKIE, value)
}

pub(super) fn not_logged_in(panel: &ConsoleState, parts: &Parts) -> Failure {
    if panel.access().setup_code().is_some() {
        return Failure::NotSetUp;
    }
    Failure::NotLoggedIn { next: place(parts), has_ended: cookie(&parts.headers, COOKIE).is_some() }
}

/// Returns the address to go on to afterwards: the page that was asked for, when going there again does no harm.
fn place(parts: &Parts) -> Option<String> {
    let path = parts.uri.path_and_query()?.as_str();
    (parts.method == Method::GET).then(|| path.to_owned())
}

impl FromRequestParts<ConsoleState> for Session {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, panel: &ConsoleState) -> Result<Self, Failure> {
        let session = session_of(panel, &parts.headers).ok_or_else(|| not_logged_in(panel, parts))?;
        // What changes something takes a form.
        if is_unsafe(&parts.method) { Err(Failure::no_key()) } else { Ok(session) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let sent = headers(&[("cookie", "a=1; __Host-farthing-console=abc; b=2")]);
        assert_eq!(cookie(&sent, COOKIE), Some("abc"));
        assert_eq!(cookie(&sent, "console"), None);
    }
}
