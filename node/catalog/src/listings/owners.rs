//! Owners and whether they are there: a listing lives as long as its owner's node record.
//!
//! An owner is live until its record expires, away (greyed) for seven days after, dormant until thirty, then its
//! listings leave. The owner itself is remembered a while longer, so that neighbours which still keep the
//! listings cannot bring them back. Owners whose record was never seen are strangers: they are away since they
//! were first heard of.

use std::collections::{HashMap, HashSet};

use farthing_protocol::{Address, shards::shard_of};

use crate::options::Limits;

/// A number for an owner.
pub(crate) type OwnerId = u32;

/// The state of a listing's owner, which tells whether it can be expected to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its node record is valid.
    Live,
    /// Its node record expired less than a week ago, or was never seen.
    Away,
    /// It has been away for longer; search leaves its listings out.
    Dormant,
}

/// The degree to which an owner's listings are safe when there is no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// This node's own, and of those with whom it has channels: they never leave for others.
    Kept,
    /// Here for long.
    Settled,
    Young,
    /// Their owners' node records were never seen.
    Stranger,
}

#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) address: Address,
    pub(crate) shard: u8,
    /// Decided by [`Owners::class_of`] when something changes, so that listings are counted where they were put.
    pub(crate) class: Class,
    /// The time at which the first of its listings that are here came.
    pub(crate) since_secs: u64,
    /// True if a node record of it was ever seen.
    pub(crate) known: bool,
    /// The time at which the newest record expires; for strangers, when they were first heard of.
    pub(crate) until_secs: u64,
    /// Its listings and tombstones.
    pub(crate) slots: Vec<u32>,
    /// True if the store has it as it is here.
    pub(crate) stored: bool,
}

/// Everybody who has listings here, and some who may soon.
#[derive(Debug)]
pub(crate) struct Owners {
    own: Address,
    limits: Limits,
    /// Owners with whom this node has channels; none until somebody tells who they are.
    partners: Option<HashSet<Address>>,
    ids: HashMap<Address, OwnerId>,
    owners: Vec<Option<Owner>>,
    free: Vec<OwnerId>,
    without_listings: usize,
}

impl Owners {
    pub(crate) fn new(own: Address, limits: Limits) -> Self {
        let ids = HashMap::new();
        Self { own, limits, partners: None, ids, owners: Vec::new(), free: Vec::new(), without_listings: 0 }
    }

    pub(crate) fn find(&self, address: Address) -> Option<(OwnerId, &Owner)> {
        let id = *self.ids.get(&address)?;
        Some((id, self.get(id)?))
    }

    pub(crate) fn get(&self, id: OwnerId) -> Option<&Owner> {
        self.owners.get(id as usize)?.as_ref()
    }

    pub(crate) fn address(&self, id: OwnerId) -> Address {
        self.get(id).map_or(Address::ZERO, |owner| owner.address)
    }

    /// The class of an owner by what is known of it now.
    pub(crate) fn class_of(&self, owner: &Owner, now_secs: u64) -> Class {
        match owner.known {
            _ if self.is_related(owner.address) => Class::Kept,
            false => Class::Stranger,
            true if now_secs.saturating_sub(owner.since_secs) >= self.limits.settled_secs => Class::Settled,
            true => Class::Young,
        }
    }

    /// Returns whether this is the node itself, or one with whom it has channels.
    pub(crate) fn is_related(&self, address: Address) -> bool {
        address == self.own || self.partners.as_ref().is_some_and(|partners| partners.contains(&address))
    }

    /// The class of whoever has no listing here yet.
    pub(crate) fn class_of_new(&self, address: Address) -> Class {
        match self.find(address) {
            Some((_, owner)) => owner.class,
            None if self.is_related(address) => Class::Kept,
            None => Class::Stranger,
        }
    }

    /// Puts an owner into the class that it is in now. Its listings are to be moved when that is another one, which is
    /// returned with the one before.
    pub(crate) fn classify(&mut self, id: OwnerId, now_secs: u64) -> Option<(Class, Class)> {
        let class = self.class_of(self.get(id)?, now_secs);
        let owner = self.owners.get_mut(id as usize)?.as_mut()?;
        let before = std::mem::replace(&mut owner.class, class);
        (before != class).then_some((before, class))
    }

    pub(crate) const fn partners(&self) -> Option<&HashSet<Address>> {
        self.partners.as_ref()
    }

    /// Puts these owners in place of the partners of before. Returns all whose class may be another one now.
    pub(crate) fn set_partners(&mut self, partners: HashSet<Address>) -> Vec<OwnerId> {
        let before = self.partners.take().unwrap_or_default();
        let changed = before.symmetric_difference(&partners);
        let changed = changed.filter_map(|address| self.ids.get(address).copied()).collect();
        self.partners = Some(partners);
        changed
    }

    pub(crate) fn state(&self, owner: &Owner, now_secs: u64) -> State {
        let away_secs = now_secs.saturating_sub(owner.until_secs);
        match owner.known {
            _ if owner.address == self.own => State::Live,
            true if now_secs < owner.until_secs => State::Live,
            _ if away_secs < self.limits.greyed_secs => State::Away,
            _ => State::Dormant,
        }
    }

