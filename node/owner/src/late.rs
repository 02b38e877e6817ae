//! Copies of calls that arrive after their payer was told that the call was never served, or failed and costs nothing.
//!
//! The payer takes that word as the call's end. A copy may be on its way all the same, in a connection that has died
//! without anybody's notice and whose bytes come when its path is back. It would be served unpaid, or have its effect a
//! second time, after the payer has called anew. A payer that sends the same call again on purpose does so over the
//! connection it asked on, or over a newer one; a copy that comes over any other, older one is late.
//!
//! Invariant: what strangers ask takes the memory of no peer with a channel.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
};

use farthing_network::Origin;
use farthing_protocol::{Address, CallId, Refusal, RefusalCode};
use parking_lot::Mutex;
use tokio::time::Instant;

/// A line is found dead after 50 s at most, and nothing arrives over it then. A process that does not run finds nothing, so
/// only time in which this one runs counts.
const REMEMBERED_SECS: u64 = 120;
/// Calls of one payer, twice as many as a node has under way to one owner. What finds no place is not said to be free.
const CALLS_MAX: usize = 256;
/// Payers, of those with channels and of strangers.
const PAYERS_MAX: usize = 1_024;

/// The questions that were answered with “never served” or “failed, free”: each with its payer, call, time and connection.
#[derive(Debug, Default)]
pub struct ToldFree {
    partners: Mutex<Payers>,
    strangers: Mutex<Payers>,
    /// Seconds that this process has run, as somebody counted them who runs with it.
    ran_secs: AtomicU64,
}

#[derive(Debug, Default)]
struct Payers(HashMap<Address, VecDeque<LateNotice>>);

#[derive(Clone, Copy, Debug)]
struct LateNotice {
    call_id: CallId,
    at: Instant,
    at_secs: u64,
    origin: Origin,
}

impl LateNotice {
    /// Seconds for which it counts yet.
    const fn left_secs(&self, ran_secs: u64) -> u64 {
        REMEMBERED_SECS.saturating_sub(ran_secs.saturating_sub(self.at_secs))
    }
}

impl ToldFree {
    /// Counts a second in which this process ran.
    pub fn a_second_passed(&self) {
        self.ran_secs.fetch_add(1, Ordering::Relaxed);
    }

    fn ran_secs(&self) -> u64 {
        self.ran_secs.load(Ordering::Relaxed)
    }

    /// `payer` asked over `origin` and may be told that the call costs nothing, unless this returns false: there is no
    /// room to remember it.
    #[must_use]
    pub fn note(
        &self,
        payer: Address,
        is_partner: bool,
        call_id: CallId,
        origin: Origin,
        now: Instant,
    ) -> bool {
        let payers = if is_partner { &self.partners } else { &self.strangers };
        payers.lock().note(payer, LateNotice { call_id, at: now, at_secs: self.ran_secs(), origin })
    }

    /// Refuses a copy that comes over `origin` and was sent before its payer was told so.
    ///
    /// # Errors
    /// A refusal then.
    pub fn check(&self, payer: Address, call_id: CallId, origin: Origin) -> Result<(), Refusal> {
        let payers = [&self.partners, &self.strangers];
        match payers.iter().find_map(|payers| payers.lock().late_for(payer, call_id, origin, self.ran_secs()))
        {
            Some(wait_secs) => {
                let detail =
                    "this call was already reported as free, and now arrives again over an older connection";
                Err(Refusal::new(RefusalCode::Unavailable, detail).retry_after_ms(wait_secs * 1_000))
            }
            None => Ok(()),
        }
    }
}

impl Payers {
    fn note(&mut self, payer: Address, told: LateNotice) -> bool {
        let counts = |earlier: &LateNotice| earlier.left_secs(told.at_secs) > 0;
        if self.0.len() >= PAYERS_MAX && !self.0.contains_key(&payer) {
            self.0.retain(|_, calls| calls.back().is_some_and(counts));
        }
        if self.0.len() >= PAYERS_MAX && !self.0.contains_key(&payer) {
            let oldest = self.0.iter().min_by_key(|(_, calls)| calls.back().map(|last| last.at));
            if let Some(oldest) = oldest.map(|(payer, _)| *payer) {
                self.0.remove(&oldest);
            }
        }
        let calls = self.0.entry(payer).or_default();
        calls.retain(|earlier| earlier.call_id != told.call_id && counts(earlier));
        let has_room = calls.len() < CALLS_MAX;
        if has_room {
            calls.push_back(told);
        }
        has_room
    }

