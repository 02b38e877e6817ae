//! Reachability in plain words, for the console, `farthing net reach` and `farthing doctor`. Pure.

use crate::{AddressCheck, AddressSource, Gateway, ReachState, Reachability, Transport};

impl Reachability {
    /// Says which port is reachable over what, what to do otherwise, and how old the news is. One line.
    ///
    /// `Port 3001: TCP reachable; UDP not forwarded — forward UDP 3001 to 192.168.1.20. Checked 3 minutes ago
    /// by 3 peers.`
    pub fn sentence(&self, now_secs: u64) -> String {
        let ports: Vec<(Transport, u16)> = [Transport::Tcp, Transport::Quic]
            .into_iter()
            .filter_map(|transport| Some((transport, self.outer_port(transport)?)))
            .collect();
        let Some(&(_, first)) = ports.first() else {
            return "This node listens nowhere: nobody can connect to it.".to_owned();
        };
        let is_one_port = ports.iter().all(|(_, port)| *port == first);
        let head = if is_one_port { format!("Port {first}: ") } else { String::new() };
        let Some(checked_secs) = self.checked_secs else {
            let ports = if is_one_port { head } else { "Ports: ".to_owned() };
            return format!("{ports}{}", self.untested());
        };
        let phrases: Vec<String> = ports
            .iter()
            .map(|&(transport, port)| {
                let kind = transport.port_kind();
                let name = if is_one_port { kind.to_owned() } else { format!("{kind} port {port}") };
                format!("{name} {}", self.phrase(transport, port))
            })
            .collect();
        let age = age(now_secs.saturating_sub(checked_secs));
        let peers = counted(self.peers_asked, "peer");
        let router = self.router();
        let shared = if self.shared && !self.is_reachable() { SHARED } else { "" };
        let again = self.again_secs.map_or_else(String::new, |secs| {
            format!(" Peers dial back once a minute: a new test can be made in {}.", counted_secs(secs))
        });
        format!("{head}{}. Checked {age} by {peers}.{router}{shared}{again}", phrases.join("; "))
    }

