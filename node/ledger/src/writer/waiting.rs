//! Operations between those that ask for them and the thread that runs them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};

use super::{GROUP_OPERATIONS_MAX, Job, QUEUE_OPERATIONS_MAX, Queue};
use crate::{
    error::{Closed, LedgerError, Result},
    group::Group,
};

/// The time for which an operation waits for a commit that another one begins. A crash may lose it meanwhile.
const RIDE_MAX: Duration = Duration::from_millis(20);
/// While more calls than this are under way, others will ask for a commit soon: it waits for as many operations.
const GATHER: usize = 8;
/// The time for which a commit waits for further operations.
const GATHER_MAX: Duration = Duration::from_millis(2);

/// Operations between those that ask for them and the thread that runs them.
#[derive(Debug)]
pub(super) struct Waiting {
    lists: Mutex<Lists>,
    /// Tells the thread of something that it waits for.
    news: Condvar,
    /// Of operations that begin a commit.
    room: Semaphore,
    calls: AtomicUsize,
}

/// A call that is under way, of which an operation comes sooner or later.
#[derive(Debug)]
#[must_use = "it is counted until it is dropped"]
pub struct UnderWay(Arc<Waiting>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Default)]
struct Lists {
    /// At most [`QUEUE_OPERATIONS_MAX`], in their order.
    begin: Vec<Box<dyn Job>>,
    /// At most [`GROUP_OPERATIONS_MAX`], which go with the next commit.
    ride: Vec<Box<dyn Job>>,
    /// The time at which the first to begin a commit waits no longer for others.
    begin_until: Option<Instant>,
    /// The time at which what rides waits no longer.
    ride_until: Option<Instant>,
    /// The time at which the thread looks again by itself; `None` while it waits to be told.
    looks_at: Option<Instant>,
    has_ended: bool,
}

impl Lists {
    /// The next group, with what rides.
    fn take(&mut self) -> Vec<Box<dyn Job>> {
        let count = self.begin.len().min(GROUP_OPERATIONS_MAX);
        let riding = std::mem::take(&mut self.ride);
        self.ride_until = None;
        let group = self.begin.drain(..count).chain(riding).collect();
        // Who is left over has waited for a whole commit.
        self.begin_until = (!self.begin.is_empty()).then(Instant::now);
        group
    }

    /// The time at which the next commit begins; `None` while there is nothing to commit.
    fn due(&self, gathers: bool) -> Option<Instant> {
        let is_enough = self.has_ended || self.begin.len() >= GATHER || !(gathers || self.begin.is_empty());
        let until = [self.begin_until, self.ride_until].into_iter().flatten().min();
        if is_enough { Some(Instant::now()) } else { until }
    }

    /// Leaves an operation to the next commit. Returns whether the thread has to be told, because it would look too late.
    fn ride(&mut self, job: Box<dyn Job>) -> bool {
        self.ride.push(job);
        if self.ride_until.is_some() {
            return false;
        }
        let until = Instant::now() + RIDE_MAX;
        self.ride_until = Some(until);
        self.looks_at.is_none_or(|at| at > until)
    }
}

/// Nothing to store: it is answered behind everything that was asked for before it.
struct Mark(oneshot::Sender<()>);

impl Job for Mark {
    fn apply(&mut self, _: &mut Group<'_>) -> Result<bool> {
        Ok(false)
    }

    fn answer(self: Box<Self>, _: Result<(), Closed>) {
        // Whoever waited may be gone.
        let _ = self.0.send(());
    }
}

impl Queue {
    /// See [`crate::Ledger::catch_up`].
    pub(crate) async fn catch_up(&self) {
        let (waiter, answer) = oneshot::channel();
        if self.begin(Box::new(Mark(waiter))).await.is_ok() {
            let _ = answer.await;
        }
    }
}

pub(super) fn writer_ended() -> LedgerError {
    let cause = std::io::Error::other("the writer thread ended by a bug; please report it with the log");
    Closed { cause: Arc::new(cause) }.into()
}

impl Default for Waiting {
    fn default() -> Self {
        let (lists, news, calls) = Default::default();
        Self { lists, news, room: Semaphore::new(QUEUE_OPERATIONS_MAX), calls }
    }
}

impl Waiting {
    /// The next group, once there is one to commit; `None` after the last.
    ///
    /// Something mostly rides soon after a commit. To wake the thread for it costs more than to have it look once by itself.
    pub(super) fn next_group(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut lists = self.lists.lock();
        let look = Instant::now() + RIDE_MAX;
        loop {
            let (due, now) = (lists.due(self.calls.load(Relaxed) > GATHER), Instant::now());
            if due.is_some_and(|due| due <= now) {
                break;
            }
            let until = due.or((look > now).then_some(look));
            lists.looks_at = until;
            match until {
                None => self.news.wait(&mut lists),
                Some(until) => _ = self.news.wait_until(&mut lists, until),
            }
        }
        let before = lists.begin.len();
        let group = lists.take();
        self.room.add_permits(before - lists.begin.len());
        (!group.is_empty()).then_some(group)
    }

