//! The answering side of a call: admit, read, hand over, answer.
//!
//! A place is taken before the first byte is read, and kept until the answer is written. A call without a
//! place is answered with `Busy`, not with a closed stream, so that its caller knows it was not served.
//! Whatever cannot be read is refused the same way.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_protocol::{Address, CallMessage, CallReply, Refusal, RefusalCode, limits, wire};
use futures::AsyncWriteExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use super::{InboundCall, Responder};
use crate::{
    NetworkLimits,
    admission::Admission,
    frame::{self, FrameError},
    line::Line,
    report::{Reporter, Strike},
    status::Counters,
};

/// How long a caller should wait after `Busy`: a typical call is over by then.
const BUSY_RETRY_AFTER_MS: u64 = 500;
/// Refusals being written at once. Above this, streams are reset: a caller that opens this many at once
/// without waiting for answers is not owed one.
const REFUSALS_PER_PEER_MAX: usize = 128;
const REFUSALS_MAX: usize = 512;
/// Body memory is counted in pieces of this size.
const BODY_UNIT_BYTES: usize = 1024;

/// Serves the call streams that peers open.
#[derive(Debug)]
pub(crate) struct CallServer {
    admission: Arc<Admission>,
    refusals: Arc<Admission>,
    body_room: Arc<Semaphore>,
    calls: mpsc::Sender<InboundCall>,
    limits: NetworkLimits,
    reporter: Reporter,
    counters: Arc<Counters>,
}

impl CallServer {
    pub(crate) fn new(
        calls: mpsc::Sender<InboundCall>,
        limits: NetworkLimits,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            admission: Admission::new(limits.inbound_calls_per_peer_max, limits.inbound_calls_max),
            refusals: Admission::new(REFUSALS_PER_PEER_MAX, REFUSALS_MAX),
            body_room: Arc::new(Semaphore::new(limits.inbound_body_bytes_max / BODY_UNIT_BYTES)),
            calls,
            limits,
            reporter,
            counters,
        })
    }

    /// Calls being served, to wait for in a shutdown.
    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Line) {
        let server = Arc::clone(self);
        if let Some(permit) = self.admission.admit(peer) {
            tokio::spawn(async move {
                server.serve(peer, stream).await;
                drop(permit);
            });
        } else if let Some(permit) = self.refusals.admit(peer) {
            Counters::add(&self.counters.calls_refused_busy);
            tokio::spawn(async move {
                server.write(stream, &busy(), &Bytes::new()).await;
                drop(permit);
            });
        } else {
            Counters::add(&self.counters.streams_reset);
        }
    }

    async fn serve(&self, peer: Address, mut stream: Line) {
        let (message, body, room) = match self.read(&mut stream).await {
            Ok(request) => request,
            Err(unread) => return self.refuse(peer, stream, unread).await,
        };
        Counters::add(&self.counters.calls_received);
        // An answer after the longest deadline has no reader.
        let patience = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);
        let (reply, receiver) = Responder::new();
        // The queue has a place for every admitted call, so this does not wait.
        if self.calls.send(InboundCall { peer, message, body, reply }).await.is_err() {
            return self.write(stream, &shutting_down(), &Bytes::new()).await;
        }
        let answer = timeout(patience, receiver).await;
        drop(room);
        if let Ok(Ok((reply, body))) = answer
            && reply.body_bytes() == body.len() as u64
        {
            self.write(stream, &reply, &body).await;
        }
    }

    async fn read(&self, stream: &mut Line) -> Result<(CallMessage, Bytes, BodyRoom), Unread> {
        let idle_max = self.limits.body_idle_max;
        let head = frame::read_head(stream, limits::CALL_HEAD_BYTES_MAX, idle_max);
        let head = timeout(self.limits.head_deadline, head).await.map_err(|_| Unread::SlowHead)??;
        let message: CallMessage =
            wire::decode(&head).map_err(|error| Unread::Malformed(error.to_string()))?;
        let mut room = BodyRoom { pool: Arc::clone(&self.body_room), held: None };
        let body_max = limits::REQUEST_BODY_BYTES_MAX;
        let body = frame::read_body(stream, message.body_bytes(), body_max, idle_max, |more| room.take(more));
        let whole = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);
        let body = timeout(whole, body).await.map_err(|_| Unread::SlowBody)??;
        if let CallMessage::Call(request) = &message {
            request.check_bounds().map_err(|error| Unread::TooLarge(error.to_string()))?;
        }
        Ok((message, body, room))
    }

    /// Says why a request was not taken, when anybody can still hear it, and remembers who sent nonsense.
    async fn refuse(&self, peer: Address, stream: Line, unread: Unread) {
        let refusal = match unread {
            Unread::Gone => return,
            Unread::NoRoom => {
                Counters::add(&self.counters.calls_refused_busy);
                return self.write(stream, &busy(), &Bytes::new()).await;
            }
            Unread::SlowHead => Refusal::new(RefusalCode::Malformed, "the head took too long to arrive"),
            Unread::SlowBody => Refusal::new(RefusalCode::Malformed, "the body took too long to arrive"),
            Unread::Malformed(detail) => {
                self.reporter.strike(peer, Strike::Malformed);
                Refusal::new(RefusalCode::Malformed, detail)
            }
            Unread::TooLarge(detail) => {
                self.reporter.strike(peer, Strike::TooLarge);
                Refusal::new(RefusalCode::TooLarge, detail)
            }
        };
        Counters::add(&self.counters.requests_unread);
        self.write(stream, &CallReply::Refused(refusal), &Bytes::new()).await;
    }

    /// Writes an answer and closes the stream. A caller that has gone is not an error here.
    async fn write(&self, mut stream: Line, reply: &CallReply, body: &Bytes) {
        let idle_max = self.limits.body_idle_max;
        let written = frame::write_frame(&mut stream, &wire::encode(reply), body, idle_max).await;
        if written.is_ok() {
            let _ = timeout(idle_max, stream.close()).await;
        }
    }
}

fn busy() -> CallReply {
    let refusal = Refusal::new(RefusalCode::Busy, "too many calls are being served; try again soon");
    CallReply::Refused(refusal.retry_after_ms(BUSY_RETRY_AFTER_MS))
}

fn shutting_down() -> CallReply {
    CallReply::Refused(Refusal::new(RefusalCode::Unavailable, "the node is shutting down"))
}

/// Why a request was not taken. In every case it was surely not served.
enum Unread {
    Gone,
    NoRoom,
    SlowHead,
    SlowBody,
    Malformed(String),
    TooLarge(String),
}

impl From<FrameError> for Unread {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(_) | FrameError::Truncated { .. } => Self::Gone,
            FrameError::Idle(_) => Self::SlowBody,
            FrameError::NoRoom => Self::NoRoom,
            FrameError::TooLarge { .. } => Self::TooLarge(error.to_string()),
        }
    }
}

/// The share of the body memory that one call holds.
struct BodyRoom {
    pool: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl BodyRoom {
    fn take(&mut self, bytes: usize) -> bool {
        let units = u32::try_from(bytes.div_ceil(BODY_UNIT_BYTES)).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.pool).try_acquire_many_owned(units) else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        true
    }
}
