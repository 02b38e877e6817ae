//! Work that waits for the disk or takes its time, away from the threads that answer.

use tokio::task::{JoinHandle, spawn_blocking};

/// Starts the work. It goes on if nobody waits for it.
pub fn start_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(work)
}

/// Does the work, and waits for it. A panic of it goes on in its caller.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match start_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
