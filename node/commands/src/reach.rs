//! Reachability of this node: what the network found out, in the control socket's words.

pub(crate) mod bootstrap;
mod keepers;
mod relayed;
pub(crate) mod rendezvous;
mod words;

use farthing_network::{AddressCheck, AddressSource, CheckFailure, Reachability, Transport};

use farthing_control::types::{Reach, ReachFailure, ReachState, ReachedAddress};

pub(crate) use words::Words;

/// As the command line shows it.
pub(super) fn shown(reachability: &Reachability, now_secs: u64) -> Reach {
    let untested = reachability.untested.iter().map(|address| ReachedAddress {
        address: address.clone(),
        source: "listening".to_owned(),
        state: ReachState::Unknown,
        published: true,
        arrived: 0,
        asked: 0,
        failures: Vec::new(),
    });
    Reach {
        reachable: reachability.is_reachable(),
        relays: reachability.relays.through.iter().map(|relay| (*relay).into()).collect(),
        again_secs: reachability.again_secs,
        summary: Words(reachability).sentence(now_secs),
        tcp: state(reachability.state(Transport::Tcp)),
        quic: state(reachability.state(Transport::Quic)),
        checked_secs: reachability.checked_secs,
        peers_asked: reachability.peers_asked as u64,
        // No router forwards to this machine's own loopback.
        local_ip: reachability.local_ip.filter(|ip| !ip.is_loopback()),
        tcp_port: reachability.tcp_port,
        udp_port: reachability.quic_port,
        seen: reachability.seen.clone(),
        addresses: reachability.checks.iter().map(address).chain(untested).collect(),
    }
}

fn address(check: &AddressCheck) -> ReachedAddress {
    let source = match check.source {
        AddressSource::Announced => "announced",
        AddressSource::Observed => "observed",
        AddressSource::Mapped => "mapped",
    };
    let failure =
        |failure: &CheckFailure| ReachFailure { wallet: failure.peer.into(), reason: failure.reason.clone() };
    ReachedAddress {
        address: check.address.clone(),
        source: source.to_owned(),
        state: state(check.state),
        published: check.published,
        arrived: check.arrived as u64,
        asked: check.asked as u64,
        failures: check.failures.iter().map(failure).collect(),
    }
}

const fn state(found: farthing_network::ReachState) -> ReachState {
    use farthing_network::ReachState as Found;
    match found {
        Found::Unknown => ReachState::Unknown,
        Found::Testing => ReachState::Testing,
        Found::Reachable => ReachState::Reachable,
        Found::NotReachable => ReachState::NotReachable,
    }
}
