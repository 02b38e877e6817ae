//! The side that answers: compares, hands out what is asked for, takes what it said it wants.

use farthing_protocol::{reconciliation::Answers, shards::Shards, sync::SyncMessage};

use super::{
    SESSION_MESSAGES_MAX, SESSION_SECS_MAX, Side, SyncError, check_names, fetch_list::FetchList, name_of,
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
    /// Those that both sides keep, once the peer has told its own.
    shards: Shards,
    answers: Answers,
    wanted: FetchList,
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
            shards: Shards::ALL,
            answers: Answers::default(),
            wanted: FetchList::new(),
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
            SyncMessage::Offer(names) => {
                check_names(&names)?;
                let choosing = move |catalog: &Catalog| catalog.wanted(names, now_secs);
                self.wanted.want(self.catalog.at_leisure(choosing).await?);
                Ok(self.ask_on())
            }
            SyncMessage::Listings(packed) => self.take(&packed, now_secs).await,
            SyncMessage::Done => Ok(SyncMessage::Done),
            SyncMessage::Shards(bits) if self.messages == 1 => {
                // A full catalog has nothing to compare most of the time; its own sessions bring what is new.
                let own = match self.catalog.takes_whole(Side::Peer, now_secs) {
                    true => self.catalog.shards(),
                    false => Shards::from_bits(0),
                };
                self.shards = own.common(Shards::from_bits(bits));
                Ok(SyncMessage::Shards(own.bits()))
            }
            other @ (SyncMessage::Refused(_) | SyncMessage::Shards(_)) => {
                Err(SyncError::Unexpected(name_of(&other)))
            }
        }
    }

    async fn compare(&mut self, message: Vec<u8>, now_secs: u64) -> Result<SyncMessage, SyncError> {
        let mut answers = std::mem::take(&mut self.answers);
        let (shards, before_bytes) = (self.shards, answers.bytes());
        let is_first = before_bytes == 0;
        // A session may have to take a picture of the catalog first.
        let least_bytes = if is_first { FIRST_BYTES } else { 1 };
        self.catalog.admit_work(self.peer, Work::Compare, least_bytes, now_secs)?;
        let answering = move |catalog: &Catalog| {
            let picture = if is_first { catalog.picture(shards) } else { catalog.last_picture(shards) };
            let answer = answers.answer(&picture, &message);
            (answers, answer)
        };
        let (answers, answer) = self.catalog.at_leisure(answering).await?;
        let done_bytes = (answers.bytes() - before_bytes).saturating_sub(least_bytes);
        // What was done is done; the next message finds out whether it was too much.
        let _ = self.catalog.admit_work(self.peer, Work::Compare, done_bytes, now_secs);
        self.answers = answers;
        Ok(SyncMessage::Compare(answer?.into()))
    }

    /// Listings taken from the peer so far.
    pub const fn stored(&self) -> usize {
        self.stored
    }

    async fn take(&mut self, packed: &[u8], now_secs: u64) -> Result<SyncMessage, SyncError> {
        let listings = self.wanted.unpack(packed)?;
        let verdicts = self.catalog.offer(listings, Source::Given(self.peer), now_secs).await;
        self.stored += self.wanted.judge(&verdicts)?;
        Ok(self.ask_on())
    }

    fn ask_on(&mut self) -> SyncMessage {
        self.wanted.ask().map_or(SyncMessage::Done, SyncMessage::Fetch)
    }
}
