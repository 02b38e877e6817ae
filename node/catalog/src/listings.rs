//! Facts about every listing, known without reading it: the catalog's memory, and the rules of taking a listing.
//!
//! [`Listings::check`] decides by looking only; it is asked before a signature is checked and once more by
//! [`Listings::put`], which the writer alone calls. Each listing has a slot, a small number that stays the same
//! while it is here; the search index knows listings by it.
//!
//! Invariant: at most `listings_max` entries, of which at most `strangers_max` belong to owners whose node
//! record was never seen; the places of all others are shared out as [`places`] says.

use std::collections::{HashMap, HashSet};

use farthing_protocol::{
    Address, Listing, ServiceId, limits,
    shards::{Shards, shard_of},
    sync::ItemName,
};

use crate::{
    budget::{Bucket, Rate},
    options::{Limits, Options},
    verdict::{Bringer, Reason, Source},
};

mod card;
mod look_alike;
mod named_services;
mod names;
mod owners;
mod places;
mod room;
mod text_pool;

pub use look_alike::LookAlike;
pub use named_services::{NAMED_MAX, NamedService};
pub use names::NameLook;
pub use owners::State;
pub(crate) use {
    card::Card,
    owners::{Owner, OwnerId, Owners},
    room::RemovedListing,
};
use {names::Names, owners::Class, places::Classes, text_pool::TextPool};

/// A place on the listings.
pub(crate) type Slot = u32;

/// One listing, as far as deciding and comparing need it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) service: ServiceId,
    pub(crate) owner: OwnerId,
    pub(crate) item: ItemName,
    pub(crate) seq: u64,
    pub(crate) created_secs: u64,
    pub(crate) updated_secs: u64,
    pub(crate) first_seen_secs: u64,
    pub(crate) tombstone: bool,
    pub(crate) name: Box<str>,
    /// The name's first sixteen bytes in lower case, which sort like the name.
    pub(crate) name_begins: u128,
    updates: Bucket,
    /// The bringer that it came from first; nothing for this node's own.
    brought_by: Option<Bringer>,
}

/// The arrival of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// Any version of it.
    pub(crate) first_seen_secs: u64,
    /// This version.
    pub(crate) arrived_secs: u64,
    /// The bringer that it came from first; nothing for this node's own.
    pub(crate) brought_by: Option<Bringer>,
}

/// The result of putting a listing among the others.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) slot: Slot,
    pub(crate) came: Came,
    /// The version before.
    pub(crate) replaced: Option<ItemName>,
    pub(crate) left: Vec<RemovedListing>,
}

/// Listings by everything they are looked for.
#[derive(Debug)]
pub(crate) struct Listings {
    network: String,
    own: Address,
    shards: Shards,
    limits: Limits,
    slots: Vec<Option<Entry>>,
    /// As many as slots.
    cards: Vec<Card>,
    free: Vec<Slot>,
    by_service: HashMap<ServiceId, Slot>,
    by_item: HashMap<ItemName, Slot>,
    pub(crate) owners: Owners,
    pub(crate) words: TextPool,
    names: Names,
    classes: Classes,
    /// Calls that this node paid for and got, of each service that had any.
    calls: HashMap<ServiceId, u32>,
    tombstones: usize,
    revision: u64,
}

