//! Under which addresses this node might be reached. Pure.
//!
//! Announced addresses come first. For a transport and family without any, the IP that enough peers see is
//! combined with the port this node listens on. What a router mapped by UPnP is added. Each is only a
//! candidate: dial-backs decide.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use farthing_protocol::{Address, limits};
use libp2p::Multiaddr;

use super::place::{self, Family};
use crate::{AddressSource, Transport, addresses};

/// Peers whose view of this node is remembered.
const OBSERVERS_MAX: usize = 64;
/// Distinct networks that must agree on this node's IP: one could lie, or sit on the same LAN.
const WITNESSES_MIN: usize = 2;

/// An address to be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressCandidate {
    pub(super) address: Multiaddr,
    /// The address that peers are asked to dial: the candidate's, with a name replaced by the IP that peers see. `None`
    /// while that is unknown, or when no peer would dial it.
    pub(super) dialled: Option<Multiaddr>,
    pub(super) source: AddressSource,
}

/// The IPs under which connected peers see this node.
#[derive(Debug, Default)]
pub(super) struct Observations {
    by_peer: BTreeMap<Address, Observation>,
}

#[derive(Clone, Copy, Debug)]
struct Observation {
    own: IpAddr,
    observer: IpAddr,
}

impl Observations {
    pub(super) fn note(&mut self, peer: Address, own: IpAddr, observer: IpAddr) {
        if self.by_peer.len() < OBSERVERS_MAX || self.by_peer.contains_key(&peer) {
            self.by_peer.insert(peer, Observation { own, observer });
        }
    }

    pub(super) fn forget(&mut self, peer: Address) {
        self.by_peer.remove(&peer);
    }

    /// The IP of `family` that the most witnesses name, when there are enough of them. Without any witness
    /// it stays what it was: an outage says nothing. On a private network every peer is a witness, and a
    /// single one will do where there is no other.
    pub(super) fn agreed(
        &self,
        family: Family,
        previous: Option<IpAddr>,
        allow_private: bool,
    ) -> Option<IpAddr> {
        let mut witnesses: BTreeMap<IpAddr, BTreeSet<Witness>> = BTreeMap::new();
        for (peer, seen) in &self.by_peer {
            let is_public = addresses::is_global(seen.own) && addresses::is_global(seen.observer);
            if Family::of_ip(seen.own) == family && (allow_private || is_public) {
                let witness = if allow_private {
                    Witness::Peer(*peer)
                } else {
                    Witness::Network(addresses::network_of(seen.observer))
                };
                witnesses.entry(seen.own).or_default().insert(witness);
            }
        }
        if witnesses.is_empty() {
            return previous;
        }
        let peers: usize = witnesses.values().map(BTreeSet::len).sum();
        let needed = if allow_private { WITNESSES_MIN.min(peers) } else { WITNESSES_MIN };
        let most = witnesses.iter().max_by_key(|(ip, by)| (by.len(), Some(**ip) == previous));
        match most {
            Some((ip, by)) if by.len() >= needed => Some(*ip),
            // Too few to believe; enough to go on believing.
            _ => previous.filter(|ip| witnesses.contains_key(ip)),
        }
    }

    /// Returns whether a peer sees this node under an address that providers share among customers.
    pub(super) fn is_shared(&self) -> bool {
        self.by_peer.values().any(|seen| place::is_shared(seen.own))
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Witness {
    Peer(Address),
    Network(IpAddr),
}

/// All that is known about this node's addresses.
#[derive(Debug)]
pub(super) struct OwnAddresses<'a> {
    pub(super) announced: &'a [Multiaddr],
    pub(super) listening: &'a [Multiaddr],
    pub(super) mapped: &'a [Multiaddr],
    /// Agreed by observers, at most one of each family.
    pub(super) seen: &'a [IpAddr],
    pub(super) allow_private: bool,
}

impl OwnAddresses<'_> {
    /// Lists the addresses to be tested; at most as many as one request holds.
    pub(super) fn candidates(&self) -> Vec<AddressCandidate> {
        let announced = self.announced.iter().map(|address| self.announced(address));
        let mapped = self.mapped.iter().map(|address| self.literal(address.clone(), AddressSource::Mapped));
        let mut candidates: Vec<AddressCandidate> = Vec::new();
        for candidate in announced.chain(self.observed()).chain(mapped) {
            let is_new = candidates.iter().all(|other| other.address != candidate.address);
            if is_new && candidates.len() < limits::REACH_ADDRESSES_MAX {
                candidates.push(candidate);
            }
        }
        candidates
    }

    fn announced(&self, address: &Multiaddr) -> AddressCandidate {
        let address = addresses::without_peer(address);
        if addresses::ip(&address).is_some() {
            return self.literal(address, AddressSource::Announced);
        }
        let seen = self.seen.iter().find(|ip| Some(Family::of_ip(**ip)) == Family::of(&address));
        let dialled = seen.zip(Transport::of(&address));
        let dialled = dialled.map(|(ip, (transport, port))| place::address(*ip, transport, port));
        AddressCandidate { address, dialled, source: AddressSource::Announced }
    }

    fn observed(&self) -> impl Iterator<Item = AddressCandidate> {
        let ports: BTreeSet<(Family, Transport, u16)> = self
            .listening
            .iter()
            .filter_map(|address| {
                let (transport, port) = Transport::of(address)?;
                Some((Family::of(address)?, transport, port))
            })
            .collect();
        self.seen.iter().flat_map(move |ip| {
            let of_family: Vec<_> =
                ports.iter().filter(|(family, ..)| *family == Family::of_ip(*ip)).copied().collect();
            of_family.into_iter().filter_map(|(_, transport, port)| {
                let address = place::address(*ip, transport, port);
                let is_announced = self.announced.iter().any(|other| place::are_alike(other, &address));
                (!is_announced).then(|| self.literal(address, AddressSource::Observed))
            })
        })
    }

    fn literal(&self, address: Multiaddr, source: AddressSource) -> AddressCandidate {
        let dialled =
            Some(address.clone()).filter(|address| addresses::is_dialable(address, self.allow_private));
        AddressCandidate { address, dialled, source }
    }
}

#[cfg(test)]
mod tests;
