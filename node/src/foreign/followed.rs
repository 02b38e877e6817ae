//! Payments whose ends are not known: which of them the chain is asked about next.
//!
//! One task looks, and each look asks about the payments that are due, up to a bound. The pause before the next question about a payment
//! doubles. So a server that lets every payment wait cannot have this node ask its endpoints for anything but payments.

use std::{collections::HashMap, time::Duration};

use farthing_protocol::CallId;
use tokio::time::Instant;

const ASK_EVERY_FIRST: Duration = Duration::from_secs(1);
/// Payments that one look asks about: ten requests to an endpoint.
const LOOK_MAX: usize = 100;

/// The payments that are asked about, and whether a task does so.
#[derive(Debug, Default)]
pub(super) struct Followed {
    open: HashMap<CallId, Due>,
    has_task: bool,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    pause: Duration,
}

impl Followed {
    /// Adds a payment, unless it is there. Returns true if no task looks yet: the caller starts it.
    pub(super) fn add(&mut self, call_id: CallId, now: Instant) -> bool {
        let first = Due { at: now + ASK_EVERY_FIRST, pause: ASK_EVERY_FIRST };
        self.open.entry(call_id).or_insert(first);
        !std::mem::replace(&mut self.has_task, true)
    }

    pub(super) fn has(&self, call_id: CallId) -> bool {
        self.open.contains_key(&call_id)
    }

    pub(super) fn remove(&mut self, call_id: CallId) {
        self.open.remove(&call_id);
    }

    /// Returns whether the task has anything left to look for. If not, it ends, and the next payment starts another one.
    pub(super) fn goes_on(&mut self) -> bool {
        self.has_task = !self.open.is_empty();
        self.has_task
    }

    /// Takes the payments of one look, those that have waited longest first. Each is due again after its next pause.
    pub(super) fn due(&mut self, now: Instant, pause_max: Duration) -> Vec<CallId> {
        let due = self.open.iter().filter(|(_, due)| due.at <= now).map(|(call_id, due)| (due.at, *call_id));
        let mut due: Vec<_> = due.collect();
        due.sort_unstable_by_key(|(at, _)| *at);
        due.truncate(LOOK_MAX);
        for (_, call_id) in &due {
            if let Some(next) = self.open.get_mut(call_id) {
                next.pause = (next.pause * 2).min(pause_max);
                next.at = now + next.pause;
            }
        }
        due.into_iter().map(|(_, call_id)| call_id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PAUSE_MAX: Duration = Duration::from_secs(30);

    fn call(number: usize) -> CallId {
        CallId::from_bytes((number as u128).to_be_bytes())
    }

    #[test]
    fn a_payment_is_asked_about_after_pauses_that_double() {
        let (mut followed, start) = (Followed::default(), Instant::now());
        followed.add(call(1), start);
        let is_asked = |secs: &u32| !followed.due(start + *secs * SECOND, PAUSE_MAX).is_empty();
        let asked: Vec<u32> = (0..130).filter(is_asked).collect();
        assert_eq!(asked, [1, 3, 7, 15, 31, 61, 91, 121]);
    }

    #[test]
    fn a_look_asks_about_so_many_payments_and_the_next_one_about_those_that_still_wait() {
        let (mut followed, start) = (Followed::default(), Instant::now());
        for number in 0..=2 * LOOK_MAX {
            followed.add(call(number), start);
        }
        let looks = [SECOND; 4].map(|second| followed.due(start + second, PAUSE_MAX));
        assert_eq!(looks.each_ref().map(Vec::len), [LOOK_MAX, LOOK_MAX, 1, 0]);
        let asked: HashSet<CallId> = looks.into_iter().flatten().collect();
        assert_eq!(asked.len(), 2 * LOOK_MAX + 1, "each of them once");
        // All are due again, and this one waits for longest.
        followed.add(call(9_999), start + SECOND);
        let next = followed.due(start + 30 * SECOND, PAUSE_MAX);
        assert!(next[0] == call(9_999) && next.len() == LOOK_MAX, "{}", next.len());
    }

    #[test]
    fn one_task_looks_as_long_as_there_is_a_payment() {
        let (mut followed, now) = (Followed::default(), Instant::now());
        assert_eq!([1, 2, 2].map(|number| followed.add(call(number), now)), [true, false, false]);
        followed.remove(call(1));
        assert!(followed.goes_on());
        followed.remove(call(2));
        assert!(!followed.goes_on());
        assert!(followed.add(call(3), now), "the task has ended");
    }
}
