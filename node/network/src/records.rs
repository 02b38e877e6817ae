//! The node records this node knows: its own, those it found, and those the directory asks it to keep.
//!
//! A record enters after its size, key, network, time, signature and sequence number were checked, in that
//! order. A full store keeps the records closest to this node by XOR, which are the ones the directory will
//! ask it for. An expired record that supersedes another is kept too: it says that its node has left.

mod store;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use farthing_protocol::{
    Address, NodeRecord, PublicKey, Signed, Verified, limits,
    signature::SignatureError,
    signed::{DocumentError, InvalidDocument},
    wire::{self, NetworkName},
};
use libp2p::{
    PeerId,
    kad::{KBucketDistance, KBucketKey},
};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::store::DirectoryStore;
use crate::{clocks::Clocks, identity, intake::Intake, partners::Partners};

/// A record as it travels: the document's bytes and about 75 more for signature and framing.
pub(crate) const RECORD_VALUE_BYTES_MAX: usize = limits::RECORD_BYTES_MAX + 128;
/// The time for which a record that says goodbye is kept, so that an older one is not believed again.
const GOODBYE_SECS: u64 = limits::RECORD_LIFETIME_SECS_MAX;

/// Owners heard of and not asked for yet, at least: what all neighbours may offer within seconds.
const HEARD_MAX: usize = 16_384;
/// Records of one source whose signatures are checked in a minute. An honest peer offers its own, and some
/// others when it is met.
const OFFERS_PER_MINUTE_MAX: u32 = 240;

/// The reason that a record was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejected {
    #[error("the record has {0} bytes")]
    TooLarge(usize),
    #[error("not a record: {0}")]
    Malformed(String),
    #[error("the signature is wrong")]
    Forged,
    #[error("the record belongs to {0}, not to the wallet it is filed under")]
    WrongKey(Address),
    #[error("the record is of another network")]
    OtherNetwork,
    #[error(transparent)]
    Time(InvalidDocument),
    #[error("sequence number {held} is held already")]
    NotNewer { held: u64 },
    #[error("the source offers too many records; try again in a minute")]
    TooMany,
    #[error("the source already has its share of the store")]
    SourceFull,
    #[error("the store is full of closer records")]
    StoreFull,
}

/// Reads and verifies a record that is filed under `expected`, if anything is expected. Cheapest checks first.
pub(crate) fn verify(
    record: Signed<NodeRecord>,
    expected: Option<Address>,
    network: &NetworkName,
) -> Result<Verified<NodeRecord>, Rejected> {
    let record = record.verify().map_err(|error| match error {
        DocumentError::TooLarge { bytes, .. } => Rejected::TooLarge(bytes),
        DocumentError::Signature(SignatureError::Malformed | SignatureError::WrongSigner { .. }) => {
            Rejected::Forged
        }
        DocumentError::Malformed(_) | DocumentError::Invalid(_) => Rejected::Malformed(error.to_string()),
    })?;
    if record.network != network.as_str() {
        return Err(Rejected::OtherNetwork);
    }
    match expected {
        Some(expected) if record.signer() != expected => Err(Rejected::WrongKey(record.signer())),
        _ => Ok(record),
    }
}

/// The same for a record's bytes.
pub(crate) fn decode(
    value: &[u8],
    expected: Option<Address>,
    network: &NetworkName,
) -> Result<Verified<NodeRecord>, Rejected> {
    if value.len() > RECORD_VALUE_BYTES_MAX {
        return Err(Rejected::TooLarge(value.len()));
    }
    let record = wire::decode(value).map_err(|error| Rejected::Malformed(error.to_string()))?;
    verify(record, expected, network)
}

struct RecordEntry {
    record: Verified<NodeRecord>,
    source: Address,
    distance: KBucketDistance,
}

/// The store itself. Pure but for the clock, which callers pass in.
pub(crate) struct Records {
    own: Address,
    own_key: KBucketKey<PeerId>,
    entries: HashMap<Address, RecordEntry>,
    by_distance: BTreeSet<(KBucketDistance, Address)>,
    by_source: HashMap<Address, usize>,
    records_max: usize,
    per_source_max: usize,
    intake: Intake<Address>,
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
    pub(crate) fn new(
        own: &PublicKey,
        records_max: usize,
        per_source_max: usize,
        partners: Partners,
    ) -> Self {
        Self {
            own: own.address(),
            own_key: identity::peer_id(own).into(),
            entries: HashMap::new(),
            by_distance: BTreeSet::new(),
            by_source: HashMap::new(),
            records_max,
            per_source_max,
            intake: Intake::new(OFFERS_PER_MINUTE_MAX),
            clocks: Clocks::default(),
            partners,
            heard: HashMap::new(),
            changed: None,
        }
    }

    /// Counts a record that `source` offers. An error means that it is one too many for a signature check.
    pub(crate) fn hear(&mut self, source: Address, now_secs: u64) -> Result<(), Rejected> {
        if self.intake.admits(source, now_secs) { Ok(()) } else { Err(Rejected::TooMany) }
    }

