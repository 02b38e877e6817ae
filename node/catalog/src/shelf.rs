//! What is known of every listing without reading it: the catalog's memory, and the rules of taking a listing.
//!
//! [`Shelf::check`] decides by looking only; it is asked before a signature is checked and once more by
//! [`Shelf::put`], which the writer alone calls. Each listing has a slot, a small number that stays the same
//! while it is here; the search index knows listings by it.
//!
//! Invariant: at most `listings_max` entries, of which at most `strangers_max` belong to owners whose node
//! record was never seen.

use std::collections::{BTreeSet, HashMap};

use farthing_protocol::{Address, Listing, ServiceId, limits, listing::ServiceKind, sync::ItemName};

use crate::{
    budget::{Bucket, Rate},
    options::{Limits, Options},
    verdict::{Reason, Source},
};

mod names;
mod owners;
mod words;

pub use owners::State;
pub(crate) use owners::{Owner, OwnerId, Owners};
pub(crate) use words::WordId;
use {names::Names, words::Words};

/// A place on the shelf.
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
    /// Who brought it, while its owner is a stranger.
    brought_by: Option<Address>,
}

/// What search looks at of every listing, in one cache line: a search without words looks at all of them.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Card {
    pub(crate) price_micros: u64,
    pub(crate) updated_secs: u64,
    pub(crate) owner: OwnerId,
    pub(crate) category: WordId,
    tags: [WordId; limits::LISTING_TAGS_MAX],
    tags_count: u8,
    pub(crate) kind: ServiceKind,
    /// Whether there is a listing here, and it is not a tombstone.
    pub(crate) listed: bool,
}

impl Card {
    const EMPTY: Self = Self {
        price_micros: 0,
        updated_secs: 0,
        owner: 0,
        category: 0,
        tags: [0; limits::LISTING_TAGS_MAX],
        tags_count: 0,
        kind: ServiceKind::Rest,
        listed: false,
    };

    pub(crate) fn tags(&self) -> &[WordId] {
        &self.tags[..usize::from(self.tags_count)]
    }
}

/// A listing that made room or has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) service: ServiceId,
    pub(crate) item: ItemName,
    pub(crate) slot: Slot,
}

/// What became of the shelf when a listing was put there.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) slot: Slot,
    pub(crate) first_seen_secs: u64,
    pub(crate) brought_by: Option<Address>,
    /// The version before.
    pub(crate) replaced: Option<ItemName>,
    pub(crate) left: Vec<Left>,
}

/// A name that an older listing of another owner has, or nearly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookAlike {
    /// The other listing.
    pub service: ServiceId,
    pub name: String,
    pub owner: Address,
    /// Whether this node knew the other one at least a day earlier. If not, both carry the warning: the dates
    /// in listings are their owners' word.
    pub older: bool,
}

/// Listings by everything they are looked for.
#[derive(Debug)]
pub(crate) struct Shelf {
    network: String,
    own: Address,
    limits: Limits,
    slots: Vec<Option<Entry>>,
    /// As many as slots.
    cards: Vec<Card>,
    free: Vec<Slot>,
    by_service: HashMap<ServiceId, Slot>,
    by_item: HashMap<ItemName, Slot>,
    pub(crate) owners: Owners,
    pub(crate) words: Words,
    names: Names,
    /// Strangers' listings by the neighbour that brought them.
    strangers: HashMap<Option<Address>, BTreeSet<Slot>>,
    strangers_count: usize,
    tombstones: usize,
    revision: u64,
}

/// Seen this much earlier, a listing is the older one. Within it, a node may have learned both in any order.
const OLDER_BY_SECS: u64 = 24 * 3600;
/// Look-alikes compared for one listing: many alike are one warning.
const CANDIDATES_MAX: usize = 32;

