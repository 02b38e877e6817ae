//! The machine: inputs in, outputs out.

mod answers;
mod refresh;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::Bound,
    time::Duration,
};

use crate::{
    AskId, CommandId, Contact, Failure, Input, K, Key, Now, Outcome, Output, Token,
    dice::Dice,
    job::{Job, Work},
    lookup::{LINES, Lookup, LookupPurpose},
    message::JobId,
    placement::Placement,
    question::Question,
    records::{Records, VerifiedRecord, Verifier},
    table::Table,
    wire::{Name, Request, Response},
};

/// Commands under way at once.
const COMMANDS_MAX: usize = 64;
/// Jobs of our own under way at once: first questions to peers that came, old records told of newer ones.
const OWN_JOBS_MAX: usize = 64;
/// Connected peers that are told apart; of others it is not known that they are.
const CONNECTED_MAX: usize = 4096;
/// One look-up, and the whole of giving a record to its holders.
const LOOKUP_WITHIN: Duration = Duration::from_secs(4);
const PLACEMENT_WITHIN: Duration = Duration::from_secs(6);
/// Peers of ours that a look-up begins with, before those of one network are left out.
const BEGIN_AMONG: usize = 2 * 3 * LINES;

/// The choices of a directory's driver.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node's peer id.
    pub own_id: Vec<u8>,
    /// Any number, another one in every run.
    pub seed: u64,
    /// Peers may be dialled in private networks.
    pub allow_private: bool,
    /// Records kept for others, in all and of one source.
    pub records_max: usize,
    /// See `records_max`.
    pub records_per_source_max: usize,
    /// Dials under way at once, over all look-ups: less than the swarm allows, so that calls are not kept waiting.
    pub dials_max: usize,
}

/// The directory of one node.
pub struct Directory<V: Verifier> {
    config: Config,
    own: Key,
    verifier: V,
    table: Table,
    records: Records<V::Document>,
    connected: HashMap<Key, Contact>,
    jobs: BTreeMap<JobId, Job<V::Document>>,
    next_own: u64,
    /// The job after it asks next, so that dials are shared fairly.
    asked_last: JobId,
    refreshes: VecDeque<Name>,
    dice: Dice,
    woken_at: Option<Duration>,
    outputs: Vec<Output<V::Document>>,
}

impl<V: Verifier> std::fmt::Debug for Directory<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (peers, records) = (self.table.len(), self.records.len());
        write!(f, "Directory({peers} peers, {records} records, {} jobs)", self.jobs.len())
    }
}

impl<V: Verifier> Directory<V> {
    /// A directory that knows nobody.
    pub fn new(config: Config, verifier: V) -> Self {
        let own = Key::of(&config.own_id);
        Self {
            own,
            verifier,
            table: Table::new(own),
            records: Records::new(own, config.records_max, config.records_per_source_max),
            connected: HashMap::new(),
            jobs: BTreeMap::new(),
            next_own: 0,
            asked_last: JobId::Own(0),
            refreshes: VecDeque::new(),
            dice: Dice::new(config.seed),
            woken_at: None,
            outputs: Vec::new(),
            config,
        }
    }

    /// Takes one input, and returns what is to be done.
    pub fn handle(&mut self, now: Now, input: Input<V::Document>) -> Vec<Output<V::Document>> {
        match input {
            Input::Connected(contact) => self.on_connected(contact),
            Input::Disconnected(peer) => drop(self.connected.remove(&peer)),
            Input::Answer(id, response) => self.on_answer(now, id, response),
            Input::Failed(id, failure) => {
                if let Some(question) = self.take(id) {
                    self.on_failure(now, id, &question, failure);
                }
            }
            Input::Request(token, from, request) => self.on_request(now, token, &from, request),
            Input::Find(id, name) => self.find(now, id, name),
            Input::Put(id, record) => self.put(now, id, record),
            Input::Told(source, record) => self.hear(now, record, source),
            Input::Stop(id) => self.end(now, JobId::Command(id), Outcome::Stopped),
            Input::Refresh => self.refresh(now),
            Input::Tick => {}
        }
        self.proceed(now);
        self.set_wake(now);
        std::mem::take(&mut self.outputs)
    }

