//! People with keys, and what they sign: transactions, vouchers and words for others to bring.

use alloy::{
    consensus::{SignableTransaction as _, TxEip1559},
    eips::eip2718::Encodable2718 as _,
    primitives::{Address, B256, Bytes, TxKind, U256, aliases::U40, keccak256},
    signers::{SignerSync as _, local::PrivateKeySigner},
    sol_types::{Eip712Domain, SolStruct as _},
};
use farthing_contract_tests::{
    CHAIN_ID,
    PayChannels::{Channel, Claim, Consent},
    Voucher, pay_channels_address,
};
use farthing_values::{ChannelId, CloseConsent, CloseRequest, Domain, SecretKey, Signature, Usdc};

/// The same key for the same name in every run.
pub(crate) fn key(name: &str) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&keccak256(name)).expect("the digest of a name is a valid key")
}

pub(crate) fn secret(signer: &PrivateKeySigner) -> SecretKey {
    SecretKey::from_bytes(&signer.to_bytes().0).expect("one key in either form")
}

pub(crate) fn protocol_address(address: Address) -> farthing_values::Address {
    farthing_values::Address::from_bytes(address.into_array())
}

/// A transaction before its signature.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub nonce: u64,
    pub gas_limit: u64,
    pub max_fee_wei: u128,
    pub tip_wei: u128,
    pub to: Address,
    pub value_wei: u128,
    pub data: Vec<u8>,
}

impl Draft {
    pub(crate) fn sign(&self, signer: &PrivateKeySigner) -> Vec<u8> {
        let transaction = TxEip1559 {
            chain_id: CHAIN_ID,
            nonce: self.nonce,
            gas_limit: self.gas_limit,
            max_fee_per_gas: self.max_fee_wei,
            max_priority_fee_per_gas: self.tip_wei,
            to: TxKind::Call(self.to),
            value: U256::from(self.value_wei),
            access_list: Default::default(),
            input: Bytes::copy_from_slice(&self.data),
        };
        let signature = signer.sign_hash_sync(&transaction.signature_hash()).expect("a key signs");
        transaction.into_signed(signature).encoded_2718()
    }
}

/// The chain's domain, in which channels and vouchers are signed.
pub(crate) fn domain() -> Domain {
    Domain::new(CHAIN_ID, protocol_address(pay_channels_address()))
}

/// A voucher for `cumulative` with the part of it that is claimed.
pub(crate) fn claim(
    signer: &PrivateKeySigner,
    in_domain: &Eip712Domain,
    terms: &Channel,
    cumulative: u128,
    amount: u128,
) -> Claim {
    let channel_id = terms.eip712_signing_hash(in_domain);
    let voucher = Voucher { channelId: channel_id, cumulative };
    let signature = signer.sign_hash_sync(&voucher.eip712_signing_hash(in_domain)).expect("a key signs");
    let compact = signature.as_erc2098();
    let (r, vs) = compact.split_at(32);
    Claim { channel: terms.clone(), cumulative, amount, r: B256::from_slice(r), vs: B256::from_slice(vs) }
}

/// A payee's word to close, as a node signs it.
pub(crate) fn close_consent(
    payee: &PrivateKeySigner,
    id: B256,
    amount: u128,
    (deposited, round): (u128, u32),
    deadline_secs: u64,
) -> Consent {
    let usdc = |amount: u128| Usdc::try_from(amount).expect("an amount of USDC");
    let (channel, amount, deposited) = (ChannelId::from_bytes(id.0), usdc(amount), usdc(deposited));
    let consent = CloseConsent { channel, amount, deposited, round, deadline_secs };
    compact(&consent.sign(&domain(), &secret(payee)), deadline_secs)
}

/// The same of a payer or signer.
pub(crate) fn close_request(signer: &PrivateKeySigner, id: B256, round: u32, deadline_secs: u64) -> Consent {
    let request = CloseRequest { channel: ChannelId::from_bytes(id.0), round, deadline_secs };
    compact(&request.sign(&domain(), &secret(signer)), deadline_secs)
}

fn compact(signature: &Signature, deadline_secs: u64) -> Consent {
    let bytes = signature.as_bytes();
    let (r, mut vs) = (B256::from_slice(&bytes[..32]), B256::from_slice(&bytes[32..64]));
    vs.0[0] |= (bytes[64] - 27) << 7;
    Consent { deadline: U40::from(deadline_secs), r, vs }
}