    /// Leaves an operation to the next commit, and begins one if none is under way; waits for room.
    ///
    /// # Errors
    /// When the thread takes nothing more.
    pub(super) async fn begin(&self, job: Box<dyn Job>) -> Result<()> {
        self.room.acquire().await.map_err(|_| writer_ended())?.forget();
        let mut lists = self.lists.lock();
        if lists.has_ended {
            return Err(writer_ended());
        }
        lists.begin.push(job);
        match lists.begin.len() {
            1 => lists.begin_until = Some(Instant::now() + GATHER_MAX),
            GATHER => {}
            _ => return Ok(()),
        }
        self.news.notify_one();
        Ok(())
    }

    /// Leaves an operation to a commit that another one begins; gives it back when too many ride already.
    ///
    /// # Errors
    /// When the thread takes nothing more.
    pub(super) fn ride(&self, job: Box<dyn Job>) -> Result<Option<Box<dyn Job>>> {
        let mut lists = self.lists.lock();
        if lists.has_ended {
            return Err(writer_ended());
        }
        if lists.ride.len() >= GROUP_OPERATIONS_MAX {
            return Ok(Some(job));
        }
        if lists.ride(job) {
            self.news.notify_one();
        }
        Ok(None)
    }

    /// Counts a call that is under way.
    pub(super) fn count(self: &Arc<Self>) -> UnderWay {
        self.calls.fetch_add(1, Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Lets the thread end after what is here.
    pub(super) fn end(&self) {
        self.lists.lock().has_ended = true;
        self.news.notify_one();
    }

    /// Takes nothing more, also of those that wait for room.
    pub(super) fn refuse_all(&self) {
        self.end();
        self.room.close();
    }

    /// Operations that begin a commit and are in none.
    pub(super) fn queued(&self) -> usize {
        self.lists.lock().begin.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Job for Nothing {
        fn apply(&mut self, _: &mut Group<'_>) -> Result<bool> {
            Ok(false)
        }

        fn answer(self: Box<Self>, _: Result<(), Closed>) {}
    }

    #[tokio::test]
    async fn a_lone_operation_waits_for_nothing_and_one_of_many_calls_for_no_more_than_a_moment() {
        let waiting = Waiting::default();
        assert_eq!(waiting.lists.lock().due(true), None, "there is nothing to commit");
        let before = Instant::now();
        waiting.begin(Box::new(Nothing)).await.unwrap();
        let after = Instant::now();
        assert!(waiting.lists.lock().due(false).unwrap() <= Instant::now(), "the only call under way");
        let due = waiting.lists.lock().due(true).unwrap();
        assert!(due >= before + GATHER_MAX && due <= after + GATHER_MAX, "others are under way");
        for _ in 1..GATHER {
            waiting.begin(Box::new(Nothing)).await.unwrap();
        }
        assert!(waiting.lists.lock().due(true).unwrap() <= Instant::now(), "enough of them came");
    }

    #[test]
    fn what_rides_wakes_the_thread_only_if_the_thread_looks_later_by_itself() {
        for (looks_in, is_told) in [(None, true), (Some(RIDE_MAX / 2), false), (Some(3 * RIDE_MAX), true)] {
            let looks_at = looks_in.map(|soon| Instant::now() + soon);
            let mut lists = Lists { looks_at, ..Lists::default() };
            assert_eq!(lists.ride(Box::new(Nothing)), is_told, "{looks_in:?}");
            assert!(!lists.ride(Box::new(Nothing)), "the thread knows of the first");
        }
    }

    #[test]
    fn what_rides_is_taken_by_itself_however_long_nothing_came_before() {
        for pause in [Duration::ZERO, RIDE_MAX / 2, 3 * RIDE_MAX] {
            let waiting = Arc::new(Waiting::default());
            let taken = std::thread::spawn({
                let waiting = Arc::clone(&waiting);
                move || waiting.next_group().map_or(0, |group| group.len())
            });
            std::thread::sleep(pause);
            assert!(waiting.ride(Box::new(Nothing)).unwrap().is_none());
            assert_eq!(taken.join().unwrap(), 1, "after {pause:?}");
        }
    }

    #[tokio::test]
    async fn calls_that_ended_delay_no_commit() {
        let waiting = Arc::new(Waiting::default());
        let calls: Vec<UnderWay> = (0..=GATHER).map(|_| waiting.count()).collect();
        assert!(waiting.calls.load(Relaxed) > GATHER);
        drop(calls);
        assert_eq!(waiting.calls.load(Relaxed), 0);
    }
}