impl Shelf {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            network: options.network.clone(),
            own: options.own,
            limits: options.limits.clone(),
            slots: Vec::new(),
            cards: Vec::new(),
            free: Vec::new(),
            by_service: HashMap::new(),
            by_item: HashMap::new(),
            owners: Owners::new(options.own, options.limits.clone()),
            words: Words::default(),
            names: Names::default(),
            strangers: HashMap::new(),
            strangers_count: 0,
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
        self.strangers_count
    }

    /// Changes whenever the set of versions does.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// What search looks at, by slot.
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

    /// Whether the listing would be taken; cheap, and nothing changes.
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
        if listing.owner != self.owners.address(held.owner) {
            return Err(Reason::OtherOwner);
        }
        // An owner that signs two listings with one number must not make nodes disagree for ever.
        if (listing.seq, item) <= (held.seq, held.item) {
            return Err(Reason::Superseded);
        }
        if listing.owner == self.own {
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
            let slot = self.place(None, listing, item, now_secs, updates, source.peer());
            self.add_name(slot);
            let brought_by = source.peer();
            return Ok(Placed { slot, first_seen_secs: now_secs, brought_by, replaced: None, left });
        };
        let (first_seen_secs, mut updates) = (held.first_seen_secs, held.updates);
        let (replaced, brought_by) = (Some(held.item), held.brought_by);
        updates.take(self.update_rate(), now_secs);
        self.remove(slot);
        self.place(Some(slot), listing, item, first_seen_secs, updates, brought_by);
        self.add_name(slot);
        Ok(Placed { slot, first_seen_secs, brought_by, replaced, left: Vec::new() })
    }

    /// Puts back a listing that the store held. Returns its slot, which is another one when `slot` is taken.
    pub(crate) fn restore(
        &mut self,
        slot: Slot,
        listing: &Listing,
        item: ItemName,
        first_seen_secs: u64,
        brought_by: Option<Address>,
    ) -> Slot {
        let usable = self.get(slot).is_none() && (slot as usize) < self.limits.listings_max.saturating_mul(2);
        let updates = Bucket::full(self.update_rate(), first_seen_secs);
        self.place(usable.then_some(slot), listing, item, first_seen_secs, updates, brought_by)
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
        first_seen_secs: u64,
        updates: Bucket,
        brought_by: Option<Address>,
    ) -> Slot {
        let slot = slot.or_else(|| self.free.pop()).unwrap_or_else(|| self.slots.len() as Slot);
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, None);
            self.cards.resize(slot as usize + 1, Card::EMPTY);
        }
        if self.free.last() == Some(&slot) {
            // A new version takes the slot that the one before just left.
            self.free.pop();
        }
        let owner = self.owners.id_of(listing.owner, first_seen_secs);
        self.owners.add_slot(owner, slot);
        if self.owners.get(owner).is_some_and(|owner| self.owners.is_stranger(owner)) {
            self.strangers.entry(brought_by).or_default().insert(slot);
            self.strangers_count += 1;
        }
        if listing.tombstone {
            self.tombstones += 1;
        }
        self.by_service.insert(listing.service, slot);
        self.by_item.insert(item, slot);
        self.cards[slot as usize] = self.card(listing, owner);
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

    fn card(&mut self, listing: &Listing, owner: OwnerId) -> Card {
        let mut card = Card {
            price_micros: listing.price.micros(),
            updated_secs: listing.updated_secs,
            owner,
            category: self.words.add(&listing.category),
            kind: listing.kind,
            listed: !listing.tombstone,
            ..Card::EMPTY
        };
        for (place, tag) in card.tags.iter_mut().zip(&listing.tags) {
            *place = self.words.add(tag);
            card.tags_count += 1;
        }
        card
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
        self.no_stranger(slot, entry.brought_by);
        self.owners.remove_slot(entry.owner, slot);
        if entry.tombstone {
            self.tombstones -= 1;
        } else {
            self.names.remove(&entry.name, slot);
        }
        let card = std::mem::replace(&mut self.cards[slot as usize], Card::EMPTY);
        self.words.release(card.category);
        card.tags().iter().for_each(|&tag| self.words.release(tag));
        self.free.push(slot);
        self.revision += 1;
    }

    fn no_stranger(&mut self, slot: Slot, brought_by: Option<Address>) {
        let Some(slots) = self.strangers.get_mut(&brought_by) else { return };
        if slots.remove(&slot) {
            self.strangers_count -= 1;
        }
        if slots.is_empty() {
            self.strangers.remove(&brought_by);
        }
    }

    /// Which listings leave for a new one, in this order: strangers' beyond their share, from the neighbour that
    /// brought most of them; then those of the owners that have been away longest. Live ones never do.
    fn make_room(&self, owner: Address, source: Source, now_secs: u64) -> Result<Vec<Left>, Reason> {
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
        if left.is_empty() { Err(Reason::Full) } else { Ok(left) }
    }

    fn strangers_room(&self, source: Source) -> Result<Left, Reason> {
        let most = self.strangers.iter().max_by_key(|(_, slots)| slots.len());
        let brought = self.strangers.get(&source.peer()).map_or(0, BTreeSet::len);
        let (_, slots) = most.filter(|(_, slots)| slots.len() > brought + 1).ok_or(Reason::Full)?;
        slots.last().and_then(|&slot| self.left(slot)).ok_or(Reason::Full)
    }

    /// An owner keeps as many tombstones as it may have listings: the oldest makes room.
    fn oldest_tombstone(&self, listing: &Listing) -> Option<Left> {
        let (_, owner) = self.owners.find(listing.owner).filter(|_| listing.tombstone)?;
        let held = || owner.slots.iter().filter_map(|&slot| Some((slot, self.get(slot)?)));
        let tombstones: Vec<(Slot, &Entry)> = held().filter(|(_, entry)| entry.tombstone).collect();
        if tombstones.len() < self.limits.per_owner_max {
            return None;
        }
        let (slot, _) = tombstones.into_iter().min_by_key(|(_, entry)| entry.updated_secs)?;
        self.left(slot)
    }

    fn left(&self, slot: Slot) -> Option<Left> {
        self.get(slot).map(|entry| Left { service: entry.service, item: entry.item, slot })
    }

    /// A node record of this owner is valid until `expires_secs`.
    pub(crate) fn owner_seen(&mut self, owner: Address, expires_secs: u64) {
        let Some(id) = self.owners.seen(owner, expires_secs) else { return };
        let slots = self.owners.get(id).map(|owner| owner.slots.clone()).unwrap_or_default();
        for slot in slots {
            let brought_by = self.slots[slot as usize].as_mut().and_then(|entry| entry.brought_by.take());
            self.no_stranger(slot, brought_by);
        }
    }

    /// Removes what belongs to owners that have been away too long.
    pub(crate) fn sweep(&mut self, now_secs: u64) -> Vec<Left> {
        let leaving = self.owners.iter().filter(|(_, owner)| self.owners.has_left(owner, now_secs));
        let slots = leaving.flat_map(|(_, owner)| owner.slots.iter().copied());
        let left: Vec<Left> = slots.filter_map(|slot| self.left(slot)).collect();
        left.iter().for_each(|left| self.remove(left.slot));
        left
    }

    /// The older listing of another owner that this one may be taken for.
    pub(crate) fn look_alike(&self, slot: Slot) -> Option<LookAlike> {
        let entry = self.get(slot)?;
        let age = |other: &Entry| (other.first_seen_secs, other.created_secs, other.service);
        let mut others: Vec<&Entry> = self
            .names
            .candidates(&entry.name)
            .into_iter()
            .filter_map(|slot| self.get(slot))
            .filter(|other| other.owner != entry.owner)
            .filter(|other| other.first_seen_secs < entry.first_seen_secs.saturating_add(OLDER_BY_SECS))
            .collect();
        others.sort_unstable_by_key(|other| age(other));
        let mut others = others.into_iter().take(CANDIDATES_MAX);
        let other = others.find(|other| names::alike(&other.name, &entry.name))?;
        Some(LookAlike {
            service: other.service,
            name: other.name.to_string(),
            owner: self.owners.address(other.owner),
            older: other.first_seen_secs.saturating_add(OLDER_BY_SECS) <= entry.first_seen_secs,
        })
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
