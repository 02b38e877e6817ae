//! Whether other nodes can dial this one, as `farthing net reach` shows it.

use std::net::IpAddr;

use farthing_network::{AddressCheck, ReachState, Reachability, Source, Transport};
use farthing_protocol::Address;
use serde::{Deserialize, Serialize};

use super::Text;

/// `farthing net reach`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// In plain words, with what to do.
    pub summary: String,
    /// `unknown`, `testing`, `reachable` or `not_reachable`.
    pub tcp: String,
    pub quic: String,
    /// Seconds since the Unix epoch.
    pub checked_secs: Option<u64>,
    pub peers_asked: u64,
    /// Where a router has to forward to.
    pub local_ip: Option<IpAddr>,
    /// Under which public addresses peers see this node.
    pub seen: Vec<IpAddr>,
    pub addresses: Vec<ReachedAddress>,
}

/// One tested address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedAddress {
    pub address: String,
    /// `announced`, `observed` or `mapped`.
    pub source: String,
    /// As [`Reach::tcp`].
    pub state: String,
    /// Whether other nodes are told of it.
    pub published: bool,
    /// Peers that came through, of those that were asked.
    pub arrived: u64,
    pub asked: u64,
    pub failures: Vec<ReachFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachFailure {
    pub wallet: Text<Address>,
    pub reason: String,
}

impl Reach {
    #[must_use]
    pub fn of(reachability: &Reachability, now_secs: u64) -> Self {
        let state = |transport| state(reachability.state(transport)).to_owned();
        Self {
            summary: reachability.sentence(now_secs),
            tcp: state(Transport::Tcp),
            quic: state(Transport::Quic),
            checked_secs: reachability.checked_secs,
            peers_asked: reachability.peers_asked as u64,
            local_ip: reachability.local_ip,
            seen: reachability.seen.clone(),
            addresses: reachability.checks.iter().map(ReachedAddress::of).collect(),
        }
    }
}

impl ReachedAddress {
    fn of(check: &AddressCheck) -> Self {
        let source = match check.source {
            Source::Announced => "announced",
            Source::Observed => "observed",
            Source::Mapped => "mapped",
        };
        let failure = |failure: &farthing_network::CheckFailure| ReachFailure {
            wallet: failure.peer.into(),
            reason: failure.reason.clone(),
        };
        Self {
            address: check.address.clone(),
            source: source.to_owned(),
            state: state(check.state).to_owned(),
            published: check.published,
            arrived: check.arrived as u64,
            asked: check.asked as u64,
            failures: check.failures.iter().map(failure).collect(),
        }
    }
}

const fn state(state: ReachState) -> &'static str {
    match state {
        ReachState::Unknown => "unknown",
        ReachState::Testing => "testing",
        ReachState::Reachable => "reachable",
        ReachState::NotReachable => "not_reachable",
    }
}
