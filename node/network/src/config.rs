//! Options that a node's network is started with, and reasons why the start fails.

use std::{path::PathBuf, time::Duration};

use farthing_bounds::ByteBudget;
use farthing_protocol::{SecretKey, limits, wire::NetworkName};

use crate::frame::MinimumPace;

/// The budget of a network that is not given one.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The settings with which one node takes part in the network.
///
/// Multiaddresses are text, such as `/ip4/203.0.113.7/tcp/3001` or `/dns4/node.example/udp/3001/quic-v1`. With
/// the feature `memory`, nodes of one process may use `/memory/7` where private addresses are allowed; `/memory/0` takes a free
/// number.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// The wallet's key is the node's network key: connections prove the wallet.
    pub key: SecretKey,
    pub network: NetworkName,
    /// The addresses to listen on. Starting fails unless every one can be bound.
    pub listen: Vec<String>,
    /// Addresses under which the outside reaches this node; believed and published at once.
    pub announce: Vec<String>,
    /// Peers to begin with, with or without `/p2p/…`; tried for ever.
    pub bootstrap: Vec<String>,
    /// True if private and loopback addresses are published, learned and dialled. For tests, compose files
    /// and LANs; on the public network a stranger's record must not point us at somebody's router.
    pub allow_private: bool,
    /// Set to tell neighbours of new records and listings at once. Without it they travel by
    /// reconciliation and look-ups alone.
    pub gossip: bool,
    /// Set to look for nodes of the same local network by multicast.
    pub mdns: bool,
    /// The folder in which known peers and records are kept across restarts, as `network.redb`.
    pub state_dir: Option<PathBuf>,
    /// `farthing/0.1.0`
    pub agent: String,
    /// The highest sequence number this wallet ever published; the next record goes above it. Persist
    /// what [`crate::NetworkHandle::publish`] returns and hand it back here.
    pub record_seq_start: u64,
    pub reach: ReachConfig,
    /// Set to find others in the public IPFS DHT, and to be found there. Nobody is asked there, or told anything, without.
    pub rendezvous: Option<RendezvousConfig>,
    pub relay: RelayConfig,
    pub limits: NetworkLimits,
    /// Memory for bodies, shared with whatever else of the node holds some.
    pub budget: ByteBudget,
}

impl NetworkConfig {
    /// A node on port 3001 of every interface, over TCP and QUIC, that knows nobody yet.
    pub fn new(key: SecretKey, network: NetworkName) -> Self {
        Self {
            key,
            network,
            listen: [
                "/ip4/0.0.0.0/tcp/3001",
                "/ip4/0.0.0.0/udp/3001/quic-v1",
                "/ip6/::/tcp/3001",
                "/ip6/::/udp/3001/quic-v1",
            ]
            .map(String::from)
            .to_vec(),
            announce: Vec::new(),
            bootstrap: Vec::new(),
            allow_private: false,
            gossip: true,
            mdns: false,
            state_dir: None,
            agent: concat!("farthing/", env!("CARGO_PKG_VERSION")).to_owned(),
            record_seq_start: 0,
            reach: ReachConfig::default(),
            rendezvous: None,
            relay: RelayConfig::default(),
            limits: NetworkLimits::default(),
            budget: ByteBudget::new(BODY_BYTES_MAX),
        }
    }
}

/// Settings by which this node finds out whether it can be reached, and helps others to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachConfig {
    /// Set to ask the router by UPnP to forward the listening ports.
    pub upnp: bool,
    /// From the start to the first test: peers have been found by then.
    pub first: Duration,
    /// From one test to the next.
    pub interval: Duration,
    /// The same after a test that leaves an address in doubt.
    pub retry: Duration,
    /// From a change of address to its test, so that changes that come together are tested together.
    pub debounce: Duration,
    /// Peers that are asked in a test; two of three decide.
    pub peers: usize,
    /// The shortest time between two dial-backs of one peer, and between two requests to it.
    pub asker_interval: Duration,
    /// One dial of a peer that asked for it.
    pub dial_deadline: Duration,
}

impl Default for ReachConfig {
    fn default() -> Self {
        Self {
            upnp: false,
            first: Duration::from_secs(10),
            interval: Duration::from_secs(15 * 60),
            retry: Duration::from_secs(60),
            debounce: Duration::from_secs(2),
            peers: 3,
            asker_interval: Duration::from_secs(60),
            dial_deadline: Duration::from_secs(5),
        }
    }
}

/// The way into the public DHT in which nodes that know nobody find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendezvousConfig {
    /// Nodes of that DHT to begin with, as multiaddresses.
    pub entrance: Vec<String>,
    /// From the start to the first visit: whom the node knows has been found by then.
    pub first: Duration,
    /// From a question in vain to the next one, at first; and from the loss of company to a question.
    pub retry: Duration,
}

