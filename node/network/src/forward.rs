//! Forwards what a behaviour around another one leaves to that one.

/// Within an implementation of `NetworkBehaviour`: methods that are those of the behaviour in a field.
macro_rules! forward {
    ($field:tt: $($method:ident),+) => {
        $($crate::forward::forward!(@$method $field);)+
    };
    (@inbound $field:tt) => {
        fn handle_established_inbound_connection(
            &mut self,
            connection: libp2p::swarm::ConnectionId,
            peer: libp2p::PeerId,
            local: &libp2p::Multiaddr,
            remote: &libp2p::Multiaddr,
        ) -> Result<libp2p::swarm::THandler<Self>, libp2p::swarm::ConnectionDenied> {
            self.$field.handle_established_inbound_connection(connection, peer, local, remote)
        }
    };
    (@events $field:tt) => {
        fn on_swarm_event(&mut self, event: libp2p::swarm::FromSwarm<'_>) {
            self.$field.on_swarm_event(event);
        }

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
}

pub(crate) use forward;
