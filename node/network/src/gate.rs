//! Who may connect: wallets only, nobody who is blocked, not too many from one address, and strangers only
//! while there is room beside the peers with open channels.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use farthing_protocol::Address;
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{
        ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
        THandlerOutEvent, ToSwarm, dummy,
    },
};

use crate::{NetworkLimits, addresses, identity};

/// The peer's key is not a wallet's.
#[derive(Debug, thiserror::Error)]
#[error("the peer's key is not a secp256k1 key, so it belongs to no wallet")]
pub(crate) struct NoWallet;

#[derive(Debug, thiserror::Error)]
#[error("the peer is blocked for sending bad frames")]
pub(crate) struct Blocked;

#[derive(Debug, thiserror::Error)]
#[error("too many connections from {0}")]
pub(crate) struct TooManyFromIp(IpAddr);

#[derive(Debug, thiserror::Error)]
#[error("too many handshakes from {0}")]
pub(crate) struct TooManyHandshakes(IpAddr);

/// The last places are for peers with open channels.
#[derive(Debug, thiserror::Error)]
#[error("no place for strangers")]
pub(crate) struct NoPlace;

/// Peers blocked at one time. The longest-blocked is let go above this; it must misbehave again.
const BLOCKED_MAX: usize = 1024;

/// Decides about connections; takes part in none.
#[derive(Debug)]
pub(crate) struct Behaviour {
    limits: Limits,
    /// Inbound connections and handshakes, by where they come from.
    inbound: HashMap<ConnectionId, IpAddr>,
    /// Those of them whose handshake is not over.
    pending: HashSet<ConnectionId>,
    /// Open connections both ways.
    open: HashMap<ConnectionId, Address>,
    /// Wallets with open channels.
    favoured: HashSet<Address>,
    /// Keys under which peers dial back, at our request.
    expected: HashSet<PeerId>,
    blocked: HashMap<PeerId, Instant>,
}

#[derive(Debug)]
struct Limits {
    strangers_max: usize,
    per_ip_max: u32,
    per_private_ip_max: u32,
    pending_per_ip_max: u32,
    pending_per_private_ip_max: u32,
}

impl Behaviour {
    pub(crate) fn new(limits: &NetworkLimits) -> Self {
        let strangers_max = limits.connections_max.saturating_sub(limits.connections_reserved);
        let limits = Limits {
            strangers_max: strangers_max as usize,
            per_ip_max: limits.connections_per_ip_max,
            per_private_ip_max: limits.connections_per_private_ip_max,
            pending_per_ip_max: limits.connections_pending_per_ip_max,
            pending_per_private_ip_max: limits.connections_pending_per_private_ip_max,
        };
        Self {
            limits,
            inbound: HashMap::new(),
            pending: HashSet::new(),
            open: HashMap::new(),
            favoured: HashSet::new(),
            expected: HashSet::new(),
            blocked: HashMap::new(),
        }
    }

    /// Keeps places free for these wallets, in place of those named before.
    pub(crate) fn favour(&mut self, wallets: HashSet<Address>) {
        self.favoured = wallets;
    }

    /// Lets these keys in whoever else is connected, in place of those named before.
    pub(crate) fn expect(&mut self, keys: HashSet<PeerId>) {
        self.expected = keys;
    }

    /// Lets `peer` neither in nor out for `duration`. Existing connections are the caller's to close.
    pub(crate) fn block(&mut self, peer: PeerId, duration: Duration) {
        let now = Instant::now();
        self.blocked.retain(|_, until| *until > now);
        if self.blocked.len() >= BLOCKED_MAX
            && let Some(first) = self.blocked.iter().min_by_key(|(_, until)| **until).map(|(peer, _)| *peer)
        {
            self.blocked.remove(&first);
        }
        self.blocked.insert(peer, now + duration);
    }

    fn check_peer(&self, peer: &PeerId) -> Result<(), ConnectionDenied> {
        if identity::wallet(peer).is_none() {
            return Err(ConnectionDenied::new(NoWallet));
        }
        match self.blocked.get(peer) {
            Some(until) if *until > Instant::now() => Err(ConnectionDenied::new(Blocked)),
            _ => Ok(()),
        }
    }

    fn check_ip(&self, ip: IpAddr) -> Result<(), ConnectionDenied> {
        let limits = &self.limits;
        let (max, pending_max) = if addresses::is_global(ip) {
            (limits.per_ip_max, limits.pending_per_ip_max)
        } else {
            (limits.per_private_ip_max, limits.pending_per_private_ip_max)
        };
        let same = || self.inbound.iter().filter(|(_, other)| **other == ip);
        if same().count() >= max as usize {
            return Err(ConnectionDenied::new(TooManyFromIp(ip)));
        }
        let pending = same().filter(|(connection, _)| self.pending.contains(connection)).count();
        if pending >= pending_max as usize {
            return Err(ConnectionDenied::new(TooManyHandshakes(ip)));
        }
        Ok(())
    }

    fn forget(&mut self, connection: ConnectionId) {
        self.inbound.remove(&connection);
        self.pending.remove(&connection);
        self.open.remove(&connection);
    }

    /// A stranger that comes to us. Whom we dial ourselves is our own choice.
    fn check_place(&self, peer: &PeerId) -> Result<(), ConnectionDenied> {
        let is_favoured = |wallet: &Address| self.favoured.contains(wallet);
        let is_welcome =
            self.expected.contains(peer) || identity::wallet(peer).as_ref().is_some_and(is_favoured);
        let strangers = || self.open.values().filter(|wallet| !is_favoured(wallet)).count();
        if is_welcome || strangers() < self.limits.strangers_max {
            Ok(())
        } else {
            Err(ConnectionDenied::new(NoPlace))
        }
    }
}

