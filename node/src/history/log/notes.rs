//! Notes of refused calls beside the ledger's record of the same calls.

use std::{collections::HashMap, sync::Arc};

use farthing_ledger::{Ledger, LedgerError, Purchase, ServedRow};
use farthing_protocol::CallId;
use farthing_shared::{
    call_ends::Half,
    refused::{RefusedCall, RefusedCalls},
};

use super::entry::says_undecided;

/// The notes of calls that programs of this node's wanted to buy, by call id, of each the newest first.
#[derive(Debug, Default)]
pub(super) struct Notes(HashMap<CallId, Vec<Arc<RefusedCall>>>);

impl Notes {
    pub(super) fn read(refused: &RefusedCalls) -> Self {
        let mut notes = Self::default();
        for note in refused.of(Half::Consumer) {
            if let Some(call_id) = note.call_id {
                notes.0.entry(call_id).or_default().push(note);
            }
        }
        notes
    }

    /// The note of the attempt that ended at this time. A later one is of a repeat.
    pub(super) fn of(&self, call_id: CallId, ended_secs: u64) -> Option<&Arc<RefusedCall>> {
        self.0.get(&call_id)?.iter().find(|note| note.time_secs <= ended_secs)
    }

    /// Returns whether the ledger tells of the very call that was noted: of its end, if that was not known yet, and otherwise if it
    /// has no answer to it; or, of a call that was sold, whether it was served after this. A buyer's node asks again until its
    /// channel is seen.
    pub(super) fn is_in_the_ledger(&self, ledger: &Ledger, note: &RefusedCall) -> Result<bool, LedgerError> {
        match (note.half, note.call_id, note.peer) {
            (Half::Consumer, Some(call_id), _) => self.is_own_end(ledger, call_id, note),
            (Half::Owner, Some(call_id), Some(payer)) => {
                let served = match ledger.served_head(payer, call_id)? {
                    Some(ServedRow::Accepted(accepted)) => accepted.time_secs,
                    Some(ServedRow::Done(row)) => row.call.time_secs,
                    None => return Ok(false),
                };
                Ok(served >= note.time_secs)
            }
            _ => Ok(false),
        }
    }

    fn is_own_end(&self, ledger: &Ledger, call_id: CallId, note: &RefusedCall) -> Result<bool, LedgerError> {
        let ended = ledger.purchase(call_id)?;
        if ended.is_none() && ledger.promise_of(call_id)?.is_none() {
            return Ok(false);
        }
        Ok(says_undecided(note) || self.is_of_end(ended.as_ref(), call_id, note))
    }

    /// Returns whether a note tells why a call has the end that the ledger has, or none yet.
    fn is_of_end(&self, ended: Option<&Purchase>, call_id: CallId, note: &RefusedCall) -> bool {
        if ended.is_some_and(|call| call.end.is_answered()) {
            return false;
        }
        let ended_secs = ended.map_or(u64::MAX, |call| call.closed_secs);
        self.of(call_id, ended_secs).is_some_and(|own| own.number == note.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CallId = CallId::from_bytes([1; 16]);

    #[test]
    fn an_attempt_has_its_own_note_and_not_that_of_a_later_repeat() {
        let refused = RefusedCalls::default();
        for time_secs in [10, 20] {
            refused.note(RefusedCall { call_id: Some(ID), ..RefusedCall::new(Half::Consumer, time_secs) });
        }
        let notes = Notes::read(&refused);
        let of = |ended_secs| notes.of(ID, ended_secs).map(|note| note.time_secs);
        assert_eq!((of(9), of(15), of(20), of(u64::MAX)), (None, Some(10), Some(20), Some(20)));
        assert_eq!(notes.of(CallId::from_bytes([2; 16]), 20), None);
    }
}
