//! The bytes of all streams of a connection, counted as they pass. What encryption and the wire add is not counted.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{AsyncRead, AsyncWrite};
use libp2p::{
    PeerId, Transport,
    core::{
        muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent},
        transport::Boxed,
        upgrade::Version,
    },
    identity::Keypair,
    noise, quic, tcp, yamux,
};

use crate::status::Counters;

/// TCP and QUIC, secured and multiplexed, and every stream counted.
pub(crate) fn sockets(
    keypair: &Keypair,
    yamux: yamux::Config,
    quic: quic::Config,
    counters: Arc<Counters>,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, noise::Error> {
    let tcp = tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(yamux)
        .boxed();
    let of_tcp = Arc::clone(&counters);
    let tcp = tcp.map(move |(peer, muxer), _| (peer, counted(muxer, of_tcp)));
    let quic = quic::tokio::Transport::new(quic)
        .map(move |(peer, muxer), _| (peer, counted(StreamMuxerBox::new(muxer), counters)));
    Ok(quic.or_transport(tcp).map(|either, _| either.into_inner()).boxed())
}

/// The same connection, counted. Boxed twice, which is little beside its encryption.
fn counted(muxer: StreamMuxerBox, counters: Arc<Counters>) -> StreamMuxerBox {
    StreamMuxerBox::new(Counted::new(muxer, counters))
}

/// A connection, or one of its streams, whose bytes are counted.
struct Counted<T> {
    inner: T,
    counters: Arc<Counters>,
}

impl<T> Counted<T> {
    const fn new(inner: T, counters: Arc<Counters>) -> Self {
        Self { inner, counters }
    }
}

impl<M: StreamMuxer + Unpin> Counted<M> {
    fn stream(&self, stream: M::Substream) -> Counted<M::Substream> {
        Counted::new(stream, Arc::clone(&self.counters))
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
            Counters::add_many(&self.counters.stream_bytes_received, *bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            Counters::add_many(&self.counters.stream_bytes_sent, *bytes);
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
            Counters::add_many(&self.counters.stream_bytes_sent, *bytes);
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
