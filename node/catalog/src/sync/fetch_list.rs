//! The listings that one side still wants of the other, asked for in portions: a few listings at first, and more as long as there is
//! room for what comes. So a full catalog learns by a few that it has no room for a hundred thousand.

use std::collections::HashSet;

use farthing_protocol::{Listing, Signed, limits, reconciliation, sync::ItemName};

use super::SyncError;
use crate::verdict::{Reason, Verdict};

/// Listings of the first portion. As many are fetched for nothing in each session of a full catalog, 80 KB at most.
const FIRST_PORTION: usize = 64;
/// A portion that found room is followed by one that is so much larger.
const GROWTH: usize = 8;

/// Names that are worth fetching in one session.
#[derive(Debug)]
pub(super) struct FetchList {
    /// As the comparison told them: mostly the newest last, which are asked for first.
    rest: Vec<ItemName>,
    asked: HashSet<ItemName>,
    portion: usize,
    /// True after a portion of which nothing found room.
    is_full: bool,
}

impl FetchList {
    pub(super) fn new() -> Self {
        Self { rest: Vec::new(), asked: HashSet::new(), portion: FIRST_PORTION, is_full: false }
    }

    /// Wants these and no others from now on.
    pub(super) fn want(&mut self, names: Vec<ItemName>) {
        self.asked.clear();
        self.rest = if self.is_full { Vec::new() } else { names };
    }

    /// The names to ask for now, those again that did not fit into the last answer; none when nothing is left.
    pub(super) fn ask(&mut self) -> Option<Vec<ItemName>> {
        if self.asked.is_empty() {
            let first = self.rest.len().saturating_sub(self.portion);
            self.asked.extend(self.rest.split_off(first));
        }
        (!self.asked.is_empty()).then(|| self.asked.iter().copied().collect())
    }

    /// The listings of an answer, all of which were asked for, and none of which is any more.
    pub(super) fn unpack(&mut self, packed: &[u8]) -> Result<Vec<Signed<Listing>>, SyncError> {
        let listings: Vec<Signed<Listing>> = reconciliation::unpack(packed)?;
        if !listings.iter().all(|listing| self.asked.remove(&ItemName::of(&listing.content_hash()))) {
            return Err(SyncError::Unasked);
        }
        if listings.is_empty() {
            // The peer no longer has the rest.
            self.asked.clear();
        }
        Ok(listings)
    }

    /// Decides by what became of the listings of an answer how to go on. Returns how many were stored.
    pub(super) fn judge(&mut self, verdicts: &[Verdict]) -> Result<usize, SyncError> {
        if verdicts.iter().any(Verdict::is_hostile) {
            return Err(SyncError::Forged);
        }
        let stored = verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count();
        let no_room = [Reason::Full, Reason::OtherShard].map(Verdict::Refused);
        let found_no_room = verdicts.iter().any(|verdict| no_room.contains(verdict));
        self.is_full = stored == 0 && found_no_room;
        // A neighbour that sent more than its share is not asked on either.
        if self.is_full || verdicts.contains(&Verdict::Refused(Reason::OverBudget)) {
            self.want(Vec::new());
        } else if !found_no_room {
            self.portion = (self.portion * GROWTH).min(limits::SYNC_ITEMS_MAX);
        }
        Ok(stored)
    }
}
