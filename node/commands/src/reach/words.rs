//! Reachability in plain words, for the console, `farthing net reach` and `farthing doctor`. Pure.

use std::ops::Deref;

use farthing_network::{AddressCheck, AddressSource, Gateway, ReachState, Reachability, Transport};

use super::{keepers, relayed};

/// A report that is put into words.
pub(crate) struct Words<'a>(pub(crate) &'a Reachability);

impl Deref for Words<'_> {
    type Target = Reachability;

    fn deref(&self) -> &Reachability {
        self.0
    }
}

impl Words<'_> {
    /// Says which port is reachable over what, what to do otherwise, and how old the news is. One line.
    ///
    /// `Port 3001: TCP reachable; UDP not forwarded — forward UDP 3001 to 192.168.1.20. Checked 3 minutes ago
    /// by 3 peers.`
    pub(crate) fn sentence(&self, now_secs: u64) -> String {
        let ports: Vec<(Transport, u16)> = [Transport::Tcp, Transport::Quic]
            .into_iter()
            .filter_map(|transport| Some((transport, self.outer_port(transport)?)))
            .collect();
        let Some(&(_, first)) = ports.first() else {
            return format!(
                "This node does not listen on any address, so nobody can connect to it.{}",
                self.means()
            );
        };
        let is_one_port = ports.iter().all(|(_, port)| *port == first);
        let head = if is_one_port { format!("Port {first}: ") } else { String::new() };
        let Some(checked_secs) = self.checked_secs else {
            let ports = if is_one_port { head } else { "Ports: ".to_owned() };
            return format!("{ports}{}{}", self.untested(), self.means());
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
        let means = self.means();
        let again = self.again_secs.map_or_else(String::new, |secs| {
            format!(" Peers test once a minute; you can test again in {}.", counted_secs(secs))
        });
        format!("{head}{}. Checked {age} by {peers}.{router}{shared}{means}{again}", phrases.join("; "))
    }

    /// Says which relays lead here, and how few know where here is.
    fn means(&self) -> String {
        format!("{}{}", relayed::sentence(&self.relays), keepers::sentence(self))
    }

    fn untested(&self) -> &'static str {
        match (self.testing, self.testers, self.checks.is_empty()) {
            (true, ..) => "being tested.",
            (false, 0, _) => "not tested yet; peers test it soon after they connect.",
            (false, _, true) => {
                "not tested yet; too few peers agree on this node's public address. If you know it, set it in \
                 `network.announce`."
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
                " The router says that it forwards the ports (UPnP). There may be another router or a firewall in \
                 front of it."
            }
            Gateway::Maps(_) => " The router forwards the ports (UPnP).",
            Gateway::Absent if is_missing && !self.is_direct() => {
                " No router answers to UPnP, so forward the port yourself."
            }
            Gateway::NotAsked | Gateway::Unknown | Gateway::Absent | Gateway::Private => "",
        }
    }

    /// Nothing stands before this machine that would have to forward: peers see it at its own address. On a private network
    /// that is so as long as nobody has seen it.
    fn is_direct(&self) -> bool {
        let known = self.local_ip.filter(|_| !self.seen.is_empty());
        known.map_or(self.private, |ip| self.seen.contains(&ip))
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
    fn standing(&self) -> &'static str {
        let any = |state| self.checks.iter().any(|check| check.state == state);
        let is_broken = |check: &AddressCheck| check.published && check.state == ReachState::NotReachable;
        if self.is_reachable() && self.checks.iter().any(is_broken) {
            "peers could connect, but not to every port; see `farthing net reach`"
        } else if self.is_reachable() {
            "peers could connect"
        } else if any(ReachState::NotReachable) {
            "tested: no peer could connect"
        } else if self.testing {
            "being tested"
        } else if self.checks.iter().any(|check| check.source == AddressSource::Announced) {
            "announced, not tested yet"
        } else {
            "not tested yet"
        }
    }

    /// Says the same, and whether others keep the record that names those addresses.
    pub(crate) fn in_short(&self) -> String {
        format!("{}{}", self.standing(), keepers::phrase(self))
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
                "announced as {}, but no peer could connect to it — correct or remove it in \
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

    fn inner_port(&self, transport: Transport) -> Option<u16> {
        match transport {
            Transport::Tcp => self.tcp_port,
            Transport::Quic => self.quic_port,
        }
    }
}

const SHARED: &str = " Your provider seems to share one public address among several customers (CGNAT), so forwarding \
                      the port on your router is not enough. Ask for your own address, or announce the address of a \
                      tunnel.";

const UNDECIDED: &str = "not decided, because peers disagreed or did not answer; tested again automatically";

fn counted_secs(secs: u64) -> String {
    counted(usize::try_from(secs).unwrap_or(usize::MAX), "second")
}

pub(super) fn age(secs: u64) -> String {
    match secs {
        0..5 => "just now".to_owned(),
        5..60 => format!("{secs} seconds ago"),
        60..3600 => format!("{} ago", counted(usize::try_from(secs / 60).unwrap_or(usize::MAX), "minute")),
        _ => format!("{} ago", counted(usize::try_from(secs / 3600).unwrap_or(usize::MAX), "hour")),
    }
}

pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests;
