//! Chooses who is dialled of those that the rendezvous names, and bounds what is dialled in the DHT itself. Pure.
//!
//! Anybody may list anything there: nodes that do not exist, and addresses of others, who would be knocked at by everybody
//! who asks. So few are dialled, and few at one place; who they are shows in the handshake.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use farthing_protocol::{Address, keccak256};
use libp2p::{Multiaddr, PeerId};

use crate::{addresses, identity};

/// Nodes that are dialled after one question, and addresses of each.
const INTRODUCED_MAX: usize = 20;
const ADDRESSES_MAX: usize = 4;
/// Of those, nodes with an address in one network, or with a name.
const PER_NETWORK_MAX: usize = 2;
/// Nodes of the DHT that are dialled in one visit, and addresses of them in one network. A visit meets some sixty.
const DIALS_MAX: usize = 300;
const DIALS_PER_NETWORK_MAX: usize = 24;

/// A node that the rendezvous names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RendezvousNode {
    pub(crate) peer: PeerId,
    pub(crate) addresses: Vec<Multiaddr>,
}

/// Chooses by lot, another one each round and for each node, so that entries which lead nowhere do not stand before the
/// others for ever.
pub(super) fn chosen(
    mut named: Vec<RendezvousNode>,
    own: Address,
    round: u32,
    allow_private: bool,
) -> Vec<RendezvousNode> {
    named
        .sort_by_cached_key(|node| keccak256(&[own.as_bytes(), &round.to_be_bytes(), &node.peer.to_bytes()]));
    let mut crowds = CrowdCount::new(PER_NETWORK_MAX);
    let mut chosen = Vec::new();
    for node in named {
        // The key of a wallet is of one kind, and its own is not sought.
        if identity::wallet(&node.peer).is_none_or(|wallet| wallet == own) {
            continue;
        }
        let mut once = HashSet::new();
        let there = node.addresses.iter().map(addresses::without_peer).filter(|address| {
            addresses::may_be_announced(address, allow_private) && once.insert(address.clone())
        });
        let there = crowds.take(there);
        if !there.is_empty() {
            chosen.push(RendezvousNode { peer: node.peer, addresses: there });
        }
        if chosen.len() == INTRODUCED_MAX {
            break;
        }
    }
    chosen
}

/// The dials of one visit that are left.
#[derive(Debug)]
pub(super) struct DialBudget {
    left: usize,
    crowds: CrowdCount,
}

impl DialBudget {
    pub(super) fn new() -> Self {
        Self { left: DIALS_MAX, crowds: CrowdCount::new(DIALS_PER_NETWORK_MAX) }
    }

    /// Those of a peer's addresses that may be dialled; none when it is to be left alone.
    pub(super) fn grant(&mut self, addresses: impl Iterator<Item = Multiaddr>) -> Vec<Multiaddr> {
        if self.left == 0 {
            return Vec::new();
        }
        self.left -= 1;
        self.crowds.take(addresses)
    }
}

/// The place where addresses crowd: a public network; or all names together, as any number of them lead to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CrowdPlace {
    Network(IpAddr),
    Named,
}

impl CrowdPlace {
    /// Nothing for private ranges, where everybody is a neighbour.
    fn of(address: &Multiaddr) -> Option<Self> {
        match addresses::has_name(address) {
            true => Some(Self::Named),
            false => addresses::public_network(address).map(Self::Network),
        }
    }
}

/// Counts, for each crowd, those that have an address in it.
#[derive(Debug)]
struct CrowdCount {
    per_network_max: usize,
    taken: HashMap<CrowdPlace, usize>,
}

impl CrowdCount {
    fn new(per_network_max: usize) -> Self {
        Self { per_network_max, taken: HashMap::new() }
    }

