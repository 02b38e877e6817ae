//! From a wallet address to a connection: find the node's record, dial what it says.
//!
//! A record that is known is dialled first. When there is none, or nobody answers there within a second, a
//! fresh one is looked for: in the directory and, at the same time, at three connected peers. The look-up ends half a
//! second after the first valid record and takes the newest, which is then dialled. When nothing was found,
//! the other connected peers are asked as well.
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
    StreamExt,
    future::{self, Either},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::{timeout, timeout_at},
};

use self::pauses::Pauses;
use super::{Inner, Purpose, lookup::Sightings};
use crate::{
    NotStarted,
    command::Command,
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
/// One look-up, and how long it goes on after its first find.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(4);
const LOOKUP_AFTER_FIRST: Duration = Duration::from_millis(500);
/// Connected peers that are asked directly, and those that are asked when nobody else knew: whoever fills a
/// node's neighbourhood with liars must not silence the one honest neighbour.
const ASKED_PEERS: usize = 3;
const ASKED_AGAIN: usize = 64;
/// Records of one look-up that wait to be checked.
const FOUND_MAX: usize = 16;
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
    absentees: Mutex<Pauses>,
    unreached: Mutex<Pauses>,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            calling: SingleFlight::new(FLIGHTS_MAX),
            asking: SingleFlight::new(FLIGHTS_MAX),
            finding: SingleFlight::new(FLIGHTS_MAX),
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

/// A dial of one record. Unless it succeeds, and also when nobody waits for it any more, it was in vain.
struct RecordDial<'a> {
    reach: &'a Reach,
    owner: Address,
    seq: u64,
    is_reached: bool,
}

