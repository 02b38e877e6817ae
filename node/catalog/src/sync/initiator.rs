//! The side that begins: compares, fetches what it lacks, offers what the other lacks.

use std::collections::HashSet;

use farthing_protocol::{
    limits,
    reconciliation::{Comparison, Difference, ROUNDS_MAX},
    shards::Shards,
    sync::{ItemName, SyncMessage},
};

use super::{
    RECENT_SECS, SESSION_MESSAGES_MAX, SESSION_SECS_MAX, Side, SyncError, fetch_list::FetchList, name_of,
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
    /// False when only what was updated lately is compared.
    is_whole: bool,
    need: Vec<ItemName>,
    have: Vec<ItemName>,
    wanted: FetchList,
    summary: Summary,
}

#[derive(Debug)]
enum Phase {
    Introducing,
    Comparing(Comparison),
    Fetching,
    Offering {
        names: HashSet<ItemName>,
        /// True once the peer asked for some of them.
        is_asked: bool,
    },
}

impl Catalog {
    /// Begins to reconcile with `peer`: the session and its first message. If the peer `knows_shards`, both compare
    /// those that both keep.
    pub async fn initiator(
        &self,
        peer: impl Into<Neighbour>,
        knows_shards: bool,
        now_secs: u64,
    ) -> Result<(Initiator, SyncMessage), SyncError> {
        let mut initiator = Initiator::new(self.clone(), peer.into(), now_secs);
        let first = match (self.takes_whole(Side::Own, now_secs), knows_shards) {
            (true, true) => SyncMessage::Shards(self.shards().bits()),
            (true, false) => initiator.begin(Shards::ALL).await?,
            (false, _) => initiator.begin_recent(now_secs).await?,
        };
        Ok((initiator, first))
    }
}

impl Initiator {
    fn new(catalog: Catalog, peer: Neighbour, now_secs: u64) -> Self {
        Self {
            catalog,
            peer,
            began_secs: now_secs,
            messages: 1,
            phase: Phase::Introducing,
            is_whole: true,
            need: Vec::new(),
            have: Vec::new(),
            wanted: FetchList::new(),
            summary: Summary::default(),
        }
    }

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
            (Phase::Introducing, SyncMessage::Shards(bits)) => {
                let common = self.catalog.shards().common(Shards::from_bits(bits));
                if common.bits() == 0 {
                    return Ok(Step::Done(self.summary));
                }
                self.begin(common).await.map(Step::Send)
            }
            (Phase::Comparing(_), SyncMessage::Compare(message)) => {
                let (difference, next) = self.learn(message.into()).await?;
                self.have.extend(difference.only_here.iter().map(ItemName::of));
                self.need.extend(difference.only_there.iter().map(ItemName::of));
                // More than a catalog can hold is not worth knowing, of either side.
                let listings_max = self.catalog.inner.shared.options.limits.listings_max;
                self.need.truncate(listings_max);
                self.have.truncate(listings_max);
                if let Some(next) = next {
                    if self.summary.rounds < ROUNDS_MAX {
                        self.summary.rounds += 1;
                        return Ok(Step::Send(SyncMessage::Compare(next.into())));
                    }
                    // Two catalogs that differ in hundreds of thousands of listings need more rounds than a session has. What is
                    // known by now is exchanged; the next session passes over it, because both agree there.
                    self.is_whole = false;
                }
                self.summary.lacked = self.need.len();
                self.choose(now_secs).await?;
                Ok(self.next())
            }
            (Phase::Fetching, SyncMessage::Listings(packed)) => self.take(&packed, now_secs).await,
            (Phase::Offering { names: offered, is_asked }, SyncMessage::Fetch(names)) => {
                if names.is_empty() || !names.iter().all(|name| offered.contains(name)) {
                    return Err(SyncError::Unexpected("a request for something not offered"));
                }
                *is_asked = true;
                self.catalog.hand_out(self.peer, names, now_secs).await.map(Step::Send)
            }
            (Phase::Offering { is_asked, .. }, SyncMessage::Done) => {
                if !*is_asked {
                    // It wants nothing of thousands: it is full, or others told it the rest as well.
                    self.have.clear();
                }
                Ok(self.next())
            }
            (_, other) => Err(SyncError::Unexpected(name_of(&other))),
        }
    }

    async fn begin(&mut self, shards: Shards) -> Result<SyncMessage, SyncError> {
        let beginning = move |catalog: &Catalog| {
            let comparison = Comparison::new(catalog.picture(shards));
            let first = comparison.begin()?;
            Ok::<_, SyncError>((comparison, first))
        };
        let begun = self.catalog.at_leisure(beginning).await??;
        Ok(self.compare(begun))
    }

    /// Begins with what was updated lately, of all shards.
    async fn begin_recent(&mut self, now_secs: u64) -> Result<SyncMessage, SyncError> {
        let beginning = move |catalog: &Catalog| {
            let (since_secs, items) = catalog.recent(now_secs.saturating_sub(RECENT_SECS));
            Comparison::since(since_secs, &items)
        };
        self.is_whole = false;
        let begun = self.catalog.at_leisure(beginning).await??;
        Ok(self.compare(begun))
    }

    fn compare(&mut self, (comparison, first): (Comparison, Vec<u8>)) -> SyncMessage {
        self.phase = Phase::Comparing(comparison);
        self.summary.rounds = 1;
        SyncMessage::Compare(first.into())
    }

    /// Works out what the peer's part of the comparison tells, away from the tasks that serve calls.
    async fn learn(&mut self, message: Vec<u8>) -> Result<(Difference, Option<Vec<u8>>), SyncError> {
        let phase = std::mem::replace(&mut self.phase, Phase::Fetching);
        let Phase::Comparing(mut comparison) = phase else {
            return Err(SyncError::Unexpected("a comparison"));
        };
        let learning = move |_: &Catalog| {
            let learned = comparison.learn(&message);
            (comparison, learned)
        };
        let (comparison, learned) = self.catalog.at_leisure(learning).await?;
        self.phase = Phase::Comparing(comparison);
        Ok(learned?)
    }

    /// Decides what to fetch. The peer lacks every version that it has a later one of, so when it lacks none of ours,
    /// all that it has beyond them is new here, and a full catalog wants none of that.
    async fn choose(&mut self, now_secs: u64) -> Result<(), SyncError> {
        let names = std::mem::take(&mut self.need);
        let (peer, all_new) = (self.peer, self.is_whole && self.have.is_empty());
        let choosing = move |catalog: &Catalog| match all_new && catalog.is_full_for(peer, now_secs) {
            true => Vec::new(),
            false => catalog.wanted(names, now_secs),
        };
        self.wanted.want(self.catalog.at_leisure(choosing).await?);
        Ok(())
    }

    /// Fetches what is still lacking, then offers what is left to give.
    fn next(&mut self) -> Step {
        if let Some(names) = self.wanted.ask() {
            self.phase = Phase::Fetching;
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
        self.phase = Phase::Offering { names: names.iter().copied().collect(), is_asked: false };
        Step::Send(SyncMessage::Offer(names))
    }

    async fn take(&mut self, packed: &[u8], now_secs: u64) -> Result<Step, SyncError> {
        let listings = self.wanted.unpack(packed)?;
        let verdicts = self.catalog.offer(listings, Source::Fetched(self.peer), now_secs).await;
        self.summary.stored += self.wanted.judge(&verdicts)?;
        Ok(self.next())
    }
}
