//! The way to those nearest to a place: six lines at once that share no peer.
//!
//! Each line asks whom its own answers named, so a liar leads its own line astray and no other. An answer counts for its
//! four nearest peers, and a peer that fails puts whoever the same liar named behind everybody else.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use crate::{
    Contact, Distance, K, Key, Now, Outcome,
    question::{AnsweringPeer, DENIED_PAUSE, Question},
    records::VerifiedRecord,
    table::crowds,
    wire::{Name, Request},
};

/// Lines of a look-up.
pub const LINES: usize = 6;
/// Peers that one answer adds to its line.
pub const PER_ANSWER: usize = 4;
/// Questions of a line under way at once, those to silent peers not counted.
pub(crate) const AT_ONCE: usize = 2;
/// Questions of a look-up in all: several times what any network of honest peers takes.
pub(crate) const QUESTIONS_MAX: usize = 160;
/// Peers that wait on a line to be asked; the farthest give way.
const CANDIDATES_MAX: usize = 32;
/// Peers of our own that a line begins with.
const BEGINS_WITH: usize = 3;
/// Different addresses at which one peer is asked: a liar may name the right peer at a wrong place.
const TRIES_MAX: usize = 3;
/// The time for a newer record after the first one that may be used.
pub(crate) const AFTER_FIRST: Duration = Duration::from_millis(500);

/// The purpose of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupPurpose {
    Record,
    Peers,
}

#[derive(Clone, Debug)]
struct Candidate {
    contact: Contact,
    distance: Distance,
    named_by: Option<Key>,
    not_before: Duration,
    was_denied: bool,
}

#[derive(Clone, Debug, Default)]
struct Line {
    candidates: Vec<Candidate>,
    asked: Vec<Contact>,
}

/// A peer that was asked: at which addresses, and whether it answered.
#[derive(Clone, Debug)]
struct AskedPeer {
    contacts: Vec<Contact>,
    has_answered: bool,
}

/// One look-up, without its questions under way, which the caller holds.
#[derive(Debug)]
pub(crate) struct Lookup<D> {
    name: Name,
    target: Key,
    own: Key,
    wanted: LookupPurpose,
    lines: Vec<Line>,
    tried: HashMap<Key, AskedPeer>,
    /// Peers that were named by each and failed.
    failed: HashMap<Key, usize>,
    answered: BTreeMap<Distance, Contact>,
    /// Nobody beyond is asked: [`K`] who are nearer have answered.
    horizon: Option<Distance>,
    newest: Option<VerifiedRecord<D>>,
    /// The peers that answered, each with the number of its record if it has one.
    holders: Vec<(Contact, Option<u64>)>,
    pub(crate) ends_at: Duration,
}

impl<D> Lookup<D> {
    /// Begins with peers in order of their distance, and with a record that is known.
    pub(crate) fn new(
        own: Key,
        name: Name,
        wanted: LookupPurpose,
        begin: Vec<Contact>,
        known: Option<VerifiedRecord<D>>,
        ends_at: Duration,
    ) -> Self {
        let target = Key::of(&name);
        let mut lookup = Self {
            name,
            target,
            own,
            wanted,
            lines: vec![Line::default(); LINES],
            tried: HashMap::new(),
            failed: HashMap::new(),
            answered: BTreeMap::new(),
            horizon: None,
            newest: known,
            holders: Vec::new(),
            ends_at,
        };
        for (n, contact) in begin.into_iter().take(LINES * BEGINS_WITH).enumerate() {
            lookup.add(n % LINES, contact, None);
        }
        lookup
    }

    pub(crate) const fn newest(&self) -> Option<&VerifiedRecord<D>> {
        self.newest.as_ref()
    }

    pub(crate) const fn wanted(&self) -> LookupPurpose {
        self.wanted
    }

