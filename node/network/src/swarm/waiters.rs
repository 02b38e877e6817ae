//! Those who wait for peers to be connected. Pure.

use std::collections::HashMap;

use libp2p::PeerId;
use tokio::sync::oneshot;

use crate::NotStarted;

/// Somebody who waits for one peer to be connected and identified.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) reply: oneshot::Sender<Result<(), NotStarted>>,
    /// It is to be called, and its record says that it takes calls: connected is enough.
    pub(super) by_record: bool,
}

impl Waiter {
    fn tell(self, outcome: Result<(), NotStarted>) {
        // Whoever waited may have gone.
        let _ = self.reply.send(outcome);
    }
}

#[derive(Debug, Default)]
pub(super) struct Waiters(HashMap<PeerId, Vec<Waiter>>);

impl Waiters {
    pub(super) fn add(&mut self, id: PeerId, waiter: Waiter) {
        let waiting = self.0.entry(id).or_default();
        waiting.retain(|other| !other.reply.is_closed());
        waiting.push(waiter);
    }

    /// Tells those who wait to call `id` by its record that it is connected; returns whether there was anybody.
    pub(super) fn connected(&mut self, id: &PeerId) -> bool {
        let all = self.0.remove(id).unwrap_or_default();
        let (callers, others): (Vec<Waiter>, Vec<_>) = all.into_iter().partition(|waiter| waiter.by_record);
        if !others.is_empty() {
            self.0.insert(*id, others);
        }
        let is_called = !callers.is_empty();
        callers.into_iter().for_each(|caller| caller.tell(Ok(())));
        is_called
    }

    /// Tells everybody who waits for `id` that it is there.
    pub(super) fn identified(&mut self, id: &PeerId) {
        self.0.remove(id).into_iter().flatten().for_each(|waiter| waiter.tell(Ok(())));
    }

    /// Tells everybody who waits for `id` that there is no point.
    pub(super) fn give_up(&mut self, id: &PeerId, why: &NotStarted) {
        self.0.remove(id).into_iter().flatten().for_each(|waiter| waiter.tell(Err(why.clone())));
    }

    /// Returns whether somebody waits for `id`.
    pub(super) fn is_for(&self, id: &PeerId) -> bool {
        self.0.get(id).is_some_and(|waiting| waiting.iter().any(|waiter| !waiter.reply.is_closed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_enough_for_a_caller_with_a_record_and_for_nobody_else() {
        let (mut waiting, id) = (Waiters::default(), PeerId::random());
        let [mut caller, mut other] = [true, false].map(|by_record| {
            let (reply, outcome) = oneshot::channel();
            waiting.add(id, Waiter { reply, by_record });
            outcome
        });
        assert!(waiting.connected(&id));
        assert_eq!(caller.try_recv().unwrap(), Ok(()));
        assert!(other.try_recv().is_err(), "it waits for what the peer says itself");
        assert!(waiting.is_for(&id) && !waiting.connected(&id));
        waiting.identified(&id);
        assert_eq!(other.try_recv().unwrap(), Ok(()));
        assert!(!waiting.is_for(&id));
    }
}
