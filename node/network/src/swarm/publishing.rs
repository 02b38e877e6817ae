//! The own record in the swarm's task: publishing it, putting it into the directory, and noticing others that publish under the
//! same wallet.

use std::time::{Duration, Instant};

use farthing_protocol::{NodeRecord, Verified, info::InfoRequest};
use tokio::sync::oneshot;

use super::SwarmTask;
use crate::{NetworkError, neighbour_origin::NeighbourOrigin, publisher::Publication};

/// The time between two questions for the record of ours that a peer holds, each to the next peer. A node with our key
/// that shares our neighbours is heard of in no other way: to them it is we who speak, and nobody is told by gossip or
/// at a meeting what he said himself.
const OWN_RECORD_ASKED_EVERY: Duration = Duration::from_secs(10);

/// The same for a node that has just started: if it is a copy of one that runs, that one speaks up now.
const OWN_RECORD_ASKED_AT_FIRST_EVERY: Duration = Duration::from_secs(3);
const AT_FIRST: Duration = Duration::from_secs(60);

/// A record that was issued so long after this run began is of this run, or of a twin's: clocks tell seconds, and a
/// former run may have said goodbye in the second in which this one began.
const OF_THIS_RUN_SECS: u64 = 2;

/// Neighbours that hear at once of a record that goes above a twin's.
const TOLD_OF_TWIN: usize = 8;

/// The same after publishing it: others with our key have heard of it then, and spoken.
const OWN_RECORD_SETTLES: Duration = Duration::from_millis(1500);

impl SwarmTask {
    pub(super) fn publish(
        &mut self,
        publication: Publication,
        reply: oneshot::Sender<Result<u64, NetworkError>>,
    ) {
        let now = Instant::now();
        self.rise_above_others(now);
        let is_first = self.parts.publisher.record().is_none();
        let signed = self.parts.publisher.publish(publication, now, crate::now_secs());
        let seq = signed.map_err(NetworkError::from).map(|record| {
            let seq = record.seq;
            self.gossip_record(&record);
            if is_first {
                // Whom we met before had nothing from us yet; their answers show whether our clock is right.
                self.push(&record);
            }
            self.own_record_due = now + OWN_RECORD_SETTLES;
            let own = NeighbourOrigin::Wallet(self.parts.own);
            let stored = self.parts.records.lock().insert(&record, own, crate::now_secs());
            if let Err(error) = stored {
                tracing::warn!(%error, "this node's record could not be stored");
            }
            seq
        });
        let _ = reply.send(seq);
    }

    /// The addresses on which this node listens may have changed.
    pub(super) fn addresses_changed(&mut self) {
        let listening = self.listening();
        self.parts.prober.set_listening(listening, Instant::now());
        self.publish_addresses();
    }

    pub(super) fn put_if_due(&mut self, now: Instant) {
        if self.parts.directory.is_putting() || self.parts.publisher.next_due().is_none_or(|due| due > now) {
            return;
        }
        self.rise_above_others(now);
        self.status_is_stale = true;
        self.parts.publisher.put_started(now);
        match self.parts.publisher.for_put(crate::now_secs()) {
            Ok(record) => {
                self.put(&record);
                self.gossip_record(&record);
            }
            Err(error) => tracing::warn!(%error, "this node's record cannot be signed"),
        }
    }

    /// After a restore from a backup, others may hold a newer record of ours than we remember.
    pub(super) fn rise_above_others(&mut self, now: Instant) {
        let held = self.parts.records.lock().get(self.parts.own);
        let own_seq = self.parts.publisher.seq();
        let Some(held) = held.filter(|held| self.parts.publisher.rise_above(held.seq, now)) else { return };
        self.status_is_stale = true;
        tracing::info!(seq = held.seq, "this node's record now has a higher number than the one others hold");
        let was_suspected = self.twin.is_suspected(now);
        if held.expires_secs <= held.issued_secs {
            self.twin.left();
        } else {
            let is_of_this_run = held.issued_secs >= self.started_secs + OF_THIS_RUN_SECS;
            self.twin.rose(own_seq, held.seq, is_of_this_run, now);
        }
        if !was_suspected && self.twin.is_suspected(now) {
            tracing::warn!("another node uses this wallet's key; stop one of the two");
        }
        if self.twin.is_news() {
            self.speak_up();
        }
    }

    /// Lets a twin know at once that it is not alone, by a record above its own with the neighbours that it may ask.
    /// The directory is told as always, once a minute at most.
    fn speak_up(&mut self) {
        let record = match self.parts.publisher.for_put(crate::now_secs()) {
            Ok(record) => record,
            Err(error) => return tracing::warn!(%error, "this node's record cannot be signed"),
        };
        // It may have been overtaken already; then the next look says so.
        let own = NeighbourOrigin::Wallet(self.parts.own);
        let _ = self.parts.records.lock().insert(&record, own, crate::now_secs());
        self.gossip_record(&record);
        self.push(&record);
    }

    /// Gives neighbours our record, and hears what they say to it.
    fn push(&mut self, record: &Verified<NodeRecord>) {
        let push = InfoRequest::Push(vec![record.to_signed()]);
        let told = self.peers.answering().into_iter().take(TOLD_OF_TWIN);
        told.for_each(|peer| self.ask_for_records(peer, push.clone()));
    }

    /// A clock that was ahead and is set right leaves a record behind that nobody takes: a new one is due.
    pub(super) fn watch_clock(&mut self, now: Instant) {
        let peers = &self.peers;
        self.parts.records.lock().clocks.keep(|peer| peers.id_of(peer).is_some());
        let now_secs = crate::now_secs();
        if self.parts.publisher.record().is_some_and(|record| record.issued_secs > now_secs + 1) {
            self.parts.publisher.put_soon(now);
        }
    }

    /// Looks whether somebody else publishes under our wallet. Going above costs one record a minute at most.
    pub(super) fn watch_own_record(&mut self, now: Instant) {
        self.rise_above_others(now);
        if self.own_record_due > now || self.parts.publisher.record().is_none() {
            return;
        }
        if let Some(peer) = self.peers.in_turn(self.own_record_asked) {
            self.own_record_asked = self.own_record_asked.wrapping_add(1);
            let is_young = now.duration_since(self.started) < AT_FIRST;
            let pause = if is_young { OWN_RECORD_ASKED_AT_FIRST_EVERY } else { OWN_RECORD_ASKED_EVERY };
            self.own_record_due = now + pause;
            let own = self.parts.publisher.record().map(Verified::to_signed);
            // Whoever refused our record for its date says by that whether the clock is right by now.
            let refused = self.parts.records.lock().clocks.says_ahead(peer);
            let question = match own.filter(|_| refused) {
                Some(own) => InfoRequest::Push(vec![own]),
                None => InfoRequest::Records(vec![self.parts.own]),
            };
            self.ask_for_records(peer, question);
        }
    }

    pub(super) fn say_goodbye(&mut self) {
        match self.parts.publisher.withdraw(crate::now_secs()) {
            Ok(Some(record)) => {
                self.put(&record);
                self.gossip_record(&record);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the farewell message cannot be signed"),
        }
    }
}
