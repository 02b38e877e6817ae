//! The wallet's key as a libp2p key, and peer ids as wallet addresses.
//!
//! A peer id of a secp256k1 key contains the public key, so the wallet address is computed, never looked up.

use farthing_protocol::{Address, PublicKey, SecretKey};
use libp2p::{PeerId, identity};

use crate::NetworkError;

/// Hands the raw key to libp2p, which wipes the copy it reads from.
pub(crate) fn keypair(key: &SecretKey) -> Result<identity::Keypair, NetworkError> {
    let mut bytes = key.to_bytes();
    let secret = identity::secp256k1::SecretKey::try_from_bytes(&mut bytes).map_err(|_| NetworkError::Key)?;
    Ok(identity::secp256k1::Keypair::from(secret).into())
}

pub(crate) fn peer_id(key: &PublicKey) -> PeerId {
    PeerId::from_bytes(&key.peer_id_bytes()).expect("an identity multihash of 37 bytes is a peer id")
}

/// The wallet behind a peer id, or nothing when its key is of another type.
pub(crate) fn wallet(peer: &PeerId) -> Option<Address> {
    PublicKey::from_peer_id_bytes(&peer.to_bytes()).ok().map(|key| key.address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_id_libp2p_computes_is_the_one_the_protocol_computes() {
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let libp2p_id = keypair(&key).unwrap().public().to_peer_id();
        assert_eq!(libp2p_id, peer_id(&key.public_key()));
        assert_eq!(wallet(&libp2p_id), Some(key.address()));
    }

    #[test]
    fn a_key_of_another_type_belongs_to_no_wallet() {
        let peer = identity::Keypair::generate_ed25519().public().to_peer_id();
        assert_eq!(wallet(&peer), None);
    }
}
