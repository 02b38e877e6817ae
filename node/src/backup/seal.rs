//! Closes a backup: under a passphrase, or for a passphrase that only its user knows.
//!
//! | bytes | `FARTHBK1`, closed with the passphrase |
//! |---|---|
//! | 8 | magic |
//! | 3 | scrypt: log2 N, r, p |
//! | 16 | salt |
//! | 24 | nonce |
//! | … | XChaCha20-Poly1305 over the contents, with everything before as associated data |
//!
//! `FARTHBK2` is closed for a [`Recipient`]: 33 bytes of a public key that was made for this file alone stand between
//! salt and nonce. scrypt makes the recipient's secret key of the passphrase; the node keeps the public one, with which
//! it closes its backups and opens none.

use chacha20poly1305::{
    AeadInPlace, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use farthing_os::secret::SecretText;
use farthing_protocol::keccak256;
use k256::{
    PublicKey, SecretKey,
    elliptic_curve::{point::AffineCoordinates, sec1::ToEncodedPoint},
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::BackupError;

const UNDER_PASSPHRASE: &[u8; 8] = b"FARTHBK1";
const FOR_RECIPIENT: &[u8; 8] = b"FARTHBK2";
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
const POINT_BYTES: usize = 33;
/// Of Poly1305, behind what is sealed.
const TAG_BYTES: usize = 16;
/// Magic, scrypt's numbers and the salt, which both forms begin with.
const COMMON_BYTES: usize = 8 + 3 + SALT_BYTES;
/// The length of what stands before the sealed contents, by form.
pub(super) const HEAD_BYTES: usize = COMMON_BYTES + NONCE_BYTES;
const HEAD_BYTES_RECIPIENT: usize = COMMON_BYTES + POINT_BYTES + NONCE_BYTES;
/// As for the wallet: about a second and 256 MiB.
pub(super) const SCRYPT: [u8; 3] = [18, 8, 1];
/// The highest log2 N that a foreign file may ask for: 1 GiB.
const SCRYPT_LOG_N_MAX: u8 = 20;
/// A backup's passphrase travels further than the node: shorter ones are guessed.
pub(super) const PASSPHRASE_CHARS_MIN: usize = 10;

/// The public side of a passphrase: what is needed to close backups, and no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// log2 N, r, p
    scrypt: [u8; 3],
    #[serde(with = "hexadecimal")]
    salt: [u8; SALT_BYTES],
    /// A compressed point of secp256k1.
    #[serde(with = "hexadecimal")]
    point: [u8; POINT_BYTES],
}

impl Recipient {
    /// Takes about a second of one core and 256 MiB: call it outside of async tasks.
    ///
    /// # Errors
    /// [`BackupError::ShortPassphrase`], or [`BackupError::Resources`].
    pub fn of(passphrase: &SecretText) -> Result<Self, BackupError> {
        Self::with(passphrase, SCRYPT)
    }

    pub(super) fn with(passphrase: &SecretText, scrypt: [u8; 3]) -> Result<Self, BackupError> {
        fit(passphrase)?;
        let salt = random()?;
        let secret = secret_key(passphrase, &salt, scrypt)?;
        Ok(Self { scrypt, salt, point: compressed(&secret.public_key()) })
    }
}

/// The means that a backup is closed with.
#[derive(Debug, Clone)]
pub enum Lock {
    Passphrase(SecretText),
    Recipient(Recipient),
}

/// Checks that a passphrase is long enough for a new backup.
pub(super) fn fit(passphrase: &SecretText) -> Result<(), BackupError> {
    if passphrase.expose().chars().count() < PASSPHRASE_CHARS_MIN {
        return Err(BackupError::ShortPassphrase);
    }
    Ok(())
}

/// Returns whether a file begins as a backup does; only opening it tells more.
pub(super) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(UNDER_PASSPHRASE) && bytes.len() > HEAD_BYTES
        || bytes.starts_with(FOR_RECIPIENT) && bytes.len() > HEAD_BYTES_RECIPIENT
}

pub(super) fn seal(plain: &[u8], lock: &Lock) -> Result<Vec<u8>, BackupError> {
    match lock {
        Lock::Passphrase(passphrase) => seal_under(plain, passphrase, SCRYPT),
        Lock::Recipient(recipient) => seal_for(plain, recipient),
    }
}

pub(super) fn seal_under(
    plain: &[u8],
    passphrase: &SecretText,
    scrypt: [u8; 3],
) -> Result<Vec<u8>, BackupError> {
    let salt = random()?;
    let key = stretched(passphrase, &salt, scrypt)?;
    close(head(UNDER_PASSPHRASE, scrypt, &salt), &key, plain)
}

fn seal_for(plain: &[u8], recipient: &Recipient) -> Result<Vec<u8>, BackupError> {
    let point = PublicKey::from_sec1_bytes(&recipient.point).map_err(|_| BackupError::Resources)?;
    // One in 2^128 texts of 32 bytes is no key.
    let own = SecretKey::from_slice(&*Zeroizing::new(random::<32>()?)).map_err(|_| BackupError::Resources)?;
    let own_point = compressed(&own.public_key());
    let key = agreed(&own, &point, &own_point, &recipient.point);
    let mut head = head(FOR_RECIPIENT, recipient.scrypt, &recipient.salt);
    head.extend_from_slice(&own_point);
    close(head, &key, plain)
}

