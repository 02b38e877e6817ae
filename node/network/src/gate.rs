//! Admits connections: wallets only, nobody who is blocked, and strangers only while there is room beside the peers
//! with open channels.
//!
//! Wallets and connections cost nothing, so places are not for whoever was first. When they are taken, a connection of
//! a stranger that does nothing makes room for a newcomer, and one of the address range that has most of them for a
//! newcomer from elsewhere.
//!
//! Invariant: a peer with an open channel finds a place as long as a single stranger has one.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    net::IpAddr,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use farthing_protocol::Address;
use libp2p::{
    Multiaddr, PeerId,
    core::{Endpoint, transport::PortUse},
    swarm::{
        CloseConnection, ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler,
        THandlerInEvent, THandlerOutEvent, ToSwarm, dummy,
    },
};

use crate::{
    NetworkLimits,
    addresses::{self, circuit},
    identity,
    partners::Partners,
    usage::Usage,
};

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

/// The last places are for peers with open channels.
#[derive(Debug, thiserror::Error)]
#[error("no room for unknown peers")]
pub(crate) struct NoPlace;

/// Peers blocked at one time. The longest-blocked is let go above this; it must misbehave again.
const BLOCKED_MAX: usize = 1024;

/// Decides about connections; takes part in none.
#[derive(Debug)]
pub(crate) struct GateBehaviour {
    limits: Limits,
    partners: Partners,
    usage: Usage,
    /// Open connections both ways, but for those that make room.
    open: HashMap<ConnectionId, Open>,
    /// Those that make room.
    closing: VecDeque<(PeerId, ConnectionId)>,
    /// Keys under which peers dial back, at our request.
    expected: HashSet<PeerId>,
    blocked: HashMap<Address, Instant>,
}

#[derive(Debug)]
struct Open {
    peer: PeerId,
    wallet: Address,
    /// Of one that came to us.
    came_from: Option<Came>,
}

/// The origin of a connection: its subscriber and its address range; both `None` within this process. Whoever comes through
/// a relay counts as of the relay's, because nothing else is known of where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Came {
    subscriber: Option<IpAddr>,
    range: Option<IpAddr>,
}

impl Came {
    fn of(remote: &Multiaddr) -> Self {
        let ip = addresses::ip(remote);
        Self { subscriber: ip.map(farthing_bounds::subscriber), range: ip.map(farthing_bounds::range) }
    }
}

#[derive(Debug)]
struct Limits {
    all_max: usize,
    strangers_max: usize,
    per_ip_max: usize,
    per_private_ip_max: usize,
    quiet_max: Duration,
}

impl GateBehaviour {
    pub(crate) fn new(limits: &NetworkLimits, partners: Partners, usage: Usage) -> Self {
        let strangers_max = limits.connections_max.saturating_sub(limits.connections_reserved);
        let limits = Limits {
            all_max: limits.connections_max as usize,
            strangers_max: strangers_max as usize,
            per_ip_max: limits.connections_per_ip_max as usize,
            per_private_ip_max: limits.connections_per_private_ip_max as usize,
            quiet_max: limits.contact_idle_max,
        };
        Self {
            limits,
            partners,
            usage,
            open: HashMap::new(),
            closing: VecDeque::new(),
            expected: HashSet::new(),
            blocked: HashMap::new(),
        }
    }

    /// Lets these keys in whoever else is connected, in place of those named before.
    pub(crate) fn expect(&mut self, keys: HashSet<PeerId>) {
        self.expected = keys;
    }

    /// Lets `peer` neither in nor out for `duration`. Existing connections are the caller's to close.
    pub(crate) fn block(&mut self, peer: Address, duration: Duration) {
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
        let Some(wallet) = identity::wallet(peer) else { return Err(ConnectionDenied::new(NoWallet)) };
        match self.blocked.get(&wallet) {
            Some(until) if *until > Instant::now() => Err(ConnectionDenied::new(Blocked)),
            _ => Ok(()),
        }
    }

    fn is_welcome(&self, peer: &PeerId, wallet: &Address) -> bool {
        self.expected.contains(peer) || self.partners.contains(wallet)
    }

    /// Returns whether so many come from the same subscriber that another of them has to go first.
    fn is_crowded(&self, came: &Came) -> bool {
        let Some(ip) = came.subscriber else { return false };
        let max =
            if addresses::is_global(ip) { self.limits.per_ip_max } else { self.limits.per_private_ip_max };
        let comes_too =
            |open: &&Open| open.came_from.is_some_and(|other| other.subscriber == came.subscriber);
        self.open.values().filter(comes_too).count() >= max
    }

