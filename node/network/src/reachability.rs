//! Finds out whether other nodes can dial this one: asked of peers, believed when their dials arrive. Pure but for the
//! clock and the randomness passed in.
//!
//! In the order things happen:
//! 1. What is announced, observed by peers and mapped by a router makes `candidates`.
//! 2. When a test is due, `testers` are chosen and each gets a request with a nonce of its own.
//! 3. Each of them (`server`, `dialer`) dials every address under a key that only it and we can compute;
//!    [`Prober::arrived`] sees who came through, whatever the peer then says.
//! 4. The `verdict` of a test changes what is published, and `report` says so.
//!
//! Architecture invariant: an address is never verified by what a peer says, only by a connection that arrives
//! under the key of that peer, that test and that address.

mod candidates;
mod dialer;
mod limiter;
mod place;
mod report;
mod round;
mod server;
mod testers;
mod verdict;

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address, Hash, limits,
    reach::ReachResponse,
    record::{FLAG_QUIC_VERIFIED, FLAG_TCP_VERIFIED},
};
use libp2p::{Multiaddr, PeerId};

use self::{
    candidates::{Observations, OwnAddresses},
    place::Family,
    round::{Arrival, ReachabilityRequest, Round},
    testers::AskSchedule,
    verdict::Standing,
};
pub(crate) use self::{
    round::Ask,
    server::{ReachServer, exchange},
    testers::Tester,
};
use crate::{Gateway, ReachConfig, Transport, addresses};

/// The longest wait for those who cannot change the outcome of a test any more.
const LATECOMERS_WITHIN: Duration = Duration::from_secs(3);
/// Without anybody to ask the prober looks again no sooner than this.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Without anything to test, which a new candidate ends at once.
const NOTHING_TO_TEST_FOR: Duration = Duration::from_secs(10);

/// Tests this node's addresses, and remembers what came of it.
#[derive(Debug)]
pub(crate) struct Prober {
    config: ReachConfig,
    allow_private: bool,
    announced: Vec<Multiaddr>,
    listening: Vec<Multiaddr>,
    mapped: Vec<Multiaddr>,
    /// Published without a test, as a private network has it.
    untested: Vec<Multiaddr>,
    gateway: Gateway,
    observations: Observations,
    /// The IPs that observers agree on, at most one of each family.
    seen: Vec<IpAddr>,
    standings: Vec<Standing>,
    /// Addresses that were published and are no longer candidates. They stay published until the next test,
    /// so that a change of address is one change of the record: others hear of it once a minute at most.
    leaving: Vec<Standing>,
    turns: AskSchedule,
    round: Option<Round>,
    /// No test before this moment, so that a starting node first finds its peers.
    first: Instant,
    due: Instant,
    /// The address of the interface towards the peers, where a router has to forward to.
    local_ip: Option<IpAddr>,
    checked_secs: Option<u64>,
    peers_asked: usize,
    testers: usize,
}

impl Prober {
    pub(crate) fn new(
        config: ReachConfig,
        allow_private: bool,
        announced: Vec<Multiaddr>,
        now: Instant,
    ) -> Self {
        let first = now + config.first;
        let gateway = if config.upnp { Gateway::Unknown } else { Gateway::NotAsked };
        let mut prober = Self {
            turns: AskSchedule::new(config.asker_interval),
            config,
            allow_private,
            announced,
            listening: Vec::new(),
            mapped: Vec::new(),
            untested: Vec::new(),
            gateway,
            observations: Observations::default(),
            seen: Vec::new(),
            standings: Vec::new(),
            leaving: Vec::new(),
            round: None,
            first,
            due: first,
            local_ip: None,
            checked_secs: None,
            peers_asked: 0,
            testers: 0,
        };
        prober.refresh(now);
        prober
    }

    pub(crate) fn set_listening(&mut self, listening: Vec<Multiaddr>, now: Instant) {
        self.listening = listening;
        self.refresh(now);
    }

    /// A peer, connected from `observer`, sees this node at `own`.
    pub(crate) fn observed(&mut self, peer: Address, own: IpAddr, observer: IpAddr, now: Instant) {
        self.observations.note(peer, own, observer);
        self.refresh(now);
    }

    /// The peer is no longer connected.
    pub(crate) fn forget(&mut self, peer: Address, now: Instant) {
        self.observations.forget(peer);
        self.refresh(now);
    }

    /// The router forwards this address to us, as it says.
    pub(crate) fn mapped(&mut self, address: Multiaddr, now: Instant) {
        self.gateway = addresses::ip(&address).map_or(self.gateway, Gateway::Maps);
        if !self.mapped.contains(&address) {
            self.mapped.push(address);
        }
        self.refresh(now);
    }

    pub(crate) fn unmapped(&mut self, address: &Multiaddr, now: Instant) {
        self.mapped.retain(|other| other != address);
        self.refresh(now);
    }

