//! Calls that somebody waits for now. The node knows them by itself: no clock tells whether a call is under way.
//!
//! A call counts from when its caller asks until its caller has an answer, a repeat as well. The node's own questions
//! about an undecided call count for nothing.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use farthing_protocol::CallId;
use parking_lot::Mutex;

/// The calls that somebody waits for, with the number of those who do. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct AwaitedCalls(Arc<Mutex<HashMap<CallId, usize>>>);

/// One who waits for a call; stops waiting when dropped.
#[derive(Debug)]
pub struct AwaitedCall {
    calls: AwaitedCalls,
    call_id: CallId,
}

impl AwaitedCalls {
    /// Notes that somebody waits for a call.
    #[must_use]
    pub fn begin(&self, call_id: CallId) -> AwaitedCall {
        *self.0.lock().entry(call_id).or_default() += 1;
        AwaitedCall { calls: self.clone(), call_id }
    }

    /// Returns whether anybody waits for a call.
    #[must_use]
    pub fn has(&self, call_id: CallId) -> bool {
        self.0.lock().contains_key(&call_id)
    }
}

impl Drop for AwaitedCall {
    fn drop(&mut self) {
        if let Entry::Occupied(mut waiting) = self.calls.0.lock().entry(self.call_id) {
            *waiting.get_mut() -= 1;
            if *waiting.get() == 0 {
                waiting.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_awaited_until_the_last_who_waits_has_an_answer() {
        let calls = AwaitedCalls::default();
        let [one, other] = [1, 2].map(|number| CallId::from_bytes([number; 16]));
        let first = calls.begin(one);
        let second = calls.begin(one);
        assert_eq!((calls.has(one), calls.has(other)), (true, false));
        drop(first);
        assert!(calls.has(one));
        drop(second);
        assert!(!calls.has(one) && calls.0.lock().is_empty());
    }
}
