//! `/farthing/<net>/info/1`: free questions between nodes, one per stream.
//!
//! Questions about records are answered here, from the record store; questions about listings and content
//! go to the node. A message is one head without a body. A peer, or the strangers of one address range together, have so
//! many questions at once and so many a second; then their next one waits ([`crate::pace`]).

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_protocol::{
    Address, NodeRecord, Signed, Verified,
    info::{InfoRequest, InfoResponse},
    limits, wire,
};
use futures::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};

use crate::{
    admission::{Admission, Shares, Visitor},
    call::Interrupted,
    clocks,
    frame::{self, FrameError, MinimumPace},
    line::Line,
    neighbour_origin::NeighbourOrigin,
    pace::Pace,
    partners::Partners,
    records::{self, Rejected, SharedRecords},
    report::{Reporter, Strike},
    status::Counters,
};

/// A question and its answer together; the largest answer, 1 MiB, takes this long at 1 Mbit/s.
pub(crate) const INFO_DEADLINE: Duration = Duration::from_secs(10);
/// The slowest pace of a question and its answer; the deadline bounds both together.
const PACE: MinimumPace = MinimumPace::any(INFO_DEADLINE);
/// Questions being answered, per peer and in all, half of them of peers with open channels alone.
const INFO_PER_PEER_MAX: usize = 16;
const INFO_MAX: usize = 128;
/// Of the byte budget, what answers may hold that are being read: a quarter, as many as are answered at once, of half of
/// the largest size each.
const ANSWERS_PART: usize = 4;
/// Records in an answer to `Peers`: enough to join, little enough that nobody maps the network by asking.
const PEERS_MAX: usize = 16;

/// A question that the node answers: `Services`, `OwnListings`, `Blob` or `Search`.
#[derive(Debug)]
pub struct InboundInfo {
    /// The wallet that asks, proven by its connection.
    pub peer: Address,
    pub request: InfoRequest,
    pub reply: InfoResponder,
}

/// The way back for the answer to one question. Dropping it closes the stream without an answer.
#[derive(Debug)]
pub struct InfoResponder(oneshot::Sender<InfoResponse>);

impl InfoResponder {
    /// Returns whether the answer still has a way back: nobody waits for one that takes too long.
    pub fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }

    /// Returns whether the stream was still there.
    pub fn send(self, response: InfoResponse) -> bool {
        self.0.send(response).is_ok()
    }
}

/// Sends one question and reads its answer. Deadlines are the caller's business.
pub(crate) async fn exchange(
    mut stream: Line,
    request: &InfoRequest,
    budget: &ByteBudget,
) -> Result<InfoResponse, Interrupted> {
    let lost = |error: FrameError| Interrupted::ConnectionLost(error.to_string());
    // While it is read: a peer decides how long that takes, and what is whole is judged and dropped at once.
    let mut room = budget.nothing();
    frame::write_frame(&mut stream, &wire::encode(request), &Bytes::new(), PACE).await.map_err(lost)?;
    let bytes_max = limits::INFO_RESPONSE_BYTES_MAX;
    let head = frame::read_head_within(&mut stream, bytes_max, PACE, |more| room.grow(more)).await;
    let head = head.map_err(|error| match error {
        FrameError::NoRoom { bytes } => Interrupted::NoRoom { bytes },
        FrameError::Truncated { missing: 4 } => Interrupted::NoAnswer,
        FrameError::TooLarge { .. } => Interrupted::BadAnswer(error.to_string()),
        error => lost(error),
    })?;
    wire::decode(&head).map_err(|error| Interrupted::BadAnswer(error.to_string()))
}

/// Answers the questions that peers ask.
#[derive(Debug)]
pub(crate) struct InfoServer {
    admission: Arc<Admission>,
    pace: Pace,
    answers: ByteBudget,
    partners: Partners,
    records: SharedRecords,
    network: wire::NetworkName,
    questions: mpsc::Sender<InboundInfo>,
    reporter: Reporter,
    counters: Arc<Counters>,
}

