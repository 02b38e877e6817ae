//! `/farthing/<net>/records/1`: sessions in which two nodes find out whose records one of them lacks, and exchange those.
//!
//! 1. They compare what may be used of their stores by ranges, from a picture that is some seconds old at most.
//! 2. The opener ([`opener`]) fetches what is newer there and fits into its store, and gives some of what is newer here;
//!    whoever lacks more fetches it in a session of its own.
//! 3. The other side ([`answerer`]) says what it has that is newer than what it was given, which may be a goodbye: those
//!    are told to who holds an older record, and to nobody else.
//!
//! Invariant: nothing is fetched for which there is no room, and what was not asked for counts as an offer, of which a
//! source has few. Messages, records and bytes are bounded on both sides.

mod answerer;
mod opener;

use std::{collections::HashSet, sync::Arc, time::Duration};

use farthing_directory::Intake;
use farthing_protocol::{
    Address, NodeRecord,
    agreement::RecordsMessage,
    reconciliation::{Batch, Picture, ReconciliationError, unpack},
    signed::DocumentError,
    wire,
    wire::NetworkName,
};
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::spawn_blocking};

use self::{answerer::Answerer, opener::Opener};
use crate::{
    NetworkLimits,
    info::{RecordSource, take_asked},
    line::Line,
    neighbour_origin::NeighbourOrigin,
    records::{Rejected, SharedRecords},
    report::{Reporter, Strike},
    status::Counters,
    sync::{SessionGate, SyncEnded, SyncStream},
};

/// Records that one side fetches in a session: their signatures take two seconds. A newcomer to 100,000 needs seven.
const FETCHED_MAX: usize = 16_384;
/// Messages of one session from one side: each of records holds some 2,800.
const MESSAGES_MAX: u32 = 128;
/// The age of a picture that is compared once more: sorting 100,000 records takes some 50 ms (estimated).
const PICTURE_SECS_MAX: u64 = 2;
/// Sessions of one address range, or else of one wallet, that are answered in a minute. An honest node opens one in five.
const OPENINGS_PER_MINUTE_MAX: u32 = 12;
/// The time between two sessions of a node without room for more records: all it fetches are newer ones of those it has.
const FULL_FACTOR: u32 = 12;

/// The reason that a session ended early.
#[derive(Clone, Debug, thiserror::Error)]
enum AgreementError {
    #[error("the peer's message cannot be read: {0}")]
    Malformed(String),
    #[error("a record cannot be read: {0}")]
    Unreadable(#[from] DocumentError),
    #[error("the peer sent {0}, which is not expected here")]
    Unexpected(&'static str),
    #[error("the peer sent a record that was not requested")]
    Unasked,
    #[error("the peer sent a record that no honest node passes on: {0}")]
    Forged(Rejected),
    #[error("the session has more messages than allowed")]
    TooLong,
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error(transparent)]
    Ended(#[from] SyncEnded),
}

impl AgreementError {
    /// Returns what is held against the peer.
    const fn strike(&self) -> Option<Strike> {
        match self {
            Self::Malformed(_)
            | Self::Unexpected(_)
            | Self::Unasked
            | Self::Forged(Rejected::OtherNetwork) => Some(Strike::Malformed),
            Self::Forged(_) => Some(Strike::BadSignature),
            Self::Unreadable(_) | Self::TooLong | Self::Refused(_) | Self::Ended(_) => None,
        }
    }
}

impl From<ReconciliationError> for AgreementError {
    fn from(error: ReconciliationError) -> Self {
        match error {
            ReconciliationError::Malformed(problem) => Self::Malformed(problem),
            ReconciliationError::TooLong => Self::TooLong,
        }
    }
}

/// The result of a session that this node opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Records that were new here.
    pub(crate) learned: usize,
    /// There are more owners to learn of, and places for them. What is newer of others can wait: whoever renews its own records
    /// without end must not keep this node at their signatures.
    pub(crate) is_rest: bool,
}

/// The records that sessions compare, and the clock and bounds of sessions. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    records: SharedRecords,
    network: NetworkName,
    counters: Arc<Counters>,
    reporter: Reporter,
    limits: NetworkLimits,
    /// The newest picture, and when it was made.
    picture: Arc<Mutex<Option<(u64, Picture)>>>,
    /// One piece of work after the other, away from the tasks that serve calls.
    turns: Arc<Semaphore>,
}

impl Agreement {
    pub(crate) fn new(
        records: SharedRecords,
        network: NetworkName,
        counters: Arc<Counters>,
        reporter: Reporter,
        limits: NetworkLimits,
    ) -> Self {
        let turns = Arc::new(Semaphore::new(1));
        Self { records, network, counters, reporter, limits, picture: Arc::default(), turns }
    }

    /// Returns the time between two sessions that this node opens.
    pub(crate) fn interval(&self) -> Duration {
        let is_full = self.records.lock().room() == 0;
        self.limits.agreement_interval * if is_full { FULL_FACTOR } else { 1 }
    }

    /// Holds a session that this node opens with `peer`. Nothing when it ended early.
    pub(crate) async fn open(self, peer: Address, line: Line) -> Option<Agreed> {
        let mut stream = SyncStream::outbound(peer, line, &self.limits);
        let source = (peer, stream.range());
        match self.ask(&mut stream, source).await {
            Ok(agreed) => {
                tracing::debug!(%peer, learned = agreed.learned, "records compared");
                stream.close().await;
                Some(agreed)
            }
            Err(error) => {
                self.hold_against(peer, &error);
                None
            }
        }
    }

