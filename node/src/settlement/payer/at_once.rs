//! A few channels at once: without ETH, a step of each may need the word of its owner, which may not answer.

use futures::{StreamExt, stream};

/// Channels worked on at once.
const AT_ONCE: usize = 8;

/// Does something with each of these, with a few at once, and waits for all.
pub(super) async fn each<T, F: Future<Output = ()>>(items: Vec<T>, act: impl FnMut(T) -> F) {
    stream::iter(items).map(act).buffer_unordered(AT_ONCE).collect::<()>().await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::Semaphore, time::timeout};

    use super::*;

    #[tokio::test]
    async fn an_owner_that_does_not_answer_holds_up_no_other() {
        let answered = &Semaphore::new(0);
        let done = each(vec!["silent", "other"], |owner| async move {
            match owner {
                // It answers only once the other channel is done.
                "silent" => answered.acquire().await.unwrap().forget(),
                _ => answered.add_permits(1),
            }
        });
        timeout(Duration::from_secs(10), done).await.unwrap();
    }
}
