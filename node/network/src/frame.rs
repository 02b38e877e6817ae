//! Frames on a stream: a 4-byte big-endian length, a head of that length, then the body the head names.
//!
//! Sizes are checked before anything is allocated, and memory grows with the bytes that arrive: a length
//! that lies costs us what its sender sends. Whoever sends or takes more slowly than the [`MinimumPace`] ends the frame.

use std::time::Duration;

use bytes::Bytes;
use farthing_os::killpoint;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

/// One read or write: large enough that its cost disappears, small enough to be given back soon.
const CHUNK_BYTES: usize = 64 * 1024;
/// A body up to this size leaves together with its head, so that a small exchange is one packet each way.
const INLINE_BODY_BYTES_MAX: usize = 16 * 1024;

/// The reason that a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the {part} has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge { part: &'static str, bytes: u64, bytes_max: usize },
    #[error("the stream ended {missing} bytes early")]
    Truncated { missing: usize },
    #[error("it is too slow")]
    TooSlow,
    #[error("no room for {bytes} bytes")]
    NoRoom { bytes: usize },
    #[error("the stream failed: {0}")]
    Io(#[from] std::io::Error),
}

/// The slowest pace of a frame: the longest silence, and the fewest bytes a second on the whole. Both together
/// bound how long a frame of a known size can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinimumPace {
    pub(crate) idle_max: Duration,
    /// None at all when zero.
    pub(crate) bytes_per_sec_min: u64,
}

impl MinimumPace {
    /// As slow as it likes, as long as something moves once in `idle_max`.
    pub(crate) const fn any(idle_max: Duration) -> Self {
        Self { idle_max, bytes_per_sec_min: 0 }
    }

    /// The longest time that `bytes` may take.
    pub(crate) fn whole(self, bytes: u64) -> Option<Duration> {
        let millis = bytes.saturating_mul(1000).checked_div(self.bytes_per_sec_min)?;
        Some(self.idle_max.saturating_add(Duration::from_millis(millis)))
    }
}

/// The movement of one frame, or of a part of it.
struct Movement {
    pace: MinimumPace,
    began: Instant,
    bytes: u64,
}

impl Movement {
    fn new(pace: MinimumPace) -> Self {
        Self { pace, began: Instant::now(), bytes: 0 }
    }

    /// Returns the time by which the next piece must have moved.
    fn deadline(&self) -> Instant {
        let next = Instant::now() + self.pace.idle_max;
        self.pace.whole(self.bytes).map_or(next, |whole| next.min(self.began + whole))
    }

    /// One piece, in time.
    async fn piece(
        &mut self,
        moving: impl Future<Output = std::io::Result<usize>>,
    ) -> Result<usize, FrameError> {
        let moved = timeout_at(self.deadline(), moving).await.map_err(|_| FrameError::TooSlow)??;
        self.bytes += moved as u64;
        Ok(moved)
    }
}

/// Reads a head of at most `bytes_max`.
pub(crate) async fn read_head<R>(
    io: &mut R,
    bytes_max: usize,
    pace: MinimumPace,
) -> Result<Vec<u8>, FrameError>
where
    R: AsyncRead + Unpin,
{
    read_head_within(io, bytes_max, pace, |_| true).await
}

/// The same for a head as large as a body, asking `reserve` as [`read_body`] does.
pub(crate) async fn read_head_within<R>(
    io: &mut R,
    bytes_max: usize,
    pace: MinimumPace,
    reserve: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let length = read_length(io, bytes_max, pace).await?;
    read_bounded(io, length, pace, reserve).await
}

/// Reads the length before a head of at most `bytes_max`.
pub(crate) async fn read_length<R>(
    io: &mut R,
    bytes_max: usize,
    pace: MinimumPace,
) -> Result<usize, FrameError>
where
    R: AsyncRead + Unpin,
{
    let length = u32::from_be_bytes(read_array(io, pace).await?);
    check_size("head", length.into(), bytes_max)
}

/// Reads so many bytes.
pub(crate) async fn read_array<R, const N: usize>(
    io: &mut R,
    pace: MinimumPace,
) -> Result<[u8; N], FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut bytes = [0; N];
    fill(io, &mut bytes, 0, &mut Movement::new(pace)).await?;
    Ok(bytes)
}