impl InfoServer {
    pub(crate) fn new(
        records: SharedRecords,
        network: wire::NetworkName,
        questions: mpsc::Sender<InboundInfo>,
        budget: &ByteBudget,
        partners: Partners,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let admission = Admission::shared(Shares::half_for_partners(INFO_PER_PEER_MAX, INFO_MAX));
        let answers = budget.part(budget.bytes_max() / ANSWERS_PART);
        let pace = Pace::default();
        Arc::new(Self { admission, pace, answers, partners, records, network, questions, reporter, counters })
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Line) {
        let visitor = Visitor::of(peer, &stream, &self.partners);
        let Some(permit) = self.admission.admit_visitor(visitor) else {
            return Counters::add(&self.counters.streams_reset);
        };
        // Only with a place, so that a peer without one is not made to wait for it later.
        let wait = self.pace.spend(visitor.origin(), Instant::now());
        let server = Arc::clone(self);
        permit.spawn(INFO_DEADLINE, async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            server.serve(peer, stream).await;
        });
    }

    async fn serve(&self, peer: Address, mut stream: Line) {
        let response = match frame::read_head(&mut stream, limits::INFO_REQUEST_BYTES_MAX, PACE).await {
            Ok(head) => match wire::decode(&head) {
                Ok(request) => self.answer(peer, stream.range(), request).await,
                Err(error) => {
                    self.reporter.strike(peer, Strike::Malformed);
                    Some(InfoResponse::refused(error.to_string()))
                }
            },
            Err(error @ FrameError::TooLarge { .. }) => {
                self.reporter.strike(peer, Strike::TooLarge);
                Some(InfoResponse::refused(error.to_string()))
            }
            Err(_) => None,
        };
        let Some(response) = response else { return };
        let head = wire::encode(&response);
        // Without room the stream closes, as without a place: whoever asks does so again.
        let Some(_room) = self.answers.take(head.len()) else {
            return Counters::add(&self.counters.streams_reset);
        };
        if frame::write_frame(&mut stream, &head, &Bytes::new(), PACE).await.is_ok() {
            let _ = stream.close().await;
        }
    }

    async fn answer(
        &self,
        peer: Address,
        range: Option<IpAddr>,
        request: InfoRequest,
    ) -> Option<InfoResponse> {
        Counters::add(&self.counters.info_received);
        let items = match &request {
            InfoRequest::Records(wallets) => wallets.len(),
            InfoRequest::Push(records) => records.len(),
            InfoRequest::Services(services) => services.len(),
            InfoRequest::OwnListings | InfoRequest::Blob(_) | InfoRequest::Peers | InfoRequest::Search(_) => {
                0
            }
        };
        if items > limits::INFO_ITEMS_MAX {
            self.reporter.strike(peer, Strike::TooLarge);
            return Some(InfoResponse::refused(format!("at most {} items", limits::INFO_ITEMS_MAX)));
        }
        match request {
            InfoRequest::Records(wallets) => Some(self.records_of(&wallets)),
            InfoRequest::Push(records) => Some(self.take((peer, range), records).await),
            InfoRequest::Peers => Some(self.some_peers(peer)),
            request => {
                let (sender, answer) = oneshot::channel();
                let question = InboundInfo { peer, request, reply: InfoResponder(sender) };
                self.questions.try_send(question).ok()?;
                answer.await.ok()
            }
        }
    }

    fn records_of(&self, wallets: &[Address]) -> InfoResponse {
        let records = self.records.lock();
        InfoResponse::Records(
            wallets.iter().filter_map(|w| records.get(*w)).map(|record| record.to_signed()).collect(),
        )
    }

    fn some_peers(&self, asker: Address) -> InfoResponse {
        let some = self.records.lock().sample(PEERS_MAX, asker, crate::now_secs());
        InfoResponse::Records(some.iter().map(Verified::to_signed).collect())
    }

    async fn take(&self, source: RecordSource, pushed: Vec<Signed<NodeRecord>>) -> InfoResponse {
        let (peer, _) = source;
        for record in pushed {
            let ahead_secs = ahead_of_us(&record, peer);
            match take_record(&self.records, &self.network, &self.counters, record, source) {
                Err(error @ Rejected::Forged) => {
                    self.reporter.strike(peer, Strike::BadSignature);
                    return InfoResponse::refused(error.to_string());
                }
                Err(error @ Rejected::TooMany) => return InfoResponse::refused(error.to_string()),
                Err(Rejected::Time(_)) => {
                    if let Some(ahead_secs) = ahead_secs {
                        return clocks::refusal(ahead_secs);
                    }
                }
                _ => {}
            }
            // A signature takes about 100 µs; other tasks may go first.
            tokio::task::yield_now().await;
        }
        InfoResponse::Done
    }
}

