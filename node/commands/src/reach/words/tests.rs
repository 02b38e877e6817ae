//! Tables: the words for each report, and that each of its parts is told wherever it matters.

use std::net::IpAddr;

use farthing_network::{RecordHolders, RelayUse};

use super::*;

const NOW_SECS: u64 = 1_000_000;

fn check(transport: Transport, port: u16, state: ReachState) -> AddressCheck {
    AddressCheck {
        address: format!("/ip4/9.9.9.9/…/{port}"),
        transport,
        port,
        source: AddressSource::Observed,
        state,
        published: state == ReachState::Reachable,
        arrived: if state == ReachState::Reachable { 3 } else { 0 },
        asked: 3,
        failures: Vec::new(),
    }
}

/// At home behind a router, tested three minutes ago.
fn home(tcp: ReachState, udp: ReachState) -> Reachability {
    Reachability {
        checks: vec![check(Transport::Tcp, 3001, tcp), check(Transport::Quic, 3001, udp)],
        testing: false,
        checked_secs: Some(NOW_SECS - 200),
        peers_asked: 3,
        testers: 5,
        tcp_port: Some(3001),
        quic_port: Some(3001),
        local_ip: Some("192.168.1.20".parse().unwrap()),
        seen: vec!["9.9.9.9".parse().unwrap()],
        gateway: Gateway::NotAsked,
        private: false,
        shared: false,
        untested: Vec::new(),
        relays: RelayUse::default(),
        record_holders: None,
        again_secs: None,
    }
}

#[test]
fn the_words_say_what_is_reachable_and_what_to_do() {
    use ReachState::{NotReachable, Reachable, Unknown};
    let untested = || Reachability { checked_secs: None, ..home(Unknown, Unknown) };
    let cases = [
        (
            home(Reachable, NotReachable),
            "Port 3001: TCP reachable; UDP not forwarded — forward UDP 3001 to 192.168.1.20. Checked 3 \
             minutes ago by 3 peers.",
        ),
        (
            home(Reachable, Reachable),
            "Port 3001: TCP reachable; UDP reachable. Checked 3 minutes ago by 3 peers.",
        ),
        (
            Reachability {
                checks: vec![check(Transport::Tcp, 4001, NotReachable)],
                quic_port: None,
                peers_asked: 1,
                checked_secs: Some(NOW_SECS),
                ..home(Unknown, Unknown)
            },
            "Port 4001: TCP not forwarded — forward TCP 4001 to port 3001 of 192.168.1.20. Checked just \
             now by 1 peer.",
        ),
        (
            Reachability {
                checks: vec![check(Transport::Tcp, 4001, Reachable), check(Transport::Quic, 3001, Unknown)],
                checked_secs: Some(NOW_SECS - 7300),
                ..home(Unknown, Unknown)
            },
            "TCP port 4001 reachable; UDP port 3001 not decided, because peers disagreed or did not answer; tested \
             again automatically. Checked 2 hours ago by 3 peers.",
        ),
        (
            Reachability { local_ip: Some("9.9.9.9".parse().unwrap()), ..home(NotReachable, Reachable) },
            "Port 3001: TCP not let through — open TCP 3001 in the firewall of this machine; UDP \
             reachable. Checked 3 minutes ago by 3 peers.",
        ),
        (
            Reachability { local_ip: None, shared: true, ..home(NotReachable, NotReachable) },
            "Port 3001: TCP not forwarded — forward TCP 3001 to this machine; UDP not forwarded — forward UDP 3001 to \
             this machine. Checked 3 minutes ago by 3 peers. Your provider seems to share one public address among \
             several customers (CGNAT), so forwarding the port on your router is not enough. Ask for your own address, \
             or announce the address of a tunnel.",
        ),
        (
            Reachability { testers: 0, ..untested() },
            "Port 3001: not tested yet; peers test it soon after they connect.",
        ),
        (untested(), "Port 3001: not tested yet."),
        (Reachability { testing: true, ..untested() }, "Port 3001: being tested."),
        (
            Reachability { checks: Vec::new(), ..untested() },
            "Port 3001: not tested yet; too few peers agree on this node's public address. If you know it, set it in \
             `network.announce`.",
        ),
        (Reachability::default(), "This node does not listen on any address, so nobody can connect to it."),
    ];
    for (reachability, words) in cases {
        assert_eq!(Words(&reachability).sentence(NOW_SECS), words);
    }
}

#[test]
fn a_private_network_has_a_router_in_between_where_peers_see_another_address() {
    use ReachState::{NotReachable, Reachable};
    let own: IpAddr = "192.168.1.20".parse().unwrap();
    let routers: IpAddr = "10.9.0.2".parse().unwrap();
    let (firewall, router) = (
        "UDP not let through — open UDP 3001 in the firewall of this machine.",
        "UDP not forwarded — forward UDP 3001 to 192.168.1.20.",
    );
    for (local_ip, seen, advice) in [
        (Some(own), vec![own], firewall),
        (Some(own), vec![routers], router),
        (Some(own), Vec::new(), firewall),
        (None, vec![routers], firewall),
    ] {
        let private = Reachability { private: true, local_ip, seen, ..home(Reachable, NotReachable) };
        let sentence = Words(&private).sentence(NOW_SECS);
        assert!(sentence.contains(advice), "{sentence}");
    }
}

