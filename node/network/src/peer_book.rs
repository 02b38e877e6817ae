//! The peers this node has met: under which addresses, and how well each of those has served. Pure.
//!
//! Only a peer that was connected and identified enters, so nobody can fill the book by telling stories. A
//! full book forgets whoever was not seen for longest, and one network has a share of it only, so that
//! whoever owns a network cannot fill it either.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use libp2p::{Multiaddr, PeerId};

use crate::addresses;

/// Peers remembered: enough to come back after years, little enough to be read at once.
const PEERS_MAX: usize = 2_000;
/// Addresses of one peer: TCP and QUIC over both families, and those of before it moved.
const ADDRESSES_MAX: usize = 6;
const PEERS_PER_NETWORK_MAX: usize = 64;

/// One address of a peer, and what came of dialling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownAddress {
    pub(crate) address: Multiaddr,
    /// Connections made to it.
    pub(crate) successes: u32,
    /// Attempts that failed since the last success.
    pub(crate) failures: u32,
    /// The last time it was connected to or named by its peer, in seconds since the Unix epoch.
    pub(crate) seen_secs: u64,
}

impl KnownAddress {
    /// Smaller is better: what works, then what worked often, then what is fresh.
    fn rank(&self) -> impl Ord + use<> {
        use std::cmp::Reverse;
        (self.failures, Reverse(self.successes), Reverse(self.seen_secs))
    }
}

/// Peers by id, each with its addresses.
#[derive(Debug, Default)]
pub(crate) struct PeerBook {
    peers: HashMap<PeerId, Vec<KnownAddress>>,
    crowds: Crowds,
    changed: HashSet<PeerId>,
}

/// The peers that have addresses in each network, so that none is looked for in the whole book.
#[derive(Debug, Default)]
struct Crowds(HashMap<IpAddr, HashSet<PeerId>>);

impl Crowds {
    fn of(&self, network: Option<IpAddr>) -> Option<&HashSet<PeerId>> {
        self.0.get(&network?)
    }

    fn enter(&mut self, peer: PeerId, address: &Multiaddr) {
        if let Some(network) = addresses::public_network(address) {
            self.0.entry(network).or_default().insert(peer);
        }
    }

    /// The peer no longer has this address; those that are `left` may be in its network.
    fn leave(&mut self, peer: PeerId, address: &Multiaddr, left: &[KnownAddress]) {
        let network = addresses::public_network(address);
        let is_in_it = |known: &KnownAddress| addresses::public_network(&known.address) == network;
        let Some(network) = network.filter(|_| !left.iter().any(is_in_it)) else { return };
        if let Some(crowd) = self.0.get_mut(&network) {
            crowd.remove(&peer);
            if crowd.is_empty() {
                self.0.remove(&network);
            }
        }
    }
}

impl PeerBook {
    /// Puts back what was stored. Bounds hold for it as for everything else.
    pub(crate) fn restore(&mut self, peer: PeerId, known: KnownAddress) {
        if let Some(place) = self.place(peer, &known.address, known.seen_secs) {
            *place = known;
        }
        self.changed.clear();
    }

    /// We dialled `peer` there and it is of our network.
    pub(crate) fn reached(&mut self, peer: PeerId, address: &Multiaddr, now_secs: u64) {
        if let Some(known) = self.place(peer, address, now_secs) {
            known.successes = known.successes.saturating_add(1);
            known.failures = 0;
            known.seen_secs = now_secs;
        }
    }

    /// `peer`, which is connected and of our network, says that it listens there.
    pub(crate) fn listens(&mut self, peer: PeerId, address: &Multiaddr, now_secs: u64) {
        if let Some(known) = self.place(peer, address, now_secs) {
            known.seen_secs = now_secs;
        }
    }

    /// Nobody answered there, or somebody else.
    pub(crate) fn failed(&mut self, peer: PeerId, address: &Multiaddr) {
        let address = addresses::without_peer(address);
        let known = self.peers.get_mut(&peer).and_then(|all| all.iter_mut().find(|k| k.address == address));
        if let Some(known) = known {
            known.failures = known.failures.saturating_add(1);
            self.changed.insert(peer);
        }
    }

