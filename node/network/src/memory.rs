//! Connections between the nodes of one process, `/memory/<n>`: real noise and yamux over queues instead of
//! sockets, so that a simulation needs neither ports nor a kernel and can count every byte.

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
        muxing::StreamMuxerBox,
        transport::{Boxed, MemoryTransport, OptionalTransport},
        upgrade::Version,
    },
    identity::Keypair,
    noise, yamux,
};

use crate::status::Counters;

/// The transport, secured and multiplexed as TCP is. It exists only where private addresses are allowed: a
/// stranger on the public network has no business in this process.
pub(crate) fn transport(
    keypair: &Keypair,
    yamux: yamux::Config,
    allow_private: bool,
    counters: Arc<Counters>,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, noise::Error> {
    let queues = if allow_private {
        OptionalTransport::some(MemoryTransport::new())
    } else {
        OptionalTransport::none()
    };
    let counted = queues.map(move |queue, _| Counted { inner: queue, counters });
    Ok(counted
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(yamux)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed())
}

/// A stream whose bytes are counted as they pass, handshakes and framing included.
struct Counted<S> {
    inner: S,
    counters: Arc<Counters>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let Poll::Ready(Ok(bytes)) = &read {
            Counters::add_many(&self.counters.memory_bytes_received, *bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            Counters::add(&self.counters.memory_messages_sent);
            Counters::add_many(&self.counters.memory_bytes_sent, *bytes);
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
