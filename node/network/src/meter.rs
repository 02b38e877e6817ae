//! Connections and streams whose bytes are counted as they pass.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};

/// A counter of bytes. Cheap to clone.
pub(crate) trait Meter: Clone + Unpin {
    fn received(&self, bytes: usize);
    fn sent(&self, bytes: usize);
}

/// A connection, or a stream, that is metered.
pub(crate) struct Counted<T, M> {
    inner: T,
    meter: M,
}

impl<T, M> Counted<T, M> {
    pub(crate) const fn new(inner: T, meter: M) -> Self {
        Self { inner, meter }
    }
}

impl<T: StreamMuxer + Unpin, M: Meter> Counted<T, M> {
    fn stream(&self, stream: T::Substream) -> Counted<T::Substream, M> {
        Counted::new(stream, self.meter.clone())
    }
}

impl<T, M> StreamMuxer for Counted<T, M>
where
    T: StreamMuxer + Unpin,
    T::Substream: Unpin,
    M: Meter,
{
    type Substream = Counted<T::Substream, M>;
    type Error = T::Error;

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

impl<T: AsyncRead + Unpin, M: Meter> AsyncRead for Counted<T, M> {
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

impl<T: AsyncWrite + Unpin, M: Meter> AsyncWrite for Counted<T, M> {
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
