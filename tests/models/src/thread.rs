//! Threads and tasks of shuttle.

use real_std::{cell::Cell, future::Future, panic::AssertUnwindSafe};

use futures::FutureExt;

pub use shuttle::thread::*;

real_std::thread_local! {
    static IS_ENDING: Cell<bool> = const { Cell::new(false) };
}

/// Begins the end of the runtime, or another one: one that ends drops its tasks at once.
pub(crate) fn set_ending(is_ending: bool) {
    IS_ENDING.set(is_ending);
}

/// Runs a task. As with tokio, its panic ends nothing but itself.
pub fn spawn<F: Future + Send + 'static>(task: F)
where
    F::Output: Send + 'static,
{
    if IS_ENDING.get() {
        return drop(task);
    }
    drop(shuttle::future::spawn(AssertUnwindSafe(task).catch_unwind().map(drop)));
}