impl RendezvousConfig {
    /// The pauses that nodes make unless tests want others.
    pub const fn new(entrance: Vec<String>) -> Self {
        Self { entrance, first: Duration::from_secs(5), retry: Duration::from_secs(20) }
    }
}

/// Settings by which this node is reached through others, and others through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Set to be reached through relays while this node sells and nobody can connect to it.
    pub used: bool,
    /// Set to relay others while this node can be reached.
    pub serves: bool,
    /// The longest time that a relay is used through which no wallet with an open channel came, where another can be asked.
    pub unproven_max: Duration,
    /// Others that have a place here, in all and of one address range. A place costs a connection. A quarter of them is kept for
    /// wallets with which channels are open, whatever their range.
    pub reservations_max: usize,
    pub reservations_per_range_max: usize,
    /// The time for which a place is given. Guests renew it after three quarters by the relay's clock, so that it is more than
    /// clocks differ by.
    pub reservation_max: Duration,
    /// Connections through this node, in all, of one peer and of one address range. Each holds a stream and two buffers of
    /// 8 KiB.
    pub circuits_max: usize,
    pub circuits_per_peer_max: usize,
    pub circuits_per_range_max: usize,
    /// Connections that lead to one guest, and those of them that it has not taken yet: whoever has many wallets and addresses
    /// fills no more than these, and a guest that answers nothing keeps few waiting.
    pub circuits_per_guest_max: usize,
    pub circuits_awaited_per_guest_max: usize,
    /// The bytes that a circuit carries, both ways together: enough to find a direct way, and for some small calls where there
    /// is none.
    pub circuit_bytes_max: u64,
    pub circuit_max: Duration,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            used: true,
            serves: true,
            unproven_max: Duration::from_secs(6 * 3600),
            reservations_max: 32,
            reservations_per_range_max: 4,
            reservation_max: Duration::from_secs(2 * 3600),
            circuits_max: 128,
            circuits_per_peer_max: 8,
            circuits_per_range_max: 16,
            circuits_per_guest_max: 32,
            circuits_awaited_per_guest_max: 8,
            circuit_bytes_max: 2 * 1024 * 1024,
            circuit_max: Duration::from_secs(5 * 60),
        }
    }
}