    /// Returns whom to ask next and on which line, if any line has a place. `may_ask` says no when the peer had to be
    /// dialled and enough are.
    pub(crate) fn next(
        &mut self,
        open: &[Question],
        now: Duration,
        may_ask: impl Fn(&Contact) -> bool,
    ) -> Option<(Contact, Request, usize, Option<Key>)> {
        let has_place = |line: &usize| {
            let counting = open.iter().filter(|question| question.line == *line && now < question.slow_at);
            counting.count() < AT_ONCE
        };
        for line in (0..LINES).filter(has_place) {
            if self.tried.len() >= QUESTIONS_MAX {
                return None;
            }
            self.prune(line);
            let Some(at) = self.best(line, open, now) else { continue };
            if !may_ask(&self.lines[line].candidates[at].contact) {
                continue;
            }
            let Candidate { contact, named_by, was_denied, .. } = self.lines[line].candidates.swap_remove(at);
            if !was_denied {
                self.lines[line].asked.push(contact.clone());
            }
            let tried = AskedPeer { contacts: Vec::new(), has_answered: false };
            self.tried.entry(contact.key()).or_insert(tried).contacts.push(contact.clone());
            let name = self.name.clone();
            let request = match self.wanted {
                LookupPurpose::Record => Request::GetValue { name },
                LookupPurpose::Peers => Request::FindNode { name },
            };
            return Some((contact, request, line, named_by));
        }
        None
    }

    /// The nearest candidate of a line, those behind whose namers did not lead astray.
    fn best(&self, line: usize, open: &[Question], now: Duration) -> Option<usize> {
        let doubt = |named_by: Option<Key>| {
            let Some(namer) = named_by else { return 0 };
            let silent = open.iter().filter(|asked| asked.named_by == Some(namer) && asked.slow_at <= now);
            self.failed.get(&namer).copied().unwrap_or(0) + silent.count()
        };
        let ready = self.lines[line].candidates.iter().enumerate().filter(|(_, one)| one.not_before <= now);
        ready.min_by_key(|(_, one)| (doubt(one.named_by), one.distance)).map(|(at, _)| at)
    }

    /// Leaves out whom it is no use to ask on this line any more.
    fn prune(&mut self, line: usize) {
        let (tried, horizon) = (&self.tried, self.horizon);
        let Line { candidates, asked } = &mut self.lines[line];
        candidates.retain(|one| {
            may_be_tried(tried, &one.contact)
                && horizon.is_none_or(|horizon| one.distance < horizon)
                && (one.was_denied || !crowds(&one.contact, &asked.iter()))
        });
    }

    fn add(&mut self, line: usize, contact: Contact, named_by: Option<Key>) {
        let distance = self.target.distance(contact.key());
        let candidates = &mut self.lines[line].candidates;
        candidates.push(Candidate {
            contact,
            distance,
            named_by,
            not_before: Duration::ZERO,
            was_denied: false,
        });
        if candidates.len() > CANDIDATES_MAX
            && let Some((farthest, _)) = candidates.iter().enumerate().max_by_key(|(_, one)| one.distance)
        {
            candidates.swap_remove(farthest);
        }
    }

    /// Notes an answer: the peer is there, and these are the ones that it named.
    pub(crate) fn on_answer(
        &mut self,
        question: &Question,
        answered: &AnsweringPeer,
        seq: Option<u64>,
        closer: Vec<Contact>,
    ) {
        let contact = answered.contact();
        let key = contact.key();
        if let Some(tried) = self.tried.get_mut(&key) {
            tried.has_answered = true;
        }
        self.answered.insert(self.target.distance(key), contact.clone());
        self.holders.push((contact.clone(), seq));
        self.horizon = self.nearest(K).get(K - 1).map(|last| self.target.distance(last.key()));
        let mut closer: Vec<(Distance, Contact)> = closer
            .into_iter()
            .filter(|named| named.key() != self.own && may_be_tried(&self.tried, named))
            .map(|named| (self.target.distance(named.key()), named))
            .collect();
        closer.sort_by_key(|(distance, _)| *distance);
        closer.dedup_by_key(|(distance, _)| *distance);
        for (_, named) in closer.into_iter().take(PER_ANSWER) {
            self.add(question.line, named, Some(key));
        }
    }

    /// Takes a record that a peer had, and returns whether it is newer than any before.
    pub(crate) fn on_record(&mut self, record: &VerifiedRecord<D>, now: Now) -> bool {
        let is_newer = self.newest.as_ref().is_none_or(|newest| newest.seq() < record.seq());
        if is_newer {
            self.newest = Some(record.clone());
        }
        // Also if we knew it before we asked: somebody else confirms it. One that has expired is given by liars as well, long
        // after its owner came back.
        if record.is_alive(now.unix_secs) {
            self.ends_at = self.ends_at.min(now.since + AFTER_FIRST);
        }
        is_newer
    }

