//! A job under way, and its questions.

use std::time::Duration;

use crate::{
    Contact, Key,
    lookup::{Lookup, LookupPurpose},
    placement::Placement,
    question::Question,
    records::VerifiedRecord,
    wire::Request,
};

/// From then on a peer counts as silent, and its line asks another one as well.
pub const SLOW_AFTER: Duration = Duration::from_millis(450);
/// The longest wait for an answer of a peer that is connected, and of one that has to be dialled first.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(1500);
pub(crate) const DIAL_AND_ANSWER_WITHIN: Duration = Duration::from_millis(2500);

/// The substance of a job.
#[derive(Debug)]
pub(crate) enum Work<D> {
    /// A record, or who is near; in the end the record is given to them if there is one.
    Lookup(Box<Lookup<D>>, Option<VerifiedRecord<D>>),
    Placement(Placement),
    /// A first question to a peer that may get a place in the table.
    Meeting(Option<(Contact, Request)>),
}

#[derive(Debug)]
pub(crate) struct Job<D> {
    pub(crate) work: Work<D>,
    pub(crate) open: Vec<Question>,
    pub(crate) asked: u32,
}

impl<D> Job<D> {
    pub(crate) const fn new(work: Work<D>) -> Self {
        Self { work, open: Vec::new(), asked: 0 }
    }

    pub(crate) fn dials(&self) -> usize {
        self.open.iter().filter(|question| question.is_dial).count()
    }

    /// Returns whether it is the first question to `peer`.
    pub(crate) fn meets(&self, peer: Key) -> bool {
        matches!(&self.work, Work::Meeting(_)) && self.open.iter().any(|open| open.contact.key() == peer)
    }

    pub(crate) const fn is_refresh(&self) -> bool {
        matches!(&self.work, Work::Lookup(lookup, None) if matches!(lookup.wanted(), LookupPurpose::Peers))
    }

    /// Asks the next question, if one is due.
    pub(crate) fn ask(
        &mut self,
        now: Duration,
        may_dial: bool,
        is_connected: impl Fn(Key) -> bool,
    ) -> Option<&Question> {
        let may_ask = |contact: &Contact| may_dial || is_connected(contact.key());
        let (contact, request, line, named_by) = match &mut self.work {
            Work::Lookup(lookup, _) => lookup.next(&self.open, now, may_ask)?,
            Work::Placement(placement) => {
                let (contact, request) = placement.next(&self.open, now, may_ask)?;
                (contact, request, 0, None)
            }
            Work::Meeting(first) => {
                let (contact, request) = first.take()?;
                (contact, request, 0, None)
            }
        };
        let is_dial = !is_connected(contact.key());
        let within = if is_dial { DIAL_AND_ANSWER_WITHIN } else { ANSWER_WITHIN };
        self.asked += 1;
        self.open.push(Question {
            number: self.asked,
            contact,
            request,
            is_dial,
            slow_at: now + SLOW_AFTER,
            deadline: now + within,
            line,
            named_by,
        });
        self.open.last()
    }

    pub(crate) fn take(&mut self, number: u32) -> Option<Question> {
        let at = self.open.iter().position(|question| question.number == number)?;
        Some(self.open.swap_remove(at))
    }

    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.ends_at().is_some_and(|ends_at| ends_at <= now)
            || match &self.work {
                Work::Lookup(lookup, _) => lookup.is_exhausted(&self.open, now),
                Work::Placement(placement) => placement.is_over(&self.open),
                Work::Meeting(first) => first.is_none() && self.open.is_empty(),
            }
    }

    fn ends_at(&self) -> Option<Duration> {
        match &self.work {
            Work::Lookup(lookup, _) => Some(lookup.ends_at),
            Work::Placement(placement) => Some(placement.ends_at),
            Work::Meeting(_) => None,
        }
    }

    /// The next time after `now` at which something changes without an event.
    pub(crate) fn wakes_at(&self, now: Duration) -> Option<Duration> {
        let is_later = |time: &Duration| *time > now;
        let of_work = match &self.work {
            Work::Lookup(lookup, _) => lookup.wakes().filter(is_later).min(),
            Work::Placement(placement) => placement.wakes().filter(is_later).min(),
            Work::Meeting(_) => None,
        };
        let questions = self.open.iter().flat_map(|question| [question.slow_at, question.deadline]);
        questions.chain(self.ends_at()).filter(is_later).chain(of_work).min()
    }
}
