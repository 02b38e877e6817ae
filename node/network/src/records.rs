//! The node records this node knows: its own, those it found, and those it was given. Those nearest to it, which it promised to
//! keep for the directory, are in [`farthing_directory`] besides, whose answers have whatever is newer here.
//!
//! A record enters after its size, network, signature, key, sequence number and time were checked, in that
//! order. A full store shares its places out ([`seats`]). That a record left says nothing of its owner. An expired
//! record that supersedes another is kept too: it says that its node has left.

mod check;
mod seats;

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::Arc,
};

use farthing_directory::Intake;
use farthing_protocol::{
    Address, NodeRecord, Packed, Verified, agreement::item, limits, reconciliation::Item,
    record::FLAG_KEEPS_ALL,
};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::check::{RECORD_VALUE_BYTES_MAX, Rejected, decode, verify};
use self::seats::{Bringer, Seats, Tenure};
use crate::{addresses, clocks::Clocks, neighbour_origin::NeighbourOrigin, partners::Partners};

/// The time for which a record that says goodbye is kept, so that an older one is not believed again: that may be dated
/// ahead.
const GOODBYE_SECS: u64 = limits::RECORD_LIFETIME_SECS_MAX + limits::CLOCK_SKEW_SECS_MAX;
/// The time after which an owner makes room for no newcomer.
const SETTLED_SECS: u64 = 7 * 24 * 3600;
/// The time between two looks through the store for what is over.
const SWEEP_EVERY_SECS: u64 = 60;
/// Draws for each record of a sample: some are of no use.
const DRAWN_FOR_EACH: usize = 4;

/// Owners heard of and not asked for yet, at least: what all neighbours may offer within seconds.
const HEARD_MAX: usize = 16_384;
/// Records of one source whose signatures are checked in a minute. An honest peer offers its own, and some
/// others when it is met.
pub(crate) const OFFERS_PER_MINUTE_MAX: u32 = 240;

/// The record of one owner, and its standing.
#[derive(Debug)]
struct RecordEntry {
    record: Packed<NodeRecord>,
    seq: u64,
    issued_secs: u64,
    expires_secs: u64,
    /// True if its node says that it keeps all listings.
    keeps_all: bool,
    /// The time since which its owner has been here.
    since_secs: u64,
    bringer: Bringer,
    tenure: Tenure,
    /// Its place among those of its tenure and bringer.
    seat: usize,
    /// Its place in [`Records::owners`].
    at: usize,
}

impl RecordEntry {
    /// As [`NodeRecord::check_time`] says.
    const fn is_alive(&self, now_secs: u64) -> bool {
        self.issued_secs <= now_secs.saturating_add(limits::CLOCK_SKEW_SECS_MAX)
            && self.expires_secs > now_secs
    }
}

/// A node whose record says that it keeps all listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexNode {
    pub wallet: Address,
    /// The network of the first address that its record names and that is public.
    pub network: Option<IpAddr>,
}

/// A record that changed, as it is written down; or that it is gone.
pub(crate) type Change = (Address, Option<StoredRecord>);

/// A record as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    /// As it travels. To be verified when it is read.
    pub(crate) value: Vec<u8>,
    /// The time since which its owner has been here.
    pub(crate) since_secs: u64,
}

/// The store itself. Pure but for the clock, which callers pass in.
pub(crate) struct Records {
    own: Address,
    entries: HashMap<Address, RecordEntry>,
    /// All owners, in no order: what can be drawn from and looked through in parts.
    owners: Vec<Address>,
    seats: Seats,
    records_max: usize,
    swept_secs: u64,
    intake: Intake<NeighbourOrigin>,
    /// This node's clock, as the peers that give records show it.
    pub(crate) clocks: Clocks,
    /// Wallets whose records are never displaced.
    partners: Partners,
    /// Owners whose records came since somebody asked last, and when each expires: also if there was no room for them,
    /// because that says nothing of whether their owners are there.
    heard: HashMap<Address, u64>,
    /// Wallets whose entries changed since they were last stored; nothing while nobody stores them.
    changed: Option<HashSet<Address>>,
}

impl Records {
    /// For a node with channels with `partners`.
    pub(crate) fn new(own: Address, records_max: usize, partners: Partners) -> Self {
        Self {
            own,
            entries: HashMap::new(),
            owners: Vec::new(),
            seats: Seats::default(),
            records_max,
            swept_secs: 0,
            intake: Intake::new(OFFERS_PER_MINUTE_MAX),
            clocks: Clocks::default(),
            partners,
            heard: HashMap::new(),
            changed: None,
        }
    }

