//! Calls that somebody waits for now. The node knows them by itself: no clock tells whether a call is under way.
//!
//! A call counts from when its caller asks until its caller has an answer, a repeat as well. The node's own questions
//! about an undecided call count for nothing. A call that is cancelled is answered with a problem at once. Its task goes on
//! alone: it sends nothing from then on, and learns the end of what it sent before.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use farthing_control::types::CancelStage;
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId, call::Method};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use super::{Bought, BuyError, Order};

/// The calls that somebody waits for, with those who do. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct AwaitedCalls(Arc<Mutex<HashMap<CallId, WaitingCallers>>>);

/// The facts of a call that somebody waits for, which are known before its promise is made.
#[derive(Debug)]
pub struct AwaitedOrder {
    pub call_id: CallId,
    pub service: ServiceId,
    pub method: Method,
    pub path: String,
    /// Name of the secret that ordered it.
    pub secret: String,
    /// The time at which it came.
    pub time_secs: u64,
}

/// The callers that wait for one call.
#[derive(Debug)]
struct WaitingCallers {
    count: usize,
    order: Arc<AwaitedOrder>,
    stage: Arc<watch::Sender<CallStage>>,
}

/// The stage that a call is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    Open(CancelStage),
    /// It was cancelled there.
    Cancelled(CancelStage),
}

/// One who waits for a call; stops waiting when dropped.
#[derive(Debug)]
pub struct AwaitedCall {
    calls: AwaitedCalls,
    call_id: CallId,
    stage: Arc<watch::Sender<CallStage>>,
}

impl AwaitedCalls {
    /// Notes that somebody waits for a call. Until the ledger was asked about its id, it may be one that was sent before.
    #[must_use]
    pub fn begin(&self, order: &Order) -> AwaitedCall {
        let call_id = order.call_id;
        let begun = || WaitingCallers {
            count: 0,
            order: Arc::new(AwaitedOrder {
                call_id,
                service: order.service,
                method: order.method,
                path: order.path.clone(),
                secret: order.grant.name.clone(),
                time_secs: clock::now_secs(),
            }),
            stage: Arc::new(watch::Sender::new(CallStage::Open(CancelStage::Promised))),
        };
        let mut all = self.0.lock();
        let waiting = all.entry(call_id).or_insert_with(begun);
        // Whoever repeats a call that was cancelled waits for it anew.
        if waiting.is_cancelled() {
            *waiting = begun();
        }
        waiting.count += 1;
        AwaitedCall { calls: self.clone(), call_id, stage: Arc::clone(&waiting.stage) }
    }

    /// Returns whether anybody waits for a call.
    #[must_use]
    pub fn has(&self, call_id: CallId) -> bool {
        self.get(call_id).is_some()
    }

    /// Returns what is known of a call that somebody waits for.
    #[must_use]
    pub fn get(&self, call_id: CallId) -> Option<Arc<AwaitedOrder>> {
        let all = self.0.lock();
        let waiting = all.get(&call_id).filter(|waiting| !waiting.is_cancelled())?;
        Some(Arc::clone(&waiting.order))
    }

    /// Lists the calls that somebody waits for.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<AwaitedOrder>> {
        let all = self.0.lock();
        let waiting = all.values().filter(|waiting| !waiting.is_cancelled());
        waiting.map(|waiting| Arc::clone(&waiting.order)).collect()
    }

    /// Returns whether a call was cancelled whose task goes on.
    #[must_use]
    pub fn was_cancelled(&self, call_id: CallId) -> bool {
        self.0.lock().get(&call_id).is_some_and(WaitingCallers::is_cancelled)
    }

    /// Cancels a call for all who wait for it; `None` if nobody does.
    pub(super) fn cancel(&self, call_id: CallId) -> Option<CancelStage> {
        let all = self.0.lock();
        let stage = &all.get(&call_id)?.stage;
        let mut cancelled = None;
        stage.send_if_modified(|now| {
            if let CallStage::Open(at) = *now {
                (cancelled, *now) = (Some(at), CallStage::Cancelled(at));
            }
            cancelled.is_some()
        });
        cancelled
    }
}

impl WaitingCallers {
    fn is_cancelled(&self) -> bool {
        matches!(*self.stage.borrow(), CallStage::Cancelled(_))
    }
}

