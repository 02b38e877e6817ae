//! The side that opens a session: compares, fetches what it lacks, gives some of what the other lacks. Blocks while it
//! compares and while it checks signatures.

use std::collections::{HashMap, HashSet};

use farthing_protocol::{
    Address,
    agreement::{RecordsMessage, read_item},
    limits,
    reconciliation::{Comparison, Difference},
};

use super::{Agreed, Agreement, AgreementError, FETCHED_MAX, MESSAGES_MAX, name_of};
use crate::{info::RecordSource, records::OFFERS_PER_MINUTE_MAX};

/// Owners of a difference that are looked at: more than any store has.
const DIFFERENT_MAX: usize = 200_000;

/// A session that this node opened.
#[derive(Debug)]
pub(super) struct Opener {
    shared: Agreement,
    source: RecordSource,
    messages: u32,
    phase: Phase,
    only_here: HashSet<Address>,
    /// With the highest number of each.
    only_there: HashMap<Address, u64>,
    need: Vec<Address>,
    give: Vec<Address>,
    agreed: Agreed,
}

#[derive(Debug)]
enum Phase {
    Comparing(Comparison),
    Fetching(HashSet<Address>),
    Giving(HashSet<Address>),
    Over,
}

impl Opener {
    /// The session and its first message.
    pub(super) fn begin(
        shared: Agreement,
        source: RecordSource,
        now_secs: u64,
    ) -> Result<(Self, RecordsMessage), AgreementError> {
        let comparison = Comparison::new(shared.picture(now_secs));
        let first = RecordsMessage::Compare(comparison.begin()?.into());
        let opener = Self {
            shared,
            source,
            messages: 1,
            phase: Phase::Comparing(comparison),
            only_here: HashSet::new(),
            only_there: HashMap::new(),
            need: Vec::new(),
            give: Vec::new(),
            agreed: Agreed { learned: 0, is_rest: false },
        };
        Ok((opener, first))
    }

    pub(super) const fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Takes the peer's answer, and says what to send next; nothing when both have what they could get.
    pub(super) fn on(&mut self, answer: RecordsMessage) -> Result<Option<RecordsMessage>, AgreementError> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(AgreementError::TooLong);
        }
        match (std::mem::replace(&mut self.phase, Phase::Over), answer) {
            (_, RecordsMessage::Refused(reason)) => {
                Err(AgreementError::Refused(reason.chars().take(200).collect()))
            }
            (Phase::Comparing(mut comparison), RecordsMessage::Compare(message)) => {
                let (difference, next) = comparison.learn(&message)?;
                self.note(&difference);
                if let Some(next) = next {
                    self.phase = Phase::Comparing(comparison);
                    return Ok(Some(RecordsMessage::Compare(next.into())));
                }
                self.plan();
                self.next()
            }
            (Phase::Fetching(mut asked), RecordsMessage::Records(packed)) => {
                let before = asked.len();
                self.agreed.learned += self.shared.take(&packed, &mut asked, self.source)?;
                // When none came, the peer no longer has the rest.
                if asked.len() < before {
                    self.need.extend(asked);
                }
                self.next()
            }
            (Phase::Giving(mut given), RecordsMessage::Records(packed)) => {
                self.agreed.learned += self.shared.take(&packed, &mut given, self.source)?;
                Ok(None)
            }
            (_, other) => Err(AgreementError::Unexpected(name_of(&other))),
        }
    }

    fn note(&mut self, difference: &Difference) {
        for (owner, _) in difference.only_here.iter().map(read_item) {
            if self.only_here.len() < DIFFERENT_MAX {
                self.only_here.insert(owner);
            }
        }
        for (owner, seq) in difference.only_there.iter().map(read_item) {
            if self.only_there.len() < DIFFERENT_MAX {
                let highest = self.only_there.entry(owner).or_default();
                *highest = seq.max(*highest);
            }
        }
    }

    /// Decides what is fetched, as long as there is room, and what is given.
    fn plan(&mut self) {
        let records = self.shared.records.lock();
        let mut room = records.room();
        let mut renewed = Vec::new();
        for (owner, seq) in self.only_there.drain() {
            self.only_here.remove(&owner);
            match records.seq(owner) {
                Some(held) if held < seq => renewed.push(owner),
                Some(held) if held > seq => self.give.push(owner),
                None if room > 0 => {
                    room -= 1;
                    self.need.push(owner);
                }
                Some(_) | None => {}
            }
        }
        self.give.extend(self.only_here.drain());
        self.agreed.is_rest = self.need.len() > FETCHED_MAX;
        self.need.append(&mut renewed);
        self.need.truncate(FETCHED_MAX);
        // The other side looks at no more.
        self.give.truncate(OFFERS_PER_MINUTE_MAX as usize);
    }

    /// Fetches what is still lacking, then gives.
    fn next(&mut self) -> Result<Option<RecordsMessage>, AgreementError> {
        if !self.need.is_empty() {
            let owners = self.need.split_off(self.need.len().saturating_sub(limits::SYNC_ITEMS_MAX));
            self.phase = Phase::Fetching(owners.iter().copied().collect());
            return Ok(Some(RecordsMessage::Fetch(owners)));
        }
        let (packed, count) = self.shared.pack(&self.give)?;
        if count == 0 {
            return Ok(None);
        }
        self.phase = Phase::Giving(self.give.drain(..).collect());
        Ok(Some(RecordsMessage::Records(packed.into())))
    }
}
