//! Tables: which addresses are worth testing, and when.

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(text: &str) -> Multiaddr {
    text.parse().unwrap()
}

fn peer(n: u8) -> Address {
    Address::from_bytes([n; 20])
}

/// What observers at these IPs, each seeing this node at another, agree on.
fn agreed(seen: &[(&str, &str)], previous: Option<&str>, allow_private: bool) -> Option<IpAddr> {
    let mut observations = Observations::default();
    for (n, (own, observer)) in (0..).zip(seen) {
        observations.note(peer(n), ip(own), ip(observer));
    }
    observations.agreed(Family::V4, previous.map(ip), allow_private)
}

#[test]
fn two_witnesses_of_distinct_networks_make_a_candidate() {
    let (own, other) = ("9.1.1.1", "9.2.2.2");
    assert_eq!(agreed(&[], None, false), None);
    assert_eq!(agreed(&[(own, "8.1.0.1")], None, false), None, "one");
    assert_eq!(agreed(&[(own, "8.1.0.1"), (own, "8.1.9.9")], None, false), None, "one network");
    assert_eq!(agreed(&[(own, "8.1.0.1"), (own, "8.2.0.1")], None, false), Some(ip(own)));
    assert_eq!(agreed(&[(own, "8.1.0.1"), (other, "8.2.0.1")], None, false), None, "no agreement");
    let majority = [(own, "8.1.0.1"), (own, "8.2.0.1"), (own, "8.3.0.1"), (other, "8.4.0.1")];
    assert_eq!(agreed(&majority, Some(other), false), Some(ip(own)));
}

#[test]
fn a_peer_on_the_lan_is_no_witness_of_a_public_address() {
    assert_eq!(agreed(&[("9.1.1.1", "192.168.1.5"), ("9.1.1.1", "8.1.0.1")], None, false), None);
    assert_eq!(agreed(&[("192.168.1.2", "8.1.0.1"), ("192.168.1.2", "8.2.0.1")], None, false), None);
}

#[test]
fn on_a_private_network_a_single_peer_will_do_where_there_is_no_other() {
    let (own, other) = ("10.0.0.1", "10.0.0.9");
    assert_eq!(agreed(&[(own, "10.0.0.2")], None, true), Some(ip(own)));
    assert_eq!(agreed(&[(own, "10.0.0.2"), (own, "10.0.0.3")], None, true), Some(ip(own)));
    assert_eq!(agreed(&[(own, "10.0.0.2"), (other, "10.0.0.3")], None, true), None, "two disagree");
}

#[test]
fn an_outage_does_not_change_the_address_and_a_new_view_does() {
    let (old, new) = ("9.1.1.1", "9.2.2.2");
    assert_eq!(agreed(&[], Some(old), false), Some(ip(old)), "nobody is connected");
    assert_eq!(agreed(&[(old, "8.1.0.1")], Some(old), false), Some(ip(old)), "one still says so");
    assert_eq!(agreed(&[(new, "8.1.0.1")], Some(old), false), None, "nobody says so any more");
    assert_eq!(agreed(&[(new, "8.1.0.1"), (new, "8.2.0.1")], Some(old), false), Some(ip(new)));
}

#[test]
fn the_number_of_observers_is_bounded() {
    let mut observations = Observations::default();
    for n in 0..=255 {
        observations.note(peer(n), ip("9.1.1.1"), ip("8.1.0.1"));
    }
    assert_eq!(observations.by_peer.len(), OBSERVERS_MAX);
}

struct Case {
    name: &'static str,
    announced: &'static [&'static str],
    mapped: &'static [&'static str],
    seen: &'static [&'static str],
    expected: &'static [&'static str],
}

#[test]
fn candidates_are_what_was_announced_then_observed_then_mapped() {
    let listening = [
        "/ip4/127.0.0.1/tcp/3001",
        "/ip4/192.168.1.2/tcp/3001",
        "/ip4/192.168.1.2/udp/3001/quic-v1",
        "/ip6/fd00::2/tcp/3001",
    ];
    let cases = [
        Case { name: "nothing is known", announced: &[], mapped: &[], seen: &[], expected: &[] },
        Case {
            name: "the IP that peers see, with the ports of its family",
            announced: &[],
            mapped: &[],
            seen: &["9.1.1.1"],
            expected: &["/ip4/9.1.1.1/tcp/3001", "/ip4/9.1.1.1/udp/3001/quic-v1"],
        },
        Case {
            name: "both families",
            announced: &[],
            mapped: &[],
            seen: &["9.1.1.1", "2620:fe::1"],
            expected: &["/ip4/9.1.1.1/tcp/3001", "/ip4/9.1.1.1/udp/3001/quic-v1", "/ip6/2620:fe::1/tcp/3001"],
        },
        Case {
            name: "an announced address stands for its transport",
            announced: &["/ip4/9.1.1.1/tcp/4001"],
            mapped: &[],
            seen: &["9.1.1.1"],
            expected: &["/ip4/9.1.1.1/tcp/4001", "/ip4/9.1.1.1/udp/3001/quic-v1"],
        },
        Case {
            name: "a mapped port, once",
            announced: &[],
            mapped: &["/ip4/9.1.1.1/tcp/3001", "/ip4/9.1.1.1/tcp/5001"],
            seen: &["9.1.1.1"],
            expected: &["/ip4/9.1.1.1/tcp/3001", "/ip4/9.1.1.1/udp/3001/quic-v1", "/ip4/9.1.1.1/tcp/5001"],
        },
    ];
    for Case { name, announced, mapped, seen, expected } in cases {
        let read = |texts: &[&str]| texts.iter().map(|text| at(text)).collect::<Vec<_>>();
        let (announced, mapped, listening) = (read(announced), read(mapped), read(&listening));
        let seen: Vec<IpAddr> = seen.iter().map(|text| ip(text)).collect();
        let known = OwnAddresses {
            announced: &announced,
            listening: &listening,
            mapped: &mapped,
            seen: &seen,
            allow_private: false,
        };
        let candidates = known.candidates();
        let found: Vec<String> = candidates.iter().map(|candidate| candidate.address.to_string()).collect();
        assert_eq!(found, expected, "{name}");
        assert!(
            candidates.iter().all(|candidate| candidate.dialled == Some(candidate.address.clone())),
            "{name}"
        );
    }
}

#[test]
fn a_name_is_tested_at_the_ip_that_peers_see() {
    let announced = [at("/dns4/node.example/tcp/3001"), at("/ip4/192.168.1.2/tcp/3001")];
    let known = |seen| OwnAddresses {
        announced: &announced,
        listening: &[],
        mapped: &[],
        seen,
        allow_private: false,
    };
    assert!(known(&[]).candidates().iter().all(|candidate| candidate.dialled.is_none()));
    let seen = [ip("9.1.1.1")];
    let candidates = known(&seen).candidates();
    assert_eq!(candidates[0].dialled, Some(at("/ip4/9.1.1.1/tcp/3001")));
    assert_eq!(candidates[0].address, announced[0], "it is published as it was written");
    assert_eq!(candidates[1].dialled, None, "nobody on the public network would dial this");
}
