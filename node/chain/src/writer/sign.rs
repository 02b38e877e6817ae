//! An EIP-1559 transaction, signed.

use alloy::{
    consensus::{SignableTransaction as _, TxEip1559, TxEnvelope},
    eips::eip2718::{Decodable2718 as _, Encodable2718 as _},
    primitives::{Address as EthAddress, Bytes, Signature as EthSignature, TxKind, U256},
};
use farthing_values::SecretKey;

use crate::{entry::SignedTransaction, fees::Fees};

/// A transaction before its signature.
#[derive(Clone, Debug)]
pub(crate) struct Unsigned {
    pub chain_id: u64,
    pub nonce: u64,
    pub gas_limit: u64,
    /// `None` creates a contract.
    pub to: Option<EthAddress>,
    pub value_wei: u128,
    pub data: Bytes,
}

pub(crate) fn sign(unsigned: Unsigned, fees: Fees, key: &SecretKey) -> SignedTransaction {
    let transaction = TxEip1559 {
        chain_id: unsigned.chain_id,
        nonce: unsigned.nonce,
        gas_limit: unsigned.gas_limit,
        max_fee_per_gas: fees.max_wei,
        max_priority_fee_per_gas: fees.tip_wei.min(fees.max_wei),
        to: unsigned.to.map_or(TxKind::Create, TxKind::Call),
        value: U256::from(unsigned.value_wei),
        access_list: Default::default(),
        input: unsigned.data,
    };
    let signature = key.sign(&transaction.signature_hash().0);
    let bytes = signature.as_bytes();
    let word = |from: usize| {
        let mut word = [0; 32];
        word.copy_from_slice(&bytes[from..from + 32]);
        U256::from_be_bytes(word)
    };
    let signed = transaction.into_signed(EthSignature::new(word(0), word(32), bytes[64] == 28));
    SignedTransaction { raw: signed.encoded_2718(), hash: *signed.hash(), fees }
}

/// Reads what a signed transaction does; `None` when the bytes are no transaction of the form made by [`sign`].
pub(super) fn unsigned(raw: &[u8]) -> Option<Unsigned> {
    let TxEnvelope::Eip1559(signed) = TxEnvelope::decode_2718(&mut &*raw).ok()? else { return None };
    let transaction = signed.strip_signature();
    Some(Unsigned {
        chain_id: transaction.chain_id,
        nonce: transaction.nonce,
        gas_limit: transaction.gas_limit,
        to: transaction.to.to().copied(),
        value_wei: transaction.value.try_into().ok()?,
        data: transaction.input,
    })
}

#[cfg(test)]
mod tests {
    use alloy::consensus::Transaction as _;

    use super::*;

    #[test]
    fn a_replacement_differs_in_its_fees_alone_and_is_signed_by_the_wallet() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let original = Unsigned {
            chain_id: 31_337,
            nonce: 5,
            gas_limit: 21_000,
            to: Some(EthAddress::repeat_byte(9)),
            value_wei: 3,
            data: Bytes::from_static(b"data"),
        };
        let first = sign(original, Fees { max_wei: 100, tip_wei: 1 }, &key);
        let second = sign(unsigned(&first.raw).unwrap(), Fees { max_wei: 200, tip_wei: 2 }, &key);
        let [old, new] = [&first, &second].map(|signed| TxEnvelope::decode_2718(&mut &*signed.raw).unwrap());
        for envelope in [&old, &new] {
            let mut signature = [0; 65];
            signature.copy_from_slice(&envelope.signature().as_bytes());
            let signer =
                farthing_values::Signature::from_bytes(signature).recover(&envelope.signature_hash().0);
            assert_eq!(signer.unwrap().address(), key.address());
        }
        assert_eq!((old.nonce(), old.to(), old.input()), (new.nonce(), new.to(), new.input()));
        assert_eq!((new.max_fee_per_gas(), new.max_priority_fee_per_gas()), (200, Some(2)));
        assert_ne!(first.hash, second.hash);
        assert_eq!(*new.hash(), second.hash);
        assert!(unsigned(b"no transaction").is_none());
    }
}
