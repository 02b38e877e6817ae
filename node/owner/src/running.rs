//! Calls in progress and answers kept: one call id is served once, however often it arrives.
//!
//! A repeat of a running call joins it; a repeat of a finished one gets the same answer while it is kept
//! (10 minutes, 1 MiB each, 128 MiB in all). The ledger remembers what the memory forgets.
//!
//! A call is registered by its id alone, which costs nothing. What it asks for is hashed when it is worth that, and
//! then tells repeats from other calls under the same id.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use farthing_protocol::{Address, CallId, Hash};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::answer::Answer;

const KEEP_FOR: Duration = Duration::from_secs(600);
const KEEP_BODY_BYTES_MAX: usize = 1024 * 1024;
const KEEP_TOTAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The cost of an entry beside its body: head, receipt, map entries.
const ENTRY_BYTES: usize = 1024;

/// The caller, and the id of its call.
type CallKey = (Address, CallId);

/// The treatment of a call that just arrived.
#[derive(Debug)]
pub enum Arrival {
    /// Nobody works on it: serve it, and end with the guard.
    First(RunningCall),
    /// Somebody does, or it is done: wait for the answer.
    Repeat(Joined),
}

/// The progress of a call, as far as it is known.
#[derive(Debug, Default)]
struct CallProgress {
    /// Not known of a call that was refused before it was looked at.
    request_hash: Option<Hash>,
    answer: Option<Arc<Answer>>,
}

/// A call that was there before.
#[derive(Debug)]
pub struct Joined(watch::Receiver<CallProgress>);

/// The call id was used for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

impl Joined {
    /// The answer of the call, if it asks for the same as `request_hash`; `None` when there will be none.
    ///
    /// # Errors
    /// [`Conflict`] when it asks for something else. A refusal of a call that nobody looked at is for both.
    pub async fn answer(mut self, request_hash: Hash) -> Result<Option<Arc<Answer>>, Conflict> {
        let is_known = |progress: &CallProgress| progress.request_hash.is_some() || progress.answer.is_some();
        match self.0.wait_for(is_known).await {
            Ok(progress) if progress.request_hash.is_some_and(|hash| hash != request_hash) => {
                return Err(Conflict);
            }
            Ok(_) => {}
            Err(_) => return Ok(None),
        }
        let answered = self.0.wait_for(|progress| progress.answer.is_some()).await;
        Ok(answered.map_or(None, |progress| progress.answer.clone()))
    }
}

#[derive(Debug, Default)]
struct RunningState {
    calls: HashMap<CallKey, watch::Receiver<CallProgress>>,
    /// Finished calls, oldest first, with what they cost in memory.
    kept: VecDeque<(Instant, CallKey, usize)>,
    kept_bytes: usize,
}

/// The calls in progress and kept.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<RunningState>>);

/// The duty to answer one call. Dropped without an answer, the call is forgotten and repeats start anew.
#[derive(Debug)]
pub struct RunningCall {
    calls: Calls,
    key: CallKey,
    sender: watch::Sender<CallProgress>,
    kept: bool,
}

impl Calls {
    /// Registers an arriving call.
    #[must_use]
    pub fn arrive(&self, key: CallKey) -> Arrival {
        let mut state = self.0.lock();
        state.forget_old(Instant::now());
        match state.calls.get(&key) {
            Some(progress) => Arrival::Repeat(Joined(progress.clone())),
            None => {
                let (sender, progress) = watch::channel(CallProgress::default());
                state.calls.insert(key, progress);
                Arrival::First(RunningCall { calls: self.clone(), key, sender, kept: false })
            }
        }
    }

    /// The answer of a finished call, or `Some(None)` while it runs.
    pub fn status(&self, key: &CallKey) -> Option<Option<Arc<Answer>>> {
        self.0.lock().calls.get(key).map(|progress| progress.borrow().answer.clone())
    }
}

impl RunningCall {
    /// Notes what the call asks for. Whoever sends something else under its id hears of the conflict from now on.
    pub fn asks_for(&self, request_hash: Hash) {
        self.sender.send_modify(|progress| progress.request_hash = Some(request_hash));
    }

    /// Returns what was noted.
    pub fn request_hash(&self) -> Option<Hash> {
        self.sender.borrow().request_hash
    }

    /// Gives everyone who waits `answer`, and keeps it for repeats when it is final and small enough.
    pub fn finish(mut self, mut answer: Arc<Answer>, is_final: bool) {
        if is_final && answer.body().len() <= KEEP_BODY_BYTES_MAX {
            let bytes = answer.body().len() + ENTRY_BYTES;
            let mut state = self.calls.0.lock();
            state.kept.push_back((Instant::now(), self.key, bytes));
            state.kept_bytes += bytes;
            self.kept = true;
            drop(state);
            // Within the bound of what is kept: the answer itself takes memory from calls as long as it is held.
            answer = answer.apart();
        }
        self.sender.send_modify(|progress| progress.answer = Some(answer));
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.kept {
            self.calls.0.lock().calls.remove(&self.key);
        }
    }
}

impl RunningState {
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
        Answer::refused(Refusal::new(RefusalCode::Busy, ""))
    }

    #[tokio::test]
    async fn a_repeat_joins_the_running_call_and_gets_its_answer() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY) else { panic!("first") };
        let repeat = || match calls.arrive(KEY) {
            Arrival::Repeat(joined) => joined,
            Arrival::First(_) => panic!("repeat"),
        };
        let (early, other) = (repeat(), repeat());
        let mut early = Box::pin(early.answer([1; 32]));
        assert!(futures::poll!(early.as_mut()).is_pending());
        running.asks_for([1; 32]);
        assert_eq!(other.answer([2; 32]).await.unwrap_err(), Conflict);
        running.finish(answer(), true);
        assert!(early.await.unwrap().is_some());
        assert!(repeat().answer([1; 32]).await.unwrap().is_some(), "kept");
        assert_eq!(repeat().answer([2; 32]).await.unwrap_err(), Conflict);
    }

    #[tokio::test]
    async fn a_call_that_ends_without_an_answer_can_be_made_again() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY) else { panic!("first") };
        let Arrival::Repeat(early) = calls.arrive(KEY) else { panic!("repeat") };
        let Arrival::Repeat(late) = calls.arrive(KEY) else { panic!("repeat") };
        let mut late = Box::pin(late.answer([1; 32]));
        running.asks_for([1; 32]);
        assert!(futures::poll!(late.as_mut()).is_pending());
        drop(running);
        assert!(early.answer([1; 32]).await.unwrap().is_none(), "the waiter learns there is no answer");
        assert!(late.await.unwrap().is_none());
        assert!(matches!(calls.arrive(KEY), Arrival::First(_)));
    }

    #[tokio::test]
    async fn a_refusal_is_not_kept() {
        let calls = Calls::default();
        let Arrival::First(running) = calls.arrive(KEY) else { panic!("first") };
        let Arrival::Repeat(meanwhile) = calls.arrive(KEY) else { panic!("repeat") };
        running.finish(answer(), false);
        assert!(meanwhile.answer([1; 32]).await.unwrap().is_some(), "nobody looked at what was asked for");
        assert!(matches!(calls.arrive(KEY), Arrival::First(_)));
    }
}
