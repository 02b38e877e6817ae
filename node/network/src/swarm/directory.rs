//! The directory in the swarm's task: the machine of `farthing_directory`, the streams and dials of its questions, and those who
//! wait for it.
//!
//! The machine keeps the records that others look for near this node, as many as it promised to keep. What this node knows
//! itself is in [`crate::records`], which hears of each record that comes here; requests are answered with the newer of both.

use std::{
    collections::HashMap,
    mem,
    time::{Duration, Instant},
};

use farthing_directory::{
    AskId, CommandId, Contact, Directory, Failure, Input, K, Key, Now, Outcome, Output, Token,
    VerifiedRecord,
    records::Untrue,
    wire::{Filed, Name, Request, Response},
};
use farthing_protocol::{Address, NodeRecord, Verified};
use libp2p::{
    Multiaddr, PeerId,
    swarm::{
        ConnectionId, DialError,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinError, JoinSet},
};

use super::{SwarmTask, dials::DIALLED_ADDRESSES_MAX};
use crate::{
    NotStarted, RecordHolders, addresses,
    command::{NoStream, Turnout},
    directory::{self, Notary},
    info,
    line::Line,
    neighbour_origin::NeighbourOrigin,
    report::Strike,
    status::Counters,
    streams::Opening,
};

/// The time between two looks around in all parts of the routing table, as in the Kademlia paper (section 2.3). Each takes
/// connections to about a hundred nodes, so more often would be most of what an idle node sends.
const REFRESH_EVERY: Duration = Duration::from_secs(3600);
/// The wall clock goes on while the machine sleeps, and the task's own clock does not: so much between two ticks is a sleep.
const SLEPT_SECS: u64 = 60;

/// The answer to a question of ours.
pub(super) type Answered = Result<(AskId, Result<Response, Failure>), JoinError>;

/// A question under way.
struct OwnQuestion {
    peer: PeerId,
    task: AbortHandle,
}

/// Questions that wait for a connection, each with its way to a stream.
type Queued = Vec<(AskId, oneshot::Sender<Result<Line, NoStream>>)>;

/// One look-up under way: whom its finds go to, and what it took so far.
struct PendingLookup {
    found: mpsc::Sender<Verified<NodeRecord>>,
    ended: oneshot::Sender<Turnout>,
    asked: usize,
    answered: usize,
    has_record: bool,
}

impl PendingLookup {
    /// Tells the asker that nothing more will come, unless it has gone, and who took part; nothing of one that was not begun.
    fn end(self, outcome: Outcome) {
        if outcome != Outcome::Busy {
            let silent = self.asked.saturating_sub(self.answered);
            let _ = self.ended.send(Turnout { answered: self.answered, silent });
        }
    }
}

/// The machine, and what it waits for.
pub(crate) struct DirectoryDriver {
    machine: Directory<Notary>,
    notary: Notary,
    lookups: HashMap<CommandId, PendingLookup>,
    /// The put of the own record that is under way.
    put: Option<CommandId>,
    /// Of commands and of requests.
    numbers: u64,
    /// Requests of peers, with the name of the record that each asks for, if it does.
    requests: HashMap<Token, (Option<Name>, oneshot::Sender<Response>)>,
    pub(super) questions: JoinSet<(AskId, Result<Response, Failure>)>,
    under_way: HashMap<AskId, OwnQuestion>,
    /// Questions to peers that are being dialled, and the dials that were made for them.
    queued: HashMap<PeerId, Queued>,
    dials: HashMap<PeerId, ConnectionId>,
    wakes_at: Option<Instant>,
    refresh_due: Instant,
    ticked_secs: u64,
}

impl DirectoryDriver {
    pub(crate) fn new(machine: Directory<Notary>, notary: Notary) -> Self {
        Self {
            machine,
            notary,
            lookups: HashMap::new(),
            put: None,
            numbers: 0,
            requests: HashMap::new(),
            questions: JoinSet::new(),
            under_way: HashMap::new(),
            queued: HashMap::new(),
            dials: HashMap::new(),
            wakes_at: None,
            refresh_due: Instant::now() + REFRESH_EVERY,
            ticked_secs: crate::now_secs(),
        }
    }

    /// The number of peers in the routing table.
    pub(super) fn peers(&self) -> usize {
        self.machine.peers()
    }

    /// Returns whether the own record is being put.
    pub(super) const fn is_putting(&self) -> bool {
        self.put.is_some()
    }