    pub(crate) fn set_gateway(&mut self, gateway: Gateway) {
        self.gateway = gateway;
    }

    /// Sets what is published besides the addresses that are tested.
    pub(crate) fn set_untested(&mut self, untested: Vec<Multiaddr>) {
        self.untested = untested;
    }

    pub(crate) fn set_local_ip(&mut self, ip: Option<IpAddr>) {
        self.local_ip = ip.or(self.local_ip);
    }

    /// Computes the candidates anew. What is known of those that stay is kept; a new one is tested soon.
    fn refresh(&mut self, now: Instant) {
        let agreed = |family: Family| {
            let previous = self.seen.iter().find(|ip| Family::of_ip(**ip) == family).copied();
            self.observations.agreed(family, previous, self.allow_private)
        };
        self.seen = Family::BOTH.into_iter().filter_map(agreed).collect();
        let known = OwnAddresses {
            announced: &self.announced,
            listening: &self.listening,
            mapped: &self.mapped,
            seen: &self.seen,
            allow_private: self.allow_private,
        };
        let mut changed = false;
        let mut old = std::mem::take(&mut self.standings);
        for candidate in known.candidates() {
            let same = old.iter().position(|standing| standing.candidate == candidate);
            changed |= same.is_none();
            self.standings
                .push(same.map_or_else(|| Standing::new(candidate), |index| old.swap_remove(index)));
        }
        let left = old.iter().any(|standing| standing.believed);
        self.leaving.extend(old.into_iter().filter(|standing| standing.believed));
        self.leaving.truncate(limits::REACH_ADDRESSES_MAX);
        if changed || left {
            self.due = self.due.min(now + self.config.debounce).max(self.first);
            self.round.iter_mut().for_each(|round| round.outdated = true);
        }
    }

