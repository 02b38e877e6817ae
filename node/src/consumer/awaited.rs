//! Calls that somebody waits for now. The node knows them by itself: no clock tells whether a call is under way.
//!
//! A call counts from when its caller asks until its caller has an answer, a repeat as well. The node's own questions
//! about an undecided call count for nothing. A call that is cancelled is answered with a problem: at once if nothing was promised for
//! it, else as soon as its task says whether it was sent, or could not say so within a moment. The task goes on alone: it sends
//! nothing from then on, and learns the end of what it sent before.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use farthing_control::types::CancelStage;
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId, call::Method};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{Bought, BuyError, Order};

/// The longest that a cancel waits for the task of a call to say whether the call was sent. A task that sent nothing mostly says so
/// after two commits of the ledger.
const TOLD_WITHIN: Duration = Duration::from_millis(300);

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
    /// It was cancelled when it may have been sent, and its task has not said yet whether it was.
    Cancelling,
    /// It was cancelled there, as those who ask are told.
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
        let begun = |stage| WaitingCallers {
            count: 0,
            order: Arc::new(AwaitedOrder {
                call_id,
                service: order.service,
                method: order.method,
                path: order.path.clone(),
                secret: order.grant.name.clone(),
                time_secs: clock::now_secs(),
            }),
            stage: Arc::new(watch::Sender::new(CallStage::Open(stage))),
        };
        let mut all = self.0.lock();
        let waiting = all.entry(call_id).or_insert_with(|| begun(CancelStage::Promised));
        // Whoever repeats a call that was cancelled waits for it anew. What was not promised by then is not promised meanwhile.
        let now = *waiting.stage.borrow();
        match now {
            CallStage::Open(_) => {}
            CallStage::Cancelling => *waiting = begun(CancelStage::Promised),
            CallStage::Cancelled(at) => *waiting = begun(at),
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

    /// Cancels a call for all who wait for it, and returns how far it was, as they are told; `None` if nobody waits for it, or it ended
    /// before they were told.
    pub(super) async fn cancel(&self, call_id: CallId) -> Option<CancelStage> {
        let stage = {
            let all = self.0.lock();
            let stage = &all.get(&call_id)?.stage;
            stage.send_if_modified(CallStage::cancel).then(|| Arc::clone(stage))?
        };
        let at = told(Arc::clone(&stage)).await;
        // It may have ended meanwhile: then its callers have its end, and nothing was cancelled.
        let is_over = self.0.lock().get(&call_id).is_none_or(|waiting| !Arc::ptr_eq(&waiting.stage, &stage));
        (at == CancelStage::Unpromised || !is_over).then_some(at)
    }
}

impl CallStage {
    const fn is_open(self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Cancels the call, and returns whether it was open.
    const fn cancel(&mut self) -> bool {
        let Self::Open(at) = *self else { return false };
        *self = match at {
            CancelStage::Unpromised => Self::Cancelled(at),
            CancelStage::Promised => Self::Cancelling,
        };
        true
    }
}

/// Says how far a cancelled call was, unless that was said before.
fn settle(stage: &watch::Sender<CallStage>, at: CancelStage) {
    stage.send_if_modified(|now| {
        let is_unsaid = *now == CallStage::Cancelling;
        if is_unsaid {
            *now = CallStage::Cancelled(at);
        }
        is_unsaid
    });
}

/// Waits until the call is cancelled, for ever if it ends before.
async fn cancelled(mut stage: watch::Receiver<CallStage>) {
    if stage.wait_for(|now| !now.is_open()).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the call is cancelled, and then until its task says how far it was. A task that says nothing in time may have sent it.
async fn told(stage: Arc<watch::Sender<CallStage>>) -> CancelStage {
    let mut seen = stage.subscribe();
    cancelled(stage.subscribe()).await;
    let said = seen.wait_for(|now| *now != CallStage::Cancelling);
    if timeout(TOLD_WITHIN, said).await.is_err() {
        settle(&stage, CancelStage::Promised);
    }
    let now = *stage.borrow();
    match now {
        CallStage::Cancelled(at) => at,
        CallStage::Open(_) | CallStage::Cancelling => CancelStage::Promised,
    }
}

impl WaitingCallers {
    fn is_cancelled(&self) -> bool {
        !self.stage.borrow().is_open()
    }
}

impl AwaitedCall {
    /// Returns whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        !self.stage.borrow().is_open()
    }

    /// Notes how far the call is, unless it was cancelled: a call is sent only after this says so. Those who cancelled it without
    /// knowing whether it was sent are told this stage.
    ///
    /// # Errors
    /// [`BuyError::Cancelled`].
    pub fn enter(&self, stage: CancelStage) -> Result<(), BuyError> {
        let mut entered = Ok(());
        self.stage.send_if_modified(|now| {
            let was = *now;
            match was {
                CallStage::Open(_) => *now = CallStage::Open(stage),
                CallStage::Cancelling => {
                    (*now, entered) = (CallStage::Cancelled(stage), Err(BuyError::Cancelled(stage)));
                }
                CallStage::Cancelled(at) => entered = Err(BuyError::Cancelled(at)),
            }
            was == CallStage::Cancelling
        });
        entered
    }

    /// Waits until the call is cancelled, for ever if it ends before.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        cancelled(self.stage.subscribe())
    }

