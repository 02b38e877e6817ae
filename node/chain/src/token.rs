//! The token's EIP-712 domain and the EIP-3009 authorization that funds a channel.
//!
//! USDC's domain name differs by chain, so name and version are read from the chain and proven against its
//! `DOMAIN_SEPARATOR()` before anything is signed.

use alloy::{
    primitives::{B256, U256, keccak256},
    sol_types::{Eip712Domain, SolStruct as _, SolValue as _, eip712_domain},
};
use farthing_values::{Address, ChannelId, Hash, SecretKey, Signature, Usdc};

use crate::contracts::{ReceiveWithAuthorization, to_eth};

/// The EIP-712 domain of a token whose separator the chain confirmed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenDomain(Eip712Domain);

/// The token's separator is not the one that its name and version lead to.
#[derive(Debug, thiserror::Error)]
#[error(
    "the token {token} says that it is `{name}` version `{version}` but has another EIP-712 domain, so signatures for \
     it would not be valid. Check the token address in the chain's settings"
)]
pub(crate) struct WrongSeparator {
    token: Address,
    name: String,
    version: String,
}

impl TokenDomain {
    /// # Errors
    /// [`WrongSeparator`] unless the computed separator is the one on chain.
    pub(crate) fn confirmed(
        name: String,
        version: String,
        chain_id: u64,
        token: Address,
        on_chain: B256,
    ) -> Result<Self, WrongSeparator> {
        let domain = eip712_domain! {
            name: name.clone(),
            version: version.clone(),
            chain_id: chain_id,
            verifying_contract: to_eth(token),
        };
        if domain.separator() == on_chain {
            Ok(Self(domain))
        } else {
            Err(WrongSeparator { token, name, version })
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.0.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn version(&self) -> &str {
        self.0.version.as_deref().unwrap_or_default()
    }

    /// Computes the hash that a payer signs for a `ReceiveWithAuthorization` (EIP-3009) of `authorization`.
    pub(crate) fn digest(&self, authorization: &Authorization, contract: Address) -> Hash {
        ReceiveWithAuthorization {
            from: to_eth(authorization.payer),
            to: to_eth(contract),
            value: U256::from(authorization.amount.micros()),
            validAfter: U256::ZERO,
            validBefore: U256::from(authorization.valid_before_secs),
            nonce: authorization_nonce(authorization.channel, authorization.salt),
        }
        .eip712_signing_hash(&self.0)
        .0
    }

    pub(crate) fn sign(
        &self,
        authorization: &Authorization,
        contract: Address,
        key: &SecretKey,
    ) -> Signature {
        key.sign(&self.digest(authorization, contract))
    }
}

/// One transfer into one channel, allowed by its payer. The token accepts each nonce once, which is what
/// makes a deposit safe to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub payer: Address,
    pub channel: ChannelId,
    pub amount: Usdc,
    /// Seconds on the chain's clock.
    pub valid_before_secs: u64,
    pub salt: Hash,
}

/// `keccak256(abi.encode(channelId, authSalt))`: the money cannot be redirected to another channel.
pub(crate) fn authorization_nonce(channel: ChannelId, salt: Hash) -> B256 {
    keccak256((B256::from(*channel.as_bytes()), B256::from(salt)).abi_encode())
}

#[cfg(test)]
mod tests {
    use farthing_contracts::TransferWithAuthorization;
    use farthing_values::{
        ChannelConfig, DepositAuthorization, Domain, TokenDomain as Told, TransferAuthorization,
    };

    use super::*;

    #[test]
    fn the_protocol_hashes_a_transfer_as_the_token_does() {
        let [from, to, token] = [1, 2, 3].map(|n| Address::from_bytes([n; 20]));
        let own = TransferAuthorization {
            from,
            to,
            value: Usdc::from_micros(2_000),
            valid_after_secs: 5,
            valid_before_secs: 2_000_000_000,
            nonce: [4; 32],
        };
        let theirs = TransferWithAuthorization {
            from: to_eth(from),
            to: to_eth(to),
            value: U256::from(2_000_u64),
            validAfter: U256::from(5_u64),
            validBefore: U256::from(2_000_000_000_u64),
            nonce: B256::from([4; 32]),
        };
        let domain = eip712_domain! {
            name: "USD Coin",
            version: "2",
            chain_id: 84_532,
            verifying_contract: to_eth(token),
        };
        let (name, version) = ("USD Coin".to_owned(), "2".to_owned());
        let told = Told { name, version, chain_id: 84_532, token };
        assert_eq!(told.separator(), domain.separator().0);
        assert_eq!(own.digest(&told), theirs.eip712_signing_hash(&domain).0);
    }

    #[test]
    fn the_protocol_hashes_a_deposit_as_the_writer_signs_it() {
        let [payer, payee, token, contract] = [1, 2, 3, 4].map(|n| Address::from_bytes([n; 20]));
        let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 9, salt: [0; 32] };
        let (amount, valid_before_secs, salt) = (Usdc::from_micros(2_000), 2_000_000_000, [5; 32]);
        let channel = config.id(&Domain::new(84_532, contract));
        let theirs = Authorization { payer, channel, amount, valid_before_secs, salt };
        let own = DepositAuthorization { config, amount, valid_before_secs, salt };
        let told = Told { name: "USD Coin".to_owned(), version: "2".to_owned(), chain_id: 84_532, token };
        let domain = TokenDomain::confirmed(
            told.name.clone(),
            told.version.clone(),
            told.chain_id,
            token,
            told.separator().into(),
        );
        assert_eq!(own.digest(&told, contract), domain.unwrap().digest(&theirs, contract));
        assert_eq!(own.nonce(&Domain::new(84_532, contract)), authorization_nonce(channel, salt).0);
    }
}
