//! From a connection through a relay to a direct one: the library's DCUtR, with addresses of our own choice.
//!
//! Both sides tell each other where others see them, and then connect at the same moment, so that each router takes the
//! other's packets for answers. What counts is the port that a router made of the one this node listens on. The library's
//! identify puts the inner port in its place, so what it says is not heard; [`PunchBehaviour::seen_at`] is told instead.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    task::{Context, Poll},
};

use farthing_directory::Intake;
use libp2p::{
    Multiaddr, PeerId,
    core::Endpoint,
    dcutr,
    swarm::{
        ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NewExternalAddrCandidate,
        THandlerInEvent, ToSwarm,
    },
};

use crate::{
    addresses::{self, circuit},
    forward::forward,
};

/// Addresses that one side tells the other at most. The library knows as many of its own, and takes any number.
const ADDRESSES_MAX: usize = 20;

/// Attempts at one peer while it is connected: the library makes three for each way through a relay, and two such ways are
/// dialled. Whoever is dialled may ask for any number of them, at addresses of its choice.
const ATTEMPTS_MAX: u32 = 6;
/// Attempts in a minute at those who come through the relays of one address range: who is refused more may come again at
/// once, and as somebody else.
const ATTEMPTS_PER_MINUTE_MAX: u32 = 60;

/// A peer would have this node knock at many doors.
#[derive(Debug, thiserror::Error)]
#[error("the peer names more addresses than it can have")]
struct TooManyAddresses;

/// The library's upgrade of relayed connections, which knows the addresses that it is told of.
pub(crate) struct PunchBehaviour {
    inner: dcutr::Behaviour,
    /// Its dials that are about to be made.
    dials: HashSet<ConnectionId>,
    /// The attempts at each peer that was met through a relay and is connected.
    attempts: HashMap<PeerId, Attempts>,
    /// Those of the current minute, by the ranges of the relays.
    lately: Intake<Option<IpAddr>>,
}

/// The attempts at one peer, and the range of the relay that it was met through.
#[derive(Debug)]
struct Attempts {
    made: u32,
    through: Option<IpAddr>,
}

farthing_os::hidden!(PunchBehaviour { dials });

impl PunchBehaviour {
    pub(crate) fn new(own: PeerId) -> Self {
        Self {
            inner: dcutr::Behaviour::new(own),
            dials: HashSet::new(),
            attempts: HashMap::new(),
            lately: Intake::new(ATTEMPTS_PER_MINUTE_MAX),
        }
    }

    /// Counts one more attempt; false for one too many, and where the peer is gone.
    fn attempts(&mut self, peer: Option<PeerId>, now_secs: u64) -> bool {
        let Some(attempts) = peer.and_then(|peer| self.attempts.get_mut(&peer)) else { return false };
        attempts.made = attempts.made.saturating_add(1);
        attempts.made <= ATTEMPTS_MAX && self.lately.admits(attempts.through, now_secs)
    }

    /// A peer that this node dialled from the port it listens on sees it there.
    pub(crate) fn seen_at(&mut self, address: &Multiaddr) {
        let candidate = NewExternalAddrCandidate { addr: address };
        self.inner.on_swarm_event(FromSwarm::NewExternalAddrCandidate(candidate));
    }
}

impl NetworkBehaviour for PunchBehaviour {
    type ConnectionHandler = <dcutr::Behaviour as NetworkBehaviour>::ConnectionHandler;
    type ToSwarm = dcutr::Event;

    forward!(inner: inbound, outbound, handler_events);

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        _: Option<PeerId>,
        addresses: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        if self.dials.remove(&connection) && addresses.len() > ADDRESSES_MAX {
            return Err(ConnectionDenied::new(TooManyAddresses));
        }
        Ok(Vec::new())
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::NewExternalAddrCandidate(_) => return,
            FromSwarm::ConnectionEstablished(opened) if opened.endpoint.is_relayed() => {
                let through = addresses::range(circuit::way(opened.endpoint));
                self.attempts.entry(opened.peer_id).or_insert(Attempts { made: 0, through });
            }
            FromSwarm::ConnectionClosed(closed) if closed.remaining_established == 0 => {
                self.attempts.remove(&closed.peer_id);
            }
            _ => {}
        }
        self.inner.on_swarm_event(event);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        loop {
            let polled = self.inner.poll(context);
            if let Poll::Ready(ToSwarm::Dial { opts }) = &polled {
                if !self.attempts(opts.get_peer_id(), crate::now_secs()) {
                    continue;
                }
                self.dials.insert(opts.connection_id());
            }
            return polled;
        }
    }
}

