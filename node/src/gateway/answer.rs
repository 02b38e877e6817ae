//! The service's answer, with what it cost and where the time went.

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_control::types::{HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_RECEIPT, HEADER_TIMING};

use crate::consumer::Bought;

/// Warnings of a GraphQL service beside its data; written by the owner's node.
const WARNINGS: &str = "x-farthing-warnings";

/// An answer as the script gets it.
pub(super) fn bought(bought: Bought, total: Duration) -> Response {
    // Others speak about a connection, such as 101, and would end this one without the answer that was paid.
    let status = Some(bought.status).filter(|status| (200..600).contains(status));
    let status =
        status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, bought.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in &bought.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            && speaks_for_the_service(&name)
        {
            headers.insert(name, value);
        }
    }
    for (name, value) in [
        (HEADER_CALL_ID, bought.call_id.to_string()),
        (HEADER_PRICE, bought.price.to_string()),
        (HEADER_CHARGED, bought.charged.to_string()),
        (HEADER_RECEIPT, format!("0x{}", hex::encode(bought.receipt))),
        (HEADER_TIMING, timing(&bought.timing, total)),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn timing(timing: &crate::consumer::Timing, total: Duration) -> String {
    let gateway = total.saturating_sub(timing.network).saturating_sub(timing.funding);
    let part = |(name, took): (&str, Duration)| {
        let micros = took.as_micros();
        format!("{name};dur={}.{:03}", micros / 1000, micros % 1000)
    };
    let [funding, network, owner, upstream] = timing.parts().map(part);
    format!("{}, {funding}, {network}, {owner}, {upstream}", part(("gateway", gateway)))
}

/// An owner is a stranger: its headers may describe its answer, but neither this connection nor this gateway,
/// and they leave nothing behind in a browser.
fn speaks_for_the_service(name: &HeaderName) -> bool {
    const NEVER: [&str; 19] = [
        "alt-svc",
        "clear-site-data",
        "connection",
        "content-encoding",
        "content-length",
        "content-location",
        "keep-alive",
        "link",
        "location",
        "public-key-pins",
        "refresh",
        "set-cookie",
        "set-cookie2",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "www-authenticate",
    ];
    const NEVER_PREFIXES: [&str; 5] =
        ["access-control-", "content-security-policy", "cross-origin-", "proxy-", "x-farthing-"];
    let name = name.as_str();
    name == WARNINGS
        || !(NEVER.contains(&name) || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::body::Bytes;
    use farthing_protocol::{CallId, Usdc};

    use super::*;

    fn an_answer() -> Bought {
        Bought {
            call_id: CallId::from_bytes([1; 16]),
            status: 200,
            headers: BTreeMap::new(),
            body: Bytes::from_static(b"{}"),
            price: Usdc::from_micros(2),
            charged: Usdc::from_micros(2),
            receipt: [0; 32],
            timing: crate::consumer::Timing::default(),
            is_repeat: false,
        }
    }

    #[test]
    fn a_status_that_is_none_of_an_answer_does_not_end_the_callers_connection() {
        for (said, sent) in
            [(200, 200), (404, 404), (599, 599), (0, 502), (100, 502), (101, 502), (199, 502), (600, 502)]
        {
            let response = bought(Bought { status: said, ..an_answer() }, Duration::ZERO);
            assert_eq!(response.status().as_u16(), sent, "{said}");
            assert_eq!(response.headers()["x-farthing-charged"], "0.000002");
        }
    }

    #[test]
    fn an_owners_headers_describe_its_answer_and_nothing_else() {
        let headers = [
            ("content-type", "application/json"),
            ("etag", "\"1\""),
            ("x-rate-limit", "7"),
            ("x-farthing-warnings", "[]"),
            ("x-farthing-charged", "0"),
            ("set-cookie", "a=b"),
            ("content-length", "1"),
            ("transfer-encoding", "chunked"),
            ("access-control-allow-origin", "*"),
            ("strict-transport-security", "max-age=1"),
            ("location", "http://example.org"),
        ];
        let headers: BTreeMap<_, _> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = Bought { headers, ..an_answer() };
        let response = bought(answer, Duration::from_millis(1));
        let mut names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "content-type",
                "etag",
                "server-timing",
                "x-farthing-call-id",
                "x-farthing-charged",
                "x-farthing-price-usdc",
                "x-farthing-receipt",
                "x-farthing-warnings",
                "x-rate-limit",
            ]
        );
        assert_eq!(response.headers()["x-farthing-charged"], "0.000002");
    }
}