    /// `known` and what the book knows of `peer`, best first, each once.
    pub(crate) fn best_first(&self, peer: &PeerId, known: &[Multiaddr]) -> Vec<Multiaddr> {
        let held = self.peers.get(peer).map_or(&[][..], Vec::as_slice);
        let mut ranked: Vec<&KnownAddress> = held.iter().collect();
        ranked.sort_by_key(|known| known.rank());
        // What never failed goes before what its owner says now, which goes before what failed lately.
        let (good, bad): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|known| known.failures == 0);
        let mut all: Vec<Multiaddr> = Vec::new();
        let is_bad = |address: &&Multiaddr| bad.iter().any(|known| known.address == **address);
        let good = good.into_iter().map(|known| &known.address);
        let fresh = known.iter().filter(|address| !is_bad(address));
        for address in good.chain(fresh).chain(bad.iter().map(|known| &known.address)) {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        all
    }

    /// Every peer with its best address.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (&PeerId, &KnownAddress)> {
        self.peers.iter().filter_map(|(peer, all)| Some((peer, all.iter().min_by_key(|k| k.rank())?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Peers whose entries changed since this was last asked, with what is to be stored; nothing is left of
    /// those that were forgotten.
    pub(crate) fn take_changed(&mut self) -> Vec<(PeerId, Vec<KnownAddress>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|peer| (peer, self.peers.get(&peer).cloned().unwrap_or_default())).collect()
    }

    /// The entry for one address, made where there is room. Nothing when the book is full of fresher ones.
    fn place(&mut self, peer: PeerId, address: &Multiaddr, seen_secs: u64) -> Option<&mut KnownAddress> {
        let address = addresses::without_peer(address);
        if !self.peers.contains_key(&peer) {
            self.make_room(addresses::public_network(&address), seen_secs)?;
        }
        self.changed.insert(peer);
        let all = self.peers.entry(peer).or_default();
        if let Some(at) = all.iter().position(|known| known.address == address) {
            return all.get_mut(at);
        }
        if all.len() >= ADDRESSES_MAX {
            let worst = (0..all.len()).max_by_key(|at| all[*at].rank())?;
            let gone = all.swap_remove(worst);
            self.crowds.leave(peer, &gone.address, all);
        }
        self.crowds.enter(peer, &address);
        all.push(KnownAddress { address, successes: 0, failures: 0, seen_secs });
        all.last_mut()
    }

    fn make_room(&mut self, network: Option<IpAddr>, seen_secs: u64) -> Option<()> {
        let crowd = self.crowds.of(network).filter(|crowd| crowd.len() >= PEERS_PER_NETWORK_MAX);
        let stalest = if let Some(crowd) = crowd {
            crowd.iter().copied().min_by_key(|peer| self.seen_secs(peer))
        } else if self.peers.len() >= PEERS_MAX {
            self.peers.keys().copied().min_by_key(|peer| self.seen_secs(peer))
        } else {
            return Some(());
        };
        let stalest = stalest.filter(|peer| self.seen_secs(peer) <= seen_secs)?;
        for known in self.peers.remove(&stalest).into_iter().flatten() {
            self.crowds.leave(stalest, &known.address, &[]);
        }
        self.changed.insert(stalest);
        Some(())
    }

    fn seen_secs(&self, peer: &PeerId) -> u64 {
        let all = self.peers.get(peer).map_or(&[][..], Vec::as_slice);
        all.iter().map(|known| known.seen_secs).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_works_is_tried_first_and_what_failed_last() {
        let (mut book, peer) = (PeerBook::default(), PeerId::random());
        let [often, once, said, broken, fresh] = ["9.0.0.1", "9.0.0.2", "9.0.0.3", "9.0.0.4", "9.0.0.5"]
            .map(|ip| address(&format!("/ip4/{ip}/tcp/1")));
        for (address, times) in [(&often, 3), (&once, 1), (&broken, 9)] {
            (0..times).for_each(|_| book.reached(peer, address, 10));
        }
        book.listens(peer, &said, 10);
        book.failed(peer, &broken);
        let announced = [broken.clone(), fresh.clone(), once.clone()];
        assert_eq!(book.best_first(&peer, &announced), [often, once, said, fresh, broken]);
    }

    #[test]
    fn a_success_makes_good_for_failures() {
        let (mut book, peer, at) = (PeerBook::default(), PeerId::random(), address("/ip4/9.0.0.1/tcp/1"));
        book.reached(peer, &at, 10);
        book.failed(peer, &at);
        book.reached(peer, &at, 20);
        let (_, known) = book.peers().next().unwrap();
        assert_eq!((known.successes, known.failures, known.seen_secs), (2, 0, 20));
    }

    #[test]
    fn six_addresses_of_a_peer_are_kept_and_the_worst_goes() {
        let (mut book, peer) = (PeerBook::default(), PeerId::random());
        let all: Vec<_> = (1..=7).map(|n| address(&format!("/ip4/9.0.0.{n}/tcp/1"))).collect();
        all[..6].iter().for_each(|address| book.reached(peer, address, 10));
        book.failed(peer, &all[3]);
        book.reached(peer, &all[6], 11);
        let held = book.best_first(&peer, &[]);
        assert_eq!(held.len(), ADDRESSES_MAX);
        assert!(!held.contains(&all[3]) && held.contains(&all[6]));
    }

    #[test]
    fn a_peer_that_was_never_met_is_not_written_down() {
        let (mut book, peer) = (PeerBook::default(), PeerId::random());
        book.failed(peer, &address("/ip4/9.0.0.1/tcp/1"));
        assert_eq!((book.len(), book.take_changed()), (0, Vec::new()));
    }

    #[test]
    fn a_full_book_forgets_whoever_was_not_seen_for_longest() {
        let mut book = PeerBook::default();
        let peers: Vec<_> = (0..=PEERS_MAX).map(|_| PeerId::random()).collect();
        for (n, peer) in peers.iter().enumerate() {
            book.reached(*peer, &address(&format!("/ip4/10.0.{}.{}/tcp/1", n / 256, n % 256)), n as u64);
        }
        assert_eq!(book.len(), PEERS_MAX);
        assert!(!book.peers.contains_key(&peers[0]) && book.peers.contains_key(&peers[PEERS_MAX]));
        book.listens(PeerId::random(), &address("/ip4/10.0.0.1/tcp/1"), 0);
        assert_eq!(book.len(), PEERS_MAX, "whoever is staler than all is not taken");
    }

    #[test]
    fn one_network_cannot_fill_the_book() {
        let mut book = PeerBook::default();
        book.reached(PeerId::random(), &address("/ip4/8.8.8.8/tcp/1"), 0);
        for n in 0..500_u64 {
            book.reached(PeerId::random(), &address(&format!("/ip4/9.9.{}.{}/tcp/1", n / 256, n % 256)), n);
        }
        assert_eq!(book.len(), PEERS_PER_NETWORK_MAX + 1);
    }

    /// Every peer is in the crowds of the networks of its addresses, and in no other.
    fn assert_crowds(book: &PeerBook) {
        let mut expected: HashMap<IpAddr, HashSet<PeerId>> = HashMap::new();
        for (peer, all) in &book.peers {
            for network in all.iter().filter_map(|known| addresses::public_network(&known.address)) {
                expected.entry(network).or_default().insert(*peer);
            }
        }
        assert_eq!(book.crowds.0, expected);
    }

    #[test]
    fn the_crowd_of_a_network_is_known_whoever_comes_moves_and_is_forgotten() {
        let mut book = PeerBook::default();
        let peers: Vec<_> = (0..200).map(|_| PeerId::random()).collect();
        for round in 0..10_u64 {
            for (n, peer) in (0_u64..).zip(&peers) {
                // A peer has more addresses than are kept, in networks of its own and in a common one.
                let own = address(&format!("/ip4/{}.{n}.0.1/tcp/1", 20 + round));
                let common = address(&format!("/ip4/9.9.{round}.{n}/tcp/1"));
                book.listens(*peer, if round % 3 == 0 { &common } else { &own }, round);
                book.failed(*peer, &own);
            }
            assert_crowds(&book);
        }
        let stored =
            KnownAddress { address: address("/ip4/9.9.8.7/tcp/1"), successes: 1, failures: 0, seen_secs: 99 };
        (0..100).for_each(|_| book.restore(PeerId::random(), stored.clone()));
        assert_crowds(&book);
        assert!(book.crowds.of(Some([9, 9, 0, 0].into())).is_some_and(|crowd| crowd.len() >= 64));
    }

    #[test]
    fn only_what_changed_is_stored_again() {
        let (mut book, peer, at) = (PeerBook::default(), PeerId::random(), address("/ip4/9.0.0.1/tcp/1"));
        let known = KnownAddress { address: at.clone(), successes: 1, failures: 0, seen_secs: 5 };
        book.restore(peer, known.clone());
        assert_eq!(book.take_changed(), []);
        book.failed(peer, &at);
        assert_eq!(book.take_changed(), [(peer, vec![KnownAddress { failures: 1, ..known }])]);
        assert_eq!(book.take_changed(), []);
    }
}