    /// Finds a place for somebody who comes to us, if need be in place of a stranger. Whom we dial ourselves is our own
    /// choice.
    fn make_place(&mut self, peer: &PeerId, came: Came, now: Instant) -> Result<(), ConnectionDenied> {
        let Some(wallet) = identity::wallet(peer) else { return Err(ConnectionDenied::new(NoWallet)) };
        let is_welcome = self.is_welcome(peer, &wallet);
        if self.is_crowded(&came) {
            let same = |other: &Came| other.subscriber == came.subscriber;
            let from = came.subscriber.unwrap_or(IpAddr::from([0; 4]));
            let victim = self.victim(same, if is_welcome { Claim::Due } else { Claim::Idle }, now);
            self.close(victim.ok_or_else(|| ConnectionDenied::new(TooManyFromIp(from)))?);
        }
        let strangers =
            || self.open.values().filter(|open| !self.is_welcome(&open.peer, &open.wallet)).count();
        let (is_full, claim) = if is_welcome {
            (self.open.len() >= self.limits.all_max, Claim::Due)
        } else {
            (strangers() >= self.limits.strangers_max, Claim::Fair(came.range))
        };
        if is_full {
            let victim = self.victim(|_| true, claim, now);
            self.close(victim.ok_or_else(|| ConnectionDenied::new(NoPlace))?);
        }
        Ok(())
    }

    /// Of the strangers that came and that `among` names, the one to make room: of the range with most of them, the one
    /// that did nothing for longest.
    fn victim(&self, among: impl Fn(&Came) -> bool, claim: Claim, now: Instant) -> Option<ConnectionId> {
        let strangers = || {
            let came = self.open.iter().filter_map(|(id, open)| Some((*id, open, open.came_from?)));
            came.filter(|(_, open, _)| !self.is_welcome(&open.peer, &open.wallet))
        };
        let mut sizes: HashMap<Option<IpAddr>, usize> = HashMap::new();
        strangers().for_each(|(_, _, came)| *sizes.entry(came.range).or_default() += 1);
        let size = |range| sizes.get(&range).copied().unwrap_or(0);
        let ranked = strangers().filter(|(_, _, came)| among(came)).map(|(id, _, came)| {
            let quiet = self.usage.quiet_for(id, now);
            (quiet >= self.limits.quiet_max, size(came.range), quiet, id)
        });
        let (is_quiet, of_range, _, id) =
            ranked.max_by_key(|(is_quiet, size, quiet, _)| (*is_quiet, *size, *quiet))?;
        let yields = match claim {
            Claim::Due => true,
            Claim::Idle => is_quiet,
            Claim::Fair(range) => is_quiet || of_range > size(range) + 1,
        };
        yields.then_some(id)
    }

    fn close(&mut self, connection: ConnectionId) {
        if let Some(open) = self.open.remove(&connection) {
            self.closing.push_back((open.peer, connection));
        }
    }

    fn forget(&mut self, connection: ConnectionId) {
        self.open.remove(&connection);
        self.usage.closed(connection);
    }
}

/// The place that a newcomer has a right to.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// Any stranger's place.
    Due,
    /// That of one who does nothing.
    Idle,
    /// The same, or that of one whose range has two more than this one.
    Fair(Option<IpAddr>),
}

impl NetworkBehaviour for GateBehaviour {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        _: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        // Who it is shows after the handshake, which is not worth its cost when only a partner could get in; but a
        // partner may be who comes.
        let came = Came::of(circuit::came_from(local, remote));
        let could_yield =
            || self.victim(|other| other.subscriber == came.subscriber, Claim::Due, Instant::now());
        match came.subscriber {
            Some(ip) if self.is_crowded(&came) && could_yield().is_none() => {
                Err(ConnectionDenied::new(TooManyFromIp(ip)))
            }
            _ => Ok(()),
        }
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check_peer(&peer)?;
        self.make_place(&peer, Came::of(circuit::came_from(local, remote)), Instant::now())?;
        self.usage.opened(connection, Instant::now());
        Ok(dummy::ConnectionHandler)
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
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.check_peer(&peer)?;
        self.usage.opened(connection, Instant::now());
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(event) => {
                if let Some(wallet) = identity::wallet(&event.peer_id) {
                    let came_from =
                        event.endpoint.is_listener().then(|| Came::of(circuit::way(event.endpoint)));
                    let open = Open { peer: event.peer_id, wallet, came_from };
                    self.open.insert(event.connection_id, open);
                }
            }
            FromSwarm::ConnectionClosed(event) => self.forget(event.connection_id),
            FromSwarm::ListenFailure(event) => self.forget(event.connection_id),
            FromSwarm::DialFailure(event) => self.forget(event.connection_id),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        self.closing.pop_front().map_or(Poll::Pending, |(peer_id, connection)| {
            tracing::debug!(peer = ?identity::wallet(&peer_id), "an unknown peer's connection was closed to make room");
            Poll::Ready(ToSwarm::CloseConnection { peer_id, connection: CloseConnection::One(connection) })
        })
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;
    use libp2p::{core::ConnectedPoint, swarm::behaviour::ConnectionEstablished as Opened};

