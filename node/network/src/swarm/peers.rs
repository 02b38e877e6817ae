//! The connected peers. Pure.
//!
//! A peer counts only once identify has shown that it is of this network; until then it is a connection, over which it may be
//! called where its record says so.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant, SystemTime},
};

use farthing_directory::Key;
use farthing_os::clock;
use farthing_protocol::{Address, Hash, keccak256, wire};
use libp2p::{Multiaddr, PeerId, core::ConnectedPoint, swarm::ConnectionId};

use super::waiters::{Waiter, Waiters};
use crate::{
    Direction, Neighbour, NotStarted, PeerInfo,
    addresses::{self, circuit},
    command::Asker,
    directory, identity,
    reachability::Tester,
    relay::RelayCandidate,
};

/// A stranger's text is cut to this.
const AGENT_CHARS_MAX: usize = 64;
/// Times that a peer may say in a minute, over one connection, who it is. An honest one does at the beginning, every hour, and
/// when its addresses or protocols change, many times at its start. What is not heard is not known for an hour.
const TOLD_PER_MINUTE_MAX: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    /// As it was dialled, maybe by a name, or where it comes from; the way through the relay where there is one.
    address: Multiaddr,
    /// The same without names: what the name led to.
    reached: Multiaddr,
    direction: Direction,
    is_relayed: bool,
    since: Instant,
    /// Made for more than one question of the directory.
    is_wanted: bool,
    /// This node acted upon what the peer said over it of addresses.
    is_heeded: bool,
    /// The beginning of the current minute, and how often the peer said in it who it is.
    told: (Instant, u32),
}

impl Connection {
    /// The IP at the other end, which is not known through a relay.
    fn ip(&self) -> Option<IpAddr> {
        addresses::ip(&self.reached).filter(|_| !self.is_relayed)
    }
}

#[derive(Debug)]
pub(super) struct Peer {
    address: Address,
    /// Its place in the directory.
    place: Key,
    connections: Vec<Connection>,
    since: SystemTime,
    rtt: Option<Duration>,
    identified: Option<PeerFacts>,
    /// Its record says that it takes calls on streams that are kept.
    is_callable_by_record: bool,
}

impl Peer {
    /// Through a relay nobody is sought, and nobody comes as a neighbour.
    fn was_sought(&self) -> bool {
        self.direct().any(|connection| connection.is_wanted)
    }

    fn came(&self) -> bool {
        self.direct().any(|connection| connection.direction == Direction::Inbound)
    }

    /// Returns the IPs at which this node dialled it.
    fn ips_dialled(&self) -> Vec<IpAddr> {
        let dialled =
            self.connections.iter().filter(|connection| connection.direction == Direction::Outbound);
        dialled.filter_map(Connection::ip).collect()
    }

    /// Returns the IPs that its connections come from or go to.
    fn ips(&self) -> Vec<IpAddr> {
        self.connections.iter().filter_map(Connection::ip).collect()
    }

    /// Its connections without a relay, the oldest first.
    fn direct(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| !connection.is_relayed)
    }

    fn is_relayed(&self) -> bool {
        self.direct().next().is_none()
    }

    fn network(&self) -> Option<IpAddr> {
        addresses::public_network(&self.direct().next()?.reached)
    }
}

/// Lists the addresses that connections lead to, each once, without the peer, which is known; those through a relay last.
fn ways(connections: &[Connection]) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    let direct = connections.iter().filter(|connection| !connection.is_relayed);
    for connection in direct.chain(connections.iter().filter(|connection| connection.is_relayed)) {
        let way = addresses::without_peer(&connection.address).to_string();
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// The facts that a peer states about itself.
#[derive(Debug)]
pub(super) struct PeerFacts {
    pub(super) agent: String,
    pub(super) speaks_call: bool,
    pub(super) speaks_call_stream: bool,
    pub(super) speaks_info: bool,
    pub(super) speaks_sync: [bool; 2],
    pub(super) speaks_records: bool,
    pub(super) speaks_reach: bool,
    /// It offers places to those whom nobody can connect to.
    pub(super) relays: bool,
}

/// Connected peers, and who waits for which.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_id: HashMap<PeerId, Peer>,
    by_address: HashMap<Address, PeerId>,
    waiting: Waiters,
}

