//! Work that waits for the disk or takes its time, away from the threads that answer.

use tokio::task::{JoinHandle, spawn_blocking};

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
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
