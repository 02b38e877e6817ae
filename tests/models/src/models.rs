//! Scenarios, each a function that one schedule runs once: what must hold is asserted, and a wait that nobody ends is found by
//! shuttle. Every one is small, so that few steps lie between what must not meet.

pub mod budget;
pub mod channels;
pub mod flights;
pub mod note;
pub mod turns;
pub mod writer;

use real_std::future::Future;

/// Starts a task whose panics fail the schedule, unlike those of [`crate::spawn`].
pub(crate) fn begin<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> shuttle::future::JoinHandle<T> {
    shuttle::future::spawn(task)
}

/// Waits for tasks of [`begin`].
pub(crate) fn end<T>(tasks: impl IntoIterator<Item = shuttle::future::JoinHandle<T>>) -> Vec<T> {
    tasks.into_iter().map(|task| shuttle::future::block_on(task).expect("nobody cancels it")).collect()
}

/// A number below `bound` that the schedule chooses.
pub(crate) fn any(bound: usize) -> usize {
    use shuttle::rand::Rng as _;
    shuttle::rand::thread_rng().gen_range(0..bound)
}

/// Polls a future once, and drops it: whoever waited for it is gone. Gives what it had already.
pub(crate) async fn give_up<T>(waiting: impl Future<Output = T>) -> Option<T> {
    let mut waiting = Box::pin(waiting);
    match futures::poll!(waiting.as_mut()) {
        real_std::task::Poll::Ready(done) => Some(done),
        real_std::task::Poll::Pending => None,
    }
}
