//! Keys and tokens that this node hands out, and the hashes under which it knows them.

use std::io;

use farthing_os::secret::SecretText;
use farthing_values::keccak256;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub(super) fn random_text() -> io::Result<SecretText> {
    let mut random = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *random).map_err(io::Error::from)?;
    Ok(SecretText::new(hex::encode(*random)))
}

/// The hash of a key or a token. Stored as hexadecimal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SecretHash([u8; 32]);

impl SecretHash {
    pub(super) fn of(kind: &[u8], presented: &str) -> Self {
        Self(keccak256(&[kind, presented.as_bytes()]))
    }

    /// In a time that tells nothing of where they differ.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut hash = [0; 32];
        hex::decode_to_slice(String::deserialize(deserializer)?, &mut hash).map_err(Error::custom)?;
        Ok(Self(hash))
    }
}