/// Every bound of this crate, each with its reason. Protocol bounds are in [`farthing_protocol::limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Open connections. A connection costs about 100 KiB; a node talks to a few dozen peers.
    pub connections_max: u32,
    /// Of those, kept free for peers with open channels: strangers never take the last quarter.
    pub connections_reserved: u32,
    /// A connection is closed after so long without a stream, unless it is kept: a look-up meets dozens of nodes
    /// that are not needed again.
    pub contact_idle_max: Duration,
    /// A connection made on purpose is kept so long from its beginning, and one that carried a call from that
    /// call on: warm connections are what makes a call one round trip. Neighbours in gossip stay.
    pub connection_kept: Duration,
    /// Two, so that both sides may dial at the same moment. The newest always has a place: a peer that comes again
    /// has lost the others, or is another node with its key, of which both shall hear.
    pub connections_per_peer_max: u32,
    /// Handshakes in progress, each way.
    pub connections_pending_max: u32,
    /// Handshakes from one public address: a quarter, so that half-open connections keep nobody else out.
    pub connections_pending_per_ip_max: u32,
    /// The same for private and loopback ranges.
    pub connections_pending_per_private_ip_max: u32,
    /// Inbound connections from one public address (IPv6: one /64).
    pub connections_per_ip_max: u32,
    /// The same for private and loopback ranges, where one address may stand for a whole test network.
    pub connections_per_private_ip_max: u32,
    /// Calls of one peer being served; the next is answered with `Busy`. A call has its place from the end of its
    /// request to the beginning of its answer: what is slow on the line takes none.
    pub inbound_calls_per_peer_max: usize,
    /// Calls being served in all; half of them of peers with open channels alone.
    pub inbound_calls_max: usize,
    /// Call streams of one peer, from the first byte of the request to the last of the answer, and in all, half of
    /// them likewise. A stream costs 64 KiB and a body, which is counted.
    pub inbound_streams_per_peer_max: usize,
    pub inbound_streams_max: usize,
    /// Own calls under way to one peer, and in all. Twice what a peer serves at once.
    pub outbound_calls_per_peer_max: usize,
    pub outbound_calls_max: usize,
    pub response_body_bytes_max: usize,
    /// Node records remembered, in memory and on the disk; about 600 bytes each.
    pub records_max: usize,
    /// Beside those, kept in memory for the directory: the nearest to this node, which others look for here.
    pub records_near_max: usize,
    /// A head must arrive within this time of its stream.
    pub head_deadline: Duration,
    /// The longest silence between two pieces of a body.
    pub body_idle_max: Duration,
    /// The least rate of a request, an answer or a frame, once that silence is over: a poor mobile line has ten times
    /// as much. With it, 4 MiB take at most four and a half minutes.
    pub body_bytes_per_sec_min: u64,
    /// The longest that an answer may take to be written: whoever asked has given up after the longest deadline.
    pub answer_written_max: Duration,
    /// Catalog sessions that others opened: in all, half of them for peers with open channels, and of one address
    /// range. One peer has one. A session may hold a few MiB.
    pub inbound_syncs_max: usize,
    pub inbound_syncs_per_range_max: usize,
    /// The silence of its opener, and the duration, after which a session makes room when no place is left for another:
    /// what it lacks comes with the next one.
    pub sync_quiet_max: Duration,
    pub sync_turn_max: Duration,
    /// The time between two sessions in which this node compares records with a neighbour.
    pub agreement_interval: Duration,
    /// The longest silence in a catalog session, and its longest duration.
    pub sync_idle_max: Duration,
    pub sync_session_max: Duration,
    /// The rest after which a stream for calls ends, on the side that answers. The asking side takes one that rests for half
    /// as long, so that no request is written to an end that is just going.
    pub stream_rest_max: Duration,
    /// The longest time that a shutdown waits for calls being served.
    pub drain_deadline: Duration,
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self {
            connections_max: 256,
            connections_reserved: 64,
            contact_idle_max: Duration::from_secs(20),
            connection_kept: Duration::from_secs(600),
            connections_per_peer_max: 2,
            connections_pending_max: 32,
            connections_pending_per_ip_max: 8,
            connections_pending_per_private_ip_max: 24,
            connections_per_ip_max: 16,
            connections_per_private_ip_max: 100,
            inbound_calls_per_peer_max: limits::CALLS_PER_PEER_MAX,
            inbound_calls_max: 128,
            inbound_streams_per_peer_max: 128,
            inbound_streams_max: 512,
            outbound_calls_per_peer_max: 128,
            outbound_calls_max: 256,
            response_body_bytes_max: limits::RESPONSE_BODY_BYTES_MAX,
            records_max: 100_000,
            records_near_max: 1_000,
            head_deadline: Duration::from_secs(5),
            body_idle_max: Duration::from_secs(15),
            body_bytes_per_sec_min: 16 * 1024,
            answer_written_max: Duration::from_millis(limits::CALL_DEADLINE_MS_MAX),
            inbound_syncs_max: 16,
            inbound_syncs_per_range_max: 2,
            sync_quiet_max: Duration::from_secs(3),
            sync_turn_max: Duration::from_secs(20),
            agreement_interval: Duration::from_secs(300),
            sync_idle_max: Duration::from_secs(15),
            sync_session_max: Duration::from_secs(60),
            stream_rest_max: Duration::from_secs(60),
            drain_deadline: Duration::from_secs(10),
        }
    }
}

impl NetworkLimits {
    /// Returns the slowest pace at which bodies and frames may move.
    pub(crate) fn pace(&self) -> MinimumPace {
        MinimumPace { idle_max: self.body_idle_max, bytes_per_sec_min: self.body_bytes_per_sec_min }
    }
}

fn how_to_listen(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{AddrNotAvailable, PermissionDenied, Unsupported};
    match error.kind() {
        AddrNotAvailable => {
            "it is not an address of this machine: set one of this machine's addresses in `network.listen`, or 0.0.0.0 \
             for all of them"
        }
        PermissionDenied => {
            "this user may not use that port: choose one from 1024 on in `network.listen`, such as 3001"
        }
        Unsupported => {
            "write it like /ip4/0.0.0.0/tcp/3001 or /ip4/0.0.0.0/udp/3001/quic-v1 in `network.listen`"
        }
        _ => {
            "stop the program using that port, which may be another node, or choose another port in \
             `network.listen`"
        }
    }
}

/// The reason that the network did not start, or cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("network.{setting}: {problem}")]
    Address { setting: &'static str, problem: String },
    #[error("cannot listen on {address}")]
    Listen { address: String, source: std::io::Error },
    #[error("the network name `{0}` cannot be part of a protocol name")]
    Network(String),
    #[error("the system's name resolver cannot be used")]
    Resolver { source: std::io::Error },
    #[error("the wallet's key cannot be used as a network key")]
    Key,
    #[error("the node record cannot be signed: {0}")]
    Record(#[from] farthing_protocol::signed::DocumentError),
    #[error("the network has been shut down")]
    Stopped,
}

impl NetworkError {
    /// Returns advice on what to do next, where there is something.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Listen { source, .. } => Some(how_to_listen(source)),
            Self::Resolver { .. } => Some("check /etc/resolv.conf"),
            Self::Stopped => Some("repeat it when the node runs again"),
            Self::Address { .. } | Self::Network(_) | Self::Key | Self::Record(_) => None,
        }
    }
}
