//! Rules that a call must keep before it is recorded as served.

use bytes::Bytes;
use farthing_values::limits::{CALL_HEAD_BYTES_MAX, PATH_BYTES_MAX};

use crate::{
    error::{LedgerError, Result, within},
    rows::payee::{BODY_BYTES_MAX, Call, ChargedOn, StoredCall, StoredState},
};

/// The bounds and terms that concern the call alone.
pub(super) fn check_call(call: &Call, charged_on: ChargedOn) -> Result<()> {
    within("the path", call.path.len(), PATH_BYTES_MAX)?;
    let header_bytes = call.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    within("the answer's headers", header_bytes, CALL_HEAD_BYTES_MAX)?;
    within("the answer's body", call.body.as_ref().map_or(0, Bytes::len), BODY_BYTES_MAX)?;
    let refused =
        |rule| Err(LedgerError::ChargeNotAllowed { call_id: call.call_id, charged: call.charged, rule });
    match () {
        () if call.charged > call.price => refused("the charge is at most the price"),
        () if !call.charged.is_zero() && !call.outcome.is_the_services_answer() => {
            refused("a failed upstream costs nothing")
        }
        () if charged_on.is_nothing() && !call.price.is_zero() => refused("a call without a channel is free"),
        () => Ok(()),
    }
}

/// O5: what was charged or answered, or had effects, is final. That a call which a transaction pays may run is stored elsewhere.
pub(super) fn check_not_finished(
    call: &Call,
    charged_on: ChargedOn,
    known: Option<&StoredCall>,
) -> Result<()> {
    let id = call.call_id;
    match known {
        None if call.method.is_safe() || matches!(charged_on, ChargedOn::Transaction(_)) => Ok(()),
        None => Err(LedgerError::NotAccepted(id)),
        Some(known) if known.request_hash != call.request_hash => Err(LedgerError::CallIdConflict(id)),
        Some(known) => match &known.state {
            StoredState::Accepted => Ok(()),
            StoredState::Done(done) if done.may_be_retried(known.method) => Ok(()),
            StoredState::Done(_) => Err(LedgerError::AlreadyServed(id)),
        },
    }
}
