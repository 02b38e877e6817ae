//! The answering side of a call: read, admit, hand over, answer.
//!
//! 1. A stream is accepted while its peer, its address range and all together have few enough ([`Admission`]), and again
//!    with each request that begins on it: between two calls it rests, which takes a place of another kind.
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
use farthing_bounds::{ByteBudget, HeldBytes, SharedBudget};
use farthing_protocol::{
    Address, CallMessage, CallReply, Refusal, RefusalCode,
    call_stream::{AnsweringEnd, FrameHead, FrameHeadError},
    limits, wire,
};
use futures::AsyncWriteExt;
use tokio::{sync::mpsc, time::timeout};

use super::{InboundCall, Responder};
use crate::{
    NetworkLimits, RELAYED_BODY_BYTES_MAX,
    admission::{Admission, Permit, Shares, Visitor},
    frame::{self, FrameError, MinimumPace},
    line::{Line, Origin},
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
/// Room that there has to be for a stranger's answer before its call is served.
const ANSWER_BYTES_MIN: usize = 64 * 1024;
/// Streams at rest of one peer, as many as calls of it are served at once, and of all, about 6 KiB each; half of them of
/// peers with open channels alone. A stream that finds no place ends with its answer, which says so.
pub(super) const RESTING_PER_PEER_MAX: usize = 64;
const RESTING_MAX: usize = 1024;

/// The refusal of what is too large for the way that it came.
const FOR_RELAY: &str = "you are connected through a relay, which carries bodies of at most 64 KiB; send less, or \
                         connect without a relay";

#[derive(Debug)]
pub(crate) struct CallServer {
    streams: Arc<Admission>,
    places: Arc<Admission>,
    refusals: Arc<Admission>,
    resting: Arc<Admission>,
    room: Room,
    partners: Partners,
    calls: mpsc::Sender<InboundCall>,
    limits: NetworkLimits,
    reporter: Reporter,
    counters: Arc<Counters>,
}

/// Memory for bodies. Of requests no wallet holds more than it leaves free.
#[derive(Debug)]
struct Room {
    requests: SharedBudget<Address>,
    strangers_requests: SharedBudget<Address>,
    /// Answers are counted where they are made. This one keeps strangers, who read slowly for nothing, from holding all.
    strangers_answers: SharedBudget<Address>,
}

impl Room {
    fn new(budget: &ByteBudget) -> Self {
        let requests = budget.part(budget.bytes_max() / REQUESTS_PART);
        let strangers_max = budget.bytes_max() / STRANGERS_PART;
        let strangers_requests = SharedBudget::new(requests.part(strangers_max));
        let (requests, strangers_answers) =
            (SharedBudget::new(requests), SharedBudget::new(ByteBudget::new(strangers_max)));
        Self { requests, strangers_requests, strangers_answers }
    }

    fn request(&self, visitor: &Visitor) -> HeldBytes {
        let shared = if visitor.is_partner { &self.requests } else { &self.strangers_requests };
        shared.of(visitor.wallet).nothing()
    }

    /// Tells whether there is room for an answer, as far as that is known before a free call is served. All else is small,
    /// or paid.
    fn is_there_for_answer(&self, visitor: &Visitor, message: &CallMessage) -> bool {
        let is_free = matches!(message, CallMessage::Call(request) if request.price.is_zero());
        !is_free
            || visitor.is_partner
            || self.strangers_answers.of(visitor.wallet).take(ANSWER_BYTES_MIN).is_some()
    }

    /// Room for an answer; nothing when it cannot be sent now. One that was paid always can.
    fn answer(&self, visitor: &Visitor, reply: &CallReply, body: &Bytes) -> Option<Option<HeldBytes>> {
        let is_free = !matches!(reply, CallReply::Response(response) if !response.receipt.charged.is_zero());
        if visitor.is_partner || !is_free {
            return Some(None);
        }
        self.strangers_answers.of(visitor.wallet).take(body.len()).map(Some)
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
            resting: shared(RESTING_PER_PEER_MAX, RESTING_MAX),
            room: Room::new(budget),
            partners,
            calls,
            limits,
            reporter,
            counters,
        })
    }

    /// Calls on their way in, being served or being answered, to wait for in a shutdown. Streams at rest are not among
    /// them.
    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.streams
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, line: Line) {
        let server = Arc::clone(self);
        let visitor = Visitor::of(peer, &line, &self.partners);
        let mut stream = AnsweringStream::from(line);
        if let Some(permit) = self.streams.admit_visitor(visitor) {
            tokio::spawn(async move { server.serve(visitor, stream, permit).await });
        } else if let Some(permit) = self.refusals.admit(peer) {
            Counters::add(&self.counters.calls_refused_busy);
            tokio::spawn(async move {
                server.refuse_unread(&mut stream).await;
                drop(permit);
            });
        } else {
            Counters::add(&self.counters.streams_reset);
        }
    }

    /// One request after the other, for as long as the stream is kept.
    async fn serve(&self, mut visitor: Visitor, mut stream: AnsweringStream, mut permit: Permit) {
        let mut head_bytes = None;
        while let Some(resting) = self.answer(&visitor, &mut stream, head_bytes).await {
            drop(permit);
            stream.line.rest();
            let next = stream.begin(MinimumPace::any(self.limits.stream_rest_max)).await;
            stream.line.wake();
            drop(resting);
            // A channel may have been opened while the stream rested.
            visitor = Visitor::of(visitor.wallet, &stream.line, &self.partners);
            head_bytes = match next {
                Ok(head_bytes) => Some(head_bytes),
                // That it sends nothing for so long is no offence.
                Err(Unread::SlowHead) => return,
                Err(unread) => return self.refuse(visitor.wallet, &mut stream, unread).await,
            };
            let Some(place) = self.streams.admit_visitor(visitor) else {
                let Some(_refusal) = self.refusals.admit(visitor.wallet) else {
                    return Counters::add(&self.counters.streams_reset);
                };
                return self.refuse(visitor.wallet, &mut stream, Unread::NoRoom).await;
            };
            permit = place;
        }
    }

    /// Reads one request and writes its answer. Returns the place of a stream at rest if another request may follow.
    async fn answer(
        &self,
        visitor: &Visitor,
        stream: &mut AnsweringStream,
        head_bytes: Option<usize>,
    ) -> Option<Permit> {
        let (message, body) = match self.read(visitor, stream, head_bytes).await {
            Ok(request) => request,
            Err(unread) => {
                self.refuse(visitor.wallet, stream, unread).await;
                return None;
            }
        };
        let way = (stream.line.origin(), stream.line.is_relayed());
        self.counters.count_received(stream.line.is_relayed());
        let (reply, body) = self.serve_one(visitor, way, message, body).await?;
        // The call was served: its caller learns nothing now, rather than that it was not, and may ask for its receipt.
        let _room = self.room.answer(visitor, &reply, &body)?;
        let resting = self.resting(visitor, stream);
        self.write(stream, &reply, &body, resting.is_none()).await.then_some(resting).flatten()
    }

    /// The answer to a request that was read, or that there is none; nothing if there will be none.
    async fn serve_one(
        &self,
        visitor: &Visitor,
        (origin, is_relayed): (Origin, bool),
        message: CallMessage,
        body: Bytes,
    ) -> Option<(CallReply, Bytes)> {
        let place = self.places.admit_visitor(*visitor);
        let Some(place) = place.filter(|_| self.room.is_there_for_answer(visitor, &message)) else {
            return Some((self.busy(), Bytes::new()));
        };
        // Later than the word that the longest deadline is over, an answer has no reader.
        let patience = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX + limits::LAST_WORD_MS);
        let (reply, receiver) = Responder::pair();
        let &Visitor { wallet: peer, range, is_partner } = visitor;
        let call = InboundCall { peer, is_partner, is_relayed, origin, range, message, body, reply };
        // The queue has a place for every admitted call, so this does not wait.
        if self.calls.send(call).await.is_err() {
            return Some((shutting_down(), Bytes::new()));
        }
        let answer = timeout(patience, receiver).await;
        drop(place);
        let (reply, body) = answer.ok()?.ok()?;
        (reply.body_bytes() == body.len() as u64).then_some((reply, body))
    }

    /// A place for a stream that may carry another call, as long as there is one and the node goes on.
    fn resting(&self, visitor: &Visitor, stream: &AnsweringStream) -> Option<Permit> {
        let may_rest = stream.turns.is_some() && !self.streams.is_closed();
        may_rest.then(|| self.resting.admit_visitor(*visitor)).flatten()
    }

    /// The head, whose length is known where the stream rested, and the body.
    async fn read(
        &self,
        visitor: &Visitor,
        stream: &mut AnsweringStream,
        head_bytes: Option<usize>,
    ) -> Result<(CallMessage, Bytes), Unread> {
        let pace = self.limits.pace();
        let head = async {
            let head_bytes = match head_bytes {
                Some(known) => known,
                None => stream.begin(pace).await?,
            };
            Ok::<_, Unread>(frame::read_bounded(&mut stream.line, head_bytes, pace, |_| true).await?)
        };
        let head = timeout(self.limits.head_deadline, head).await.map_err(|_| Unread::SlowHead)??;
        let message: CallMessage =
            wire::decode(&head).map_err(|error| Unread::Malformed(error.to_string()))?;
        if stream.line.is_relayed() && message.body_bytes() > RELAYED_BODY_BYTES_MAX as u64 {
            return Err(Unread::ForRelay);
        }
        let mut room = self.room.request(visitor);
        let (body_bytes, body_max) = (message.body_bytes(), limits::REQUEST_BODY_BYTES_MAX);
        let reserve = |more| room.grow(more);
        let body = frame::read_body(&mut stream.line, body_bytes, body_max, pace, reserve).await?;
        message.check_parts().map_err(|error| Unread::TooLarge(error.to_string()))?;
        Ok((message, room.attach(body)))
    }

    /// Refuses a request of which nothing is read but where it begins, within the time of a head.
    async fn refuse_unread(&self, stream: &mut AnsweringStream) {
        if stream.turns.is_some() {
            let begun = timeout(self.limits.head_deadline, stream.begin(self.limits.pace())).await;
            if !matches!(begun, Ok(Ok(_))) {
                return;
            }
        }
        self.write(stream, &busy(), &Bytes::new(), true).await;
    }

    /// Says why a request was not taken, when anybody can still hear it, and remembers who sent nonsense. The rest of the
    /// request may be on its way, so nothing more is read from the stream.
    async fn refuse(&self, peer: Address, stream: &mut AnsweringStream, unread: Unread) {
        let refusal = match unread {
            Unread::Gone => return,
            Unread::NoRoom => {
                let busy = self.busy();
                self.write(stream, &busy, &Bytes::new(), true).await;
                return;
            }
            Unread::SlowHead => Refusal::new(RefusalCode::Malformed, "the head took too long to arrive"),
            Unread::SlowBody => Refusal::new(RefusalCode::Malformed, "the body took too long to arrive"),
            Unread::ForRelay => Refusal::new(RefusalCode::TooLarge, FOR_RELAY),
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
        self.write(stream, &CallReply::Refused(refusal), &Bytes::new(), true).await;
    }

    fn busy(&self) -> CallReply {
        Counters::add(&self.counters.calls_refused_busy);
        busy()
    }

    /// Writes an answer, and closes the stream after the last one. A caller that has gone is not an error here, nor one
    /// that takes its answer too slowly. Returns whether another request may follow.
    async fn write(
        &self,
        stream: &mut AnsweringStream,
        reply: &CallReply,
        body: &Bytes,
        is_last: bool,
    ) -> bool {
        let head = wire::encode(reply);
        let Some(beginning) = stream.beginning(&head, is_last) else { return false };
        let line = &mut stream.line;
        let written = frame::write_frame_after(line, &beginning, &head, body, self.limits.pace());
        if !matches!(timeout(self.limits.answer_written_max, written).await, Ok(Ok(()))) {
            return false;
        }
        let may_follow = stream.turns.as_ref().is_some_and(AnsweringEnd::is_at_rest);
        if !may_follow {
            let _ = timeout(self.limits.body_idle_max, stream.line.close()).await;
        }
        may_follow
    }
}

