//! secp256k1 signatures over 32-byte digests, in Ethereum's 65-byte form.

use std::fmt;

use k256::ecdsa::{RecoveryId, SigningKey, VerifyingKey};

use crate::{Address, Hash, PublicKey, bytes::byte_array};

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
        let recovery =
            self.0[64].checked_sub(27).and_then(RecoveryId::from_byte).ok_or(SignatureError::Malformed)?;
        if recovery.is_x_reduced() {
            return Err(SignatureError::Malformed);
        }
        let signature =
            k256::ecdsa::Signature::from_slice(&self.0[..64]).map_err(|_| SignatureError::Malformed)?;
        if signature.normalize_s().is_some() {
            return Err(SignatureError::Malformed);
        }
        VerifyingKey::recover_from_prehash(digest, &signature, recovery)
            .map(|key| PublicKey::from_verifying_key(&key))
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
pub struct SecretKey(SigningKey);

/// The bytes are no private key: zero, or not below the group order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a secp256k1 private key")]
pub struct SecretKeyError;

impl SecretKey {
    /// # Errors
    /// [`SecretKeyError`] for zero and for values not below the group order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, SecretKeyError> {
        SigningKey::from_slice(bytes).map(Self).map_err(|_| SecretKeyError)
    }

    /// The raw key, for libraries that need their own form of it. The caller wipes it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes().into()
    }

    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_verifying_key(self.0.verifying_key())
    }

    #[must_use]
    pub fn address(&self) -> Address {
        self.public_key().address()
    }

    /// Signs a digest deterministically (RFC 6979) with a low s.
    #[must_use]
    pub fn sign(&self, digest: &Hash) -> Signature {
        let (signature, recovery) = self
            .0
            .sign_prehash_recoverable(digest)
            .expect("signing a 32-byte digest with a valid key fails only for r or s of zero");
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&signature.to_bytes());
        bytes[64] = 27 + recovery.to_byte();
        Signature(bytes)
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
    fn a_malleated_signature_is_refused() {
        // The group order minus s is the other signature of the same message (EIP-2).
        let digest = [7; 32];
        let mut bytes = *key(1).sign(&digest).as_bytes();
        let s = k256::ecdsa::Signature::from_slice(&bytes[..64]).unwrap();
        let high = k256::ecdsa::Signature::from_scalars(s.r(), -*s.s()).unwrap();
        bytes[..64].copy_from_slice(&high.to_bytes());
        bytes[64] = 55 - bytes[64];
        assert_eq!(Signature::from_bytes(bytes).recover(&digest), Err(SignatureError::Malformed));
    }

    #[test]
    fn a_private_key_is_never_printed() {
        let shown = format!("{:?}", key(0x11));
        assert!(!shown.contains("1111111"), "{shown}");
    }
}
