//! Which multiaddresses may be listened on, published, learned and dialled. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use farthing_protocol::limits;
use libp2p::{Multiaddr, PeerId, multiaddr::Protocol};

use crate::NetworkError;

/// Reads the multiaddresses of one setting.
pub(crate) fn parse_all(setting: &'static str, texts: &[String]) -> Result<Vec<Multiaddr>, NetworkError> {
    let parse = |text: &String| {
        text.parse().map_err(|_| NetworkError::Address { setting, address: text.chars().take(200).collect() })
    };
    texts.iter().map(parse).collect()
}

/// The address's IP, when it begins with one.
pub(crate) fn ip(address: &Multiaddr) -> Option<IpAddr> {
    match address.iter().next()? {
        Protocol::Ip4(ip) => Some(ip.into()),
        Protocol::Ip6(ip) => Some(ip.into()),
        _ => None,
    }
}

/// The socket address of an address that is TCP on an IP.
pub(crate) fn tcp(address: &Multiaddr) -> Option<SocketAddr> {
    match address.iter().nth(1)? {
        Protocol::Tcp(port) => Some((ip(address)?, port).into()),
        _ => None,
    }
}

pub(crate) fn is_quic(address: &Multiaddr) -> bool {
    address.iter().any(|part| matches!(part, Protocol::QuicV1))
}

/// The network an IP belongs to, roughly as providers get them: a /16 of IPv4, a /32 of IPv6. Nodes of
/// distinct networks are unlikely to lie together, and peers of one network are one witness.
pub(crate) fn network_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            Ipv4Addr::new(a, b, 0, 0).into()
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0).into()
        }
    }
}

/// The network of an address. Nothing for private ranges, where everybody is a neighbour, and for names.
pub(crate) fn public_network(address: &Multiaddr) -> Option<IpAddr> {
    ip(address).filter(|ip| is_global(*ip)).map(|ip| network_of(ip.to_canonical()))
}

/// The peer an address names with `/p2p/…`.
pub(crate) fn peer(address: &Multiaddr) -> Option<PeerId> {
    address.iter().find_map(|part| match part {
        Protocol::P2p(peer) => Some(peer),
        _ => None,
    })
}

/// The address without `/p2p/…`, as it is stored and compared.
pub(crate) fn without_peer(address: &Multiaddr) -> Multiaddr {
    address.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect()
}

/// Reachable from anywhere, as far as the address itself can tell. Everything reserved for machines,
/// links, private networks, documentation and multicast is not (IANA special-purpose registries).
pub(crate) fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_global_v4(ip),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or_else(|| is_global_v6(ip), is_global_v4),
    }
}

fn is_global_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocol_assignments = a == 192 && b == 0 && c == 0;
    let benchmarking = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 224
        || shared
        || protocol_assignments
        || benchmarking
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation())
}

fn is_global_v6(ip: Ipv6Addr) -> bool {
    // Only 2000::/3 is allocated for global unicast; 2001:db8::/32 in it is for documentation.
    let [first, second, ..] = ip.segments();
    first & 0xe000 == 0x2000 && !(first == 0x2001 && second == 0x0db8)
}

/// May an address that a stranger told us be dialled? It must be TCP or QUIC to a fixed IP, and a public
/// one unless private networks are allowed, as is another node of this process then. Names are not followed:
/// they could resolve to anything.
pub(crate) fn is_dialable(address: &Multiaddr, allow_private: bool) -> bool {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next() {
        Some(Protocol::Memory(port)) => {
            return allow_private && port != 0 && parts.all(|part| matches!(part, Protocol::P2p(_)));
        }
        Some(Protocol::Ip4(ip)) => ip.into(),
        Some(Protocol::Ip6(ip)) => ip.into(),
        _ => return false,
    };
    let transport = match (parts.next(), parts.next()) {
        (Some(Protocol::Tcp(port)), None | Some(Protocol::P2p(_))) => port != 0,
        (Some(Protocol::Udp(port)), Some(Protocol::QuicV1)) => port != 0,
        _ => false,
    };
    let rest_is_peer = parts.all(|part| matches!(part, Protocol::P2p(_)));
    transport
        && rest_is_peer
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && (allow_private || is_global(ip))
}