impl Peers {
    /// Notes a connection that leads to `reached`; `is_wanted` when this node made it on purpose.
    pub(super) fn connected(
        &mut self,
        id: PeerId,
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
        reached: Multiaddr,
        is_wanted: bool,
    ) {
        // The gate lets only wallets in.
        let Some(address) = identity::wallet(&id) else { return };
        let direction = if endpoint.is_dialer() { Direction::Outbound } else { Direction::Inbound };
        let peer = self.by_id.entry(id).or_insert_with(|| Peer {
            address,
            place: directory::place(&id),
            connections: Vec::new(),
            since: clock::now(),
            rtt: None,
            identified: None,
            is_callable_by_record: false,
        });
        let now = Instant::now();
        peer.connections.push(Connection {
            id: connection,
            address: circuit::way(endpoint).clone(),
            reached,
            direction,
            is_relayed: endpoint.is_relayed(),
            since: now,
            is_wanted,
            is_heeded: false,
            told: (now, 0),
        });
        peer.is_callable_by_record |= self.waiting.connected(&id);
        self.by_address.insert(address, id);
    }

    /// Notes that a peer may be called by its record, if it is connected; returns whether it is.
    pub(super) fn call_by_record(&mut self, id: &PeerId) -> bool {
        let Some(peer) = self.by_id.get_mut(id) else { return false };
        peer.is_callable_by_record = true;
        true
    }

    /// A connected peer that may be called by its record.
    pub(super) fn callable_by_record(&self, address: Address) -> Option<PeerId> {
        let id = self.id_of(address)?;
        self.by_id.get(&id)?.is_callable_by_record.then_some(id)
    }

    /// Connections to close when a peer has more than `max`, those through a relay by themselves: neither its oldest, which
    /// calls are on from before, nor its newest, which new ones are on.
    pub(super) fn surplus(&self, id: &PeerId, max: usize) -> Vec<ConnectionId> {
        let connections = self.by_id.get(id).map_or(&[][..], |peer| &peer.connections);
        let of_kind = |relayed: bool| connections.iter().filter(move |one| one.is_relayed == relayed);
        let surplus = |relayed: bool| {
            let many = of_kind(relayed).count().saturating_sub(max);
            of_kind(relayed).skip(max.saturating_sub(1)).take(many).map(|connection| connection.id)
        };
        surplus(false).chain(surplus(true)).collect()
    }

    /// Connections through a relay to peers that have had one without for `kept`.
    pub(super) fn outdated(&self, kept: Duration, now: Instant) -> Vec<ConnectionId> {
        let is_old = |one: &Connection| now.saturating_duration_since(one.since) >= kept;
        let overtaken = self.by_id.values().filter(|peer| peer.direct().any(is_old));
        let relayed = overtaken.flat_map(|peer| peer.connections.iter().filter(|one| one.is_relayed));
        relayed.map(|connection| connection.id).collect()
    }

    /// Returns whether this connection to a peer runs through a relay.
    pub(super) fn is_relayed(&self, id: &PeerId, connection: ConnectionId) -> bool {
        let connections = self.by_id.get(id).map_or(&[][..], |peer| &peer.connections);
        connections.iter().any(|one| one.id == connection && one.is_relayed)
    }

    /// Returns whether a peer came through a relay by this connection, and is not connected without one.
    pub(super) fn came_relayed_alone(&self, id: &PeerId, connection: ConnectionId) -> bool {
        self.by_id.get(id).is_some_and(|peer| {
            let came = |one: &Connection| one.id == connection && one.direction == Direction::Inbound;
            peer.is_relayed() && peer.connections.iter().any(came)
        })
    }

