//! Who may connect: wallets only, nobody who is blocked, and not too many from one address.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{
        ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
        THandlerOutEvent, ToSwarm, dummy,
    },
};

use crate::{addresses, identity};

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

/// Peers blocked at one time. The longest-blocked is let go above this; it must misbehave again.
const BLOCKED_MAX: usize = 1024;

/// Decides about connections; takes part in none.
#[derive(Debug)]
pub(crate) struct Behaviour {
    per_ip_max: u32,
    per_private_ip_max: u32,
    inbound: HashMap<ConnectionId, IpAddr>,
    blocked: HashMap<PeerId, Instant>,
}

impl Behaviour {
    pub(crate) fn new(per_ip_max: u32, per_private_ip_max: u32) -> Self {
        Self { per_ip_max, per_private_ip_max, inbound: HashMap::new(), blocked: HashMap::new() }
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
        let max = if addresses::is_global(ip) { self.per_ip_max } else { self.per_private_ip_max };
        let same = self.inbound.values().filter(|other| **other == ip).count();
        if same >= max as usize { Err(ConnectionDenied::new(TooManyFromIp(ip))) } else { Ok(()) }
    }
}

/// One subscriber has a whole /64 of IPv6, so that counts as one address.
fn subscriber(ip: IpAddr) -> IpAddr {
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
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check_peer(&peer).map(|()| dummy::ConnectionHandler)
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
            FromSwarm::ConnectionClosed(event) => drop(self.inbound.remove(&event.connection_id)),
            FromSwarm::ListenFailure(event) => drop(self.inbound.remove(&event.connection_id)),
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

    #[test]
    fn one_address_gets_its_share_and_no_more() {
        let mut gate = Behaviour::new(16, 100);
        let admitted = (0..20).filter(|n| connect(&mut gate, *n, "/ip4/9.9.9.9/tcp/5000")).count();
        assert_eq!(admitted, 16);
        assert!(connect(&mut gate, 20, "/ip4/9.9.9.10/tcp/5000"), "a neighbour is not affected");
        let private = (100..250).filter(|n| connect(&mut gate, *n, "/ip4/127.0.0.1/tcp/5000")).count();
        assert_eq!(private, 100);
    }

    #[test]
    fn a_whole_ipv6_subscriber_counts_as_one_address() {
        let mut gate = Behaviour::new(16, 100);
        let admitted =
            (0..20).filter(|n| connect(&mut gate, *n, &format!("/ip6/2620:fe::{n:x}/tcp/1"))).count();
        assert_eq!(admitted, 16);
    }

    #[test]
    fn a_block_ends() {
        let mut gate = Behaviour::new(1, 1);
        let key = farthing_protocol::SecretKey::from_bytes(&[3; 32]).unwrap();
        let peer = identity::peer_id(&key.public_key());
        gate.block(peer, Duration::from_secs(600));
        assert!(gate.check_peer(&peer).is_err());
        gate.block(peer, Duration::ZERO);
        assert!(gate.check_peer(&peer).is_ok());
    }

    #[test]
    fn the_list_of_blocked_peers_is_bounded() {
        let mut gate = Behaviour::new(1, 1);
        for _ in 0..BLOCKED_MAX + 10 {
            gate.block(PeerId::random(), Duration::from_secs(600));
        }
        assert_eq!(gate.blocked.len(), BLOCKED_MAX);
    }
}
