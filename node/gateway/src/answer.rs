//! The service's answer, with what it cost and where the time went.

use std::{convert::Infallible, fmt::Write as _, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_bridge::headers::{answer_header_is_forbidden, is_asked_for};
use farthing_control::types::{
    CHARGED_UNDECIDED, HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_RECEIPT, HEADER_TIMING,
};
use farthing_node::consumer::{Bought, Order};
use farthing_protocol::call::Method;
use futures::stream;

use super::{Entrance, services};

/// Warnings of a GraphQL service beside its data; written by the owner's node.
const WARNINGS: &str = "x-farthing-warnings";
/// Headers that this gateway adds to each answer.
const OWN_HEADERS: usize = 7;
/// The room that the times of an answer's parts take as text.
const TIMING_BYTES: usize = 128;

/// The place and the wishes of whoever reads an answer, by which its headers are told.
#[derive(Debug, Clone)]
pub(super) struct AnswerReader {
    /// The ways to pack an answer that it unfolds.
    codings: Option<String>,
    /// True if a server may pack its answer unasked. An owner's node may not, and is not believed.
    may_be_packed: bool,
    /// The address of the service's paths where it is at this gateway, without the origin.
    address: Option<String>,
    /// True if nothing but a head arrives.
    wants_head: bool,
}

impl AnswerReader {
    pub(super) fn of(order: &Order, asked: Entrance) -> Self {
        let is_there = asked == Entrance::AtItsAddress;
        Self {
            codings: order.headers.get("accept-encoding").cloned(),
            may_be_packed: false,
            address: is_there.then(|| services::address("", order.service)),
            wants_head: is_there && order.method == Method::Head,
        }
    }

    /// The same for an answer of an x402 server: it is paid, and nobody could read it without the word on how it is packed.
    pub(super) fn of_server(order: &Order, asked: Entrance) -> Self {
        Self { may_be_packed: true, ..Self::of(order, asked) }
    }

    /// A header of an answer as it is read; `None` for one that is not. An owner is a stranger: its headers may describe its
    /// answer, but neither this connection nor this gateway, and they leave nothing behind in a browser.
    fn reads(&self, name: &str, value: &str, status: StatusCode) -> Option<String> {
        let is_read = match name {
            WARNINGS => true,
            name if answer_header_is_forbidden(name) => false,
            "content-length" => self.wants_head && value.bytes().all(|b| b.is_ascii_digit()),
            "content-encoding" => self.may_be_packed || is_asked_for(value, self.codings.as_deref()),
            // Elsewhere clients would follow it, and take the secret along.
            "location" => matches!(status, StatusCode::CREATED | StatusCode::ACCEPTED),
            _ => true,
        };
        let is_address = matches!(name, "location" | "content-location");
        is_read.then(|| match name {
            _ if is_address => self.address_here(value),
            "link" => value.split('<').map(|part| self.address_here(part)).collect::<Vec<_>>().join("<"),
            _ => value.to_owned(),
        })
    }

    /// A path of the service, or what begins with one, as the path of this gateway that it is here.
    fn address_here(&self, path: &str) -> String {
        let is_path = path.starts_with('/') && !path.starts_with("//");
        let address = self.address.as_deref().filter(|_| is_path).unwrap_or_default();
        format!("{address}{path}")
    }
}

/// An answer as the script gets it.
pub(super) fn bought(bought: Bought, reader: &AnswerReader, total: Duration) -> Response {
    // Others speak about a connection, such as 101, and would end this one without the answer that was paid.
    let status = Some(bought.status).filter(|status| (200..600).contains(status));
    let status =
        status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
    // What a stranger sends behind a head would be read as the next answer.
    let body = if reader.wants_head { no_body() } else { bought.body.into() };
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.reserve(bought.headers.len() + OWN_HEADERS);
    for (name, value) in &bought.headers {
        if let Ok(name) = HeaderName::try_from(name)
            && let Some(value) = reader.reads(name.as_str(), value, status)
            && let Ok(value) = HeaderValue::try_from(value)
        {
            headers.insert(name, value);
        }
    }
    // A stranger's page is no page of this gateway, should a browser show it.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let receipt = bought.receipt.map(|receipt| (HEADER_RECEIPT, format!("0x{}", hex::encode(receipt))));
    let own = [
        (HEADER_CALL_ID, bought.call_id.to_string()),
        (HEADER_PRICE, bought.price.to_string()),
        (
            HEADER_CHARGED,
            bought.charged.map_or_else(|| CHARGED_UNDECIDED.to_owned(), |usdc| usdc.to_string()),
        ),
        (HEADER_TIMING, timing(&bought.timing, total)),
    ];
    for (name, value) in own.into_iter().chain(receipt) {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

/// Nothing, of which nobody says a length: that of a body that stays away is its owner's to say.
fn no_body() -> Body {
    Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
}

fn timing(timing: &farthing_node::consumer::Timing, total: Duration) -> String {
    let gateway = total.saturating_sub(timing.network).saturating_sub(timing.funding);
    let mut text = String::with_capacity(TIMING_BYTES);
    for (name, took) in [("gateway", gateway)].into_iter().chain(timing.parts()) {
        let (separator, micros) = (if text.is_empty() { "" } else { ", " }, took.as_micros());
        // Writing to memory does not fail.
        let _ = write!(text, "{separator}{name};dur={}.{:03}", micros / 1000, micros % 1000);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::body::to_bytes;
    use farthing_protocol::{CallId, ServiceId, Usdc};

    use super::*;

    fn an_answer() -> Bought {
        Bought {
            call_id: CallId::from_bytes([1; 16]),
            status: 200,
            headers: BTreeMap::new(),
            body: Bytes::from_static(b"{}"),
            price: Usdc::from_micros(2),
            charged: Some(Usdc::from_micros(2)),
            receipt: Some([0; 32]),
            timing: farthing_node::consumer::Timing::default(),
            is_repeat: false,
        }
    }

    fn in_json() -> AnswerReader {
        AnswerReader { codings: None, may_be_packed: false, address: None, wants_head: false }
    }

    /// The header of an answer with this status, as it is read.
    fn read(reader: &AnswerReader, status: u16, name: &str, value: &str) -> Option<String> {
        let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let answer = Bought { status, headers, ..an_answer() };
        let response = bought(answer, reader, Duration::ZERO);
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn addresses_are_those_of_the_place_where_they_are_read() {
        let service = ServiceId::from_bytes([7; 16]);
        let here = services::address("", service);
        let there = AnswerReader { address: Some(here.clone()), ..in_json() };
        for (status, name, value, in_json_is, there_is) in [
            (201, "location", "/things/5", Some("/things/5".to_owned()), Some(format!("{here}/things/5"))),
            (
                202,
                "location",
                "//evil.example/",
                Some("//evil.example/".to_owned()),
                Some("//evil.example/".to_owned()),
            ),
            (302, "location", "/things/5", None, None),
            (200, "location", "/things/5", None, None),
            (200, "content-location", "/a", Some("/a".to_owned()), Some(format!("{here}/a"))),
            (
                200,
                "link",
                "</a>; rel=next, <https://x.example/b>",
                Some("</a>; rel=next, <https://x.example/b>".to_owned()),
                Some(format!("<{here}/a>; rel=next, <https://x.example/b>")),
            ),
        ] {
            assert_eq!(read(&in_json(), status, name, value), in_json_is, "{status} {value}");
            assert_eq!(read(&there, status, name, value), there_is, "{status} {value}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_packed_only_where_that_was_asked_for_and_a_head_has_no_body() {
        let unfolds = AnswerReader { codings: Some("gzip, br".to_owned()), ..in_json() };
        assert_eq!(read(&unfolds, 200, "content-encoding", "br").as_deref(), Some("br"));
        assert_eq!(read(&unfolds, 200, "content-encoding", "zstd"), None);
        assert_eq!(read(&in_json(), 200, "content-encoding", "br"), None);
        let of_server = AnswerReader { may_be_packed: true, ..in_json() };
        assert_eq!(read(&of_server, 200, "content-encoding", "br").as_deref(), Some("br"));
        assert_eq!(read(&in_json(), 200, "content-length", "7"), None);
        let heads = AnswerReader { wants_head: true, ..in_json() };
        assert_eq!(read(&heads, 200, "content-length", "7").as_deref(), Some("7"));
        let response = bought(an_answer(), &heads, Duration::ZERO);
        assert!(to_bytes(response.into_body(), 10).await.unwrap().is_empty(), "whatever came");
    }

    #[test]
    fn a_status_that_is_none_of_an_answer_does_not_end_the_callers_connection() {
        for (said, sent) in
            [(200, 200), (404, 404), (599, 599), (0, 502), (100, 502), (101, 502), (199, 502), (600, 502)]
        {
            let response = bought(Bought { status: said, ..an_answer() }, &in_json(), Duration::ZERO);
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
            ("Set-Cookie", "a=b"),
            ("x-lines", "a\r\nset-cookie: b=c"),
            ("content-length", "1"),
            ("transfer-encoding", "chunked"),
            ("access-control-allow-origin", "*"),
            ("strict-transport-security", "max-age=1"),
            ("location", "http://example.org"),
        ];
        let headers: BTreeMap<_, _> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = Bought { headers, ..an_answer() };
        let response = bought(answer, &in_json(), Duration::from_millis(1));
        let mut names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "content-security-policy",
                "content-type",
                "etag",
                "server-timing",
                "x-content-type-options",
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

    #[test]
    fn an_answer_of_which_nobody_knows_the_charge_says_so() {
        for (charged, told) in [(Some(Usdc::ZERO), "0.00"), (None, "undecided")] {
            let response = bought(Bought { charged, ..an_answer() }, &in_json(), Duration::ZERO);
            assert_eq!(response.headers()[HEADER_CHARGED], told);
            assert_eq!(response.headers()[HEADER_PRICE], "0.000002");
        }
    }

    #[test]
    fn an_answer_without_a_receipt_names_none() {
        for (receipt, named) in [(Some([7; 32]), Some(66)), (None, None)] {
            let response = bought(Bought { receipt, ..an_answer() }, &in_json(), Duration::ZERO);
            assert_eq!(response.headers().get(HEADER_RECEIPT).map(HeaderValue::len), named);
        }
    }
}
