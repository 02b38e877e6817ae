//! Asking the router for a forward by UPnP.
//!
//! The library declares an address external as soon as the router agrees. Routers promise much, and some sit
//! behind another one; so what it found is only reported, and a dial-back decides.

use libp2p::{swarm::NetworkBehaviour, upnp};

use crate::forward::forward;

/// UPnP without its claim to external addresses.
#[derive(Default)]
pub(crate) struct PortMappingBehaviour(upnp::tokio::Behaviour);

impl NetworkBehaviour for PortMappingBehaviour {
    type ConnectionHandler = <upnp::tokio::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = upnp::Event;

    forward!(0: inbound, outbound, events, poll_without_addresses);
}
