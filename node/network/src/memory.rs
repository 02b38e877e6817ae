//! Connections between the nodes of one process, `/memory/<n>`: real noise and yamux over queues instead of
//! sockets, so that a simulation needs neither ports nor a kernel and can count every byte.

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
    counted::{Counted, Meter},
    status::Counters,
};

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
    let counted = queues.map(move |queue, _| Counted::new(queue, Meter::Queue(counters)));
    Ok(counted
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(yamux)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed())
}
