//! A transaction in the journal.

use alloy::primitives::B256;
use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::{fees::Fees, intent::Intent};

/// Stored before the first broadcast and again before each replacement is. It has no state of its own: what
/// became of the transaction is asked of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Entry {
    #[n(0)]
    pub intent: Intent,
    #[n(1)]
    pub nonce: u64,
    /// The newest signed form, ready to be broadcast.
    #[n(2)]
    pub raw: ByteVec,
    /// Of every signed form, the newest last: any of them may be the one that is mined.
    #[n(3)]
    pub hashes: Vec<minicbor::bytes::ByteArray<32>>,
    #[n(4)]
    pub gas_limit: u64,
    /// Fees of the newest form, big-endian.
    #[cbor(n(5), with = "minicbor::bytes")]
    max_wei: [u8; 16],
    #[cbor(n(6), with = "minicbor::bytes")]
    tip_wei: [u8; 16],
}

/// A transaction signed for one nonce.
#[derive(Clone, Debug)]
pub(crate) struct SignedTransaction {
    pub raw: Vec<u8>,
    pub hash: B256,
    pub fees: Fees,
}

impl Entry {
    pub(crate) fn new(intent: Intent, nonce: u64, gas_limit: u64, signed: SignedTransaction) -> Self {
        let mut entry = Self {
            intent,
            nonce,
            raw: Vec::new().into(),
            hashes: Vec::new(),
            gas_limit,
            max_wei: [0; 16],
            tip_wei: [0; 16],
        };
        entry.replace(signed);
        entry
    }

    pub(crate) fn replace(&mut self, signed: SignedTransaction) {
        self.raw = signed.raw.into();
        self.hashes.push(signed.hash.0.into());
        self.max_wei = signed.fees.max_wei.to_be_bytes();
        self.tip_wei = signed.fees.tip_wei.to_be_bytes();
    }

    pub(crate) fn fees(&self) -> Fees {
        Fees { max_wei: u128::from_be_bytes(self.max_wei), tip_wei: u128::from_be_bytes(self.tip_wei) }
    }

    pub(crate) fn hashes(&self) -> impl Iterator<Item = B256> + '_ {
        self.hashes.iter().map(|hash| B256::from(**hash))
    }
}
