//! The report on what the tests showed.

use farthing_protocol::Address;
use libp2p::Multiaddr;

use super::{
    Prober,
    verdict::{Standing, Vote},
};
use crate::{AddressCheck, CheckFailure, Gateway, ReachState, Reachability, RelayUse, Transport};

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
            // Of the task that asks them.
            relays: RelayUse::default(),
            record_holders: None,
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
