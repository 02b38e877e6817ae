//! Connections between the nodes of one process, `/memory/<n>`: real noise and yamux over queues instead of
//! sockets, so that a simulation needs neither ports nor a kernel and can count every byte. A build has them with the feature
//! `memory` alone.

use std::sync::Arc;

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

use crate::{
    meter::{Counted, Meter},
    outbound::Connected,
    status::Counters,
};

/// A counter of what passes in queues, which carry whole connections: handshakes and framing included.
#[derive(Clone)]
struct QueueMeter(Arc<Counters>);

impl Meter for QueueMeter {
    fn received(&self, bytes: usize) {
        Counters::add_many(&self.0.memory_bytes_received, bytes);
    }

    fn sent(&self, bytes: usize) {
        Counters::add(&self.0.memory_messages_sent);
        Counters::add_many(&self.0.memory_bytes_sent, bytes);
    }
}

/// These sockets and, where private addresses are allowed, queues: a stranger on the public network has no business in this
/// process.
pub(crate) fn beside(
    sockets: Boxed<Connected>,
    keypair: &Keypair,
    yamux: yamux::Config,
    allow_private: bool,
    counters: Arc<Counters>,
) -> Result<Boxed<Connected>, noise::Error> {
    let queues = transport(keypair, yamux, allow_private, counters)?;
    Ok(sockets.or_transport(queues).map(|either, _| either.into_inner()).boxed())
}

/// The queues, secured and multiplexed as TCP is.
fn transport(
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
    let counted = queues.map(move |queue, _| Counted::new(queue, QueueMeter(counters)));
    Ok(counted
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(yamux)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed())
}
