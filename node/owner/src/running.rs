//! Calls in progress and answers kept: one call id is served once, however often it arrives.
//!
//! A repeat of a running call joins it; a repeat of a finished one gets the same answer while it is kept
//! (10 minutes, 1 MiB each, 128 MiB in all). Once all of that is taken, a payer that has more than a quarter of it makes room
//! first. The ledger remembers what the memory forgets.
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
/// Of all that is kept, one in so many bytes is the most of one payer once all are taken.
const PAYERS_PART: usize = 4;
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
    Repeat(RepeatedCall),
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
pub struct RepeatedCall(watch::Receiver<CallProgress>);

/// The call id was used for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

impl RepeatedCall {
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

#[derive(Debug)]
struct RunningState {
    calls: HashMap<CallKey, watch::Receiver<CallProgress>>,
    /// Finished calls, oldest first, with what they cost in memory.
    kept: VecDeque<(Instant, CallKey, usize)>,
    kept_bytes: usize,
    /// The part of that of each payer who has some.
    bytes_of: HashMap<Address, usize>,
    kept_bytes_max: usize,
}

/// The calls in progress and kept.
#[derive(Clone, Debug)]
pub struct Calls(Arc<Mutex<RunningState>>);

impl Default for Calls {
    fn default() -> Self {
        Self::keeping(KEEP_TOTAL_BYTES_MAX)
    }
}

/// The duty to answer one call. Dropped without an answer, the call is forgotten and repeats start anew.
#[derive(Debug)]
pub struct RunningCall {
    calls: Calls,
    key: CallKey,
    sender: watch::Sender<CallProgress>,
    kept: bool,
}

impl Calls {
    /// No calls, and room for answers of so many bytes.
    fn keeping(kept_bytes_max: usize) -> Self {
        let (calls, kept, bytes_of) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self(Arc::new(Mutex::new(RunningState { calls, kept, kept_bytes: 0, bytes_of, kept_bytes_max })))
    }

    /// Registers an arriving call.
    #[must_use]
    pub fn arrive(&self, key: CallKey) -> Arrival {
        let mut state = self.0.lock();
        state.forget_old(Instant::now());
        match state.calls.get(&key) {
            Some(progress) => Arrival::Repeat(RepeatedCall(progress.clone())),
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
            state.keep(self.key, bytes);
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
        while self.kept.front().is_some_and(|(since, ..)| now.duration_since(*since) >= KEEP_FOR) {
            self.forget(0);
        }
    }

    fn keep(&mut self, key: CallKey, bytes: usize) {
        let (payer, _) = key;
        self.kept.push_back((Instant::now(), key, bytes));
        self.kept_bytes += bytes;
        *self.bytes_of.entry(payer).or_default() += bytes;
        while self.kept_bytes > self.kept_bytes_max {
            let has_more =
                self.bytes_of.get(&payer).is_some_and(|of| *of > self.kept_bytes_max / PAYERS_PART);
            let is_its = |(_, (other, _), _): &(Instant, CallKey, usize)| *other == payer;
            let oldest = if has_more { self.kept.iter().position(is_its) } else { None };
            self.forget(oldest.unwrap_or_default());
        }
    }

    fn forget(&mut self, at: usize) {
        let Some((_, key, bytes)) = self.kept.remove(at) else { return };
        self.kept_bytes -= bytes;
        if let Some(of) = self.bytes_of.get_mut(&key.0) {
            *of -= bytes;
            if *of == 0 {
                self.bytes_of.remove(&key.0);
            }
        }
        self.calls.remove(&key);
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

    #[test]
    fn one_payer_leaves_the_kept_answers_of_others_however_many_it_gets() {
        let calls = Calls::keeping(8 * ENTRY_BYTES);
        let key = |payer: u8, call: u8| (Address::from_bytes([payer; 20]), CallId::from_bytes([call; 16]));
        let make = |payer: u8, call: u8| match calls.arrive(key(payer, call)) {
            Arrival::First(running) => running.finish(answer(), true),
            Arrival::Repeat(_) => panic!("first"),
        };
        (0..6).for_each(|call| make(1, call));
        (0..50).for_each(|call| make(2, call));
        let kept = |payer: u8| (0..50).filter(|call| calls.status(&key(payer, *call)).is_some()).count();
        assert_eq!((kept(1), kept(2)), (6, 2));
        assert!(calls.status(&key(2, 49)).is_some(), "its newest");
        make(3, 0);
        assert_eq!((kept(1), kept(2), kept(3)), (5, 2, 1), "within its part, the oldest of all makes room");
    }
}
