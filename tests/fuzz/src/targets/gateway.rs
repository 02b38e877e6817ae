//! Calls that arrive on port 3000: their JSON, and the headers that are the gateway's own.

use std::sync::Arc;

use farthing_gateway::call::read_order;
use farthing_node::consumer::spending::Grant;
use farthing_protocol::limits::{HEADERS_MAX, PARAMS_MAX, REQUEST_BODY_BYTES_MAX};
use http::{HeaderMap, HeaderName, HeaderValue};

const CALL: &[u8] = br#"{"api_id_public":"0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b","path":"/a","method":"GET"}"#;
/// The one header of this network's that a call may have.
const MAX_PRICE: &str = "x-farthing-max-price";
/// The longest reason for a refusal: names are cut where they are repeated.
const DETAIL_BYTES_MAX: usize = 1_024;

pub(super) const BODY_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    "true",
    "1e999",
    "-0",
    "\\u0061",
    "\\ud83d",
    "\\\"",
    "\"params\":{",
    "\"headers\":{",
    "\"body\":",
    "\"body_base64\":\"",
    "\"max_price\":\"",
    "\"call_id\":\"",
    "\"method\":\"POST\"",
    " ",
];

/// The body of `POST /internal/call`.
pub(super) fn body(bytes: &[u8]) -> bool {
    is_taken(&HeaderMap::new(), bytes)
}

pub(super) fn known_bodies() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"api_id_public":"0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b","path":"/v1/things/{id}","method":"post","params":{"id":"7","limit":5,"deep":true},"headers":{"Accept":"application/json"},"body":{ "a" : [1.50, "b\\\" c", null] },"max_price":"0.01","call_id":"order-7"}"#,
        r#"{"api_id_public":"0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b","path":"/a","method":"PUT","body_base64":"AP+A","headers":{"content-type":"image/png"},"call_id":"0b5f2a3e-6a3c-8c39-9a65-6a1c3f1d2e4b"}"#,
        r#"{"api_id_public":"0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b","path":"/a","method":"PATCH","params":null,"body":"text\n"}"#,
    ];
    texts.into_iter().map(|text| text.as_bytes().to_vec()).chain([CALL.to_vec()]).collect()
}

pub(super) const HEADER_WORDS: &[&str] = &[
    "\n",
    ": ",
    "x-farthing-",
    "x_farthing_",
    "X-Farthing-Max-Price: 0.01\n",
    "x-farthing-max-price: 18446744073709.551616\n",
    "idempotency-key: ",
    "accept: ",
    "0.000001",
    "-",
    "_",
    "\u{e9}",
];

/// Headers of a call, one a line.
pub(super) fn headers(bytes: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(64) {
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    is_taken(&headers, CALL)
}

pub(super) fn known_headers() -> Vec<Vec<u8>> {
    let texts = [
        "accept: */*\nx-request-id: 7",
        "x-farthing-max-price: 0.002\nidempotency-key: order-7",
        "idempotency-key: 0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b\nidempotency-key: order-8",
        "x-farthingale: silk\nx-farthing-cap: 1",
    ];
    texts.into_iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Reads a call. What is taken is within its bounds, and the same when it is read again; no limit is passed over.
fn is_taken(headers: &HeaderMap, body: &[u8]) -> bool {
    let grant = Arc::new(Grant::unlimited("default"));
    let order = match read_order(Arc::clone(&grant), headers, body) {
        Ok(order) => order,
        Err(problem) => {
            assert!(problem.status.is_client_error(), "{problem:?}");
            assert!(problem.detail.len() <= DETAIL_BYTES_MAX, "{problem:?}");
            return false;
        }
    };
    assert!(order.body.len() <= REQUEST_BODY_BYTES_MAX);
    assert!(order.params.len() <= PARAMS_MAX && order.headers.len() <= PARAMS_MAX + HEADERS_MAX);
    assert!(order.headers.keys().all(|name| !name.bytes().any(|byte| byte.is_ascii_uppercase())));
    let is_own = |name: &HeaderName| name.as_str().replace('_', "-").starts_with("x-farthing-");
    assert!(headers.keys().all(|name| !is_own(name) || name.as_str() == MAX_PRICE));
    assert!(!headers.contains_key(MAX_PRICE) || order.max_price.is_some(), "a limit was passed over");
    let again = read_order(grant, headers, body).expect("what is read once is read again");
    assert_eq!((&again.path, &again.params, &again.headers), (&order.path, &order.params, &order.headers));
    assert_eq!((&again.body, again.max_price), (&order.body, order.max_price));
    true
}