    pub(super) const fn wakes_at(&self) -> Option<Instant> {
        self.wakes_at
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn lookup_of(&mut self, question: AskId) -> Option<&mut PendingLookup> {
        self.lookups.get_mut(&question.command()?)
    }

    /// The newer of the record that is kept under this name and the one that is known otherwise.
    fn newest(&self, name: &Name, kept: Option<Filed>, known: Option<Verified<NodeRecord>>) -> Option<Filed> {
        let seq = self.machine.record(name).map(|kept| kept.facts().seq);
        let newer = known.filter(|known| seq.is_none_or(|seq| known.seq > seq));
        newer.as_ref().map(directory::filed).or(kept)
    }
}

impl SwarmTask {
    /// Tells the machine of something, and does what it says.
    pub(super) fn drive(&mut self, input: Input<Verified<NodeRecord>>) {
        let now = Now { since: self.started.elapsed(), unix_secs: crate::now_secs() };
        let peers = self.parts.directory.peers();
        for output in self.parts.directory.machine.handle(now, input) {
            self.carry_out(output);
        }
        self.status_is_stale |= self.parts.directory.peers() != peers;
    }

    fn carry_out(&mut self, output: Output<Verified<NodeRecord>>) {
        match output {
            // The machine abandons what has no answer at its deadline.
            Output::Ask { id, contact, request, .. } => self.ask_directory(id, &contact, request),
            Output::Abandon(id) => {
                self.forget_question(id);
            }
            Output::Reply(token, response) => self.reply_to(token, response),
            Output::Refuse(token) => drop(self.parts.directory.requests.remove(&token)),
            Output::Found(id, record) => self.on_found(id, record.document()),
            Output::Done { id, outcome, .. } => self.on_done(id, outcome),
            Output::Heard { record, source, .. } => self.on_heard(record.document(), source),
            Output::Misbehaved(source, untrue) => self.on_untrue(source, untrue),
            Output::Wake(at) => self.parts.directory.wakes_at = Some(self.started + at),
        }
    }

    pub(super) fn wake_directory(&mut self, now: Instant) {
        if self.parts.directory.wakes_at.is_some_and(|at| at <= now) {
            self.parts.directory.wakes_at = None;
            self.drive(Input::Tick);
        }
    }

    /// Ends look-ups whose askers have what they need, and looks around once in a while.
    pub(super) fn tend_directory(&mut self, now: Instant) {
        let lookups = self.parts.directory.lookups.iter();
        let left: Vec<CommandId> =
            lookups.filter(|(_, lookup)| lookup.found.is_closed()).map(|(id, _)| *id).collect();
        left.into_iter().for_each(|id| self.drive(Input::Stop(id)));
        let now_secs = crate::now_secs();
        let directory = &mut self.parts.directory;
        let has_slept =
            now_secs.saturating_sub(mem::replace(&mut directory.ticked_secs, now_secs)) > SLEPT_SECS;
        if has_slept || directory.refresh_due <= now {
            directory.refresh_due = now + REFRESH_EVERY;
            self.drive(Input::Refresh);
        }
    }

    pub(super) fn look_up(
        &mut self,
        owner: Address,
        found: mpsc::Sender<Verified<NodeRecord>>,
        ended: oneshot::Sender<Turnout>,
    ) {
        let id = CommandId(self.parts.directory.next_number());
        let lookup = PendingLookup { found, ended, asked: 0, answered: 0, has_record: false };
        self.parts.directory.lookups.insert(id, lookup);
        self.drive(Input::Find(id, directory::record_name(owner)));
    }

    /// Keeps the own record, and gives it to those nearest to it.
    pub(super) fn put(&mut self, record: &Verified<NodeRecord>) {
        // It may be held already.
        let own = NeighbourOrigin::Wallet(self.parts.own);
        let _ = self.parts.records.lock().insert(record, own, crate::now_secs());
        match VerifiedRecord::of(&self.parts.directory.notary, directory::filed(record)) {
            Ok(record) => {
                let id = CommandId(self.parts.directory.next_number());
                self.parts.directory.put = Some(id);
                self.drive(Input::Put(id, record));
            }
            Err(error) => tracing::warn!(?error, "this node's record could not be published"),
        }
    }