    async fn ask(&self, stream: &mut SyncStream, source: RecordSource) -> Result<Agreed, AgreementError> {
        let shared = self.clone();
        let begun = self.at_leisure(move || Opener::begin(shared, source, crate::now_secs())).await?;
        let (mut opener, mut message) = begun?;
        loop {
            stream.send(wire::encode(&message).into()).await?;
            let answer = receive(stream).await?.ok_or(SyncEnded)?;
            let working = move || {
                let next = opener.on(answer);
                (opener, next)
            };
            let (returned, next) = self.at_leisure(working).await?;
            opener = returned;
            match next? {
                Some(next) => message = next,
                None => return Ok(opener.agreed()),
            }
        }
    }

    async fn answer(self, peer: Address, mut stream: SyncStream) {
        let source = (peer, stream.range());
        if let Err(error) = self.answer_all(&mut stream, source).await {
            let refused = RecordsMessage::Refused(error.to_string());
            // It may have gone.
            let _ = stream.send(wire::encode(&refused).into()).await;
            self.hold_against(peer, &error);
        }
        stream.close().await;
    }

    async fn answer_all(&self, stream: &mut SyncStream, source: RecordSource) -> Result<(), AgreementError> {
        let mut answerer = Answerer::new(self.clone(), source);
        while let Some(message) = receive(stream).await? {
            let working = move || {
                let answer = answerer.on(message, crate::now_secs());
                (answerer, answer)
            };
            let (returned, answer) = self.at_leisure(working).await?;
            answerer = returned;
            stream.send(wire::encode(&answer?).into()).await?;
        }
        Ok(())
    }

    fn hold_against(&self, peer: Address, error: &AgreementError) {
        tracing::debug!(%peer, %error, "a session about records ended early");
        if let Some(strike) = error.strike() {
            self.reporter.strike(peer, strike);
        }
    }

    async fn at_leisure<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AgreementError> {
        let _turn = self.turns.acquire().await;
        spawn_blocking(work).await.map_err(|_| SyncEnded.into())
    }

    /// Everything here that may be used, as of a moment ago.
    fn picture(&self, now_secs: u64) -> Picture {
        let mut kept = self.picture.lock();
        if let Some((made_secs, picture)) = &*kept
            && now_secs.abs_diff(*made_secs) < PICTURE_SECS_MAX
        {
            return picture.clone();
        }
        let items = self.records.lock().items(now_secs);
        let picture = Picture::of(items);
        *kept = Some((now_secs, picture.clone()));
        picture
    }

    /// Takes packed records, each of an owner that was `asked` for and is not any more. Returns how many were new.
    fn take(
        &self,
        packed: &[u8],
        asked: &mut HashSet<Address>,
        source: RecordSource,
    ) -> Result<usize, AgreementError> {
        let mut taken = 0;
        for record in unpack::<NodeRecord>(packed)? {
            if !asked.remove(&record.claimed()?.public_key.address()) {
                return Err(AgreementError::Unasked);
            }
            match take_asked(&self.records, &self.network, &self.counters, record, source) {
                Ok(()) => taken += 1,
                Err(forged @ (Rejected::Forged | Rejected::OtherNetwork)) => {
                    return Err(AgreementError::Forged(forged));
                }
                Err(_) => {}
            }
        }
        Ok(taken)
    }

    /// The records of these owners, packed, as many as fit into a frame; and how many those are.
    fn pack(&self, owners: &[Address]) -> Result<(Vec<u8>, usize), AgreementError> {
        let mut batch = Batch::default();
        // The store is locked for some at a time.
        'all: for some in owners.chunks(256) {
            let records = self.records.lock();
            for record in some.iter().filter_map(|owner| records.get(*owner)) {
                if !batch.add(record.to_signed()) {
                    break 'all;
                }
            }
        }
        let count = batch.count();
        Ok((batch.pack()?, count))
    }
}

/// Answers the sessions that peers open.
#[derive(Debug)]
pub(crate) struct AgreementServer {
    agreement: Agreement,
    gate: SessionGate,
    openings: Mutex<Intake<NeighbourOrigin>>,
}

impl AgreementServer {
    pub(crate) fn new(agreement: Agreement, gate: SessionGate) -> Arc<Self> {
        let openings = Mutex::new(Intake::new(OPENINGS_PER_MINUTE_MAX));
        Arc::new(Self { agreement, gate, openings })
    }

    /// Takes a stream that `peer` opened. One without a place is dropped; it comes again after a while.
    pub(crate) fn accept(&self, peer: Address, line: Line) {
        let origin = NeighbourOrigin::of(peer, line.range());
        if !self.openings.lock().admits(origin, crate::now_secs()) {
            return;
        }
        let Some(stream) = self.gate.admit(peer, line) else { return };
        tokio::spawn(self.agreement.clone().answer(peer, stream));
    }
}

async fn receive(stream: &mut SyncStream) -> Result<Option<RecordsMessage>, AgreementError> {
    let Some(frame) = stream.recv().await else { return Ok(None) };
    wire::decode(&frame).map(Some).map_err(|error| AgreementError::Malformed(error.to_string()))
}

const fn name_of(message: &RecordsMessage) -> &'static str {
    match message {
        RecordsMessage::Compare(_) => "a comparison",
        RecordsMessage::Fetch(_) => "a request",
        RecordsMessage::Records(_) => "records",
        RecordsMessage::Done => "a farewell",
        RecordsMessage::Refused(_) => "a refusal",
    }
}

#[cfg(test)]
mod tests;
