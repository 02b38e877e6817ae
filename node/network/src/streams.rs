//! Streams of one protocol: opened for whoever asks, accepted by a function. No bytes pass through here.
//!
//! One protocol name per behaviour, and but for `call/2` one exchange per stream. Because the name is sent together with the
//! first bytes (multistream V1Lazy), a stream is open at once and an exchange takes one round trip. The
//! stream then belongs to the task that uses it, so a slow body never holds up the swarm.

mod handler;

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use farthing_protocol::Address;
use libp2p::{
    Multiaddr, PeerId, StreamProtocol,
    core::{Endpoint, transport::PortUse},
    swarm::{
        ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, THandler,
        THandlerInEvent, THandlerOutEvent, ToSwarm,
    },
};
use tokio::sync::oneshot;

use self::handler::StreamsHandler;
use crate::{
    command::NoStream,
    identity,
    line::{ConnectionStreams, Line},
    usage::Usage,
};

/// The handler of a stream that a peer opens. Must return at once.
pub(crate) type Accept = Arc<dyn Fn(Address, Line) + Send + Sync>;

/// A request for a stream. Dropped when the connection goes away first.
#[derive(Debug)]
pub(crate) struct Opening(pub(crate) oneshot::Sender<Result<Line, NoStream>>);

/// Opens and accepts the streams of one protocol.
pub(crate) struct StreamsBehaviour {
    protocol: StreamProtocol,
    accept: Accept,
    usage: Usage,
    kept: Duration,
    takes_turns: bool,
    connections: HashMap<PeerId, Vec<ConnectionId>>,
    openings: VecDeque<(PeerId, ConnectionId, Opening)>,
}

impl StreamsBehaviour {
    /// Every stream is noted in `usage`.
    pub(crate) fn new(protocol: StreamProtocol, accept: Accept, usage: Usage) -> Self {
        Self {
            protocol,
            accept,
            usage,
            kept: Duration::ZERO,
            takes_turns: false,
            connections: HashMap::new(),
            openings: VecDeque::new(),
        }
    }

    /// Keeps a connection for so long after a stream of this protocol was used on it.
    pub(crate) fn keeping(self, kept: Duration) -> Self {
        Self { kept, ..self }
    }

    /// Its streams carry one exchange after the other.
    pub(crate) fn taking_turns(self) -> Self {
        Self { takes_turns: true, ..self }
    }

    /// Opens a stream on the oldest connection to `peer`. Without one, `opening` is dropped.
    pub(crate) fn open(&mut self, peer: PeerId, opening: Opening) {
        if let Some(&connection) = self.connections.get(&peer).and_then(|all| all.first()) {
            self.openings.push_back((peer, connection, opening));
        }
    }

    fn handler(
        &self,
        connection: ConnectionId,
        peer: &PeerId,
        remote: &Multiaddr,
    ) -> Result<StreamsHandler, ConnectionDenied> {
        let wallet = identity::wallet(peer).ok_or_else(|| ConnectionDenied::new(crate::gate::NoWallet))?;
        let source = ConnectionStreams::new(connection, remote, self.usage.clone(), self.takes_turns);
        Ok(StreamsHandler::new(wallet, source, self.protocol.clone(), Arc::clone(&self.accept), self.kept))
    }
}

farthing_os::hidden!(StreamsBehaviour { protocol });

impl NetworkBehaviour for StreamsBehaviour {
    type ConnectionHandler = StreamsHandler;
    type ToSwarm = Infallible;

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.handler(connection, &peer, remote)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.handler(connection, &peer, remote)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(event) => {
                self.connections.entry(event.peer_id).or_default().push(event.connection_id);
            }
            FromSwarm::ConnectionClosed(event) => {
                if let Some(connections) = self.connections.get_mut(&event.peer_id) {
                    connections.retain(|id| *id != event.connection_id);
                    if connections.is_empty() {
                        self.connections.remove(&event.peer_id);
                    }
                }
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        match self.openings.pop_front() {
            Some((peer_id, connection, event)) => Poll::Ready(ToSwarm::NotifyHandler {
                peer_id,
                handler: NotifyHandler::One(connection),
                event,
            }),
            None => Poll::Pending,
        }
    }
}
