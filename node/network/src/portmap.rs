//! Asking the router for a forward by UPnP.
//!
//! The library declares an address external as soon as the router agrees. Routers promise much, and some sit
//! behind another one; so what it found is only reported, and a dial-back decides.

use std::task::{Context, Poll};

use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{
        ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
        THandlerOutEvent, ToSwarm,
    },
    upnp,
};

/// UPnP without its claim to external addresses.
#[derive(Default)]
pub(crate) struct PortMappingBehaviour(upnp::tokio::Behaviour);

impl NetworkBehaviour for PortMappingBehaviour {
    type ConnectionHandler = <upnp::tokio::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = upnp::Event;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.0.handle_established_inbound_connection(connection, peer, local, remote)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port_use: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.0.handle_established_outbound_connection(connection, peer, address, role, port_use)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.0.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.0.on_connection_handler_event(peer, connection, event);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        loop {
            match self.0.poll(context) {
                Poll::Ready(ToSwarm::ExternalAddrConfirmed(_) | ToSwarm::ExternalAddrExpired(_)) => {}
                other => return other,
            }
        }
    }
}
