//! Gossip that keeps no connection for its own sake, and reads no faster than it may (see [`crate::pace`]).
//!
//! Its streams stay open for as long as their connection, so by libp2p's count no connection would ever be idle. Here they
//! do not count: gossip keeps its neighbours by saying so, and everybody else is kept or closed for other reasons (see
//! [`crate::keep`]).

use std::{
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

use futures::future::Either;
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    gossipsub::{self, IdentityTransform, WhitelistSubscriptionFilter},
    swarm::{
        ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, NetworkBehaviour,
        SubstreamProtocol, THandler, handler::ConnectionEvent,
    },
};
use tokio::time::Sleep;

use crate::{
    addresses::{self, circuit},
    forward::forward,
    identity,
    neighbour_origin::NeighbourOrigin,
    pace::Pace,
};

type Gossipsub = gossipsub::Behaviour<IdentityTransform, WhitelistSubscriptionFilter>;
type Inner = <Gossipsub as NetworkBehaviour>::ConnectionHandler;

/// gossipsub, but for what its streams mean for a connection, and for how fast they are read.
pub(crate) struct GossipBehaviour {
    inner: Gossipsub,
    frames: Pace,
}

impl GossipBehaviour {
    /// gossipsub's part of a connection, with what it is counted by.
    fn handler(
        &self,
        peer: &PeerId,
        remote: &Multiaddr,
        inner: Inner,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let wallet = identity::wallet(peer).ok_or_else(|| ConnectionDenied::new(crate::gate::NoWallet))?;
        let origin = NeighbourOrigin::of(wallet, addresses::range(remote));
        Ok(GossipHandler { inner, pace: ReadPace { origin, frames: self.frames.clone(), wait: None } })
    }
}

impl From<Gossipsub> for GossipBehaviour {
    fn from(inner: Gossipsub) -> Self {
        Self { inner, frames: Pace::default() }
    }
}

impl Deref for GossipBehaviour {
    type Target = Gossipsub;

    fn deref(&self) -> &Gossipsub {
        &self.inner
    }
}

impl DerefMut for GossipBehaviour {
    fn deref_mut(&mut self) -> &mut Gossipsub {
        &mut self.inner
    }
}

impl NetworkBehaviour for GossipBehaviour {
    type ConnectionHandler = GossipHandler;
    type ToSwarm = gossipsub::Event;

    forward!(inner: events, poll);

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = self.inner.handle_established_inbound_connection(connection, peer, local, remote)?;
        self.handler(&peer, circuit::came_from(local, remote), inner)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner =
            self.inner.handle_established_outbound_connection(connection, peer, address, role, port)?;
        self.handler(&peer, address, inner)
    }
}

/// gossipsub's part of one connection.
pub(crate) struct GossipHandler {
    inner: Inner,
    pace: ReadPace,
}

/// The pace of reading: the time at which the next frame may be read.
struct ReadPace {
    origin: NeighbourOrigin,
    frames: Pace,
    wait: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        Poll::Ready(())
    }

    fn read_one(&mut self) {
        let wait = self.frames.spend(self.origin, Instant::now());
        self.wait = (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait)));
    }
}

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

impl ConnectionHandler for GossipHandler {
    type FromBehaviour = <Inner as ConnectionHandler>::FromBehaviour;
    type ToBehaviour = <Inner as ConnectionHandler>::ToBehaviour;
    type InboundProtocol = <Inner as ConnectionHandler>::InboundProtocol;
    type OutboundProtocol = <Inner as ConnectionHandler>::OutboundProtocol;
    type InboundOpenInfo = <Inner as ConnectionHandler>::InboundOpenInfo;
    type OutboundOpenInfo = <Inner as ConnectionHandler>::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol, Self::InboundOpenInfo> {
        self.inner.listen_protocol()
    }

    /// While the peer is a neighbour.
    fn connection_keep_alive(&self) -> bool {
        self.inner.connection_keep_alive()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Action> {
        // Nothing is read meanwhile, so that the neighbour's own line makes it wait.
        ready!(self.pace.poll_turn(cx));
        let action = self.inner.poll(cx);
        // The library tells its behaviour of frames, of each once, and of little else.
        if matches!(action, Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(_))) {
            self.pace.read_one();
        }
        action
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.inner.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: Self::FromBehaviour) {
        self.inner.on_behaviour_event(event);
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
        self.inner.on_connection_event(event);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use farthing_protocol::{SecretKey, wire::NetworkName};

    use super::*;
    use crate::NetworkConfig;

    #[test]
    fn all_who_come_through_one_relay_share_its_frames() {
        let key = |n| SecretKey::from_bytes(&[n; 32]).unwrap();
        let peer = |n| identity::peer_id(&key(n).public_key());
        let network = NetworkName::new("local-test").unwrap();
        let topics = crate::gossip::Topics::new(&network);
        let mut gossip = crate::gossip::behaviour(&NetworkConfig::new(key(1), network), &topics).unwrap();
        let gossip = gossip.as_mut().expect("gossip is on");
        let relay: Multiaddr = format!("/ip4/9.9.9.9/tcp/1/p2p/{}/p2p-circuit", peer(2)).parse().unwrap();
        for n in 3..5 {
            let remote = format!("/p2p/{}", peer(n)).parse().unwrap();
            let connection = ConnectionId::new_unchecked(n.into());
            let handler = gossip.handle_established_inbound_connection(connection, peer(n), &relay, &remote);
            let relays: IpAddr = [9, 9, 9, 9].into();
            let origin = handler.ok().map(|handler| handler.pace.origin);
            assert_eq!(origin, Some(NeighbourOrigin::Range(farthing_bounds::range(relays))));
        }
    }
}