    /// Returns whether this node acts upon what a peer says of addresses over this connection, which it does once: the peer
    /// may say something else as often as it likes.
    pub(super) fn heeds(&mut self, id: &PeerId, connection: ConnectionId) -> bool {
        let mut connections = self.by_id.get_mut(id).into_iter().flat_map(|peer| &mut peer.connections);
        let said_over = connections.find(|one| one.id == connection);
        said_over.is_some_and(|one| !std::mem::replace(&mut one.is_heeded, true))
    }

    /// Returns whether this node listens to a peer that says over this connection who it is: address book, directory and tests of
    /// addresses all work on that, and the peer may say it as often as it likes.
    pub(super) fn listens_to(&mut self, id: &PeerId, connection: ConnectionId, now: Instant) -> bool {
        let mut connections = self.by_id.get_mut(id).into_iter().flat_map(|peer| &mut peer.connections);
        let Some(said_over) = connections.find(|one| one.id == connection) else { return false };
        let (since, count) = &mut said_over.told;
        if now.saturating_duration_since(*since) >= MINUTE {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= TOLD_PER_MINUTE_MAX
    }

    /// Returns whether a peer was dialled, and is connected without a relay.
    pub(super) fn is_dialled_directly(&self, id: &PeerId, connection: ConnectionId) -> bool {
        let mut direct = self.by_id.get(id).into_iter().flat_map(Peer::direct);
        direct.any(|one| one.id == connection && one.direction == Direction::Outbound)
    }

    /// Returns whether a peer offers places as a relay.
    pub(super) fn offers_places(&self, id: &PeerId) -> bool {
        self.by_id
            .get(id)
            .and_then(|peer| peer.identified.as_ref())
            .is_some_and(|identified| identified.relays)
    }

    /// Lists the peers that offer places, where this node dialled them.
    pub(super) fn relays(&self) -> Vec<RelayCandidate> {
        let peers = self.by_id.iter().filter(|(id, _)| self.offers_places(id));
        peers
            .filter_map(|(id, _)| Some(RelayCandidate { peer: *id, address: self.reached_at(id)? }))
            .collect()
    }

    /// Forgets a connection; with the last one, the peer and those who wait for it.
    pub(super) fn closed(&mut self, id: PeerId, connection: ConnectionId, reason: &str) {
        let Some(peer) = self.by_id.get_mut(&id) else { return };
        peer.connections.retain(|other| other.id != connection);
        if peer.connections.is_empty() {
            let address = peer.address;
            self.by_id.remove(&id);
            self.by_address.remove(&address);
            self.give_up(id, &NotStarted::Unreachable { peer: address, reason: reason.to_owned() });
        }
    }

    /// The peer proved to be of this network. True the first time.
    pub(super) fn identified(&mut self, id: PeerId, mut identified: PeerFacts) -> bool {
        let Some(peer) = self.by_id.get_mut(&id) else { return false };
        identified.agent =
            identified.agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS_MAX).collect();
        let first = peer.identified.replace(identified).is_none();
        self.waiting.identified(&id);
        first
    }

    pub(super) fn wait(&mut self, id: PeerId, waiter: Waiter) {
        self.waiting.add(id, waiter);
    }

    /// Tells everybody who waits for `id` that there is no point.
    pub(super) fn give_up(&mut self, id: PeerId, why: &NotStarted) {
        self.waiting.give_up(&id, why);
    }

    /// Notes the round trip of a ping.
    pub(super) fn pinged(&mut self, id: PeerId, rtt: Duration) {
        if let Some(peer) = self.by_id.get_mut(&id) {
            peer.rtt = Some(rtt);
        }
    }

    pub(super) fn id_of(&self, address: Address) -> Option<PeerId> {
        self.by_address.get(&address).copied()
    }

    /// The peer at this place in the directory.
    pub(super) fn at(&self, place: Key) -> Option<PeerId> {
        self.by_id.iter().find(|(_, peer)| peer.place == place).map(|(id, _)| *id)
    }

