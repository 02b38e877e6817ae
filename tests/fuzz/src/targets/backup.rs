//! Backup files, which may be anybody's.

use std::path::Path;

use farthing_node::backup::{self, BackupError};
use farthing_os::secret::SecretText;

use crate::examples;

/// The place of scrypt's cost, as a power of two, in a file.
const COST_AT: usize = 8;
/// More than this takes longer than any number of inputs is worth. What is asked for beyond [`COST_REFUSED`] is not done.
const COST_MAX: u8 = 4;
const COST_REFUSED: u8 = 20;

/// A file that somebody says is a backup. Without its passphrase it opens nothing, and nothing of it is written.
pub(super) fn backup(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    if let Some(cost) = bytes.get_mut(COST_AT).filter(|cost| **cost <= COST_REFUSED) {
        *cost = (*cost).min(COST_MAX);
    }
    let nowhere = Path::new("/nowhere/farthing");
    let passphrase = SecretText::new("four random words here");
    match backup::verify(&bytes, &passphrase, nowhere) {
        Ok(facts) => panic!("a forged backup opens: {facts:?}"),
        Err(BackupError::WrongPassphrase) => {
            assert!(backup::is_backup(&bytes));
            true
        }
        Err(BackupError::NoBackup | BackupError::Resources) => false,
        Err(other) => panic!("a forged backup opens: {other}"),
    }
}

/// Both forms, with nothing sealed in them.
pub(super) fn known_backups() -> Vec<Vec<u8>> {
    let (salt, nonce, sealed) = ([7_u8; 16], [8_u8; 24], [9_u8; 48]);
    let scrypt = [COST_MAX, 8, 1];
    let point = *examples::owner().public_key().as_bytes();
    vec![
        [&b"FARTHBK1"[..], &scrypt, &salt, &nonce, &sealed].concat(),
        [&b"FARTHBK2"[..], &scrypt, &salt, &point, &nonce, &sealed].concat(),
    ]
}