#[cfg(test)]
mod tests {
    use libp2p::{
        core::{ConnectedPoint, transport::PortUse},
        swarm::{
            ConnectionClosed, THandlerOutEvent, behaviour::ConnectionEstablished, derive_prelude::Either,
        },
    };

    use super::*;

    #[test]
    fn a_peer_has_this_node_knock_at_so_many_doors() {
        let mut punch = PunchBehaviour::new(PeerId::random());
        let mut dial = |number, is_its_own: bool, count| {
            let connection = ConnectionId::new_unchecked(number);
            if is_its_own {
                punch.dials.insert(connection);
            }
            let addresses: Vec<Multiaddr> = vec!["/ip4/9.9.9.9/tcp/1".parse().unwrap(); count];
            punch.handle_pending_outbound_connection(connection, None, &addresses, Endpoint::Dialer).is_ok()
        };
        assert!(dial(1, true, ADDRESSES_MAX));
        assert!(!dial(2, true, ADDRESSES_MAX + 1));
        assert!(dial(3, false, ADDRESSES_MAX + 1), "a dial of something else");
    }

    /// Names what the library's handler of a connection through a relay tells, which the library itself names to nobody.
    trait RelayedEvents {
        type Events;
    }

    impl<L, R> RelayedEvents for Either<L, R> {
        type Events = L;
    }

    type PunchTold = <THandlerOutEvent<PunchBehaviour> as RelayedEvents>::Events;

    #[test]
    fn a_peer_has_this_node_knock_a_few_times_while_it_is_connected() {
        let mut punch = PunchBehaviour::new(PeerId::random());
        let (peer_id, connection_id) = (PeerId::random(), ConnectionId::new_unchecked(1));
        let address: Multiaddr =
            format!("/ip4/9.9.9.9/tcp/3001/p2p/{}/p2p-circuit", PeerId::random()).parse().unwrap();
        let (role_override, port_use) = (Endpoint::Dialer, PortUse::Reuse);
        let endpoint = &ConnectedPoint::Dialer { address, role_override, port_use };
        let knocks = |punch: &mut PunchBehaviour| {
            let mut context = Context::from_waker(futures::task::noop_waker_ref());
            let mut knocks = 0;
            for _ in 0..20 {
                let remote_addrs = vec!["/ip4/8.8.8.8/tcp/1".parse().unwrap()];
                let told = PunchTold::InboundConnectNegotiated { remote_addrs };
                punch.on_connection_handler_event(peer_id, connection_id, Either::Left(told));
                knocks += u32::from(punch.poll(&mut context).is_ready());
            }
            knocks
        };
        for _ in 0..2 {
            assert_eq!(knocks(&mut punch), 0, "it is not connected");
            let (failed_addresses, other_established) = (&[][..], 0);
            let opened = ConnectionEstablished {
                peer_id,
                connection_id,
                endpoint,
                failed_addresses,
                other_established,
            };
            punch.on_swarm_event(FromSwarm::ConnectionEstablished(opened));
            assert_eq!(knocks(&mut punch), ATTEMPTS_MAX);
            let (cause, remaining_established) = (None, 0);
            let closed = ConnectionClosed { peer_id, connection_id, endpoint, cause, remaining_established };
            punch.on_swarm_event(FromSwarm::ConnectionClosed(closed));
        }
    }

    #[test]
    fn who_comes_again_and_again_through_one_relay_has_this_node_knock_so_often_a_minute() {
        let mut punch = PunchBehaviour::new(PeerId::random());
        let mut knocks = |relay: &str, now_secs: u64| {
            let through = addresses::range(&relay.parse().unwrap());
            let attempts = (0..100).filter(|_| {
                let newcomer = PeerId::random();
                punch.attempts.insert(newcomer, Attempts { made: 0, through });
                punch.attempts(Some(newcomer), now_secs)
            });
            attempts.count()
        };
        let max = usize::try_from(ATTEMPTS_PER_MINUTE_MAX).unwrap();
        assert_eq!(knocks("/ip4/9.9.9.9/tcp/3001", 60), max);
        assert_eq!(knocks("/ip4/9.9.9.8/tcp/3001", 119), 0, "the same range");
        assert_eq!(knocks("/ip4/8.8.8.8/tcp/3001", 119), max, "another relay is not affected");
        assert_eq!(knocks("/ip4/9.9.9.9/tcp/3001", 120), max, "the next minute begins");
    }
}
