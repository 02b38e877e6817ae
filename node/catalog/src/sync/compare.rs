//! Comparing two sets by ranges, over the `negentropy` protocol.
//!
//! An item is a version's time and its name, padded with zeros to the 32 bytes the protocol has; the padding
//! vanishes when the message is compressed, so a name costs half.

use std::sync::Arc;

use farthing_protocol::sync::ItemName;
use negentropy::{Bound, Error, Id, Item, Negentropy, NegentropyStorageBase, NegentropyStorageVector};

use super::{SESSION_ROUNDS_MAX, SyncError, pack};

/// Bytes of one message before compression: some 16,000 names.
const MESSAGE_BYTES_MAX: u64 = 512 * 1024;

/// A sorted picture of a catalog, shared by the sessions that compare it.
#[derive(Clone, Debug)]
pub(super) struct Snapshot(Arc<NegentropyStorageVector>);

impl Snapshot {
    pub(super) fn new(items: impl Iterator<Item = (u64, ItemName)>) -> Result<Self, SyncError> {
        let mut vector = NegentropyStorageVector::with_capacity(items.size_hint().0);
        for (updated_secs, name) in items {
            let mut id = [0; 32];
            id[..16].copy_from_slice(name.as_bytes());
            vector.insert(updated_secs, Id::from_byte_array(id))?;
        }
        vector.seal()?;
        Ok(Self(Arc::new(vector)))
    }
}

impl NegentropyStorageBase for Snapshot {
    fn size(&self) -> Result<usize, Error> {
        self.0.size()
    }

    fn get_item(&self, index: usize) -> Result<Option<Item>, Error> {
        self.0.get_item(index)
    }

    fn iterate(
        &self,
        begin: usize,
        end: usize,
        each: &mut dyn FnMut(Item, usize) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.0.iterate(begin, end, each)
    }

    fn find_lower_bound(&self, first: usize, last: usize, value: &Bound) -> usize {
        self.0.find_lower_bound(first, last, value)
    }
}

/// One side of a comparison.
#[derive(Debug)]
pub(super) struct Comparison {
    negentropy: Negentropy<'static, Snapshot>,
    rounds: u32,
    /// Of all messages so far, both ways, before compression: what they cost goes with that.
    bytes: usize,
}

/// What the initiator knows after a round.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Only here.
    pub(super) have: Vec<ItemName>,
    /// Only there.
    pub(super) need: Vec<ItemName>,
}

impl Comparison {
    pub(super) fn new(snapshot: Snapshot) -> Result<Self, SyncError> {
        let negentropy = Negentropy::owned(snapshot, MESSAGE_BYTES_MAX)?;
        Ok(Self { negentropy, rounds: 0, bytes: 0 })
    }

    /// The first message of the initiator.
    pub(super) fn begin(&mut self) -> Result<Vec<u8>, SyncError> {
        pack::compress(&self.negentropy.initiate()?)
    }

    /// The responder's answer.
    pub(super) fn answer(&mut self, message: &[u8]) -> Result<Vec<u8>, SyncError> {
        let message = self.read(message)?;
        let answer = self.negentropy.reconcile(&message)?;
        self.bytes += answer.len();
        pack::compress(&answer)
    }

    /// Bytes that were said on both sides so far.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the responder's answer tells, and the next message unless everything is known.
    pub(super) fn learn(&mut self, message: &[u8]) -> Result<(Difference, Option<Vec<u8>>), SyncError> {
        let message = self.read(message)?;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = self.negentropy.reconcile_with_ids(&message, &mut have, &mut need)?;
        let difference = Difference { have: names(&have), need: names(&need) };
        Ok((difference, next.map(|next| pack::compress(&next)).transpose()?))
    }

    fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, SyncError> {
        self.rounds += 1;
        if self.rounds > SESSION_ROUNDS_MAX {
            return Err(SyncError::TooLong);
        }
        let message = pack::decompress(message)?;
        self.bytes += message.len();
        Ok(message)
    }
}

fn names(ids: &[Id]) -> Vec<ItemName> {
    ids.iter().map(|id| ItemName::of(id.as_bytes())).collect()
}

impl From<Error> for SyncError {
    fn from(error: Error) -> Self {
        Self::Malformed(error.to_string())
    }
}
