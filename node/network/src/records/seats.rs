//! The rule by which places are given up when the store is full. Wallets are free, so places are rationed by what costs something: time
//! and addresses. Pure.
//!
//! Owners that have been here for a week leave three quarters of the places to nobody else; who is new has a quarter at
//! least. Within each of the two the places are shared out by where the records came from: who brought most makes room, and
//! whoever is the largest itself makes room among its own. So a newcomer always has a place for a while, and a flood
//! takes places of its own kind alone.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use farthing_protocol::Address;

use crate::neighbour_origin::NeighbourOrigin;

/// Of a group so many are drawn, and the one that came last of these leaves.
const DRAWN: usize = 8;

/// The bringer of a record; nothing for those that were stored before the start.
pub(super) type Bringer = Option<NeighbourOrigin>;

/// The time that an owner has been known, in classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tenure {
    Young,
    Settled,
}

/// The owners of one tenure, by where they came from.
#[derive(Debug, Default)]
struct SeatGroup {
    by_bringer: HashMap<Bringer, Vec<Address>>,
    count: usize,
}

impl SeatGroup {
    fn largest(&self) -> &[Address] {
        self.by_bringer.values().max_by_key(|owners| owners.len()).map_or(&[][..], Vec::as_slice)
    }

    /// The largest, or that of `bringer` when none is larger.
    fn of_most(&self, bringer: Bringer) -> &[Address] {
        let (own, largest) = (self.by_bringer.get(&bringer), self.largest());
        own.map(Vec::as_slice).filter(|own| own.len() >= largest.len()).unwrap_or(largest)
    }
}

/// All owners that can lose their places.
#[derive(Debug, Default)]
pub(super) struct Seats {
    young: SeatGroup,
    settled: SeatGroup,
    lot: RandomState,
}

impl Seats {
    /// Adds an owner, and returns where it stands among those of its kind.
    pub(super) fn add(&mut self, tenure: Tenure, bringer: Bringer, owner: Address) -> usize {
        let group = self.group_mut(tenure);
        group.count += 1;
        let owners = group.by_bringer.entry(bringer).or_default();
        owners.push(owner);
        owners.len() - 1
    }

    /// Removes the owner that stands there, and returns the one that stands there from now on.
    pub(super) fn remove(&mut self, tenure: Tenure, bringer: Bringer, at: usize) -> Option<Address> {
        let group = self.group_mut(tenure);
        let owners = group.by_bringer.get_mut(&bringer)?;
        if at < owners.len() {
            owners.swap_remove(at);
            group.count -= 1;
        }
        let moved = owners.get(at).copied();
        if owners.is_empty() {
            group.by_bringer.remove(&bringer);
        }
        moved
    }

    /// Chooses who leaves for `owner`, which is of that tenure and came from `bringer`, when all of `seats_max` places are
    /// taken. `since` says when an owner came, and nothing of one that never leaves.
    pub(super) fn leaving(
        &self,
        (owner, tenure, bringer): (Address, Tenure, Bringer),
        seats_max: usize,
        since: impl Fn(&Address) -> Option<u64>,
    ) -> Option<Address> {
        let young_part = seats_max / 4;
        let (first, second) = match tenure {
            Tenure::Young if self.young.count < young_part => {
                (self.settled.largest(), self.young.of_most(bringer))
            }
            Tenure::Young => (self.young.of_most(bringer), self.young.largest()),
            Tenure::Settled if self.young.count > young_part => {
                (self.young.largest(), self.settled.of_most(bringer))
            }
            Tenure::Settled => (self.settled.of_most(bringer), self.settled.largest()),
        };
        self.last_of(first, owner, &since).or_else(|| self.last_of(second, owner, &since))
    }

    /// Of some that are drawn by lot, the one that came last. `salt` makes draws differ.
    fn last_of(
        &self,
        owners: &[Address],
        salt: Address,
        since: impl Fn(&Address) -> Option<u64>,
    ) -> Option<Address> {
        let drawn = (0..DRAWN).filter_map(|n| {
            let lot = self.lot.hash_one((salt, n)).checked_rem(owners.len() as u64)?;
            owners.get(usize::try_from(lot).ok()?)
        });
        let can_leave = |owner: &Address| Some((since(owner)?, *owner));
        let last = drawn.filter_map(&can_leave).max();
        // Those that never leave are few.
        last.or_else(|| owners.iter().find_map(can_leave)).map(|(_, owner)| owner)
    }

    /// All who have seats, with where they stand.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<(Tenure, Bringer, usize, Address)> {
        let of = |tenure, group: &SeatGroup| {
            let groups = group.by_bringer.iter();
            let all: Vec<_> = groups
                .flat_map(|(bringer, owners)| {
                    owners.iter().enumerate().map(move |(at, owner)| (tenure, *bringer, at, *owner))
                })
                .collect();
            assert_eq!(all.len(), group.count);
            all
        };
        [of(Tenure::Young, &self.young), of(Tenure::Settled, &self.settled)].concat()
    }

    fn group_mut(&mut self, tenure: Tenure) -> &mut SeatGroup {
        match tenure {
            Tenure::Young => &mut self.young,
            Tenure::Settled => &mut self.settled,
        }
    }
}