impl Listings {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            network: options.network.clone(),
            own: options.own,
            shards: options.shards,
            limits: options.limits.clone(),
            slots: Vec::new(),
            cards: Vec::new(),
            free: Vec::new(),
            by_service: HashMap::new(),
            by_item: HashMap::new(),
            owners: Owners::new(options.own, options.limits.clone()),
            words: TextPool::default(),
            names: Names::default(),
            classes: Classes::default(),
            calls: HashMap::new(),
            tombstones: 0,
            revision: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_service.len()
    }

    pub(crate) const fn tombstones(&self) -> usize {
        self.tombstones
    }

    pub(crate) const fn strangers(&self) -> usize {
        self.classes.strangers()
    }

    /// Changes whenever the set of versions does.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Returns the cards that search looks at, by slot.
    pub(crate) fn cards(&self) -> &[Card] {
        &self.cards
    }

    pub(crate) fn find(&self, service: ServiceId) -> Option<(Slot, &Entry)> {
        let slot = *self.by_service.get(&service)?;
        Some((slot, self.get(slot)?))
    }

    pub(crate) fn find_item(&self, item: &ItemName) -> Option<&Entry> {
        self.get(*self.by_item.get(item)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        let numbered = self.slots.iter().zip(0..);
        numbered.filter_map(|(entry, slot)| entry.as_ref().map(|entry| (slot, entry)))
    }

    /// Checks whether the listing would be taken; cheap, and nothing changes.
    pub(crate) fn check(&self, listing: &Listing, item: ItemName, now_secs: u64) -> Result<(), Reason> {
        if listing.network != self.network {
            return Err(Reason::WrongNetwork);
        }
        if listing.updated_secs > now_secs.saturating_add(limits::CLOCK_SKEW_SECS_MAX) {
            return Err(Reason::FromTheFuture);
        }
        match self.find(listing.service) {
            Some((_, held)) => self.check_update(listing, item, held, now_secs),
            None => self.check_new(listing, now_secs),
        }
    }

    fn check_update(
        &self,
        listing: &Listing,
        item: ItemName,
        held: &Entry,
        now_secs: u64,
    ) -> Result<(), Reason> {
        // An owner that signs two listings with one number must not make nodes disagree for ever.
        if (listing.seq, item) <= (held.seq, held.item) {
            return Err(Reason::Superseded);
        }
        // A retirement is an owner's last word, so it cannot come too often.
        if listing.owner == self.own || listing.tombstone {
            return Ok(());
        }
        match held.updates.wait_secs(self.update_rate(), now_secs) {
            Some(retry_secs) => Err(Reason::TooOften { retry_secs }),
            None => Ok(()),
        }
    }

    fn check_new(&self, listing: &Listing, now_secs: u64) -> Result<(), Reason> {
        let Some((_, owner)) = self.owners.find(listing.owner) else { return Ok(()) };
        if self.owners.has_left(owner, now_secs) {
            return Err(Reason::OwnerAway);
        }
        // An old tombstone makes room for a new one; a listing does not.
        let listings =
            || owner.slots.iter().filter_map(|&slot| self.get(slot)).filter(|held| !held.tombstone);
        if !listing.tombstone
            && owner.slots.len() >= self.limits.per_owner_max
            && listings().count() >= self.limits.per_owner_max
        {
            return Err(Reason::OwnerFull);
        }
        Ok(())
    }

    /// Returns whether the listing belongs here: its owner is in a shard that is kept, or this node has to do with it.
    pub(crate) fn keeps(&self, listing: &Listing) -> bool {
        self.shards.has(shard_of(listing.owner))
            || self.owners.is_related(listing.owner)
            || self.calls.contains_key(&listing.service)
    }

    /// Takes a listing whose signature was checked.
    pub(crate) fn put(
        &mut self,
        listing: &Listing,
        item: ItemName,
        source: Source,
        now_secs: u64,
    ) -> Result<Placed, Reason> {
        self.check(listing, item, now_secs)?;
        let Some((slot, held)) = self.find(listing.service) else {
            let mut left = self.make_room(listing.owner, source, now_secs)?;
            left.extend(self.oldest_tombstone(listing));
            left.iter().for_each(|left| self.remove(left.slot));
            let updates = Bucket::full(self.update_rate(), now_secs);
            let brought_by = source.bringer();
            let came = Came { first_seen_secs: now_secs, arrived_secs: now_secs, brought_by };
            let slot = self.place(None, listing, item, came, updates);
            self.add_name(slot);
            return Ok(Placed { slot, came, replaced: None, left });
        };
        let (replaced, mut updates) = (Some(held.item), held.updates);
        let came = Came {
            first_seen_secs: held.first_seen_secs,
            arrived_secs: now_secs,
            brought_by: held.brought_by,
        };
        updates.take(self.update_rate(), now_secs);
        self.remove(slot);
        self.place(Some(slot), listing, item, came, updates);
        self.add_name(slot);
        Ok(Placed { slot, came, replaced, left: Vec::new() })
    }

    /// Puts back a listing that the store held. Returns its slot, which is another one when `slot` is taken.
    pub(crate) fn restore(&mut self, slot: Slot, listing: &Listing, item: ItemName, came: Came) -> Slot {
        let usable = self.get(slot).is_none() && (slot as usize) < self.limits.listings_max.saturating_mul(2);
        let updates = Bucket::full(self.update_rate(), came.first_seen_secs);
        self.place(usable.then_some(slot), listing, item, came, updates)
    }

    /// After everything is restored: names are found, and slots that nothing was restored to are free.
    pub(crate) fn restored(&mut self) {
        let named = (0..).zip(&self.slots).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)));
        let named = named.filter(|(_, entry)| !entry.tombstone);
        self.names.fill(named.map(|(slot, entry)| (&*entry.name, slot)));
        self.free =
            (0..).zip(&self.slots).filter(|(_, entry)| entry.is_none()).map(|(slot, _)| slot).collect();
    }

    fn place(
        &mut self,
        slot: Option<Slot>,
        listing: &Listing,
        item: ItemName,
        came: Came,
        updates: Bucket,
    ) -> Slot {
        let Came { first_seen_secs, brought_by, .. } = came;
        let end =
            Slot::try_from(self.slots.len()).expect("there are as many slots as listings, some 200,000");
        let slot = slot.or_else(|| self.free.pop()).unwrap_or(end);
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, None);
            self.cards.resize(slot as usize + 1, Card::EMPTY);
        }
        if self.free.last() == Some(&slot) {
            // A new version takes the slot that the one before just left.
            self.free.pop();
        }
        let owner = self.owners.id_of(listing.owner, first_seen_secs);
        self.owners.add_slot(owner, slot, first_seen_secs);
        if let Some(places) = self.owners.get(owner).and_then(|owner| self.classes.of_mut(owner.class)) {
            places.add(brought_by, first_seen_secs, slot);
        }
        if listing.tombstone {
            self.tombstones += 1;
        }
        self.by_service.insert(listing.service, slot);
        self.by_item.insert(item, slot);
        let calls = self.calls.get(&listing.service).copied().unwrap_or_default();
        self.cards[slot as usize] = Card::new(listing, owner, came, calls, &mut self.words);
        self.slots[slot as usize] = Some(Entry {
            service: listing.service,
            owner,
            item,
            seq: listing.seq,
            created_secs: listing.created_secs,
            updated_secs: listing.updated_secs,
            first_seen_secs,
            tombstone: listing.tombstone,
            name: listing.name.as_str().into(),
            name_begins: beginning(&listing.name),
            updates,
            brought_by,
        });
        self.revision += 1;
        slot
    }

    fn add_name(&mut self, slot: Slot) {
        if let Some(entry) = self.slots[slot as usize].as_ref().filter(|entry| !entry.tombstone) {
            self.names.add(&entry.name, slot);
        }
    }

    fn remove(&mut self, slot: Slot) {
        let Some(entry) = self.slots.get_mut(slot as usize).and_then(Option::take) else { return };
        self.by_service.remove(&entry.service);
        self.by_item.remove(&entry.item);
        if let Some(places) = self.owners.get(entry.owner).and_then(|owner| self.classes.of_mut(owner.class))
        {
            places.remove(entry.brought_by, entry.first_seen_secs, slot);
        }
        self.owners.remove_slot(entry.owner, slot);
        if entry.tombstone {
            self.tombstones -= 1;
        } else {
            self.names.remove(&entry.name, slot);
        }
        let card = std::mem::replace(&mut self.cards[slot as usize], Card::EMPTY);
        card.release(&mut self.words);
        self.free.push(slot);
        self.revision += 1;
    }

    /// A node record of this owner is valid until `expires_secs`.
    pub(crate) fn owner_seen(&mut self, owner: Address, expires_secs: u64) {
        if let Some(id) = self.owners.seen(owner, expires_secs) {
            // A newcomer until the next sweep.
            self.classify(id, 0);
        }
    }

    /// This node has channels with these owners and no others.
    pub(crate) fn set_partners(&mut self, partners: HashSet<Address>, now_secs: u64) {
        for id in self.owners.set_partners(partners) {
            self.classify(id, now_secs);
        }
    }

    /// This node paid for so many more calls of a service, and got them. Returns whether they are the first.
    pub(crate) fn completed(&mut self, service: ServiceId, calls: u32) -> bool {
        let is_first = !self.calls.contains_key(&service);
        let counted = self.calls.entry(service).or_default();
        *counted = counted.saturating_add(calls);
        if let Some(card) = self.by_service.get(&service).and_then(|&slot| self.cards.get_mut(slot as usize))
        {
            card.calls = *counted;
        }
        is_first
    }

    /// Takes over from another listings what the store does not hold.
    pub(crate) fn remember(&mut self, other: &Self) {
        if let Some(partners) = other.owners.partners() {
            self.set_partners(partners.clone(), 0);
        }
        for (service, calls) in &other.calls {
            self.completed(*service, *calls);
        }
    }

    /// Moves the listings of an owner to the class that it is in now.
    fn classify(&mut self, id: OwnerId, now_secs: u64) {
        let Some((before, after)) = self.owners.classify(id, now_secs) else { return };
        let slots = self.owners.get(id).map_or(&[][..], |owner| &owner.slots);
        for &slot in slots {
            let Some(entry) = self.slots.get(slot as usize).and_then(Option::as_ref) else { continue };
            if let Some(places) = self.classes.of_mut(before) {
                places.remove(entry.brought_by, entry.first_seen_secs, slot);
            }
            if let Some(places) = self.classes.of_mut(after) {
                places.add(entry.brought_by, entry.first_seen_secs, slot);
            }
        }
    }

    /// Removes what belongs to owners that have been away too long or are in other shards than are kept, and finds out who
    /// is no newcomer any more.
    pub(crate) fn sweep(&mut self, now_secs: u64) -> Vec<RemovedListing> {
        let ids: Vec<OwnerId> = self.owners.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.classify(id, now_secs));
        let leaving = self.owners.iter().filter(|(_, owner)| self.owners.has_left(owner, now_secs));
        let mut slots: Vec<Slot> = leaving.flat_map(|(_, owner)| owner.slots.iter().copied()).collect();
        slots.extend(self.of_other_shards());
        slots.sort_unstable();
        slots.dedup();
        let left: Vec<RemovedListing> = slots.into_iter().filter_map(|slot| self.left(slot)).collect();
        left.iter().for_each(|left| self.remove(left.slot));
        left
    }

    /// Listings that are here since more shards were kept, or since this node had to do with their owners. Nobody leaves
    /// before it is told who those are.
    fn of_other_shards(&self) -> Vec<Slot> {
        if self.shards == Shards::ALL || self.owners.partners().is_none() {
            return Vec::new();
        }
        let is_other = |entry: &Entry| {
            let owner = self.owners.get(entry.owner);
            let is_kept = owner
                .is_some_and(|owner| self.shards.has(owner.shard) || self.owners.is_related(owner.address));
            !is_kept && !self.calls.contains_key(&entry.service)
        };
        self.iter().filter(|(_, entry)| is_other(entry)).map(|(slot, _)| slot).collect()
    }

    const fn update_rate(&self) -> Rate {
        Rate { burst: self.limits.updates_burst, per: 1, per_secs: self.limits.update_every_secs }
    }
}

fn beginning(name: &str) -> u128 {
    let mut bytes = [0; 16];
    let lower = name.chars().take(bytes.len()).flat_map(char::to_lowercase).collect::<String>();
    let length = lower.len().min(bytes.len());
    bytes[..length].copy_from_slice(&lower.as_bytes()[..length]);
    u128::from_be_bytes(bytes)
}
