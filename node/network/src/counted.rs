//! Connections and streams whose bytes are counted as they pass.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};

use crate::status::Counters;

/// A counter of bytes. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Meter {
    /// Of the streams of a connection over sockets: without what encryption and the wire add.
    Streams(Arc<Counters>),
    /// Of a queue within this process, which carries whole connections: handshakes and framing included.
    Queue(Arc<Counters>),
}

impl Meter {
    fn received(&self, bytes: usize) {
        match self {
            Self::Streams(counters) => Counters::add_many(&counters.stream_bytes_received, bytes),
            Self::Queue(counters) => Counters::add_many(&counters.memory_bytes_received, bytes),
        }
    }

    fn sent(&self, bytes: usize) {
        match self {
            Self::Streams(counters) => Counters::add_many(&counters.stream_bytes_sent, bytes),
            Self::Queue(counters) => {
                Counters::add(&counters.memory_messages_sent);
                Counters::add_many(&counters.memory_bytes_sent, bytes);
            }
        }
    }
}

/// A connection, or a stream, that is metered.
pub(crate) struct Counted<T> {
    inner: T,
    meter: Meter,
}

impl<T> Counted<T> {
    pub(crate) const fn new(inner: T, meter: Meter) -> Self {
        Self { inner, meter }
    }
}

impl<M: StreamMuxer + Unpin> Counted<M> {
    fn stream(&self, stream: M::Substream) -> Counted<M::Substream> {
        Counted::new(stream, self.meter.clone())
    }
}

impl<M> StreamMuxer for Counted<M>
where
    M: StreamMuxer + Unpin,
    M::Substream: Unpin,
{
    type Substream = Counted<M::Substream>;
    type Error = M::Error;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        Pin::new(&mut self.inner).poll_inbound(cx).map_ok(|stream| self.stream(stream))
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        Pin::new(&mut self.inner).poll_outbound(cx).map_ok(|stream| self.stream(stream))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.inner).poll(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let Poll::Ready(Ok(bytes)) = &read {
            self.meter.received(*bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.sent(*bytes);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.sent(*bytes);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}
