//! Who asks, and from where: our own names only, changes by our own pages only, pages for those logged in.
//!
//! [`same_site`] stands before every route. What a handler may do then follows from what it takes: a [`Session`]
//! reads, a [`super::form::Form`] changes.

use axum::{
    extract::{FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, header, request::Parts};

use super::{
    ConsoleState,
    access::{Session, Token},
    api, door,
    failure::Failure,
};

/// The prefix makes browsers refuse it from other hosts, paths and plain connections.
pub(super) const COOKIE: &str = "__Host-farthing-console";
/// Where programs put the session's key.
pub(super) const KEY_HEADER: &str = "x-console-key";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Refuses other names than ours, and changes that another site asks for.
pub(super) async fn same_site(
    State(panel): State<ConsoleState>,
    mut request: Request,
    next: Next,
) -> Response {
    let refused = match panel.0.hosts.asked(&request) {
        None => Some(Failure::unknown_host()),
        Some(host) if is_unsafe(request.method()) && !is_own(request.headers(), host, panel.0.parts.tls) => {
            Some(Failure::other_site())
        }
        Some(_) => None,
    };
    match refused {
        Some(refused) if request.uri().path().starts_with("/api/") => api::refused(refused),
        Some(refused) => refused.into_response(),
        None => {
            if let Some(shared) = panel.0.hosts.asked(&request).map(|host| door::shared(&panel, host)) {
                request.extensions_mut().insert(shared);
            }
            next.run(request).await
        }
    }
}

pub(super) fn is_unsafe(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether one of our own pages asks. Browsers say so by at least one of these headers, and by none wrongly.
fn is_own(headers: &HeaderMap, host: &str, tls: bool) -> bool {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        (values.next(), values.next().is_some())
    };
    let site = match one(SEC_FETCH_SITE) {
        (None, _) => None,
        (Some(site), several) => Some(!several && site == "same-origin"),
    };
    let origin = match one(header::ORIGIN.as_str()) {
        (None, _) => None,
        // Our pages tell no referrer, and browsers then tell no origin in forms either.
        (Some(origin), false) if origin == "null" && site == Some(true) => None,
        (Some(origin), several) => Some(!several && is_origin(origin.as_bytes(), host, tls)),
    };
    match (site, origin) {
        (None, None) => false,
        (site, origin) => site.unwrap_or(true) && origin.unwrap_or(true),
    }
}

/// Whether an origin is this host. Behind a proxy the scheme is the proxy's.
fn is_origin(origin: &[u8], host: &str, tls: bool) -> bool {
    let rest = match origin.strip_prefix(b"https://") {
        Some(rest) => Some(rest),
        None if !tls => origin.strip_prefix(b"http://"),
        None => None,
    };
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_bytes()))
}

/// The session of a request's cookie.
pub(super) fn session_of(panel: &ConsoleState, headers: &HeaderMap) -> Option<Session> {
    panel.access().session(&Token::presented(cookie(headers, COOKIE)?))
}

/// The value of a cookie.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
}

pub(super) fn not_logged_in(panel: &ConsoleState, parts: &Parts) -> Failure {
    if panel.access().setup_code().is_some() { Failure::NotSetUp } else { Failure::NotLoggedIn(place(parts)) }
}

/// Where to go on afterwards: the page that was asked for, when going there again does no harm.
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
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_our_own_pages_change_something() {
        const HOST: &str = "localhost:3002";
        for (sent, own) in [
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://localhost:3002")][..], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")], true),
            (&[("sec-fetch-site", "same-site"), ("origin", "null")], false),
            (&[("origin", "https://localhost:3002")], true),
            (&[("origin", "https://LOCALHOST:3002")], true),
            (&[], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-site"), ("origin", "https://localhost:3000")], false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://localhost:3000")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://localhost:3002")], false),
            (&[("origin", "null")], false),
            (&[("origin", "http://localhost:3002")], false),
            (&[("origin", "https://localhost:3002.evil.example")], false),
            (&[("origin", "https://evil.example/https://localhost:3002")], false),
        ] {
            assert_eq!(is_own(&headers(sent), HOST, true), own, "{sent:?}");
        }
        assert!(is_own(&headers(&[("origin", "http://localhost:3002")]), HOST, false), "behind a proxy");
        let mut twice = headers(&[("origin", "https://localhost:3002")]);
        twice.append("origin", http::HeaderValue::from_static("https://evil.example"));
        assert!(!is_own(&twice, HOST, true));
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let sent = headers(&[("cookie", "a=1; __Host-farthing-console=abc; b=2")]);
        assert_eq!(cookie(&sent, COOKIE), Some("abc"));
        assert_eq!(cookie(&sent, "console"), None);
    }
}