    /// Returns whether somebody waits for a peer to be connected.
    pub(super) fn is_awaited(&self, id: &PeerId) -> bool {
        self.waiting.is_for(id)
    }

    /// The address, without names, that this node reached a peer at.
    pub(super) fn reached_at(&self, id: &PeerId) -> Option<Multiaddr> {
        let dialled = self.by_id.get(id)?.direct().find(|one| one.direction == Direction::Outbound)?;
        Some(addresses::without_peer(&dialled.reached))
    }

    pub(super) fn address_of(&self, id: &PeerId) -> Option<Address> {
        self.by_id.get(id).map(|peer| peer.address)
    }

    pub(super) fn connections_of(&self, id: &PeerId) -> Vec<ConnectionId> {
        self.by_id.get(id).map_or_else(Vec::new, |peer| peer.connections.iter().map(|c| c.id).collect())
    }

    /// The remote end of the peer's first connection without a relay.
    pub(super) fn remote_of(&self, id: &PeerId) -> Option<&Multiaddr> {
        self.by_id.get(id)?.direct().next().map(|connection| &connection.reached)
    }

    /// The networks of the connected peers of this network, one for each peer; not of those that a relay leads to.
    pub(super) fn networks(&self) -> Vec<Option<IpAddr>> {
        let known = self.by_id.values().filter(|peer| peer.identified.is_some());
        known.filter_map(|peer| Some(addresses::public_network(&peer.direct().next()?.reached))).collect()
    }

    /// Returns the addresses at which this node dialled the peer and was let in, by name if it was dialled by name.
    pub(super) fn dialled(&self, id: &PeerId) -> Vec<Multiaddr> {
        let direct = self.by_id.get(id).into_iter().flat_map(Peer::direct);
        let outbound = direct.filter(|connection| connection.direction == Direction::Outbound);
        outbound.map(|connection| connection.address.clone()).collect()
    }

    /// A connected peer of this network.
    pub(super) fn identity(&self, address: Address) -> Option<(PeerId, &PeerFacts)> {
        let id = self.id_of(address)?;
        self.by_id.get(&id)?.identified.as_ref().map(|identified| (id, identified))
    }

    pub(super) fn is_identified(&self, id: &PeerId) -> bool {
        self.by_id.get(id).is_some_and(|peer| peer.identified.is_some())
    }

    pub(super) fn identified_count(&self) -> usize {
        self.by_id.values().filter(|peer| peer.identified.is_some()).count()
    }

    /// A peer that answers questions, another one for the next `turn`.
    pub(super) fn in_turn(&self, turn: usize) -> Option<Address> {
        let peers = self.answering();
        peers.get(turn.checked_rem(peers.len())?).copied()
    }

    /// A peer that compares records, drawn by lot. Through a relay nobody does.
    pub(super) fn agreeing(&self, lot: u64) -> Option<Address> {
        let speaks =
            |peer: &Peer| peer.identified.as_ref().is_some_and(|identified| identified.speaks_records);
        let agrees = |peer: &&Peer| speaks(peer) && !peer.is_relayed();
        let peers: Vec<Address> = self.by_id.values().filter(agrees).map(|peer| peer.address).collect();
        let drawn = lot.checked_rem(peers.len() as u64)?;
        peers.get(usize::try_from(drawn).ok()?).copied()
    }

    /// Peers that answer questions, in order of their addresses.
    pub(super) fn answering(&self) -> Vec<Address> {
        let answers =
            |peer: &&Peer| peer.identified.as_ref().is_some_and(|identified| identified.speaks_info);
        let mut peers: Vec<Address> = self.by_id.values().filter(answers).map(|peer| peer.address).collect();
        peers.sort_unstable();
        peers
    }

    /// The address range of a peer, or of the relay to it, unless it is private.
    pub(super) fn range_of(&self, id: &PeerId) -> Option<IpAddr> {
        let connections = &self.by_id.get(id)?.connections;
        connections.iter().find_map(|connection| addresses::range(&connection.reached))
    }