/// Reads a body of `body_bytes`, which the head named, asking `reserve` before memory grows by so many bytes.
pub(crate) async fn read_body<R>(
    io: &mut R,
    body_bytes: u64,
    bytes_max: usize,
    pace: MinimumPace,
    reserve: impl FnMut(usize) -> bool,
) -> Result<Bytes, FrameError>
where
    R: AsyncRead + Unpin,
{
    let length = check_size("body", body_bytes, bytes_max)?;
    read_bounded(io, length, pace, reserve).await.map(Bytes::from)
}

fn check_size(part: &'static str, bytes: u64, bytes_max: usize) -> Result<usize, FrameError> {
    match usize::try_from(bytes) {
        Ok(length) if length <= bytes_max => Ok(length),
        _ => Err(FrameError::TooLarge { part, bytes, bytes_max }),
    }
}

/// Reads exactly `length` bytes, which are within their bound, into memory that doubles as they arrive, asking `reserve` as
/// [`read_body`] does.
pub(crate) async fn read_bounded<R>(
    io: &mut R,
    length: usize,
    pace: MinimumPace,
    mut reserve: impl FnMut(usize) -> bool,
) -> Result<Vec<u8>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut movement = Movement::new(pace);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let filled = bytes.len();
        let grown = length.min((2 * filled).max(CHUNK_BYTES));
        if !reserve(grown - filled) {
            return Err(FrameError::NoRoom { bytes: length });
        }
        bytes.reserve_exact(grown - filled);
        bytes.resize(grown, 0);
        fill(io, &mut bytes[filled..], length - grown, &mut movement).await?;
    }
    Ok(bytes)
}

/// Reads until `into` is full. `beyond` bytes follow it, and are missing as well when the stream ends.
async fn fill<R>(
    io: &mut R,
    into: &mut [u8],
    beyond: usize,
    movement: &mut Movement,
) -> Result<(), FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut filled = 0;
    while filled < into.len() {
        match movement.piece(io.read(&mut into[filled..])).await? {
            0 => return Err(FrameError::Truncated { missing: into.len() - filled + beyond }),
            n => filled += n,
        }
    }
    Ok(())
}

/// Writes a head and its body, in pieces that wait for the reader, and flushes.
pub(crate) async fn write_frame<W>(
    io: &mut W,
    head: &[u8],
    body: &Bytes,
    pace: MinimumPace,
) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    write_frame_after(io, &head_bytes(head)?.to_be_bytes(), head, body, pace).await
}

/// The length of a head, as a frame tells it.
pub(crate) fn head_bytes(head: &[u8]) -> Result<u32, FrameError> {
    let too_large =
        || FrameError::TooLarge { part: "head", bytes: head.len() as u64, bytes_max: u32::MAX as usize };
    u32::try_from(head.len()).map_err(|_| too_large())
}

/// The same with another beginning than the head's length.
pub(crate) async fn write_frame_after<W>(
    io: &mut W,
    beginning: &[u8],
    head: &[u8],
    body: &Bytes,
    pace: MinimumPace,
) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    let inline = if body.len() <= INLINE_BODY_BYTES_MAX { body.as_ref() } else { &[] };
    let first = [beginning, head, inline].concat();
    let mut movement = Movement::new(pace);
    write_all(io, &first, &mut movement).await?;
    for chunk in body[inline.len()..].chunks(CHUNK_BYTES) {
        write_all(io, chunk, &mut movement).await?;
        killpoint::reached("frame.within_body");
    }
    let flushing = async { io.flush().await.map(|()| 0) };
    movement.piece(flushing).await?;
    if inline.len() < body.len() {
        killpoint::reached("frame.after_body");
    }
    Ok(())
}

