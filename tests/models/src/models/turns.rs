//! Turns and places by key: `node/shared/src/keyed_mutex.rs` and `node/shared/src/keyed_semaphore.rs`.

use real_std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{any, begin, end, give_up};
use crate::{
    point,
    shared::{
        keyed_mutex::{KeyedGuard, KeyedMutex},
        keyed_semaphore::SharedPlaces,
    },
};

/// Keys that are remembered before those that nobody holds are swept, as in the file under test.
const KEPT: usize = 1_024;

/// How many work at once, and how many may.
#[derive(Default)]
struct AtWork(AtomicUsize);

impl AtWork {
    fn work(&self, at_most: usize) {
        let others = self.0.fetch_add(1, Relaxed);
        assert!(others < at_most, "{others} work already");
        point();
        self.0.fetch_sub(1, Relaxed);
    }
}

async fn turn(turns: &KeyedMutex<usize, bool>, at_work: &[AtWork; 2]) {
    let key = any(2);
    let guard: Option<KeyedGuard<bool>> = match any(3) {
        0 => turns.try_take(key),
        // Whoever waited is gone; a turn that it had is over.
        1 => give_up(turns.take(key)).await,
        _ => Some(turns.take(key).await),
    };
    if let Some(mut guard) = guard {
        at_work[key].work(1);
        assert!(!*guard, "the one before has not tidied up");
        *guard = true;
        point();
        *guard = false;
    }
}

fn take_turns(turns: &Arc<KeyedMutex<usize, bool>>) {
    let at_work = Arc::new(<[AtWork; 2]>::default());
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (turns, at_work) = (Arc::clone(turns), Arc::clone(&at_work));
            begin(async move {
                turn(&turns, &at_work).await;
                turn(&turns, &at_work).await;
            })
        })
        .collect();
    end(tasks);
}

/// One works on a key at a time, also when some stop waiting; each that waits has its turn.
pub fn one_works_on_a_key_at_a_time() {
    take_turns(&Arc::default());
}

/// The same while every look for a place sweeps those that nobody keeps; and at the end none of those is left.
pub fn a_sweep_takes_no_place_that_somebody_has() {
    let turns: Arc<KeyedMutex<usize, bool>> = Arc::default();
    let kept: Vec<_> = (10..10 + KEPT).map(|key| turns.slot(key)).collect();
    take_turns(&turns);
    let places = || format!("{turns:?}").matches("(Weak)").count();
    drop(kept);
    drop(turns.slot(0));
    assert_eq!(places(), 1, "what nobody keeps is swept");
}

/// No key has more than its share, all have no more than there is, and each that waits gets a place.
pub fn places_are_shared_and_none_is_lost() {
    let places = Arc::new(SharedPlaces::new(2, 1));
    let at_work = Arc::new(<[AtWork; 4]>::default());
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (places, at_work) = (Arc::clone(&places), Arc::clone(&at_work));
            begin(async move {
                let key = any(3);
                let place =
                    if any(3) == 0 { give_up(places.take(key)).await } else { Some(places.take(key).await) };
                if place.is_some() {
                    at_work[key].work(1);
                    at_work[3].work(2);
                }
            })
        })
        .collect();
    end(tasks);
    let [first, second] = [0, 1].map(|key| futures::FutureExt::now_or_never(places.take(key)));
    assert!(first.is_some() && second.is_some(), "every place was given back");
}
