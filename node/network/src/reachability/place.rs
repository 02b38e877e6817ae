//! The place where a node listens, as far as dialling it back is concerned: an IP, a transport and a port. Pure.

use std::net::IpAddr;

use libp2p::{Multiaddr, multiaddr::Protocol};

use crate::{Transport, addresses};

/// A family of IP addresses: what is reachable in one says nothing about the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    pub(super) const fn of_ip(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Of an address that begins with an IP or a name.
    pub(super) fn of(address: &Multiaddr) -> Option<Self> {
        match address.iter().next()? {
            Protocol::Ip4(_) | Protocol::Dns4(_) | Protocol::Dns(_) => Some(Self::V4),
            Protocol::Ip6(_) | Protocol::Dns6(_) => Some(Self::V6),
            _ => None,
        }
    }
}

/// `/ip4/203.0.113.7/udp/3001/quic-v1`
pub(super) fn address(ip: IpAddr, transport: Transport, port: u16) -> Multiaddr {
    match transport {
        Transport::Tcp => Multiaddr::from(ip).with(Protocol::Tcp(port)),
        Transport::Quic => Multiaddr::from(ip).with(Protocol::Udp(port)).with(Protocol::QuicV1),
    }
}

/// Returns whether both addresses are of the same transport and family, and so one may arrive at the other.
pub(super) fn are_alike(one: &Multiaddr, other: &Multiaddr) -> bool {
    let kind = |address| (Transport::of(address).map(|(transport, _)| transport), Family::of(address));
    kind(one) == kind(other)
}

/// Returns whether providers share this address among their customers (RFC 6598, 100.64.0.0/10).
pub(super) fn is_shared(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 100 && (64..128).contains(&ip.octets()[1]))
}

/// May a peer with these IPs have us dial this address?
pub(super) fn may_be_dialled(address: &Multiaddr, of_peer: &[IpAddr], allow_private: bool) -> bool {
    addresses::is_dialable(address, allow_private)
        && addresses::ip(address).is_some_and(|ip| of_peer.contains(&ip))
}

/// The IPs of a request, as they travel.
pub(super) fn ip_bytes(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

pub(super) fn ip_from(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_back() {
        for text in [
            "/ip4/203.0.113.7/tcp/3001",
            "/ip4/203.0.113.7/udp/3001/quic-v1",
            "/ip6/2620:fe::9/tcp/1",
            "/ip6/2620:fe::9/udp/65535/quic-v1",
        ] {
            let read: Multiaddr = text.parse().unwrap();
            let (transport, port) = Transport::of(&read).unwrap();
            assert_eq!(address(addresses::ip(&read).unwrap(), transport, port), read);
        }
        for other in ["/ip4/203.0.113.7/udp/3001", "/ip4/203.0.113.7/tcp/80/ws", "/ip4/203.0.113.7"] {
            assert_eq!(Transport::of(&other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn an_ip_travels_as_its_bytes() {
        for ip in ["9.9.9.9", "2620:fe::9"] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(ip_from(&ip_bytes(ip)), Some(ip));
        }
        assert_eq!(ip_from(&[1, 2, 3]), None);
    }

    #[test]
    fn a_peer_is_dialled_where_it_comes_from_and_nowhere_else() {
        let at = |text: &str| text.parse::<Multiaddr>().unwrap();
        let public = ["9.9.9.9".parse().unwrap()];
        assert!(may_be_dialled(&at("/ip4/9.9.9.9/tcp/3001"), &public, false));
        assert!(may_be_dialled(&at("/ip4/9.9.9.9/udp/5000/quic-v1"), &public, false));
        assert!(!may_be_dialled(&at("/ip4/9.9.9.10/tcp/3001"), &public, true), "somebody else");
        assert!(!may_be_dialled(&at("/dns4/victim.example/tcp/80"), &public, true), "a name");
        let private = ["192.168.1.2".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        for inside in ["/ip4/192.168.1.2/tcp/3001", "/ip4/127.0.0.1/tcp/3001"] {
            assert!(!may_be_dialled(&at(inside), &private, false), "{inside}");
            assert!(may_be_dialled(&at(inside), &private, true), "{inside}");
        }
    }
}
