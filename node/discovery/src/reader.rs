//! One thread that reads descriptions, one after the other: strangers choose how large they are and how many come at once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use farthing_shared::keyed_mutex::KeyedMutex;
use tokio::sync::{mpsc, oneshot};

use super::Queuer;

type Job = Box<dyn FnOnce() + Send>;

/// Descriptions that wait for the thread; who has one more waits before it.
const WAITING_MAX: usize = 16;

/// The thread's queue, in which each asker has one description, and its others wait before that. An allocator keeps memory for
/// each thread that gave some back, so what one description took is there for the next only if the same thread reads it.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: mpsc::Sender<Job>,
    turns: KeyedMutex<Queuer>,
}

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
            tracing::error!(%error, "services of others cannot be read: no thread could be started");
        }
        Self { jobs, turns: KeyedMutex::default() }
    }

    /// Does the work when what came before is done, also if nobody waits for it any more. None if it panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        queuer: Queuer,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = self.turns.take(queuer).await;
        let (done, outcome) = oneshot::channel();
        let job = move || {
            let outcome = work();
            // Not before: who goes away and asks again has no second one in the queue.
            drop(turn);
            let _ = done.send(outcome);
        };
        self.jobs.send(Box::new(job)).await.ok()?;
        outcome.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn one_thread_reads_all_and_outlives_what_cannot_be_read() {
        let reader = Reader::start();
        let here = || thread::current().id();
        let (first, second) = tokio::join!(reader.run(Queuer::User, here), reader.run(Queuer::Node, here));
        assert!(first.is_some() && first == second, "{first:?}, then {second:?}");
        let lost =
            reader.run(Queuer::User, || -> u8 { panic!("a description that nobody thought of") }).await;
        assert_eq!(lost, None);
        assert_eq!(reader.run(Queuer::User, here).await, first);
    }

    #[tokio::test]
    async fn descriptions_that_one_secret_waits_for_are_read_after_the_first_of_another() {
        let reader = Reader::start();
        let of = |secret: &str| Queuer::Secret(secret.to_owned());
        let (open, gate) = std::sync::mpsc::sync_channel::<()>(1);
        let mut first = Box::pin(reader.run(of("many"), move || gate.recv().is_ok()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let order = Arc::new(Mutex::new(Vec::new()));
        let noted = |secret: &'static str| {
            let order = Arc::clone(&order);
            Box::pin(reader.run(of(secret), move || order.lock().push(secret)))
        };
        let mut waiting = ["many", "many", "other"].map(noted);
        for one in &mut waiting {
            assert!(futures::poll!(one.as_mut()).is_pending());
        }
        open.send(()).unwrap();
        assert_eq!(first.await, Some(true));
        futures::future::join_all(waiting).await;
        assert_eq!(*order.lock(), ["other", "many", "many"]);
    }
}
