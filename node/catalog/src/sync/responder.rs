//! The side that answers: compares, hands out what is asked for, takes what it said it wants.

use std::collections::HashSet;

use farthing_protocol::sync::{ItemName, SyncMessage};

use super::{
    SESSION_MESSAGES_MAX, SESSION_SECS_MAX, SyncError, check_names, compare::Comparison, judge, name_of, pack,
};
use crate::{
    budget::Work,
    catalog::Catalog,
    verdict::{Neighbour, Source},
};

/// The least size that a session's first comparison counts as: taking a picture of a large catalog takes as long as
/// comparing this much.
const FIRST_BYTES: usize = 128 * 1024;

/// A reconciliation that a peer began.
#[derive(Debug)]
pub struct Responder {
    catalog: Catalog,
    peer: Neighbour,
    began_secs: u64,
    messages: u32,
    comparison: Option<Box<Comparison>>,
    wanted: HashSet<ItemName>,
    stored: usize,
}

impl Catalog {
    /// Ready for what `peer` will ask.
    pub fn responder(&self, peer: impl Into<Neighbour>, now_secs: u64) -> Responder {
        Responder {
            catalog: self.clone(),
            peer: peer.into(),
            began_secs: now_secs,
            messages: 0,
            comparison: None,
            wanted: HashSet::new(),
            stored: 0,
        }
    }
}

impl Responder {
    /// Answers one message.
    ///
    /// # Errors
    /// [`SyncError`] ends the session: send it as [`SyncMessage::Refused`] and close.
    pub async fn on(&mut self, message: SyncMessage, now_secs: u64) -> Result<SyncMessage, SyncError> {
        self.messages += 1;
        if self.messages > SESSION_MESSAGES_MAX || now_secs.saturating_sub(self.began_secs) > SESSION_SECS_MAX
        {
            return Err(SyncError::TooLong);
        }
        match message {
            SyncMessage::Compare(message) => self.compare(message.into(), now_secs).await,
            SyncMessage::Fetch(names) => self.catalog.hand_out(self.peer, names, now_secs).await,
            SyncMessage::Offer(mut names) => {
                check_names(&names)?;
                self.catalog.wanted(&mut names, now_secs);
                self.wanted = names.into_iter().collect();
                Ok(self.ask_on())
            }
            SyncMessage::Listings(packed) => self.take(&packed, now_secs).await,
            SyncMessage::Done => Ok(SyncMessage::Done),
            other @ SyncMessage::Refused(_) => Err(SyncError::Unexpected(name_of(&other))),
        }
    }

    async fn compare(&mut self, message: Vec<u8>, now_secs: u64) -> Result<SyncMessage, SyncError> {
        let comparison = self.comparison.take();
        let before_bytes = comparison.as_ref().map_or(0, |comparison| comparison.bytes());
        // A session may have to take a picture of the catalog first.
        let least_bytes = if comparison.is_none() { FIRST_BYTES } else { 1 };
        self.catalog.admit_work(self.peer, Work::Compare, least_bytes, now_secs)?;
        let answering = move |catalog: &Catalog| {
            let mut comparison = match comparison {
                Some(comparison) => comparison,
                None => Box::new(Comparison::new(catalog.snapshot()?)?),
            };
            let answer = comparison.answer(&message);
            Ok::<_, SyncError>((comparison, answer))
        };
        let (comparison, answer) = self.catalog.at_leisure(answering).await??;
        let done_bytes = (comparison.bytes() - before_bytes).saturating_sub(least_bytes);
        // What was done is done; the next message finds out whether it was too much.
        let _ = self.catalog.admit_work(self.peer, Work::Compare, done_bytes, now_secs);
        self.comparison = Some(comparison);
        Ok(SyncMessage::Compare(answer?.into()))
    }

    /// Listings taken from the peer so far.
    pub const fn stored(&self) -> usize {
        self.stored
    }

    async fn take(&mut self, packed: &[u8], now_secs: u64) -> Result<SyncMessage, SyncError> {
        let listings = pack::unpack_asked(packed, &mut self.wanted)?;
        let verdicts = self.catalog.offer(listings, Source::Given(self.peer), now_secs).await;
        let taken = judge(&verdicts)?;
        self.stored += taken.stored;
        if taken.over_budget {
            self.wanted.clear();
        }
        Ok(self.ask_on())
    }

    fn ask_on(&self) -> SyncMessage {
        if self.wanted.is_empty() {
            return SyncMessage::Done;
        }
        SyncMessage::Fetch(self.wanted.iter().copied().collect())
    }
}
