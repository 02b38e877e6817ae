//! The answering side of a call: read, admit, hand over, answer.
//!
//! 1. A stream is accepted while its peer, its address range and all together have few enough ([`Admission`]).
//! 2. The whole request is read, at the least [`Pace`](frame::Pace) or faster, its body within the byte budget.
//! 3. Only then the call takes a place among those that are served; it has it until its answer is there.
//! 4. The answer is written, at the least pace again, and within a time that bounds the whole of it.
//!
//! Wallets cost nothing, so of streams, places and bytes half are for peers with open channels alone. A call without
//! a place is answered with `Busy`, not with a closed stream, so that its caller knows it was not served. Whatever
//! cannot be read is refused the same way.
//!
//! Invariant: nothing that a stranger does, or does not do, on the line takes a place from a peer with a channel.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bounds::{ByteBudget, HeldBytes};
use farthing_protocol::{Address, CallMessage, CallReply, Refusal, RefusalCode, limits, wire};
use futures::AsyncWriteExt;
use tokio::{sync::mpsc, time::timeout};

use super::{InboundCall, Responder};
use crate::{
    NetworkLimits,
    admission::{Admission, Shares, Visitor},
    frame::{self, FrameError},
    line::Line,
    partners::Partners,
    report::{Reporter, Strike},
    status::Counters,
};

/// The time that a caller should wait after `Busy`: a typical call is over by then.
const BUSY_RETRY_AFTER_MS: u64 = 500;
/// Refusals being written at once. Above this, streams are reset: a caller that opens this many at once
/// without waiting for answers is not owed one.
const REFUSALS_PER_PEER_MAX: usize = 128;
const REFUSALS_MAX: usize = 512;
/// Of the byte budget, what requests may hold, and of that, what strangers' may; their answers as much again.
const REQUESTS_PART: usize = 2;
const STRANGERS_PART: usize = 4;

/// The server of inbound calls.
#[derive(Debug)]
pub(crate) struct CallServer {
    streams: Arc<Admission>,
    places: Arc<Admission>,
    refusals: Arc<Admission>,
    room: Room,
    partners: Partners,
    calls: mpsc::Sender<InboundCall>,
    limits: NetworkLimits,
    reporter: Reporter,
    counters: Arc<Counters>,
}

/// Memory for bodies.
#[derive(Debug)]
struct Room {
    requests: ByteBudget,
    strangers_requests: ByteBudget,
    /// Answers are counted where they are made. This one keeps strangers, who read slowly for nothing, from holding all.
    strangers_answers: ByteBudget,
}

impl Room {
    fn new(budget: &ByteBudget) -> Self {
        let requests = budget.part(budget.bytes_max() / REQUESTS_PART);
        let strangers_max = budget.bytes_max() / STRANGERS_PART;
        let strangers_requests = requests.part(strangers_max);
        Self { requests, strangers_requests, strangers_answers: ByteBudget::new(strangers_max) }
    }

    fn request(&self, visitor: &Visitor) -> HeldBytes {
        if visitor.is_partner { &self.requests } else { &self.strangers_requests }.nothing()
    }

    /// Room for an answer; nothing when it cannot be sent now. One that was paid always can.
    fn answer(&self, visitor: &Visitor, reply: &CallReply, body: &Bytes) -> Option<Option<HeldBytes>> {
        let is_free = !matches!(reply, CallReply::Response(response) if !response.receipt.charged.is_zero());
        if visitor.is_partner || !is_free {
            return Some(None);
        }
        self.strangers_answers.take(body.len()).map(Some)
    }
}

impl CallServer {
    pub(crate) fn new(
        calls: mpsc::Sender<InboundCall>,
        limits: NetworkLimits,
        budget: &ByteBudget,
        partners: Partners,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let shared = |per_peer, all| Admission::shared(Shares::half_for_partners(per_peer, all));
        Arc::new(Self {
            streams: shared(limits.inbound_streams_per_peer_max, limits.inbound_streams_max),
            places: shared(limits.inbound_calls_per_peer_max, limits.inbound_calls_max),
            refusals: Admission::new(REFUSALS_PER_PEER_MAX, REFUSALS_MAX),
            room: Room::new(budget),
            partners,
            calls,
            limits,
            reporter,
            counters,
        })
    }

    /// Calls on their way in, being served or being answered, to wait for in a shutdown.
    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.streams
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Line) {
        let server = Arc::clone(self);
        let is_partner = self.partners.contains(&peer);
        let visitor = Visitor { wallet: peer, range: stream.range(), is_partner };
        if let Some(permit) = self.streams.admit_visitor(visitor) {
            tokio::spawn(async move {
                server.serve(&visitor, stream).await;
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

    async fn serve(&self, visitor: &Visitor, mut stream: Line) {
        let peer = visitor.wallet;
        let (message, body) = match self.read(visitor, &mut stream).await {
            Ok(request) => request,
            Err(unread) => return self.refuse(peer, stream, unread).await,
        };
        Counters::add(&self.counters.calls_received);
        let Some(place) = self.places.admit_visitor(*visitor) else {
            return self.refuse(peer, stream, Unread::NoRoom).await;
        };
        // An answer after the longest deadline has no reader.
        let patience = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);
        let (reply, receiver) = Responder::new();
        // The queue has a place for every admitted call, so this does not wait.
        let (is_partner, origin) = (visitor.is_partner, stream.origin());
        let call = InboundCall { peer, is_partner, origin, message, body, reply };
        if self.calls.send(call).await.is_err() {
            return self.write(stream, &shutting_down(), &Bytes::new()).await;
        }
        let answer = timeout(patience, receiver).await;
        drop(place);
        let Ok(Ok((reply, body))) = answer else { return };
        if reply.body_bytes() != body.len() as u64 {
            return;
        }
        match self.room.answer(visitor, &reply, &body) {
            Some(_room) => self.write(stream, &reply, &body).await,
            None => self.refuse(peer, stream, Unread::NoRoom).await,
        }
    }

    async fn read(&self, visitor: &Visitor, stream: &mut Line) -> Result<(CallMessage, Bytes), Unread> {
        let pace = self.limits.pace();
        let head = frame::read_head(stream, limits::CALL_HEAD_BYTES_MAX, pace);
        let head = timeout(self.limits.head_deadline, head).await.map_err(|_| Unread::SlowHead)??;
        let message: CallMessage =
            wire::decode(&head).map_err(|error| Unread::Malformed(error.to_string()))?;
        let mut room = self.room.request(visitor);
        let body_max = limits::REQUEST_BODY_BYTES_MAX;
        let body =
            frame::read_body(stream, message.body_bytes(), body_max, pace, |more| room.grow(more)).await?;
        message.check_parts().map_err(|error| Unread::TooLarge(error.to_string()))?;
        Ok((message, room.attach(body)))
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

    /// Writes an answer and closes the stream. A caller that has gone is not an error here, nor one that takes its
    /// answer too slowly.
    async fn write(&self, mut stream: Line, reply: &CallReply, body: &Bytes) {
        let head = wire::encode(reply);
        let written = frame::write_frame(&mut stream, &head, body, self.limits.pace());
        let written = timeout(self.limits.answer_written_max, written).await;
        if matches!(written, Ok(Ok(()))) {
            let _ = timeout(self.limits.body_idle_max, stream.close()).await;
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

/// The reason that a request was not taken. In every case it was surely not served.
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
            FrameError::TooSlow => Self::SlowBody,
            FrameError::NoRoom { .. } => Self::NoRoom,
            FrameError::TooLarge { .. } => Self::TooLarge(error.to_string()),
        }
    }
}