/// A stream on which a peer asks.
struct AnsweringStream {
    line: Line,
    /// None on a stream of `call/1`, which carries one call.
    turns: Option<AnsweringEnd>,
}

impl From<Line> for AnsweringStream {
    fn from(line: Line) -> Self {
        let turns = line.takes_turns().then(AnsweringEnd::default);
        Self { line, turns }
    }
}

impl AnsweringStream {
    /// Waits for a request to begin, and returns the length of its head.
    async fn begin(&mut self, pace: MinimumPace) -> Result<usize, Unread> {
        let Self { line, turns } = self;
        let Some(turns) = turns else {
            return Ok(frame::read_length(line, limits::CALL_HEAD_BYTES_MAX, pace).await?);
        };
        let beginning = frame::read_array(line, pace).await.map_err(|error| match error {
            FrameError::TooSlow => Unread::SlowHead,
            other => other.into(),
        })?;
        let head = FrameHead::from_bytes(beginning).map_err(|error| match error {
            FrameHeadError::TooLarge { .. } => Unread::TooLarge(error.to_string()),
            _ => Unread::Malformed(error.to_string()),
        })?;
        turns.asked(head).map_err(|error| Unread::Malformed(error.to_string()))?;
        Ok(head.head_bytes as usize)
    }

    /// The bytes before a reply's head; none if no reply is waited for.
    fn beginning(&mut self, head: &[u8], is_last: bool) -> Option<Vec<u8>> {
        let bytes = frame::head_bytes(head).ok()?;
        match &mut self.turns {
            None => Some(bytes.to_be_bytes().to_vec()),
            Some(turns) => turns.reply(bytes, is_last).map(|head| head.to_bytes().to_vec()),
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
    /// It came through a relay, and is too large for that.
    ForRelay,
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