    /// Counts a record that `source` offers. An error means that it is one too many for a signature check.
    pub(crate) fn hear(&mut self, source: NeighbourOrigin, now_secs: u64) -> Result<(), Rejected> {
        if self.intake.admits(source, now_secs) { Ok(()) } else { Err(Rejected::TooMany) }
    }

    /// Checks that the record, as far as it can be believed, is newer than what is held.
    pub(crate) fn check_news(&self, claimed: &NodeRecord) -> Result<(), Rejected> {
        match self.seq(claimed.public_key.address()) {
            Some(held) if held >= claimed.seq => Err(Rejected::NotNewer { held }),
            _ => Ok(()),
        }
    }

    /// Takes a verified record that `source` gave us.
    pub(crate) fn insert(
        &mut self,
        record: &Verified<NodeRecord>,
        source: NeighbourOrigin,
        now_secs: u64,
    ) -> Result<(), Rejected> {
        self.sweep(now_secs);
        self.check_news(record)?;
        let owner = record.signer();
        let is_held = self.entries.contains_key(&owner);
        // One that has expired says goodbye for its node, where an earlier one is held.
        if !is_held || !record.has_expired(now_secs) {
            record.check_time(now_secs).map_err(Rejected::Time)?;
        }
        self.note_heard(owner, record.expires_secs);
        if !is_held {
            self.make_room(owner, Some(source))?;
        }
        self.put(record, Some(source), now_secs);
        self.note_change(owner);
        Ok(())
    }

    /// Takes the owners whose records came since the last call, and when each expires: in the past after a goodbye.
    pub(crate) fn take_heard(&mut self) -> HashMap<Address, u64> {
        std::mem::take(&mut self.heard)
    }

    fn note_heard(&mut self, owner: Address, expires_secs: u64) {
        // Nobody may be asking.
        if self.heard.len() < self.records_max.max(HEARD_MAX) || self.heard.contains_key(&owner) {
            self.heard.insert(owner, expires_secs);
        }
    }

    /// Puts the record in place of the one that is held. Who is new has come at `since_secs`.
    fn put(&mut self, record: &Verified<NodeRecord>, bringer: Bringer, since_secs: u64) {
        let owner = record.signer();
        let (seq, issued_secs, expires_secs) = (record.seq, record.issued_secs, record.expires_secs);
        let keeps_all = record.flags & FLAG_KEEPS_ALL != 0;
        let record = record.pack();
        if let Some(held) = self.entries.get_mut(&owner) {
            *held = RecordEntry { record, seq, issued_secs, expires_secs, keeps_all, ..*held };
            return;
        }
        let is_settled = since_secs.saturating_add(SETTLED_SECS) <= self.swept_secs;
        let tenure = if is_settled { Tenure::Settled } else { Tenure::Young };
        let (at, seat) = (self.owners.len(), self.seats.add(tenure, bringer, owner));
        self.owners.push(owner);
        let entry = RecordEntry {
            record,
            seq,
            issued_secs,
            expires_secs,
            keeps_all,
            since_secs,
            bringer,
            tenure,
            seat,
            at,
        };
        self.entries.insert(owner, entry);
    }

    /// Removes one record when there is no room for another, of `owner`.
    fn make_room(&mut self, owner: Address, bringer: Bringer) -> Result<(), Rejected> {
        if self.entries.len() < self.records_max {
            return Ok(());
        }
        let leaving = self.seats.leaving((owner, Tenure::Young, bringer), self.records_max, self.since());
        self.remove(leaving.ok_or(Rejected::StoreFull)?);
        Ok(())
    }

    /// Says when an owner came, and nothing of one that never leaves.
    fn since(&self) -> impl Fn(&Address) -> Option<u64> {
        move |owner: &Address| {
            self.entries.get(owner).filter(|_| !self.is_kept(owner)).map(|entry| entry.since_secs)
        }
    }

    fn is_kept(&self, owner: &Address) -> bool {
        *owner == self.own || self.partners.contains(owner)
    }

    /// Puts an owner among those that have been here for long.
    fn settle(&mut self, owner: Address) {
        let Some(entry) = self.entries.get(&owner) else { return };
        let (tenure, bringer, seat) = (entry.tenure, entry.bringer, entry.seat);
        self.leave_seat(tenure, bringer, seat);
        if let Some(entry) = self.entries.get_mut(&owner) {
            (entry.tenure, entry.seat) = (Tenure::Settled, self.seats.add(Tenure::Settled, bringer, owner));
        }
    }

