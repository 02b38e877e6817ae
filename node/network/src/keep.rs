//! The time that a connection is kept without a stream: as long as somebody can be expected to want it again.
//!
//! The swarm closes what has been idle for [`NetworkLimits::contact_idle_max`](crate::NetworkLimits). Whoever the
//! directory asks on its way is such a contact: a look-up meets dozens, each costs memory on both sides, and none
//! is needed again soon. Others are kept beyond that:
//! 1. whom this node dialled on purpose — [`KeepAliveBehaviour::wants`], or beside a connection through a relay — and
//!    whoever dialled it: whether that was on purpose only the other side knows, and that side closes it when it was not;
//! 2. whom a call was made to or came from, by the handler of [`crate::streams`];
//! 3. neighbours in gossip, by its own handler.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse, upgrade::DeniedUpgrade},
    swarm::{
        ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
        NetworkBehaviour, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
        handler::ConnectionEvent,
    },
};

/// Keeps connections that were made on purpose.
#[derive(Debug)]
pub(crate) struct KeepAliveBehaviour {
    kept: Duration,
    /// Dials under way that were made on purpose.
    wanted: HashSet<ConnectionId>,
    /// The connections that came of them.
    made: HashSet<ConnectionId>,
    relayed: HashMap<ConnectionId, PeerId>,
}

impl KeepAliveBehaviour {
    /// Wanted connections are kept for `kept` from their beginning.
    pub(crate) fn new(kept: Duration) -> Self {
        Self { kept, wanted: HashSet::new(), made: HashSet::new(), relayed: HashMap::new() }
    }

    /// This dial, which is about to be made, is for more than one question of the directory.
    pub(crate) fn wants(&mut self, connection: ConnectionId) {
        self.wanted.insert(connection);
    }

    /// Returns whether this node made the connection, and on purpose.
    pub(crate) fn was_wanted(&self, connection: ConnectionId) -> bool {
        self.made.contains(&connection)
    }

    fn handler(&self, wanted: bool) -> KeepAliveHandler {
        KeepAliveHandler { until: wanted.then(|| Instant::now() + self.kept) }
    }
}

impl NetworkBehaviour for KeepAliveBehaviour {
    type ConnectionHandler = KeepAliveHandler;
    type ToSwarm = Infallible;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.handler(true))
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let overtakes = self.relayed.values().any(|relayed| *relayed == peer);
        let wanted = self.wanted.remove(&connection) || overtakes;
        if wanted {
            self.made.insert(connection);
        }
        Ok(self.handler(wanted))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(opened) if opened.endpoint.is_relayed() => {
                self.relayed.insert(opened.connection_id, opened.peer_id);
            }
            FromSwarm::DialFailure(failure) => {
                self.wanted.remove(&failure.connection_id);
                self.made.remove(&failure.connection_id);
            }
            FromSwarm::ConnectionClosed(closed) => {
                self.made.remove(&closed.connection_id);
                self.relayed.remove(&closed.connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

/// Says for how long; speaks no protocol. Asked whenever something happens on the connection, which is every
/// 15 s at the least, because of pings.
#[derive(Debug)]
pub(crate) struct KeepAliveHandler {
    until: Option<Instant>,
}

impl ConnectionHandler for KeepAliveHandler {
    type FromBehaviour = Infallible;
    type ToBehaviour = Infallible;
    type InboundProtocol = DeniedUpgrade;
    type OutboundProtocol = DeniedUpgrade;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = ();

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        SubstreamProtocol::new(DeniedUpgrade, ())
    }

    fn connection_keep_alive(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }

    fn on_behaviour_event(&mut self, event: Infallible) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ConnectionHandlerEvent<DeniedUpgrade, (), Infallible>> {
        Poll::Pending
    }

    fn on_connection_event(&mut self, _: ConnectionEvent<'_, DeniedUpgrade, DeniedUpgrade>) {}
}