    use super::*;

    /// A gate, and the moment at which everybody comes.
    struct Scene {
        gate: GateBehaviour,
        now: Instant,
        next: usize,
    }

    impl Scene {
        fn new() -> Self {
            let gate = GateBehaviour::new(&NetworkLimits::default(), Partners::default(), Usage::default());
            Self { gate, now: Instant::now(), next: 0 }
        }

        /// Somebody comes who has a wallet of this number.
        fn come(&mut self, wallet: u32, from: &str) -> Option<ConnectionId> {
            let (peer, remote) = (peer(wallet), from.parse::<Multiaddr>().unwrap());
            let came = Came::of(&remote);
            self.gate.make_place(&peer, came, self.now).ok()?;
            let connection = ConnectionId::new_unchecked(self.next);
            self.next += 1;
            self.gate.usage.opened(connection, self.now);
            let open = Open { peer, wallet: key(wallet).address(), came_from: Some(came) };
            self.gate.open.insert(connection, open);
            Some(connection)
        }

        fn pass(&mut self, secs: u64) {
            self.now += Duration::from_secs(secs);
        }

        fn is_open(&self, connection: ConnectionId) -> bool {
            self.gate.open.contains_key(&connection)
        }
    }

    fn key(n: u32) -> SecretKey {
        let mut bytes = [1; 32];
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        SecretKey::from_bytes(&bytes).unwrap()
    }

    fn peer(n: u32) -> PeerId {
        identity::peer_id(&key(n).public_key())
    }

    #[test]
    fn one_address_gets_its_share_and_no_more() {
        let mut scene = Scene::new();
        let admitted = (0..20).filter_map(|_| scene.come(1, "/ip4/9.9.9.9/tcp/5000")).count();
        assert_eq!(admitted, 16);
        assert!(scene.come(2, "/ip4/9.9.9.10/tcp/5000").is_some(), "a neighbour is not affected");
        let local = (0..150).filter_map(|n| scene.come(3, &format!("/ip4/127.0.0.{n}/tcp/5000"))).count();
        assert_eq!(local, 100, "this machine is one, under all of its addresses");
    }

    #[test]
    fn a_whole_ipv6_subscriber_counts_as_one_address() {
        let mut scene = Scene::new();
        let admitted = (0..20).filter_map(|n| scene.come(1, &format!("/ip6/2620:fe::{n:x}/tcp/1"))).count();
        assert_eq!(admitted, 16);
    }

    #[test]
    fn all_who_come_through_one_relay_count_as_one_address() {
        let mut gate = Scene::new().gate;
        let relay: Multiaddr = format!("/ip4/9.9.9.9/tcp/1/p2p/{}/p2p-circuit", peer(1)).parse().unwrap();
        let admitted = (2..22_u8).filter(|n| {
            let (peer_id, connection_id) = (peer((*n).into()), ConnectionId::new_unchecked((*n).into()));
            let remote: Multiaddr = format!("/p2p/{peer_id}").parse().unwrap();
            let came = gate.handle_established_inbound_connection(connection_id, peer_id, &relay, &remote);
            let endpoint = &ConnectedPoint::Listener { local_addr: relay.clone(), send_back_addr: remote };
            let (failed_addresses, other_established) = (&[][..], 0);
            let opened = Opened { peer_id, connection_id, endpoint, failed_addresses, other_established };
            gate.on_swarm_event(FromSwarm::ConnectionEstablished(opened));
            came.is_ok()
        });
        assert_eq!(admitted.count(), 16);
    }

