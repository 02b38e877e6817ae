//! Records that tests of several modules write into a ledger.

use std::collections::BTreeMap;

use farthing_ledger::{Call, PurchaseEnd, Timing};
use farthing_protocol::{CallId, ChannelId, Outcome, Receipt, ServiceId, Signature, Usdc, call::Method};

/// The end of a bought call with a receipt, which says that it was free.
pub(crate) fn acknowledged(outcome: Outcome, status: u16) -> PurchaseEnd {
    let receipt = Receipt {
        channel: ChannelId::NONE,
        call_id: CallId::from_bytes([1; 16]),
        request_hash: [0; 32],
        response_hash: [0; 32],
        outcome: outcome.code(),
        charged: Usdc::ZERO,
        spent_total: Usdc::ZERO,
        time_secs: 1,
    };
    let (receipt, signature) = (Box::new(receipt), Signature::from_bytes([0; 65]));
    PurchaseEnd::Acknowledged { receipt, signature, outcome, status, timing: Timing::default() }
}

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
