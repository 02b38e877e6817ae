//! This node's reachability, as it is told: tested addresses, what peers said of each, and the router.

use std::{fmt, net::IpAddr};

use farthing_protocol::Address;
use libp2p::{Multiaddr, multiaddr::Protocol};

/// A report on whether the outside reaches this node, and how that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    /// Every address that is tested.
    pub checks: Vec<AddressCheck>,
    /// A test is under way.
    pub testing: bool,
    /// The end of the last test, in seconds since the Unix epoch.
    pub checked_secs: Option<u64>,
    /// Peers that were asked in the last test.
    pub peers_asked: usize,
    /// Peers that could be asked when a test was last due.
    pub testers: usize,
    /// Ports this node listens on.
    pub tcp_port: Option<u16>,
    pub quic_port: Option<u16>,
    /// The address of this machine on its LAN, where a router has to forward to.
    pub local_ip: Option<IpAddr>,
    /// The public addresses under which peers see this node.
    pub seen: Vec<IpAddr>,
    pub gateway: Gateway,
    /// Private addresses are published as well. Between two of them there may be a router all the same.
    pub private: bool,
    /// The provider seems to share one public address among several customers.
    pub shared: bool,
    /// Published without a test: where a node of a private network listens, besides what is tested.
    pub untested: Vec<String>,
    /// The relays that lead here where nobody can connect.
    pub relays: RelayUse,
    /// The nodes that keep this node's record, by which callers find it: of the last put that ended while peers are connected.
    pub record_holders: Option<RecordHolders>,
    /// Told to whoever asks for a test when none can be made now: in how many seconds one can.
    pub again_secs: Option<u64>,
}

/// The nodes of the directory that verified the own record and keep it, of those that are to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHolders {
    pub kept_by: usize,
    pub wanted: usize,
}

impl RecordHolders {
    /// Returns whether all that are to keep the record do: then it is put.
    #[must_use]
    pub const fn are_enough(self) -> bool {
        self.kept_by > 0 && self.kept_by >= self.wanted
    }
}

/// The use of relays, by a node that sells and that nobody can connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayUse {
    /// True while relays are wanted.
    pub is_sought: bool,
    /// The relays through which this node was shown to be reached.
    pub through: Vec<Address>,
    /// Relays that were asked for a place, or are being tested.
    pub asked: usize,
    /// Relays that gave none, or did not lead here.
    pub failed: usize,
}

/// The result of a test for an address or a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReachState {
    /// No test has decided yet.
    #[default]
    Unknown,
    /// The first test is under way.
    Testing,
    Reachable,
    NotReachable,
}

/// One tested address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressCheck {
    pub address: String,
    pub transport: Transport,
    pub port: u16,
    pub source: AddressSource,
    pub state: ReachState,
    /// True if it is in this node's record.
    pub published: bool,
    /// Peers whose dial arrived, of those that were asked.
    pub arrived: usize,
    pub asked: usize,
    pub failures: Vec<CheckFailure>,
}

/// A peer that did not come through, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    pub peer: Address,
    /// A stranger's text, one line.
    pub reason: String,
}

/// The source of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// The configuration's `announce`; published until it fails.
    Announced,
    /// The IP that peers see, and the port this node listens on.
    Observed,
    /// A port that the router forwards because UPnP asked it to.
    Mapped,
}

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    Tcp,
    Quic,
}

impl Transport {
    /// Returns the kind of port that a router forwards.
    #[must_use]
    pub const fn port_kind(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Quic => "UDP",
        }
    }

    /// The transport and port of an address, whatever stands before them.
    pub(crate) fn of(address: &Multiaddr) -> Option<(Self, u16)> {
        let mut parts = address.iter().skip(1);
        match (parts.next()?, parts.next()) {
            (Protocol::Tcp(port), None | Some(Protocol::P2p(_))) => Some((Self::Tcp, port)),
            (Protocol::Udp(port), Some(Protocol::QuicV1)) => Some((Self::Quic, port)),
            _ => None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
        })
    }
}

/// The router, as UPnP finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gateway {
    /// UPnP is off.
    #[default]
    NotAsked,
    /// It was not found yet.
    Unknown,
    /// There is none, or it does not speak UPnP.
    Absent,
    /// It has no public address itself.
    Private,
    /// It forwards ports, and this is its own outer address.
    Maps(IpAddr),
}

impl Reachability {
    /// Of all addresses of a transport: the best.
    pub fn state(&self, transport: Transport) -> ReachState {
        let of_transport = || self.checks.iter().filter(|check| check.transport == transport);
        let any = |state| of_transport().any(|check| check.state == state);
        [ReachState::Reachable, ReachState::Testing, ReachState::NotReachable]
            .into_iter()
            .find(|state| any(*state))
            .unwrap_or_default()
    }

    /// Returns whether somebody outside was shown to reach this node without a relay.
    pub fn is_reachable(&self) -> bool {
        self.checks.iter().any(|check| check.state == ReachState::Reachable)
    }
}
