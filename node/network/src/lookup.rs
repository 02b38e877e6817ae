//! A look-up that tells what it does, step by step, for whoever wants to know why a wallet is not reached.
//!
//! It takes the same way as a call does, in the same order, but looks everywhere, whatever it knows already
//! and however lately it looked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_protocol::{Address, NodeRecord, Verified};

use crate::{NotStarted, addresses, handle::Inner};

/// What a look-up found, and how.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The newest record of the wallet, which may say that its node has left.
    pub record: Option<Verified<NodeRecord>>,
    /// Where that record says the node is, as multiaddresses.
    pub addresses: Vec<String>,
    pub steps: Vec<LookupStep>,
}

impl Lookup {
    fn new(record: Option<Verified<NodeRecord>>, steps: Vec<LookupStep>) -> Self {
        let of = |record: &Verified<NodeRecord>| addresses::of_record(record, true);
        let addresses = record.as_ref().map(of).unwrap_or_default();
        Self { record, addresses: addresses.iter().map(ToString::to_string).collect(), steps }
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
    /// Whether this step brought the look-up further.
    pub helped: bool,
}

/// What the two sources of a search had to say.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    pub(crate) directory: Source,
    pub(crate) peers: Source,
}

/// Answers of one source.
#[derive(Debug)]
pub(crate) struct Source {
    started: Instant,
    answers: u32,
    newest: Option<u64>,
    first: Option<Duration>,
    last: Duration,
}

impl Default for Source {
    fn default() -> Self {
        Self { started: Instant::now(), answers: 0, newest: None, first: None, last: Duration::ZERO }
    }
}

impl Source {
    /// Notes one answer: a valid record, or one that was none or worth nothing.
    pub(crate) fn note(&mut self, record: Option<&Verified<NodeRecord>>) {
        self.answers += 1;
        self.last = self.started.elapsed();
        if let Some(record) = record {
            self.newest = self.newest.max(Some(record.seq));
            self.first.get_or_insert(self.last);
        }
    }

    fn step(&self, name: &'static str) -> LookupStep {
        let answers = match self.answers {
            1 => "1 answer".to_owned(),
            n => format!("{n} answers"),
        };
        let outcome = match (self.newest, self.first) {
            (Some(seq), Some(first)) => {
                format!("record {seq} in {answers}, the first after {} ms", first.as_millis())
            }
            _ => format!("nothing in {answers}"),
        };
        LookupStep { name, took: self.last, outcome, helped: self.newest.is_some() }
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
        step("local records", started, held.is_some(), describe(held.as_ref()));
        if is_own {
            return Lookup::new(held, steps);
        }

        let mut seen = Sightings::default();
        let searched = self.search(owner, &mut seen).await;
        steps.extend([seen.directory.step("directory"), seen.peers.step("peers")]);
        let found = searched.map_or(None, |(found, _)| found);
        found.iter().for_each(|record| self.remember(record));
        let record = [held, found].into_iter().flatten().max_by_key(|record| record.seq);

        let started = Instant::now();
        let (helped, outcome) = match &record {
            _ if is_connected => (true, "connected already".to_owned()),
            None => (false, "nowhere to dial".to_owned()),
            Some(record) if record.check_time(crate::now_secs()).is_err() => {
                (false, NotStarted::Offline(owner).to_string())
            }
            Some(record) => match self.connect(record).await {
                Ok(()) => (true, "connected".to_owned()),
                Err(error) => (false, error.to_string()),
            },
        };
        steps.push(LookupStep { name: "dial", took: started.elapsed(), outcome, helped });
        Lookup::new(record, steps)
    }
}

fn describe(record: Option<&Verified<NodeRecord>>) -> String {
    match record {
        None => "nothing".to_owned(),
        Some(record) => match record.check_time(crate::now_secs()) {
            Ok(()) => format!("record {} with {} addresses", record.seq, record.addresses.len()),
            Err(error) => format!("record {}, of no use any more: {error}", record.seq),
        },
    }
}
