//! Signed bytes: transactions as the chain's writer sends them, and who signed a digest.

use alloy::{
    consensus::TxEnvelope,
    eips::eip2718::Decodable2718 as _,
    primitives::{Address, B256, Bytes},
};
use farthing_values::Signature;

/// An EIP-1559 transaction whose sender is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub hash: B256,
    pub chain_id: u64,
    pub from: Address,
    pub nonce: u64,
    pub gas_limit: u64,
    pub max_fee_wei: u128,
    pub tip_wei: u128,
    /// `None` creates a contract.
    pub to: Option<Address>,
    pub value_wei: u128,
    pub data: Bytes,
}

impl Transaction {
    /// `None` for bytes that are no such transaction, or that nobody signed.
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let envelope = TxEnvelope::decode_2718(&mut &*raw).ok()?;
        let from = signer_of(envelope.signature_hash(), envelope.signature().as_bytes())?;
        let TxEnvelope::Eip1559(signed) = envelope else { return None };
        let hash = *signed.hash();
        let transaction = signed.strip_signature();
        Some(Self {
            hash,
            chain_id: transaction.chain_id,
            from,
            nonce: transaction.nonce,
            gas_limit: transaction.gas_limit,
            max_fee_wei: transaction.max_fee_per_gas,
            tip_wei: transaction.max_priority_fee_per_gas,
            to: transaction.to.to().copied(),
            value_wei: transaction.value.try_into().ok()?,
            data: transaction.input,
        })
    }

    /// Computes what a unit of its gas costs in a block; `None` where the block is too dear for it.
    pub fn price_wei(&self, base_fee_wei: u128) -> Option<u128> {
        let offered = self.max_fee_wei.min(base_fee_wei.saturating_add(self.tip_wei));
        (self.max_fee_wei >= base_fee_wei).then_some(offered)
    }

    /// Computes what the sender has to hold.
    pub fn cost_max_wei(&self) -> u128 {
        self.max_fee_wei.saturating_mul(u128::from(self.gas_limit)).saturating_add(self.value_wei)
    }
}

/// The signer of `r ‖ s ‖ v`, as the token recovers it.
pub(crate) fn signer_of(digest: B256, signature: [u8; 65]) -> Option<Address> {
    let key = Signature::from_bytes(signature).recover(&digest.0).ok()?;
    Some(Address::from(*key.address().as_bytes()))
}

/// The signer of a compact signature (EIP-2098), as the contract recovers it.
pub(crate) fn recovered(digest: B256, r: B256, vs: B256) -> Option<Address> {
    let mut signature = [0; 65];
    signature[..32].copy_from_slice(r.as_slice());
    signature[32..64].copy_from_slice(vs.as_slice());
    signature[32] &= 0x7f;
    signature[64] = 27 + (vs.0[0] >> 7);
    signer_of(digest, signature)
}