    /// For how many seconds a copy over `origin` is late yet.
    fn late_for(&self, payer: Address, call_id: CallId, origin: Origin, ran_secs: u64) -> Option<u64> {
        let told = self.0.get(&payer)?.iter().find(|told| told.call_id == call_id)?;
        let is_late = origin.number != told.origin.number && origin.since < told.at;
        let left_secs = told.left_secs(ran_secs);
        (is_late && left_secs > 0).then_some(left_secs)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PAYER: Address = Address::from_bytes([1; 20]);
    const CALL: CallId = CallId::from_bytes([1; 16]);
    const SECOND: Duration = Duration::from_secs(1);

    fn wallet(n: usize) -> Address {
        let mut bytes = [0xee; 20];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        Address::from_bytes(bytes)
    }

    #[test]
    fn a_copy_is_late_on_a_connection_that_is_older_than_the_word_and_not_the_one_it_was_asked_on() {
        let start = Instant::now();
        let at = |number, secs| Origin { number, since: start + SECOND * secs };
        let (told_free, told) = (ToldFree::default(), start + SECOND * 10);
        let is_late = |call_id, origin| told_free.check(PAYER, call_id, origin).is_err();
        assert!(!is_late(CALL, at(1, 0)), "nobody asked");
        assert!(told_free.note(PAYER, true, CALL, at(2, 5), told));
        for secs in [0, 4, 6, 9] {
            assert!(is_late(CALL, at(1, secs)), "made after {secs} s");
        }
        assert!(!is_late(CALL, at(2, 5)), "it was asked on this one, and its bytes come in order");
        assert!(!is_late(CALL, at(3, 10)), "nothing was sent over it before");
        assert!(!is_late(CallId::from_bytes([2; 16]), at(1, 0)), "another call");
        assert!(told_free.check(wallet(7), CALL, at(1, 0)).is_ok(), "of another payer");
        // However much time passes in which the process does not run.
        (1..REMEMBERED_SECS).for_each(|_| told_free.a_second_passed());
        assert!(is_late(CALL, at(1, 0)));
        told_free.a_second_passed();
        assert!(!is_late(CALL, at(1, 0)));
    }

    #[test]
    fn what_strangers_ask_takes_the_memory_of_no_peer_with_a_channel_and_both_are_bounded() {
        let now = Instant::now();
        let (old, asked_on) = (Origin { number: 1, since: now }, Origin { number: 2, since: now });
        let (told_free, told) = (ToldFree::default(), now + SECOND);
        assert!(told_free.note(PAYER, true, CALL, asked_on, told));
        for n in 0..2 * PAYERS_MAX {
            assert!(told_free.note(wallet(n), false, CALL, asked_on, told));
        }
        let calls = (0..2 * CALLS_MAX).map(|n| {
            let mut id = [9; 16];
            id[..8].copy_from_slice(&n.to_be_bytes());
            CallId::from_bytes(id)
        });
        let noted: Vec<_> =
            calls.filter(|id| told_free.note(wallet(usize::MAX), false, *id, asked_on, told)).collect();
        assert_eq!(noted.len(), CALLS_MAX, "none is forgotten for another one");
        assert!(noted.iter().all(|id| told_free.check(wallet(usize::MAX), *id, old).is_err()));
        (0..REMEMBERED_SECS).for_each(|_| told_free.a_second_passed());
        assert!(told_free.note(wallet(usize::MAX), false, CALL, asked_on, told), "later there is room again");
        assert!(told_free.note(PAYER, true, CALL, asked_on, told));
        assert!(told_free.check(PAYER, CALL, old).is_err());
        let strangers = told_free.strangers.lock();
        assert_eq!(strangers.0.len(), PAYERS_MAX);
    }
}
