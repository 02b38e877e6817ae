//! Giving a record to those nearest, until enough of them said that they keep it.

use std::{collections::VecDeque, time::Duration};

use crate::{
    Contact, Key, Outcome,
    question::{DENIED_PAUSE, Question},
    wire::{Filed, Request},
};

/// One record on its way to its holders.
#[derive(Debug)]
pub(crate) struct Placement {
    filed: Filed,
    queue: VecDeque<QueuedContact>,
    /// Peers from whom our own limits kept the record back once.
    denied: Vec<Key>,
    wanted: usize,
    holders: usize,
    pub(crate) ends_at: Duration,
}

#[derive(Debug)]
struct QueuedContact {
    contact: Contact,
    not_before: Duration,
}

impl Placement {
    /// Gives `filed` to the first of `peers`, and to the next ones where those do not take it, until `wanted` of them keep it.
    pub(crate) fn new(filed: Filed, peers: Vec<Contact>, wanted: usize, ends_at: Duration) -> Self {
        let waiting = |contact| QueuedContact { contact, not_before: Duration::ZERO };
        let (queue, denied) = (peers.into_iter().map(waiting).collect(), Vec::new());
        Self { filed, queue, denied, wanted, holders: 0, ends_at }
    }

    /// Returns the next peer to give it to, while those who took it and those who may are too few.
    pub(crate) fn next(
        &mut self,
        open: &[Question],
        now: Duration,
        may_ask: impl Fn(&Contact) -> bool,
    ) -> Option<(Contact, Request)> {
        let asked = open.iter().filter(|question| now < question.slow_at).count();
        let paused = self.queue.iter().filter(|waiting| now < waiting.not_before).count();
        if self.holders + asked + paused >= self.wanted {
            return None;
        }
        let at = self.queue.iter().position(|waiting| waiting.not_before <= now)?;
        if !may_ask(&self.queue.get(at)?.contact) {
            return None;
        }
        let next = self.queue.remove(at)?.contact;
        Some((next, Request::PutValue(self.filed.clone())))
    }

    /// A peer said that it keeps the record, which it says only of what it has verified.
    pub(crate) const fn kept(&mut self) {
        self.holders += 1;
    }

    /// Puts a peer back from whom our own limits kept the record back.
    pub(crate) fn on_denied(&mut self, question: &Question, now: Duration) {
        let contact = question.contact.clone();
        if !self.denied.contains(&contact.key()) {
            self.denied.push(contact.key());
            self.queue.push_front(QueuedContact { contact, not_before: now + DENIED_PAUSE });
        }
    }

    pub(crate) fn is_over(&self, open: &[Question]) -> bool {
        self.holders >= self.wanted || self.queue.is_empty() && open.is_empty()
    }

    /// Returns the times at which something changes without an event.
    pub(crate) fn wakes(&self) -> impl Iterator<Item = Duration> {
        self.queue.iter().map(|waiting| waiting.not_before)
    }

    pub(crate) const fn outcome(&self) -> Outcome {
        let &Self { holders, wanted, .. } = self;
        if holders > 0 && holders >= wanted {
            Outcome::Placed { holders }
        } else {
            Outcome::PartlyPlaced { holders, wanted }
        }
    }
}
