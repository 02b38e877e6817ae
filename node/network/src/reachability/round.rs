//! One test: who was asked to dial what, who came through, and what they say. Pure.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{
    Address, Hash, limits,
    reach::{BY_ANOTHER, DialBack, ReachRequest, ReachResponse, dial_back_key},
};
use libp2p::{Multiaddr, PeerId};

use super::{
    place,
    testers::Tester,
    verdict::{self, Vote},
};
use crate::{addresses, identity};

/// A peer to be asked, and what.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) peer: Address,
    pub(crate) request: ReachRequest,
}

/// A test under way.
#[derive(Debug)]
pub(super) struct Round {
    asked: Vec<ReachabilityRequest>,
    /// IPs that this node has written to.
    known: Vec<IpAddr>,
    /// Something changed meanwhile, so that another test follows at once.
    pub(super) outdated: bool,
    /// The end of the wait for those who cannot change the outcome.
    pub(super) ends: Option<Instant>,
}

/// One peer's part in a test.
#[derive(Debug)]
pub(super) struct ReachabilityRequest {
    peer: Address,
    /// True if this node has written to it, so that a router may let it in for that.
    is_known: bool,
    pub(super) dials: Vec<ProbeDial>,
    answer: Option<Result<ReachResponse, String>>,
}

#[derive(Debug)]
pub(super) struct ProbeDial {
    /// The candidate, as it is published, and as the peer was told to dial it.
    address: Multiaddr,
    dialled: Multiaddr,
    /// The id of the peer on this dial.
    key: PeerId,
    arrival: Option<Vote>,
    /// The same of a neighbour of the peer.
    key_of_another: PeerId,
    arrival_of_another: Option<Vote>,
}

/// A connection that came in under the key of a dial.
#[derive(Debug)]
pub(super) struct Arrival<'a> {
    pub(super) local: &'a Multiaddr,
    pub(super) remote: &'a Multiaddr,
    pub(super) allow_private: bool,
}

impl ReachabilityRequest {
    /// Asks `peer`, which is at one of the `known` IPs or not, to dial these candidates, each as it is published and
    /// as it is dialled.
    pub(super) fn new(
        tester: &Tester,
        known: &[IpAddr],
        to_dial: Vec<(Multiaddr, Multiaddr)>,
        nonce: Hash,
    ) -> (Ask, Self) {
        let key_of = |index| Some(identity::peer_id(&dial_back_key(&nonce, index)?.public_key()));
        let dials: Vec<ProbeDial> = (0..BY_ANOTHER)
            .zip(to_dial)
            .map_while(|(index, (address, dialled))| {
                Some(ProbeDial {
                    address,
                    dialled,
                    key: key_of(index)?,
                    arrival: None,
                    key_of_another: key_of(index + BY_ANOTHER)?,
                    arrival_of_another: None,
                })
            })
            .collect();
        let addresses = dials.iter().map(|dial| dial.dialled.to_vec().into()).collect();
        let named =
            known.iter().take(limits::REACH_KNOWN_MAX).map(|ip| place::ip_bytes(*ip).into()).collect();
        let request = ReachRequest { nonce, addresses, known: Some(named), on_behalf_of: None };
        let is_known = tester.ips.iter().any(|ip| known.contains(ip));
        (Ask { peer: tester.peer, request }, Self { peer: tester.peer, is_known, dials, answer: None })
    }

    pub(super) const fn peer(&self) -> Address {
        self.peer
    }

    /// For how long the peer does not want to be asked again: it dialled nothing.
    fn too_soon(&self) -> Option<Duration> {
        match self.answer {
            Some(Ok(ReachResponse::TooSoon { retry_after_secs })) => {
                Some(Duration::from_secs(retry_after_secs))
            }
            _ => None,
        }
    }

    /// Returns what the peer found. One that was asked too soon took no part.
    fn vote(&self, address: &Multiaddr) -> Option<(Address, Vote)> {
        if self.too_soon().is_some() {
            return None;
        }
        let index = self.dials.iter().position(|dial| dial.address == *address)?;
        let unanswered = Err("it did not answer".to_owned());
        let answer = self.answer.as_ref().unwrap_or(&unanswered);
        let dial = &self.dials[index];
        if dial.arrival_of_another == Some(Vote::Arrived) {
            return Some((self.peer, Vote::Arrived));
        }
        let vote = dial.arrival.clone().unwrap_or_else(|| Vote::without_arrival(answer, index));
        if vote != Vote::Arrived || !self.is_known {
            return Some((self.peer, vote));
        }
        // It may have come in only because we had written to it, and then its neighbour does not.
        let by_another = match answer {
            Ok(ReachResponse::Dialled(_, Some(ends))) => ends.get(index),
            _ => None,
        };
        let vote = match by_another {
            Some(DialBack::Failed(why)) => Vote::kept_out(why),
            _ => Vote::ArrivedKnown,
        };
        Some((self.peer, vote))
    }
}

