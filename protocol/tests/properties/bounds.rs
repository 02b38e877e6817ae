//! Every bound of a call's head, below, at and above.

use std::collections::BTreeMap;

use farthing_protocol::{
    CallMessage, CallReply, CallRequest, CallResponse, Receipt, Usdc,
    call::{OutOfBounds, Payment},
    limits::{
        CALL_HEAD_BYTES_MAX, HEADERS_MAX, PARAM_NAME_BYTES_MAX, PARAM_VALUE_BYTES_MAX, PARAMS_MAX,
        PATH_BYTES_MAX, REQUEST_BODY_BYTES_MAX, RESPONSE_HEADERS_BYTES_MAX,
    },
    wire,
};

use crate::examples::{call_request, call_response, receipt};

fn limited(what: &'static str, size_max: usize, make: impl Fn(usize) -> CallRequest) {
    for size in [size_max - 1, size_max] {
        assert_eq!(make(size).check_bounds(), Ok(()), "{what} of {size}");
    }
    let size = size_max + 1;
    assert_eq!(make(size).check_bounds(), Err(OutOfBounds { what, size, size_max }));
}

fn texts(count: usize) -> BTreeMap<String, String> {
    (0..count).map(|i| (format!("name-{i}"), String::new())).collect()
}

#[test]
fn a_call_is_within_bounds_up_to_each_limit() {
    let text = |name: usize, value: usize| BTreeMap::from([("n".repeat(name), "v".repeat(value))]);
    let body = |bytes: usize| CallRequest { body_bytes: bytes as u64, ..call_request() };
    limited("path", PATH_BYTES_MAX, |n| CallRequest { path: "/".repeat(n), ..call_request() });
    limited("number of params", PARAMS_MAX, |n| CallRequest { params: texts(n), ..call_request() });
    limited("number of headers", HEADERS_MAX, |n| CallRequest { headers: texts(n), ..call_request() });
    for (what, name, value) in [
        ("name of a parameter or header", PARAM_NAME_BYTES_MAX, 0),
        ("value of a parameter or header", 1, PARAM_VALUE_BYTES_MAX),
    ] {
        let sized = |n: usize| if value == 0 { text(n, 0) } else { text(1, n) };
        let max = name.max(value);
        limited(what, max, |n| CallRequest { params: sized(n), ..call_request() });
        limited(what, max, |n| CallRequest { headers: sized(n), ..call_request() });
    }
    limited("body", REQUEST_BODY_BYTES_MAX, body);
    assert!(CallRequest { body_bytes: u64::MAX, ..call_request() }.check_bounds().is_err());
}

#[test]
fn a_head_is_within_bounds_up_to_its_limit_as_a_whole() {
    // Four values that are each within bounds; the last fills the head to the byte.
    let filled = |last: usize| {
        let sizes = [PARAM_VALUE_BYTES_MAX, PARAM_VALUE_BYTES_MAX, PARAM_VALUE_BYTES_MAX, last];
        let params = sizes.iter().enumerate().map(|(i, &size)| (i.to_string(), "v".repeat(size))).collect();
        CallRequest { params, ..call_request() }
    };
    // As it travels.
    let head = |request: &CallRequest| wire::encode(&CallMessage::Call(request.clone())).len();
    let rest = CALL_HEAD_BYTES_MAX - (head(&filled(4_000)) - 4_000);
    limited("whole head", CALL_HEAD_BYTES_MAX, |n| {
        let request = filled(rest + n - CALL_HEAD_BYTES_MAX);
        assert_eq!(head(&request), n);
        assert_eq!(CallMessage::Call(request.clone()).to_head().is_ok(), n <= CALL_HEAD_BYTES_MAX);
        request
    });
}

#[test]
fn no_payment_is_larger_than_the_one_that_bounds_are_checked_with() {
    let paid = |payment| wire::encode(&CallRequest { payment, ..call_request() }).len();
    let Payment::Channel { channel, signature, .. } = call_request().payment else { panic!("a paid call") };
    assert!(signature.is_some());
    let dearest = Payment::Channel { channel, cumulative: Usdc::MAX, signature, receipted: Some(Usdc::MAX) };
    for payment in [Payment::Free, call_request().payment, dearest] {
        assert!(paid(payment.clone()) <= paid(Payment::LARGEST), "{payment:?}");
    }
}

#[test]
fn the_longest_headers_of_an_answer_leave_room_for_the_rest_of_its_head() {
    let (value, spent) = (u64::MAX, Usdc::from_micros(u64::MAX));
    let receipt =
        Receipt { charged: spent, spent_total: spent, time_secs: value, outcome: u8::MAX, ..receipt() };
    let headers = |bytes| BTreeMap::from([("etag".to_owned(), "v".repeat(bytes))]);
    let overhead = wire::encode(&headers(30_000)).len() - 30_000;
    let response = CallResponse {
        status: u16::MAX,
        headers: headers(RESPONSE_HEADERS_BYTES_MAX - overhead),
        body_bytes: value,
        receipt,
        owner_us: value,
        upstream_us: value,
        ..call_response()
    };
    assert_eq!(wire::encode(&response.headers).len(), RESPONSE_HEADERS_BYTES_MAX);
    let head = wire::encode(&CallReply::Response(response)).len();
    assert!(head <= CALL_HEAD_BYTES_MAX, "{head}");
}
