//! The side that begins: compares, fetches what it lacks, offers what the other lacks.

use std::collections::HashSet;

use farthing_protocol::{
    limits,
    sync::{ItemName, SyncMessage},
};

use super::{
    SESSION_MESSAGES_MAX, SESSION_SECS_MAX, SyncError,
    compare::{Comparison, Difference},
    judge, name_of, pack,
};
use crate::{
    catalog::Catalog,
    verdict::{Neighbour, Source},
};

/// The next step of a session.
#[derive(Debug)]
pub enum Step {
    /// Send this and bring back the answer.
    Send(SyncMessage),
    /// Both have what they could get; close the stream.
    Done(Summary),
}

/// The result of a session, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages of comparison sent.
    pub rounds: u32,
    /// Versions that only the peer had, and how many of them were new here.
    pub lacked: usize,
    pub stored: usize,
    /// Versions that only this side had, and how many of them the peer took.
    pub offered: usize,
    pub given: usize,
}

/// A reconciliation that this node began.
#[derive(Debug)]
pub struct Initiator {
    catalog: Catalog,
    peer: Neighbour,
    began_secs: u64,
    messages: u32,
    phase: Phase,
    need: Vec<ItemName>,
    have: Vec<ItemName>,
    summary: Summary,
}

#[derive(Debug)]
enum Phase {
    Comparing(Box<Comparison>),
    Fetching(HashSet<ItemName>),
    Offering(HashSet<ItemName>),
}

impl Catalog {
    /// Begins to reconcile with `peer`: the session and its first message.
    ///
    /// # Errors
    /// [`SyncError`] when the catalog cannot be read.
    pub fn initiator(
        &self,
        peer: impl Into<Neighbour>,
        now_secs: u64,
    ) -> Result<(Initiator, SyncMessage), SyncError> {
        let mut comparison = Comparison::new(self.snapshot()?)?;
        let first = SyncMessage::Compare(comparison.begin()?.into());
        let initiator = Initiator {
            catalog: self.clone(),
            peer: peer.into(),
            began_secs: now_secs,
            messages: 1,
            phase: Phase::Comparing(Box::new(comparison)),
            need: Vec::new(),
            have: Vec::new(),
            summary: Summary { rounds: 1, ..Summary::default() },
        };
        Ok((initiator, first))
    }
}

impl Initiator {
    /// Versions that were new here until now.
    pub const fn stored(&self) -> usize {
        self.summary.stored
    }

    /// Takes the peer's answer.
    ///
    /// # Errors
    /// [`SyncError`] ends the session; what was stored stays.
    pub async fn on(&mut self, answer: SyncMessage, now_secs: u64) -> Result<Step, SyncError> {
        self.messages += 1;
        if self.messages > SESSION_MESSAGES_MAX || now_secs.saturating_sub(self.began_secs) > SESSION_SECS_MAX
        {
            return Err(SyncError::TooLong);
        }
        match (&mut self.phase, answer) {
            (_, SyncMessage::Refused(reason)) => Err(SyncError::Refused(reason.chars().take(200).collect())),
            (Phase::Comparing(_), SyncMessage::Compare(message)) => {
                let (difference, next) = self.learn(message.into()).await?;
                self.have.extend(difference.have);
                self.need.extend(difference.need);
                // More than a catalog can hold is not worth knowing, of either side.
                let listings_max = self.catalog.inner.shared.options.limits.listings_max;
                self.need.truncate(listings_max);
                self.have.truncate(listings_max);
                if let Some(next) = next {
                    self.summary.rounds += 1;
                    return Ok(Step::Send(SyncMessage::Compare(next.into())));
                }
                self.summary.lacked = self.need.len();
                self.catalog.wanted(&mut self.need, now_secs);
                Ok(self.next())
            }
            (Phase::Fetching(_), SyncMessage::Listings(packed)) => self.take(&packed, now_secs).await,
            (Phase::Offering(offered), SyncMessage::Fetch(names)) => {
                if names.is_empty() || !names.iter().all(|name| offered.contains(name)) {
                    return Err(SyncError::Unexpected("a request for what was not offered"));
                }
                self.catalog.hand_out(self.peer, names, now_secs).await.map(Step::Send)
            }
            (Phase::Offering(_), SyncMessage::Done) => Ok(self.next()),
            (_, other) => Err(SyncError::Unexpected(name_of(&other))),
        }
    }

    /// Works out what the peer's part of the comparison tells, away from the tasks that serve calls.
    async fn learn(&mut self, message: Vec<u8>) -> Result<(Difference, Option<Vec<u8>>), SyncError> {
        let phase = std::mem::replace(&mut self.phase, Phase::Fetching(HashSet::new()));
        let Phase::Comparing(mut comparison) = phase else {
            return Err(SyncError::Unexpected("a comparison"));
        };
        let learning = move |_: &Catalog| {
            let learned = comparison.learn(&message);
            (comparison, learned)
        };
        let (comparison, learned) = self.catalog.at_leisure(learning).await?;
        self.phase = Phase::Comparing(comparison);
        learned
    }

    /// Fetches what is still lacking, then offers what is left to give.
    fn next(&mut self) -> Step {
        if !self.need.is_empty() {
            let names = self.need.split_off(self.need.len().saturating_sub(limits::SYNC_ITEMS_MAX));
            self.phase = Phase::Fetching(names.iter().copied().collect());
            return Step::Send(SyncMessage::Fetch(names));
        }
        let mut names = self.have.split_off(self.have.len().saturating_sub(limits::SYNC_ITEMS_MAX));
        {
            // What was fetched may have replaced what was here.
            let listings = self.catalog.inner.shared.listings.read();
            names.retain(|name| listings.find_item(name).is_some());
        }
        if names.is_empty() {
            return if self.have.is_empty() { Step::Done(self.summary) } else { self.next() };
        }
        self.summary.offered += names.len();
        self.phase = Phase::Offering(names.iter().copied().collect());
        Step::Send(SyncMessage::Offer(names))
    }

    async fn take(&mut self, packed: &[u8], now_secs: u64) -> Result<Step, SyncError> {
        let Phase::Fetching(asked) = &mut self.phase else { return Err(SyncError::Unexpected("listings")) };
        let listings = pack::unpack_asked(packed, asked)?;
        let rest: Vec<ItemName> = asked.iter().copied().collect();
        let verdicts = self.catalog.offer(listings, Source::Fetched(self.peer), now_secs).await;
        let taken = judge(&verdicts)?;
        self.summary.stored += taken.stored;
        if taken.over_budget {
            self.need.clear();
            return Ok(self.next());
        }
        if rest.is_empty() { Ok(self.next()) } else { Ok(Step::Send(SyncMessage::Fetch(rest))) }
    }
}