    /// Returns the number of peers in the routing table.
    pub fn peers(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of records that are kept.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Returns the newest record under `name`, which may say that its node has left.
    pub fn record(&self, name: &Name) -> Option<&VerifiedRecord<V::Document>> {
        self.records.get(name)
    }

    fn on_connected(&mut self, contact: Contact) {
        if !self.verifier.is_peer(contact.id()) || contact.key() == self.own {
            return;
        }
        if self.connected.len() < CONNECTED_MAX || self.connected.contains_key(&contact.key()) {
            self.connected.insert(contact.key(), contact.clone());
        }
        self.table.renew(&contact);
        // It may say where it is as often as it likes, and others are to be met as well.
        let is_met = self.jobs.values().any(|job| job.meets(contact.key()));
        // It gets a place when it has answered, and only then.
        if !is_met && self.table.has_place_for(&contact) {
            let request = Request::FindNode { name: self.config.own_id.as_slice().into() };
            self.begin_own(Work::Meeting(Some((contact, request))));
        }
    }

    fn on_request(&mut self, now: Now, token: Token, from: &Contact, request: Request) {
        let closer = |name: &Name| self.table.nearest(Key::of(name), K, Some(from.key()));
        let response = match request {
            Request::FindNode { name } => Some(Response::FindNode { closer: closer(&name) }),
            Request::GetValue { name } => {
                let found = self.records.get(&name).map(|record| record.filed().clone());
                Some(Response::GetValue { found, closer: closer(&name) })
            }
            Request::PutValue(filed) => {
                self.take_put(now, from.key(), &filed).then_some(Response::PutValue(filed))
            }
        };
        self.outputs.push(match response {
            Some(response) => Output::Reply(token, response),
            None => Output::Refuse(token),
        });
    }

    fn find(&mut self, now: Now, id: CommandId, name: Name) {
        let known = self.records.get(&name).cloned();
        if let Some(known) = &known {
            self.outputs.push(Output::Found(id, known.clone()));
        }
        let lookup = self.lookup(now, name, LookupPurpose::Record, known);
        self.begin(id, Work::Lookup(Box::new(lookup), None));
    }

    fn put(&mut self, now: Now, id: CommandId, record: VerifiedRecord<V::Document>) {
        // It may be held already; it goes out all the same.
        let _ = self.records.insert(record.clone(), self.own, now.unix_secs);
        let lookup = self.lookup(now, record.filed().name.clone(), LookupPurpose::Peers, None);
        self.begin(id, Work::Lookup(Box::new(lookup), Some(record)));
    }

    fn lookup(
        &self,
        now: Now,
        name: Name,
        wanted: LookupPurpose,
        known: Option<VerifiedRecord<V::Document>>,
    ) -> Lookup<V::Document> {
        let target = Key::of(&name);
        let mut begin = self.table.nearest(target, BEGIN_AMONG, None);
        if begin.len() < LINES {
            // Whoever has just come asks whom it is connected to.
            let mut others: Vec<&Contact> =
                self.connected.values().filter(|other| !begin.contains(other)).collect();
            others.sort_by_key(|other| target.distance(other.key()));
            begin.extend(others.into_iter().take(BEGIN_AMONG).cloned().collect::<Vec<_>>());
        }
        Lookup::new(self.own, name, wanted, begin, known, now.since + LOOKUP_WITHIN)
    }

    fn begin(&mut self, id: CommandId, work: Work<V::Document>) {
        let commands = self.jobs.keys().filter(|job| matches!(job, JobId::Command(_))).count();
        if commands >= COMMANDS_MAX || self.jobs.contains_key(&JobId::Command(id)) {
            self.outputs.push(Output::Done { id, outcome: Outcome::Busy, questions: 0 });
        } else {
            self.jobs.insert(JobId::Command(id), Job::new(work));
        }
    }

    fn begin_own(&mut self, work: Work<V::Document>) {
        let own = self.jobs.keys().filter(|job| matches!(job, JobId::Own(_))).count();
        if own < OWN_JOBS_MAX {
            self.next_own += 1;
            self.jobs.insert(JobId::Own(self.next_own), Job::new(work));
        }
    }

    fn take(&mut self, id: AskId) -> Option<Question> {
        self.jobs.get_mut(&id.job)?.take(id.number)
    }

    /// Ends what is over and asks what is due, until nothing is.
    fn proceed(&mut self, now: Now) {
        if self.jobs.is_empty() && self.refreshes.is_empty() {
            return;
        }
        self.end_overdue_questions(now);
        loop {
            self.ask_all(now);
            let over = self.jobs.iter().find(|(_, job)| job.is_over(now.since)).map(|(id, _)| *id);
            match over {
                Some(id) => self.finish(now, id),
                None if self.refresh_next(now) => {}
                None => return,
            }
        }
    }

    fn end_overdue_questions(&mut self, now: Now) {
        let mut overdue = Vec::new();
        for (id, job) in &self.jobs {
            let late = job.open.iter().filter(|question| question.deadline <= now.since);
            overdue.extend(late.map(|question| AskId { job: *id, number: question.number }));
        }
        for id in overdue {
            if let Some(question) = self.take(id) {
                self.outputs.push(Output::Abandon(id));
                self.on_failure(now, id, &question, Failure::TimedOut);
            }
        }
    }

    /// Lets the jobs ask one question after the other, in turns, within the one bound on dials.
    fn ask_all(&mut self, now: Now) {
        while let Some(asked) = self.ask_one(now) {
            self.asked_last = asked;
        }
    }

    fn ask_one(&mut self, now: Now) -> Option<JobId> {
        let may_dial = self.jobs.values().map(Job::dials).sum::<usize>() < self.config.dials_max;
        let is_connected = |peer: Key| self.connected.contains_key(&peer);
        let after = (Bound::Excluded(self.asked_last), Bound::Unbounded);
        let later: Vec<JobId> = self.jobs.range(after).map(|(id, _)| *id).collect();
        let earlier: Vec<JobId> = self.jobs.range(..=self.asked_last).map(|(id, _)| *id).collect();
        for id in later.into_iter().chain(earlier) {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let Some(question) = job.ask(now.since, may_dial, is_connected) else { continue };
            self.outputs.push(Output::Ask {
                id: AskId { job: id, number: question.number },
                contact: question.contact.clone(),
                request: question.request.clone(),
                deadline: question.deadline,
            });
            return Some(id);
        }
        None
    }

    fn finish(&mut self, now: Now, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let is_exhausted = match &job.work {
            Work::Lookup(lookup, _) => lookup.is_exhausted(&job.open, now.since),
            _ => false,
        };
        match &mut job.work {
            Work::Lookup(lookup, record @ Some(_)) => {
                let Some(record) = record.take() else { return };
                let peers = lookup.nearest(2 * K);
                // Those who said nothing may be the nearest: then what few others keep is not enough.
                let is_complete = lookup.is_complete(is_exhausted);
                let wanted = if is_complete { K.min(peers.len()) } else { K };
                let ends_at = now.since + PLACEMENT_WITHIN;
                job.work = Work::Placement(Placement::new(record.filed().clone(), peers, wanted, ends_at));
                for question in job.open.drain(..) {
                    self.outputs.push(Output::Abandon(AskId { job: id, number: question.number }));
                }
            }
            Work::Lookup(lookup, None) => {
                let outcome = lookup.outcome(is_exhausted);
                let newest = lookup.newest().map(|newest| newest.filed().clone());
                let behind = lookup.behind();
                self.end(now, id, outcome);
                if let Some(newest) = newest.filter(|_| !behind.is_empty()) {
                    let count = behind.len();
                    let ends_at = now.since + PLACEMENT_WITHIN;
                    self.begin_own(Work::Placement(Placement::new(newest, behind, count, ends_at)));
                }
            }
            Work::Placement(placement) => {
                let outcome = placement.outcome();
                self.end(now, id, outcome);
            }
            Work::Meeting(_) => self.end(now, id, Outcome::Undecided),
        }
    }

    fn end(&mut self, now: Now, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.remove(&id) else { return };
        if let Work::Lookup(lookup, _) = &job.work
            && let Some(newest) = lookup.newest()
        {
            // It may be held already, or the store may be full; neither matters here.
            let _ = self.records.insert(newest.clone(), self.own, now.unix_secs);
        }
        for question in &job.open {
            self.outputs.push(Output::Abandon(AskId { job: id, number: question.number }));
        }
        if let JobId::Command(id) = id {
            self.outputs.push(Output::Done { id, outcome, questions: job.asked });
        }
    }

    /// Says when to tick, if that is another time than was said last.
    fn set_wake(&mut self, now: Now) {
        let next = self.jobs.values().filter_map(|job| job.wakes_at(now.since)).min();
        let is_pending = self.woken_at.filter(|at| *at > now.since);
        if let Some(next) = next
            && is_pending.is_none_or(|at| next < at)
        {
            self.woken_at = Some(next);
            self.outputs.push(Output::Wake(next));
        }
    }
}

#[cfg(test)]
mod tests;
