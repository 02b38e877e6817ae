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

use self::handler::{ServedProtocol, StreamsHandler};
use crate::{
    addresses::circuit,
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

/// A behaviour's word to the handler of one connection.
#[derive(Debug)]
pub(crate) enum Order {
    Open(Opening),
    /// Take streams from now on, or take none.
    Serve(bool),
}

#[derive(Clone, Copy, Debug)]
struct OpenConnection {
    connection: ConnectionId,
    is_relayed: bool,
}

/// Opens and accepts the streams of one protocol.
pub(crate) struct StreamsBehaviour {
    protocol: StreamProtocol,
    accept: Accept,
    usage: Usage,
    kept: Duration,
    takes_turns: bool,
    serves: bool,
    /// The newest come last.
    connections: HashMap<PeerId, Vec<OpenConnection>>,
    orders: VecDeque<(PeerId, ConnectionId, Order)>,
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
            serves: true,
            connections: HashMap::new(),
            orders: VecDeque::new(),
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

    /// Opens a stream on the newest connection to `peer` that needs no relay, or on the newest of all. Without one,
    /// `opening` is dropped.
    pub(crate) fn open(&mut self, peer: PeerId, opening: Opening) {
        let Some(all) = self.connections.get(&peer) else { return };
        let direct = all.iter().rev().find(|open| !open.is_relayed);
        if let Some(best) = direct.or_else(|| all.last()) {
            self.orders.push_back((peer, best.connection, Order::Open(opening)));
        }
    }

    /// Takes streams from now on, or takes none; identify tells peers of either.
    pub(crate) fn serve(&mut self, serves: bool) {
        if std::mem::replace(&mut self.serves, serves) == serves {
            return;
        }
        let open = self
            .connections
            .iter()
            .flat_map(|(peer, all)| all.iter().map(move |one| (*peer, one.connection)));
        self.orders.extend(open.map(|(peer, connection)| (peer, connection, Order::Serve(serves))));
    }

    /// Returns whether it takes streams.
    pub(crate) const fn serves(&self) -> bool {
        self.serves
    }

    fn handler(
        &self,
        connection: ConnectionId,
        peer: &PeerId,
        way: &Multiaddr,
    ) -> Result<StreamsHandler, ConnectionDenied> {
        let wallet = identity::wallet(peer).ok_or_else(|| ConnectionDenied::new(crate::gate::NoWallet))?;
        let source = ConnectionStreams::new(connection, way, self.usage.clone(), self.takes_turns);
        let served = ServedProtocol { protocol: self.protocol.clone(), serves: self.serves };
        Ok(StreamsHandler::new(wallet, source, served, Arc::clone(&self.accept), self.kept))
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
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.handler(connection, &peer, circuit::came_from(local, remote))
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
                let is_relayed = event.endpoint.is_relayed();
                let open = OpenConnection { connection: event.connection_id, is_relayed };
                self.connections.entry(event.peer_id).or_default().push(open);
            }
            FromSwarm::ConnectionClosed(event) => {
                if let Some(connections) = self.connections.get_mut(&event.peer_id) {
                    connections.retain(|open| open.connection != event.connection_id);
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
        match self.orders.pop_front() {
            Some((peer_id, connection, event)) => Poll::Ready(ToSwarm::NotifyHandler {
                peer_id,
                handler: NotifyHandler::One(connection),
                event,
            }),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;
    use libp2p::{
        core::{ConnectedPoint, UpgradeInfo},
        swarm::{ConnectionHandler, behaviour::ConnectionEstablished},
    };

    use super::*;

    #[test]
    fn open_connections_hear_of_it_when_a_protocol_is_served_or_not() {
        let protocol = StreamProtocol::new("/test/1");
        let mut streams = StreamsBehaviour::new(protocol, Arc::new(|_, _| {}), Usage::default());
        streams.serve(false);
        let peer = identity::peer_id(&SecretKey::from_bytes(&[7; 32]).unwrap().public_key());
        let (connection_id, peer_id) = (ConnectionId::new_unchecked(1), peer);
        let [local_addr, send_back_addr]: [Multiaddr; 2] =
            ["/ip4/9.9.9.9/tcp/1", "/ip4/9.9.9.8/tcp/1"].map(|address| address.parse().unwrap());
        let handler =
            streams.handle_established_inbound_connection(connection_id, peer, &local_addr, &send_back_addr);
        let mut handler = handler.unwrap();
        let endpoint = ConnectedPoint::Listener { local_addr, send_back_addr };
        streams.on_swarm_event(FromSwarm::ConnectionEstablished(ConnectionEstablished {
            peer_id,
            connection_id,
            endpoint: &endpoint,
            failed_addresses: &[],
            other_established: 0,
        }));
        let spoken = |handler: &StreamsHandler| handler.listen_protocol().upgrade().protocol_info().count();
        assert_eq!(spoken(&handler), 0);
        for (serves, count) in [(true, 1), (false, 0)] {
            streams.serve(serves);
            streams.serve(serves);
            let mut context = Context::from_waker(std::task::Waker::noop());
            let Poll::Ready(ToSwarm::NotifyHandler { event, .. }) = streams.poll(&mut context) else {
                panic!("no order for the connection");
            };
            assert!(streams.poll(&mut context).is_pending(), "nothing is said twice");
            handler.on_behaviour_event(event);
            assert_eq!(spoken(&handler), count);
        }
    }
}
