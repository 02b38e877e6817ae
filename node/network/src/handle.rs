//! The handle that the rest of the node holds: calls, questions, look-ups, publishing, status.

use std::{
    collections::HashMap,
    future,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_bounds::{ByteBudget, HeldBytes};
use farthing_protocol::{Address, CallMessage, CallReply, Hash, Listing, NodeRecord, Signed, Verified, wire};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    CallFailure, CallTiming, CounterSnapshot, IndexNode, Interrupted, Lookup, Neighbour, NetworkConfig,
    NetworkError, NetworkLimits, NetworkStatus, NotStarted, PeerInfo, RELAYED_BODY_BYTES_MAX, Reachability,
    SyncStream,
    admission::Admission,
    call::{AskingStream, KeptStreams, Missed},
    command::{Command, NoStream, Protocol},
    gossip::Subject,
    line::Line,
    partners::Partners,
    publisher::Publication,
    records::SharedRecords,
    report::{Reporter, Strike},
    status::Counters,
};

pub(crate) mod lookup;
#[cfg(feature = "memory")]
mod played;
mod questions;
mod reach;

use reach::Reach;

/// Room without which no call is made: most answers fit.
const ANSWER_BYTES_MIN: usize = 64 * 1024;
/// Neighbours that are asked for a twin, and for how long somebody waits for them.
const TWIN_ASKED_MAX: usize = 8;
const TWIN_DEADLINE: Duration = Duration::from_secs(2);

/// The longest wait for a direct connection beside one through a relay; most that come are there by then.
const DIRECT_WITHIN: Duration = Duration::from_secs(3);
const DIRECT_LOOKED_FOR_EVERY: Duration = Duration::from_millis(100);

/// A share in the network. Cheap to clone; the network stops when it is shut down or the last one is dropped.
#[derive(Clone, Debug)]
pub struct NetworkHandle(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) own: Address,
    pub(crate) network: wire::NetworkName,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) records: SharedRecords,
    pub(crate) counters: Arc<Counters>,
    pub(crate) reach: Reach,
    status: watch::Receiver<NetworkStatus>,
    calling: Arc<Admission>,
    partners: Partners,
    reporter: Reporter,
    limits: NetworkLimits,
    pub(crate) budget: ByteBudget,
    missed: Missed,
    pub(crate) kept: Arc<KeptStreams>,
    /// Set where no swarm carries calls.
    #[cfg(feature = "memory")]
    played: Option<crate::Played>,
}

/// The places for calls that go out, streams for them, and the wallets that this node pays.
pub(crate) struct Calls {
    pub(crate) calling: Arc<Admission>,
    pub(crate) kept: Arc<KeptStreams>,
    pub(crate) partners: Partners,
    #[cfg(feature = "memory")]
    pub(crate) played: Option<crate::Played>,
}

/// The purpose for which a wallet is to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Call,
    Question,
}

impl NetworkHandle {
    pub(crate) fn new(
        commands: mpsc::Sender<Command>,
        status: watch::Receiver<NetworkStatus>,
        records: SharedRecords,
        counters: Arc<Counters>,
        calls: Calls,
        reporter: Reporter,
        config: &NetworkConfig,
    ) -> Self {
        Self(Arc::new(Inner {
            own: config.key.address(),
            network: config.network.clone(),
            commands,
            records,
            counters,
            reach: Reach::default(),
            status,
            calling: calls.calling,
            partners: calls.partners,
            reporter,
            limits: config.limits.clone(),
            budget: config.budget.clone(),
            missed: Missed::default(),
            kept: calls.kept,
            #[cfg(feature = "memory")]
            played: calls.played,
        }))
    }

    /// This node's wallet.
    pub fn own_address(&self) -> Address {
        self.0.own
    }

    /// Makes one call to `owner` and waits for its answer, at most `deadline` in all. `body` has the length
    /// that the message names. Never sends twice.
    ///
    /// # Errors
    /// [`CallFailure::NeverStarted`] when nothing was sent, [`CallFailure::Unknown`] otherwise.
    pub async fn call(
        &self,
        owner: Address,
        message: CallMessage,
        body: Bytes,
        deadline: Duration,
    ) -> Result<(CallReply, Bytes, CallTiming), CallFailure> {
        self.call_unless(owner, message, body, deadline, future::pending()).await
    }

