//! Making room on the shelf: who leaves when it is full, in an order that no flood can turn against others.

use std::collections::BTreeSet;

use farthing_protocol::{Address, Listing, ServiceId, sync::ItemName};

use super::{Entry, Owner, Shelf, Slot, State};
use crate::verdict::{Reason, Source};

/// A listing that made room or has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) service: ServiceId,
    pub(crate) item: ItemName,
    pub(crate) slot: Slot,
}

impl Shelf {
    /// Which listings leave for a new one, in this order: strangers' beyond their share, from the neighbour that
    /// brought most of them; then those of the owners that have been away longest. Live ones never do.
    pub(super) fn make_room(
        &self,
        owner: Address,
        source: Source,
        now_secs: u64,
    ) -> Result<Vec<Left>, Reason> {
        let stranger = owner != self.own && self.owners.find(owner).is_none_or(|(_, owner)| !owner.known);
        if stranger && self.strangers_count >= self.limits.strangers_max {
            return self.strangers_room(source).map(|left| vec![left]);
        }
        if self.len() < self.limits.listings_max {
            return Ok(Vec::new());
        }
        let mut away: Vec<&Owner> = self
            .owners
            .iter()
            .map(|(_, owner)| owner)
            .filter(|owner| !owner.slots.is_empty() && self.owners.state(owner, now_secs) != State::Live)
            .collect();
        away.sort_unstable_by_key(|owner| owner.until_secs);
        // A hundredth at once, so that a full catalog does not sort its owners for each listing.
        let wanted = (self.limits.listings_max / 100).max(1);
        let slots = away.into_iter().flat_map(|owner| owner.slots.iter().copied()).take(wanted);
        let left: Vec<Left> = slots.filter_map(|slot| self.left(slot)).collect();
        // This node's own listings are few and always have a place.
        if left.is_empty() && owner != self.own { Err(Reason::Full) } else { Ok(left) }
    }

    fn strangers_room(&self, source: Source) -> Result<Left, Reason> {
        let most = self.strangers.iter().max_by_key(|(_, slots)| slots.len());
        let brought = self.strangers.get(&source.peer()).map_or(0, BTreeSet::len);
        let (_, slots) = most.filter(|(_, slots)| slots.len() > brought + 1).ok_or(Reason::Full)?;
        slots.last().and_then(|&slot| self.left(slot)).ok_or(Reason::Full)
    }

    /// An owner keeps as many tombstones as it may have listings: the oldest makes room.
    pub(super) fn oldest_tombstone(&self, listing: &Listing) -> Option<Left> {
        let (_, owner) = self.owners.find(listing.owner).filter(|_| listing.tombstone)?;
        let held = || owner.slots.iter().filter_map(|&slot| Some((slot, self.get(slot)?)));
        let tombstones: Vec<(Slot, &Entry)> = held().filter(|(_, entry)| entry.tombstone).collect();
        if tombstones.len() < self.limits.per_owner_max {
            return None;
        }
        let (slot, _) = tombstones.into_iter().min_by_key(|(_, entry)| entry.updated_secs)?;
        self.left(slot)
    }

    pub(super) fn left(&self, slot: Slot) -> Option<Left> {
        self.get(slot).map(|entry| Left { service: entry.service, item: entry.item, slot })
    }
}
