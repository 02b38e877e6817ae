//! Answers that were there and found no room, with the room that each needs.
//!
//! An owner serves a call that was paid once more at most. A second answer that finds no room either is lost for good, so
//! a call whose answer was missed is not made again before there is room for the whole of it.

use std::collections::VecDeque;

use bytes::Bytes;
use farthing_protocol::{CallId, CallMessage, CallReply};
use parking_lot::Mutex;

use super::{CallFailure, Interrupted};

/// Calls remembered; the newest push out the oldest.
const MISSED_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Missed(Mutex<VecDeque<(CallId, usize)>>);

impl Missed {
    /// Returns the bytes that the answer to `message` is known to need; 0 when nothing is known.
    pub(crate) fn bytes(&self, message: &CallMessage) -> usize {
        let Some(id) = call_of(message) else { return 0 };
        self.0.lock().iter().find(|(missed, _)| *missed == id).map_or(0, |(_, bytes)| *bytes)
    }

    /// Learns from what came of `message`.
    pub(crate) fn note(&self, message: &CallMessage, answer: &Result<(CallReply, Bytes), CallFailure>) {
        let Some(id) = call_of(message) else { return };
        let mut all = self.0.lock();
        match answer {
            Err(CallFailure::Unknown(Interrupted::NoRoom { bytes })) => {
                all.retain(|(missed, _)| *missed != id);
                all.truncate(MISSED_MAX - 1);
                all.push_front((id, *bytes));
            }
            Ok((CallReply::Response(_), _)) => all.retain(|(missed, _)| *missed != id),
            _ => {}
        }
    }
}

/// The call that is made. A question about one may be answered without its body.
const fn call_of(message: &CallMessage) -> Option<CallId> {
    match message {
        CallMessage::Call(request) => Some(request.call_id),
        _ => None,
    }
}
