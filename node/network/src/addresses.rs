//! Multiaddresses that may be listened on, published, learned and dialled. Pure.

pub(crate) mod circuit;

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use farthing_protocol::limits;
use libp2p::{Multiaddr, PeerId, multiaddr::Protocol};

use crate::NetworkError;

/// RFC 1035, section 2.3.4, as text.
const NAME_BYTES_MAX: usize = 253;
/// True where nodes of one process can be connected: in a simulation, and in no program that is shipped.
const HAS_QUEUES: bool = cfg!(feature = "memory");

/// The purpose of an address in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressUse {
    Listen,
    Announce,
    Bootstrap,
    /// Of the public DHT in which nodes find each other.
    Entrance,
}

impl AddressUse {
    /// The setting's name below `network`.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Listen => "listen",
            Self::Announce => "announce",
            Self::Bootstrap => "bootstrap",
            Self::Entrance => "rendezvous_entrance",
        }
    }
}

/// Checks that an address can serve its configured purpose: the same check for a look at the settings and for a start.
///
/// # Errors
/// What is wrong with it, and how to write it; one line.
pub fn check_address(text: &str, usage: AddressUse, allow_private: bool) -> Result<(), String> {
    parse(text, usage, allow_private).map(drop)
}

/// Reads the multiaddresses of one setting.
pub(crate) fn parse_all(
    usage: AddressUse,
    texts: &[String],
    allow_private: bool,
) -> Result<Vec<Multiaddr>, NetworkError> {
    let parse = |text: &String| {
        parse(text, usage, allow_private)
            .map_err(|problem| NetworkError::Address { setting: usage.setting(), problem })
    };
    texts.iter().map(parse).collect()
}

fn parse(text: &str, usage: AddressUse, allow_private: bool) -> Result<Multiaddr, String> {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    let wrong = |what: &str| Err(format!("`{shown}` {what}"));
    let address = match text.parse::<Multiaddr>() {
        Ok(address) => address,
        Err(error) => {
            return wrong(&format!(
                "is not a multiaddress ({error}); write it like /ip4/203.0.113.7/tcp/3001, with your own IP and port"
            ));
        }
    };
    let bare = without_peer(&address);
    if bare.iter().any(|part| matches!(part, Protocol::Tcp(0) | Protocol::Udp(0)))
        && usage != AddressUse::Listen
    {
        return wrong(
            "has port 0, which is not a port; write the port on which the node is reached, usually 3001",
        );
    }
    if ip(&bare).is_some_and(|ip| ip.is_unspecified() || ip.is_multicast()) && usage != AddressUse::Listen {
        return wrong("stands for many addresses; write the machine's own address");
    }
    let is_right = match usage {
        AddressUse::Listen => is_listenable(&bare),
        AddressUse::Announce => may_be_announced(&bare, true),
        AddressUse::Bootstrap | AddressUse::Entrance => {
            may_be_announced(&bare, true) || matches!(bare.iter().next(), Some(Protocol::Dnsaddr(_)))
        }
    };
    if !is_right {
        return wrong(match usage {
            AddressUse::Listen => {
                "is neither TCP nor QUIC of an IP; write it like /ip4/0.0.0.0/tcp/3001 or \
                 /ip4/0.0.0.0/udp/3001/quic-v1"
            }
            _ => {
                "is neither TCP nor QUIC of an IP or a name; write it like /ip4/203.0.113.7/tcp/3001 or \
                 /dns4/node.example/udp/3001/quic-v1"
            }
        });
    }
    let is_of_this_machine = !allow_private && is_named_for_this_machine(&bare);
    if usage == AddressUse::Announce && (is_of_this_machine || !may_be_announced(&bare, allow_private)) {
        return wrong(
            "is not a public address, so nobody on a public network can connect to it; write the public address, or \
             set `network.allow_private` on your own network",
        );
    }
    Ok(address)
}

