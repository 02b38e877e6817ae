//! Frames on a stream: a 4-byte big-endian length, a head of that length, then the body the head names.
//!
//! Sizes are checked before anything is allocated, and memory grows with the bytes that arrive: a length
//! that lies costs us what its sender sends. A silence longer than `idle_max` ends the frame.

use std::time::Duration;

use bytes::Bytes;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// One read or write: large enough that its cost disappears, small enough to be given back soon.
const CHUNK_BYTES: usize = 64 * 1024;
/// A body up to this size leaves together with its head, so that a small exchange is one packet each way.
const INLINE_BODY_BYTES_MAX: usize = 16 * 1024;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the {part} has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge { part: &'static str, bytes: u64, bytes_max: usize },
    #[error("the stream ended {missing} bytes early")]
    Truncated { missing: usize },
    #[error("nothing moved for {} s", .0.as_secs())]
    Idle(Duration),
    #[error("no room for the body")]
    NoRoom,
    #[error("the stream failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Reads a head of at most `bytes_max`.
pub(crate) async fn read_head<R>(
    io: &mut R,
    bytes_max: usize,
    idle_max: Duration,
) -> Result<Vec<u8>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let length = read_bounded(io, 4, idle_max, |_| true).await?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    let length = check_size("head", length.into(), bytes_max)?;
    read_bounded(io, length, idle_max, |_| true).await
}

/// Reads a body of `body_bytes`, which the head named, asking `reserve` before memory grows by so many bytes.
pub(crate) async fn read_body<R>(
    io: &mut R,
    body_bytes: u64,
    bytes_max: usize,
    idle_max: Duration,
    reserve: impl FnMut(usize) -> bool,
) -> Result<Bytes, FrameError>
where
    R: AsyncRead + Unpin,
{
    let length = check_size("body", body_bytes, bytes_max)?;
    read_bounded(io, length, idle_max, reserve).await.map(Bytes::from)
}

fn check_size(part: &'static str, bytes: u64, bytes_max: usize) -> Result<usize, FrameError> {
    match usize::try_from(bytes) {
        Ok(length) if length <= bytes_max => Ok(length),
        _ => Err(FrameError::TooLarge { part, bytes, bytes_max }),
    }
}

/// Reads exactly `length` bytes into memory that doubles as they arrive.
async fn read_bounded<R>(
    io: &mut R,
    length: usize,
    idle_max: Duration,
    mut reserve: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut bytes = Vec::new();
    let mut filled = 0;
    while filled < length {
        if filled == bytes.len() {
            let grown = length.min((2 * filled).max(CHUNK_BYTES));
            if !reserve(grown - filled) {
                return Err(FrameError::NoRoom);
            }
            bytes.reserve_exact(grown - filled);
            bytes.resize(grown, 0);
        }
        let read = timeout(idle_max, io.read(&mut bytes[filled..]));
        match read.await.map_err(|_| FrameError::Idle(idle_max))?? {
            0 => return Err(FrameError::Truncated { missing: length - filled }),
            n => filled += n,
        }
    }
    Ok(bytes)
}

/// Writes a head and its body, in pieces that wait for the reader, and flushes.
pub(crate) async fn write_frame<W>(
    io: &mut W,
    head: &[u8],
    body: &Bytes,
    idle_max: Duration,
) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    let length = u32::try_from(head.len()).map_err(|_| FrameError::TooLarge {
        part: "head",
        bytes: head.len() as u64,
        bytes_max: u32::MAX as usize,
    })?;
    let inline = if body.len() <= INLINE_BODY_BYTES_MAX { body.as_ref() } else { &[] };
    let first = [&length.to_be_bytes(), head, inline].concat();
    write_all(io, &first, idle_max).await?;
    for chunk in body[inline.len()..].chunks(CHUNK_BYTES) {
        write_all(io, chunk, idle_max).await?;
    }
    timeout(idle_max, io.flush()).await.map_err(|_| FrameError::Idle(idle_max))?.map_err(Into::into)
}

async fn write_all<W>(io: &mut W, mut bytes: &[u8], idle_max: Duration) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    while !bytes.is_empty() {
        let written = timeout(idle_max, io.write(bytes)).await.map_err(|_| FrameError::Idle(idle_max))??;
        if written == 0 {
            return Err(FrameError::Truncated { missing: bytes.len() });
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures::io::Cursor;

    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    async fn round_trip(head: &[u8], body: &Bytes) -> (Vec<u8>, Bytes) {
        let mut wire = Cursor::new(Vec::new());
        write_frame(&mut wire, head, body, IDLE).await.unwrap();
        let mut wire = Cursor::new(wire.into_inner());
        let head = read_head(&mut wire, 1 << 20, IDLE).await.unwrap();
        let body = read_body(&mut wire, body.len() as u64, body.len(), IDLE, |_| true).await.unwrap();
        assert_eq!(wire.position(), wire.get_ref().len() as u64, "nothing is left over");
        (head, body)
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        for body_bytes in [0, 1, INLINE_BODY_BYTES_MAX, INLINE_BODY_BYTES_MAX + 1, CHUNK_BYTES, 1_000_003] {
            let body = Bytes::from((0..body_bytes).map(|i| (i % 251).to_le_bytes()[0]).collect::<Vec<_>>());
            assert_eq!(round_trip(b"head", &body).await, (b"head".to_vec(), body));
        }
    }

    #[tokio::test]
    async fn a_head_is_bounded_before_it_is_read() {
        for (length, fits) in [(31_u32, true), (32, true), (33, false), (u32::MAX, false)] {
            let wire = [&length.to_be_bytes()[..], &[0; 64]].concat();
            let head = read_head(&mut Cursor::new(wire), 32, IDLE).await;
            assert_eq!(head.is_ok(), fits, "{length}");
            assert!(fits || matches!(head, Err(FrameError::TooLarge { part: "head", .. })));
        }
    }

    #[tokio::test]
    async fn a_lying_length_costs_what_was_sent() {
        let mut reserved = 0;
        let mut wire = Cursor::new(vec![0; 100_000]);
        let body = read_body(&mut wire, 64 << 20, 64 << 20, IDLE, |more| {
            reserved += more;
            true
        });
        assert!(matches!(body.await, Err(FrameError::Truncated { .. })));
        assert!(reserved <= 2 * 100_000, "{reserved} bytes for 100,000 sent");
    }

    #[tokio::test]
    async fn a_body_without_room_is_not_read() {
        let mut wire = Cursor::new(vec![0; 100]);
        let body = read_body(&mut wire, 100, 100, IDLE, |_| false).await;
        assert!(matches!(body, Err(FrameError::NoRoom)));
        assert_eq!(wire.position(), 0);
    }

    /// A sender that never sends.
    struct Silent;

    impl AsyncRead for Silent {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut [u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_silent_sender_is_given_up() {
        let idle_max = Duration::from_millis(1);
        let head = read_head(&mut Silent, 32, idle_max).await;
        assert!(matches!(head, Err(FrameError::Idle(_))));
    }
}
