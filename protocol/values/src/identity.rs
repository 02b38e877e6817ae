//! The identity of a node: wallet address ↔ secp256k1 public key ↔ libp2p peer id.
//!
//! The wallet's key is also the node's network key, so a peer id *contains* the public key and the wallet
//! address follows by hashing: proving one proves the other, and nothing has to be looked up.

use std::{fmt, str::FromStr};

use minicbor::{CborLen, Decode, Encode};

use crate::{
    bytes::{byte_array, from_hex},
    keccak256,
};

byte_array!(
    /// An Ethereum address: the last 20 bytes of the public key's Keccak-256.
    #[derive(Default)]
    Address[20]
);

impl Address {
    pub const ZERO: Self = Self([0; 20]);

    pub(crate) fn of_point(key: &secp256k1::PublicKey) -> Self {
        let hash = keccak256(&[&key.serialize_uncompressed()[1..]]);
        let mut address = [0; 20];
        address.copy_from_slice(&hash[12..]);
        Self(address)
    }

    /// `0x8335…2913`: enough to recognise, for lists meant for people.
    pub fn short(&self) -> String {
        let full = self.to_string();
        format!("{}…{}", &full[..6], &full[38..])
    }
}

/// Mixed-case hexadecimal with the EIP-55 checksum.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0_u8; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        let hash = keccak256(&[&digits]);
        for (i, digit) in digits.iter_mut().enumerate() {
            let nibble = if i % 2 == 0 { hash[i / 2] >> 4 } else { hash[i / 2] & 15 };
            if nibble >= 8 {
                digit.make_ascii_uppercase();
            }
        }
        f.write_str("0x")?;
        digits.iter().try_for_each(|&digit| fmt::Write::write_char(f, char::from(digit)))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a wallet address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseAddressError {
    #[error("a wallet address is 0x followed by 40 hexadecimal digits")]
    Malformed,
    #[error("the address fails its EIP-55 checksum; check it for a typing error")]
    Checksum,
}

impl FromStr for Address {
    type Err = ParseAddressError;

    /// Accepts all-lower and all-upper digits as they are, and checks the EIP-55 checksum of mixed ones.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").ok_or(ParseAddressError::Malformed)?;
        let address = from_hex(digits).map(Self).ok_or(ParseAddressError::Malformed)?;
        let mixed =
            digits.bytes().any(|b| b.is_ascii_lowercase()) && digits.bytes().any(|b| b.is_ascii_uppercase());
        if mixed && address.to_string() != text {
            return Err(ParseAddressError::Checksum);
        }
        Ok(address)
    }
}

/// A secp256k1 public key in its compressed form, known to be a point of the curve.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, CborLen)]
#[cbor(transparent)]
pub struct PublicKey(#[cbor(n(0), with = "minicbor::bytes")] [u8; 33]);

/// The bytes are not a compressed secp256k1 point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a compressed secp256k1 public key")]
pub struct PublicKeyError;

/// Multihash header of an inlined key: identity code, 37 bytes; protobuf: type 2 (secp256k1), 33 bytes.
/// See the libp2p peer id specification.
const PEER_ID_PREFIX: [u8; 6] = [0x00, 0x25, 0x08, 0x02, 0x12, 0x21];

impl PublicKey {
    /// Checks that `bytes` is a point of the curve.
    ///
    /// # Errors
    /// [`PublicKeyError`] when it is not.
    pub fn from_bytes(bytes: [u8; 33]) -> Result<Self, PublicKeyError> {
        Self::point(&bytes).map(|_| Self(bytes))
    }

    pub(crate) fn from_point(key: &secp256k1::PublicKey) -> Self {
        Self(key.serialize())
    }

    pub const fn as_bytes(&self) -> &[u8; 33] {
        &self.0
    }

    pub fn address(&self) -> Address {
        Address::of_point(&Self::point(&self.0).expect("checked when the key was made"))
    }

    /// The 39 bytes of the libp2p peer id that inlines this key.
    pub fn peer_id_bytes(&self) -> [u8; 39] {
        let mut bytes = [0; 39];
        bytes[..6].copy_from_slice(&PEER_ID_PREFIX);
        bytes[6..].copy_from_slice(&self.0);
        bytes
    }

    /// The libp2p peer id as people write it, in multiaddresses after `/p2p/`: base58 (Bitcoin alphabet).
    pub fn peer_id(&self) -> String {
        bs58::encode(self.peer_id_bytes()).into_string()
    }

    /// The key inside a peer id.
    ///
    /// # Errors
    /// [`PublicKeyError`] when the peer id belongs to a key of another type, and so to no wallet.
    pub fn from_peer_id_bytes(peer_id: &[u8]) -> Result<Self, PublicKeyError> {
        let key = peer_id.strip_prefix(&PEER_ID_PREFIX).ok_or(PublicKeyError)?;
        Self::from_bytes(key.try_into().map_err(|_| PublicKeyError)?)
    }

    fn point(bytes: &[u8; 33]) -> Result<secp256k1::PublicKey, PublicKeyError> {
        secp256k1::PublicKey::from_byte_array_compressed(*bytes).map_err(|_| PublicKeyError)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.address())
    }
}

impl<'b, C> Decode<'b, C> for PublicKey {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bytes = d.bytes()?.try_into().map_err(|_| minicbor::decode::Error::message("key length"))?;
        Self::from_bytes(bytes).map_err(minicbor::decode::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretKey;

    /// Key 1 and its address, as every Ethereum library derives them.
    fn key_one() -> PublicKey {
        let mut bytes = [0; 32];
        bytes[31] = 1;
        SecretKey::from_bytes(&bytes).unwrap().public_key()
    }

    #[test]
    fn a_key_has_the_address_ethereum_gives_it() {
        assert_eq!(key_one().address().to_string(), "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
    }

    #[test]
    fn a_peer_id_contains_the_wallet() {
        let key = key_one();
        let recovered = PublicKey::from_peer_id_bytes(&key.peer_id_bytes()).unwrap();
        assert_eq!(recovered.address(), key.address());
        let mut ed25519 = key.peer_id_bytes();
        ed25519[3] = 1;
        assert_eq!(PublicKey::from_peer_id_bytes(&ed25519), Err(PublicKeyError));
    }

    #[test]
    fn a_mistyped_address_is_noticed() {
        let right = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
        assert!(right.parse::<Address>().is_ok());
        assert!(right.to_lowercase().parse::<Address>().is_ok());
        assert_eq!(right.replace('E', "e").parse::<Address>(), Err(ParseAddressError::Checksum));
        for malformed in ["", "0x", "7E5F", &right[..41], "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdg"] {
            assert_eq!(malformed.parse::<Address>(), Err(ParseAddressError::Malformed), "{malformed}");
        }
    }
}
