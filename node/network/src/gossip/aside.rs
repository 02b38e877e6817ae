//! Gossip that keeps no connection for its own sake. Its streams stay open for as long as their connection, so by
//! libp2p's count no connection would ever be idle. Here they do not count: gossip keeps its neighbours by saying
//! so, and everybody else is kept or closed for other reasons (see [`crate::keep`]).

use std::{
    ops::{Deref, DerefMut},
    task::{Context, Poll},
};

use futures::future::Either;
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    gossipsub::{self, IdentityTransform, WhitelistSubscriptionFilter},
    swarm::{
        ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
        NetworkBehaviour, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
        handler::ConnectionEvent,
    },
};

type Gossipsub = gossipsub::Behaviour<IdentityTransform, WhitelistSubscriptionFilter>;
type Inner = <Gossipsub as NetworkBehaviour>::ConnectionHandler;

/// gossipsub, but for what its streams mean for a connection.
pub(crate) struct Behaviour(Gossipsub);

impl From<Gossipsub> for Behaviour {
    fn from(gossipsub: Gossipsub) -> Self {
        Self(gossipsub)
    }
}

impl Deref for Behaviour {
    type Target = Gossipsub;

    fn deref(&self) -> &Gossipsub {
        &self.0
    }
}

impl DerefMut for Behaviour {
    fn deref_mut(&mut self) -> &mut Gossipsub {
        &mut self.0
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = gossipsub::Event;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.0.handle_established_inbound_connection(connection, peer, local, remote).map(Handler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.0.handle_established_outbound_connection(connection, peer, address, role, port).map(Handler)
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

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        self.0.poll(cx)
    }
}

/// gossipsub's part of one connection.
pub(crate) struct Handler(Inner);

type Event<'a> = ConnectionEvent<
    'a,
    <Inner as ConnectionHandler>::InboundProtocol,
    <Inner as ConnectionHandler>::OutboundProtocol,
    <Inner as ConnectionHandler>::InboundOpenInfo,
    <Inner as ConnectionHandler>::OutboundOpenInfo,
>;
type Action = ConnectionHandlerEvent<
    <Inner as ConnectionHandler>::OutboundProtocol,
    <Inner as ConnectionHandler>::OutboundOpenInfo,
    <Inner as ConnectionHandler>::ToBehaviour,
>;

impl ConnectionHandler for Handler {
    type FromBehaviour = <Inner as ConnectionHandler>::FromBehaviour;
    type ToBehaviour = <Inner as ConnectionHandler>::ToBehaviour;
    type InboundProtocol = <Inner as ConnectionHandler>::InboundProtocol;
    type OutboundProtocol = <Inner as ConnectionHandler>::OutboundProtocol;
    type InboundOpenInfo = <Inner as ConnectionHandler>::InboundOpenInfo;
    type OutboundOpenInfo = <Inner as ConnectionHandler>::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol, Self::InboundOpenInfo> {
        self.0.listen_protocol()
    }

    /// While the peer is a neighbour.
    fn connection_keep_alive(&self) -> bool {
        self.0.connection_keep_alive()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Action> {
        self.0.poll(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.0.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: Self::FromBehaviour) {
        self.0.on_behaviour_event(event);
    }

    fn on_connection_event(&mut self, mut event: Event<'_>) {
        match &mut event {
            ConnectionEvent::FullyNegotiatedInbound(opened) => {
                if let Either::Left((stream, _)) = &mut opened.protocol {
                    stream.ignore_for_keep_alive();
                }
            }
            ConnectionEvent::FullyNegotiatedOutbound(opened) => opened.protocol.0.ignore_for_keep_alive(),
            _ => {}
        }
        self.0.on_connection_event(event);
    }
}
