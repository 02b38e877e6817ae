//! Nearness: this machine and its private networks are near. A chain of one's own is, and no proxy leads there.

use std::net::IpAddr;

use url::Host;

/// Tells whether an address is one of this machine or of a private network. What connects to no address in particular
/// (`0.0.0.0`, `::`) reaches this machine.
pub fn is_near(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback()
        || ip.is_unspecified()
        || match ip {
            IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
        }
}

/// Tells whether a host of a URL is near, as far as its text says. Names without dots are those of a private network, such as
/// that of containers; they may lead elsewhere all the same, which only looking them up shows ([`is_near`]).
pub fn is_near_host<S: AsRef<str>>(host: &Host<S>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            is_localhost(name) || !without_last_dot(name).contains('.')
        }
        Host::Ipv4(ip) => is_near((*ip).into()),
        Host::Ipv6(ip) => is_near((*ip).into()),
    }
}

/// Tells whether a name is one of this machine wherever it is looked up (RFC 6761): `localhost`, or one that ends in it.
pub fn is_localhost(name: &str) -> bool {
    let name = without_last_dot(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// A dot at the end says that a name is whole, and nothing else.
fn without_last_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_private_networks_are_near_and_nothing_else_is() {
        for near in [
            "localhost",
            "127.0.0.1",
            "127.8.9.10",
            "10.0.0.7",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.4",
            "169.254.3.4",
            "[::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[::ffff:10.0.0.7]",
            "0.0.0.0",
            "[::]",
            "chain",
            "localhost.",
            "chain.",
            "anvil.localhost",
            "anvil.localhost.",
            "a.b.LOCALHOST",
        ] {
            assert!(is_near_host(&Host::parse(near).unwrap()), "{near}");
        }
        for far in [
            "rpc.example",
            "localhost.example",
            "anvil.notlocalhost",
            "chain.local",
            "chain.local.",
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.0",
            // A number is an address, written otherwise.
            "134744072",
            "[2606:4700::1111]",
            "[::ffff:8.8.8.8]",
        ] {
            assert!(!is_near_host(&Host::parse(far).unwrap()), "{far}");
        }
    }
}
