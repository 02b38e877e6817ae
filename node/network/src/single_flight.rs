//! One task per wallet, whoever waits for it.

use std::{collections::HashMap, fmt, future::Future, sync::Arc};

use farthing_protocol::Address;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;

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
        let flight = {
            let mut flights = self.flights.lock();
            match flights.get(&wallet) {
                Some(flight) => flight.clone(),
                None if flights.len() >= self.flights_max => return Err(NotStarted::LocalLimit),
                None => {
                    let flight = self.take_off(wallet, task());
                    flights.insert(wallet, flight.clone());
                    flight
                }
            }
        };
        flight.await
    }

    /// Must be called with the map locked, so that a task cannot land before it is listed.
    fn take_off(
        &self,
        wallet: Address,
        task: impl Future<Output = Result<T, NotStarted>> + Send + 'static,
    ) -> Flight<T> {
        let flights = Arc::clone(&self.flights);
        let flying = tokio::spawn(async move {
            let landed = task.await;
            flights.lock().remove(&wallet);
            landed
        });
        flying.map(|joined| joined.unwrap_or(Err(NotStarted::Stopped))).boxed().shared()
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
}
