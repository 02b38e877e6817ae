//! Operations between those that ask for them and the thread that runs them.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

use super::{GROUP_OPERATIONS_MAX, Job, QUEUE_OPERATIONS_MAX, writer_ended};
use crate::error::Result;

/// The time for which an operation waits for a commit that another one begins. A crash may lose it meanwhile.
const RIDE_MAX: Duration = Duration::from_millis(20);

/// Operations between those that ask for them and the thread that runs them.
#[derive(Debug)]
pub(super) struct Waiting {
    lists: Mutex<Lists>,
    /// Tells the thread of something that it waits for.
    news: Condvar,
    /// Of operations that begin a commit.
    room: Semaphore,
}

#[derive(Debug, Default)]
struct Lists {
    /// At most [`QUEUE_OPERATIONS_MAX`], in their order.
    begin: Vec<Box<dyn Job>>,
    /// At most [`GROUP_OPERATIONS_MAX`], which go with the next commit.
    ride: Vec<Box<dyn Job>>,
    /// The time at which what rides waits no longer.
    ride_until: Option<Instant>,
    has_ended: bool,
}

impl Lists {
    /// The next group. Behind the others comes what rides: a call is promised before it is acknowledged.
    fn take(&mut self) -> Vec<Box<dyn Job>> {
        let count = self.begin.len().min(GROUP_OPERATIONS_MAX);
        let riding = std::mem::take(&mut self.ride);
        self.ride_until = None;
        self.begin.drain(..count).chain(riding).collect()
    }
}

impl Default for Waiting {
    fn default() -> Self {
        let (lists, news) = Default::default();
        Self { lists, news, room: Semaphore::new(QUEUE_OPERATIONS_MAX) }
    }
}

impl Waiting {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next group, once there is one to commit; `None` after the last.
    pub(super) fn next_group(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut lists = self.lists();
        loop {
            let left = lists.ride_until.map(|until| until.saturating_duration_since(Instant::now()));
            if !lists.begin.is_empty() || left == Some(Duration::ZERO) || lists.has_ended {
                let before = lists.begin.len();
                let group = lists.take();
                self.room.add_permits(before - lists.begin.len());
                return (!group.is_empty()).then_some(group);
            }
            lists = match left {
                None => self.news.wait(lists).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.news.wait_timeout(lists, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Leaves an operation to the next commit, and begins one if none is under way; waits for room.
    ///
    /// # Errors
    /// When the thread takes nothing more.
    pub(super) async fn begin(&self, job: Box<dyn Job>) -> Result<()> {
        self.room.acquire().await.map_err(|_| writer_ended())?.forget();
        let mut lists = self.lists();
        if lists.has_ended {
            return Err(writer_ended());
        }
        lists.begin.push(job);
        if lists.begin.len() == 1 {
            self.news.notify_one();
        }
        Ok(())
    }

    /// Leaves an operation to a commit that another one begins; gives it back when too many ride already.
    ///
    /// # Errors
    /// When the thread takes nothing more.
    pub(super) fn ride(&self, job: Box<dyn Job>) -> Result<Option<Box<dyn Job>>> {
        let mut lists = self.lists();
        if lists.has_ended {
            return Err(writer_ended());
        }
        if lists.ride.len() >= GROUP_OPERATIONS_MAX {
            return Ok(Some(job));
        }
        lists.ride.push(job);
        if lists.ride_until.is_none() {
            lists.ride_until = Some(Instant::now() + RIDE_MAX);
            self.news.notify_one();
        }
        Ok(None)
    }

    /// Lets the thread end after what is here.
    pub(super) fn end(&self) {
        self.lists().has_ended = true;
        self.news.notify_one();
    }

    /// Takes nothing more, also of those that wait for room.
    pub(super) fn refuse_all(&self) {
        self.end();
        self.room.close();
    }

    /// Operations that begin a commit and are in none.
    pub(super) fn queued(&self) -> usize {
        self.lists().begin.len()
    }
}