    /// Returns the time of the next test, or of the end of the one under way; `None` while that depends on answers.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        match &self.round {
            None => Some(self.due),
            Some(round) => round.ends,
        }
    }

    /// Ends a test whose outcome is certain, when the others had their time. True when it did.
    pub(crate) fn end_if_decided(&mut self, now: Instant, now_secs: u64) -> bool {
        let is_over = |round: &mut Round| round.ends.is_some_and(|ends| ends <= now);
        let Some(round) = self.round.take_if(is_over) else { return false };
        self.conclude(&round, now, now_secs);
        true
    }

    pub(crate) fn is_testing(&self) -> bool {
        self.round.is_some()
    }

    /// True once somebody took part in a test.
    pub(crate) const fn is_tested(&self) -> bool {
        self.checked_secs.is_some()
    }

    /// Begins a test, if there is something to test and somebody to ask. [`Self::next_due`] says when to come
    /// back if not.
    pub(crate) fn begin(
        &mut self,
        testers: &[Tester],
        now: Instant,
        mut random: impl FnMut() -> Hash,
    ) -> Vec<Ask> {
        if self.round.is_some() {
            return Vec::new();
        }
        let salt = random();
        let chosen = match self.choose(testers, &salt, now) {
            Ok(chosen) => chosen,
            Err(free_at) => {
                self.due = free_at;
                return Vec::new();
            }
        };
        let mut known: Vec<IpAddr> = testers.iter().flat_map(|tester| tester.dialled.clone()).collect();
        known.sort_unstable();
        known.dedup();
        let asks = chosen.iter().filter_map(|(peer, families)| {
            let tester = testers.iter().find(|tester| tester.peer == *peer)?;
            Some(ReachabilityRequest::new(tester, &known, self.to_dial(families), random()))
        });
        let (asks, asked): (Vec<Ask>, Vec<ReachabilityRequest>) =
            asks.filter(|(_, asked)| !asked.dials.is_empty()).unzip();
        if asks.is_empty() {
            let is_nothing_to_test = self.to_dial(&Family::BOTH).is_empty();
            let wait = if is_nothing_to_test { NOTHING_TO_TEST_FOR } else { self.config.debounce };
            self.due = now + wait.max(PATIENCE_MIN);
            return asks;
        }
        asked.iter().for_each(|asked| self.turns.asked(asked.peer(), now));
        self.round = Some(Round::new(asked, known));
        asks
    }

    /// Whom to ask about which families.
    fn choose(
        &mut self,
        testers: &[Tester],
        salt: &Hash,
        now: Instant,
    ) -> Result<Vec<(Address, Vec<Family>)>, Instant> {
        let mut chosen: Vec<(Address, Vec<Family>)> = Vec::new();
        self.testers = 0;
        for family in Family::BOTH {
            let peers: Vec<(Address, IpAddr)> = testers
                .iter()
                .filter_map(|tester| {
                    Some((tester.peer, tester.outside(family, &self.seen, self.allow_private)?))
                })
                .collect();
            self.testers = self.testers.max(peers.len());
            if !self.to_dial(&[family]).is_empty() {
                for peer in self.turns.choose(&peers, self.config.peers, salt, now)? {
                    match chosen.iter_mut().find(|(other, _)| *other == peer) {
                        Some((_, families)) => families.push(family),
                        None => chosen.push((peer, vec![family])),
                    }
                }
            }
        }
        Ok(chosen)
    }

    /// Candidates of these families, as they are published and as they are dialled.
    fn to_dial(&self, families: &[Family]) -> Vec<(Multiaddr, Multiaddr)> {
        let of_families = |dialled: &Multiaddr| Family::of(dialled).is_some_and(|of| families.contains(&of));
        self.standings
            .iter()
            .filter_map(|standing| {
                let dialled = standing.candidate.dialled.clone().filter(of_families)?;
                Some((standing.candidate.address.clone(), dialled))
            })
            .collect()
    }

    /// The keys under which peers may come to dial back now.
    pub(crate) fn expected(&self) -> impl Iterator<Item = PeerId> {
        self.round.iter().flat_map(Round::keys)
    }

    /// Somebody connected to us. True when it is a dial-back; then it has done what it was for. `ways` are the
    /// remote ends of our connections to a peer.
    pub(crate) fn arrived(
        &mut self,
        key: &PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
        ways: impl FnOnce(Address) -> Vec<Multiaddr>,
    ) -> bool {
        let arrival = Arrival { local, remote, allow_private: self.allow_private };
        self.round.as_mut().is_some_and(|round| round.arrived(key, &arrival, ways))
    }

    /// Takes a peer's answer, or the reason that there is none. True when that ends the test.
    pub(crate) fn answered(
        &mut self,
        peer: Address,
        answer: Result<ReachResponse, String>,
        now: Instant,
        now_secs: u64,
    ) -> bool {
        let Some(round) = &mut self.round else { return false };
        if !round.answered(peer, answer) {
            if round.is_decided() {
                round.ends.get_or_insert(now + LATECOMERS_WITHIN);
            }
            return false;
        }
        if let Some(round) = self.round.take() {
            self.conclude(&round, now, now_secs);
        }
        true
    }

    fn conclude(&mut self, round: &Round, now: Instant, now_secs: u64) {
        for standing in &mut self.standings {
            let votes = round.votes(&standing.candidate.address);
            if !votes.is_empty() {
                standing.judge(votes);
            }
        }
        round.too_soon().for_each(|(peer, wait)| self.turns.too_soon(peer, wait, now));
        // Without anybody who took part, the last test is still the last one.
        if round.peers() > 0 {
            self.leaving.clear();
            self.peers_asked = round.peers();
            self.checked_secs = Some(now_secs);
        }
        let wait = if round.outdated || round.peers() == 0 {
            self.config.debounce.max(PATIENCE_MIN)
        } else if self.standings.iter().any(Standing::is_in_doubt) {
            self.config.retry.min(self.config.interval)
        } else {
            self.config.interval
        };
        self.due = now + wait;
    }

    /// The addresses under which this node believes it can be reached: those that were verified first.
    pub(crate) fn believed(&self) -> Vec<Multiaddr> {
        let (verified, others): (Vec<_>, Vec<_>) =
            self.published().partition(|standing| standing.reachable == Some(true));
        verified.into_iter().chain(others).map(|standing| standing.candidate.address.clone()).collect()
    }

    /// `record::FLAG_TCP_VERIFIED` and `FLAG_QUIC_VERIFIED`, as far as they hold.
    pub(crate) fn flags(&self) -> u32 {
        let verified = self.published().filter(|standing| standing.reachable == Some(true));
        verified.fold(0, |flags, standing| {
            flags
                | match Transport::of(&standing.candidate.address) {
                    Some((Transport::Tcp, _)) => FLAG_TCP_VERIFIED,
                    Some((Transport::Quic, _)) => FLAG_QUIC_VERIFIED,
                    None => 0,
                }
        })
    }

    /// Returns whether nobody was shown to connect to this node, although there was somebody to ask: over IPv4, or over
    /// IPv6 where it is not seen under an address of IPv4.
    pub(crate) fn is_unreachable(&self) -> bool {
        let was_asked = self.checked_secs.is_some() || self.standings.is_empty() && self.testers > 0;
        let is_reached =
            |family| self.published().any(|standing| Family::of(&standing.candidate.address) == Some(family));
        let has_v4 = self.seen.iter().any(|ip| Family::of_ip(*ip) == Family::V4);
        was_asked && !is_reached(Family::V4) && (has_v4 || !is_reached(Family::V6))
    }

    fn published(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().chain(&self.leaving).filter(|standing| standing.believed)
    }
}

#[cfg(test)]
mod tests;
