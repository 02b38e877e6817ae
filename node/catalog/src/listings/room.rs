//! Making room on the listings: who leaves when it is full, in an order that no flood can turn against others.

use farthing_protocol::{Address, Listing, ServiceId, sync::ItemName};

use super::{Class, Entry, Listings, Owner, Slot, State};
use crate::verdict::{Reason, Source};

/// A listing that made room or has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemovedListing {
    pub(crate) service: ServiceId,
    pub(crate) item: ItemName,
    pub(crate) slot: Slot,
}

impl Listings {
    /// Chooses the listings that leave for a new one: strangers' for a stranger's beyond their share; then those of the
    /// owners that have been away longest; then live ones, as [`super::places`] shares them out.
    pub(super) fn make_room(
        &self,
        owner: Address,
        source: Source,
        now_secs: u64,
    ) -> Result<Vec<RemovedListing>, Reason> {
        let class = self.owners.class_of_new(owner);
        let owned = self.owners.find(owner).map_or(0, |(_, owner)| owner.slots.len());
        self.room_for(class, owned, source, now_secs)
    }

    /// Returns whether a listing of any owner that has none here would find room, coming from this source. Own listings
    /// and those of owners with channels always do, and so do new versions.
    pub(crate) fn has_room_for_newcomers(&self, source: Source, now_secs: u64) -> bool {
        let classes = [Class::Young, Class::Settled, Class::Stranger];
        classes.into_iter().any(|class| self.room_for(class, 0, source, now_secs).is_ok())
    }

    /// Chooses the listings that leave for one more of an owner of this class that has `owned` here.
    fn room_for(
        &self,
        class: Class,
        owned: usize,
        source: Source,
        now_secs: u64,
    ) -> Result<Vec<RemovedListing>, Reason> {
        if class == Class::Stranger && self.strangers() >= self.limits.strangers_max {
            let strangers = self.classes.of(class);
            let slot = strangers
                .and_then(|places| places.room_for(source.bringer(), owned, |slot| self.owned_by(slot)));
            return slot.and_then(|slot| self.left(slot)).map(|left| vec![left]).ok_or(Reason::Full);
        }
        if self.len() < self.limits.listings_max {
            return Ok(Vec::new());
        }
        let mut left = self.away(now_secs);
        if left.is_empty() {
            let (max, bringer) = (self.limits.listings_max, source.bringer());
            let slot = self.classes.live_room_for(class, max, bringer, owned, |slot| self.owned_by(slot));
            left.extend(slot.and_then(|slot| self.left(slot)));
        }
        // This node's own listings are few and always have a place.
        if left.is_empty() && class != Class::Kept { Err(Reason::Full) } else { Ok(left) }
    }

    /// Listings of the owners that have been away longest: a hundredth at once, so that a full catalog does not sort
    /// its owners for each new listing.
    fn away(&self, now_secs: u64) -> Vec<RemovedListing> {
        let is_away = |owner: &&Owner| {
            let kept = owner.slots.is_empty() || owner.class == Class::Kept;
            !kept && self.owners.state(owner, now_secs) != State::Live
        };
        let mut away: Vec<&Owner> = self.owners.iter().map(|(_, owner)| owner).filter(is_away).collect();
        away.sort_unstable_by_key(|owner| owner.until_secs);
        let wanted = (self.limits.listings_max / 100).max(1);
        let slots = away.into_iter().flat_map(|owner| owner.slots.iter().copied()).take(wanted);
        slots.filter_map(|slot| self.left(slot)).collect()
    }

    /// Counts the listings of the owner of the one at `slot`.
    fn owned_by(&self, slot: Slot) -> usize {
        let owner = self.get(slot).and_then(|entry| self.owners.get(entry.owner));
        owner.map_or(0, |owner| owner.slots.len())
    }

    /// An owner keeps as many tombstones as it may have listings: the oldest makes room.
    pub(super) fn oldest_tombstone(&self, listing: &Listing) -> Option<RemovedListing> {
        let (_, owner) = self.owners.find(listing.owner).filter(|_| listing.tombstone)?;
        let held = || owner.slots.iter().filter_map(|&slot| Some((slot, self.get(slot)?)));
        let tombstones: Vec<(Slot, &Entry)> = held().filter(|(_, entry)| entry.tombstone).collect();
        if tombstones.len() < self.limits.per_owner_max {
            return None;
        }
        let (slot, _) = tombstones.into_iter().min_by_key(|(_, entry)| entry.updated_secs)?;
        self.left(slot)
    }

    pub(super) fn left(&self, slot: Slot) -> Option<RemovedListing> {
        self.get(slot).map(|entry| RemovedListing { service: entry.service, item: entry.item, slot })
    }
}