async fn write_all<W>(io: &mut W, mut bytes: &[u8], movement: &mut Movement) -> Result<(), FrameError>
where
    W: AsyncWrite + Unpin,
{
    while !bytes.is_empty() {
        let written = movement.piece(io.write(bytes)).await?;
        if written == 0 {
            return Err(FrameError::Truncated { missing: bytes.len() });
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        pin::Pin,
        task::{Context, Poll, ready},
    };

    use futures::io::Cursor;

    use super::*;

    const PACE: MinimumPace = MinimumPace::any(Duration::from_secs(5));

    async fn round_trip(head: &[u8], body: &Bytes) -> (Vec<u8>, Bytes) {
        let mut wire = Cursor::new(Vec::new());
        write_frame(&mut wire, head, body, PACE).await.unwrap();
        let mut wire = Cursor::new(wire.into_inner());
        let head = read_head(&mut wire, 1 << 20, PACE).await.unwrap();
        let body = read_body(&mut wire, body.len() as u64, body.len(), PACE, |_| true).await.unwrap();
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

    /// Notes how many bytes each write has.
    #[derive(Default)]
    struct Writes {
        of_bytes: Vec<usize>,
        flushes: usize,
    }

    impl AsyncWrite for Writes {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.of_bytes.push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_frame_with_a_small_body_is_one_write_and_a_large_body_follows_in_chunks() {
        const SMALL: usize = INLINE_BODY_BYTES_MAX;
        // The beginning of `call/2` and a head of four bytes.
        let beginning = [0; 10];
        for (body_bytes, written) in [
            (0, vec![14]),
            (1, vec![15]),
            (SMALL, vec![14 + SMALL]),
            (SMALL + 1, vec![14, SMALL + 1]),
            (CHUNK_BYTES + 1, vec![14, CHUNK_BYTES, 1]),
        ] {
            let mut writes = Writes::default();
            let body = Bytes::from(vec![7; body_bytes]);
            write_frame_after(&mut writes, &beginning, b"head", &body, PACE).await.unwrap();
            assert_eq!((writes.of_bytes, writes.flushes), (written, 1), "{body_bytes}");
        }
    }

    #[tokio::test]
    async fn a_head_is_bounded_before_it_is_read() {
        for (length, fits) in [(31_u32, true), (32, true), (33, false), (u32::MAX, false)] {
            let wire = [&length.to_be_bytes()[..], &[0; 64]].concat();
            let head = read_head(&mut Cursor::new(wire), 32, PACE).await;
            assert_eq!(head.is_ok(), fits, "{length}");
            assert!(fits || matches!(head, Err(FrameError::TooLarge { part: "head", .. })));
        }
    }

    #[tokio::test]
    async fn a_lying_length_costs_what_was_sent() {
        let mut reserved = 0;
        let mut wire = Cursor::new(vec![0; 100_000]);
        let body = read_body(&mut wire, 64 << 20, 64 << 20, PACE, |more| {
            reserved += more;
            true
        });
        assert!(matches!(body.await, Err(FrameError::Truncated { .. })));
        assert!(reserved <= 2 * 100_000, "{reserved} bytes for 100,000 sent");
    }

    #[tokio::test]
    async fn a_body_without_room_is_not_read() {
        let mut wire = Cursor::new(vec![0; 100]);
        let body = read_body(&mut wire, 100, 100, PACE, |_| false).await;
        assert!(matches!(body, Err(FrameError::NoRoom { bytes: 100 })));
        assert_eq!(wire.position(), 0);
    }

    /// A sender that never sends.
    struct Silent;

    impl AsyncRead for Silent {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_silent_sender_is_given_up() {
        let head = read_head(&mut Silent, 32, MinimumPace::any(Duration::from_millis(1))).await;
        assert!(matches!(head, Err(FrameError::TooSlow)));
    }

    /// The other end moves one byte each hundredth of a second, and never pauses for much longer.
    #[derive(Default)]
    struct Trickle {
        next: Option<Pin<Box<tokio::time::Sleep>>>,
        bytes: usize,
    }

    impl Trickle {
        fn one(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
            let pause = || Box::pin(tokio::time::sleep(Duration::from_millis(10)));
            let next = self.next.get_or_insert_with(pause);
            ready!(next.as_mut().poll(cx));
            self.next = None;
            self.bytes += 1;
            Poll::Ready(Ok(1))
        }
    }

    impl AsyncRead for Trickle {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.one(cx)
        }
    }

    impl AsyncWrite for Trickle {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            self.one(cx)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_byte_at_a_time_is_given_up_both_ways_although_it_never_pauses() {
        let pace = MinimumPace { idle_max: Duration::from_millis(150), bytes_per_sec_min: 16 * 1024 };
        let mut slow = Trickle::default();
        let body = read_body(&mut slow, 300, 300, pace, |_| true).await;
        assert!(matches!(body, Err(FrameError::TooSlow)));
        assert!(slow.bytes <= 15, "{} bytes were waited for", slow.bytes);
        let mut slow = Trickle::default();
        let written = write_frame(&mut slow, b"head", &Bytes::from(vec![7; 300]), pace).await;
        assert!(matches!(written, Err(FrameError::TooSlow)));
        assert!(slow.bytes <= 15, "{} bytes were waited for", slow.bytes);
    }
}
