//! The connected peers. Pure.
//!
//! A peer counts only once identify has shown that it is of this network; until then it is a connection.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use farthing_protocol::{Address, Hash, keccak256};
use libp2p::{Multiaddr, PeerId, core::ConnectedPoint, swarm::ConnectionId};
use tokio::sync::oneshot;

use crate::{
    Direction, Neighbour, NotStarted, PeerInfo, addresses, command::Asker, identity, reachability::Tester,
};

/// A channel to somebody who waits for one peer to be connected and identified.
pub(super) type Waiter = oneshot::Sender<Result<(), NotStarted>>;
/// A stranger's text is cut to this.
const AGENT_CHARS_MAX: usize = 64;

#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    /// As it was dialled, maybe by a name, or where it comes from.
    address: Multiaddr,
    /// The same without names: what the name led to.
    reached: Multiaddr,
    direction: Direction,
    /// Made for more than one question of the directory.
    is_wanted: bool,
}

#[derive(Debug)]
pub(super) struct Peer {
    address: Address,
    connections: Vec<Connection>,
    since: SystemTime,
    rtt: Option<Duration>,
    identified: Option<Identified>,
}

impl Peer {
    fn was_sought(&self) -> bool {
        self.connections.iter().any(|connection| connection.is_wanted)
    }

    fn came(&self) -> bool {
        self.connections.iter().any(|connection| connection.direction == Direction::Inbound)
    }

    /// Returns the IPs at which this node dialled it.
    fn ips_dialled(&self) -> Vec<IpAddr> {
        let dialled =
            self.connections.iter().filter(|connection| connection.direction == Direction::Outbound);
        dialled.filter_map(|connection| addresses::ip(&connection.reached)).collect()
    }

    /// Returns the IPs that its connections come from or go to.
    fn ips(&self) -> Vec<IpAddr> {
        self.connections.iter().filter_map(|connection| addresses::ip(&connection.reached)).collect()
    }
}

/// Lists the addresses that connections lead to, each once, without the peer, which is known.
fn ways(connections: &[Connection]) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    for connection in connections {
        let way = addresses::without_peer(&connection.address).to_string();
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// The facts that a peer states about itself.
#[derive(Debug)]
pub(super) struct Identified {
    pub(super) agent: String,
    pub(super) speaks_call: bool,
    pub(super) speaks_call_stream: bool,
    pub(super) speaks_info: bool,
    pub(super) speaks_sync: bool,
    pub(super) speaks_reach: bool,
}

/// Connected peers, and who waits for which.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_id: HashMap<PeerId, Peer>,
    by_address: HashMap<Address, PeerId>,
    waiting: HashMap<PeerId, Vec<Waiter>>,
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
            connections: Vec::new(),
            since: SystemTime::now(),
            rtt: None,
            identified: None,
        });
        let remote = endpoint.get_remote_address().clone();
        peer.connections.push(Connection { id: connection, address: remote, reached, direction, is_wanted });
        self.by_address.insert(address, id);
    }

    /// Connections to close when a peer has more than `max`: neither its oldest, which calls are on, nor its newest.
    pub(super) fn surplus(&self, id: &PeerId, max: usize) -> Vec<ConnectionId> {
        let connections = self.by_id.get(id).map_or(&[][..], |peer| &peer.connections);
        let many = connections.len().saturating_sub(max);
        connections.iter().skip(max.saturating_sub(1)).take(many).map(|connection| connection.id).collect()
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
    pub(super) fn identified(&mut self, id: PeerId, mut identified: Identified) -> bool {
        let Some(peer) = self.by_id.get_mut(&id) else { return false };
        identified.agent =
            identified.agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS_MAX).collect();
        let first = peer.identified.replace(identified).is_none();
        for waiter in self.waiting.remove(&id).unwrap_or_default() {
            let _ = waiter.send(Ok(()));
        }
        first
    }

    pub(super) fn wait(&mut self, id: PeerId, waiter: Waiter) {
        let waiting = self.waiting.entry(id).or_default();
        waiting.retain(|other| !other.is_closed());
        waiting.push(waiter);
    }

    /// Tells everybody who waits for `id` that there is no point.
    pub(super) fn give_up(&mut self, id: PeerId, why: &NotStarted) {
        for waiter in self.waiting.remove(&id).unwrap_or_default() {
            let _ = waiter.send(Err(why.clone()));
        }
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

    pub(super) fn address_of(&self, id: &PeerId) -> Option<Address> {
        self.by_id.get(id).map(|peer| peer.address)
    }

    pub(super) fn connections_of(&self, id: &PeerId) -> Vec<ConnectionId> {
        self.by_id.get(id).map_or_else(Vec::new, |peer| peer.connections.iter().map(|c| c.id).collect())
    }

    /// The remote end of the peer's first connection.
    pub(super) fn remote_of(&self, id: &PeerId) -> Option<&Multiaddr> {
        self.by_id.get(id)?.connections.first().map(|connection| &connection.reached)
    }

    /// The networks of the connected peers of this network, one for each peer.
    pub(super) fn networks(&self) -> Vec<Option<IpAddr>> {
        let known = self.by_id.values().filter(|peer| peer.identified.is_some());
        known.filter_map(|peer| Some(addresses::public_network(&peer.connections.first()?.reached))).collect()
    }

    /// Returns the addresses at which this node dialled the peer and was let in, by name if it was dialled by name.
    pub(super) fn dialled(&self, id: &PeerId) -> Vec<Multiaddr> {
        let connections = self.by_id.get(id).map_or(&[][..], |peer| &peer.connections);
        let outbound = connections.iter().filter(|connection| connection.direction == Direction::Outbound);
        outbound.map(|connection| connection.address.clone()).collect()
    }

    /// A connected peer of this network.
    pub(super) fn identity(&self, address: Address) -> Option<(PeerId, &Identified)> {
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

    /// Peers that answer questions, in order of their addresses.
    pub(super) fn answering(&self) -> Vec<Address> {
        let answers =
            |peer: &&Peer| peer.identified.as_ref().is_some_and(|identified| identified.speaks_info);
        let mut peers: Vec<Address> = self.by_id.values().filter(answers).map(|peer| peer.address).collect();
        peers.sort_unstable();
        peers
    }

    /// The address range of a peer, unless it is private.
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
        let is_quic =
            |peer: &&Peer| peer.connections.iter().any(|connection| addresses::is_quic(&connection.address));
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
            })
            .collect();
        neighbours.sort_by_key(|neighbour| neighbour.address);
        neighbours
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
