//! Asking the router for a forward by UPnP.
//!
//! The library declares an address external as soon as the router agrees. Routers promise much, and some sit
//! behind another one; so what it found is only reported, and a dial-back decides.

use std::task::{Context, Poll};

use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{ConnectionDenied, ConnectionId, NetworkBehaviour, THandler, THandlerInEvent, ToSwarm},
    upnp,
};

use crate::forward::forward;

/// UPnP without its claim to external addresses.
#[derive(Default)]
pub(crate) struct PortMappingBehaviour(upnp::tokio::Behaviour);

impl NetworkBehaviour for PortMappingBehaviour {
    type ConnectionHandler = <upnp::tokio::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = upnp::Event;

    forward!(0: inbound, events);

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

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        loop {
            match self.0.poll(context) {
                Poll::Ready(ToSwarm::ExternalAddrConfirmed(_) | ToSwarm::ExternalAddrExpired(_)) => {}
                other => return other,
            }
        }
    }
}