    fn on_found(&mut self, id: CommandId, record: &Verified<NodeRecord>) {
        let Some(lookup) = self.parts.directory.lookups.get_mut(&id) else { return };
        // What was kept here is told before anybody is asked.
        if lookup.asked > 0 && !mem::replace(&mut lookup.has_record, true) {
            Counters::add(&self.parts.counters.lookups_answered);
            Counters::add_many(&self.parts.counters.lookup_requests_until_answered, lookup.asked);
        }
        // A full queue means that the asker has plenty to choose from already, and one that has gone is ended with the next
        // tick.
        let _ = lookup.found.try_send(record.clone());
    }

    fn on_done(&mut self, id: CommandId, outcome: Outcome) {
        if self.parts.directory.put == Some(id) {
            self.parts.directory.put = None;
            let holders = match outcome {
                Outcome::Placed { holders } => RecordHolders { kept_by: holders, wanted: holders },
                Outcome::PartlyPlaced { holders, wanted } => RecordHolders { kept_by: holders, wanted },
                // There was no place for it.
                _ => RecordHolders { kept_by: 0, wanted: K },
            };
            tracing::debug!(holders.kept_by, holders.wanted, "this node's record was published");
            self.parts.publisher.put_ended(holders, Instant::now());
            self.status_is_stale = true;
        }
        if let Some(lookup) = self.parts.directory.lookups.remove(&id) {
            Counters::add_many(&self.parts.counters.lookup_requests, lookup.asked);
            lookup.end(outcome);
        }
    }

    /// A peer asks. Nothing is said to one that has gone, or that puts more than it may.
    pub(super) fn on_request(&mut self, peer: Address, request: Request, reply: oneshot::Sender<Response>) {
        let Some(id) = self.peers.id_of(peer) else { return };
        let Some(contact) = directory::contact(&id, &[]) else { return };
        let name = match &request {
            Request::GetValue { name } => Some(name.clone()),
            Request::FindNode { .. } => None,
            Request::PutValue(_) => {
                let origin = NeighbourOrigin::of(peer, self.peers.range_of(&id));
                if self.parts.records.lock().hear(origin, crate::now_secs()).is_err() {
                    return Counters::add(&self.parts.counters.records_rejected);
                }
                None
            }
        };
        let token = Token(self.parts.directory.next_number());
        self.parts.directory.requests.insert(token, (name, reply));
        self.drive(Input::Request(token, contact, request));
    }

    fn reply_to(&mut self, token: Token, response: Response) {
        let Some((name, reply)) = self.parts.directory.requests.remove(&token) else { return };
        let response = match (response, name) {
            (Response::GetValue { found, closer }, Some(name)) => {
                let known = directory::owner_of(&name).and_then(|owner| self.parts.records.get(owner));
                let found = self.parts.directory.newest(&name, found, known);
                Response::GetValue { found, closer }
            }
            (other, _) => other,
        };
        // Whoever asked may have gone.
        let _ = reply.send(response);
    }

    fn on_heard(&mut self, record: &Verified<NodeRecord>, source: Key) {
        let Some(id) = self.peers.at(source) else { return };
        let Some(peer) = self.peers.address_of(&id) else { return };
        let from = (peer, self.peers.range_of(&id));
        // Counted where it happens; there may be no room for it.
        let _ = info::keep(&self.parts.records, &self.parts.counters, record, from);
    }

    fn on_untrue(&mut self, source: Key, untrue: Untrue) {
        Counters::add(&self.parts.counters.records_rejected);
        let peer = self.peers.at(source).and_then(|id| self.peers.address_of(&id));
        if let Some(peer) = peer {
            let is_forged = untrue == Untrue::Forged;
            self.on_strike(peer, if is_forged { Strike::BadSignature } else { Strike::Malformed });
        }
    }

    fn ask_directory(&mut self, id: AskId, contact: &Contact, request: Request) {
        // The machine asks nobody whose id is no wallet's.
        let Ok(peer) = PeerId::from_bytes(contact.id()) else { return };
        let directory = &mut self.parts.directory;
        if let Some(lookup) = directory.lookup_of(id) {
            lookup.asked += 1;
        }
        let (reply, stream) = oneshot::channel();
        let task = directory.questions.spawn(async move { (id, directory::ask(stream, request).await) });
        directory.under_way.insert(id, OwnQuestion { peer, task });
        if self.parts.swarm.is_connected(&peer) {
            self.parts.swarm.behaviour_mut().directory.open(peer, Opening(reply));
        } else {
            directory.queued.entry(peer).or_default().push((id, reply));
            self.dial_to_ask(peer, contact);
        }
    }

