//! The network's state, as it is shown: a status to watch, peers to list, counters to export.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use farthing_protocol::Address;

use crate::{BootstrapPeer, ClockSkew, Reachability, RendezvousReport};

/// The network at a glance; a new value whenever something in it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkStatus {
    /// The addresses that the node listens on, one per interface.
    pub listening: Vec<String>,
    /// The ports that it was told to listen on, and those of TCP that the system gave it.
    pub ports: BTreeSet<u16>,
    /// The addresses under which the node says it can be reached.
    pub external: Vec<String>,
    /// The addresses under which peers see this node; candidates, believed by nobody.
    pub observed: Vec<String>,
    pub connections: usize,
    /// Peers of this network that are connected.
    pub peers: usize,
    pub directory: DirectoryMode,
    /// Peers in the directory's routing table.
    pub directory_peers: usize,
    /// Node records held for others.
    pub records: usize,
    /// The findings on whether the outside can dial this node.
    pub reachability: Reachability,
    /// Peers that were met and are remembered with their addresses.
    pub peers_known: usize,
    /// By how much peers show that this clock is off, beyond a minute.
    pub clock: Option<ClockSkew>,
    /// Another node seems to run with this wallet's key; neither is reached reliably until one is stopped.
    pub duplicate_identity: bool,
    /// Every configured peer, and what came of it.
    pub bootstrap: Vec<BootstrapPeer>,
    /// The visits to the public DHT, and what came of them.
    pub rendezvous: RendezvousReport,
}

/// The node's part in the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectoryMode {
    /// Asks, because no address is known under which it could be asked.
    #[default]
    Client,
    /// Keeps records and answers.
    Server,
}

/// A connected peer, as `farthing net peers` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    pub address: Address,
    /// The remote ends of its connections.
    pub addresses: Vec<String>,
    /// The latest ping.
    pub rtt: Option<Duration>,
    pub direction: Direction,
    /// True if this node dialled it on purpose, and not for a question of the directory.
    pub was_sought: bool,
    /// True if it dialled this node, even if this node dialled it too.
    pub came: bool,
    /// The name that it gives its software; a stranger's text.
    pub agent: String,
    pub since: SystemTime,
}

/// A connected peer of this network, as far as deciding needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub address: Address,
    /// True if this node dialled it on purpose, and not for a question of the directory.
    pub was_sought: bool,
    /// True if it dialled this node, even if this node dialled it too.
    pub came: bool,
    /// The time since which it has been connected without a gap.
    pub since: SystemTime,
    /// True while a relay alone leads to it, which carries too little to compare catalogs or records.
    pub is_relayed: bool,
    /// The network at the other end of its connection, unless that is private or a relay leads there.
    pub network: Option<IpAddr>,
}

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Inbound,
    Outbound,
}

macro_rules! counters {
    ($($(#[cfg($when:meta)])? $(#[doc = $help:literal])+ $name:ident),+ $(,)?) => {
        /// Counted since the start.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[cfg($when)])? pub(crate) $name: AtomicU64),+
        }

        /// The counts since the start; the documentation of a field is its help text.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct CounterSnapshot {
            $($(#[cfg($when)])? $(#[doc = $help])+ pub $name: u64),+
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($(#[cfg($when)])? $name: self.$name.load(Ordering::Relaxed)),+ }
            }
        }
    };
}

counters! {
    /// Requests sent to owners, calls and what is asked about them, without a relay.
    calls_sent_directly,
    /// The same through relays.
    calls_sent_relayed,
    /// Those whose answer was lost.
    calls_unknown,
    /// Calls that could not be sent.
    calls_not_started,
    /// Streams opened for calls to owners; a stream carries one call after the other.
    call_streams_opened,
    /// Requests received from consumers, calls and what is asked about them, without a relay.
    calls_received_directly,
    /// The same through relays.
    calls_received_relayed,
    /// Received calls refused because too many were being served.
    calls_refused_busy,
    /// Received requests refused because they were too large, too slow or not to be understood.
    requests_unread,
    /// Streams reset because even refusals were too many.
    streams_reset,
    /// Info questions received.
    info_received,
    /// Node records accepted from others.
    records_accepted,
    /// Node records rejected: forged, expired, older than the one held, or too many.
    records_rejected,
    /// Gossiped objects received, each once.
    gossip_received,
    /// Received objects that were not looked at, because there were too many.
    gossip_dropped,
    /// Own objects told to neighbours.
    gossip_sent,
    /// Connections opened, by either side.
    connections_opened,
    /// Connection attempts of ours that failed.
    dials_failed,
    /// Peers blocked for bad frames or signatures.
    peers_blocked,
    /// Peers turned away because they belong to another network.
    peers_of_other_networks,
    /// Dials made because peers asked to be dialled back.
    dial_backs,
    /// Requests to be dialled back that were refused: too soon again, or not to be understood.
    dial_backs_refused,
    /// Places given to others, who are reached through this node.
    relay_reservations,
    /// Connections of others that began through this node.
    relay_circuits,
    /// Those of them that ended.
    relay_circuits_ended,
    /// Requests for a place or a connection through this node that were refused.
    relay_refusals,
    /// Direct connections made beside one through a relay.
    punched,
    /// Attempts at such connections that were given up.
    punches_failed,
    /// Questions at the rendezvous after which other nodes are dialled.
    rendezvous_found,
    /// Questions at the rendezvous that brought nobody.
    rendezvous_nobody,
    /// Visits to ask at the rendezvous that did not get in.
    rendezvous_ask_no_entrance,
    /// Questions at the rendezvous that nobody answered.
    rendezvous_ask_no_answer,
    /// Visits to the rendezvous after which it lists this node.
    rendezvous_listed,
    /// Visits to be listed at the rendezvous that did not get in.
    rendezvous_list_no_entrance,
    /// Visits to be listed at the rendezvous where nobody answered.
    rendezvous_list_no_answer,
    /// Nodes chosen to be dialled from those that the rendezvous named.
    rendezvous_nodes,
    /// Look-ups of owners in the directory.
    lookups,
    /// Look-ups that found nothing.
    lookups_failed,
    /// Requests to the directory's nodes for look-ups that ended.
    lookup_requests,
    /// Look-ups in which a node of the directory held a record.
    lookups_answered,
    /// Requests to the directory's nodes until the first of them answered with a record.
    lookup_requests_until_answered,
    /// Bytes written to streams on sockets, without what encryption and the wire add.
    stream_bytes_sent,
    /// Bytes read from streams on sockets, without what encryption and the wire add.
    stream_bytes_received,
    #[cfg(feature = "memory")]
    /// Pieces written to connections within one process; a connection's security writes one for each message.
    memory_messages_sent,
    #[cfg(feature = "memory")]
    /// Bytes written to connections within one process. Those on sockets are counted by the system.
    memory_bytes_sent,
    #[cfg(feature = "memory")]
    /// Bytes read from connections within one process.
    memory_bytes_received,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request to an owner by its way.
    pub(crate) fn count_sent(&self, is_relayed: bool) {
        Self::add(if is_relayed { &self.calls_sent_relayed } else { &self.calls_sent_directly });
    }

    /// Counts a request of a consumer by its way.
    pub(crate) fn count_received(&self, is_relayed: bool) {
        Self::add(if is_relayed { &self.calls_received_relayed } else { &self.calls_received_directly });
    }

    pub(crate) fn add_many(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}
