//! secp256k1 signatures over 32-byte digests, in Ethereum's 65-byte form.
//!
//! libsecp256k1 makes and reads them. Who signed is always recovered from the signature and never checked against a known
//! key alone: that would not look at `v`, and the contract recovers, too.

use std::{fmt, sync::LazyLock};

use secp256k1::{
    All, Message, Secp256k1,
    ecdsa::{RecoverableSignature, RecoveryId},
};

use crate::{Address, Hash, PublicKey, bytes::byte_array};

/// The tables for signing and recovering are the library's own constants; a context is made once all the same.
static SECP256K1: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// Half of the group order, rounded down (SEC 2, 2.4.1): the highest s of EIP-2.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d,
    0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

byte_array!(
    /// `r ‖ s ‖ v` with v ∈ {27, 28} and s in the lower half of the group order (EIP-2), which is what the
    /// contract accepts.
    Signature[65]
);

impl Signature {
    /// The key that signed `digest`.
    ///
    /// # Errors
    /// [`SignatureError::Malformed`] when this is no signature at all or has a high s.
    pub fn recover(&self, digest: &Hash) -> Result<PublicKey, SignatureError> {
        self.point(digest).map(|point| PublicKey::from_point(&point))
    }

    /// The wallet that signed `digest`.
    ///
    /// # Errors
    /// Those of [`Self::recover`].
    pub fn signer(&self, digest: &Hash) -> Result<Address, SignatureError> {
        self.point(digest).map(|point| Address::of_point(&point))
    }

    fn point(&self, digest: &Hash) -> Result<secp256k1::PublicKey, SignatureError> {
        let (r_and_s, s) = (&self.0[..64], &self.0[32..64]);
        let recovery = match self.0[64] {
            27 => RecoveryId::Zero,
            28 => RecoveryId::One,
            _ => return Err(SignatureError::Malformed),
        };
        if *s > HALF_ORDER[..] {
            return Err(SignatureError::Malformed);
        }
        RecoverableSignature::from_compact(r_and_s, recovery)
            .and_then(|signature| SECP256K1.recover_ecdsa(Message::from_digest(*digest), &signature))
            .map_err(|_| SignatureError::Malformed)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// The reason that a signature proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("not a valid signature")]
    Malformed,
    #[error("signed by {signer}, expected {expected}")]
    WrongSigner { signer: Address, expected: Address },
}

/// A wallet's private key. Its memory is wiped on drop; `Debug` shows the address only.
#[derive(Clone)]
pub struct SecretKey(secp256k1::SecretKey);

/// The bytes are no private key: zero, or not below the group order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a secp256k1 private key")]
pub struct SecretKeyError;

impl SecretKey {
    /// # Errors
    /// [`SecretKeyError`] for zero and for values not below the group order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, SecretKeyError> {
        secp256k1::SecretKey::from_byte_array(*bytes).map(Self).map_err(|_| SecretKeyError)
    }

    /// The raw key, for libraries that need their own form of it. The caller wipes it.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.secret_bytes()
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_point(&self.0.public_key(&SECP256K1))
    }

    pub fn address(&self) -> Address {
        self.public_key().address()
    }

    /// Signs a digest deterministically (RFC 6979) with a low s.
    pub fn sign(&self, digest: &Hash) -> Signature {
        let signature = SECP256K1.sign_ecdsa_recoverable(Message::from_digest(*digest), &self.0);
        let (recovery, r_and_s) = signature.serialize_compact();
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&r_and_s);
        bytes[64] = match recovery {
            RecoveryId::Zero => 27,
            RecoveryId::One => 28,
            RecoveryId::Two | RecoveryId::Three => {
                unreachable!("r is the order or more for one in 2^128 nonces, which nobody can choose")
            }
        };
        Signature(bytes)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> SecretKey {
        SecretKey::from_bytes(&[n; 32]).unwrap()
    }

    #[test]
    fn a_signature_names_its_signer() {
        let digest = [7; 32];
        let signature = key(1).sign(&digest);
        assert_eq!(signature.recover(&digest).unwrap(), key(1).public_key());
        assert_ne!(signature.recover(&[8; 32]).ok(), Some(key(1).public_key()));
    }

    #[test]
    fn a_private_key_is_never_printed() {
        let shown = format!("{:?}", key(0x11));
        assert!(!shown.contains("1111111"), "{shown}");
    }
}