/// TCP or QUIC of an IP, port 0 for a free one; or a place within this process.
fn is_listenable(address: &Multiaddr) -> bool {
    let parts: Vec<Protocol<'_>> = address.iter().collect();
    match parts.as_slice() {
        [Protocol::Memory(_)] => HAS_QUEUES,
        [Protocol::Ip4(_) | Protocol::Ip6(_), Protocol::Tcp(_)]
        | [Protocol::Ip4(_) | Protocol::Ip6(_), Protocol::Udp(_), Protocol::QuicV1] => true,
        _ => false,
    }
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
        Protocol::Tcp(port) if !circuit::is_circuit(address) => Some((ip(address)?, port).into()),
        _ => None,
    }
}

/// The ports that `listen` names, of TCP and of QUIC.
pub(crate) fn named_ports(listen: &[Multiaddr]) -> BTreeSet<u16> {
    let port = |address: &Multiaddr| match address.iter().nth(1)? {
        Protocol::Tcp(port) | Protocol::Udp(port) => Some(port),
        _ => None,
    };
    listen.iter().filter_map(port).filter(|port| *port != 0).collect()
}

/// These, and those of TCP that the system gave. One that it gave for QUIC may be anybody's over TCP.
pub(crate) fn ports<'a>(
    named: &BTreeSet<u16>,
    listening: impl Iterator<Item = &'a Multiaddr>,
) -> BTreeSet<u16> {
    listening.filter_map(tcp).map(|address| address.port()).chain(named.iter().copied()).collect()
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

/// The peer an address leads to and names with `/p2p/…`; a relay on the way is another one.
pub(crate) fn peer(address: &Multiaddr) -> Option<PeerId> {
    address.iter().fold(None, |named, part| match part {
        Protocol::P2p(peer) => Some(peer),
        Protocol::P2pCircuit => None,
        _ => named,
    })
}

/// The address without the `/p2p/…` of the peer it leads to, as it is stored and compared. A relay on the way keeps its own.
pub(crate) fn without_peer(address: &Multiaddr) -> Multiaddr {
    let relay_ends = address.iter().position(|part| matches!(part, Protocol::P2pCircuit)).unwrap_or(0);
    let parts = address.iter().enumerate();
    parts
        .filter(|(at, part)| *at < relay_ends || !matches!(part, Protocol::P2p(_)))
        .map(|(_, part)| part)
        .collect()
}

/// The range of a public address; whoever has one address often has many. See [`crate::admission::Visitor`].
pub(crate) fn range(address: &Multiaddr) -> Option<IpAddr> {
    ip(address).filter(|ip| is_global(*ip)).map(farthing_bounds::range)
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
    // Only 2000::/3 is allocated for global unicast. In it, 2001:db8::/32 and 3fff::/20 are for documentation,
    // 2001::/23 for protocols (Teredo among them), and 2002::/16 leads to the IPv4 address inside.
    let [first, second, third, ..] = ip.segments();
    let documentation = (first == 0x2001 && second == 0x0db8) || (first == 0x3fff && second < 0x1000);
    let protocols = first == 0x2001 && second < 0x0200;
    let [a, b] = second.to_be_bytes();
    let [c, d] = third.to_be_bytes();
    let leads_inside = first == 0x2002 && !is_global_v4(Ipv4Addr::new(a, b, c, d));
    first & 0xe000 == 0x2000 && !documentation && !protocols && !leads_inside
}

/// May an address that a stranger told us be dialled? It must be TCP or QUIC to a fixed IP, and a public
/// one unless private networks are allowed, as is another node of this process then, in a simulation. A name is none: what it
/// leads to has to be asked first.
pub(crate) fn is_dialable(address: &Multiaddr, allow_private: bool) -> bool {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next() {
        Some(Protocol::Memory(port)) => {
            let is_alone = parts.all(|part| matches!(part, Protocol::P2p(_)));
            return HAS_QUEUES && allow_private && port != 0 && is_alone;
        }
        Some(Protocol::Ip4(ip)) => ip.into(),
        Some(Protocol::Ip6(ip)) => ip.into(),
        _ => return false,
    };
    is_one_port(parts) && !ip.is_unspecified() && !ip.is_multicast() && (allow_private || is_global(ip))
}

/// Returns whether an IP or a name is followed by one port of TCP or QUIC, and by nothing else but a peer id.
fn is_one_port<'a>(mut parts: impl Iterator<Item = Protocol<'a>>) -> bool {
    let transport = match (parts.next(), parts.next()) {
        (Some(Protocol::Tcp(port)), None | Some(Protocol::P2p(_))) => port != 0,
        (Some(Protocol::Udp(port)), Some(Protocol::QuicV1)) => port != 0,
        _ => false,
    };
    transport && parts.all(|part| matches!(part, Protocol::P2p(_)))
}

