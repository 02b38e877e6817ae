//! A budget after which the swarm yields: it may have something ready for as long as somebody floods it, and nothing
//! in it knows of the other tasks of the runtime. Whoever handles its events therefore steps back now and then.

/// Events handled in a row before other tasks get a turn. Handling one takes some 10 µs, so others wait for less
/// than a millisecond.
const IN_A_ROW_MAX: u32 = 64;

/// Counts what was handled without waiting.
#[derive(Debug, Default)]
pub(crate) struct YieldBudget {
    in_a_row: u32,
}

impl YieldBudget {
    /// One more was handled. Gives others a turn when it was one of many.
    pub(crate) async fn took_one(&mut self) {
        self.in_a_row += 1;
        if self.in_a_row >= IN_A_ROW_MAX {
            self.in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Nothing was ready for a while, so others had their turn.
    pub(crate) fn waited(&mut self) {
        self.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use futures::{StreamExt, stream};

    use super::*;

    #[tokio::test]
    async fn among_a_hundred_thousand_ready_events_others_get_their_turn() {
        const EVENTS: u32 = 100_000;
        let turns_of_another = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&turns_of_another);
        let another = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let (mut events, mut turns) = (stream::iter(0..EVENTS), YieldBudget::default());
        while events.next().await.is_some() {
            turns.took_one().await;
        }
        another.abort();
        assert!(turns_of_another.load(Ordering::Relaxed) >= EVENTS / IN_A_ROW_MAX - 1);
    }
}