/// Returns how many seconds a peer's own record is dated ahead of our clock, if more than the allowed skew.
fn ahead_of_us(record: &Signed<NodeRecord>, peer: Address) -> Option<u64> {
    let record = record.claimed().ok().filter(|record| record.public_key.address() == peer)?;
    record.issued_secs.checked_sub(crate::now_secs()).filter(|ahead| *ahead > limits::CLOCK_SKEW_SECS_MAX)
}

/// The giver of a record: the wallet, and its address range unless that is private or not known.
pub(crate) type RecordSource = (Address, Option<IpAddr>);

/// Verifies a record that `source` gave us unasked, of which it may give few, and stores it.
pub(crate) fn take_record(
    store: &SharedRecords,
    network: &wire::NetworkName,
    counters: &Counters,
    record: Signed<NodeRecord>,
    source: RecordSource,
) -> Result<(), Rejected> {
    let (peer, range) = source;
    let hear = || store.lock().hear(NeighbourOrigin::of(peer, range), crate::now_secs());
    match check_news(store, &record).and_then(|()| hear()) {
        Ok(()) => take_asked(store, network, counters, record, source),
        Err(rejected) => counted(counters, Err(rejected)),
    }
}

/// The same for a record that was asked for.
pub(crate) fn take_asked(
    store: &SharedRecords,
    network: &wire::NetworkName,
    counters: &Counters,
    record: Signed<NodeRecord>,
    source: RecordSource,
) -> Result<(), Rejected> {
    match check_news(store, &record).and_then(|()| records::verify(record, None, network)) {
        Ok(record) => keep(store, counters, &record, source),
        Err(rejected) => counted(counters, Err(rejected)),
    }
}

/// Stores a record that `source` gave us and that was verified.
pub(crate) fn keep(
    store: &SharedRecords,
    counters: &Counters,
    record: &Verified<NodeRecord>,
    (peer, range): RecordSource,
) -> Result<(), Rejected> {
    let now_secs = crate::now_secs();
    let mut store = store.lock();
    if record.signer() == peer {
        store.clocks.dated(peer, record.issued_secs, now_secs);
    }
    counted(counters, store.insert(record, NeighbourOrigin::of(peer, range), now_secs))
}

/// Most of what a healthy network says is known; checking a signature costs more than finding that out.
fn check_news(store: &SharedRecords, record: &Signed<NodeRecord>) -> Result<(), Rejected> {
    record.claimed().map_or(Ok(()), |claimed| store.lock().check_news(&claimed))
}

fn counted(counters: &Counters, taken: Result<(), Rejected>) -> Result<(), Rejected> {
    match &taken {
        Ok(()) => Counters::add(&counters.records_accepted),
        // Being told what one knows already is how a healthy network sounds.
        Err(Rejected::NotNewer { .. }) => {}
        Err(_) => Counters::add(&counters.records_rejected),
    }
    taken
}