    pub(super) fn on_answered(&mut self, answered: Answered) {
        // A question that was abandoned has no answer.
        let Ok((id, answer)) = answered else { return };
        if !self.forget_question(id) {
            return;
        }
        if let Some(lookup) = self.parts.directory.lookup_of(id)
            && matches!(answer, Ok(_) | Err(Failure::Malformed))
        {
            // What is no answer to the question is no silence either.
            lookup.answered += 1;
        }
        self.drive(match answer {
            Ok(response) => Input::Answer(id, response),
            Err(failure) => Input::Failed(id, failure),
        });
    }

    /// Forgets a question, and ends the dial that was made for it alone; false if it was over before.
    fn forget_question(&mut self, id: AskId) -> bool {
        let directory = &mut self.parts.directory;
        let Some(OwnQuestion { peer, task }) = directory.under_way.remove(&id) else { return false };
        task.abort();
        if let Some(queued) = directory.queued.get_mut(&peer) {
            queued.retain(|(other, _)| *other != id);
            if queued.is_empty() {
                directory.queued.remove(&peer);
                self.end_dial_to_ask(peer);
            }
        }
        true
    }

    /// Dials a peer where it was named, unless it is being dialled; the questions to it wait for what comes of that.
    fn dial_to_ask(&mut self, peer: PeerId, contact: &Contact) {
        let named = contact.addresses().iter().filter_map(|bytes| Multiaddr::try_from(bytes.to_vec()).ok());
        let dialable = named.filter(|address| addresses::is_dialable(address, self.parts.allow_private));
        let dialled =
            dialable.map(|address| addresses::without_peer(&address)).take(DIALLED_ADDRESSES_MAX).collect();
        let condition = PeerCondition::DisconnectedAndNotDialing;
        let options = DialOpts::peer_id(peer).condition(condition).addresses(dialled).build();
        let connection = options.connection_id();
        match self.parts.swarm.dial(options) {
            Ok(()) => {
                self.parts.directory.dials.insert(peer, connection);
            }
            // Somebody else dials it.
            Err(DialError::DialPeerConditionFalse(_)) => {}
            Err(error) => self.fail_questions(peer, &error),
        }
    }

    /// Ends a dial that nobody waits for any more, so that there is room for others.
    fn end_dial_to_ask(&mut self, peer: PeerId) {
        let was_made = self.parts.directory.dials.remove(&peer).is_some();
        let is_of_use = self.parts.swarm.is_connected(&peer)
            || self.dials.is_dialled(&peer)
            || self.peers.is_awaited(&peer);
        if was_made && !is_of_use {
            // An error says that it is not connected, as is known.
            let _ = self.parts.swarm.disconnect_peer_id(peer);
        }
    }

    /// Asks a peer that has just been connected what waits for that.
    pub(super) fn ask_now(&mut self, peer: PeerId) {
        self.parts.directory.dials.remove(&peer);
        for (_, reply) in self.parts.directory.queued.remove(&peer).unwrap_or_default() {
            self.parts.swarm.behaviour_mut().directory.open(peer, Opening(reply));
        }
    }

    /// A dial failed. Questions go on waiting while there is another one.
    pub(super) fn on_question_not_asked(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        error: &DialError,
    ) {
        let dials = &mut self.parts.directory.dials;
        if dials.get(&peer) == Some(&connection) {
            dials.remove(&peer);
        }
        let is_dialled = dials.contains_key(&peer) || self.dials.is_dialled(&peer);
        if !is_dialled && !self.parts.swarm.is_connected(&peer) {
            self.fail_questions(peer, error);
        }
    }

    fn fail_questions(&mut self, peer: PeerId, error: &DialError) {
        // What our own limits deny, or we ended ourselves, says nothing of the peer.
        let why = match error {
            DialError::Denied { .. } | DialError::Aborted => NoStream::Refused(NotStarted::LocalLimit),
            _ => NoStream::NotConnected,
        };
        for (_, reply) in self.parts.directory.queued.remove(&peer).unwrap_or_default() {
            let _ = reply.send(Err(why.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_for_which_there_was_no_place_is_no_absence() {
        for (outcome, is_told) in [(Outcome::Absent, true), (Outcome::Busy, false)] {
            let (found, _records) = mpsc::channel(1);
            let (ended, mut end) = oneshot::channel();
            PendingLookup { found, ended, asked: 3, answered: 2, has_record: false }.end(outcome);
            assert_eq!(end.try_recv().is_ok(), is_told, "{outcome:?}");
        }
    }
}