    /// Makes one call as [`Self::call`] does, unless it is `given_up` before its first byte is sent.
    ///
    /// # Errors
    /// As [`Self::call`], and [`NotStarted::GivenUp`].
    pub async fn call_unless(
        &self,
        owner: Address,
        message: CallMessage,
        body: Bytes,
        deadline: Duration,
        given_up: impl Future<Output = ()> + Send,
    ) -> Result<(CallReply, Bytes, CallTiming), CallFailure> {
        let result = self.call_once(owner, (&message, &body), deadline, given_up).await;
        result.inspect_err(|failure| {
            Counters::add(match failure {
                CallFailure::Unknown(_) => &self.0.counters.calls_unknown,
                CallFailure::NeverStarted(_) => &self.0.counters.calls_not_started,
            });
        })
    }

    async fn call_once(
        &self,
        owner: Address,
        (message, body): (&CallMessage, &Bytes),
        deadline: Duration,
        given_up: impl Future<Output = ()> + Send,
    ) -> Result<(CallReply, Bytes, CallTiming), CallFailure> {
        let started = Instant::now();
        let head = check_message(message, body).map_err(CallFailure::NeverStarted)?;
        let _place = self.0.calling.admit(owner).ok_or(CallFailure::NeverStarted(NotStarted::LocalLimit))?;
        let room = self.0.room_for(message).ok_or(CallFailure::NeverStarted(NotStarted::NoRoom))?;
        #[cfg(feature = "memory")]
        if let Some(line) = &self.0.played {
            return self.0.call_played(line, owner, (message, body), deadline, room).await;
        }
        let stream = tokio::select! {
            biased;
            () = given_up => Err(NotStarted::GivenUp),
            stream = timeout(deadline, self.0.call_stream(owner, body.len())) => {
                stream.unwrap_or(Err(NotStarted::Deadline))
            }
        };
        let (mut stream, warm) = stream.map_err(CallFailure::NeverStarted)?;
        let connect = started.elapsed();
        let left = deadline.saturating_sub(connect);
        // A first poll would write the whole request.
        if left.is_zero() {
            return Err(CallFailure::NeverStarted(NotStarted::Deadline));
        }
        self.0.counters.count_sent(stream.line().is_relayed());
        let line = stream.line().traffic();
        let exchange = stream.exchange(&head, body, &self.0.limits, room);
        let watched = self.0.over_watched_line(owner, line, body.len(), exchange);
        let answer = timeout(left, watched).await;
        let answer = answer.unwrap_or(Err(CallFailure::Unknown(Interrupted::Deadline)));
        self.0.missed.note(message, &answer);
        match &answer {
            Ok(_) => self.0.kept.keep(owner, stream, Instant::now()),
            // Whoever asks about the call, and sends it again, does both over one connection: an owner refuses a copy
            // that comes over an older one.
            Err(_) => self.0.kept.forget(owner),
        }
        let (reply, body) = answer?;
        let exchange = started.elapsed().saturating_sub(connect);
        Ok((reply, body, CallTiming { connect, exchange, warm }))
    }

    /// Connects to `peer` unless it is connected. Whoever asks meanwhile shares the outcome.
    ///
    /// # Errors
    /// [`NotStarted`], naming why it cannot be reached.
    pub async fn connect(&self, peer: Address) -> Result<(), NotStarted> {
        if self.connected_peers().await.contains(&peer) {
            return Ok(());
        }
        #[cfg(feature = "memory")]
        if let Some(line) = &self.0.played {
            return line.check_there(peer);
        }
        self.0.reach(peer, Purpose::Call).await
    }

    /// The newest record of `owner` that this node knows or can find.
    ///
    /// # Errors
    /// [`NotStarted`], naming why there is none.
    pub async fn find(&self, owner: Address) -> Result<Verified<NodeRecord>, NotStarted> {
        self.0.find(owner).await
    }

    /// Looks for `owner` everywhere, connects to it, and tells what each step brought. Unlike
    /// [`Self::find`], it does not believe what it knows already, nor that looking is in vain. 12 s at most.
    pub async fn lookup(&self, owner: Address) -> Lookup {
        self.0.lookup(owner).await
    }

    /// Every live record this node knows, its own included; at most [`NetworkLimits::records_max`].
    pub fn records(&self) -> Vec<Verified<NodeRecord>> {
        self.0.records.lock().alive(crate::now_secs()).collect()
    }

    /// The flags (`record::FLAG_…`) of the newest record of `owner` that may be used now; `None` where none is known.
    pub fn flags_of(&self, owner: Address) -> Option<u32> {
        Some(self.0.records.get_alive(owner)?.flags)
    }

    /// Those of `named` whose records say that they keep all listings, and `count` of all such at most, drawn by lot.
    pub fn index_nodes(&self, named: &[Address], count: usize) -> Vec<IndexNode> {
        self.0.records.lock().index_nodes(named, count, crate::now_secs())
    }

