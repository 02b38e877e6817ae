//! Hashing once, and deadlines.

use super::*;
use crate::running::{Arrival, Calls};

#[tokio::test]
async fn what_a_call_asks_for_is_hashed_once() {
    let request = CallRequest {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Post,
        path: "/ok".to_owned(),
        params: [].into(),
        headers: [].into(),
        body_bytes: 4,
        price: Usdc::ZERO,
        deadline_ms: 1,
        payment: Payment::Free,
    };
    let Arrival::First(running) = Calls::default().arrive((Address::ZERO, request.call_id)) else {
        panic!("first")
    };
    let (body, hash) = (Bytes::from_static(b"body"), request.request_hash(b"body"));
    assert_eq!(hash_noted(&running, &request, &body).await.unwrap(), hash);
    assert_eq!(running.request_hash(), Some(hash), "repeats are compared with it");
    running.asks_for([3; 32]);
    assert_eq!(hash_noted(&running, &request, &body).await.unwrap(), [3; 32], "it was noted before");
}

#[test]
fn a_payers_deadline_shortens_no_call_with_effects_and_others_to_a_second_at_least() {
    let (min, max) = (limits::CALL_DEADLINE_MS_MIN, limits::CALL_DEADLINE_MS_MAX);
    for deadline_ms in [0, 1, min, max, u64::MAX] {
        for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
            assert_eq!(upstream_deadline_ms(method, deadline_ms), max, "{method} {deadline_ms}");
        }
    }
    for (deadline_ms, used) in [(0, min), (min - 1, min), (min, min), (min + 1, min + 1), (u64::MAX, max)] {
        assert_eq!(upstream_deadline_ms(Method::Get, deadline_ms), used);
        let told = crate::answer_within(Method::Get, deadline_ms);
        assert!(told > Duration::from_millis(used), "that {used} ms are over is told in {told:?}");
    }
}
