//! One task per wallet, whoever waits for it.

use std::{collections::HashMap, fmt, future::Future, sync::Arc};

use farthing_protocol::Address;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::NotStarted;

type Flight<T> = Shared<BoxFuture<'static, Result<T, NotStarted>>>;

/// Tasks under way, by the wallet they are about. Bounded; what is one too many is refused.
pub(crate) struct SingleFlight<T> {
    flights_max: usize,
    flights: Arc<Mutex<HashMap<Address, Flight<T>>>>,
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    pub(crate) fn new(flights_max: usize) -> Self {
        Self { flights_max, flights: Arc::default() }
    }

    /// Joins the task about `wallet`, or starts `task`. A started task goes on when whoever asked for it has
    /// gone, because others may have joined.
    pub(crate) async fn join<F>(&self, wallet: Address, task: impl FnOnce() -> F) -> Result<T, NotStarted>
    where
        F: Future<Output = Result<T, NotStarted>> + Send + 'static,
    {
        let (flight, starting) = {
            let mut flights = self.flights.lock();
            match flights.get(&wallet) {
                Some(flight) => (flight.clone(), None),
                None if flights.len() >= self.flights_max => return Err(NotStarted::LocalLimit),
                None => {
                    let (landing, landed) = oneshot::channel();
                    let flight = landed.map(|landed| landed.unwrap_or(Err(NotStarted::Stopped)));
                    let flight = flight.boxed().shared();
                    flights.insert(wallet, flight.clone());
                    (flight, Some(landing))
                }
            }
        };
        if let Some(landing) = starting {
            // Unlocked: a runtime that is ending drops the task at once, and its entry with it.
            let entry = FlightEntry { wallet, flights: Arc::clone(&self.flights) };
            let task = task();
            tokio::spawn(async move {
                let result = task.await;
                drop(entry);
                // Whoever asked may not wait any more.
                let _ = landing.send(result);
            });
        }
        flight.await
    }
}

/// A flight's place in the map, which ends with the task, also when that panics or is dropped.
struct FlightEntry<T> {
    wallet: Address,
    flights: Arc<Mutex<HashMap<Address, Flight<T>>>>,
}

impl<T> Drop for FlightEntry<T> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.wallet);
    }
}

impl<T> fmt::Debug for SingleFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SingleFlight({})", self.flights.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const A: Address = Address::from_bytes([1; 20]);
    const B: Address = Address::from_bytes([2; 20]);

    #[tokio::test]
    async fn whoever_waits_for_one_wallet_shares_one_task() {
        let flights = SingleFlight::new(1);
        let (started, gate) = (AtomicU32::new(0), Arc::new(tokio::sync::Notify::new()));
        let join = |wallet| {
            flights.join(wallet, || {
                started.fetch_add(1, Ordering::SeqCst);
                let gate = Arc::clone(&gate);
                async move {
                    gate.notified().await;
                    Ok(7)
                }
            })
        };
        let third = async {
            assert_eq!(join(B).await, Err(NotStarted::LocalLimit));
            gate.notify_one();
        };
        let (first, second, ()) = tokio::join!(join(A), join(A), third);
        assert_eq!((first, second), (Ok(7), Ok(7)));
        assert_eq!(started.load(Ordering::SeqCst), 1);
        gate.notify_one();
        assert_eq!(join(B).await, Ok(7), "a landed task makes room");
    }

    async fn crash() -> Result<u8, NotStarted> {
        panic!("a task of this test ends badly")
    }

    #[tokio::test]
    async fn a_task_that_ends_without_a_result_leaves_no_flight_behind() {
        let flights = SingleFlight::<u8>::new(1);
        assert_eq!(flights.join(A, crash).await, Err(NotStarted::Stopped));
        assert_eq!(flights.join(A, || async { Ok(7) }).await, Ok(7), "the next one flies");
    }

    #[test]
    fn a_task_that_is_dropped_with_its_runtime_leaves_no_flight_behind() {
        let flights = SingleFlight::<u8>::new(1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let joining = std::pin::pin!(flights.join(A, std::future::pending::<Result<u8, NotStarted>>));
            assert!(futures::poll!(joining).is_pending());
        });
        assert_eq!(flights.flights.lock().len(), 1);
        drop(runtime);
        assert_eq!(flights.flights.lock().len(), 0);
    }
}