fn head(magic: &[u8; 8], scrypt: [u8; 3], salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    [&magic[..], &scrypt, salt].concat()
}

/// The contents are sealed where they lie in the backup: a large ledger is there twice, and not four times.
fn close(mut head: Vec<u8>, key: &[u8; 32], plain: &[u8]) -> Result<Vec<u8>, BackupError> {
    let nonce: [u8; NONCE_BYTES] = random()?;
    head.extend_from_slice(&nonce);
    let mut backup = Vec::with_capacity(head.len() + plain.len() + TAG_BYTES);
    backup.extend_from_slice(&head);
    backup.extend_from_slice(plain);
    let (head, sealed) = backup.split_at_mut(head.len());
    let tag = XChaCha20Poly1305::new(key.into())
        .encrypt_in_place_detached(XNonce::from_slice(&nonce), head, sealed)
        .map_err(|_| BackupError::Resources)?;
    backup.extend_from_slice(&tag);
    Ok(backup)
}

pub(super) fn open(bytes: &[u8], passphrase: &SecretText) -> Result<Zeroizing<Vec<u8>>, BackupError> {
    if !is_sealed(bytes) {
        return Err(BackupError::NoBackup);
    }
    let is_for_recipient = bytes.starts_with(FOR_RECIPIENT);
    let head_bytes = if is_for_recipient { HEAD_BYTES_RECIPIENT } else { HEAD_BYTES };
    let (head, sealed) = bytes.split_at(head_bytes);
    let (common, rest) = head.split_first_chunk::<COMMON_BYTES>().ok_or(BackupError::NoBackup)?;
    let &[.., log_n, r, p] = common.first_chunk::<11>().ok_or(BackupError::NoBackup)?;
    let salt = common.last_chunk::<SALT_BYTES>().ok_or(BackupError::NoBackup)?;
    if log_n > SCRYPT_LOG_N_MAX || r > 8 || p > 4 {
        return Err(BackupError::NoBackup);
    }
    let scrypt = [log_n, r, p];
    let nonce = head.last_chunk::<NONCE_BYTES>().ok_or(BackupError::NoBackup)?;
    let key = if is_for_recipient {
        let point = rest.first_chunk::<POINT_BYTES>().ok_or(BackupError::NoBackup)?;
        let theirs = PublicKey::from_sec1_bytes(point).map_err(|_| BackupError::WrongPassphrase)?;
        let own = secret_key(passphrase, salt, scrypt)?;
        agreed(&own, &theirs, point, &compressed(&own.public_key()))
    } else {
        stretched(passphrase, salt, scrypt)?
    };
    let payload = Payload { msg: sealed, aad: head };
    let plain = XChaCha20Poly1305::new((&*key).into()).decrypt(XNonce::from_slice(nonce), payload);
    plain.map(Zeroizing::new).map_err(|_| BackupError::WrongPassphrase)
}

fn random<const N: usize>() -> Result<[u8; N], BackupError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| BackupError::Resources)?;
    Ok(bytes)
}

fn stretched(
    passphrase: &SecretText,
    salt: &[u8; SALT_BYTES],
    scrypt: [u8; 3],
) -> Result<Zeroizing<[u8; 32]>, BackupError> {
    let [log_n, r, p] = scrypt;
    let params = scrypt::Params::new(log_n, r.into(), p.into(), 32).map_err(|_| BackupError::NoBackup)?;
    let mut key = Zeroizing::new([0; 32]);
    scrypt::scrypt(passphrase.expose().as_bytes(), salt, &params, &mut *key)
        .map_err(|_| BackupError::Resources)?;
    Ok(key)
}

fn secret_key(
    passphrase: &SecretText,
    salt: &[u8; SALT_BYTES],
    scrypt: [u8; 3],
) -> Result<SecretKey, BackupError> {
    let bytes = stretched(passphrase, salt, scrypt)?;
    SecretKey::from_slice(&*bytes).map_err(|_| BackupError::WrongPassphrase)
}

fn compressed(point: &PublicKey) -> [u8; POINT_BYTES] {
    let mut bytes = [0; POINT_BYTES];
    bytes.copy_from_slice(point.to_encoded_point(true).as_bytes());
    bytes
}

/// The key that both sides of an exchange come to (Diffie and Hellman on secp256k1), for this file alone.
fn agreed(
    own: &SecretKey,
    theirs: &PublicKey,
    of_file: &[u8; POINT_BYTES],
    of_recipient: &[u8; POINT_BYTES],
) -> Zeroizing<[u8; 32]> {
    let shared = (theirs.to_projective() * *own.to_nonzero_scalar()).to_affine();
    let x = Zeroizing::new(<[u8; 32]>::from(shared.x()));
    Zeroizing::new(keccak256(&[b"farthing backup 2", of_file, of_recipient, &*x]))
}

/// Bytes in texts.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; N];
        hex::decode_to_slice(text, &mut bytes).map_err(D::Error::custom)?;
        Ok(bytes)
    }
}