    /// Owners of whom a newer record came since this was last asked, and when it expires, in seconds since the Unix
    /// epoch: in the past for who said goodbye. That there was no room for a record, or that it had to make room, is
    /// not told, as it says nothing of its owner.
    pub fn heard(&self) -> HashMap<Address, u64> {
        self.0.records.lock().take_heard()
    }

    /// Publishes this node's record with these flags (`record::FLAG_…`) and listings, and keeps it
    /// published: again every six hours and whenever the node's addresses change. Returns its sequence number.
    ///
    /// # Errors
    /// [`NetworkError`] when the record cannot be signed or the network has stopped.
    pub async fn publish(
        &self,
        flags: u32,
        listings_count: u32,
        listings_root: Hash,
    ) -> Result<u64, NetworkError> {
        let publication = Publication { flags, listings_count, listings_root };
        let (reply, answer) = oneshot::channel();
        self.0.send(Command::Publish { publication, reply }).await.map_err(|_| NetworkError::Stopped)?;
        answer.await.map_err(|_| NetworkError::Stopped)?
    }

    /// Opens a session with `peer` to bring both catalogs into agreement. The opener speaks first.
    ///
    /// # Errors
    /// [`NotStarted`], naming why there is none. A peer that has no room closes the session at once.
    pub async fn sync(&self, peer: Address) -> Result<SyncStream, NotStarted> {
        let (stream, knows_shards) = match self.0.stream(peer, Protocol::ShardSync).await {
            Err(NotStarted::Unsupported) => (self.0.stream(peer, Protocol::Sync).await?.0, false),
            opened => (opened?.0, true),
        };
        Ok(SyncStream::outbound(peer, stream, &self.0.limits).knowing_shards(knows_shards))
    }

    /// Tells neighbours of a listing that is new. Returns whether there was anybody to tell; those who were
    /// not told learn of it by reconciliation.
    pub async fn gossip_listing(&self, listing: &Signed<Listing>) -> bool {
        let (reply, told) = oneshot::channel();
        let content = wire::encode(listing);
        let sent = self.0.send(Command::Gossip { subject: Subject::Listing, content, reply }).await;
        sent.is_ok() && told.await.unwrap_or(false)
    }

    /// Holds it against `peer` that it sent what no honest node sends, such as a forged listing. Five of these in
    /// ten minutes block it.
    pub fn accuse(&self, peer: Address) {
        #[cfg(feature = "memory")]
        if let Some(line) = &self.0.played {
            line.note_accused(peer);
        }
        self.0.reporter.strike(peer, Strike::BadSignature);
    }

    /// Connected peers of this network, in order of their addresses. Empty once the network has stopped.
    pub async fn peers(&self) -> Vec<PeerInfo> {
        self.0.peers().await
    }

    /// The wallets of [`Self::peers`].
    pub async fn connected_peers(&self) -> Vec<Address> {
        #[cfg(feature = "memory")]
        if let Some(line) = &self.0.played {
            return line.there();
        }
        self.neighbours().await.into_iter().map(|neighbour| neighbour.address).collect()
    }

    /// The same peers, cheap enough to be asked for again and again.
    pub async fn neighbours(&self) -> Vec<Neighbour> {
        self.0.neighbours().await
    }

    /// Tests now whether other nodes can dial this one, and returns what is known then: the last result when
    /// there is nobody to ask, or everybody was asked a moment ago.
    ///
    /// # Errors
    /// [`NetworkError::Stopped`]
    pub async fn test_reachability(&self) -> Result<Reachability, NetworkError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Command::TestReachability { reply }).await.map_err(|_| NetworkError::Stopped)?;
        answer.await.map_err(|_| NetworkError::Stopped)
    }

    /// Finds out whether another node runs with this wallet's key, as far as neighbours know: asks some of them which
    /// record of this node they hold. [`NetworkStatus::duplicate_identity`] says the same from then on.
    pub async fn look_for_twin(&self) -> bool {
        let own = self.0.own;
        let peers = self.connected_peers().await.into_iter().take(TWIN_ASKED_MAX);
        let asked = peers.map(|peer| timeout(TWIN_DEADLINE, self.fetch_records(peer, vec![own])));
        // Whoever does not answer knows of nobody.
        let _ = futures::future::join_all(asked).await;
        let (reply, answer) = oneshot::channel();
        self.0.send(Command::LookForTwin { reply }).await.is_ok() && answer.await.unwrap_or(false)
    }

    /// Keeps connections, places for calls and memory free for these wallets, with which channels are open; they
    /// replace those named before.
    pub fn favour(&self, peers: impl IntoIterator<Item = Address>) {
        self.0.partners.set(peers.into_iter().collect());
    }

    /// The network's state, to read or to watch.
    pub fn status(&self) -> watch::Receiver<NetworkStatus> {
        self.0.status.clone()
    }

    /// Returns the counts since the start.
    pub fn counters(&self) -> CounterSnapshot {
        self.0.counters.snapshot()
    }

    /// Says goodbye to the directory, waits for the calls under way in both directions, at most
    /// [`NetworkLimits::drain_deadline`], and closes every connection.
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.0.send(Command::Shutdown { reply }).await.is_ok() {
            // An error means that the task has ended already, which is what was asked for.
            let _ = done.await;
        }
    }
}

