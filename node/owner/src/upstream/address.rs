//! Addresses where an upstream may live: their classes, and a resolver that keeps an upstream in its own.
//!
//! A name that pointed to a public server at registration and to a machine of the LAN today is not connected
//! to. Addresses that hold no service of anybody's own — link-local, cloud metadata, "this network",
//! multicast — are never connected to, and neither are this node's own ports, by whatever name or address.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{Arc, OnceLock},
};

use minicbor::{Decode, Encode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::{Deserialize, Serialize};

use super::{Fault, OwnPorts};

/// The distance of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cbor(index_only)]
pub enum AddressClass {
    #[n(0)]
    SameMachine,
    #[n(1)]
    Lan,
    #[n(2)]
    Public,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SameMachine => "same machine",
            Self::Lan => "LAN",
            Self::Public => "public",
        })
    }
}

impl AddressClass {
    /// The class of `address`; `None` for one that is never connected to.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v4(v4: Ipv4Addr) -> Option<Self> {
        /// Metadata services that do not live on link-local addresses: Azure and Alibaba Cloud.
        const METADATA: [Ipv4Addr; 2] = [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
        let [first, second, third, _] = v4.octets();
        let shared = first == 100 && (64..128).contains(&second);
        if METADATA.contains(&v4)
            || v4.is_link_local()
            || v4.is_multicast()
            || matches!((first, second, third), (0, ..) | (240.., ..) | (192, 0, 0))
        {
            None
        } else if v4.is_loopback() {
            Some(Self::SameMachine)
        } else if v4.is_private() || shared {
            Some(Self::Lan)
        } else {
            Some(Self::Public)
        }
    }