    #[test]
    fn whoever_does_nothing_makes_room_for_another_of_the_same_address() {
        let mut scene = Scene::new();
        let held: Vec<_> = (0..16).map(|n| scene.come(n, "/ip4/9.9.9.9/tcp/5000").unwrap()).collect();
        scene.pass(19);
        assert!(scene.come(20, "/ip4/9.9.9.9/tcp/5000").is_none());
        let _stream = scene.gate.usage.begin(held[0]);
        scene.gate.usage.note(held[1], scene.now);
        scene.pass(1);
        assert!(scene.come(20, "/ip4/9.9.9.9/tcp/5000").is_some());
        assert!(scene.is_open(held[0]) && scene.is_open(held[1]), "these two do something");
        assert_eq!(scene.gate.closing.len(), 1);
    }

    /// Twelve addresses with sixteen connections each, as many as strangers may have.
    fn occupied() -> (Scene, Vec<ConnectionId>) {
        let mut scene = Scene::new();
        let come = |n: u32| scene.come(n, &format!("/ip4/9.9.{}.1/tcp/5000", n / 16)).unwrap();
        let held = (0..192).map(come).collect();
        (scene, held)
    }

    #[test]
    fn twelve_addresses_cannot_hold_the_places_of_strangers_and_payers() {
        let (mut scene, _) = occupied();
        // At once, although none of them has been idle for long, and however busy they seem.
        let newcomers: Vec<_> =
            (0..12).map(|n: u32| scene.come(1000 + n, &format!("/ip4/8.8.{n}.1/tcp/1")).unwrap()).collect();
        assert!(newcomers.iter().all(|connection| scene.is_open(*connection)));
        assert_eq!(scene.gate.open.len(), 192, "each in place of another");
        assert!(scene.come(2000, "/ip4/9.9.3.2/tcp/1").is_none(), "but none more of these");
        scene.pass(20);
        let of_these = scene.come(2000, "/ip4/9.9.3.2/tcp/1");
        assert!(of_these.is_some(), "unless one of them does nothing");
    }

    #[test]
    fn ranges_of_nearly_one_size_take_no_places_of_each_other_by_turns() {
        let (mut scene, _) = occupied();
        assert!(scene.come(1000, "/ip4/8.8.8.8/tcp/1").is_some(), "one range has a place less now");
        for n in 0..12 {
            assert!(scene.come(2000 + n, &format!("/ip4/9.9.{n}.2/tcp/1")).is_none(), "{n}");
        }
    }

    #[test]
    fn a_payer_gets_in_as_long_as_there_is_a_stranger() {
        let (mut scene, held) = occupied();
        scene.gate.partners.set((1000..1256).map(|n| key(n).address()).collect());
        let _busy: Vec<_> = held.iter().map(|connection| scene.gate.usage.begin(*connection)).collect();
        for n in 1000..1256_u32 {
            let from = format!("/ip4/7.{}.{}.1/tcp/1", n / 256, n % 256);
            assert!(scene.come(n, &from).is_some(), "{n}");
            assert!(scene.gate.open.len() <= 256);
        }
        assert!(scene.come(1000, "/ip4/7.7.7.7/tcp/1").is_none(), "no stranger is left");
    }

    #[test]
    fn whoever_was_asked_to_dial_back_gets_in() {
        let (mut scene, _) = occupied();
        assert!(scene.come(3000, "/ip4/9.9.0.7/tcp/1").is_none());
        scene.gate.expect([peer(3000)].into());
        assert!(scene.come(3000, "/ip4/9.9.0.7/tcp/1").is_some());
    }

    #[test]
    fn a_block_ends() {
        let mut gate = Scene::new().gate;
        let wallet = identity::wallet(&peer(3)).unwrap();
        gate.block(wallet, Duration::from_secs(600));
        assert!(gate.check_peer(&peer(3)).is_err());
        gate.block(wallet, Duration::ZERO);
        assert!(gate.check_peer(&peer(3)).is_ok());
    }

    #[test]
    fn the_list_of_blocked_peers_is_bounded() {
        let mut gate = Scene::new().gate;
        for n in 0..BLOCKED_MAX + 10 {
            let mut wallet = [0; 20];
            wallet[..8].copy_from_slice(&n.to_be_bytes());
            gate.block(Address::from_bytes(wallet), Duration::from_secs(600));
        }
        assert_eq!(gate.blocked.len(), BLOCKED_MAX);
    }
}