impl AwaitedCall {
    /// Checks that the call was not cancelled.
    ///
    /// # Errors
    /// [`BuyError::Cancelled`].
    pub fn check(&self) -> Result<(), BuyError> {
        match *self.stage.borrow() {
            CallStage::Open(_) => Ok(()),
            CallStage::Cancelled(at) => Err(BuyError::Cancelled(at)),
        }
    }

    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.check().is_err()
    }

    /// Notes how far the call is, unless it was cancelled: a call is sent only after this says so.
    ///
    /// # Errors
    /// [`BuyError::Cancelled`].
    pub fn enter(&self, stage: CancelStage) -> Result<(), BuyError> {
        let mut entered = Ok(());
        self.stage.send_if_modified(|now| {
            match *now {
                CallStage::Open(_) => *now = CallStage::Open(stage),
                CallStage::Cancelled(at) => entered = Err(BuyError::Cancelled(at)),
            }
            false
        });
        entered
    }

    /// Waits until the call is cancelled, for ever if it ends before.
    pub fn cancelled(&self) -> impl Future<Output = CancelStage> + Send + use<> {
        let mut stage = self.stage.subscribe();
        async move {
            loop {
                let now = *stage.borrow_and_update();
                if let CallStage::Cancelled(at) = now {
                    return at;
                }
                if stage.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Drop for AwaitedCall {
    fn drop(&mut self) {
        if let Entry::Occupied(mut waiting) = self.calls.0.lock().entry(self.call_id)
            && Arc::ptr_eq(&waiting.get().stage, &self.stage)
        {
            waiting.get_mut().count -= 1;
            if waiting.get().count == 0 {
                waiting.remove();
            }
        }
    }
}

/// Waits for the end of the task that buys a call, or until the call is cancelled. The task goes on either way.
pub(crate) async fn end_of(
    task: JoinHandle<Result<Bought, BuyError>>,
    cancelled: impl Future<Output = CancelStage>,
) -> Result<Bought, BuyError> {
    tokio::select! {
        biased;
        bought = task => bought.unwrap_or(Err(BuyError::Failed)),
        at = cancelled => Err(BuyError::Cancelled(at)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use futures::FutureExt;

    use super::*;
    use crate::consumer::spending::Grant;

    const PROMISED: CancelStage = CancelStage::Promised;
    const UNPROMISED: CancelStage = CancelStage::Unpromised;

    fn order(number: u8) -> Order {
        Order {
            grant: Arc::new(Grant::unlimited("default")),
            call_id: CallId::from_bytes([number; 16]),
            service: ServiceId::from_bytes([7; 16]),
            method: Method::Get,
            path: "/ok".to_owned(),
            params: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: Bytes::new(),
            max_price: None,
        }
    }

    fn was_cancelled_at(result: &Result<(), BuyError>) -> Option<CancelStage> {
        match result {
            Err(BuyError::Cancelled(at)) => Some(*at),
            _ => None,
        }
    }

    #[test]
    fn a_call_is_awaited_until_the_last_who_waits_has_an_answer() {
        let calls = AwaitedCalls::default();
        let [one, other] = [1, 2].map(|number| order(number).call_id);
        let first = calls.begin(&order(1));
        let second = calls.begin(&order(1));
        assert_eq!((calls.has(one), calls.has(other)), (true, false));
        drop(first);
        assert!(calls.has(one) && calls.all().len() == 1);
        drop(second);
        assert!(!calls.has(one) && calls.0.lock().is_empty());
    }

    #[test]
    fn a_call_that_was_cancelled_is_not_sent_and_says_how_far_it_was() {
        let calls = AwaitedCalls::default();
        let call_id = order(1).call_id;
        assert_eq!(calls.cancel(call_id), None, "nobody waits for it");
        let call = calls.begin(&order(1));
        assert!(call.check().is_ok() && call.cancelled().now_or_never().is_none());
        call.enter(UNPROMISED).unwrap();
        assert_eq!(calls.cancel(call_id), Some(UNPROMISED));
        assert_eq!(was_cancelled_at(&call.enter(PROMISED)), Some(UNPROMISED));
        assert_eq!(was_cancelled_at(&call.check()), Some(UNPROMISED), "as its caller was told");
        assert_eq!(call.cancelled().now_or_never(), Some(UNPROMISED));
        assert_eq!(calls.cancel(call_id), None, "its caller has the problem");
        assert!(!calls.has(call_id) && calls.was_cancelled(call_id) && calls.all().is_empty());
    }

    #[test]
    fn a_call_may_have_been_sent_unless_the_ledger_says_that_it_is_new() {
        let calls = AwaitedCalls::default();
        let repeat = calls.begin(&order(1));
        assert_eq!(calls.cancel(repeat.call_id), Some(PROMISED));
        let call = calls.begin(&order(2));
        call.enter(UNPROMISED).unwrap();
        call.enter(PROMISED).unwrap();
        assert_eq!(calls.cancel(call.call_id), Some(PROMISED));
    }

    #[test]
    fn a_call_that_was_cancelled_is_waited_for_anew_by_whoever_repeats_it() {
        let calls = AwaitedCalls::default();
        let call_id = order(1).call_id;
        let first = calls.begin(&order(1));
        assert!(calls.cancel(call_id).is_some());
        let repeat = calls.begin(&order(1));
        assert!(calls.has(call_id) && repeat.check().is_ok() && first.is_cancelled());
        drop(first);
        assert!(calls.has(call_id), "the end of the first is not that of the repeat");
        drop(repeat);
        assert!(calls.0.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_the_cancel_at_once_and_the_task_goes_on() {
        let calls = AwaitedCalls::default();
        let (open, gate) = tokio::sync::oneshot::channel::<()>();
        let call = calls.begin(&order(1));
        let (call_id, cancelled) = (call.call_id, call.cancelled());
        let (ended, end) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            gate.await.unwrap();
            ended.send(call.is_cancelled()).unwrap();
            Err(BuyError::ShuttingDown)
        });
        let waits = tokio::spawn(end_of(task, cancelled));
        calls.cancel(call_id).unwrap();
        assert!(matches!(waits.await.unwrap(), Err(BuyError::Cancelled(_))));
        open.send(()).unwrap();
        assert!(end.await.unwrap(), "the task came to its end, and knew of it");
    }
}