    /// Only what is known to be somebody's own address has a class: what is assigned tomorrow has none today.
    fn of_v6(v6: Ipv6Addr) -> Option<Self> {
        let inner = |high: u16, low: u16| Self::of_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
        match v6.segments() {
            _ if v6.is_loopback() => Some(Self::SameMachine),
            // Translated IPv4 (SIIT, NAT64) leads to the IPv4 address inside. A mapped one is no IPv6 address here.
            [0, 0, 0, 0, 0xffff, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
            // Metadata services on addresses of private networks: Google Cloud, AWS, Oracle Cloud.
            [0xfd20, 0xce, ..] | [0xfd00, 0xec2 | 0xc1, ..] => None,
            [0xfc00..=0xfdff, ..] => Some(Self::Lan),
            // IETF protocols (Teredo, ORCHID, benchmarks), documentation, and 6to4, whose relay is anybody.
            [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => None,
            [0x2000..=0x3fff, ..] => Some(Self::Public),
            _ => None,
        }
    }
}

/// Resolves an upstream's name and keeps only addresses of its class that are not this node's own.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    /// Set at registration, or by the first resolution that succeeds.
    pub(super) class: Arc<OnceLock<AddressClass>>,
    /// That is connected to.
    pub(super) port: u16,
    pub(super) own_ports: OwnPorts,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let allowed = resolver.addresses(name.as_str(), 0).await?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

impl Resolver {
    /// The addresses of `host` that may be connected to, with `port`.
    pub(super) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolverError> {
        let found = tokio::net::lookup_host((host, port)).await?;
        Ok(self.allowed(found)?)
    }

    fn allowed(&self, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, ForbiddenAddress> {
        let classed = found.filter_map(|address| Some((address, AddressClass::of(address.ip())?)));
        let is_own_port = self.own_ports.contains(self.port);
        let (own, classed): (Vec<_>, Vec<_>) =
            classed.partition(|(address, _)| is_own_port && is_of_this_machine(address.ip()));
        let Some((_, first)) = classed.first() else {
            return Err(if own.is_empty() { ForbiddenAddress::Never } else { ForbiddenAddress::Own });
        };
        let class = *self.class.get_or_init(|| *first);
        let allowed: Vec<_> =
            classed.into_iter().filter(|(_, own)| *own == class).map(|(address, _)| address).collect();
        if allowed.is_empty() { Err(ForbiddenAddress::Moved { class }) } else { Ok(allowed) }
    }
}

/// Tells whether a connection to `address` ends on this machine: it is loopback, or one of its interfaces has it.
pub(super) fn is_of_this_machine(address: IpAddr) -> bool {
    // The system lets nobody bind what it does not have; no packet is sent.
    AddressClass::of(address) == Some(AddressClass::SameMachine)
        || UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// The reason that a name has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    #[error("its name is not found: {0}")]
    Lookup(#[from] std::io::Error),
    #[error(transparent)]
    Forbidden(#[from] ForbiddenAddress),
}

/// The name leads where this upstream may not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenAddress {
    #[error(
        "the name leads only to link-local, metadata, multicast or unassigned addresses, which are refused"
    )]
    Never,
    #[error("it leads to a port of this node; use the address of your own server")]
    Own,
    #[error("the name no longer leads to a {class} address; register the service again if that is right")]
    Moved { class: AddressClass },
}

/// Returns the reason that there was no connection.
pub(super) fn why_not(error: &reqwest::Error) -> Fault {
    match resolver_error(error) {
        Some(ResolverError::Forbidden(ForbiddenAddress::Own)) => Fault::LeadsHere,
        Some(ResolverError::Forbidden(ForbiddenAddress::Never)) => Fault::NameForbidden,
        Some(ResolverError::Forbidden(ForbiddenAddress::Moved { .. })) => Fault::NameMoved,
        Some(ResolverError::Lookup(_)) => Fault::NameUnknown,
        None => Fault::NoConnection,
    }
}

/// Returns the reason that a name had no address to connect to, if the request failed for that.
pub fn resolver_error(error: &reqwest::Error) -> Option<&ResolverError> {
    anyhow::Chain::new(error).find_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_the_class_it_is_reached_in() {
        use AddressClass::{Lan, Public, SameMachine};
        for (address, class) in [
            ("127.0.0.1", Some(SameMachine)),
            ("127.255.0.9", Some(SameMachine)),
            ("::1", Some(SameMachine)),
            ("::ffff:127.0.0.1", Some(SameMachine)),
            ("10.0.0.1", Some(Lan)),
            ("172.16.0.1", Some(Lan)),
            ("172.32.0.1", Some(Public)),
            ("192.168.1.1", Some(Lan)),
            ("100.64.0.1", Some(Lan)),
            ("100.128.0.1", Some(Public)),
            ("fc00::1", Some(Lan)),
            ("fd12::1", Some(Lan)),
            ("fd20:cd::254", Some(Lan)),
            ("fd20:cf::254", Some(Lan)),
            ("9.9.9.9", Some(Public)),
            ("2620:fe::fe", Some(Public)),
            ("2001:200::1", Some(Public)),
            ("2001:4860:4860::8888", Some(Public)),
            ("3fff:1000::1", Some(Public)),
            ("::ffff:9.9.9.9", Some(Public)),
            ("::ffff:0:9.9.9.9", Some(Public)),
            ("::ffff:0:10.0.0.1", Some(Lan)),
            ("64:ff9b::909:909", Some(Public)),
            ("64:ff9b::7f00:1", Some(SameMachine)),
            ("0.0.0.0", None),
            ("0.1.2.3", None),
            ("169.254.169.254", None),
            ("::ffff:169.254.169.254", None),
            ("64:ff9b::a9fe:a9fe", None),
            ("64:ff9b:1::1", None),
            ("168.63.129.16", None),
            ("100.100.100.200", None),
            ("192.0.0.192", None),
            ("::ffff:0:169.254.169.254", None),
            ("fd20:ce::254", None),
            ("fd00:ec2::254", None),
            ("fd00:ec2::23", None),
            ("fd00:c1::a9fe:a9fe", None),
            ("fe80::1", None),
            ("fec0::1", None),
            ("ff02::1", None),
            ("::", None),
            ("::7f00:1", None),
            ("2002:7f00:1::", None),
            ("2002:909:909::1", None),
            ("2001:0:1::", None),
            ("2001:2::1", None),
            ("2001:20::1", None),
            ("2001:1ff::1", None),
            ("2001:db8::1", None),
            ("3fff:fff::1", None),
            ("100::1", None),
            ("1fff::1", None),
            ("4000::1", None),
            ("5f00::1", None),
            ("f000::1", None),
            ("::2", None),
            ("::ffff:1:9.9.9.9", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("240.0.0.1", None),
        ] {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }

    #[test]
    fn a_name_that_moves_to_another_class_is_not_followed() {
        let resolver = Resolver { class: Arc::default(), port: 80, own_ports: OwnPorts::new([3000]) };
        let at = |text: &str| std::iter::once(SocketAddr::new(text.parse().unwrap(), 0));
        assert!(resolver.allowed(at("9.9.9.9")).is_ok());
        assert!(resolver.allowed(at("9.9.9.10")).is_ok());
        assert_eq!(
            resolver.allowed(at("127.0.0.1")),
            Err(ForbiddenAddress::Moved { class: AddressClass::Public })
        );
        assert_eq!(resolver.allowed(at("169.254.169.254")), Err(ForbiddenAddress::Never));
        let mixed = at("10.0.0.1").chain(at("9.9.9.9"));
        assert_eq!(resolver.allowed(mixed).unwrap().len(), 1);
    }

    #[test]
    fn no_name_leads_to_a_port_of_this_node() {
        let at = |text: &str| std::iter::once(SocketAddr::new(text.parse().unwrap(), 0));
        let own = || Resolver { class: Arc::default(), port: 3000, own_ports: OwnPorts::new([3000]) };
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert_eq!(own().allowed(at(address)), Err(ForbiddenAddress::Own), "{address}");
        }
        // The address that this machine would send from, where it has a network; nothing is sent.
        let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            socket.local_addr()
        });
        if let Ok(outward) = outward {
            assert_eq!(own().allowed(std::iter::once(outward)), Err(ForbiddenAddress::Own), "{outward}");
        }
        // Elsewhere the same port is anybody's, and what is dropped does not decide the class.
        let resolver = own();
        assert_eq!(resolver.allowed(at("127.0.0.1").chain(at("9.9.9.9"))).unwrap().len(), 1);
        assert_eq!(resolver.class.get(), Some(&AddressClass::Public));
    }
}
