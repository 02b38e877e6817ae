//! Paid calls, asked by one node and answered by another: over `/farthing/<net>/call/2` one after the other on streams that
//! are kept, and over `call/1`, which nodes of before speak, one per stream.
//!
//! The asking side is in `outbound` and, while its streams rest, in `kept`; the answering side is in `inbound`. Both know
//! exactly how far an exchange came, because that decides about money: what never started may be tried again freely, what
//! was cut off half-way may have been served.

mod inbound;
mod kept_streams;
mod missed_answers;
mod outbound;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use farthing_protocol::{Address, CallMessage, CallReply};
use tokio::sync::oneshot;

pub(crate) use self::{
    inbound::CallServer, kept_streams::KeptStreams, missed_answers::Missed, outbound::AskingStream,
};
use crate::line::Origin;

/// A call that another node makes, complete and within its bounds. Nothing else about it is checked.
#[derive(Debug)]
pub struct InboundCall {
    /// The wallet that calls, proven by its connection.
    pub peer: Address,
    /// True if a channel is open with it.
    pub is_partner: bool,
    /// True if it came through a relay: its answer has [`RELAYED_BODY_BYTES_MAX`](crate::RELAYED_BODY_BYTES_MAX) at most.
    pub is_relayed: bool,
    pub origin: Origin,
    /// The address range that it comes from, by [`farthing_bounds::range`], or that of the relay before it; `None` in private
    /// networks, where one address may stand for many nodes.
    pub range: Option<IpAddr>,
    pub message: CallMessage,
    pub body: Bytes,
    pub reply: Responder,
}

/// The way back for the answer to one inbound call. Dropping it closes the stream without an answer, which leaves
/// the caller in doubt; refuse instead wherever possible.
#[derive(Debug)]
pub struct Responder(oneshot::Sender<(CallReply, Bytes)>);

impl Responder {
    /// A way back, and where its answer comes out.
    #[must_use]
    pub fn pair() -> (Self, oneshot::Receiver<(CallReply, Bytes)>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Sends the answer. `body` has the length that the reply's head names.
    ///
    /// Returns whether the stream was still there; an answer that cannot be delivered is asked for again
    /// with `CallMessage::Status`.
    pub fn send(self, reply: CallReply, body: Bytes) -> bool {
        debug_assert_eq!(reply.body_bytes(), body.len() as u64, "the head names the body's length");
        self.0.send((reply, body)).is_ok()
    }
}

/// The parts of a call's duration, as its caller saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTiming {
    /// Finding the owner and connecting. Nearly nothing on a warm connection.
    pub connect: Duration,
    /// From the first byte sent to the last byte received.
    pub exchange: Duration,
    /// True if a connection was there already.
    pub warm: bool,
}

/// The reason that a call has no answer, and what that means for money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Surely not delivered: nothing is owed, and trying again is free.
    #[error("the call was not sent: {0}")]
    NeverStarted(#[source] NotStarted),
    /// Possibly served. Ask with `CallMessage::Status` before trying again, and only under the same call id.
    #[error("the call was sent but its answer was lost: {0}")]
    Unknown(#[source] Interrupted),
}

/// The reason that nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    #[error("{0} is this node's own wallet")]
    OwnWallet(Address),
    #[error("no node record of {0} was found; its node may be offline or on another network")]
    NotFound(Address),
    #[error("{0} was not found a moment ago; try again in {retry_secs} s", retry_secs = .1.as_secs() + 1)]
    NotFoundLately(Address, Duration),
    #[error("{0} could not be reached a moment ago; try again in {retry_secs} s", retry_secs = .1.as_secs() + 1)]
    NotReachedLately(Address, Duration),
    #[error("{0} is not connected")]
    NotConnected(Address),
    #[error("{0} has gone offline")]
    Offline(Address),
    #[error(
        "{peer} can only be reached through a relay, which carries bodies of at most {max} bytes, and this one has \
         {bytes}; send less, or forward port 3001 on either side (`farthing net reach` shows how)",
        max = crate::RELAYED_BODY_BYTES_MAX
    )]
    Relayed { peer: Address, bytes: usize },
    #[error("{peer} cannot be reached: {reason}")]
    Unreachable { peer: Address, reason: String },
    #[error("the peer is on another network")]
    OtherNetwork,
    #[error("the peer does not speak this protocol")]
    Unsupported,
    #[error("too many requests are under way; wait for an answer first")]
    LocalLimit,
    #[error("this node has no memory left for an answer: too many large bodies are under way")]
    NoRoom,
    #[error("the message cannot be sent: {0}")]
    Message(String),
    #[error("the deadline passed before a connection was ready")]
    Deadline,
    #[error("the call was cancelled before it was sent")]
    GivenUp,
    #[error("the network has been shut down")]
    Stopped,
}

/// The end of an exchange that failed after its first byte was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    #[error("the deadline passed")]
    Deadline,
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
    #[error("the peer closed the stream without an answer")]
    NoAnswer,
    #[error("the answer breaks the protocol: {0}")]
    BadAnswer(String),
    /// Ask again: the owner keeps the answer for a while.
    #[error(
        "this node has no memory left for the answer of {bytes} bytes: too many large bodies are under way"
    )]
    NoRoom { bytes: usize },
}
