//! This node as a relay of others: the library's, with bounds of our own and only while the node can be reached.
//!
//! The library offers itself as long as the swarm has external addresses, and tells guests of these. So it hears of them
//! where the node may be a relay, and of none where not.

use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use libp2p::{
    Multiaddr, PeerId, relay,
    swarm::{
        ConnectionClosed, ConnectionId, FromSwarm, NetworkBehaviour, THandlerInEvent, THandlerOutEvent,
        ToSwarm, behaviour::ConnectionEstablished, derive_prelude::Either,
    },
};
use parking_lot::Mutex;

use super::guests::Guests;
use crate::{
    RelayConfig, addresses,
    forward::forward,
    partners::Partners,
    status::Counters,
    usage::{InUse, Usage},
};

/// A connection beside each peer's own ones, which the library is told of and nobody has. The library forgets a connection whose
/// place runs out, with the last one the peer, and ends the process where the answer to a request to renew the place was on its
/// way: the guest chooses both moments.
fn placeholder() -> ConnectionId {
    ConnectionId::new_unchecked(usize::MAX)
}

/// Names what the library's handler of a direct connection tells, which the library itself names to nobody.
trait DirectEvents {
    type Events;
}

impl<L, R> DirectEvents for Either<L, R> {
    type Events = L;
}

type ServerTold = <THandlerOutEvent<relay::Behaviour> as DirectEvents>::Events;

/// The library's relay, bounded.
pub(crate) struct RelayServerBehaviour {
    inner: relay::Behaviour,
    serves: bool,
    guests: Arc<Mutex<Guests>>,
    /// The peer that the circuit leads to which is being decided on. The library asks for a place in the name of the peer
    /// that wants it alone.
    destination: Arc<Mutex<Option<PeerId>>>,
    usage: Usage,
    counters: Arc<Counters>,
    connections: HashMap<PeerId, Vec<ConnectionId>>,
    /// Circuits under way. What carries one is in use, and not the first to make room.
    circuits: Vec<((PeerId, PeerId), Vec<InUse>)>,
}

impl RelayServerBehaviour {
    pub(crate) fn new(
        own: PeerId,
        config: &RelayConfig,
        partners: Partners,
        usage: Usage,
        counters: Arc<Counters>,
    ) -> Self {
        let guests = Arc::new(Mutex::new(Guests::new(config.clone(), partners)));
        let reserving = Arc::clone(&guests);
        let reserve: Box<dyn relay::RateLimiter> =
            Box::new(move |peer: PeerId, address: &Multiaddr, now: Instant| {
                reserving.lock().reserve(peer, addresses::range(address), now)
            });
        let destination = Arc::<Mutex<Option<PeerId>>>::default();
        let (asking, led_to) = (Arc::clone(&guests), Arc::clone(&destination));
        let ask: Box<dyn relay::RateLimiter> =
            Box::new(move |peer: PeerId, address: &Multiaddr, now: Instant| {
                let to = led_to.lock().take();
                to.is_some_and(|to| asking.lock().ask(peer, to, addresses::range(address), now))
            });
        let library = relay::Config {
            max_reservations: 2 * config.reservations_max,
            max_reservations_per_peer: 1,
            reservation_duration: config.reservation_max,
            reservation_rate_limiters: vec![reserve],
            max_circuits: 2 * config.circuits_max,
            max_circuits_per_peer: config.circuits_max,
            max_circuit_duration: config.circuit_max,
            max_circuit_bytes: config.circuit_bytes_max,
            circuit_src_rate_limiters: vec![ask],
        };
        Self {
            inner: relay::Behaviour::new(own, library),
            serves: config.serves,
            guests,
            destination,
            usage,
            counters,
            connections: HashMap::new(),
            circuits: Vec::new(),
        }
    }

    fn note(&mut self, event: &relay::Event) {
        match event {
            relay::Event::ReservationReqAccepted { renewed: false, .. } => {
                Counters::add(&self.counters.relay_reservations);
            }
            relay::Event::ReservationReqDenied { .. } => Counters::add(&self.counters.relay_refusals),
            relay::Event::ReservationTimedOut { src_peer_id } => self.guests.lock().leave(src_peer_id),
            relay::Event::CircuitReqAccepted { src_peer_id, dst_peer_id } => {
                Counters::add(&self.counters.relay_circuits);
                self.guests.lock().begin(*src_peer_id, *dst_peer_id, Instant::now());
                let ends = [src_peer_id, dst_peer_id];
                let connections = ends.into_iter().filter_map(|end| self.connections.get(end)).flatten();
                let uses = connections.map(|connection| self.usage.begin(*connection)).collect();
                self.circuits.push(((*src_peer_id, *dst_peer_id), uses));
            }
            relay::Event::CircuitReqDenied { src_peer_id, dst_peer_id, status } => {
                Counters::add(&self.counters.relay_refusals);
                // What exceeds a bound was not counted, and would end another one that waits.
                if !matches!(status, relay::StatusCode::ResourceLimitExceeded) {
                    self.guests.lock().end(*src_peer_id, *dst_peer_id, false);
                }
            }
            relay::Event::CircuitClosed { src_peer_id, dst_peer_id, .. } => {
                self.guests.lock().end(*src_peer_id, *dst_peer_id, true);
                let ends = (*src_peer_id, *dst_peer_id);
                if let Some(at) = self.circuits.iter().position(|(circuit, _)| *circuit == ends) {
                    self.circuits.swap_remove(at);
                    Counters::add(&self.counters.relay_circuits_ended);
                }
            }
            _ => {}
        }
    }

