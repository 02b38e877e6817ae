//! Where an upstream may live: address classes, and a resolver that keeps an upstream in its own.
//!
//! A name that pointed to a public server at registration and to a machine of the LAN today is not connected
//! to. Addresses that hold no service of anybody's own — link-local, cloud metadata, "this network",
//! multicast — are never connected to.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How far away an upstream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    SameMachine,
    Lan,
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
    #[must_use]
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

    fn of_v6(v6: Ipv6Addr) -> Option<Self> {
        /// The metadata service of AWS.
        const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
        let segments = v6.segments();
        match segments {
            _ if v6 == METADATA || v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local() => {
                None
            }
            _ if v6.is_loopback() => Some(Self::SameMachine),
            // Translated IPv4 (NAT64) is judged by what is inside; tunnels (6to4, Teredo) have no use here.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                Self::of_v4(Ipv4Addr::new(a, b, c, d))
            }
            [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => None,
            // Deprecated forms that embed IPv4 in the lowest bits, and site-local addresses.
            [0, 0, 0, 0, 0, 0, ..] | [0xfec0..=0xfeff, ..] => None,
            _ if v6.is_unique_local() => Some(Self::Lan),
            _ => Some(Self::Public),
        }
    }
}

/// Resolves an upstream's name and keeps only addresses of its class.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    /// Set at registration, or by the first resolution that succeeds.
    pub(super) class: Arc<OnceLock<AddressClass>>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = resolver.allowed(found)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

impl Resolver {
    fn allowed(&self, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, ForbiddenAddress> {
        let classed = found.filter_map(|address| Some((address, AddressClass::of(address.ip())?)));
        let classed: Vec<_> = classed.collect();
        let Some((_, first)) = classed.first() else { return Err(ForbiddenAddress::Never) };
        let class = *self.class.get_or_init(|| *first);
        let allowed: Vec<_> =
            classed.into_iter().filter(|(_, own)| *own == class).map(|(address, _)| address).collect();
        if allowed.is_empty() { Err(ForbiddenAddress::Moved { class }) } else { Ok(allowed) }
    }
}

/// The name leads where this upstream may not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ForbiddenAddress {
    #[error("the name has no address that may be connected to")]
    Never,
    #[error("the name no longer leads to a {class} address; register the service again if that is right")]
    Moved { class: AddressClass },
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
            ("fd12::1", Some(Lan)),
            ("9.9.9.9", Some(Public)),
            ("2620:fe::fe", Some(Public)),
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
            ("fd00:ec2::254", None),
            ("fe80::1", None),
            ("fec0::1", None),
            ("ff02::1", None),
            ("::", None),
            ("::7f00:1", None),
            ("2002:7f00:1::", None),
            ("2001:0:1::", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("240.0.0.1", None),
        ] {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }

    #[test]
    fn a_name_that_moves_to_another_class_is_not_followed() {
        let resolver = Resolver { class: Arc::default() };
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
}
