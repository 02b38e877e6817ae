//! From a wallet address to a connection: find the node's record, dial what it says.
//!
//! A record that is known is dialled first. When there is none, or nobody answers there within a second, a
//! fresh one is looked for: in the directory and, at the same time, at three connected peers. The first valid record is
//! dialled at once, while the look-up goes on for half a second; a newer one is dialled beside it. When nothing was found
//! that may be used, the other connected peers are asked as well.
//!
//! One wallet is looked for once at a time, whoever waits; what was not found is not looked for again for a while. A
//! record may name anybody's addresses, so one that led nowhere is not dialled again for a while either: for a
//! question ever longer, for a call a second. Nothing is ever charged on this path.

mod pauses;

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address, NodeRecord, Verified,
    info::{InfoRequest, InfoResponse},
    wire,
};
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture, Either},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use tokio::{
    sync::{broadcast, mpsc, oneshot},
    time::{timeout, timeout_at},
};

use self::pauses::Pauses;
use super::{Inner, Purpose, lookup::Sightings};
use crate::{
    CallFailure, Interrupted, NotStarted,
    command::Command,
    neighbour_origin::NeighbourOrigin,
    records::{self, Rejected},
    single_flight::SingleFlight,
    status::Counters,
};

/// Finding and connecting together.
const REACH_DEADLINE: Duration = Duration::from_secs(8);
/// One dial; what is left is for a fresh record.
const DIAL_DEADLINE: Duration = Duration::from_secs(4);
/// A dial that takes longer is not waited for alone: most handshakes are over by then, and an address that has changed
/// says nothing at all.
const DIAL_ALONE: Duration = Duration::from_secs(1);
/// One look-up, and how long it goes on after its first find that may be used, for the sake of a newer one.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(4);
const LOOKUP_AFTER_FIRST: Duration = Duration::from_millis(500);
/// Connected peers that are asked directly, and those that are asked when nobody else knew better: whoever fills a
/// node's neighbourhood with liars must not silence the one honest neighbour.
const ASKED_PEERS: usize = 3;
const ASKED_AGAIN: usize = 64;
/// Records of one look-up, and of all, that wait to be taken.
const FOUND_MAX: usize = 16;
const SIGHTED_MAX: usize = 64;
/// Wallets being reached, and being looked for.
const FLIGHTS_MAX: usize = 64;
/// The first pause before a wallet that was not found is looked for again: doubling.
const ABSENT_MIN: Duration = Duration::from_secs(30);
const ABSENT_MAX: Duration = Duration::from_secs(600);
/// The first pause before a wallet whose record led nowhere is dialled again for a question: doubling.
const UNREACHED_MIN: Duration = Duration::from_secs(1);
const UNREACHED_MAX: Duration = Duration::from_secs(60);
/// A call waits for this long after the last dial in vain, and dials then: its owner may have come back meanwhile, and
/// whoever calls wants it to be asked.
const CALL_DIALS_AGAIN: Duration = Duration::from_secs(1);

/// The wallets that are being reached or looked for, and those that were not found.
#[derive(Debug)]
pub(crate) struct Reach {
    /// For calls.
    calling: SingleFlight<()>,
    /// For questions.
    asking: SingleFlight<()>,
    finding: SingleFlight<Verified<NodeRecord>>,
    /// The records that look-ups find, as they find them.
    sighted: broadcast::Sender<Verified<NodeRecord>>,
    absentees: Mutex<Pauses>,
    unreached: Mutex<Pauses>,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            calling: SingleFlight::new(FLIGHTS_MAX),
            asking: SingleFlight::new(FLIGHTS_MAX),
            finding: SingleFlight::new(FLIGHTS_MAX),
            sighted: broadcast::Sender::new(SIGHTED_MAX),
            absentees: Mutex::new(Pauses::new(ABSENT_MIN, ABSENT_MAX)),
            unreached: Mutex::new(Pauses::new(UNREACHED_MIN, UNREACHED_MAX)),
        }
    }
}

impl Reach {
    /// `owner` is connected, whoever dialled whom.
    pub(crate) fn is_there(&self, owner: Address) {
        self.unreached.lock().found(owner);
    }

    /// Returns the rest of a call's pause after the last dial in vain.
    fn pause_of_call(&self, owner: Address) -> Duration {
        let since = self.unreached.lock().since(owner, Instant::now());
        since.map_or(Duration::ZERO, |since| CALL_DIALS_AGAIN.saturating_sub(since))
    }
}