    /// Takes this seat from whoever has it.
    fn leave_seat(&mut self, tenure: Tenure, bringer: Bringer, seat: usize) {
        if let Some(moved) = self.seats.remove(tenure, bringer, seat)
            && let Some(moved) = self.entries.get_mut(&moved)
        {
            moved.seat = seat;
        }
    }

    /// Once in a while forgets what is over, and finds who has been here for long.
    fn sweep(&mut self, now_secs: u64) {
        if self.swept_secs.abs_diff(now_secs) < SWEEP_EVERY_SECS {
            return;
        }
        self.swept_secs = now_secs;
        self.remove_expired(now_secs);
        let has_settled = |entry: &RecordEntry| {
            entry.tenure == Tenure::Young && entry.since_secs.saturating_add(SETTLED_SECS) <= now_secs
        };
        self.which(has_settled).into_iter().for_each(|owner| self.settle(owner));
    }

    /// Forgets what expired long enough ago that nothing older can be alive either.
    pub(crate) fn remove_expired(&mut self, now_secs: u64) {
        let is_over = |entry: &RecordEntry| entry.issued_secs.saturating_add(GOODBYE_SECS) <= now_secs;
        self.which(is_over).into_iter().for_each(|owner| self.remove(owner));
    }

    fn which(&self, is_meant: impl Fn(&RecordEntry) -> bool) -> Vec<Address> {
        self.entries.iter().filter(|(_, entry)| is_meant(entry)).map(|(owner, _)| *owner).collect()
    }

    pub(crate) fn remove(&mut self, owner: Address) {
        let Some(entry) = self.entries.remove(&owner) else { return };
        self.note_change(owner);
        self.leave_seat(entry.tenure, entry.bringer, entry.seat);
        self.owners.swap_remove(entry.at);
        if let Some(moved) = self.owners.get(entry.at)
            && let Some(moved) = self.entries.get_mut(moved)
        {
            moved.at = entry.at;
        }
    }

