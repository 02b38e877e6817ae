//! One thread that reads descriptions, one after the other: strangers choose how large they are and how many come at once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use tokio::sync::{mpsc, oneshot};

type Job = Box<dyn FnOnce() + Send>;

/// Descriptions that wait for the thread; who has one more waits before it.
const WAITING_MAX: usize = 16;

/// The thread's queue. An allocator keeps memory for each thread that gave some back, so what one description took is there for
/// the next only if the same thread reads it.
#[derive(Debug)]
pub(super) struct Reader(mpsc::Sender<Job>);

impl Reader {
    pub(super) fn start() -> Self {
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let started = thread::Builder::new().name("descriptions".to_owned()).spawn(move || {
            while let Some(job) = waiting.blocking_recv() {
                // One that cannot be read must not be the last.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        });
        if let Err(error) = started {
            tracing::error!(%error, "services of others cannot be read: there is no thread for it");
        }
        Self(jobs)
    }

    /// Does the work when what came before is done, also if nobody waits for it any more. None if it panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, outcome) = oneshot::channel();
        let job = move || {
            let _ = done.send(work());
        };
        self.0.send(Box::new(job)).await.ok()?;
        outcome.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_thread_reads_all_and_outlives_what_cannot_be_read() {
        let reader = Reader::start();
        let here = || thread::current().id();
        let (first, second) = tokio::join!(reader.run(here), reader.run(here));
        assert!(first.is_some() && first == second, "{first:?}, then {second:?}");
        let lost = reader.run(|| -> u8 { panic!("a description that nobody thought of") }).await;
        assert_eq!(lost, None);
        assert_eq!(reader.run(here).await, first);
    }
}