impl Drop for RecordDial<'_> {
    fn drop(&mut self) {
        if self.is_reached {
            self.reach.is_there(self.owner);
        } else {
            self.reach.unreached.lock().missed(self.owner, self.seq, Instant::now());
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
            return self.connect(&self.look_up(owner).await?, purpose).await;
        };
        let connect_anew = || self.connect_anew(owner, known.seq, purpose);
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

    /// Connects by a record newer than `known_seq`.
    ///
    /// # Errors
    /// Why that failed, or that its node has left; nothing when there is no such record.
    async fn connect_anew(
        self: &Arc<Self>,
        owner: Address,
        known_seq: u64,
        purpose: Purpose,
    ) -> Result<(), Option<NotStarted>> {
        match self.look_up(owner).await {
            Ok(fresh) if fresh.seq > known_seq => self.connect(&fresh, purpose).await.map_err(Some),
            Err(NotStarted::Offline(owner)) => Err(Some(NotStarted::Offline(owner))),
            Ok(_) | Err(_) => Err(None),
        }
    }

    /// Keeps a record that was found, and forgets that its owner was ever looked for in vain.
    pub(crate) fn remember(&self, record: &Verified<NodeRecord>) {
        let now_secs = crate::now_secs();
        // It may be held already, or the store may be full; neither matters here.
        let _: Result<(), Rejected> = self.records.lock().insert(record.clone(), self.own, now_secs);
        if record.check_time(now_secs).is_ok() {
            self.reach.absentees.lock().found(record.signer());
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
        let mut dial = RecordDial { reach: &self.reach, owner, seq, is_reached: false };
        let (reply, answer) = oneshot::channel();
        self.send(Command::Connect { record: Box::new(record.clone()), reply }).await?;
        let connected = timeout(DIAL_DEADLINE, answer).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", DIAL_DEADLINE.as_secs());
            Ok(Err(NotStarted::Unreachable { peer: owner, reason }))
        });
        connected.unwrap_or(Err(NotStarted::Stopped))?;
        dial.is_reached = true;
        Ok(())
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
        let (found, anybody) = self.search(owner, &mut Sightings::default()).await?;
        if let Some(record) = &found {
            self.remember(record);
        }
        match found {
            Some(record) if record.check_time(crate::now_secs()).is_ok() => Ok(record),
            Some(_) => Err(NotStarted::Offline(owner)),
            None => {
                Counters::add(&self.counters.lookups_failed);
                if anybody {
                    // Without anybody to ask, nothing was learned.
                    self.reach.absentees.lock().missed(owner, 0, Instant::now());
                }
                Err(NotStarted::NotFound(owner))
            }
        }
    }

    /// The newest record that the directory and connected peers hold, and whether there was anybody to ask.
    pub(crate) async fn search(
        self: &Arc<Self>,
        owner: Address,
        seen: &mut Sightings,
    ) -> Result<(Option<Verified<NodeRecord>>, bool), NotStarted> {
        let mut peers = self.closest_peers(owner).await;
        let others = peers.split_off(peers.len().min(ASKED_PEERS));
        let anybody = !peers.is_empty();
        let (found, mut from_directory) = mpsc::channel(FOUND_MAX);
        self.send(Command::Lookup { owner, found }).await?;
        let found = self.newest(owner, peers, &mut from_directory, seen).await;
        if found.is_some() || others.is_empty() {
            return Ok((found, anybody));
        }
        // The directory's last word may still come while the others are asked.
        Ok((self.newest(owner, others, &mut from_directory, seen).await, anybody))
    }

    /// Whom to ask besides the directory: those closest to the wallet first, which is as good as chance and
    /// does not always ask the same. The owner itself is the closest of all.
    async fn closest_peers(&self, owner: Address) -> Vec<Address> {
        let mut peers: Vec<Address> = self.neighbours().await.into_iter().map(|peer| peer.address).collect();
        peers.sort_by_key(|peer| distance(*peer, owner));
        peers.truncate(ASKED_PEERS + ASKED_AGAIN);
        peers
    }

    async fn newest(
        self: &Arc<Self>,
        owner: Address,
        asked: Vec<Address>,
        from_directory: &mut mpsc::Receiver<Vec<u8>>,
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
                    Some(value) = from_directory.recv() => {
                        let record = records::decode(&value, Some(owner), &self.network).ok();
                        seen.directory.note(record.as_ref());
                        Some(record)
                    }
                    Some((peer, record)) = from_peers.next() => {
                        seen.peers.note(record.as_ref());
                        holders.extend(record.iter().map(|record| (peer, record.seq)));
                        Some(record)
                    }
                    else => None,
                }
            };
            match timeout_at(until, next).await {
                Ok(Some(Some(record))) => {
                    if newest.is_none() {
                        until = until.min(tokio::time::Instant::now() + LOOKUP_AFTER_FIRST);
                    }
                    if newest.as_ref().is_none_or(|newest| newest.seq < record.seq) {
                        newest = Some(record);
                    }
                }
                Ok(Some(None)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if let Some(newest) = &newest {
            self.refresh(holders, newest);
        }
        newest
    }

    async fn who_has(&self, peer: Address, owner: Address) -> (Address, Option<Verified<NodeRecord>>) {
        let Some(InfoResponse::Records(records)) =
            self.ask_in_look_up(peer, &InfoRequest::Records(vec![owner])).await
        else {
            return (peer, None);
        };
        // One wallet was asked for; whatever follows the first record is ignored.
        let first = records.first().map(wire::encode);
        let record = first.and_then(|value| records::decode(&value, Some(owner), &self.network).ok());
        (peer, record)
    }

    /// Asks a peer that is connected; connecting to it is not worth while here.
    async fn ask_in_look_up(&self, peer: Address, question: &InfoRequest) -> Option<InfoResponse> {
        timeout(LOOKUP_DEADLINE, self.ask_connected(peer, question)).await.ok()?.ok()
    }

    /// Tells peers that hold an older record of the newest, so that the next to ask them fares better.
    fn refresh(self: &Arc<Self>, holders: Vec<(Address, u64)>, newest: &Verified<NodeRecord>) {
        for (holder, _) in holders.into_iter().filter(|(_, seq)| *seq < newest.seq) {
            let (inner, push) = (Arc::clone(self), InfoRequest::Push(vec![newest.to_signed()]));
            tokio::spawn(async move { inner.ask_in_look_up(holder, &push).await });
        }
    }
}

fn distance(a: Address, b: Address) -> [u8; 20] {
    std::array::from_fn(|i| a.as_bytes()[i] ^ b.as_bytes()[i])
}
