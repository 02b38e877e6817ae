//! Records that tests of several modules write into a ledger.

use std::collections::BTreeMap;

use farthing_ledger::Call;
use farthing_protocol::{CallId, Outcome, ServiceId, Usdc, call::Method};

/// The record of a call that was answered.
pub(crate) fn charged_call(charged: Usdc) -> Call {
    Call {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([7; 16]),
        method: Method::Get,
        path: "/ok".to_owned(),
        request_hash: [0; 32],
        response_hash: [0; 32],
        price: charged,
        charged,
        outcome: Outcome::Answered,
        status: 200,
        headers: BTreeMap::new(),
        body: None,
        fault: None,
        upstream_us: None,
        time_secs: 1,
    }
}
