//! The asking side of a call: write the request, read the answer, believe nothing about its sizes.

use std::time::Duration;

use bytes::Bytes;
use farthing_bounds::HeldBytes;
use farthing_protocol::{
    CallReply,
    call_stream::{AskingEnd, FrameHead},
    limits, wire,
};
use futures::{
    AsyncRead, AsyncReadExt, FutureExt,
    future::{self, Either},
};
use libp2p::core::upgrade::NegotiationError;

use super::{CallFailure, Interrupted, NotStarted};
use crate::{
    NetworkLimits,
    frame::{self, FrameError, MinimumPace},
    line::Line,
};

#[derive(Debug)]
pub(crate) struct AskingStream {
    line: Line,
    /// None on a stream of `call/1`, which carries one call.
    turns: Option<AskingEnd>,
}

impl From<Line> for AskingStream {
    fn from(line: Line) -> Self {
        let turns = line.takes_turns().then(AskingEnd::default);
        Self { line, turns }
    }
}

impl AskingStream {
    pub(crate) const fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) const fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Returns whether another call may follow.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.turns.as_ref().is_some_and(AskingEnd::is_at_rest)
    }

    /// Sends one request and reads its answer, into `room` first. From the first poll on, the request may have been
    /// delivered, unless the peer says that it does not speak the protocol.
    ///
    /// The answer may come before the request was sent to the end: an owner that refuses does not wait for the
    /// body. Deadlines are the caller's business. A stream that is not [at rest](Self::is_at_rest) afterwards carries no
    /// other call.
    pub(crate) async fn exchange(
        &mut self,
        head: &[u8],
        body: &Bytes,
        limits: &NetworkLimits,
        room: HeldBytes,
    ) -> Result<(CallReply, Bytes), CallFailure> {
        let Self { line, turns } = self;
        let bytes = frame::head_bytes(head).map_err(|error| failed(&error))?;
        let beginning = match turns {
            None => bytes.to_be_bytes().to_vec(),
            Some(turns) => {
                let asked = turns.ask(bytes).ok_or(CallFailure::Unknown(Interrupted::NoAnswer))?;
                asked.to_bytes().to_vec()
            }
        };
        let (reply, was_written) = {
            let (mut reader, mut writer) = line.split();
            let writing = frame::write_frame_after(&mut writer, &beginning, head, body, limits.pace());
            let writing = std::pin::pin!(writing);
            let reading = std::pin::pin!(read_reply(&mut reader, turns.as_mut(), limits, room));
            match future::select(reading, writing).await {
                // What was written to the end may be seen a moment after its answer.
                Either::Left((Ok(reply), writing)) => {
                    (Ok(reply), matches!(writing.now_or_never(), Some(Ok(()))))
                }
                // Nothing more may be written: on a stream whose protocol was refused, that would panic.
                Either::Left((Err(error), _)) => (Err(error), false),
                Either::Right((Ok(()), reading)) => (reading.await, true),
                // The owner stopped listening; what it said before that still counts.
                Either::Right((Err(error), reading)) => (
                    reading.await.map_err(|said| if is_unspoken(&said) { said } else { failed(&error) }),
                    false,
                ),
            }
        };
        if let (Some(turns), Ok(_)) = (turns, &reply) {
            turns.end(was_written);
        }
        reply
    }
}

async fn read_reply<R>(
    io: &mut R,
    turns: Option<&mut AskingEnd>,
    limits: &NetworkLimits,
    mut room: HeldBytes,
) -> Result<(CallReply, Bytes), CallFailure>
where
    R: AsyncRead + Unpin,
{
    // The owner may need the whole deadline, and then says that its service was too slow, so silence is not judged here.
    let patience =
        MinimumPace::any(Duration::from_millis(limits::CALL_DEADLINE_MS_MAX + limits::LAST_WORD_READ_MS));
    let head_bytes = match turns {
        None => frame::read_length(io, limits::CALL_HEAD_BYTES_MAX, patience).await,
        Some(turns) => match frame::read_array(io, patience).await {
            Ok(beginning) => {
                let head = FrameHead::from_bytes(beginning).map_err(bad)?;
                turns.reply(head).map_err(bad)?;
                Ok(head.head_bytes as usize)
            }
            Err(error) => Err(error),
        },
    };
    let head_bytes = head_bytes.map_err(|error| match error {
        FrameError::Truncated { .. } => CallFailure::Unknown(Interrupted::NoAnswer),
        other => failed(&other),
    })?;
    let head = frame::read_bounded(io, head_bytes, patience, |_| true).await;
    let head = head.map_err(|error| failed(&error))?;
    let reply: CallReply = wire::decode(&head).map_err(bad)?;
    let (body_bytes, bytes_max) = (reply.body_bytes(), limits.response_body_bytes_max);
    let mut spare = room.bytes();
    let reserve = |more: usize| {
        let taken = more.min(spare);
        spare -= taken;
        room.grow(more - taken)
    };
    let body = frame::read_body(io, body_bytes, bytes_max, limits.pace(), reserve).await;
    let body = body.map_err(|error| failed(&error))?;
    Ok((reply, room.attach(body)))
}

fn bad(error: impl std::error::Error) -> CallFailure {
    CallFailure::Unknown(Interrupted::BadAnswer(error.to_string()))
}

/// The end of an exchange that failed. A peer that does not speak the protocol says so before it takes anything of it, and what
/// was sent ahead of that word is thrown away.
fn failed(error: &FrameError) -> CallFailure {
    let is_refused = |error: &std::io::Error| {
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<NegotiationError>());
        matches!(refused, Some(NegotiationError::Failed))
    };
    match error {
        FrameError::Io(error) if is_refused(error) => CallFailure::NeverStarted(NotStarted::Unsupported),
        other => CallFailure::Unknown(interrupted(other)),
    }
}

const fn is_unspoken(failure: &CallFailure) -> bool {
    matches!(failure, CallFailure::NeverStarted(_))
}

fn interrupted(error: &FrameError) -> Interrupted {
    match error {
        FrameError::NoRoom { bytes } => Interrupted::NoRoom { bytes: *bytes },
        FrameError::TooLarge { .. } => Interrupted::BadAnswer(error.to_string()),
        FrameError::Truncated { .. } | FrameError::TooSlow | FrameError::Io(_) => {
            Interrupted::ConnectionLost(error.to_string())
        }
    }
}
