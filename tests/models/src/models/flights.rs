//! One task for all that ask: `node/network/src/single_flight.rs`.

use real_std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use farthing_protocol::Address;

use super::{any, begin, end, give_up};
use crate::{NotStarted, network::single_flight::SingleFlight, point, thread::set_ending};

const WALLET: Address = Address::from_bytes([1; 20]);

#[derive(Default)]
struct Tasks {
    started: AtomicUsize,
    running: AtomicUsize,
}

/// Runs until dropped or done.
struct Running(Arc<Tasks>);

impl Running {
    fn begin(tasks: &Arc<Tasks>) -> (Self, usize) {
        assert_eq!(tasks.running.fetch_add(1, Relaxed), 0, "one runs already");
        (Self(Arc::clone(tasks)), tasks.started.fetch_add(1, Relaxed))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

/// One task runs at a time; everybody who joined hears how it ended, also when whoever asked first has gone, it panics, or it is
/// dropped with its runtime; then the next one can fly.
pub fn everybody_hears_how_the_one_flight_ended() {
    let flights = Arc::new(SingleFlight::<usize>::new(1));
    let tasks = Arc::new(Tasks::default());
    let joiners: Vec<_> = (0..3)
        .map(|_| {
            let (flights, tasks) = (Arc::clone(&flights), Arc::clone(&tasks));
            begin(async move {
                let flight = || {
                    let (running, number) = Running::begin(&tasks);
                    async move {
                        let _running = running;
                        // Unlike `panic!`, without words for every schedule.
                        if any(3) == 0 {
                            resume_unwind(Box::new("on purpose"));
                        }
                        point();
                        Ok(number)
                    }
                };
                set_ending(any(4) == 0);
                let joined = flights.join(WALLET, flight);
                let heard = if any(3) == 0 { give_up(joined).await } else { Some(joined.await) };
                match heard {
                    None | Some(Err(NotStarted::Stopped)) => {}
                    Some(Ok(number)) => assert!(number < tasks.started.load(Relaxed)),
                    Some(Err(NotStarted::LocalLimit)) => panic!("there is one wallet"),
                }
            })
        })
        .collect();
    end(joiners);
    // A task may still be on its way when nobody waits for it; whoever joins it hears of it, and the next one flies.
    set_ending(false);
    let last = begin(async move {
        for _ in 0..2 {
            let joined = flights.join(WALLET, || async { Ok(99) }).await;
            assert_ne!(joined, Err(NotStarted::LocalLimit));
        }
        assert_eq!(flights.join(WALLET, || async { Ok(100) }).await, Ok(100));
        assert_eq!(format!("{flights:?}"), "SingleFlight(0)");
    });
    end([last]);
}