impl Round {
    pub(super) const fn new(asked: Vec<ReachabilityRequest>, known: Vec<IpAddr>) -> Self {
        Self { asked, known, outdated: false, ends: None }
    }

    /// Returns the number of peers that took part.
    pub(super) fn peers(&self) -> usize {
        self.asked.len() - self.too_soon().count()
    }

    /// Lists the peers that did not take part, and for how long they do not want to be asked again.
    pub(super) fn too_soon(&self) -> impl Iterator<Item = (Address, Duration)> {
        self.asked.iter().filter_map(|asked| Some((asked.peer, asked.too_soon()?)))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = PeerId> {
        let dials = self.asked.iter().flat_map(|asked| &asked.dials);
        dials.flat_map(|dial| [dial.key, dial.key_of_another])
    }

    /// Notes an arrival under `key`; false when nobody was given this key. `ways` are the remote ends of our
    /// connections to a peer.
    pub(super) fn arrived(
        &mut self,
        key: &PeerId,
        arrival: &Arrival<'_>,
        ways: impl FnOnce(Address) -> Vec<Multiaddr>,
    ) -> bool {
        for ReachabilityRequest { peer, dials, .. } in &mut self.asked {
            if let Some(dial) = dials.iter_mut().find(|dial| dial.key == *key) {
                dial.arrival.get_or_insert_with(|| arrival.vote(&dial.dialled, &ways(*peer)));
                return true;
            }
            if let Some(dial) = dials.iter_mut().find(|dial| dial.key_of_another == *key) {
                let is_known = addresses::ip(arrival.remote).is_some_and(|ip| self.known.contains(&ip));
                if !is_known {
                    dial.arrival_of_another.get_or_insert_with(|| arrival.vote(&dial.dialled, &[]));
                }
                return true;
            }
        }
        false
    }

    /// Takes a peer's answer; true when it was the last that is waited for.
    pub(super) fn answered(&mut self, peer: Address, answer: Result<ReachResponse, String>) -> bool {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.peer == peer) {
            asked.answer.get_or_insert(answer);
        }
        self.asked.iter().all(|asked| asked.answer.is_some())
    }

    /// Returns whether the outcome is certain, whatever the missing answers are: the line to one of these peers may be
    /// dead, as after a change of address, and waiting for it takes longer than the whole test.
    pub(super) fn is_decided(&self) -> bool {
        let mut dials = self.asked.iter().flat_map(|asked| &asked.dials);
        dials.all(|dial| {
            let of_address =
                |asked: &&ReachabilityRequest| asked.dials.iter().any(|other| other.address == dial.address);
            let (answered, missing): (Vec<_>, Vec<_>) =
                self.asked.iter().filter(of_address).partition(|asked| asked.answer.is_some());
            let votes: Vec<Vote> =
                answered.iter().filter_map(|asked| asked.vote(&dial.address)).map(|(_, vote)| vote).collect();
            verdict::is_certain(&votes, missing.len())
        })
    }

    /// Lists the votes of everybody who was asked about a candidate.
    pub(super) fn votes(&self, address: &Multiaddr) -> Vec<(Address, Vote)> {
        self.asked.iter().filter_map(|asked| asked.vote(address)).collect()
    }
}

impl Arrival<'_> {
    /// It proves nothing when it came over a way that our own packets to that peer had opened in our router,
    /// from inside our LAN, or to something else than the peer was told to dial.
    fn vote(&self, dialled: &Multiaddr, ways: &[Multiaddr]) -> Vote {
        let is_inside = !self.allow_private && !addresses::ip(self.remote).is_some_and(addresses::is_global);
        if ways.iter().any(|way| addresses::without_peer(way) == *self.remote) {
            Vote::Undecided("it came over a path that our own connection had opened".to_owned())
        } else if is_inside {
            Vote::Undecided("it came from inside our own network".to_owned())
        } else if !place::are_alike(self.local, dialled) {
            Vote::Undecided("it came over another transport than it was asked to test".to_owned())
        } else {
            Vote::Arrived
        }
    }
}
