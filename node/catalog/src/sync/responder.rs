//! The side that answers: compares, hands out what is asked for, takes what it said it wants.

use std::collections::HashSet;

use farthing_protocol::sync::{ItemName, SyncMessage};

use super::{
    SESSION_MESSAGES_MAX, SESSION_SECS_MAX, SyncError, check_names, compare::Comparison, judge, name_of, pack,
};
use crate::{
    catalog::Catalog,
    verdict::{Neighbour, Source},
};

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
    #[must_use]
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
            SyncMessage::Compare(message) => {
                let comparison = match &mut self.comparison {
                    Some(comparison) => comparison,
                    none => none.insert(Box::new(Comparison::new(self.catalog.snapshot()?)?)),
                };
                Ok(SyncMessage::Compare(comparison.answer(&message)?.into()))
            }
            SyncMessage::Fetch(names) => {
                check_names(&names)?;
                Ok(SyncMessage::Listings(self.catalog.pack(&names)?.into()))
            }
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

    /// Listings taken from the peer so far.
    #[must_use]
    pub const fn stored(&self) -> usize {
        self.stored
    }

    async fn take(&mut self, packed: &[u8], now_secs: u64) -> Result<SyncMessage, SyncError> {
        let listings = pack::unpack(packed)?;
        for listing in &listings {
            if !self.wanted.remove(&ItemName::of(&listing.content_hash())) {
                return Err(SyncError::Unasked);
            }
        }
        if listings.is_empty() {
            self.wanted.clear();
        }
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