    fn untested(&self) -> &'static str {
        match (self.testing, self.testers, self.checks.is_empty()) {
            (true, ..) => "being tested.",
            (false, 0, _) => "not tested yet; peers test it soon after they connect.",
            (false, _, true) => {
                "not tested yet; too few peers agree on this node's public address. Name it in \
                 `network.announce` if you know it."
            }
            (false, _, false) => "not tested yet.",
        }
    }

    fn phrase(&self, transport: Transport, port: u16) -> String {
        match self.state(transport) {
            ReachState::Reachable => self.how_well(transport),
            ReachState::NotReachable => self.advice(transport, port),
            ReachState::Testing => "being tested".to_owned(),
            ReachState::Unknown => match self.checks_of(transport).next() {
                Some(check) if check.asked == 0 => {
                    "not tested, because no peer sees this node at the announced address".to_owned()
                }
                Some(_) => UNDECIDED.to_owned(),
                None => "not tested".to_owned(),
            },
        }
    }

    /// Says what came of asking the router by UPnP, where that matters: a forward that it made, or one that is missing.
    fn router(&self) -> &'static str {
        let is_missing = [Transport::Tcp, Transport::Quic]
            .into_iter()
            .any(|transport| self.state(transport) == ReachState::NotReachable);
        match self.gateway {
            Gateway::Maps(_) if is_missing => {
                " The router says that it forwards the ports, as UPnP asked it to: another router or a firewall may \
                 stand before it."
            }
            Gateway::Maps(_) => " The router forwards the ports, as UPnP asked it to.",
            Gateway::Absent if is_missing && !self.is_direct() => {
                " No router answers to UPnP, so the forward has to be made by hand."
            }
            Gateway::NotAsked | Gateway::Unknown | Gateway::Absent | Gateway::Private => "",
        }
    }

    /// Nothing stands before this machine that would have to forward.
    fn is_direct(&self) -> bool {
        self.private || self.local_ip.is_some_and(|ip| self.seen.contains(&ip))
    }

    /// One peer that came through is proof; that others did not is worth knowing.
    fn how_well(&self, transport: Transport) -> String {
        let reachable = self.checks_of(transport).find(|check| check.state == ReachState::Reachable);
        match reachable.map_or((0, 0), |check| (check.arrived, check.asked)) {
            (0, asked) if asked > 0 => "reachable before, undecided this time".to_owned(),
            (arrived, asked) if arrived < asked => {
                format!("reachable ({arrived} of {} could)", counted(asked, "peer"))
            }
            _ => "reachable".to_owned(),
        }
    }

    /// Says in a few words what a test has shown of the addresses that are published.
    pub fn standing(&self) -> &'static str {
        let any = |state| self.checks.iter().any(|check| check.state == state);
        let is_broken = |check: &AddressCheck| check.published && check.state == ReachState::NotReachable;
        if self.is_reachable() && self.checks.iter().any(is_broken) {
            "peers came through, but not to all of them; see `farthing net reach`"
        } else if self.is_reachable() {
            "peers came through"
        } else if any(ReachState::NotReachable) {
            "tested: no peer came through"
        } else if self.testing {
            "being tested"
        } else if self.checks.iter().any(|check| check.source == AddressSource::Announced) {
            "announced, not tested yet"
        } else {
            "not tested yet"
        }
    }

    fn advice(&self, transport: Transport, port: u16) -> String {
        let kind = transport.port_kind();
        let of_port = |check: &&AddressCheck| {
            check.port == port
                && check.state == ReachState::NotReachable
                && check.source == AddressSource::Announced
        };
        if let Some(announced) = self.checks_of(transport).find(of_port) {
            let through = match self.inner_port(transport) {
                Some(inner) => {
                    format!(", or let {kind} {port} through to port {inner} of {}", self.machine())
                }
                None => String::new(),
            };
            return format!(
                "announced as {}, where no peer came through — correct or remove it in \
                 `network.announce`{through}",
                announced.address
            );
        }
        if self.is_direct() {
            return format!("not let through — open {kind} {port} in the firewall of this machine");
        }
        let machine = self.machine();
        match self.inner_port(transport) {
            Some(inner) if inner != port => {
                format!("not forwarded — forward {kind} {port} to port {inner} of {machine}")
            }
            _ => format!("not forwarded — forward {kind} {port} to {machine}"),
        }
    }

    fn machine(&self) -> String {
        self.local_ip.map_or_else(|| "this machine".to_owned(), |ip| ip.to_string())
    }

    fn checks_of(&self, transport: Transport) -> impl Iterator<Item = &AddressCheck> {
        self.checks.iter().filter(move |check| check.transport == transport)
    }

    /// The port the outside uses: of the best address, or else the one this node listens on.
    fn outer_port(&self, transport: Transport) -> Option<u16> {
        let state = self.state(transport);
        let best = self.checks_of(transport).find(|check| check.state == state);
        best.map(|check| check.port).or_else(|| self.inner_port(transport))
    }

    const fn inner_port(&self, transport: Transport) -> Option<u16> {
        match transport {
            Transport::Tcp => self.tcp_port,
            Transport::Quic => self.quic_port,
        }
    }
}

const SHARED: &str = " Your provider seems to share one public address among several customers (CGNAT), so a \
                      forward on your router is not enough: ask for an address of your own, or announce a \
                      tunnel's.";

const UNDECIDED: &str =
    "undecided, because peers did not agree or did not answer; it is tested again by itself";

fn counted_secs(secs: u64) -> String {
    counted(usize::try_from(secs).unwrap_or(usize::MAX), "second")
}