    /// The remote ends of all connections to a peer.
    pub(super) fn remotes_of(&self, address: Address) -> Vec<Multiaddr> {
        let peer = self.id_of(address).and_then(|id| self.by_id.get(&id));
        peer.map_or_else(Vec::new, |peer| peer.connections.iter().map(|c| c.reached.clone()).collect())
    }

    pub(super) fn asker(&self, address: Address) -> Option<Asker> {
        let id = self.id_of(address)?;
        Some(Asker { id, ips: self.by_id.get(&id)?.ips() })
    }

    /// Peers that can be asked to dial back.
    pub(super) fn testers(&self) -> Vec<Tester> {
        let speaks =
            |peer: &&Peer| peer.identified.as_ref().is_some_and(|identified| identified.speaks_reach);
        self.by_id
            .values()
            .filter(speaks)
            .map(|peer| Tester { peer: peer.address, ips: peer.ips(), dialled: peer.ips_dialled() })
            .collect()
    }

    /// Lists peers that could dial on behalf of a peer that has not written to them: identified, at none of these
    /// IPs, and reached by us over QUIC, so that neither transport is closed to it. Up to `count`, as `salt` orders them.
    pub(super) fn strangers(&self, not_at: &[IpAddr], salt: &Hash, count: usize) -> Vec<Address> {
        let is_quic = |peer: &&Peer| peer.direct().any(|connection| addresses::is_quic(&connection.address));
        let speaks =
            |peer: &&Peer| peer.identified.as_ref().is_some_and(|identified| identified.speaks_reach);
        let is_elsewhere = |peer: &&Peer| {
            let ips = peer.ips();
            !ips.is_empty() && ips.iter().all(|ip| !not_at.contains(ip))
        };
        let strangers = self.by_id.values().filter(speaks).filter(is_quic).filter(is_elsewhere);
        let mut strangers: Vec<Address> = strangers.map(|peer| peer.address).collect();
        strangers.sort_by_cached_key(|peer| keccak256(&[salt, peer.as_bytes()]));
        strangers.truncate(count);
        strangers
    }

    /// The same peers as [`Self::list`], without what is only shown: nothing is copied for them.
    pub(super) fn neighbours(&self) -> Vec<Neighbour> {
        let known = self.by_id.values().filter(|peer| peer.identified.is_some());
        let mut neighbours: Vec<Neighbour> = known
            .map(|peer| Neighbour {
                address: peer.address,
                was_sought: peer.was_sought(),
                came: peer.came(),
                since: peer.since,
                is_relayed: peer.is_relayed(),
                network: peer.network(),
            })
            .collect();
        neighbours.sort_by_key(|neighbour| neighbour.address);
        neighbours
    }

    /// Up to `count` of the same peers: `owner` first, then those whose place in the directory is closest to that of its
    /// record.
    pub(super) fn closest(&self, owner: Address, count: usize) -> Vec<Address> {
        let place = Key::of(&wire::record_key(owner));
        let known = self.by_id.values().filter(|peer| peer.identified.is_some());
        let rank = |peer: &Peer| (peer.address != owner, place.distance(peer.place), peer.address);
        let mut peers: Vec<_> = known.map(rank).collect();
        peers.sort_unstable();
        peers.into_iter().take(count).map(|(_, _, peer)| peer).collect()
    }

    pub(super) fn list(&self) -> Vec<PeerInfo> {
        let mut list: Vec<PeerInfo> = self
            .by_id
            .values()
            .filter_map(|peer| {
                let identified = peer.identified.as_ref()?;
                Some(PeerInfo {
                    address: peer.address,
                    addresses: ways(&peer.connections),
                    rtt: peer.rtt,
                    direction: peer.connections.first()?.direction,
                    was_sought: peer.was_sought(),
                    came: peer.came(),
                    agent: identified.agent.clone(),
                    since: peer.since,
                })
            })
            .collect();
        list.sort_by_key(|peer| peer.address);
        list
    }
}

#[cfg(test)]
mod tests;
