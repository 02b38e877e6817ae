//! EIP-3009 authorizations to transfer USDC, as the token checks them.
//!
//! A payer signs one, and anybody may bring it to the token. The token takes each number of a payer once, within the named time,
//! and pays nobody but the named payee.

use minicbor::{Decode, Encode};

use crate::{Address, Hash, SecretKey, Signature, Usdc, eip712, signature::SignatureError};

const TRANSFER_TYPE: &str = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
                             uint256 validBefore,bytes32 nonce)";

/// The EIP-712 domain of a token: the place where its authorizations are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenDomain {
    pub name: String,
    pub version: String,
    pub chain_id: u64,
    pub token: Address,
}

impl TokenDomain {
    /// Computes the hash that the token's `DOMAIN_SEPARATOR()` must answer.
    #[must_use]
    pub fn separator(&self) -> Hash {
        eip712::domain_separator(&self.name, &self.version, self.chain_id, self.token)
    }
}

/// Permission to transfer USDC once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct TransferAuthorization {
    #[n(0)]
    pub from: Address,
    #[n(1)]
    pub to: Address,
    #[n(2)]
    pub value: Usdc,
    /// Seconds on the chain's clock: valid after this one,
    #[n(3)]
    pub valid_after_secs: u64,
    /// and before this one.
    #[n(4)]
    pub valid_before_secs: u64,
    /// Chosen by the payer; the token takes each once.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub nonce: Hash,
}

impl TransferAuthorization {
    /// Computes the hash that the payer signs.
    #[must_use]
    pub fn digest(&self, domain: &TokenDomain) -> Hash {
        let words = [
            eip712::address(self.from),
            eip712::address(self.to),
            eip712::uint(self.value.into()),
            eip712::uint(self.valid_after_secs.into()),
            eip712::uint(self.valid_before_secs.into()),
            self.nonce,
        ];
        eip712::digest(&domain.separator(), &eip712::hash_struct(&eip712::type_hash(TRANSFER_TYPE), &words))
    }

    /// Signs it with the payer's key.
    #[must_use]
    pub fn sign(self, domain: &TokenDomain, key: &SecretKey) -> SignedTransfer {
        SignedTransfer { authorization: self, signature: key.sign(&self.digest(domain)) }
    }
}

/// An authorization, and what is said to be its payer's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SignedTransfer {
    #[n(0)]
    pub authorization: TransferAuthorization,
    #[n(1)]
    pub signature: Signature,
}

impl SignedTransfer {
    /// Checks that the payer's own key signed exactly this for this token. A wallet with code may sign in another way, which
    /// only the chain can judge.
    ///
    /// # Errors
    /// [`SignatureError`] otherwise.
    pub fn verify(&self, domain: &TokenDomain) -> Result<(), SignatureError> {
        let signer = self.signature.signer(&self.authorization.digest(domain))?;
        let expected = self.authorization.from;
        if signer == expected { Ok(()) } else { Err(SignatureError::WrongSigner { signer, expected }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> SecretKey {
        SecretKey::from_bytes(&[n; 32]).unwrap()
    }

    fn domain() -> TokenDomain {
        let token = Address::from_bytes([9; 20]);
        TokenDomain { name: "USD Coin".to_owned(), version: "2".to_owned(), chain_id: 8453, token }
    }

    fn authorization() -> TransferAuthorization {
        TransferAuthorization {
            from: key(1).address(),
            to: Address::from_bytes([2; 20]),
            value: Usdc::from_micros(2_000),
            valid_after_secs: 10,
            valid_before_secs: 20,
            nonce: [7; 32],
        }
    }

    #[test]
    fn an_authorization_holds_for_its_payer_its_token_and_every_word_of_it() {
        let signed = authorization().sign(&domain(), &key(1));
        assert!(signed.verify(&domain()).is_ok());
        let changed = |change: fn(&mut TransferAuthorization)| {
            let mut other = signed;
            change(&mut other.authorization);
            other.verify(&domain())
        };
        for refused in [
            changed(|other| other.from = Address::from_bytes([3; 20])),
            changed(|other| other.to = Address::from_bytes([3; 20])),
            changed(|other| other.value = Usdc::from_micros(2_001)),
            changed(|other| other.valid_after_secs = 11),
            changed(|other| other.valid_before_secs = 21),
            changed(|other| other.nonce = [8; 32]),
            authorization().sign(&domain(), &key(2)).verify(&domain()),
        ] {
            assert!(refused.is_err(), "{refused:?}");
        }
        for elsewhere in [
            TokenDomain { name: "USDC".to_owned(), ..domain() },
            TokenDomain { version: "1".to_owned(), ..domain() },
            TokenDomain { chain_id: 1, ..domain() },
            TokenDomain { token: Address::from_bytes([8; 20]), ..domain() },
        ] {
            assert!(signed.verify(&elsewhere).is_err(), "{elsewhere:?}");
        }
    }

    #[test]
    fn an_authorization_is_stored_as_it_is() {
        let signed = authorization().sign(&domain(), &key(1));
        let bytes = minicbor::to_vec(signed).unwrap();
        assert_eq!(minicbor::decode::<SignedTransfer>(&bytes).unwrap(), signed);
    }
}
