//! `/farthing/<net>/sync/1` and `sync/2`: sessions in which two nodes bring their catalogs into agreement.
//!
//! A session is one stream of frames: a 4-byte big-endian length and so many bytes, whose meaning is the
//! catalog's business. The opener speaks first. A session ends when either side closes it, breaks a rule,
//! is silent for too long or takes too long in all; nobody learns more than that it ended, because whatever
//! is missing then is made up for by the next session.

mod places;

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use farthing_protocol::{Address, limits};
use futures::AsyncWriteExt;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use self::places::{Place, Places};
use crate::{
    NetworkLimits,
    admission::Visitor,
    frame::{self, FrameError, MinimumPace},
    line::Line,
    partners::Partners,
    report::{Reporter, Strike},
};

/// A session that another node opened.
#[derive(Debug)]
pub struct InboundSync {
    /// The wallet that opened it, proven by its connection.
    pub peer: Address,
    pub stream: SyncStream,
}

/// The session is over, whatever ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the synchronisation ended early; the next one brings the rest")]
pub struct SyncEnded;

/// One session. Dropping it ends it at once, [`Self::close`] after the other side has everything.
pub struct SyncStream {
    peer: Address,
    stream: Line,
    ends: Instant,
    limits: NetworkLimits,
    knows_shards: bool,
    /// Only a session that the peer opened is its fault when it breaks a rule, and takes one of its places.
    inbound: Option<(Reporter, Place)>,
}

impl SyncStream {
    pub(crate) fn outbound(peer: Address, stream: Line, limits: &NetworkLimits) -> Self {
        let ends = Instant::now() + limits.sync_session_max;
        Self { peer, stream, ends, limits: limits.clone(), knows_shards: false, inbound: None }
    }

    pub(crate) fn knowing_shards(self, knows_shards: bool) -> Self {
        Self { knows_shards, ..self }
    }

    /// Returns whether the other side of a session that this node opened knows of shards.
    pub const fn knows_shards(&self) -> bool {
        self.knows_shards
    }

    /// The address range of the other end, unless it is private: who has one wallet may have many.
    pub const fn range(&self) -> Option<IpAddr> {
        self.stream.range()
    }

    /// Sends one frame of at most [`limits::SYNC_FRAME_BYTES_MAX`], waiting for the other side to read.
    ///
    /// # Errors
    /// [`SyncEnded`] when the session is over, or the frame is larger than the other side would take.
    pub async fn send(&mut self, frame: Bytes) -> Result<(), SyncEnded> {
        if frame.len() > limits::SYNC_FRAME_BYTES_MAX {
            tracing::warn!(bytes = frame.len(), "a synchronisation frame is too large to be sent");
            return Err(SyncEnded);
        }
        let nothing = Bytes::new();
        let pace = self.pace();
        let sending = frame::write_frame(&mut self.stream, &frame, &nothing, pace);
        match in_turn(self.inbound.as_ref(), self.ends, sending).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.ended(&error)),
            None => Err(SyncEnded),
        }
    }

    /// The other side's next frame; nothing when the session is over.
    pub async fn recv(&mut self) -> Option<Bytes> {
        let pace = self.pace();
        let reading = frame::read_head(&mut self.stream, limits::SYNC_FRAME_BYTES_MAX, pace);
        match in_turn(self.inbound.as_ref(), self.ends, reading).await? {
            Ok(frame) => Some(frame.into()),
            // The other side closed the stream between two frames, as one does.
            Err(FrameError::Truncated { missing: 4 }) => None,
            Err(error) => {
                self.ended(&error);
                None
            }
        }
    }

    /// Ends the session after everything sent has left.
    pub async fn close(mut self) {
        let until = self.ends.min(Instant::now() + self.limits.sync_idle_max);
        // A peer that has gone already needs no goodbye.
        let _ = timeout_at(until, self.stream.close()).await;
    }

    fn pace(&self) -> MinimumPace {
        MinimumPace { idle_max: self.limits.sync_idle_max, ..self.limits.pace() }
    }

    fn ended(&self, error: &FrameError) -> SyncEnded {
        tracing::debug!(peer = %self.peer, %error, "a synchronisation ended early");
        if let (FrameError::TooLarge { .. }, Some((reporter, _))) = (error, &self.inbound) {
            reporter.strike(self.peer, Strike::TooLarge);
        }
        SyncEnded
    }
}

/// Waits for the other side; `None` when it takes too long, or when its session has to make room.
async fn in_turn<T>(
    inbound: Option<&(Reporter, Place)>,
    ends: Instant,
    moving: impl Future<Output = T>,
) -> Option<T> {
    let moving = timeout_at(ends, moving);
    let Some((_, place)) = inbound else { return moving.await.ok() };
    place.waits(true);
    tokio::select! {
        moved = moving => {
            place.waits(false);
            moved.ok()
        }
        () = place.ended() => None,
    }
}

farthing_os::hidden!(SyncStream { peer });

/// Lets in the sessions that peers open, as many as there are places for.
#[derive(Debug)]
pub(crate) struct SessionGate {
    places: Places,
    partners: Partners,
    limits: NetworkLimits,
    reporter: Reporter,
}

impl SessionGate {
    pub(crate) fn new(limits: NetworkLimits, partners: Partners, reporter: Reporter) -> Self {
        Self { places: Places::new(&limits), partners, limits, reporter }
    }

    /// Takes a stream that `peer` opened. One without a place is dropped, which its opener sees as the end
    /// of its session; it comes again after a while anyway. So is one through a relay, which carries too little.
    pub(crate) fn admit(&self, peer: Address, stream: Line) -> Option<SyncStream> {
        if stream.is_relayed() {
            return None;
        }
        let visitor = Visitor::of(peer, &stream, &self.partners);
        let place = self.places.enter(visitor, std::time::Instant::now())?;
        let inbound = Some((self.reporter.clone(), place));
        Some(SyncStream { inbound, ..SyncStream::outbound(peer, stream, &self.limits) })
    }
}

/// Hands the catalog sessions that peers open to the node.
#[derive(Debug)]
pub(crate) struct SyncServer {
    gate: SessionGate,
    sessions: mpsc::Sender<InboundSync>,
}

impl SyncServer {
    pub(crate) fn new(sessions: mpsc::Sender<InboundSync>, gate: SessionGate) -> Arc<Self> {
        Arc::new(Self { gate, sessions })
    }

    pub(crate) fn accept(&self, peer: Address, stream: Line) {
        let Some(stream) = self.gate.admit(peer, stream) else { return };
        // The queue has a place for every admitted session, so this fails only when nobody synchronises.
        let _ = self.sessions.try_send(InboundSync { peer, stream });
    }
}
