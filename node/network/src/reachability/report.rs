//! The report on this node's reachability.

use std::net::IpAddr;

use farthing_protocol::Address;
use libp2p::Multiaddr;

use super::{
    AddressSource, Prober, Transport,
    verdict::{Standing, Vote},
};

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
    /// Private addresses are published as well: nothing has to be forwarded on such a network.
    pub private: bool,
    /// The provider seems to share one public address among several customers.
    pub shared: bool,
    /// Published without a test: where a node of a private network listens, besides what is tested.
    pub untested: Vec<String>,
    /// Told to whoever asks for a test when none can be made now: in how many seconds one can.
    pub again_secs: Option<u64>,
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

    /// Returns whether somebody outside was shown to reach this node.
    pub fn is_reachable(&self) -> bool {
        self.checks.iter().any(|check| check.state == ReachState::Reachable)
    }
}

impl Prober {
    pub(crate) fn report(&self) -> Reachability {
        let check = |standing: &Standing| self.check(standing);
        let is_tested = |address: &Multiaddr| {
            self.standings.iter().any(|standing| standing.candidate.address == *address)
        };
        let port = |transport| port_of(&self.listening, transport);
        let mapped_elsewhere = match self.gateway {
            Gateway::Maps(outer) => !self.seen.is_empty() && !self.seen.contains(&outer),
            Gateway::Private => true,
            Gateway::NotAsked | Gateway::Unknown | Gateway::Absent => false,
        };
        Reachability {
            checks: self.standings.iter().filter_map(check).collect(),
            testing: self.is_testing(),
            checked_secs: self.checked_secs,
            peers_asked: self.peers_asked,
            testers: self.testers,
            tcp_port: port(Transport::Tcp),
            quic_port: port(Transport::Quic),
            local_ip: self.local_ip,
            seen: self.seen.clone(),
            gateway: self.gateway,
            private: self.allow_private,
            shared: mapped_elsewhere || self.observations.is_shared(),
            untested: self
                .untested
                .iter()
                .filter(|address| !is_tested(address))
                .map(Multiaddr::to_string)
                .collect(),
            again_secs: None,
        }
    }

    fn check(&self, standing: &Standing) -> Option<AddressCheck> {
        let (transport, port) = Transport::of(&standing.candidate.address)?;
        let state = match standing.reachable {
            Some(true) => ReachState::Reachable,
            Some(false) => ReachState::NotReachable,
            None if self.is_testing() => ReachState::Testing,
            None => ReachState::Unknown,
        };
        let failure = |(peer, vote): &(Address, Vote)| {
            Some(CheckFailure { peer: *peer, reason: vote.reason()?.to_owned() })
        };
        let failures: Vec<_> = standing.votes.iter().filter_map(failure).collect();
        Some(AddressCheck {
            address: standing.candidate.address.to_string(),
            transport,
            port,
            source: standing.candidate.source,
            state,
            // A private network's nodes publish where they listen, whatever tests say.
            published: standing.believed || self.untested.contains(&standing.candidate.address),
            arrived: standing.votes.len() - failures.len(),
            asked: standing.votes.len(),
            failures,
        })
    }
}

fn port_of(listening: &[Multiaddr], transport: Transport) -> Option<u16> {
    listening.iter().filter_map(Transport::of).find(|(of, _)| *of == transport).map(|(_, port)| port)
}