/// May a node say that it is there? In place of the IP it may give a name, with its signature behind it: where that
/// leads is looked at when it is dialled (`outbound`).
pub(crate) fn may_be_announced(address: &Multiaddr, allow_private: bool) -> bool {
    is_dialable(address, allow_private) || (has_name(address) && is_one_port(address.iter().skip(1)))
}

/// `localhost` and what ends with it lead everybody to their own machine (RFC 6761, 6.3).
fn is_named_for_this_machine(address: &Multiaddr) -> bool {
    let Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name)) = address.iter().next()
    else {
        return false;
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns whether an address begins with a name in place of an IP.
pub(crate) fn has_name(address: &Multiaddr) -> bool {
    matches!(
        address.iter().next(),
        Some(Protocol::Dns(name) | Protocol::Dns4(name) | Protocol::Dns6(name))
            if !name.is_empty() && name.len() <= NAME_BYTES_MAX
    )
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

/// The addresses of a record that may be dialled, in the record's order, those through a relay last.
pub(crate) fn of_record(record: &farthing_protocol::NodeRecord, allow_private: bool) -> Vec<Multiaddr> {
    let read = record.addresses.iter().filter_map(|bytes| Multiaddr::try_from(bytes.to_vec()).ok());
    let (circuits, direct): (Vec<Multiaddr>, Vec<_>) = read.partition(circuit::is_circuit);
    let direct = direct.into_iter().filter(|address| may_be_announced(address, allow_private));
    let circuits = circuits.into_iter().filter(|address| circuit::is_dialable(address, allow_private));
    direct.chain(circuits).map(|address| without_peer(&address)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_ports_are_those_that_are_named_and_those_of_tcp_that_the_system_gave() {
        let listen = [
            address("/ip4/0.0.0.0/tcp/3001"),
            address("/ip6/::/udp/3003/quic-v1"),
            address("/ip4/127.0.0.1/tcp/0"),
            address("/ip4/127.0.0.1/udp/0/quic-v1"),
        ];
        let named = named_ports(&listen);
        assert_eq!(named, [3001, 3003].into());
        let given = [address("/ip4/127.0.0.1/tcp/40001"), address("/ip4/127.0.0.1/udp/40002/quic-v1")];
        assert_eq!(ports(&named, given.iter()), [3001, 3003, 40_001].into());
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
            "/ip6/64:ff9b::c0a8:101/tcp/80",
            "/ip6/2002:c0a8:101::1/tcp/80",
            "/ip6/2001::c0a8:101/tcp/80",
        ] {
            assert!(!is_dialable(&address(inside), false), "{inside}");
            assert!(is_dialable(&address(inside), true), "{inside}");
        }
        assert!(!is_dialable(&address("/memory/7"), false));
        assert_eq!(is_dialable(&address("/memory/7"), true), HAS_QUEUES, "but in a simulation");
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
    fn a_record_may_name_a_host_and_a_port_and_nothing_around_them() {
        for right in [
            "/dns4/node.example/tcp/3001",
            "/dns6/node.example/udp/3001/quic-v1",
            "/dns/node.example/tcp/3001",
            "/ip4/9.9.9.9/tcp/3001",
        ] {
            assert!(may_be_announced(&address(right), false), "{right}");
        }
        for wrong in [
            "/dns4/node.example",
            "/dns4/node.example/tcp/0",
            "/dns4/node.example/udp/3001",
            "/dns4/node.example/tcp/3001/dns4/inside.example/tcp/80",
            "/ip4/9.9.9.9/dns4/inside.example/tcp/80",
            "/ip4/9.9.9.9/tcp/3001/dns4/inside.example",
            "/dnsaddr/node.example",
            "/dnsaddr/node.example/tcp/3001",
            "/tcp/3001",
        ] {
            assert!(!may_be_announced(&address(wrong), true), "{wrong}");
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
        let error = parse_all(AddressUse::Bootstrap, &["127.0.0.1:3001".into()], false).unwrap_err();
        assert!(error.to_string().contains("network.bootstrap: `127.0.0.1:3001` is not"), "{error}");
    }

    #[test]
    fn an_address_that_cannot_be_right_is_refused_with_what_is_wrong() {
        use AddressUse::{Announce, Bootstrap, Entrance, Listen};
        for (usage, text, words) in [
            (Listen, "/foo", "not a multiaddress"),
            (Listen, "/ip4/0.0.0.0/udp/3001", "neither TCP nor QUIC"),
            (Listen, "/dns4/node.example/tcp/3001", "neither TCP nor QUIC"),
            (Bootstrap, "/ip4/1.2.3.4/tcp/99999", "not a multiaddress"),
            (Bootstrap, "/ip4/1.2.3.4/tcp/3001/p2p/abc", "not a multiaddress"),
            (Bootstrap, "/ip4/1.2.3.4", "neither TCP nor QUIC"),
            (Bootstrap, "/ip4/1.2.3.4/tcp/0", "has port 0"),
            (Bootstrap, "/ip4/0.0.0.0/tcp/3001", "stands for many addresses"),
            (Entrance, "/ip4/1.2.3.4", "neither TCP nor QUIC"),
            (Announce, "/ip4/0.0.0.0/tcp/0", "has port 0"),
            (Announce, "/ip6/::/tcp/3001", "stands for many addresses"),
            (Announce, "/dns4/node.example", "neither TCP nor QUIC"),
            (Announce, "/ip4/203.0.113.7/udp/3001", "neither TCP nor QUIC"),
            (Announce, "/ip4/192.168.1.20/tcp/3001", "is not a public address"),
            (Announce, "/dns4/localhost/tcp/3001", "is not a public address"),
            (Announce, "/dns/a.LOCALHOST./tcp/3001", "is not a public address"),
        ] {
            let problem = check_address(text, usage, false).unwrap_err();
            assert!(problem.contains(text) && problem.contains(words), "{usage:?} {text}: {problem}");
            assert!(problem.contains("; "), "what to do is missing: {problem}");
        }
        for (usage, text) in [
            (Listen, "/ip4/0.0.0.0/tcp/0"),
            (Listen, "/ip6/::/udp/3001/quic-v1"),
            (Announce, "/dns4/node.example/tcp/3001"),
            (Announce, "/ip4/9.9.9.9/udp/3001/quic-v1"),
            (Bootstrap, "/ip4/192.168.1.20/tcp/3001"),
            (Bootstrap, "/dnsaddr/node.example"),
            (Entrance, "/dnsaddr/node.example/p2p/QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN"),
            (
                Bootstrap,
                "/dns/node.example/tcp/3001/p2p/16Uiu2HAmPLe7Mzm8TsYUubgCAW1aJoeFScxrLj8ppHFivPo97bUZ",
            ),
        ] {
            assert_eq!(check_address(text, usage, false), Ok(()), "{usage:?}");
        }
        assert_eq!(check_address("/ip4/192.168.1.20/tcp/3001", Announce, true), Ok(()));
    }
}
