//! A few steps at once, each of which may need the word of somebody who may not answer: an owner, or an endpoint of the chain.

use futures::{StreamExt, stream};

/// Steps taken at once.
const AT_ONCE: usize = 8;

/// Does something with each of these, with a few at once, and waits for all.
pub async fn each<T, F: Future<Output = ()>>(items: Vec<T>, act: impl FnMut(T) -> F) {
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