/// One subscriber has a whole /64 of IPv6, so that counts as one address.
pub(crate) fn subscriber(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, u16::from(ip.is_loopback())).into()
        }
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let Some(ip) = addresses::ip(remote).map(subscriber) else { return Ok(()) };
        self.check_ip(ip)?;
        self.inbound.insert(connection, ip);
        self.pending.insert(connection);
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.pending.remove(&connection);
        self.check_peer(&peer)?;
        self.check_place(&peer).map(|()| dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: Option<PeerId>,
        _: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        peer.map_or(Ok(()), |peer| self.check_peer(&peer)).map(|()| Vec::new())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check_peer(&peer).map(|()| dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(event) => {
                if let Some(wallet) = identity::wallet(&event.peer_id) {
                    self.open.insert(event.connection_id, wallet);
                }
            }
            FromSwarm::ConnectionClosed(event) => self.forget(event.connection_id),
            FromSwarm::ListenFailure(event) => self.forget(event.connection_id),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(gate: &mut Behaviour, n: usize, from: &str) -> bool {
        let local: Multiaddr = "/ip4/127.0.0.1/tcp/3001".parse().unwrap();
        let id = ConnectionId::new_unchecked(n);
        gate.handle_pending_inbound_connection(id, &local, &from.parse().unwrap()).is_ok()
    }

    fn gate() -> Behaviour {
        Behaviour::new(&NetworkLimits::default())
    }

    /// One whose handshake comes to an end.
    fn come_in(gate: &mut Behaviour, n: usize, from: &str) -> bool {
        let connected = connect(gate, n, from);
        gate.pending.remove(&ConnectionId::new_unchecked(n));
        connected
    }

    #[test]
    fn one_address_gets_its_share_and_no_more() {
        let mut gate = gate();
        let admitted = (0..20).filter(|n| come_in(&mut gate, *n, "/ip4/9.9.9.9/tcp/5000")).count();
        assert_eq!(admitted, 16);
        assert!(come_in(&mut gate, 20, "/ip4/9.9.9.10/tcp/5000"), "a neighbour is not affected");
        let private = (100..250).filter(|n| come_in(&mut gate, *n, "/ip4/127.0.0.1/tcp/5000")).count();
        assert_eq!(private, 100);
    }

    #[test]
    fn a_whole_ipv6_subscriber_counts_as_one_address() {
        let mut gate = gate();
        let admitted =
            (0..20).filter(|n| come_in(&mut gate, *n, &format!("/ip6/2620:fe::{n:x}/tcp/1"))).count();
        assert_eq!(admitted, 16);
    }

    #[test]
    fn half_open_connections_from_one_address_leave_room_for_others() {
        let mut gate = gate();
        let limits = NetworkLimits::default();
        let all = limits.connections_pending_max as usize;
        for (from, first, max) in [
            ("/ip4/9.9.9.9/tcp/5000", 0, limits.connections_pending_per_ip_max),
            ("/ip4/127.0.0.1/tcp/5000", 1000, limits.connections_pending_per_private_ip_max),
        ] {
            let admitted = (first..first + all).filter(|n| connect(&mut gate, *n, from)).count();
            assert_eq!(admitted, max as usize, "{from}");
            assert!(admitted < all);
        }
        assert!(connect(&mut gate, 2000, "/ip4/9.9.9.10/tcp/5000"));
        gate.forget(ConnectionId::new_unchecked(0));
        assert!(connect(&mut gate, 2001, "/ip4/9.9.9.9/tcp/5000"), "one failed");
        gate.pending.remove(&ConnectionId::new_unchecked(1));
        assert!(connect(&mut gate, 2002, "/ip4/9.9.9.9/tcp/5000"), "one succeeded");
    }

    #[test]
    fn the_last_places_are_for_peers_with_open_channels() {
        let key = |n: u8| farthing_protocol::SecretKey::from_bytes(&[n; 32]).unwrap();
        let peer = |n| identity::peer_id(&key(n).public_key());
        let mut gate = gate();
        gate.favour([key(1).address()].into());
        let strangers_max = 256 - 64;
        for n in 0..strangers_max {
            assert!(gate.check_place(&peer(2)).is_ok(), "{n} strangers");
            gate.open.insert(ConnectionId::new_unchecked(n), key(2).address());
        }
        assert!(gate.check_place(&peer(2)).is_err(), "{strangers_max} strangers");
        assert!(gate.check_place(&peer(1)).is_ok(), "it has a channel");
        gate.open.insert(ConnectionId::new_unchecked(1000), key(1).address());
        gate.expect([peer(3)].into());
        assert!(gate.check_place(&peer(3)).is_ok(), "it was asked to dial back");
        gate.forget(ConnectionId::new_unchecked(0));
        assert!(gate.check_place(&peer(2)).is_ok(), "a stranger left");
    }

    #[test]
    fn a_block_ends() {
        let mut gate = gate();
        let key = farthing_protocol::SecretKey::from_bytes(&[3; 32]).unwrap();
        let peer = identity::peer_id(&key.public_key());
        gate.block(peer, Duration::from_secs(600));
        assert!(gate.check_peer(&peer).is_err());
        gate.block(peer, Duration::ZERO);
        assert!(gate.check_peer(&peer).is_ok());
    }

    #[test]
    fn the_list_of_blocked_peers_is_bounded() {
        let mut gate = gate();
        for _ in 0..BLOCKED_MAX + 10 {
            gate.block(PeerId::random(), Duration::from_secs(600));
        }
        assert_eq!(gate.blocked.len(), BLOCKED_MAX);
    }
}
