//! Forwards what a behaviour around another one leaves to that one.

/// Within an implementation of `NetworkBehaviour`: methods that are those of the behaviour in a field. `inbound in Around::new`
/// puts the handler of a connection into one around it; the same goes for `outbound`.
macro_rules! forward {
    ($field:tt: $($method:ident $(in $around:path)?),+) => {
        $($crate::forward::forward!(@$method $field $($around)?);)+
    };
    (@pending $field:tt) => {
        fn handle_pending_inbound_connection(
            &mut self,
            connection: libp2p::swarm::ConnectionId,
            local: &libp2p::Multiaddr,
            remote: &libp2p::Multiaddr,
        ) -> Result<(), libp2p::swarm::ConnectionDenied> {
            self.$field.handle_pending_inbound_connection(connection, local, remote)
        }

        fn handle_pending_outbound_connection(
            &mut self,
            connection: libp2p::swarm::ConnectionId,
            peer: Option<libp2p::PeerId>,
            addresses: &[libp2p::Multiaddr],
            role: libp2p::core::Endpoint,
        ) -> Result<Vec<libp2p::Multiaddr>, libp2p::swarm::ConnectionDenied> {
            self.$field.handle_pending_outbound_connection(connection, peer, addresses, role)
        }
    };
    (@inbound $field:tt $($around:path)?) => {
        fn handle_established_inbound_connection(
            &mut self,
            connection: libp2p::swarm::ConnectionId,
            peer: libp2p::PeerId,
            local: &libp2p::Multiaddr,
            remote: &libp2p::Multiaddr,
        ) -> Result<libp2p::swarm::THandler<Self>, libp2p::swarm::ConnectionDenied> {
            self.$field
                .handle_established_inbound_connection(connection, peer, local, remote)
                $(.map($around))?
        }
    };
    (@outbound $field:tt $($around:path)?) => {
        fn handle_established_outbound_connection(
            &mut self,
            connection: libp2p::swarm::ConnectionId,
            peer: libp2p::PeerId,
            address: &libp2p::Multiaddr,
            role: libp2p::core::Endpoint,
            port_use: libp2p::core::transport::PortUse,
        ) -> Result<libp2p::swarm::THandler<Self>, libp2p::swarm::ConnectionDenied> {
            self.$field
                .handle_established_outbound_connection(connection, peer, address, role, port_use)
                $(.map($around))?
        }
    };
    (@events $field:tt) => {
        fn on_swarm_event(&mut self, event: libp2p::swarm::FromSwarm<'_>) {
            self.$field.on_swarm_event(event);
        }

        $crate::forward::forward!(@handler_events $field);
    };
    (@handler_events $field:tt) => {
        fn on_connection_handler_event(
            &mut self,
            peer: libp2p::PeerId,
            connection: libp2p::swarm::ConnectionId,
            event: libp2p::swarm::THandlerOutEvent<Self>,
        ) {
            self.$field.on_connection_handler_event(peer, connection, event);
        }
    };
    (@poll $field:tt) => {
        fn poll(
            &mut self,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<libp2p::swarm::ToSwarm<Self::ToSwarm, libp2p::swarm::THandlerInEvent<Self>>> {
            self.$field.poll(context)
        }
    };
    // The library declares addresses external on the word of others; here a test decides that.
    (@poll_without_addresses $field:tt) => {
        fn poll(
            &mut self,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<libp2p::swarm::ToSwarm<Self::ToSwarm, libp2p::swarm::THandlerInEvent<Self>>> {
            use libp2p::swarm::ToSwarm::{ExternalAddrConfirmed, ExternalAddrExpired};
            loop {
                match self.$field.poll(context) {
                    std::task::Poll::Ready(ExternalAddrConfirmed(_) | ExternalAddrExpired(_)) => {}
                    other => return other,
                }
            }
        }
    };
}

pub(crate) use forward;
