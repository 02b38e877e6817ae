//! The directory in the swarm's task: looking records up, keeping those of others, publishing the own one.

use std::time::{Duration, Instant};

use farthing_protocol::{Address, NodeRecord, Verified, info::InfoRequest, wire};
use libp2p::{
    Multiaddr, PeerId,
    kad::{
        self, GetRecordOk, InboundRequest, PeerRecord, QueryId, QueryResult, QueryStats, Quorum, Record,
        RecordKey, store::RecordStore,
    },
    swarm::DialError,
};
use tokio::sync::{mpsc, oneshot};

use super::SwarmTask;
use crate::{
    NetworkError, addresses, info::take_record, publisher::Publication, records::RECORD_VALUE_BYTES_MAX,
    report::Strike, status::Counters,
};

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

/// Gives a peer these addresses in the routing table, and no others: kad keeps every address that it was ever told, and
/// tells all of them in its answers, which have a bound.
pub(super) fn place_in_table<S>(kad: &mut kad::Behaviour<S>, peer: PeerId, current: &[Multiaddr])
where
    S: RecordStore + Send + 'static,
{
    for address in current {
        kad.add_address(&peer, address.clone());
    }
    for address in addresses_in_table(kad, peer) {
        if !current.contains(&addresses::without_peer(&address)) {
            kad.remove_address(&peer, &address);
        }
    }
}

/// Lists what the routing table has of a peer, with the peer's id in each address.
fn addresses_in_table<S>(kad: &mut kad::Behaviour<S>, peer: PeerId) -> Vec<Multiaddr>
where
    S: RecordStore + Send + 'static,
{
    let Some(bucket) = kad.kbucket(peer) else { return Vec::new() };
    let entry = bucket.iter().find(|entry| *entry.node.key.preimage() == peer);
    entry.map(|entry| entry.node.value.clone().into_vec()).unwrap_or_default()
}

/// One look-up under way: whom its finds go to.
#[derive(Debug)]
pub(crate) struct PendingLookup {
    found: mpsc::Sender<Vec<u8>>,
    /// Somebody held a record.
    answered: bool,
}

impl SwarmTask {
    pub(super) fn look_up(&mut self, owner: Address, found: mpsc::Sender<Vec<u8>>) {
        let key = RecordKey::from(wire::record_key(owner));
        let query = self.parts.swarm.behaviour_mut().kad.get_record(key);
        self.lookups.insert(query, PendingLookup { found, answered: false });
    }