#[test]
fn what_the_router_said_to_upnp_is_told_where_it_matters() {
    use ReachState::{NotReachable, Reachable};
    let outer = "9.9.9.9".parse().unwrap();
    let on_server = || Some("9.9.9.9".parse().unwrap());
    for (gateway, udp, local_ip, words) in [
        (Gateway::Absent, NotReachable, None, " No router answers to UPnP, so forward the port yourself."),
        (Gateway::Absent, Reachable, None, ""),
        (Gateway::Absent, NotReachable, on_server(), ""),
        (Gateway::Unknown, NotReachable, None, ""),
        (Gateway::Maps(outer), Reachable, None, " The router forwards the ports (UPnP)."),
        (
            Gateway::Maps(outer),
            NotReachable,
            None,
            " The router says that it forwards the ports (UPnP). There may be another router or a firewall in front of \
             it.",
        ),
    ] {
        let reachability = Reachability { gateway, local_ip, ..home(Reachable, udp) };
        let sentence = Words(&reachability).sentence(NOW_SECS);
        let said = sentence.split_once("by 3 peers.").unwrap().1;
        assert_eq!(said, words, "{gateway:?}");
    }
}

#[test]
fn how_relays_lead_here_is_said_in_every_state() {
    let relays = || RelayUse { is_sought: true, ..RelayUse::default() };
    let tested =
        || Reachability { relays: relays(), ..home(ReachState::NotReachable, ReachState::NotReachable) };
    for reachability in [
        tested(),
        Reachability { checked_secs: None, ..tested() },
        Reachability { relays: relays(), ..Reachability::default() },
    ] {
        let sentence = Words(&reachability).sentence(NOW_SECS);
        assert!(sentence.contains(&relayed::sentence(&relays())), "{sentence}");
    }
}

#[test]
fn that_too_few_keep_the_record_is_said_wherever_addresses_are() {
    let record_holders = Some(RecordHolders { kept_by: 7, wanted: 20 });
    let few = || Reachability { record_holders, ..home(ReachState::Reachable, ReachState::Reachable) };
    for reachability in [
        few(),
        Reachability { checked_secs: None, ..few() },
        Reachability { record_holders, ..Reachability::default() },
    ] {
        let sentence = Words(&reachability).sentence(NOW_SECS);
        assert!(sentence.contains("7 of 20 nodes keep it"), "{sentence}");
    }
    assert_eq!(
        Words(&few()).in_short(),
        "peers could connect; too few nodes keep its record, see `farthing net reach`"
    );
}

#[test]
fn who_asks_again_too_soon_learns_when_to() {
    let home = home(ReachState::Reachable, ReachState::Reachable);
    let sentence = Words(&Reachability { again_secs: Some(26), ..home }).sentence(NOW_SECS);
    assert!(sentence.ends_with("Peers test once a minute; you can test again in 26 seconds."), "{sentence}");
}

#[test]
fn an_address_that_nobody_may_dial_is_said_to_be_untested() {
    let mut reachability = home(ReachState::Unknown, ReachState::Reachable);
    reachability.checks[0].asked = 0;
    assert_eq!(
        Words(&reachability).sentence(NOW_SECS),
        "Port 3001: TCP not tested, because no peer sees this node at the announced address; UDP \
         reachable. Checked 3 minutes ago by 3 peers."
    );
}

#[test]
fn how_many_peers_came_through_is_said_when_not_all_did() {
    use ReachState::Reachable;
    for (arrived, asked, words) in [
        (3, 3, "TCP reachable; "),
        (1, 3, "TCP reachable (1 of 3 peers could); "),
        (2, 3, "TCP reachable (2 of 3 peers could); "),
        (0, 1, "TCP reachable before, undecided this time; "),
    ] {
        let mut reachability = home(Reachable, Reachable);
        (reachability.checks[0].arrived, reachability.checks[0].asked) = (arrived, asked);
        let sentence = Words(&reachability).sentence(NOW_SECS);
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_dead_announced_address_is_a_matter_of_the_setting() {
    let mut reachability = home(ReachState::NotReachable, ReachState::Reachable);
    let dead = AddressCheck {
        source: AddressSource::Announced,
        address: "/ip4/9.9.9.9/tcp/9".to_owned(),
        ..check(Transport::Tcp, 9, ReachState::NotReachable)
    };
    reachability.checks[0] = dead;
    assert_eq!(
        Words(&reachability).sentence(NOW_SECS),
        "TCP port 9 announced as /ip4/9.9.9.9/tcp/9, but no peer could connect to it — correct or remove it in \
         `network.announce`, or let TCP 9 through to port 3001 of 192.168.1.20; UDP port 3001 reachable. \
         Checked 3 minutes ago by 3 peers."
    );
}

#[test]
fn an_announced_address_is_not_called_reached_before_it_was() {
    use ReachState::{NotReachable, Reachable, Testing, Unknown};
    let mut reachability = home(Unknown, Unknown);
    assert_eq!(Words(&reachability).standing(), "not tested yet");
    reachability.checks[0].source = AddressSource::Announced;
    assert_eq!(Words(&reachability).standing(), "announced, not tested yet");
    assert_eq!(Words(&Reachability { testing: true, ..home(Testing, Testing) }).standing(), "being tested");
    assert_eq!(Words(&home(NotReachable, Unknown)).standing(), "tested: no peer could connect");
    let mut half = home(NotReachable, Reachable);
    assert_eq!(Words(&half).standing(), "peers could connect", "what leads nowhere is not published");
    half.checks[0].published = true;
    assert!(
        Words(&half).standing().starts_with("peers could connect, but not to every port"),
        "{}",
        Words(&half).standing()
    );
}

#[test]
fn ages_are_said_in_the_unit_one_would_use() {
    for (secs, words) in [
        (0, "just now"),
        (5, "5 seconds ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (90_000, "25 hours ago"),
    ] {
        assert_eq!(age(secs), words);
    }
}
