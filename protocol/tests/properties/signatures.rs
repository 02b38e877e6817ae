//! Signatures beside another implementation: the same are made, and the same are refused.

use farthing_protocol::{Address, Hash, PublicKey, SecretKey, Signature, keccak256};
use k256::ecdsa::{RecoveryId, SigningKey, VerifyingKey};
use proptest::prelude::*;

const DIGEST: Hash = [7; 32];

fn key() -> SecretKey {
    SecretKey::from_bytes(&[1; 32]).unwrap()
}

/// The order of the group (SEC 2, 2.4.1).
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba,
    0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// What the contract takes, by the other implementation.
fn recovered(signature: &[u8; 65], digest: &Hash) -> Option<Address> {
    let recovery = RecoveryId::from_byte(signature[64].checked_sub(27)?)?;
    let parsed = k256::ecdsa::Signature::from_slice(&signature[..64]).ok()?;
    if recovery.is_x_reduced() || parsed.normalize_s().is_some() {
        return None;
    }
    let key = VerifyingKey::recover_from_prehash(digest, &parsed, recovery).ok()?;
    let point = key.to_encoded_point(false);
    Some(Address::from_bytes(keccak256(&[&point.as_bytes()[1..]])[12..].try_into().unwrap()))
}

fn ours(signature: &[u8; 65], digest: &Hash) -> Option<Address> {
    Signature::from_bytes(*signature).signer(digest).ok()
}

proptest! {
    #[test]
    fn a_signature_is_the_one_that_another_implementation_makes(secret: [u8; 32], digest: Hash) {
        prop_assume!(SecretKey::from_bytes(&secret).is_ok());
        let other = SigningKey::from_slice(&secret).unwrap();
        let (signature, recovery) = other.sign_prehash_recoverable(&digest).unwrap();
        let made = SecretKey::from_bytes(&secret).unwrap().sign(&digest);
        prop_assert_eq!(&made.as_bytes()[..64], &signature.to_bytes()[..]);
        prop_assert_eq!(made.as_bytes()[64], 27 + recovery.to_byte());
        let point = other.verifying_key().to_encoded_point(true);
        let public = PublicKey::from_bytes(point.as_bytes().try_into().unwrap()).unwrap();
        prop_assert_eq!(made.recover(&digest), Ok(public));
    }

    /// One byte in a good signature is another one, and whoever signed it then is the same for both, or nobody.
    #[test]
    fn a_damaged_signature_names_whom_another_implementation_names(
        secret: [u8; 32], digest: Hash, at in 0_usize..65, byte: u8,
    ) {
        prop_assume!(SecretKey::from_bytes(&secret).is_ok());
        let mut bytes = *SecretKey::from_bytes(&secret).unwrap().sign(&digest).as_bytes();
        bytes[at] = byte;
        prop_assert_eq!(ours(&bytes, &digest), recovered(&bytes, &digest));
    }

    #[test]
    fn any_bytes_name_whom_another_implementation_names(r: [u8; 32], s: [u8; 32], v in 25_u8..33, digest: Hash) {
        let mut bytes = [0; 65];
        bytes[..32].copy_from_slice(&r);
        bytes[32..64].copy_from_slice(&s);
        // Half of all s are high ones.
        bytes[32] &= 0x7f;
        bytes[64] = v;
        prop_assert_eq!(ours(&bytes, &digest), recovered(&bytes, &digest));
    }

    #[test]
    fn any_bytes_are_a_public_key_when_another_implementation_has_them_for_one(x: [u8; 32], head in 0_u8..8) {
        let mut bytes = [head; 33];
        bytes[1..].copy_from_slice(&x);
        // The other one also reads points without the sign of y (5), which would be a second form of a key.
        let is_point = matches!(head, 2 | 3) && VerifyingKey::from_sec1_bytes(&bytes).is_ok();
        prop_assert_eq!(PublicKey::from_bytes(bytes).is_ok(), is_point);
    }
}

fn malformed(change: impl FnOnce(&mut [u8; 65])) {
    let mut bytes = *key().sign(&DIGEST).as_bytes();
    change(&mut bytes);
    assert_eq!(ours(&bytes, &DIGEST), None, "{bytes:02x?}");
    assert_eq!(recovered(&bytes, &DIGEST), None, "{bytes:02x?}");
}

#[test]
fn the_other_signature_of_the_same_message_is_refused() {
    // The order minus s, and the other v (EIP-2).
    malformed(|bytes| {
        let parsed = k256::ecdsa::Signature::from_slice(&bytes[..64]).unwrap();
        let high = k256::ecdsa::Signature::from_scalars(parsed.r(), -*parsed.s()).unwrap();
        bytes[..64].copy_from_slice(&high.to_bytes());
        bytes[64] = 55 - bytes[64];
    });
}

#[test]
fn a_signature_of_zero_or_of_the_order_is_refused() {
    for part in [0..32, 32..64] {
        malformed(|bytes| bytes[part.clone()].fill(0));
        malformed(|bytes| bytes[part.clone()].copy_from_slice(&ORDER));
    }
    malformed(|bytes| bytes[..64].fill(0));
}

#[test]
fn the_highest_s_that_the_contract_takes_is_taken_and_the_next_is_not() {
    let mut half = ORDER.map(|_| 0);
    let mut carry = 0;
    for (half, byte) in half.iter_mut().zip(ORDER) {
        *half = carry << 7 | byte >> 1;
        carry = byte & 1;
    }
    let mut bytes = *key().sign(&DIGEST).as_bytes();
    bytes[32..64].copy_from_slice(&half);
    assert!(ours(&bytes, &DIGEST).is_some());
    assert_eq!(ours(&bytes, &DIGEST), recovered(&bytes, &DIGEST));
    malformed(|bytes| {
        bytes[32..64].copy_from_slice(&half);
        bytes[63] += 1;
    });
}

#[test]
fn only_27_and_28_are_a_v() {
    for v in (0..=255).filter(|v| ![27, 28].contains(v)) {
        malformed(|bytes| bytes[64] = v);
    }
}

#[test]
fn zero_and_what_is_not_below_the_order_is_no_private_key() {
    assert!(SecretKey::from_bytes(&[0; 32]).is_err());
    assert!(SecretKey::from_bytes(&ORDER).is_err());
    let mut last = ORDER;
    last[31] -= 1;
    assert!(SecretKey::from_bytes(&last).is_ok());
}