    /// From now on, what changes is remembered until [`Self::take_changed`] asks.
    pub(crate) fn track_changes(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// Puts back a record that was stored, a goodbye as well: it was believed when it came. What is over or superseded is
    /// to be removed from where it was stored.
    pub(crate) fn restore(
        &mut self,
        owner: Address,
        record: Option<&Verified<NodeRecord>>,
        since_secs: u64,
        now_secs: u64,
    ) {
        self.sweep(now_secs);
        let taken = record.is_some_and(|record| self.take_back(record, since_secs, now_secs));
        if let Some(changed) = &mut self.changed {
            if taken {
                changed.remove(&owner);
            } else {
                changed.insert(owner);
            }
        }
    }

    fn take_back(&mut self, record: &Verified<NodeRecord>, since_secs: u64, now_secs: u64) -> bool {
        let (owner, is_alive) = (record.signer(), record.check_time(now_secs).is_ok());
        let is_over = record.issued_secs.saturating_add(GOODBYE_SECS) <= now_secs;
        let is_goodbye = record.expires_secs <= now_secs && !is_over;
        if self.check_news(record).is_err() || !(is_alive || is_goodbye) {
            return false;
        }
        if !self.entries.contains_key(&owner) && self.make_room(owner, None).is_err() {
            return false;
        }
        if is_alive {
            self.note_heard(owner, record.expires_secs);
        }
        self.put(record, None, since_secs);
        true
    }

    /// Some of the wallets whose entries changed, each with its record, or without if it is gone.
    pub(crate) fn take_changed(&mut self, count_max: usize) -> Vec<Change> {
        let Some(changed) = &mut self.changed else { return Vec::new() };
        let some: Vec<Address> = changed.iter().take(count_max).copied().collect();
        for owner in &some {
            changed.remove(owner);
        }
        let stored = |entry: &RecordEntry| StoredRecord {
            value: entry.record.as_bytes().to_vec(),
            since_secs: entry.since_secs,
        };
        some.into_iter().map(|owner| (owner, self.entries.get(&owner).map(stored))).collect()
    }

    fn note_change(&mut self, owner: Address) {
        if let Some(changed) = &mut self.changed {
            changed.insert(owner);
        }
    }

    /// The newest record of `owner`, which may say that it has left; see [`NodeRecord::check_time`].
    pub(crate) fn get(&self, owner: Address) -> Option<Verified<NodeRecord>> {
        self.entries.get(&owner).map(|entry| entry.record.unpack())
    }

    /// The sequence number of that record.
    pub(crate) fn seq(&self, owner: Address) -> Option<u64> {
        self.entries.get(&owner).map(|entry| entry.seq)
    }

    /// The records that may be used at `now_secs`, as items of a comparison, each with the time at which it was issued.
    pub(crate) fn items(&self, now_secs: u64) -> Vec<(u64, Item)> {
        let alive = self.entries.iter().filter(|(_, entry)| entry.is_alive(now_secs));
        alive.map(|(owner, entry)| (entry.issued_secs, item(*owner, entry.seq))).collect()
    }

    /// The number of places that are free.
    pub(crate) fn room(&self) -> usize {
        self.records_max.saturating_sub(self.entries.len())
    }

    /// Every record that may be used at `now_secs`.
    pub(crate) fn alive(&self, now_secs: u64) -> impl Iterator<Item = Verified<NodeRecord>> {
        self.alive_of(&self.owners, now_secs)
    }

    /// The same of a part of all records, `count` from number `first` on.
    pub(crate) fn part_alive(
        &self,
        first: usize,
        count: usize,
        now_secs: u64,
    ) -> impl Iterator<Item = Verified<NodeRecord>> {
        let part = self.owners.get(first..).unwrap_or_default();
        self.alive_of(&part[..count.min(part.len())], now_secs)
    }

    fn alive_of(&self, owners: &[Address], now_secs: u64) -> impl Iterator<Item = Verified<NodeRecord>> {
        let entries = owners.iter().filter_map(|owner| self.entries.get(owner));
        entries.filter(move |entry| entry.is_alive(now_secs)).map(|entry| entry.record.unpack())
    }

    /// Records that may be used at `now_secs`, `count` at most, drawn by lot from all but that of `but`. A full store is
    /// not looked through for the few.
    pub(crate) fn sample(&self, count: usize, but: Address, now_secs: u64) -> Vec<Verified<NodeRecord>> {
        let (lot, all) = (RandomState::new(), self.owners.len());
        // Draws without putting back (Fisher and Yates), of which those that moved are remembered.
        let mut moved: HashMap<usize, usize> = HashMap::new();
        let mut sample = Vec::new();
        for n in 0..all.min(count.saturating_mul(DRAWN_FOR_EACH)) {
            if sample.len() == count {
                break;
            }
            let left = all - n;
            let drawn = n + usize::try_from(lot.hash_one(n) % left as u64).unwrap_or(0);
            let at = moved.get(&drawn).copied().unwrap_or(drawn);
            moved.insert(drawn, moved.get(&n).copied().unwrap_or(n));
            if self.owners[at] != but {
                sample.extend(self.alive_of(&self.owners[at..=at], now_secs));
            }
        }
        sample
    }

    /// Those of `named` whose records may be used at `now_secs` and say that all listings are kept, and `count` of all such at
    /// most, from a place that is drawn by lot.
    pub(crate) fn index_nodes(&self, named: &[Address], count: usize, now_secs: u64) -> Vec<IndexNode> {
        let lot = RandomState::new().hash_one(now_secs) % self.owners.len().max(1) as u64;
        let (before, after) = self.owners.split_at(usize::try_from(lot).unwrap_or(0));
        let meant = |owner: &Address| {
            let entry =
                self.entries.get(owner).filter(|entry| entry.keeps_all && entry.is_alive(now_secs))?;
            let network = || {
                let named = addresses::of_record(&entry.record.unpack(), true);
                named.iter().find_map(addresses::public_network)
            };
            (*owner != self.own).then(|| IndexNode { wallet: *owner, network: network() })
        };
        let drawn = after.iter().chain(before).filter_map(meant).take(count);
        named.iter().filter_map(meant).chain(drawn).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The store, shared between the directory, the info protocol and look-ups. Locked for moments; signatures
/// are verified outside.
#[derive(Clone)]
pub(crate) struct SharedRecords(Arc<Mutex<Records>>);

impl SharedRecords {
    pub(crate) fn new(records: Records) -> Self {
        Self(Arc::new(Mutex::new(records)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock()
    }

    /// A copy of the newest record of `owner`.
    pub(crate) fn get(&self, owner: Address) -> Option<Verified<NodeRecord>> {
        self.lock().get(owner)
    }

    /// A copy of the newest record of `owner`, if it may be used now.
    pub(crate) fn get_alive(&self, owner: Address) -> Option<Verified<NodeRecord>> {
        self.get(owner).filter(|record| record.check_time(crate::now_secs()).is_ok())
    }
}

impl std::fmt::Debug for SharedRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedRecords({})", self.lock().len())
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