    /// Returns whether it has been away for so long that its listings leave.
    pub(crate) fn has_left(&self, owner: &Owner, now_secs: u64) -> bool {
        owner.address != self.own && now_secs.saturating_sub(owner.until_secs) >= self.limits.kept_secs
    }

    /// State of every owner by its number; numbers that nobody has are dormant.
    pub(crate) fn states(&self, now_secs: u64) -> Vec<State> {
        let state =
            |owner: &Option<Owner>| owner.as_ref().map_or(State::Dormant, |o| self.state(o, now_secs));
        self.owners.iter().map(state).collect()
    }

    /// A node record valid until `expires_secs` was seen. Returns the owner's number when it was a stranger
    /// until now, and may be in another class.
    pub(crate) fn seen(&mut self, address: Address, expires_secs: u64) -> Option<OwnerId> {
        if !self.ids.contains_key(&address)
            && self.without_listings >= self.limits.owners_without_listings_max
        {
            return None;
        }
        let id = self.id_of(address, expires_secs);
        let owner = self.owners.get_mut(id as usize)?.as_mut()?;
        let was_stranger = !owner.known;
        if was_stranger || owner.until_secs < expires_secs {
            *owner = Owner { known: true, until_secs: expires_secs, stored: false, ..owner.clone() };
        }
        was_stranger.then_some(id)
    }

    /// The owner said goodbye.
    pub(crate) fn gone(&mut self, address: Address, now_secs: u64) {
        let Some(&id) = self.ids.get(&address) else { return };
        if let Some(owner) = self.owners.get_mut(id as usize).and_then(Option::as_mut)
            && owner.known
            && owner.until_secs > now_secs
        {
            owner.until_secs = now_secs;
            owner.stored = false;
        }
    }

    /// The number of `address`, a stranger since `now_secs` if it is new.
    pub(crate) fn id_of(&mut self, address: Address, now_secs: u64) -> OwnerId {
        if let Some(&id) = self.ids.get(&address) {
            return id;
        }
        let class = self.class_of_new(address);
        let (until_secs, since_secs) = (now_secs, now_secs);
        let slots = Vec::new();
        let shard = shard_of(address);
        let owner =
            Owner { address, shard, class, since_secs, known: false, until_secs, slots, stored: false };
        let id = self.free.pop().unwrap_or_else(|| {
            self.owners.push(None);
            OwnerId::try_from(self.owners.len() - 1).unwrap_or(OwnerId::MAX)
        });
        self.owners[id as usize] = Some(owner);
        self.ids.insert(address, id);
        self.without_listings += 1;
        id
    }

    /// Takes over what the store remembers.
    pub(crate) fn restore(&mut self, address: Address, known: bool, until_secs: u64) {
        let id = self.id_of(address, until_secs);
        if let Some(owner) = self.owners[id as usize].as_mut() {
            *owner = Owner { known, until_secs, stored: true, ..owner.clone() };
        }
        self.classify(id, 0);
    }

    pub(crate) fn add_slot(&mut self, id: OwnerId, slot: u32, first_seen_secs: u64) {
        let Some(owner) = self.owners[id as usize].as_mut() else { return };
        if owner.slots.is_empty() {
            self.without_listings -= 1;
            owner.since_secs = first_seen_secs;
        }
        owner.since_secs = owner.since_secs.min(first_seen_secs);
        owner.slots.push(slot);
    }

    pub(crate) fn remove_slot(&mut self, id: OwnerId, slot: u32) {
        let Some(owner) = self.owners[id as usize].as_mut() else { return };
        owner.slots.retain(|&other| other != slot);
        if owner.slots.is_empty() {
            self.without_listings += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (OwnerId, &Owner)> {
        let numbered = self.owners.iter().zip(0..);
        numbered.filter_map(|(owner, id)| owner.as_ref().map(|owner| (id, owner)))
    }

    /// Owners that changed since they were stored, now taken for stored.
    pub(crate) fn take_unstored(&mut self) -> Vec<Owner> {
        let unstored = self.owners.iter_mut().flatten().filter(|owner| !owner.stored);
        unstored
            .map(|owner| {
                owner.stored = true;
                Owner { slots: Vec::new(), ..owner.clone() }
            })
            .collect()
    }

    /// Forgets owners without listings that have been away for three times as long as listings are kept.
    pub(crate) fn forget(&mut self, now_secs: u64) -> Vec<Address> {
        let forgotten_secs = self.limits.kept_secs.saturating_mul(3);
        let forgotten: Vec<(OwnerId, Address)> = self
            .iter()
            .filter(|(_, owner)| owner.slots.is_empty())
            .filter(|(_, owner)| now_secs.saturating_sub(owner.until_secs) >= forgotten_secs)
            .map(|(id, owner)| (id, owner.address))
            .collect();
        for (id, address) in &forgotten {
            self.owners[*id as usize] = None;
            self.ids.remove(address);
            self.free.push(*id);
            self.without_listings -= 1;
        }
        forgotten.into_iter().map(|(_, address)| address).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns how many of them have listings or tombstones here.
    pub(crate) fn with_listings(&self) -> usize {
        self.len() - self.without_listings
    }
}
