//! Our own names only, and changes by our own pages only: what stands before every route.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};

use super::{ConsoleState, api, door, failure::Failure, guard::is_unsafe};

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

/// Returns whether one of our own pages asks. Browsers say so by at least one of these headers, and by none wrongly.
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

/// Returns whether an origin is this host. Behind a proxy the scheme is the proxy's.
fn is_origin(origin: &[u8], host: &str, tls: bool) -> bool {
    let rest = match origin.strip_prefix(b"https://") {
        Some(rest) => Some(rest),
        None if !tls => origin.strip_prefix(b"http://"),
        None => None,
    };
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host.as_bytes()))
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
}
