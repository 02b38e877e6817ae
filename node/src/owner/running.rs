//! Calls in progress and answers kept: one call id is served once, however often it arrives.
//!
//! A repeat of a running call joins it; a repeat of a finished one gets the same answer while it is kept
//! (10 minutes, 1 MiB each, 128 MiB in all). The ledger remembers what the memory forgets.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_protocol::{Address, CallId, CallReply, Hash};
use tokio::sync::watch;

const KEEP_FOR: Duration = Duration::from_secs(600);
const KEEP_BODY_BYTES_MAX: usize = 1024 * 1024;
const KEEP_TOTAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// What an entry costs beside its body: head, receipt, map entries.
const ENTRY_BYTES: usize = 1024;

/// Who calls, and which call.
pub type CallKey = (Address, CallId);

/// An answer as it is sent, cheap to send again.
#[derive(Debug)]
pub struct Answer {
    pub reply: CallReply,
    pub body: Bytes,
}

/// What to do with a call that just arrived.
#[derive(Debug)]
pub enum Arrival {
    /// Nobody works on it: serve it, and end with the guard.
    First(Running),
    /// Somebody does, or it is done: wait for the answer. `None` means there will be none.
    Repeat(watch::Receiver<Option<Arc<Answer>>>),
    /// The id was used for something else.
    Conflict,
}

#[derive(Debug)]
struct Entry {
    request_hash: Hash,
    answer: watch::Receiver<Option<Arc<Answer>>>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<CallKey, Entry>,
    /// Finished calls, oldest first, with what they cost in memory.
    kept: VecDeque<(Instant, CallKey, usize)>,
    kept_bytes: usize,
}

/// The calls in progress and kept.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<State>>);

/// The duty to answer one call. Dropped without an answer, the call is forgotten and repeats start anew.
#[derive(Debug)]
pub struct Running {
    calls: Calls,
    key: CallKey,
    sender: watch::Sender<Option<Arc<Answer>>>,
    kept: bool,
}

impl Calls {
    /// Registers an arriving call.
    #[must_use]
    pub fn arrive(&self, key: CallKey, request_hash: Hash) -> Arrival {
        let mut state = self.lock();
        state.forget_old(Instant::now());
        match state.calls.get(&key) {
            Some(entry) if entry.request_hash != request_hash => Arrival::Conflict,
            Some(entry) => Arrival::Repeat(entry.answer.clone()),
            None => {
                let (sender, answer) = watch::channel(None);
                state.calls.insert(key, Entry { request_hash, answer });
                Arrival::First(Running { calls: self.clone(), key, sender, kept: false })
            }
        }
    }

    /// The answer of a finished call, or `Some(None)` while it runs.
    #[must_use]
    pub fn status(&self, key: &CallKey) -> Option<Option<Arc<Answer>>> {
        self.lock().calls.get(key).map(|entry| entry.answer.borrow().clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Gives everyone who waits `answer`, and keeps it for repeats when it is final and small enough.
    pub fn finish(mut self, mut answer: Arc<Answer>, is_final: bool) {
        if is_final && answer.body.len() <= KEEP_BODY_BYTES_MAX {
            let bytes = answer.body.len() + ENTRY_BYTES;
            let mut state = self.calls.lock();
            state.kept.push_back((Instant::now(), self.key, bytes));
            state.kept_bytes += bytes;
            self.kept = true;
            drop(state);
            // A copy, within the bound of what is kept: the answer itself takes memory from calls as long as it is held.
            let body = Bytes::copy_from_slice(&answer.body);
            answer = Arc::new(Answer { reply: answer.reply.clone(), body });
        }
        self.sender.send_replace(Some(answer));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.kept {
            self.calls.lock().calls.remove(&self.key);
        }
    }
}

impl State {
    fn forget_old(&mut self, now: Instant) {
        while let Some((since, key, bytes)) = self.kept.front().copied() {
            if now.duration_since(since) < KEEP_FOR && self.kept_bytes <= KEEP_TOTAL_BYTES_MAX {
                break;
            }
            self.kept.pop_front();
            self.kept_bytes -= bytes;
            self.calls.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{Refusal, RefusalCode};

    use super::*;

    const KEY: CallKey = (Address::ZERO, CallId::from_bytes([1; 16]));

    fn answer() -> Arc<Answer> {
        let refusal = Refusal::new(RefusalCode::Busy, "");
        Arc::new(Answer { reply: CallReply::Refused(refusal), body: Bytes::new() })
    }

    #[tokio::test]
    async fn a_repeat_joins_the_running_call_and_gets_its_answer() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY, [1; 32]) else { panic!("first") };
        let Arrival::Repeat(mut repeat) = calls.arrive(KEY, [1; 32]) else { panic!("repeat") };
        assert!(matches!(calls.arrive(KEY, [2; 32]), Arrival::Conflict));
        running.finish(answer(), true);
        assert!(repeat.wait_for(Option::is_some).await.is_ok());
        let Arrival::Repeat(late) = calls.arrive(KEY, [1; 32]) else { panic!("kept") };
        assert!(late.borrow().is_some());
    }

    #[tokio::test]
    async fn a_call_that_ends_without_an_answer_can_be_made_again() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY, [1; 32]) else { panic!("first") };
        let Arrival::Repeat(mut repeat) = calls.arrive(KEY, [1; 32]) else { panic!("repeat") };
        drop(running);
        assert!(repeat.wait_for(Option::is_some).await.is_err(), "the waiter learns there is no answer");
        assert!(matches!(calls.arrive(KEY, [2; 32]), Arrival::First(_)));
    }

    #[test]
    fn a_refusal_is_not_kept() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY, [1; 32]) else { panic!("first") };
        running.finish(answer(), false);
        assert!(matches!(calls.arrive(KEY, [1; 32]), Arrival::First(_)));
    }
}
