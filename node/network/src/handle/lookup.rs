//! A look-up that tells what it does, step by step, for whoever wants to know why a wallet is not reached.
//!
//! It takes the same way as a call does, in the same order, but looks everywhere, whatever it knows already
//! and however lately it looked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, NodeRecord, Verified};

use super::{Inner, Purpose};
use crate::{NotStarted, addresses, command::Turnout};

const DIRECTORY: &str = "directory";

/// The result of a look-up, and the steps to it.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The newest record of the wallet, which may say that its node has left.
    pub record: Option<Verified<NodeRecord>>,
    /// The addresses of the node in that record, as multiaddresses.
    pub addresses: Vec<String>,
    /// The reason why that record is of no use; `None` if it can be used.
    pub amiss: Option<&'static str>,
    /// True if the wallet's node is connected by now, or is this node.
    pub is_connected: bool,
    pub steps: Vec<LookupStep>,
}

impl Lookup {
    fn new(record: Option<Verified<NodeRecord>>, is_connected: bool, steps: Vec<LookupStep>) -> Self {
        let of = |record: &Verified<NodeRecord>| addresses::of_record(record, true);
        let addresses = record.as_ref().map(of).unwrap_or_default();
        Self {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            amiss: record.as_ref().and_then(|record| amiss(record, crate::now_secs())),
            record,
            is_connected,
            steps,
        }
    }
}

/// One place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupStep {
    /// `self`, `connected`, `local records`, `directory`, `peers`, `dial`
    pub name: &'static str,
    pub took: Duration,
    /// In words; whatever of it strangers wrote is bounded.
    pub outcome: String,
    /// True if this step brought the look-up further.
    pub helped: bool,
}

/// The answers of the two sources of a search.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    pub(crate) directory: SourceAnswers,
    pub(crate) peers: SourceAnswers,
    /// Of the directory, once its search has ended.
    pub(crate) directory_turnout: Option<Turnout>,
    pub(crate) peers_turnout: Turnout,
}

impl Sightings {
    /// Tells whether a record that was not found is nowhere: those who were asked answered, or most of them. Silence says
    /// nothing.
    pub(crate) fn is_absence(&self) -> bool {
        let of_peers = self.peers_turnout;
        self.directory_turnout.is_some_and(|directory| {
            directory.answered + of_peers.answered > directory.silent + of_peers.silent
        })
    }
}

#[derive(Debug)]
pub(crate) struct SourceAnswers {
    started: Instant,
    answers: u32,
    newest: Option<u64>,
    /// One of the records may be used.
    is_useful: bool,
    first: Option<Duration>,
    last: Duration,
}

impl Default for SourceAnswers {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            answers: 0,
            newest: None,
            is_useful: false,
            first: None,
            last: Duration::ZERO,
        }
    }
}

impl SourceAnswers {
    /// Notes one answer: a valid record, or one that was none or worth nothing.
    pub(crate) fn note(&mut self, record: Option<&Verified<NodeRecord>>) {
        self.answers += 1;
        self.last = self.started.elapsed();
        if let Some(record) = record {
            self.newest = self.newest.max(Some(record.seq));
            self.is_useful |= amiss(record, crate::now_secs()).is_none();
            self.first.get_or_insert(self.last);
        }
    }

    /// `searched` is how long the whole search took.
    fn step(&self, name: &'static str, searched: Duration) -> LookupStep {
        // The directory counts no answers: what it brings may be from this node's own part of it, and whoever of it has
        // nothing is not heard of.
        let answers = match (name, self.answers) {
            (DIRECTORY, _) => String::new(),
            (_, 1) => " in 1 answer".to_owned(),
            (_, n) => format!(" in {n} answers"),
        };
        let outcome = match (self.newest, self.first) {
            (Some(seq), Some(first)) => {
                let worth = if self.is_useful { "" } else { ", no longer of use" };
                format!("record {seq}{worth}{answers}, the first after {} ms", first.as_millis())
            }
            _ => format!("nothing{answers}"),
        };
        let took = if self.answers == 0 { searched } else { self.last };
        LookupStep { name, took, outcome, helped: self.is_useful }
    }
}

