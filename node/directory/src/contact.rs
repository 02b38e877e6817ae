//! Peers as the directory names them: an id, and where it may be dialled.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::{fmt, sync::Arc};

use crate::Key;

/// A multihash in a peer id; those of wallets have 39 bytes.
pub const PEER_ID_BYTES_MAX: usize = 64;
/// The same bounds as for the addresses of a node record.
pub const ADDRESSES_MAX: usize = 8;
/// See [`ADDRESSES_MAX`].
pub const ADDRESS_BYTES_MAX: usize = 128;

/// The network of a public address, as one customer gets them: a /16 of IPv4, a /48 of IPv6. Names are one network: what
/// they lead to is not known before they are dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// A /16 of IPv4.
    V4([u8; 2]),
    /// A /48 of IPv6.
    V6([u8; 6]),
    /// All names.
    Named,
}

/// A peer's id and its addresses, which are multiaddresses in bytes. A copy is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Contact(Arc<Parts>);

#[derive(PartialEq, Eq)]
struct Parts {
    id: Box<[u8]>,
    key: Key,
    addresses: Vec<Box<[u8]>>,
    networks: Vec<Network>,
}

impl Contact {
    /// Makes a contact of an id and the first addresses that are within their bound; none if the id is not.
    pub fn new<A: AsRef<[u8]>>(id: &[u8], addresses: impl IntoIterator<Item = A>) -> Option<Self> {
        if id.is_empty() || id.len() > PEER_ID_BYTES_MAX {
            return None;
        }
        let mut kept: Vec<Box<[u8]>> = Vec::new();
        for address in addresses.into_iter() {
            let address = address.as_ref();
            let is_new = !kept.iter().any(|other| **other == *address);
            if (1..=ADDRESS_BYTES_MAX).contains(&address.len()) && is_new && kept.len() < ADDRESSES_MAX {
                kept.push(address.into());
            }
        }
        Some(Self::of(id, Key::of(id), kept))
    }

    fn of(id: &[u8], key: Key, addresses: Vec<Box<[u8]>>) -> Self {
        let mut networks: Vec<Network> = Vec::new();
        for network in addresses.iter().filter_map(|address| network_of(address)) {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
        Self(Arc::new(Parts { id: id.into(), key, addresses, networks }))
    }

    /// Returns the bytes of the peer's id.
    pub fn id(&self) -> &[u8] {
        &self.0.id
    }

    /// Returns its place in the key space.
    pub fn key(&self) -> Key {
        self.0.key
    }

    pub fn addresses(&self) -> &[Box<[u8]>] {
        &self.0.addresses
    }

    /// Returns the public networks that it has addresses in, each once.
    pub fn networks(&self) -> &[Network] {
        &self.0.networks
    }

    /// Returns the contact without addresses of private networks, which a stranger names for no good.
    pub(crate) fn public(self) -> Self {
        if self.0.addresses.iter().all(|address| network_of(address).is_some()) {
            return self;
        }
        let public = self.0.addresses.iter().filter(|address| network_of(address).is_some());
        Self::of(&self.0.id, self.0.key, public.cloned().collect())
    }
}

impl fmt::Debug for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contact({:?}, {} addresses)", self.0.key, self.0.addresses.len())
    }
}

/// Returns the network of a multiaddress; none if it lies in this machine or in a private network, where all are near.
fn network_of(address: &[u8]) -> Option<Network> {
    const IP4: u8 = 4;
    const IP6: u8 = 41;
    const NAMES: std::ops::RangeInclusive<u8> = 53..=56;
    let (code, rest) = address.split_first()?;
    match *code {
        IP4 => of_v4(rest.first_chunk::<4>().copied()?.into()),
        IP6 => of_v6(rest.first_chunk::<16>().copied()?.into()),
        code if NAMES.contains(&code) => Some(Network::Named),
        _ => None,
    }
}

fn of_v4(ip: Ipv4Addr) -> Option<Network> {
    let [a, b, ..] = ip.octets();
    // 100.64.0.0/10: the inside of a provider's network.
    let is_shared = a == 100 && b & 0xc0 == 64;
    let is_near = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified();
    (!is_near && !is_shared).then_some(Network::V4([a, b]))
}

fn of_v6(ip: Ipv6Addr) -> Option<Network> {
    if let Some(ip) = ip.to_ipv4_mapped() {
        return of_v4(ip);
    }
    let is_near =
        ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local();
    let [a, b, c, d, e, f, ..] = ip.octets();
    (!is_near).then_some(Network::V6([a, b, c, d, e, f]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(ip: [u8; 4]) -> Vec<u8> {
        [&[4], &ip[..], &[6, 0x0b, 0xb9]].concat()
    }

    fn v6(ip: &str) -> Vec<u8> {
        [&[41], &ip.parse::<Ipv6Addr>().unwrap().octets()[..], &[6, 0x0b, 0xb9]].concat()
    }

    #[test]
    fn one_customers_addresses_are_one_network() {
        let same = |a: &[u8], b: &[u8]| network_of(a).is_some() && network_of(a) == network_of(b);
        assert!(same(&v4([9, 9, 1, 1]), &v4([9, 9, 250, 1])));
        assert!(!same(&v4([9, 9, 1, 1]), &v4([9, 8, 1, 1])));
        assert!(same(&v6("2620:fe:1:2::3"), &v6("2620:fe:1:f::4")));
        assert!(!same(&v6("2620:fe:1:2::3"), &v6("2620:fe:2:2::3")));
        assert!(same(&v6("::ffff:9.9.1.1"), &v4([9, 9, 2, 2])), "IPv4 in IPv6 is IPv4");
        assert!(same(&[54, 1, b'a'], &[55, 1, b'b']), "names are one network");
    }

    #[test]
    fn private_networks_are_none() {
        let near = [[10, 1, 1, 1], [192, 168, 0, 1], [172, 16, 0, 1], [127, 0, 0, 1], [169, 254, 0, 1]];
        for ip in near.into_iter().chain([[100, 64, 0, 1], [0, 0, 0, 0]]) {
            assert_eq!(network_of(&v4(ip)), None, "{ip:?}");
        }
        for ip in ["::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert_eq!(network_of(&v6(ip)), None, "{ip}");
        }
        // /memory/1, and one that ends in the middle
        assert_eq!(network_of(&[0x89, 0x06, 1]), None);
        assert_eq!(network_of(&[4, 9, 9]), None);
        let mixed = Contact::new(&[1], [v4([10, 0, 0, 1]), v4([9, 9, 9, 9])]).unwrap();
        assert_eq!(mixed.public().addresses(), [v4([9, 9, 9, 9]).into_boxed_slice()]);
    }

    #[test]
    fn what_is_beyond_a_bound_is_left_out() {
        assert!(Contact::new::<&[u8]>(&[], []).is_none());
        assert!(Contact::new::<&[u8]>(&[0; PEER_ID_BYTES_MAX + 1], []).is_none());
        let many = (0..20_u8).map(|n| vec![4, 9, n, 1, 1]);
        let long = vec![4; ADDRESS_BYTES_MAX + 1];
        let contact =
            Contact::new(&[1; PEER_ID_BYTES_MAX], [long, vec![4, 9, 0, 1, 1]].into_iter().chain(many));
        let contact = contact.unwrap();
        assert_eq!(contact.addresses().len(), ADDRESSES_MAX);
        assert_eq!(contact.networks().len(), ADDRESSES_MAX);
        assert_eq!(*contact.addresses()[0], [4, 9, 0, 1, 1]);
    }
}