    /// Those of one peer's addresses for which there is a place, at most [`ADDRESSES_MAX`].
    fn take(&mut self, addresses: impl Iterator<Item = Multiaddr>) -> Vec<Multiaddr> {
        let is_free = |address: &Multiaddr| {
            let taken = CrowdPlace::of(address).and_then(|crowd| self.taken.get(&crowd));
            taken.is_none_or(|taken| *taken < self.per_network_max)
        };
        let free: Vec<Multiaddr> = addresses.filter(is_free).take(ADDRESSES_MAX).collect();
        let crowds: HashSet<CrowdPlace> = free.iter().filter_map(CrowdPlace::of).collect();
        for crowd in crowds {
            *self.taken.entry(crowd).or_default() += 1;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;

    const OWN: Address = Address::from_bytes([9; 20]);

    fn node(number: u8, addresses: &[&str]) -> RendezvousNode {
        let key = SecretKey::from_bytes(&[number; 32]).unwrap();
        let peer = identity::peer_id(&key.public_key());
        RendezvousNode { peer, addresses: addresses.iter().map(|text| text.parse().unwrap()).collect() }
    }

    fn everywhere(numbers: std::ops::RangeInclusive<u8>) -> Vec<RendezvousNode> {
        numbers.map(|n| node(n, &[&format!("/ip4/9.{n}.0.1/tcp/3001")])).collect()
    }

    #[test]
    fn at_most_twenty_are_dialled_and_others_in_the_next_round() {
        let few = chosen(everywhere(1..=20), OWN, 0, false);
        assert_eq!(few.len(), 20);
        let many = |round| chosen(everywhere(1..=60), OWN, round, false);
        assert_eq!(many(0).len(), INTRODUCED_MAX);
        assert_eq!(many(0), many(0));
        assert_ne!(many(0), many(1));
    }

    #[test]
    fn whoever_names_one_network_again_and_again_has_it_dialled_twice() {
        let crowd = (1..=60).map(|n| node(n, &[&format!("/ip4/9.9.{n}.1/tcp/3001")]));
        let named: Vec<_> = crowd.chain(everywhere(100..=105)).collect();
        let chosen = chosen(named, OWN, 0, false);
        let of_crowd = chosen.iter().filter(|node| node.addresses[0].to_string().starts_with("/ip4/9.9."));
        assert_eq!((of_crowd.count(), chosen.len()), (PER_NETWORK_MAX, PER_NETWORK_MAX + 6));
        // Nor does it help to put another address before it.
        let hidden = (1..=60)
            .map(|n| node(n, &[&format!("/ip4/8.{n}.0.1/tcp/1"), &format!("/ip4/9.9.{n}.1/tcp/3001")]));
        let chosen = super::chosen(hidden.collect(), OWN, 0, false);
        let victims = chosen.iter().flat_map(|node| &node.addresses);
        let victims = victims.filter(|address| address.to_string().starts_with("/ip4/9.9."));
        assert_eq!(victims.count(), PER_NETWORK_MAX);
    }

    #[test]
    fn whoever_names_names_has_two_of_them_dialled_as_all_may_lead_to_one_place() {
        let crowd = (1..=60).map(|n| node(n, &[&format!("/dns4/n{n}.victim.example/tcp/443")]));
        let named: Vec<_> = crowd.chain(everywhere(100..=105)).collect();
        let chosen = chosen(named, OWN, 0, false);
        let names = chosen.iter().filter(|node| addresses::has_name(&node.addresses[0]));
        assert_eq!((names.count(), chosen.len()), (PER_NETWORK_MAX, PER_NETWORK_MAX + 6));
    }

    #[test]
    fn who_is_no_node_of_ours_and_what_is_no_address_of_one_is_not_dialled() {
        let stranger = RendezvousNode { peer: PeerId::random(), ..node(1, &["/ip4/9.1.0.1/tcp/3001"]) };
        let inside = node(2, &["/ip4/192.168.1.1/tcp/80", "/ip4/127.0.0.1/tcp/80", "/memory/7"]);
        let own = node(3, &["/ip4/9.3.0.1/tcp/3001"]);
        let own_wallet = identity::wallet(&own.peer).unwrap();
        let twice = node(4, &["/ip4/9.4.0.1/tcp/3001", "/ip4/9.4.0.1/tcp/3001"]);
        let chosen = chosen(vec![stranger, inside, own, twice.clone()], own_wallet, 0, false);
        let [only] = &chosen[..] else { panic!("{chosen:?}") };
        assert_eq!((only.peer, only.addresses.len()), (twice.peer, 1));
    }

    #[test]
    fn a_visit_dials_no_more_than_its_budget_and_few_addresses_of_one_network() {
        let address = |n: usize| -> Multiaddr {
            format!("/ip4/9.9.{}.1/tcp/{}", n / 256, 1 + n % 256).parse().unwrap()
        };
        let mut budget = DialBudget::new();
        let dialled: usize = (0..1000).map(|n| budget.grant((n..n + 10).map(address)).len()).sum();
        assert_eq!(dialled, DIALS_PER_NETWORK_MAX * ADDRESSES_MAX);
        let private = |n: usize| -> Multiaddr { format!("/ip4/10.0.0.1/tcp/{n}").parse().unwrap() };
        let mut budget = DialBudget::new();
        let granted = (1..=1000).filter(|n| !budget.grant([private(*n)].into_iter()).is_empty());
        assert_eq!(granted.count(), DIALS_MAX);
    }
}
