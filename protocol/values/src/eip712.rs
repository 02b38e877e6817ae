//! EIP-712 hashing for the few fixed types of the network.
//!
//! Every member is a 32-byte word, so encoding is a row of words; the type strings are the ones
//! `PayChannels.sol` hashes, and a test there compares both.

use std::sync::LazyLock;

use crate::{Address, Hash, keccak256};

const DOMAIN_TYPE: &str =
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
/// The EIP-712 name and version in `PayChannels.sol`.
const DOMAIN_NAME: &str = "Farthing PayChannels";
const DOMAIN_VERSION: &str = "1";

/// One ABI word.
pub(crate) type Word = [u8; 32];

pub(crate) fn address(address: Address) -> Word {
    let mut word = [0; 32];
    word[12..].copy_from_slice(address.as_bytes());
    word
}

pub(crate) fn uint(value: u128) -> Word {
    let mut word = [0; 32];
    word[16..].copy_from_slice(&value.to_be_bytes());
    word
}

/// `bytes16` is left-aligned, unlike numbers.
pub(crate) fn bytes16(bytes: &[u8; 16]) -> Word {
    let mut word = [0; 32];
    word[..16].copy_from_slice(bytes);
    word
}

/// A [`type_hash`] that is kept: of a signed structure's hash it is a third of the work.
pub(crate) type TypeHash = LazyLock<Hash>;

/// `typeHash` of EIP-712.
pub(crate) fn type_hash(type_string: &str) -> Hash {
    keccak256(&[type_string.as_bytes()])
}

/// `hashStruct` of EIP-712 for a type whose members are all atomic.
pub(crate) fn hash_struct(type_hash: &Hash, words: &[Word]) -> Hash {
    keccak256(&[type_hash, words.as_flattened()])
}

/// The digest a wallet signs.
pub(crate) fn digest(domain_separator: &Hash, struct_hash: &Hash) -> Hash {
    keccak256(&[b"\x19\x01", domain_separator, struct_hash])
}

/// The domain separator of a contract with this name and version.
pub(crate) fn domain_separator(name: &str, version: &str, chain_id: u64, contract: Address) -> Hash {
    hash_struct(
        &type_hash(DOMAIN_TYPE),
        &[
            keccak256(&[name.as_bytes()]),
            keccak256(&[version.as_bytes()]),
            uint(u128::from(chain_id)),
            address(contract),
        ],
    )
}

/// The place where signatures are valid: one contract on one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    separator: Hash,
}

impl Domain {
    pub fn new(chain_id: u64, contract: Address) -> Self {
        Self { separator: domain_separator(DOMAIN_NAME, DOMAIN_VERSION, chain_id, contract) }
    }

    /// Returns the hash that the contract's `DOMAIN_SEPARATOR()` must answer.
    pub const fn separator(&self) -> &Hash {
        &self.separator
    }
}

/// Implements the signing of `$type`; `$signer`'s signature counts. Its words are those of `$type_string`.
macro_rules! signed_words {
    ($type:ident, $type_string:expr, $signer:literal, |$value:ident| $words:expr) => {
        impl $type {
            pub fn digest(&self, domain: &$crate::Domain) -> $crate::Hash {
                static TYPE_HASH: eip712::TypeHash =
                    eip712::TypeHash::new(|| eip712::type_hash($type_string));
                let $value = self;
                eip712::digest(domain.separator(), &eip712::hash_struct(&TYPE_HASH, &$words))
            }

            pub fn sign(&self, domain: &$crate::Domain, key: &$crate::SecretKey) -> $crate::Signature {
                key.sign(&self.digest(domain))
            }

            /// # Errors
            #[doc = concat!("[`SignatureError`](crate::signature::SignatureError) unless ", $signer, " signed exactly this.")]
            pub fn verify(
                self,
                domain: &$crate::Domain,
                signature: $crate::Signature,
                signer: $crate::Address,
            ) -> Result<$crate::Verified<Self>, $crate::signature::SignatureError> {
                let digest = self.digest(domain);
                $crate::Verified::check(self, &digest, signature, signer)
            }
        }
    };
}
pub(crate) use signed_words;
