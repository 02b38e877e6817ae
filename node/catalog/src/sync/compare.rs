//! Comparing two sets by ranges, over the `negentropy` protocol.
//!
//! An item is a version's time and its name, padded with zeros to the 32 bytes the protocol has; the padding
//! vanishes when the message is compressed, so a name costs half.

use farthing_protocol::sync::ItemName;
use negentropy::{Error, Id, Negentropy};

use super::{SESSION_ROUNDS_MAX, SyncError, pack};
use crate::snapshot::Snapshot;

/// Bytes of one message before compression: some 16,000 names.
const MESSAGE_BYTES_MAX: u64 = 512 * 1024;

/// One side of a comparison.
#[derive(Debug)]
pub(super) struct Comparison {
    negentropy: Negentropy<'static, Snapshot>,
    rounds: u32,
    /// Of all messages so far, both ways, before compression: what they cost goes with that.
    bytes: usize,
}

/// The difference that the initiator knows after a round.
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

    /// Reads what the responder's answer tells, and makes the next message unless everything is known.
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
