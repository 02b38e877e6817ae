//! Connections over sockets: TCP and QUIC, and the bytes of all their streams counted as they pass. What encryption and
//! the wire add is not counted.

use std::sync::Arc;

use libp2p::{
    PeerId, Transport,
    core::{muxing::StreamMuxerBox, transport::Boxed, upgrade::Version},
    identity::Keypair,
    noise, quic, tcp, yamux,
};

use crate::{
    meter::{Counted, Meter},
    status::Counters,
};

/// A counter of what passes on streams: without what encryption and the wire add.
#[derive(Clone)]
struct StreamMeter(Arc<Counters>);

impl Meter for StreamMeter {
    fn received(&self, bytes: usize) {
        Counters::add_many(&self.0.stream_bytes_received, bytes);
    }

    fn sent(&self, bytes: usize) {
        Counters::add_many(&self.0.stream_bytes_sent, bytes);
    }
}

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
    StreamMuxerBox::new(Counted::new(muxer, StreamMeter(counters)))
}