/// The addresses a node publishes, best first: what it was told to announce, then, on private networks,
/// where it listens. Loopback is published only by a node that has nothing else, as in tests.
pub(crate) fn to_publish(
    announce: &[Multiaddr],
    listening: &[Multiaddr],
    allow_private: bool,
) -> Vec<Multiaddr> {
    let is_loopback = |address: &&Multiaddr| ip(address).is_some_and(|ip| ip.is_loopback());
    let only_loopback = listening.iter().all(|address| is_loopback(&address));
    let listening = listening
        .iter()
        .filter(|address| allow_private && is_dialable(address, true))
        .filter(|address| only_loopback || !is_loopback(address));
    let mut published: Vec<Multiaddr> = Vec::new();
    for address in announce.iter().chain(listening).map(without_peer) {
        let fits = address.len() <= limits::RECORD_ADDRESS_BYTES_MAX;
        if fits && !published.contains(&address) && published.len() < limits::RECORD_ADDRESSES_MAX {
            published.push(address);
        }
    }
    published
}

/// The addresses of a record that may be dialled, in the record's order.
pub(crate) fn of_record(record: &farthing_protocol::NodeRecord, allow_private: bool) -> Vec<Multiaddr> {
    record
        .addresses
        .iter()
        .filter_map(|bytes| Multiaddr::try_from(bytes.to_vec()).ok())
        .filter(|address| is_named(address) || is_dialable(address, allow_private))
        .map(|address| without_peer(&address))
        .collect()
}

/// An owner may announce a DNS name for its own node; its signature stands behind it.
fn is_named(address: &Multiaddr) -> bool {
    matches!(address.iter().next(), Some(Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_stranger_cannot_point_us_into_a_private_network() {
        for inside in [
            "/ip4/127.0.0.1/tcp/80",
            "/ip4/10.0.0.1/tcp/80",
            "/ip4/192.168.1.1/udp/53/quic-v1",
            "/ip4/169.254.169.254/tcp/80",
            "/ip4/100.64.0.1/tcp/80",
            "/ip6/::1/tcp/80",
            "/ip6/fd00::1/tcp/80",
            "/ip6/fe80::1/tcp/80",
            "/ip6/::ffff:192.168.1.1/tcp/80",
            "/memory/7",
        ] {
            assert!(!is_dialable(&address(inside), false), "{inside}");
            assert!(is_dialable(&address(inside), true), "{inside}");
        }
        for never in [
            "/ip4/0.0.0.0/tcp/80",
            "/ip4/224.0.0.1/tcp/80",
            "/dns4/x/tcp/80",
            "/ip4/9.9.9.9/tcp/0",
            "/memory/0",
            "/memory/7/tcp/80",
        ] {
            assert!(!is_dialable(&address(never), true), "{never}");
        }
        for outside in ["/ip4/9.9.9.9/tcp/3001", "/ip4/9.9.9.9/udp/3001/quic-v1", "/ip6/2620:fe::9/tcp/3001"]
        {
            assert!(is_dialable(&address(outside), false), "{outside}");
        }
    }

    #[test]
    fn addresses_of_one_provider_are_one_network() {
        let network = |text| public_network(&address(text));
        assert_eq!(network("/ip4/9.9.1.1/tcp/1"), network("/ip4/9.9.200.1/udp/1/quic-v1"));
        assert_ne!(network("/ip4/9.9.1.1/tcp/1"), network("/ip4/9.10.1.1/tcp/1"));
        assert_eq!(network("/ip6/2620:fe::1/tcp/1"), network("/ip6/2620:fe:1::1/tcp/1"));
        assert_ne!(network("/ip6/2620:fe::1/tcp/1"), network("/ip6/2620:ff::1/tcp/1"));
        for nobody in ["/ip4/192.168.1.1/tcp/1", "/ip6/fd00::1/tcp/1", "/dns4/x/tcp/1"] {
            assert_eq!(network(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn a_public_node_publishes_only_what_it_announces() {
        let announce = [address("/ip4/9.9.9.9/tcp/3001")];
        let listening = [address("/ip4/192.168.1.2/tcp/3001"), address("/ip4/127.0.0.1/tcp/3001")];
        assert_eq!(to_publish(&announce, &listening, false), announce);
        assert_eq!(to_publish(&[], &listening, false), []);
        assert_eq!(to_publish(&[], &listening, true), listening[..1]);
        assert_eq!(to_publish(&[], &listening[1..], true), listening[1..]);
    }

    #[test]
    fn at_most_eight_addresses_are_published() {
        let many: Vec<_> = (1..=20).map(|port| address(&format!("/ip4/9.9.9.9/tcp/{port}"))).collect();
        assert_eq!(to_publish(&many, &many, true), many[..limits::RECORD_ADDRESSES_MAX]);
    }

    #[test]
    fn a_mistyped_address_is_named() {
        let error = parse_all("bootstrap", &["127.0.0.1:3001".into()]).unwrap_err();
        assert!(error.to_string().contains("`127.0.0.1:3001` in `bootstrap`"), "{error}");
    }
}