    fn track(&mut self, event: &FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(opened) => {
                self.connections.entry(opened.peer_id).or_default().push(opened.connection_id);
            }
            FromSwarm::ConnectionClosed(closed) => {
                if let Some(connections) = self.connections.get_mut(&closed.peer_id) {
                    connections.retain(|connection| *connection != closed.connection_id);
                    if connections.is_empty() {
                        self.connections.remove(&closed.peer_id);
                        self.guests.lock().leave(&closed.peer_id);
                    }
                }
            }
            _ => {}
        }
    }
}

farthing_os::hidden!(RelayServerBehaviour { serves });

impl NetworkBehaviour for RelayServerBehaviour {
    type ConnectionHandler = <relay::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = relay::Event;

    forward!(inner: inbound, outbound);

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.track(&event);
        match event {
            // The library counts a connection through a relay among those that it tells its status, and that one's handler
            // takes no such word: the process would end.
            FromSwarm::ConnectionEstablished(opened) if opened.endpoint.is_relayed() => return,
            FromSwarm::ConnectionEstablished(opened) => {
                let connection_id = placeholder();
                let opened = ConnectionEstablished { connection_id, ..opened };
                self.inner.on_swarm_event(FromSwarm::ConnectionEstablished(opened));
            }
            FromSwarm::ConnectionClosed(closed) => {
                if closed.remaining_established == 0 {
                    let connection_id = placeholder();
                    let closed = ConnectionClosed { connection_id, ..closed };
                    self.inner.on_swarm_event(FromSwarm::ConnectionClosed(closed));
                }
                if closed.endpoint.is_relayed() {
                    return;
                }
            }
            _ => {}
        }
        let is_of_addresses =
            matches!(event, FromSwarm::ExternalAddrConfirmed(_) | FromSwarm::ExternalAddrExpired(_));
        if self.serves || !is_of_addresses {
            self.inner.on_swarm_event(event);
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        if let Either::Left(ServerTold::CircuitReqReceived { inbound_circuit_req, .. }) = &event {
            *self.destination.lock() = Some(inbound_circuit_req.dst());
        }
        self.inner.on_connection_handler_event(peer, connection, event);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        let polled = self.inner.poll(context);
        if let Poll::Ready(ToSwarm::GenerateEvent(event)) = &polled {
            self.note(event);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use libp2p::core::ConnectedPoint;

    use super::*;

    fn server() -> RelayServerBehaviour {
        let (own, config) = (PeerId::random(), RelayConfig::default());
        RelayServerBehaviour::new(own, &config, Partners::default(), Usage::default(), Arc::default())
    }

    #[test]
    fn a_guest_that_renews_while_its_place_runs_out_does_not_end_the_process() {
        let (mut server, peer_id) = (server(), PeerId::random());
        let connection_id = ConnectionId::new_unchecked(1);
        let [local_addr, send_back_addr]: [Multiaddr; 2] =
            ["/ip4/9.9.9.9/tcp/3001", "/ip4/8.8.8.8/tcp/5000"].map(|address| address.parse().unwrap());
        let endpoint = &ConnectedPoint::Listener { local_addr, send_back_addr };
        let (failed_addresses, other_established) = (&[][..], 0);
        let opened =
            ConnectionEstablished { peer_id, connection_id, endpoint, failed_addresses, other_established };
        server.on_swarm_event(FromSwarm::ConnectionEstablished(opened));
        for told in
            [ServerTold::ReservationTimedOut {}, ServerTold::ReservationReqAccepted { renewed: false }]
        {
            server.on_connection_handler_event(peer_id, connection_id, Either::Left(told));
        }
        let (cause, remaining_established) = (None, 0);
        let closed = ConnectionClosed { peer_id, connection_id, endpoint, cause, remaining_established };
        server.on_swarm_event(FromSwarm::ConnectionClosed(closed));
        let mut context = Context::from_waker(futures::task::noop_waker_ref());
        let mut forgotten = 0;
        while let Poll::Ready(action) = server.poll(&mut context) {
            let is_end = matches!(action, ToSwarm::GenerateEvent(relay::Event::ReservationClosed { .. }));
            forgotten += usize::from(is_end);
        }
        assert_eq!(forgotten, 2, "its connection, and the one beside it");
    }

    #[test]
    fn a_circuit_that_exceeds_a_bound_makes_room_for_no_other() {
        let (mut server, src_peer_id, dst_peer_id) = (server(), PeerId::random(), PeerId::random());
        let guests = Arc::clone(&server.guests);
        let asks = || guests.lock().ask(src_peer_id, dst_peer_id, None, Instant::now());
        while asks() {}
        let mut denied = |status| {
            server.note(&relay::Event::CircuitReqDenied { src_peer_id, dst_peer_id, status });
        };
        denied(relay::StatusCode::ResourceLimitExceeded);
        assert!(!asks());
        denied(relay::StatusCode::NoReservation);
        assert!(asks(), "one that leads to nobody does");
    }
}