    /// Waits until the call is cancelled and it is told how far it was.
    pub fn told(&self) -> impl Future<Output = CancelStage> + Send + use<> {
        told(Arc::clone(&self.stage))
    }

    /// Takes note of how the call's task ended: if it was cancelled, the task knows how far it was.
    pub fn end(&self, bought: &Result<Bought, BuyError>) {
        if let Err(BuyError::Cancelled(at)) = bought {
            settle(&self.stage, *at);
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

/// Waits for the end of the task that buys a call, or until it is told that the call is cancelled. The task goes on either way.
pub(crate) async fn end_of(
    task: JoinHandle<Result<Bought, BuyError>>,
    told: impl Future<Output = CancelStage>,
) -> Result<Bought, BuyError> {
    tokio::select! {
        biased;
        bought = task => bought.unwrap_or(Err(BuyError::Failed)),
        at = told => Err(BuyError::Cancelled(at)),
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

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_cancelled_is_not_sent_and_says_how_far_it_was() {
        let calls = AwaitedCalls::default();
        let call_id = order(1).call_id;
        assert_eq!(calls.cancel(call_id).await, None, "nobody waits for it");
        let call = calls.begin(&order(1));
        assert!(!call.is_cancelled() && call.cancelled().now_or_never().is_none());
        call.enter(UNPROMISED).unwrap();
        assert_eq!(calls.cancel(call_id).now_or_never().flatten(), Some(UNPROMISED), "at once");
        assert_eq!(was_cancelled_at(&call.enter(PROMISED)), Some(UNPROMISED), "as its caller was told");
        assert!(call.is_cancelled() && call.cancelled().now_or_never().is_some());
        assert_eq!(call.told().now_or_never(), Some(UNPROMISED));
        assert_eq!(calls.cancel(call_id).await, None, "its caller has the problem");
        assert!(!calls.has(call_id) && calls.was_cancelled(call_id) && calls.all().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_may_have_been_sent_unless_its_task_says_in_time_that_it_was_not() {
        let calls = AwaitedCalls::default();
        let repeat = calls.begin(&order(1));
        assert_eq!(calls.cancel(repeat.call_id).await, Some(PROMISED), "the ledger was not asked in time");
        let call = calls.begin(&order(2));
        call.enter(UNPROMISED).unwrap();
        call.enter(PROMISED).unwrap();
        assert_eq!(calls.cancel(call.call_id).await, Some(PROMISED));
        let answered = calls.begin(&order(3));
        let call_id = answered.call_id;
        answered.enter(PROMISED).unwrap();
        let told = tokio::join!(calls.cancel(call_id), async { drop(answered) });
        assert_eq!(told, (None, ()), "its caller has the answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancel_waits_for_the_word_of_the_ledger_and_of_the_network_that_nothing_was_sent() {
        let calls = AwaitedCalls::default();
        let begins = calls.begin(&order(1));
        let ledger = async { was_cancelled_at(&begins.enter(UNPROMISED)) };
        let told = tokio::join!(calls.cancel(begins.call_id), begins.told(), ledger);
        assert_eq!(told, (Some(UNPROMISED), UNPROMISED, Some(UNPROMISED)), "it has no call of this id");
        let promised = calls.begin(&order(2));
        promised.enter(PROMISED).unwrap();
        let network = async { promised.end(&Err(BuyError::Cancelled(UNPROMISED))) };
        let told = tokio::join!(calls.cancel(promised.call_id), promised.told(), network);
        assert_eq!(told, (Some(UNPROMISED), UNPROMISED, ()), "it was given up before its first byte");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_cancelled_is_waited_for_anew_by_whoever_repeats_it() {
        let calls = AwaitedCalls::default();
        let call_id = order(1).call_id;
        let first = calls.begin(&order(1));
        first.enter(UNPROMISED).unwrap();
        assert!(calls.cancel(call_id).await.is_some());
        let repeat = calls.begin(&order(1));
        assert!(calls.has(call_id) && !repeat.is_cancelled() && first.is_cancelled());
        drop(first);
        assert!(calls.has(call_id), "the end of the first is not that of the repeat");
        assert_eq!(calls.cancel(call_id).await, Some(UNPROMISED), "the first was never promised");
        drop(repeat);
        assert!(calls.0.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_hears_of_the_cancel_and_the_task_goes_on() {
        let calls = AwaitedCalls::default();
        let (open, gate) = tokio::sync::oneshot::channel::<()>();
        let call = calls.begin(&order(1));
        let (call_id, told) = (call.call_id, call.told());
        let (ended, end) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            gate.await.unwrap();
            ended.send(call.is_cancelled()).unwrap();
            Err(BuyError::ShuttingDown)
        });
        let waits = tokio::spawn(end_of(task, told));
        calls.cancel(call_id).await.unwrap();
        assert!(matches!(waits.await.unwrap(), Err(BuyError::Cancelled(_))));
        open.send(()).unwrap();
        assert!(end.await.unwrap(), "the task came to its end, and knew of it");
    }
}