fn age(secs: u64) -> String {
    match secs {
        0..5 => "just now".to_owned(),
        5..60 => format!("{secs} seconds ago"),
        60..3600 => format!("{} ago", counted(usize::try_from(secs / 60).unwrap_or(usize::MAX), "minute")),
        _ => format!("{} ago", counted(usize::try_from(secs / 3600).unwrap_or(usize::MAX), "hour")),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
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
                    checks: vec![
                        check(Transport::Tcp, 4001, Reachable),
                        check(Transport::Quic, 3001, Unknown),
                    ],
                    checked_secs: Some(NOW_SECS - 7300),
                    ..home(Unknown, Unknown)
                },
                "TCP port 4001 reachable; UDP port 3001 undecided, because peers did not agree or did not answer; it is \
                 tested again by itself. Checked 2 hours ago by 3 peers.",
            ),
            (
                Reachability { local_ip: Some("9.9.9.9".parse().unwrap()), ..home(NotReachable, Reachable) },
                "Port 3001: TCP not let through — open TCP 3001 in the firewall of this machine; UDP \
                 reachable. Checked 3 minutes ago by 3 peers.",
            ),
            (
                Reachability { local_ip: None, shared: true, ..home(NotReachable, NotReachable) },
                "Port 3001: TCP not forwarded — forward TCP 3001 to this machine; UDP not forwarded — \
                 forward UDP 3001 to this machine. Checked 3 minutes ago by 3 peers. Your provider seems to \
                 share one public address among several customers (CGNAT), so a forward on your router is \
                 not enough: ask for an address of your own, or announce a tunnel's.",
            ),
            (
                Reachability { testers: 0, ..untested() },
                "Port 3001: not tested yet; peers test it soon after they connect.",
            ),
            (untested(), "Port 3001: not tested yet."),
            (Reachability { testing: true, ..untested() }, "Port 3001: being tested."),
            (
                Reachability { checks: Vec::new(), ..untested() },
                "Port 3001: not tested yet; too few peers agree on this node's public address. Name it in \
                 `network.announce` if you know it.",
            ),
            (
                Reachability { private: true, ..home(Reachable, NotReachable) },
                "Port 3001: TCP reachable; UDP not let through — open UDP 3001 in the firewall of this \
                 machine. Checked 3 minutes ago by 3 peers.",
            ),
            (Reachability::default(), "This node listens nowhere: nobody can connect to it."),
        ];
        for (reachability, words) in cases {
            assert_eq!(reachability.sentence(NOW_SECS), words);
        }
    }

    #[test]
    fn what_the_router_said_to_upnp_is_told_where_it_matters() {
        use ReachState::{NotReachable, Reachable};
        let outer = "9.9.9.9".parse().unwrap();
        let on_server = || Some("9.9.9.9".parse().unwrap());
        for (gateway, udp, local_ip, words) in [
            (
                Gateway::Absent,
                NotReachable,
                None,
                " No router answers to UPnP, so the forward has to be made by hand.",
            ),
            (Gateway::Absent, Reachable, None, ""),
            (Gateway::Absent, NotReachable, on_server(), ""),
            (Gateway::Unknown, NotReachable, None, ""),
            (Gateway::Maps(outer), Reachable, None, " The router forwards the ports, as UPnP asked it to."),
            (
                Gateway::Maps(outer),
                NotReachable,
                None,
                " The router says that it forwards the ports, as UPnP asked it \
              to: another router or a firewall may stand before it.",
            ),
        ] {
            let reachability = Reachability { gateway, local_ip, ..home(Reachable, udp) };
            let sentence = reachability.sentence(NOW_SECS);
            let said = sentence.split_once("by 3 peers.").unwrap().1;
            assert_eq!(said, words, "{gateway:?}");
        }
    }

    #[test]
    fn who_asks_again_too_soon_learns_when_to() {
        let home = home(ReachState::Reachable, ReachState::Reachable);
        let sentence = Reachability { again_secs: Some(26), ..home }.sentence(NOW_SECS);
        assert!(
            sentence.ends_with("Peers dial back once a minute: a new test can be made in 26 seconds."),
            "{sentence}"
        );
    }

    #[test]
    fn an_address_that_nobody_may_dial_is_said_to_be_untested() {
        let mut reachability = home(ReachState::Unknown, ReachState::Reachable);
        reachability.checks[0].asked = 0;
        assert_eq!(
            reachability.sentence(NOW_SECS),
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
            let sentence = reachability.sentence(NOW_SECS);
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
            reachability.sentence(NOW_SECS),
            "TCP port 9 announced as /ip4/9.9.9.9/tcp/9, where no peer came through — correct or remove it in \
             `network.announce`, or let TCP 9 through to port 3001 of 192.168.1.20; UDP port 3001 reachable. \
             Checked 3 minutes ago by 3 peers."
        );
    }

    #[test]
    fn an_announced_address_is_not_called_reached_before_it_was() {
        use ReachState::{NotReachable, Reachable, Testing, Unknown};
        let mut reachability = home(Unknown, Unknown);
        assert_eq!(reachability.standing(), "not tested yet");
        reachability.checks[0].source = AddressSource::Announced;
        assert_eq!(reachability.standing(), "announced, not tested yet");
        assert_eq!(Reachability { testing: true, ..home(Testing, Testing) }.standing(), "being tested");
        assert_eq!(home(NotReachable, Unknown).standing(), "tested: no peer came through");
        let mut half = home(NotReachable, Reachable);
        assert_eq!(half.standing(), "peers came through", "what leads nowhere is not published");
        half.checks[0].published = true;
        assert!(half.standing().starts_with("peers came through, but not to all"), "{}", half.standing());
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
}
