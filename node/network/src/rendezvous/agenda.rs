//! Decides when to visit the rendezvous, and what for. Pure; never gives up.
//!
//! A node that others can reach is listed there, and again before its entry runs out. One that has too little company asks
//! there, ever more rarely while that is in vain. Being listed comes first: of two nodes that begin together, and of which
//! neither finds the other before both are listed, the later one does.
//!
//! Nobody can test whether the first node of a network is reached. So one that has nobody after a question, and is seen at one
//! public address by strangers of the DHT, is listed there on trial: whoever finds the entry tests it.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, limits};
use libp2p::Multiaddr;

use super::{Errand, ErrandOutcome};
use crate::{
    RendezvousConfig, RendezvousEnd, RendezvousReport, RendezvousVisit, Transport, addresses, backoff::pause,
};

/// Peers with which a node asks nobody else for more: those whom it knows then bring it on.
pub(crate) const COMPANY_ENOUGH: usize = 3;
/// The longest pause between two questions of a node that has nobody, and of one that has somebody.
const ASK_ALONE_MAX: Duration = Duration::from_secs(10 * 60);
const ASK_MAX: Duration = Duration::from_secs(3600);
/// Entries are kept for a day or two; the pause is between a half of this and all of it.
const LISTED_AGAIN_AFTER: Duration = Duration::from_secs(12 * 3600);
const LIST_RETRY_MAX: Duration = Duration::from_secs(3600);
/// Between two entries whose addresses differ, each of which is a visit: doubling, so that a node which flips between two
/// networks is not there all the time.
const CHANGE_PAUSE: Duration = Duration::from_secs(60);
const CHANGE_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The node, as far as its visits depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// Peers of this network that are connected.
    pub(crate) peers: usize,
    /// The addresses in its record: those under which it is reached, as far as it knows.
    pub(crate) published: &'a [Multiaddr],
    pub(crate) listening: &'a [Multiaddr],
    /// True once peers have tested whether it is reached.
    pub(crate) is_tested: bool,
}

/// Decides about visits, one at a time, and remembers what came of them.
#[derive(Debug)]
pub(crate) struct Agenda {
    own: Address,
    retry: Duration,
    is_out: bool,
    ask_due: Instant,
    /// Questions since there was company enough.
    questions: u32,
    list_due: Instant,
    list_failures: u32,
    /// The addresses of the newest entry, when another may follow, and how many did since an entry was made for its age alone.
    listed: Vec<Multiaddr>,
    change_due: Instant,
    changes: u32,
    /// The IPs at which strangers of the DHT saw this node last, and whether they named nobody.
    seen: Vec<IpAddr>,
    is_first: bool,
    report: RendezvousReport,
}

impl Agenda {
    pub(crate) fn new(own: Address, config: &RendezvousConfig, now: Instant) -> Self {
        let first = now + config.first;
        Self {
            own,
            retry: config.retry,
            is_out: false,
            ask_due: first,
            questions: 0,
            list_due: first,
            list_failures: 0,
            listed: Vec::new(),
            change_due: first,
            changes: 0,
            seen: Vec::new(),
            is_first: false,
            report: RendezvousReport { is_on: true, ..RendezvousReport::default() },
        }
    }

    /// The visit to make now, if any. [`Self::ended`] makes the next one possible.
    pub(crate) fn next(&mut self, node: &Circumstances<'_>, now: Instant) -> Option<Errand> {
        let is_lonely = node.peers < COMPANY_ENOUGH;
        self.report.is_needed = is_lonely;
        if !is_lonely {
            self.questions = 0;
            self.ask_due = now + self.retry;
        }
        if self.is_out {
            return None;
        }
        let addresses = self.to_list(node, now);
        let is_news = addresses != self.listed && self.change_due <= now;
        if !addresses.is_empty() && (self.list_due <= now || is_news) {
            self.is_out = true;
            self.note_change(&addresses, is_news, now);
            return Some(Errand::List { addresses });
        }
        (is_lonely && self.ask_due <= now).then(|| {
            self.is_out = true;
            Errand::Ask { round: self.questions }
        })
    }

    fn note_change(&mut self, addresses: &[Multiaddr], is_news: bool, now: Instant) {
        let changes = if is_news { self.changes } else { 0 };
        self.change_due = now + CHANGE_PAUSE.saturating_mul(1 << changes.min(16)).min(CHANGE_PAUSE_MAX);
        self.changes = changes.saturating_add(1);
        self.listed = addresses.to_vec();
    }

    /// Notes what came of a visit, with the peers that the node has by now.
    pub(crate) fn ended(&mut self, outcome: &ErrandOutcome, peers: usize, now: Instant, now_secs: u64) {
        self.is_out = false;
        let visit = |end: RendezvousEnd| Some(RendezvousVisit { ended_secs: now_secs, end });
        match outcome {
            ErrandOutcome::Asked { end, seen, .. } => {
                let longest = if peers == 0 { ASK_ALONE_MAX } else { ASK_MAX };
                self.ask_due = now + pause(self.own, self.questions, self.retry, longest);
                self.questions = self.questions.saturating_add(1);
                self.seen.clone_from(seen);
                self.is_first = *end == RendezvousEnd::Found { nodes: 0 };
                self.report.asked = visit(end.clone());
            }
            ErrandOutcome::Listed { end } => {
                let is_good = end.is_good();
                self.list_due = now
                    + if is_good {
                        pause(self.own, 0, LISTED_AGAIN_AFTER, LISTED_AGAIN_AFTER)
                    } else {
                        pause(self.own, self.list_failures, self.retry, LIST_RETRY_MAX)
                    };
                self.list_failures = if is_good { 0 } else { self.list_failures.saturating_add(1) };
                // Somebody may have been listed meanwhile who did not find this node.
                if is_good && peers == 0 {
                    self.ask_due = now;
                }
                self.report.listed = visit(end.clone());
            }
        }
    }

    pub(crate) const fn report(&self) -> &RendezvousReport {
        &self.report
    }

    /// The addresses to be listed: what is published or, on trial, where strangers see the node. Who is named may be there:
    /// the trial waits until they had their time.
    fn to_list(&self, node: &Circumstances<'_>, now: Instant) -> Vec<Multiaddr> {
        let is_in_vain = self.is_first || self.ask_due <= now;
        if node.published.is_empty() && node.peers == 0 && !node.is_tested && is_in_vain {
            return supposed(node.listening, &self.seen);
        }
        node.published.to_vec()
    }
}

/// Each of these IPs with the ports of its family that this node listens on.
fn supposed(listening: &[Multiaddr], seen: &[IpAddr]) -> Vec<Multiaddr> {
    let at = |ip: IpAddr| {
        let of_family = move |address: &&Multiaddr| {
            addresses::ip(address).is_some_and(|own| own.is_ipv4() == ip.is_ipv4())
        };
        let is_one_port = |address: &&Multiaddr| Transport::of(address).is_some();
        let here = listening.iter().filter(of_family).filter(is_one_port);
        here.filter_map(move |address| address.replace(0, |_| Some(ip.into())))
    };
    let all: BTreeSet<Multiaddr> = seen.iter().copied().flat_map(at).collect();
    all.into_iter().take(limits::RECORD_ADDRESSES_MAX).collect()
}

#[cfg(test)]
mod tests;
