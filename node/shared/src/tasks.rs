//! The tasks that a half of a node has started. Whoever ends the half waits for them; whoever plays its death ends them between two
//! steps of each.

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Tasks that outlive whoever started them. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    #[cfg(feature = "played")]
    started: std::sync::Arc<parking_lot::Mutex<Vec<tokio::task::AbortHandle>>>,
    #[cfg(feature = "played")]
    begun: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Tasks {
    /// Starts a task, also after [`Self::close`].
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let started = self.tracker.spawn(task);
        #[cfg(feature = "played")]
        self.note(started.abort_handle());
        started
    }

    /// Says that no more tasks are to be started, so that [`Self::wait`] ends.
    pub fn close(&self) {
        self.tracker.close();
    }

    pub fn is_closed(&self) -> bool {
        self.tracker.is_closed()
    }

    /// Waits until these tasks are closed and every one of them has ended.
    pub async fn wait(&self) {
        self.tracker.wait().await;
    }

    #[cfg(feature = "played")]
    fn note(&self, started: tokio::task::AbortHandle) {
        self.begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut all = self.started.lock();
        if all.len() == all.capacity() {
            all.retain(|one| !one.is_finished());
        }
        all.push(started);
    }

    /// Returns how many tasks have been started.
    #[cfg(feature = "played")]
    pub fn begun(&self) -> u64 {
        self.begun.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Ends every task where it waits, as the end of its process does: it takes no further step.
    #[cfg(feature = "played")]
    pub fn abort_all(&self) {
        for task in std::mem::take(&mut *self.started.lock()) {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_hears_of_the_end_of_every_task() {
        let tasks = Tasks::default();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let task = tasks.spawn(async move { gone.await.is_ok() });
        tasks.close();
        assert!(tasks.is_closed());
        let mut waiting = std::pin::pin!(tasks.wait());
        assert!(futures::poll!(&mut waiting).is_pending());
        go.send(()).unwrap();
        waiting.await;
        assert!(task.await.unwrap());
    }

    #[cfg(feature = "played")]
    #[tokio::test]
    async fn a_task_of_a_half_that_dies_takes_no_further_step() {
        let tasks = Tasks::default();
        let (stepped, steps) = tokio::sync::watch::channel(0);
        let task = tasks.spawn(async move {
            for step in 1.. {
                stepped.send_replace(step);
                tokio::task::yield_now().await;
            }
        });
        // It finds those that have ended among many.
        for _ in 0..100 {
            tasks.spawn(async {}).await.unwrap();
        }
        let before = *steps.borrow();
        assert!(before > 0);
        tasks.abort_all();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(*steps.borrow(), before);
    }
}