/// A dial of one record. Unless it succeeds, and also when nobody waits for it any more, it was in vain; but one for which
/// this node had no place was none.
struct RecordDial<'a> {
    reach: &'a Reach,
    owner: Address,
    seq: u64,
    is_reached: Option<bool>,
}

impl Drop for RecordDial<'_> {
    fn drop(&mut self) {
        match self.is_reached {
            Some(true) => self.reach.is_there(self.owner),
            Some(false) => self.reach.unreached.lock().missed(self.owner, self.seq, Instant::now()),
            None => {}
        }
    }
}

impl Inner {
    /// Connects to `owner`. Whoever asks meanwhile shares the outcome.
    pub(crate) async fn reach(self: &Arc<Self>, owner: Address, purpose: Purpose) -> Result<(), NotStarted> {
        let inner = Arc::clone(self);
        let connecting = || async move {
            if purpose == Purpose::Call {
                tokio::time::sleep(inner.reach.pause_of_call(owner)).await;
            }
            let reached = timeout(REACH_DEADLINE, inner.find_and_connect(owner, purpose)).await;
            reached.unwrap_or_else(|_| {
                let reason = format!("no answer within {} s", REACH_DEADLINE.as_secs());
                Err(NotStarted::Unreachable { peer: owner, reason })
            })
        };
        let flights = match purpose {
            Purpose::Call => &self.reach.calling,
            Purpose::Question => &self.reach.asking,
        };
        flights.join(owner, connecting).await
    }