    /// Checks that the record, as far as it can be believed, is newer than what is held.
    pub(crate) fn check_news(&self, claimed: &NodeRecord) -> Result<(), Rejected> {
        match self.get(claimed.public_key.address()) {
            Some(held) if held.seq >= claimed.seq => Err(Rejected::NotNewer { held: held.seq }),
            _ => Ok(()),
        }
    }

    /// Takes a verified record that `source` gave us.
    pub(crate) fn insert(
        &mut self,
        record: Verified<NodeRecord>,
        source: Address,
        now_secs: u64,
    ) -> Result<(), Rejected> {
        self.check_news(&record)?;
        let owner = record.signer();
        let held = self.entries.get(&owner);
        // One that has expired says goodbye for its node, where an earlier one is held.
        if held.is_none() || !record.has_expired(now_secs) {
            record.check_time(now_secs).map_err(Rejected::Time)?;
        }
        let is_new = held.is_none();
        self.note_heard(owner, record.expires_secs);
        if is_new {
            self.make_room(owner, source, now_secs)?;
        }
        self.remove(owner);
        let distance = self.distance(owner);
        self.by_distance.insert((distance, owner));
        *self.by_source.entry(source).or_default() += 1;
        self.entries.insert(owner, RecordEntry { record, source, distance });
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

    fn make_room(&mut self, owner: Address, source: Address, now_secs: u64) -> Result<(), Rejected> {
        // A node's own word about itself never counts against its share.
        let of_source = self.by_source.get(&source).copied().unwrap_or(0);
        if source != owner
            && source != self.own
            && !self.partners.contains(&owner)
            && of_source >= self.per_source_max
        {
            return Err(Rejected::SourceFull);
        }
        if self.entries.len() < self.records_max {
            return Ok(());
        }
        self.remove_expired(now_secs);
        if self.entries.len() < self.records_max {
            return Ok(());
        }
        // Wallets that are close to a place in the directory can be had for the asking. They displace each other, and
        // nobody with whom there are channels.
        let is_kept = |wallet: &Address| *wallet == self.own || self.partners.contains(wallet);
        let farthest = self.by_distance.iter().rev().find(|(_, other)| !is_kept(other)).copied();
        match farthest {
            Some((distance, other)) if is_kept(&owner) || self.distance(owner) < distance => {
                self.remove(other);
                Ok(())
            }
            _ => Err(Rejected::StoreFull),
        }
    }

    /// Forgets what expired long enough ago that nothing older can be alive either.
    pub(crate) fn remove_expired(&mut self, now_secs: u64) {
        let gone: Vec<Address> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.record.issued_secs.saturating_add(GOODBYE_SECS) <= now_secs)
            .map(|(owner, _)| *owner)
            .collect();
        gone.into_iter().for_each(|owner| self.remove(owner));
    }

    pub(crate) fn remove(&mut self, owner: Address) {
        let Some(entry) = self.entries.remove(&owner) else { return };
        self.note_change(owner);
        self.by_distance.remove(&(entry.distance, owner));
        if let Some(count) = self.by_source.get_mut(&entry.source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&entry.source);
            }
        }
    }

    /// From now on, what changes is remembered until [`Self::take_changed`] asks.
    pub(crate) fn track_changes(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// Puts back a record that was stored, as its owner's own word. What is not taken any more, because it
    /// expired or was superseded, is to be removed from where it was stored.
    pub(crate) fn restore(&mut self, owner: Address, record: Option<Verified<NodeRecord>>, now_secs: u64) {
        let taken = record.is_some_and(|record| self.insert(record, owner, now_secs).is_ok());
        if let Some(changed) = &mut self.changed {
            if taken {
                changed.remove(&owner);
            } else {
                changed.insert(owner);
            }
        }
    }

    /// Some of the wallets whose entries changed, each with its record as it travels, or without if it is gone.
    pub(crate) fn take_changed(&mut self, count_max: usize) -> Vec<(Address, Option<Vec<u8>>)> {
        let Some(changed) = &mut self.changed else { return Vec::new() };
        let some: Vec<Address> = changed.iter().take(count_max).copied().collect();
        changed.retain(|owner| !some.contains(owner));
        let value = |owner| self.get(owner).map(|record| wire::encode(&record.to_signed()));
        some.into_iter().map(|owner| (owner, value(owner))).collect()
    }

    fn note_change(&mut self, owner: Address) {
        if let Some(changed) = &mut self.changed {
            changed.insert(owner);
        }
    }

    /// The newest record of `owner`, which may say that it has left; see [`NodeRecord::check_time`].
    pub(crate) fn get(&self, owner: Address) -> Option<&Verified<NodeRecord>> {
        self.entries.get(&owner).map(|entry| &entry.record)
    }

    /// Every record that may be used at `now_secs`.
    pub(crate) fn alive(&self, now_secs: u64) -> impl Iterator<Item = &Verified<NodeRecord>> {
        self.entries.values().map(|entry| &entry.record).filter(move |r| r.check_time(now_secs).is_ok())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn distance(&self, owner: Address) -> KBucketDistance {
        self.own_key.distance(&KBucketKey::new(wire::record_key(owner)))
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
        self.lock().get(owner).cloned()
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
mod tests;
