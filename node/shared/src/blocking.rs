//! Work that waits for the disk or takes its time, away from the threads that answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{LazyLock, mpsc},
    thread,
};

use tokio::task::{JoinHandle, spawn_blocking};

/// Of the thread of [`run_in_turn`].
const NAME: &str = "in-turn";
/// Work that waits for its turn; whoever brings more of it waits with it.
const WAITING_MAX: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// The way to this thread, which starts with the first work.
static IN_TURN: LazyLock<mpsc::SyncSender<Job>> = LazyLock::new(|| {
    let (jobs, waiting) = mpsc::sync_channel::<Job>(WAITING_MAX);
    let work = move || waiting.into_iter().for_each(|job| job());
    if let Err(error) = thread::Builder::new().name(NAME.to_owned()).spawn(work) {
        tracing::warn!(%error, "work over the whole ledger has no thread of its own");
    }
    jobs
});

/// Starts the work. It goes on if nobody waits for it.
pub fn start_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    #[cfg(feature = "played")]
    if IS_PLAYED.get() {
        return tokio::spawn(async move { work() });
    }
    spawn_blocking(work)
}

#[cfg(feature = "played")]
thread_local! {
    static IS_PLAYED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has this thread do such work itself, in its turn among its tasks: then everything on it happens in the same order each time.
#[cfg(feature = "played")]
pub fn play_on_this_thread() {
    IS_PLAYED.set(true);
}

/// Does the work, and waits for it. A panic of it goes on in its caller.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match start_blocking(work).await {
        Ok(done) => done,
        Err(panic) => resume_unwind(panic.into_panic()),
    }
}

/// Does work over a whole ledger as [`run_blocking`] does, but one after the other and all of it on one thread.
///
/// Such work takes much memory in small pieces, beside pages that the ledger keeps. The C library's allocator keeps most of what one
/// thread took for that thread: spread over the threads that happen to be free, it would be kept as often.
pub async fn run_in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    run_blocking(move || in_turn(work)).await
}

fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    #[cfg(feature = "played")]
    if IS_PLAYED.get() {
        return work();
    }
    let (done, end) = mpsc::sync_channel(1);
    let job: Job = Box::new(move || {
        // Whoever waits below has it.
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    });
    if let Err(mpsc::SendError(job)) = IN_TURN.send(job) {
        job();
    }
    match end.recv().expect("each job sends its end") {
        Ok(done) => done,
        Err(panic) => resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_in_turn_is_all_done_on_one_thread_which_outlives_a_panic() {
        let on = || thread::current().id();
        let first = run_in_turn(on).await;
        let name = run_in_turn(|| thread::current().name().map(ToOwned::to_owned)).await;
        assert_eq!(name.as_deref(), Some(NAME));
        let panicked = tokio::spawn(run_in_turn(|| -> u32 { panic!("on purpose") })).await;
        assert!(panicked.unwrap_err().is_panic());
        let together = futures::future::join_all((0..16).map(|_| run_in_turn(on))).await;
        assert_eq!(together, [first; 16]);
    }
}