impl Inner {
    pub(crate) async fn send(&self, command: Command) -> Result<(), NotStarted> {
        self.commands.send(command).await.map_err(|_| NotStarted::Stopped)
    }

    /// A stream to `owner`, connecting first where needed; and whether that was needed.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        owner: Address,
        protocol: Protocol,
    ) -> Result<(Line, bool), NotStarted> {
        if owner == self.own {
            return Err(NotStarted::OwnWallet(owner));
        }
        if let Some(stream) = self.open(owner, protocol).await? {
            self.reach.is_there(owner);
            return Ok((stream, true));
        }
        let is_call = matches!(protocol, Protocol::Call);
        self.reach(owner, if is_call { Purpose::Call } else { Purpose::Question }).await?;
        let lost = || NotStarted::Unreachable { peer: owner, reason: "the connection was closed".to_owned() };
        self.open(owner, protocol).await?.map(|stream| (stream, false)).ok_or_else(lost)
    }

    /// A stream for a call to `owner`, one that rests if there is one. What is too large for a relay waits a moment for a
    /// direct connection.
    async fn call_stream(
        self: &Arc<Self>,
        owner: Address,
        body_bytes: usize,
    ) -> Result<(AskingStream, bool), NotStarted> {
        if let Some(stream) = self.kept.take(owner, Instant::now()) {
            return Ok((stream, true));
        }
        let (mut line, warm) = self.stream(owner, Protocol::Call).await?;
        let until = Instant::now() + DIRECT_WITHIN;
        while line.is_relayed() && body_bytes > RELAYED_BODY_BYTES_MAX {
            if Instant::now() >= until {
                return Err(NotStarted::Relayed { peer: owner, bytes: body_bytes });
            }
            tokio::time::sleep(DIRECT_LOOKED_FOR_EVERY).await;
            (line, _) = self.stream(owner, Protocol::Call).await?;
        }
        Counters::add(&self.counters.call_streams_opened);
        Ok((line.into(), warm))
    }

    /// A stream to `owner` if it is connected.
    pub(crate) async fn open(&self, owner: Address, protocol: Protocol) -> Result<Option<Line>, NotStarted> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Open { owner, protocol, reply }).await?;
        match answer.await {
            Ok(Ok(stream)) => Ok(Some(stream)),
            // The connection went away between the question and the stream.
            Ok(Err(NoStream::NotConnected)) | Err(_) => Ok(None),
            Ok(Err(NoStream::Refused(why))) => Err(why),
        }
    }

    /// Takes room for an answer. Whoever has no room for any answer had better not buy one; one that found none
    /// before is not asked for again until there is enough, because an owner gives it a second time at most.
    fn room_for(&self, message: &CallMessage) -> Option<HeldBytes> {
        let needed = self.missed.bytes(message);
        let room = self.budget.take(needed.max(ANSWER_BYTES_MIN))?;
        Some(if needed == 0 { self.budget.nothing() } else { room })
    }

    pub(crate) async fn neighbours(&self) -> Vec<Neighbour> {
        self.list(|reply| Command::Neighbours { reply }).await
    }

    pub(crate) async fn peers(&self) -> Vec<PeerInfo> {
        self.list(|reply| Command::Peers { reply }).await
    }

    /// Asks with a command that is answered by a list, which is empty once the network has stopped.
    async fn list<T>(&self, command: impl FnOnce(oneshot::Sender<Vec<T>>) -> Command) -> Vec<T> {
        let (reply, answer) = oneshot::channel();
        if self.send(command(reply)).await.is_err() {
            return Vec::new();
        }
        answer.await.unwrap_or_default()
    }
}

/// The head of a message, which is what the owner would take.
fn check_message(message: &CallMessage, body: &Bytes) -> Result<Vec<u8>, NotStarted> {
    if message.body_bytes() != body.len() as u64 {
        let why = format!("its head names {} bytes, its body has {}", message.body_bytes(), body.len());
        return Err(NotStarted::Message(why));
    }
    message.to_head().map_err(|error| NotStarted::Message(error.to_string()))
}
