//! Whom an address stands for. Whoever has one address often has many: limits count what belongs together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::near::is_near;

/// One subscriber of a provider: an IPv4 address, a /64 of IPv6 (RFC 6177), and this machine under all of its names
/// (127.0.0.0/8 and `::1`).
pub fn subscriber(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        ip if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => prefix(ip, 4),
    }
}

/// Returns the range that one customer of a provider commonly gets at once: a /24 of IPv4, a /48 of IPv6. In private
/// networks, where every machine has its own reasons, it is the same as [`subscriber`].
pub fn range(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        ip if is_near(ip) => subscriber(ip),
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(ip) => prefix(ip, 3),
    }
}

/// The first so many of eight groups.
fn prefix(ip: Ipv6Addr, groups: usize) -> IpAddr {
    let mut segments = ip.segments();
    segments[groups..].fill(0);
    Ipv6Addr::from(segments).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_belong_together_count_as_one() {
        for (ip, expected_subscriber, expected_range) in [
            ("9.9.9.9", "9.9.9.9", "9.9.9.0"),
            ("::ffff:9.9.9.9", "9.9.9.9", "9.9.9.0"),
            ("2620:fe:1:2:3:4:5:6", "2620:fe:1:2::", "2620:fe:1::"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
            ("127.9.8.7", "127.0.0.1", "127.0.0.1"),
            ("::1", "127.0.0.1", "127.0.0.1"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.7"),
            ("fd12:3456:789a:1::5", "fd12:3456:789a:1::", "fd12:3456:789a:1::"),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(subscriber(ip).to_string(), expected_subscriber, "{ip}");
            assert_eq!(range(ip).to_string(), expected_range, "{ip}");
        }
    }
}
