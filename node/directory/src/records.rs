//! The records that this node keeps for the directory.
//!
//! A record is here as a [`VerifiedRecord`] alone, of which a [`Verifier`] saw the signature. It enters if it is newer than
//! the one held. A full store keeps the records nearest to this node, which are the ones it is asked for. One that has
//! expired is kept where it supersedes another, so that nothing older is believed again: it says that its node has left.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use crate::{
    Distance, Intake, Key,
    wire::{Filed, Name},
};

/// The longest life of a record.
pub const LIFETIME_SECS_MAX: u64 = 48 * 3600;
/// The largest difference between two honest clocks.
pub const CLOCK_SKEW_SECS_MAX: u64 = 300;
/// Records of one source that are looked at in a minute.
const OFFERS_PER_MINUTE_MAX: u32 = 240;
/// The time for which a goodbye is kept: an older record may be dated ahead of it.
const GOODBYE_SECS: u64 = LIFETIME_SECS_MAX + CLOCK_SKEW_SECS_MAX;

/// The parts of a record that the directory decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The place of the peer that signed it.
    pub publisher: Key,
    /// A later record has a higher one.
    pub seq: u64,
    /// The publisher's clock when it was signed, and when it ends.
    pub issued_secs: u64,
    /// See `issued_secs`.
    pub expires_secs: u64,
}

/// The reason that a record's bytes are not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrue {
    /// They are no record.
    Malformed,
    /// The signature is wrong.
    Forged,
    /// A true record of something else: another network, or another wallet than it is filed under.
    Elsewhere,
}

/// The driver's knowledge of records and peers.
pub trait Verifier {
    /// A record as the driver reads it.
    type Document;

    /// Checks bytes that are filed under `name`, with their signature.
    ///
    /// # Errors
    /// Why they are not believed.
    fn verify(&self, filed: &Filed) -> Result<(Facts, Self::Document), Untrue>;

    /// Returns whether a peer of this network may have such an id.
    fn is_peer(&self, id: &[u8]) -> bool;
}

/// A record whose signature was verified. A copy is cheap.
pub struct VerifiedRecord<D>(Arc<Record<D>>);

struct Record<D> {
    filed: Filed,
    key: Key,
    facts: Facts,
    document: D,
}

impl<D> VerifiedRecord<D> {
    /// Verifies a record. There is no other way to one.
    ///
    /// # Errors
    /// Why it is not believed.
    pub fn of<V: Verifier<Document = D>>(verifier: &V, filed: Filed) -> Result<Self, Untrue> {
        let (facts, document) = verifier.verify(&filed)?;
        Ok(Self(Arc::new(Record { key: Key::of(&filed.name), filed, facts, document })))
    }

    /// Returns its bytes and its name.
    pub fn filed(&self) -> &Filed {
        &self.0.filed
    }

    /// Returns its place in the key space.
    pub fn key(&self) -> Key {
        self.0.key
    }

    /// Returns the parts that the directory decides by.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// Returns the record as the driver reads it.
    pub fn document(&self) -> &D {
        &self.0.document
    }

    /// Returns whether its publisher may be dialled by it at `now_secs`.
    pub fn is_alive(&self, now_secs: u64) -> bool {
        !self.is_of_the_future(now_secs) && now_secs < self.0.facts.expires_secs
    }

    /// Returns whether no honest clock can have dated it.
    pub(crate) fn is_of_the_future(&self, now_secs: u64) -> bool {
        self.0.facts.issued_secs > now_secs.saturating_add(CLOCK_SKEW_SECS_MAX)
    }

    pub(crate) fn seq(&self) -> u64 {
        self.0.facts.seq
    }
}

impl<D> Clone for VerifiedRecord<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D> fmt::Debug for VerifiedRecord<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifiedRecord({:?}, {:?})", self.0.key, self.0.facts)
    }
}

/// The reason that a true record was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordRefusal {
    /// This one, or a later one, is held.
    #[error("sequence number {held} is held already")]
    NotNewer { held: u64 },
    /// It has expired, or is of the future.
    #[error("it has expired, or is dated in the future")]
    Time,
    /// Its source has its share.
    #[error("the source already has its share of the store")]
    SourceFull,
    /// There is no room.
    #[error("the store is full of nearer records")]
    StoreFull,
}

