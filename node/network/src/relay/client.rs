//! The side that uses relays: connections through them, and places at them.
//!
//! The library declares an address external as soon as a relay gives a place. That would make the node a server of the
//! directory, and a relay of others, which it can be to nobody; and a relay that lies gives places as well. So nothing is
//! declared: a test decides what is published, and none of it is an address of the node itself.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use libp2p::{
    Multiaddr, PeerId, Transport, TransportError,
    core::{
        Endpoint,
        muxing::StreamMuxerBox,
        transport::{Boxed, DialOpts, ListenerId, PortUse, TransportEvent},
        upgrade::Version,
    },
    identity::Keypair,
    noise, relay,
    swarm::{ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler},
    yamux,
};

use super::contained_handler::ContainedHandler;
use crate::{forward::forward, names::Led};

/// The library's client, without its claim to external addresses.
pub(crate) struct RelayClientBehaviour {
    inner: relay::client::Behaviour,
    led: Led,
}

farthing_os::hidden!(RelayClientBehaviour);

/// A transport for addresses through relays, secured and multiplexed as TCP is, and the behaviour that it needs.
pub(crate) fn circuits(
    keypair: &Keypair,
    yamux: yamux::Config,
    led: Led,
) -> Result<(Boxed<(PeerId, StreamMuxerBox)>, RelayClientBehaviour), noise::Error> {
    let (transport, inner) = relay::client::new(keypair.public().to_peer_id());
    let transport = Unnamed(transport)
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(keypair)?)
        .multiplex(yamux)
        .boxed();
    Ok((transport, RelayClientBehaviour { inner, led }))
}

/// The library's transport, without the addresses that relays say the node listens on: a relay may name any, and others each time
/// that a place is renewed, and the swarm keeps all of them and tells every peer.
struct Unnamed(relay::client::Transport);

impl Transport for Unnamed {
    type Output = <relay::client::Transport as Transport>::Output;
    type Error = <relay::client::Transport as Transport>::Error;
    type ListenerUpgrade = <relay::client::Transport as Transport>::ListenerUpgrade;
    type Dial = <relay::client::Transport as Transport>::Dial;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<Self::Error>> {
        self.0.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.0.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<Self::Error>> {
        self.0.dial(address, options)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, Self::Error>> {
        loop {
            match Pin::new(&mut self.0).poll(context) {
                Poll::Ready(TransportEvent::NewAddress { .. }) => {}
                other => return other,
            }
        }
    }
}

impl NetworkBehaviour for RelayClientBehaviour {
    type ConnectionHandler =
        ContainedHandler<<relay::client::Behaviour as NetworkBehaviour>::ConnectionHandler>;
    type ToSwarm = relay::client::Event;

    forward!(inner: inbound in ContainedHandler::new, handler_events, poll_without_addresses);

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port_use: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        // What comes through the relay is counted as from where it is, and a name says nothing of that.
        let reached = self.led.reached(&peer, address);
        let handler =
            self.inner.handle_established_outbound_connection(connection, peer, &reached, role, port_use);
        handler.map(ContainedHandler::new)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        // Told of the end of a listener, the library forgets the place, and ends the process when the relay's answer to a
        // request for it comes afterwards. The place ends with the connection, or when nobody renews it.
        if !matches!(event, FromSwarm::ListenerClosed(_)) {
            self.inner.on_swarm_event(event);
        }
    }
}
