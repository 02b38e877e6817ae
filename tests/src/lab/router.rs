//! What a home router does, as rules for `nft`. Pure.

use std::{fmt::Write as _, net::Ipv4Addr};

/// The port that nodes listen on and owners forward.
pub const PORT: u16 = 3001;

/// How a router chooses the port that the outside sees. Both let in only answers of whoever was written to
/// (address- and port-dependent filtering, RFC 4787), unless [`rules_by_address`] adds to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// The inner port where it is free, as most routers at home do.
    KeepsPorts,
    /// Another one for every connection: symmetric.
    RandomPorts,
}

/// Which transports of [`PORT`] are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    pub tcp: bool,
    pub udp: bool,
}

impl Forwarded {
    pub const NOTHING: Self = Self { tcp: false, udp: false };
    pub const TCP: Self = Self { tcp: true, udp: false };
    pub const BOTH: Self = Self { tcp: true, udp: true };
}

/// All rules of a router with the internet at `wan`, in place of those it has. Connections that were forwarded
/// before go on, as they do on real routers.
pub fn rules(wan: &str, translation: Translation, forward: Option<(Ipv4Addr, Forwarded)>) -> String {
    let masquerade = match translation {
        Translation::KeepsPorts => "masquerade",
        Translation::RandomPorts => "masquerade fully-random",
    };
    let mut pre = String::new();
    let mut post = format!("oifname {wan} {masquerade}\n");
    if let Some((host, forwarded)) = forward {
        let transports = [("tcp", forwarded.tcp), ("udp", forwarded.udp)];
        for (transport, _) in transports.iter().filter(|(_, is_forwarded)| *is_forwarded) {
            // Writing to a string does not fail.
            let _ = writeln!(pre, "fib daddr type local {transport} dport {PORT} dnat to {host}:{PORT}");
        }
        // Hairpin: what the LAN sends to the router's public address comes back translated on both sides.
        let _ = writeln!(post, "ip saddr 192.168.0.0/16 ip daddr {host} masquerade");
    }
    format!(
        "table ip nat\ndelete table ip nat\ntable ip nat {{\n\
         chain pre {{ type nat hook prerouting priority -100\n{pre}}}\n\
         chain post {{ type nat hook postrouting priority 100\n{post}}}\n}}\n\
         table ip wall\ndelete table ip wall\ntable ip wall {{\n\
         chain forward {{ type filter hook forward priority 0; policy drop\n\
         ct state established,related accept\niifname != {wan} accept\nct status dnat accept\n}}\n\
         chain input {{ type filter hook input priority 0\niifname {wan} ct state new drop\n}}\n}}\n"
    )
}

/// Further rules of a router that forwards nothing and filters by address alone (address-dependent filtering, RFC
/// 4787): whoever `host` has written to from [`PORT`] is let in to it from any port of theirs.
pub fn rules_by_address(wan: &str, host: Ipv4Addr) -> String {
    let (mut sets, mut pre, mut noted) = (String::new(), String::new(), String::new());
    for transport in ["tcp", "udp"] {
        // Writing to a string does not fail.
        let _ = writeln!(sets, "set {transport}_written_to {{ type ipv4_addr; flags dynamic; size 1024; }}");
        let _ = writeln!(
            pre,
            "iifname {wan} ip saddr @{transport}_written_to {transport} dport {PORT} dnat to {host}:{PORT}"
        );
        let _ = writeln!(
            noted,
            "oifname {wan} ip saddr {host} {transport} sport {PORT} add @{transport}_written_to {{ ip daddr }}"
        );
    }
    format!(
        "table ip cone {{\n{sets}\
         chain pre {{ type nat hook prerouting priority -90\n{pre}}}\n\
         chain noted {{ type filter hook forward priority -10\n{noted}}}\n}}\n"
    )
}

/// What has a router with [`rules_by_address`] forget whom the host wrote to.
pub fn forgetting_addresses() -> String {
    ["tcp", "udp"].map(|transport| format!("flush set ip cone {transport}_written_to\n")).concat()
}

/// Rules of a provider that gives one address to all its customers: what comes from `customer`, at the interface `port`, goes
/// out as from `shared`, and nothing comes in but answers.
pub fn rules_of_provider(port: &str, customer: Ipv4Addr, shared: Ipv4Addr) -> String {
    format!(
        "table ip provider {{\n\
         chain post {{ type nat hook postrouting priority 100\n\
         ip saddr {customer} oifname != {port} snat to {shared}\n}}\n\
         chain input {{ type filter hook input priority 0\nip daddr {shared} ct state new drop\n}}\n}}\n"
    )
}

/// Rules of a router with the internet at `wan` that translates nothing of IPv6, and lets in answers alone.
pub fn firewall_of_ipv6(wan: &str) -> String {
    format!(
        "table ip6 wall {{ chain forward {{ type filter hook forward priority 0; policy drop\n\
         ct state established,related accept\niifname != {wan} accept\n}}\n}}\n"
    )
}

#[test]
fn a_router_forwards_what_it_is_told_and_nothing_else() {
    let host = Ipv4Addr::new(192, 168, 10, 2);
    let rules = |forwarded| rules("wan", Translation::KeepsPorts, Some((host, forwarded)));
    for (forwarded, tcp, udp) in
        [(Forwarded::NOTHING, false, false), (Forwarded::TCP, true, false), (Forwarded::BOTH, true, true)]
    {
        let rules = rules(forwarded);
        assert_eq!(rules.contains("tcp dport 3001 dnat to 192.168.10.2:3001"), tcp, "{rules}");
        assert_eq!(rules.contains("udp dport 3001 dnat to 192.168.10.2:3001"), udp, "{rules}");
    }
}