    /// Notes that a question failed by no fault of ours: whoever named the peer led astray.
    pub(crate) fn on_failure(&mut self, question: &Question) {
        if let Some(namer) = question.named_by {
            *self.failed.entry(namer).or_default() += 1;
        }
    }

    /// Puts a peer back to which our own limits kept the question back.
    pub(crate) fn on_denied(&mut self, question: &Question, now: Duration) {
        let Question { contact, line, named_by, .. } = question;
        let was_denied = self.lines[*line].asked.iter().filter(|asked| *asked == contact).count() == 0;
        if let Some(tried) = self.tried.get_mut(&contact.key()) {
            tried.contacts.retain(|other| other != contact);
            if tried.contacts.is_empty() && !tried.has_answered {
                self.tried.remove(&contact.key());
            }
        }
        self.lines[*line].asked.retain(|asked| asked != contact);
        if !was_denied {
            self.add(*line, contact.clone(), *named_by);
            if let Some(back) = self.lines[*line].candidates.iter_mut().find(|one| one.contact == *contact) {
                (back.not_before, back.was_denied) = (now + DENIED_PAUSE, true);
            }
        }
    }

    /// Up to `count` peers that answered, the nearest first, few of one network among them.
    pub(crate) fn nearest(&self, count: usize) -> Vec<Contact> {
        let mut near: Vec<Contact> = Vec::new();
        for contact in self.answered.values() {
            if near.len() == count {
                break;
            }
            if !crowds(contact, &near.iter()) {
                near.push(contact.clone());
            }
        }
        near
    }

    /// Returns whether there is nothing more to ask and nobody to wait for.
    pub(crate) fn is_exhausted(&self, open: &[Question], now: Duration) -> bool {
        let is_asked_out =
            self.tried.len() >= QUESTIONS_MAX || self.lines.iter().all(|line| line.candidates.is_empty());
        // A silent peer may still have the record; it is of no use as one of the nearest.
        let waits = |question: &Question| self.wanted == LookupPurpose::Record || now < question.slow_at;
        is_asked_out && !open.iter().any(waits)
    }

    /// Returns the times at which something changes without an event.
    pub(crate) fn wakes(&self) -> impl Iterator<Item = Duration> {
        let candidates = self.lines.iter().flat_map(|line| &line.candidates);
        candidates.map(|one| one.not_before).chain([self.ends_at])
    }

    /// The word on a record that was looked for. Absence needs the word of most of those nearest; a time-out is none.
    pub(crate) fn outcome(&self, is_exhausted: bool) -> Outcome {
        if self.newest.is_some() {
            return Outcome::Found;
        }
        if self.is_complete(is_exhausted) { Outcome::Absent } else { Outcome::Undecided }
    }

    /// Returns whether most of those nearest answered, and nobody is left to ask: then who did not answer is not there.
    pub(crate) fn is_complete(&self, is_exhausted: bool) -> bool {
        let mut tried: Vec<(Distance, bool)> =
            self.tried.iter().map(|(key, tried)| (self.target.distance(*key), tried.has_answered)).collect();
        tried.sort_unstable();
        tried.truncate(K);
        let answered = tried.iter().filter(|(_, has_answered)| *has_answered).count();
        is_exhausted && 2 * answered > tried.len()
    }

    /// The peers among those nearest that have an older record than the newest, or none.
    pub(crate) fn behind(&self) -> Vec<Contact> {
        let Some(newest) = &self.newest else { return Vec::new() };
        let near = self.nearest(K);
        let is_behind = |(contact, seq): &&(Contact, Option<u64>)| {
            seq.is_some_and(|seq| seq < newest.seq()) && near.contains(contact)
        };
        self.holders.iter().filter(is_behind).map(|(contact, _)| contact.clone()).collect()
    }
}

fn may_be_tried(tried: &HashMap<Key, AskedPeer>, contact: &Contact) -> bool {
    tried.get(&contact.key()).is_none_or(|tried| {
        !tried.has_answered
            && tried.contacts.len() < TRIES_MAX
            && !tried.contacts.iter().any(|other| other.addresses() == contact.addresses())
    })
}

#[cfg(test)]
mod tests;