impl Inner {
    pub(crate) async fn lookup(self: &Arc<Self>, owner: Address) -> Lookup {
        let mut steps = Vec::new();
        let mut step = |name, started: Instant, helped, outcome: String| {
            steps.push(LookupStep { name, took: started.elapsed(), outcome, helped });
        };
        let started = Instant::now();
        let is_own = owner == self.own;
        step("self", started, is_own, if is_own { "this node" } else { "another wallet" }.to_owned());

        let started = Instant::now();
        let connected = self.peers().await.into_iter().find(|peer| peer.address == owner);
        let at = connected.as_ref().map(|peer| format!("connected at {}", peer.addresses.join(", ")));
        let is_connected = connected.is_some();
        step("connected", started, is_connected, at.unwrap_or_else(|| "not connected".to_owned()));

        let started = Instant::now();
        let held = self.records.get(owner);
        let is_useful = held.as_ref().is_some_and(|record| amiss(record, crate::now_secs()).is_none());
        step("local records", started, is_useful, describe(held.as_ref()));
        if is_own {
            return Lookup::new(held, true, steps);
        }

        let mut seen = Sightings::default();
        let started = Instant::now();
        let searched = self.search(owner, &mut seen).await;
        let took = started.elapsed();
        steps.extend([seen.directory.step(DIRECTORY, took), seen.peers.step("peers", took)]);
        let found = searched.ok().flatten();
        let record = [held, found].into_iter().flatten().max_by_key(|record| record.seq);

        let started = Instant::now();
        let (helped, outcome) = match &record {
            _ if is_connected => (true, "connected already".to_owned()),
            None => (false, "nowhere to dial".to_owned()),
            Some(record) if record.check_time(crate::now_secs()).is_err() => {
                (false, NotStarted::Offline(owner).to_string())
            }
            Some(record) => match self.connect(record, Purpose::Call).await {
                Ok(()) => (true, "connected".to_owned()),
                Err(error) => (false, error.to_string()),
            },
        };
        steps.push(LookupStep { name: "dial", took: started.elapsed(), outcome, helped });
        Lookup::new(record, helped, steps)
    }
}

/// Returns the reason that a record is of no use, in words that follow `it`.
fn amiss(record: &NodeRecord, now_secs: u64) -> Option<&'static str> {
    if record.check_time(now_secs).is_ok() {
        None
    } else if record.issued_secs > now_secs {
        Some("is dated in the future; check both nodes' clocks")
    } else if record.expires_secs <= record.issued_secs {
        Some("says that its node has left")
    } else {
        Some("has expired")
    }
}

fn describe(record: Option<&Verified<NodeRecord>>) -> String {
    match record {
        None => "nothing".to_owned(),
        Some(record) => match (amiss(record, crate::now_secs()), record.addresses.len()) {
            (None, 1) => format!("record {} with 1 address", record.seq),
            (None, n) => format!("record {} with {n} addresses", record.seq),
            (Some(amiss), _) => format!("record {}, which {amiss}", record.seq),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::testing::record;

    #[test]
    fn silence_is_no_absence() {
        let of = |answered, silent| Turnout { answered, silent };
        for (directory, peers, is_absence) in [
            (Some(of(20, 6)), of(3, 0), true),
            (Some(of(2, 18)), of(3, 0), false),
            (Some(of(0, 0)), of(1, 0), true),
            (Some(of(0, 0)), of(0, 0), false),
            (Some(of(0, 20)), of(0, 3), false),
            (None, of(3, 0), false),
        ] {
            let seen =
                Sightings { directory_turnout: directory, peers_turnout: peers, ..Sightings::default() };
            assert_eq!(seen.is_absence(), is_absence, "{directory:?} {peers:?}");
        }
    }

    #[test]
    fn a_record_of_no_use_says_why() {
        let now_secs = 10_000;
        for (issued_secs, expires_secs, words) in [
            (now_secs, now_secs + 1, None),
            (now_secs + 300, now_secs + 3600, None),
            (now_secs + 301, now_secs + 3600, Some("dated in the future")),
            (now_secs - 10, now_secs - 10, Some("has left")),
            (now_secs - 10, now_secs, Some("has expired")),
        ] {
            let told = amiss(&record(1, 1, issued_secs, expires_secs - issued_secs), now_secs);
            assert_eq!(told.is_some(), words.is_some(), "{told:?}");
            assert!(told.is_none_or(|told| words.is_some_and(|words| told.contains(words))), "{told:?}");
        }
    }
}
