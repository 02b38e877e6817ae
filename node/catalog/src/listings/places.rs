//! Chooses whose places are taken when the listings are full. Wallets are free, and so are the node records that make their
//! listings live: places are rationed by what costs something, which is time, addresses and money.
//!
//! Own listings, and those of owners with whom this node has channels, never leave. Of all others, those of owners
//! that have been here for long leave three quarters of the listings to no one else; who is new has a quarter at least.
//! Within each class the places are shared out by where they came from: who brought most of them makes room.

use std::collections::{BTreeSet, HashMap};

use super::{Slot, owners::Class};
use crate::verdict::Bringer;

/// Of the largest group, the youngest so many are looked at for the one that leaves.
const LOOKED_AT_MAX: usize = 256;

/// Listings of one class by where they came from; in each group the youngest last.
#[derive(Debug, Default)]
pub(super) struct Places {
    groups: HashMap<Option<Bringer>, BTreeSet<(u64, Slot)>>,
    count: usize,
}

impl Places {
    pub(super) fn add(&mut self, bringer: Option<Bringer>, first_seen_secs: u64, slot: Slot) {
        if self.groups.entry(bringer).or_default().insert((first_seen_secs, slot)) {
            self.count += 1;
        }
    }

    pub(super) fn remove(&mut self, bringer: Option<Bringer>, first_seen_secs: u64, slot: Slot) {
        let Some(group) = self.groups.get_mut(&bringer) else { return };
        if group.remove(&(first_seen_secs, slot)) {
            self.count -= 1;
        }
        if group.is_empty() {
            self.groups.remove(&bringer);
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Chooses the listing that leaves for one more of an owner that has `owned` here, which `bringer` brings: one of
    /// the largest group, if that has more than the bringer's own would have. Else, in the bringer's own group, one of
    /// an owner that has more than this one would have. `owned_by` says how many the owner of a slot has.
    pub(super) fn room_for(
        &self,
        bringer: Option<Bringer>,
        owned: usize,
        owned_by: impl Fn(Slot) -> usize,
    ) -> Option<Slot> {
        let own = self.groups.get(&bringer);
        let largest = self.groups.values().max_by_key(|group| group.len())?;
        if largest.len() > own.map_or(0, BTreeSet::len) + 1 {
            return leaving(largest, owned_by).map(|(slot, _)| slot);
        }
        let (slot, most) = leaving(own?, owned_by)?;
        (most > owned + 1).then_some(slot)
    }

    /// Chooses the listing that leaves for one of another class: one of the largest group.
    pub(super) fn room(&self, owned_by: impl Fn(Slot) -> usize) -> Option<Slot> {
        let largest = self.groups.values().max_by_key(|group| group.len())?;
        leaving(largest, owned_by).map(|(slot, _)| slot)
    }
}

/// Of the youngest of a group, the one whose owner has most, and how many that are.
fn leaving(group: &BTreeSet<(u64, Slot)>, owned_by: impl Fn(Slot) -> usize) -> Option<(Slot, usize)> {
    let youngest = group.iter().rev().take(LOOKED_AT_MAX).map(|&(_, slot)| (slot, owned_by(slot)));
    youngest.reduce(|found, next| if next.1 > found.1 { next } else { found })
}

/// The places of every class that can lose any.
#[derive(Debug, Default)]
pub(super) struct Classes {
    strangers: Places,
    young: Places,
    settled: Places,
}

impl Classes {
    pub(super) const fn of(&self, class: Class) -> Option<&Places> {
        match class {
            Class::Kept => None,
            Class::Settled => Some(&self.settled),
            Class::Young => Some(&self.young),
            Class::Stranger => Some(&self.strangers),
        }
    }

    pub(super) const fn of_mut(&mut self, class: Class) -> Option<&mut Places> {
        match class {
            Class::Kept => None,
            Class::Settled => Some(&mut self.settled),
            Class::Young => Some(&mut self.young),
            Class::Stranger => Some(&mut self.strangers),
        }
    }

    pub(super) const fn strangers(&self) -> usize {
        self.strangers.count()
    }

    /// Chooses the live listing that leaves for one more of `class`, when all places of `listings_max` are taken.
    pub(super) fn live_room_for(
        &self,
        class: Class,
        listings_max: usize,
        bringer: Option<Bringer>,
        owned: usize,
        owned_by: impl Fn(Slot) -> usize,
    ) -> Option<Slot> {
        let young_part = listings_max / 4;
        let young = self.young.count();
        match class {
            // Strangers have places of their own, and no others.
            Class::Stranger => self.strangers.room_for(bringer, owned, owned_by),
            Class::Kept => self.young.room(&owned_by).or_else(|| self.settled.room(&owned_by)),
            Class::Young if young < young_part => self.settled.room(&owned_by),
            Class::Young => self.young.room_for(bringer, owned, owned_by),
            Class::Settled if young > young_part => self.young.room(&owned_by),
            Class::Settled => self.settled.room_for(bringer, owned, owned_by),
        }
    }
}
