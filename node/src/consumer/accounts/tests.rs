//! The books of what this node buys, played against them without a network.

use std::collections::BTreeMap;

use farthing_protocol::{
    CallRequest, ServiceId,
    call::{ChargePolicy, Method},
    resolution::COPY_LIFETIME,
};

use super::*;

mod carried;
mod days;
mod found;
mod held;

#[test]
fn an_owner_tells_of_all_copies_once_none_of_an_earlier_run_can_arrive() {
    assert!(!tells_of_all(COPY_LIFETIME - Duration::from_millis(1)));
    assert!(tells_of_all(COPY_LIFETIME));
}

/// A promise of a call at this price, with nothing in it.
pub(crate) fn promise_of(call_id: CallId, owner: Address, price: Usdc, payment: Payment) -> Promise {
    let request = CallRequest {
        call_id,
        service: ServiceId::from_bytes([7; 16]),
        listing_version: 1,
        method: Method::Get,
        path: "/ok".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: 0,
        price,
        deadline_ms: 30_000,
        payment,
    };
    Promise {
        request_hash: request.request_hash(&[]),
        request,
        owner,
        secret: "laptop".to_owned(),
        time_secs: 1,
        limits: None,
        seen_total: Usdc::ZERO,
        charge_policy: ChargePolicy::Success,
    }
}