    async fn find_and_connect(self: &Arc<Self>, owner: Address, purpose: Purpose) -> Result<(), NotStarted> {
        let Some(known) = self.records.get_alive(owner) else {
            let connected = self.connect_anew(owner, None, purpose).await;
            return connected.map_err(|error| error.unwrap_or(NotStarted::NotFound(owner)));
        };
        let connect_anew = || self.connect_anew(owner, Some(known.seq), purpose);
        let mut dial = pin!(self.connect(&known, purpose));
        let first = match timeout(DIAL_ALONE, &mut dial).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => return connect_anew().await.map_err(|anew| anew.unwrap_or(error)),
            Err(_) => dial,
        };
        // The dial goes on meanwhile, and may still be the one that gets through.
        match future::select(first, pin!(connect_anew())).await {
            Either::Left((Ok(()), _)) => Ok(()),
            Either::Left((Err(error), anew)) => anew.await.map_err(|anew| anew.unwrap_or(error)),
            Either::Right((Ok(()), _)) => Ok(()),
            Either::Right((Err(anew), dial)) => dial.await.map_err(|error| anew.unwrap_or(error)),
        }
    }

    /// Looks for records newer than `known_seq`, and dials by each as it is found, beside the dials before it.
    ///
    /// # Errors
    /// Why that failed, or that its node has left; where a record is known already, nothing when there is none newer.
    async fn connect_anew(
        self: &Arc<Self>,
        owner: Address,
        known_seq: Option<u64>,
        purpose: Purpose,
    ) -> Result<(), Option<NotStarted>> {
        let mut sighted = self.reach.sighted.subscribe();
        let mut looking = pin!(self.look_up(owner));
        let mut dials: FuturesUnordered<BoxFuture<'_, Result<(), NotStarted>>> = FuturesUnordered::new();
        let (mut dialled_seq, mut is_over, mut failure) = (known_seq, false, None);
        loop {
            let found = tokio::select! {
                // What is missed is found again at the end.
                sighting = sighted.recv(), if !is_over => sighting.ok(),
                ended = &mut looking, if !is_over => {
                    is_over = true;
                    match &ended {
                        Err(NotStarted::Offline(_)) => failure = ended.clone().err(),
                        Err(error) if known_seq.is_none() => {
                            failure.get_or_insert(error.clone());
                        }
                        _ => {}
                    }
                    ended.ok()
                }
                Some(dialled) = dials.next() => match dialled {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        failure.get_or_insert(error);
                        None
                    }
                },
                else => return Err(failure),
            };
            let newer = found.filter(|record| record.signer() == owner && dialled_seq < Some(record.seq));
            if let Some(record) = newer {
                dialled_seq = Some(record.seq);
                dials.push(async move { self.connect(&record, purpose).await }.boxed());
            }
        }
    }

    /// Keeps a record that was found, tells those who wait for one, and forgets that its owner was ever looked for in vain.
    pub(crate) fn remember(&self, record: &Verified<NodeRecord>) {
        let now_secs = crate::now_secs();
        // It may be held already, or the store may be full; neither matters here.
        let _: Result<(), Rejected> =
            self.records.lock().insert(record, NeighbourOrigin::Wallet(self.own), now_secs);
        if record.check_time(now_secs).is_ok() {
            self.reach.absentees.lock().found(record.signer());
            // An error means that nobody waits.
            let _ = self.reach.sighted.send(record.clone());
        }
    }

    /// Dials where `record` says, unless that is for a question and was in vain a moment ago.
    pub(crate) async fn connect(
        &self,
        record: &Verified<NodeRecord>,
        purpose: Purpose,
    ) -> Result<(), NotStarted> {
        let (owner, seq) = (record.signer(), record.seq);
        let pause = self.reach.unreached.lock().wait(owner, seq, Instant::now());
        if let Some(wait) = pause.filter(|_| purpose == Purpose::Question) {
            return Err(NotStarted::NotReachedLately(owner, wait));
        }
        let mut dial = RecordDial { reach: &self.reach, owner, seq, is_reached: Some(false) };
        let (reply, answer) = oneshot::channel();
        let (record, for_call) = (Box::new(record.clone()), purpose == Purpose::Call);
        self.send(Command::Connect { record, for_call, reply }).await?;
        let connected = timeout(DIAL_DEADLINE, answer).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", DIAL_DEADLINE.as_secs());
            Ok(Err(NotStarted::Unreachable { peer: owner, reason }))
        });
        let connected = connected.unwrap_or(Err(NotStarted::Stopped));
        dial.is_reached = match &connected {
            Ok(()) => Some(true),
            Err(NotStarted::LocalLimit) => None,
            Err(_) => Some(false),
        };
        connected
    }

    /// The newest record of `owner`, from memory or from the network.
    pub(crate) async fn find(self: &Arc<Self>, owner: Address) -> Result<Verified<NodeRecord>, NotStarted> {
        if let Some(record) = self.records.get_alive(owner) {
            return Ok(record);
        }
        if owner == self.own {
            return Err(NotStarted::NotFound(owner));
        }
        self.look_up(owner).await
    }

    /// A fresh record of `owner` from the network.
    async fn look_up(self: &Arc<Self>, owner: Address) -> Result<Verified<NodeRecord>, NotStarted> {
        let inner = Arc::clone(self);
        self.reach.finding.join(owner, || async move { inner.look_up_alone(owner).await }).await
    }

    async fn look_up_alone(self: &Arc<Self>, owner: Address) -> Result<Verified<NodeRecord>, NotStarted> {
        if let Some(wait) = self.reach.absentees.lock().wait(owner, 0, Instant::now()) {
            // Somebody may have told us of it since.
            return self.records.get_alive(owner).ok_or(NotStarted::NotFoundLately(owner, wait));
        }
        Counters::add(&self.counters.lookups);
        let mut seen = Sightings::default();
        let found = self.search(owner, &mut seen).await?;
        // A goodbye, for one, may have come in another way.
        match found.into_iter().chain(self.records.get(owner)).max_by_key(|record| record.seq) {
            Some(record) if record.check_time(crate::now_secs()).is_ok() => Ok(record),
            Some(_) => Err(NotStarted::Offline(owner)),
            None => {
                Counters::add(&self.counters.lookups_failed);
                if seen.is_absence() {
                    self.reach.absentees.lock().missed(owner, 0, Instant::now());
                }
                Err(NotStarted::NotFound(owner))
            }
        }
    }

    /// The newest record that the directory and connected peers hold.
    pub(crate) async fn search(
        self: &Arc<Self>,
        owner: Address,
        seen: &mut Sightings,
    ) -> Result<Option<Verified<NodeRecord>>, NotStarted> {
        // Besides the directory: those who would keep the record if they are of it, which does not always ask the same.
        let count = ASKED_PEERS + ASKED_AGAIN;
        let mut peers = self.list(|reply| Command::Closest { owner, count, reply }).await;
        let others = peers.split_off(peers.len().min(ASKED_PEERS));
        let (found, mut from_directory) = mpsc::channel(FOUND_MAX);
        let (ended, mut end) = oneshot::channel();
        self.send(Command::Lookup { owner, found, ended }).await?;
        let mut found = self.newest(owner, peers, &mut from_directory, seen).await;
        // Liars give what has expired as well, long after its owner came back.
        if !found.as_ref().is_some_and(may_be_used) && !others.is_empty() {
            // The directory's last word may still come while the others are asked.
            let of_others = self.newest(owner, others, &mut from_directory, seen).await;
            found = found.into_iter().chain(of_others).max_by_key(|record| record.seq);
        }
        seen.directory_turnout = end.try_recv().ok();
        Ok(found)
    }

    async fn newest(
        self: &Arc<Self>,
        owner: Address,
        asked: Vec<Address>,
        from_directory: &mut mpsc::Receiver<Verified<NodeRecord>>,
        seen: &mut Sightings,
    ) -> Option<Verified<NodeRecord>> {
        let mut from_peers: FuturesUnordered<_> =
            asked.into_iter().map(|peer| self.who_has(peer, owner)).collect();
        let mut newest: Option<Verified<NodeRecord>> = None;
        let mut holders = Vec::new();
        let mut until = tokio::time::Instant::now() + LOOKUP_DEADLINE;
        loop {
            let next = async {
                tokio::select! {
                    Some(record) = from_directory.recv() => {
                        seen.directory.note(Some(&record));
                        Some(Some(record))
                    }
                    Some(told) = from_peers.next() => {
                        let (peer, record) = told.unzip();
                        let record = record.flatten();
                        if peer.is_some() {
                            seen.peers_turnout.answered += 1;
                            seen.peers.note(record.as_ref());
                        } else {
                            seen.peers_turnout.silent += 1;
                        }
                        holders.extend(peer.zip(record.as_ref().map(|record| record.seq)));
                        Some(record)
                    }
                    else => None,
                }
            };
            match timeout_at(until, next).await {
                Ok(Some(Some(record))) => {
                    if may_be_used(&record) {
                        until = until.min(tokio::time::Instant::now() + LOOKUP_AFTER_FIRST);
                    }
                    if newest.as_ref().is_none_or(|newest| newest.seq < record.seq) {
                        self.remember(&record);
                        newest = Some(record);
                    }
                }
                Ok(Some(None)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        seen.peers_turnout.silent += from_peers.len();
        if let Some(newest) = &newest {
            self.refresh(holders, newest);
        }
        newest
    }

    /// The record of `owner` that `peer` has, or that it has none; nothing when it says nothing.
    async fn who_has(
        &self,
        peer: Address,
        owner: Address,
    ) -> Option<(Address, Option<Verified<NodeRecord>>)> {
        let records = match self.ask_in_look_up(peer, &InfoRequest::Records(vec![owner])).await? {
            Ok(InfoResponse::Records(records)) => records,
            // What is no answer to the question is no silence either.
            Ok(_) | Err(CallFailure::Unknown(Interrupted::BadAnswer(_))) => Vec::new(),
            Err(_) => return None,
        };
        // One wallet was asked for; whatever follows the first record is ignored.
        let first = records.first().map(wire::encode);
        let record = first.and_then(|value| records::decode(&value, Some(owner), &self.network).ok());
        Some((peer, record))
    }

    /// Asks a peer that is connected; connecting to it is not worth while here. Nothing when it takes too long.
    async fn ask_in_look_up(
        &self,
        peer: Address,
        question: &InfoRequest,
    ) -> Option<Result<InfoResponse, CallFailure>> {
        timeout(LOOKUP_DEADLINE, self.ask_connected(peer, question)).await.ok()
    }

    /// Tells peers that hold an older record of the newest, so that the next to ask them fares better.
    fn refresh(self: &Arc<Self>, holders: Vec<(Address, u64)>, newest: &Verified<NodeRecord>) {
        for (holder, _) in holders.into_iter().filter(|(_, seq)| *seq < newest.seq) {
            let (inner, push) = (Arc::clone(self), InfoRequest::Push(vec![newest.to_signed()]));
            tokio::spawn(async move { inner.ask_in_look_up(holder, &push).await });
        }
    }
}

fn may_be_used(record: &Verified<NodeRecord>) -> bool {
    record.check_time(crate::now_secs()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dial_for_which_there_was_no_place_here_is_not_held_against_the_record() {
        let (reach, owner) = (Reach::default(), Address::from_bytes([1; 20]));
        for (is_reached, waits) in [(None, false), (Some(false), true), (None, true), (Some(true), false)] {
            drop(RecordDial { reach: &reach, owner, seq: 1, is_reached });
            let wait = reach.unreached.lock().wait(owner, 1, Instant::now());
            assert_eq!(wait.is_some(), waits, "{is_reached:?}");
        }
    }
}
