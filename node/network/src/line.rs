//! A stream that ends when its connection does.
//!
//! When we give a connection up, the library closes it without waking whoever waits for one of its streams (yamux
//! 0.14: `Active::close` drops its table of streams). A call over a line that was found dead would go on waiting for
//! its own deadline, so every stream also waits for the end of its connection.

use std::{
    fmt,
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Instant,
};

use futures::{AsyncRead, AsyncWrite};
use libp2p::{Multiaddr, Stream, swarm::ConnectionId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    addresses::{self, circuit},
    usage::{InUse, Usage},
};

/// The connection that something came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Another one for each connection of this process.
    pub number: u64,
    /// The time at which the connection was made, on the clock that the owner compares it with.
    pub since: tokio::time::Instant,
}

impl Origin {
    fn of_new_connection() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), since: tokio::time::Instant::now() }
    }
}

/// The state that all streams of one protocol on one connection share. The connection's own part: when it is dropped,
/// they end.
#[derive(Debug)]
pub(crate) struct ConnectionStreams {
    connection: ConnectionId,
    origin: Origin,
    /// See [`crate::admission::Visitor`].
    range: Option<IpAddr>,
    is_relayed: bool,
    takes_turns: bool,
    usage: Usage,
    moved: Arc<AtomicUsize>,
    used: Arc<Mutex<Option<Instant>>>,
    alive: watch::Sender<()>,
}

impl ConnectionStreams {
    /// Of a connection whose other end is at the end of `way`. `takes_turns`: a stream carries one exchange after the other.
    pub(crate) fn new(connection: ConnectionId, way: &Multiaddr, usage: Usage, takes_turns: bool) -> Self {
        Self {
            connection,
            origin: Origin::of_new_connection(),
            range: addresses::range(way),
            is_relayed: circuit::is_circuit(way),
            takes_turns,
            usage,
            moved: Arc::default(),
            used: Arc::default(),
            alive: watch::Sender::new(()),
        }
    }

    /// The time at which a stream was opened last, or taken up again after a rest.
    pub(crate) fn last_used(&self) -> Option<Instant> {
        *self.used.lock()
    }

    pub(crate) fn line(&self, stream: Stream) -> Line {
        let mut alive = self.alive.subscribe();
        let end = Box::pin(async move {
            // Nothing is ever sent; the error says that the sender is gone.
            while alive.changed().await.is_ok() {}
        });
        let traffic = Traffic { connection: self.connection, moved: Arc::clone(&self.moved) };
        let (usage, used) = (self.usage.clone(), Arc::clone(&self.used));
        let &Self { origin, range, is_relayed, takes_turns, .. } = self;
        let in_use = None;
        let mut line =
            Line { stream, traffic, origin, range, is_relayed, takes_turns, end, usage, used, in_use };
        line.wake();
        line
    }
}

/// The connection that a stream is on, and a count of what its protocol moves there.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) connection: ConnectionId,
    moved: Arc<AtomicUsize>,
}

impl Traffic {
    /// Bytes that all streams of the protocol sent and received on this connection.
    pub(crate) fn moved(&self) -> usize {
        self.moved.load(Ordering::Relaxed)
    }

    fn note(&self, moved: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = moved {
            self.moved.fetch_add(*bytes, Ordering::Relaxed);
        }
    }
}

/// One stream. Used by one task, as everything here is.
pub(crate) struct Line {
    stream: Stream,
    traffic: Traffic,
    origin: Origin,
    range: Option<IpAddr>,
    is_relayed: bool,
    takes_turns: bool,
    usage: Usage,
    used: Arc<Mutex<Option<Instant>>>,
    /// None at rest.
    in_use: Option<InUse>,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Line {
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.clone()
    }

    /// Returns whether it carries one exchange after the other.
    pub(crate) const fn takes_turns(&self) -> bool {
        self.takes_turns
    }

    pub(crate) const fn origin(&self) -> Origin {
        self.origin
    }

    /// Nothing is under way: for the connection it is as if this stream were not there.
    pub(crate) fn rest(&mut self) {
        self.in_use = None;
    }

    /// The end of a rest.
    pub(crate) fn wake(&mut self) {
        self.in_use = Some(self.usage.begin(self.traffic.connection));
        *self.used.lock() = Some(Instant::now());
    }

    /// Returns whether nothing has come and the connection is there, as far as this end knows. What has come is lost, so
    /// a stream that is not silent is of no use any more.
    pub(crate) fn is_silent(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(self).poll_read(&mut context, &mut [0]).is_pending()
    }

    /// Returns whether it runs through a relay.
    pub(crate) const fn is_relayed(&self) -> bool {
        self.is_relayed
    }

    /// The address range of the other end, or of the relay before it, unless it is private.
    pub(crate) const fn range(&self) -> Option<IpAddr> {
        self.range
    }

    /// Passes `poll` on, or gives an error if it is pending and the connection has ended: then nothing comes any more.
    fn unless_ended<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_pending() && self.end.as_mut().poll(cx).is_ready() {
            // Polling a future again that has ended is not allowed, and the next poll may come here again.
            self.end = Box::pin(std::future::ready(()));
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was given up",
            )));
        }
        poll
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.traffic.note(&read);
        self.unless_ended(cx, read)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.traffic.note(&written);
        self.unless_ended(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.unless_ended(cx, flushed)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_close(cx);
        self.unless_ended(cx, closed)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("connection", &self.traffic.connection).finish_non_exhaustive()
    }
}