    /// A look-up whose asker has what it needs would otherwise go on to the last of twenty peers.
    pub(super) fn finish_abandoned_lookups(&mut self) {
        let kad = &mut self.parts.swarm.behaviour_mut().kad;
        for (query, lookup) in &self.lookups {
            if lookup.found.is_closed()
                && let Some(mut query) = kad.query_mut(query)
            {
                query.finish();
            }
        }
    }

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
            let stored = self.parts.records.lock().insert(record, self.parts.own, crate::now_secs());
            if let Err(error) = stored {
                tracing::warn!(%error, "the own record was not stored");
            }
            seq
        });
        let _ = reply.send(seq);
    }

    /// The addresses on which this node listens may have changed.
    pub(super) fn addresses_changed(&mut self) {
        let listening: Vec<_> = self.parts.swarm.listeners().cloned().collect();
        self.parts.prober.set_listening(listening, Instant::now());
        self.publish_addresses();
    }

    pub(super) fn put_if_due(&mut self, now: Instant) {
        if self.put.is_some() || self.parts.publisher.next_due().is_none_or(|due| due > now) {
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
            Err(error) => tracing::warn!(%error, "the own record cannot be signed"),
        }
    }

    /// After a restore from a backup, others may hold a newer record of ours than we remember.
    pub(super) fn rise_above_others(&mut self, now: Instant) {
        let held = self.parts.records.lock().get(self.parts.own).cloned();
        let own_seq = self.parts.publisher.seq();
        let Some(held) = held.filter(|held| self.parts.publisher.rise_above(held.seq, now)) else { return };
        self.status_is_stale = true;
        tracing::info!(seq = held.seq, "the own record continues above one that others hold");
        let was_suspected = self.twin.is_suspected(now);
        if held.expires_secs <= held.issued_secs {
            self.twin.left();
        } else {
            let is_of_this_run = held.issued_secs >= self.started_secs + OF_THIS_RUN_SECS;
            self.twin.rose(own_seq, held.seq, is_of_this_run, now);
        }
        if !was_suspected && self.twin.is_suspected(now) {
            tracing::warn!("another node runs with this wallet's key; stop one of the two");
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
            Err(error) => return tracing::warn!(%error, "the own record cannot be signed"),
        };
        // It may have been overtaken already; then the next look says so.
        let _ = self.parts.records.lock().insert(record.clone(), self.parts.own, crate::now_secs());
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

    fn put(&mut self, record: &Verified<NodeRecord>) {
        let key = RecordKey::from(wire::record_key(self.parts.own));
        let value = Record::new(key, wire::encode(&record.to_signed()));
        match self.parts.swarm.behaviour_mut().kad.put_record(value, Quorum::One) {
            Ok(query) => self.put = Some(query),
            Err(error) => tracing::warn!(%error, "the own record was not stored"),
        }
    }

    pub(super) fn say_goodbye(&mut self) {
        match self.parts.publisher.withdraw(crate::now_secs()) {
            Ok(Some(record)) => {
                self.put(&record);
                self.gossip_record(&record);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the goodbye cannot be signed"),
        }
    }

    pub(super) fn on_directory(&mut self, event: kad::Event) {
        match event {
            kad::Event::InboundRequest {
                request: InboundRequest::PutRecord { source, record: Some(record), .. },
            } => self.on_put(source, &record),
            kad::Event::OutboundQueryProgressed { id, result, stats, step } => {
                self.count_requests(id, &result, &stats, step.last);
                self.on_query(id, result, step.last);
            }
            _ => {}
        }
    }

    /// Returns whether the routing table has a place for `peer`: a full part of it keeps whom it has, as long as they
    /// can be reached. (kad would dial the one it has not heard of for longest each time somebody is met.)
    pub(super) fn has_place_in_table(&mut self, peer: &PeerId) -> bool {
        let bucket = self.parts.swarm.behaviour_mut().kad.kbucket(*peer);
        bucket.is_some_and(|bucket| {
            bucket.num_entries() < kad::K_VALUE.get()
                || bucket.iter().any(|entry| entry.node.key.preimage() == peer)
        })
    }

    /// Whom we cannot reach gives its place in the routing table to somebody else, unless we reach nobody.
    pub(super) fn unlearn(&mut self, peer: Option<PeerId>, error: &DialError) {
        if let (Some(peer), DialError::Transport(_)) = (peer, error)
            && self.peers.identified_count() > 0
            && !self.parts.swarm.is_connected(&peer)
        {
            self.parts.swarm.behaviour_mut().kad.remove_peer(&peer);
        }
    }

    /// A peer asks us to keep a record. It was acknowledged already; whether it is kept is decided here.
    fn on_put(&mut self, source: PeerId, record: &Record) {
        let Some(source) = self.peers.address_of(&source) else { return };
        if record.value.len() > RECORD_VALUE_BYTES_MAX {
            return Counters::add(&self.parts.counters.records_rejected);
        }
        let Ok(signed) = wire::decode(&record.value) else {
            Counters::add(&self.parts.counters.records_rejected);
            return self.on_strike(source, Strike::Malformed);
        };
        let parts = &self.parts;
        let taken = take_record(&parts.records, &parts.network, &parts.counters, signed, source);
        if taken == Err(crate::records::Rejected::Forged) {
            self.on_strike(source, Strike::BadSignature);
        }
    }

    /// Counts the cost of look-ups: requests until somebody held a record, and until the end.
    fn count_requests(&mut self, id: QueryId, result: &QueryResult, stats: &QueryStats, last: bool) {
        let Some(lookup) = self.lookups.get_mut(&id) else { return };
        let (counters, requests) = (&self.parts.counters, stats.num_requests() as usize);
        let of_a_peer = matches!(
            result,
            QueryResult::GetRecord(Ok(GetRecordOk::FoundRecord(PeerRecord { peer: Some(_), .. })))
        );
        if of_a_peer && !std::mem::replace(&mut lookup.answered, true) {
            Counters::add(&counters.lookups_answered);
            Counters::add_many(&counters.lookup_requests_until_answered, requests);
        }
        if last {
            Counters::add_many(&counters.lookup_requests, requests);
        }
    }

    fn on_query(&mut self, id: QueryId, result: QueryResult, last: bool) {
        match result {
            QueryResult::GetRecord(Ok(GetRecordOk::FoundRecord(found))) => self.on_found(id, found.record),
            QueryResult::PutRecord(result) if self.put == Some(id) => {
                self.put = None;
                self.parts.publisher.put_ended(result.is_ok(), Instant::now());
            }
            _ => {}
        }
        if last {
            // The asker sees that nothing more will come.
            self.lookups.remove(&id);
        }
    }

    fn on_found(&mut self, id: QueryId, record: Record) {
        let Some(lookup) = self.lookups.get(&id) else { return };
        // A full queue means that the asker has plenty to choose from already.
        if let Err(mpsc::error::TrySendError::Closed(_)) = lookup.found.try_send(record.value)
            && let Some(mut query) = self.parts.swarm.behaviour_mut().kad.query_mut(&id)
        {
            query.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use libp2p::kad::store::MemoryStore;

    use super::*;

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/192.0.2.1/tcp/{port}").parse().unwrap()
    }

    #[test]
    fn however_often_a_peer_tells_of_addresses_the_routing_table_has_the_last_ones_alone() {
        let (own, peer) = (PeerId::random(), PeerId::random());
        let mut kad = kad::Behaviour::new(own, MemoryStore::new(own));
        for first in 0..200 {
            let told = [address(1 + first), address(2 + first)];
            place_in_table(&mut kad, peer, &told);
            let kept = addresses_in_table(&mut kad, peer);
            let kept: Vec<Multiaddr> = kept.iter().map(addresses::without_peer).collect();
            assert_eq!(kept.len(), told.len(), "{kept:?}");
            assert!(told.iter().all(|address| kept.contains(address)), "{kept:?}");
        }
    }
}