struct HeldRecord<D> {
    record: VerifiedRecord<D>,
    source: Key,
}

/// The records, each under its key.
pub(crate) struct Records<D> {
    own: Key,
    held: HashMap<Key, HeldRecord<D>>,
    by_distance: BTreeSet<(Distance, Key)>,
    by_source: HashMap<Key, usize>,
    records_max: usize,
    per_source_max: usize,
    intake: Intake<Key>,
}

impl<D> Records<D> {
    pub(crate) fn new(own: Key, records_max: usize, per_source_max: usize) -> Self {
        Self {
            own,
            held: HashMap::new(),
            by_distance: BTreeSet::new(),
            by_source: HashMap::new(),
            records_max,
            per_source_max,
            intake: Intake::new(OFFERS_PER_MINUTE_MAX),
        }
    }

    /// Counts a record that `source` offers, and returns whether its signature is worth a look.
    pub(crate) fn admits(&mut self, source: Key, now_secs: u64) -> bool {
        self.intake.admits(source, now_secs)
    }

    /// Takes a record that `source` gave us.
    pub(crate) fn insert(
        &mut self,
        record: VerifiedRecord<D>,
        source: Key,
        now_secs: u64,
    ) -> Result<(), RecordRefusal> {
        let key = record.key();
        let held = self.held.get(&key).map(|held| held.record.seq());
        if let Some(held) = held.filter(|held| *held >= record.seq()) {
            return Err(RecordRefusal::NotNewer { held });
        }
        let is_goodbye = held.is_some() && !record.is_of_the_future(now_secs);
        if !is_goodbye && !record.is_alive(now_secs) {
            return Err(RecordRefusal::Time);
        }
        if held.is_none() {
            self.make_room(&record, source, now_secs)?;
        }
        self.remove(key);
        self.by_distance.insert((self.own.distance(key), key));
        *self.by_source.entry(source).or_default() += 1;
        self.held.insert(key, HeldRecord { record, source });
        Ok(())
    }

    fn make_room(
        &mut self,
        record: &VerifiedRecord<D>,
        source: Key,
        now_secs: u64,
    ) -> Result<(), RecordRefusal> {
        let publisher = record.facts().publisher;
        let of_source = self.by_source.get(&source).copied().unwrap_or(0);
        // A node's own word about itself never counts against its share.
        if ![publisher, self.own].contains(&source)
            && publisher != self.own
            && of_source >= self.per_source_max
        {
            return Err(RecordRefusal::SourceFull);
        }
        if self.held.len() >= self.records_max {
            self.remove_expired(now_secs);
        }
        if self.held.len() < self.records_max {
            return Ok(());
        }
        let displaces = |(_, key): &&(Distance, Key)| {
            self.held.get(key).is_some_and(|held| held.record.facts().publisher != self.own)
        };
        match self.by_distance.iter().rev().find(displaces).copied() {
            Some((farthest, key)) if publisher == self.own || self.own.distance(record.key()) < farthest => {
                self.remove(key);
                Ok(())
            }
            _ => Err(RecordRefusal::StoreFull),
        }
    }

    /// Forgets what expired long enough ago that nothing older can be alive either.
    pub(crate) fn remove_expired(&mut self, now_secs: u64) {
        let is_over =
            |held: &HeldRecord<D>| held.record.facts().issued_secs.saturating_add(GOODBYE_SECS) <= now_secs;
        let over: Vec<Key> =
            self.held.iter().filter(|(_, held)| is_over(held)).map(|(key, _)| *key).collect();
        over.into_iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: Key) {
        let Some(held) = self.held.remove(&key) else { return };
        self.by_distance.remove(&(self.own.distance(key), key));
        if let Some(count) = self.by_source.get_mut(&held.source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&held.source);
            }
        }
    }

    /// The newest record under `name`, which may say that its node has left.
    pub(crate) fn get(&self, name: &Name) -> Option<&VerifiedRecord<D>> {
        let held = self.held.get(&Key::of(name))?;
        Some(&held.record)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests;
