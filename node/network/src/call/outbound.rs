//! The asking side of a call: write the request, read the answer, believe nothing about its sizes.

use bytes::Bytes;
use farthing_bounds::HeldBytes;
use farthing_protocol::{CallReply, limits, wire};
use futures::{
    AsyncReadExt,
    future::{self, Either},
};

use super::Interrupted;
use crate::{
    NetworkLimits,
    frame::{self, FrameError, MinimumPace},
    line::Line,
};

/// Sends one request and reads its answer, into `room` first. From the first poll on, the request may have been
/// delivered.
///
/// The answer may come before the request was sent to the end: an owner that refuses does not wait for the
/// body. Deadlines are the caller's business.
pub(crate) async fn exchange(
    stream: Line,
    head: &[u8],
    body: &Bytes,
    limits: &NetworkLimits,
    room: HeldBytes,
) -> Result<(CallReply, Bytes), Interrupted> {
    let (mut reader, mut writer) = stream.split();
    let writing = std::pin::pin!(frame::write_frame(&mut writer, head, body, limits.pace()));
    let reading = std::pin::pin!(read_reply(&mut reader, limits, room));
    match future::select(reading, writing).await {
        Either::Left((reply, _)) => reply,
        Either::Right((Ok(()), reading)) => reading.await,
        // The owner stopped listening; what it said before that still counts.
        Either::Right((Err(error), reading)) => reading.await.map_err(|_| interrupted(&error)),
    }
}

async fn read_reply<R>(
    io: &mut R,
    limits: &NetworkLimits,
    mut room: HeldBytes,
) -> Result<(CallReply, Bytes), Interrupted>
where
    R: futures::AsyncRead + Unpin,
{
    // The owner may need the whole deadline before its first byte, so silence is not judged here.
    let patience = std::time::Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);
    let head = frame::read_head(io, limits::CALL_HEAD_BYTES_MAX, MinimumPace::any(patience))
        .await
        .map_err(|error| interrupted(&error))?;
    let reply: CallReply = wire::decode(&head).map_err(|error| Interrupted::BadAnswer(error.to_string()))?;
    let (body_bytes, bytes_max) = (reply.body_bytes(), limits.response_body_bytes_max);
    let mut spare = room.bytes();
    let reserve = |more: usize| {
        let taken = more.min(spare);
        spare -= taken;
        room.grow(more - taken)
    };
    let body = frame::read_body(io, body_bytes, bytes_max, limits.pace(), reserve).await;
    let body = body.map_err(|error| interrupted(&error))?;
    Ok((reply, room.attach(body)))
}

fn interrupted(error: &FrameError) -> Interrupted {
    match error {
        FrameError::Truncated { missing: 4 } => Interrupted::NoAnswer,
        FrameError::NoRoom { bytes } => Interrupted::NoRoom { bytes: *bytes },
        FrameError::TooLarge { .. } => Interrupted::BadAnswer(error.to_string()),
        FrameError::Truncated { .. } | FrameError::TooSlow | FrameError::Io(_) => {
            Interrupted::ConnectionLost(error.to_string())
        }
    }
}
