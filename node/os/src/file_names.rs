//! Names of the files and folders in a data folder, each in one place: many crates write them, and the lock knows by them
//! whether a folder may become a node's.

use std::ffi::OsStr;

pub const WALLET: &str = "wallet.json";
/// The passphrase of a wallet that no person chose one for.
pub const PASSPHRASE: &str = "wallet.passphrase";
pub const LEDGER: &str = "ledger.redb";
/// The consumer secrets.
pub const SECRETS: &str = "secrets.toml";
/// The user's own settings.
pub const SETTINGS: &str = "farthing.toml";
/// Settings that were changed while the node ran: they win over the user's own.
pub const CHOSEN_SETTINGS: &str = "settings.toml";
/// Password, sessions and devices of the console.
pub const CONSOLE: &str = "console.json";
pub const CONTROL_SOCKET: &str = "control.sock";
pub const LOCK: &str = "lock";
/// The log of a node that `farthing testnet` starts.
pub const LOG: &str = "node.log";

/// The folder of what was learned of each network.
pub const NETWORKS: &str = "networks";
/// The folder of the certificates that the node makes, and those in it that others know.
pub const TLS: &str = "tls";
pub const AUTHORITY: &str = "authority.pem";
pub const CA: &str = "ca.pem";
pub const OWN_NAME: &str = "own-name";

/// The folder of backups, and the beginning and the end of their names.
pub const BACKUPS: &str = "backups";
pub const BACKUP_PREFIX: &str = "farthing-";
pub const BACKUP_EXTENSION: &str = ".backup";
/// The beginning of the name of a copy of the ledger that is being put into a backup.
pub const LEDGER_COPY_PREFIX: &str = ".backup.";
/// The folder of opened ledgers of backups that are looked at.
pub const VERIFY: &str = ".verify";
/// The folder of a restoration that the next start finishes, and the file that is in it once it is complete.
pub const RESTORE: &str = ".restore";
pub const RESTORE_READY: &str = "ready";
/// The beginning of the name of a folder with the files of a node that a restoration replaced.
pub const REPLACED_PREFIX: &str = "replaced-";
/// The file in such a folder that tells of the money of its wallet at the node's end.
pub const LEFT: &str = "left.json";
/// The file in such a folder that tells what was earned on each channel and not claimed.
pub const EARNED: &str = "earned.json";
/// The authority with its key: all that makes another folder's node one that clients trust.
pub const AUTHORITY_PATH: &str = "tls/authority.pem";
/// The files of a backup, in the order in which they are restored: with a wallet the folder is complete, and without one a
/// node does not start on a ledger that was used.
pub const BACKED_UP: [&str; 7] =
    [AUTHORITY_PATH, LEDGER, SECRETS, SETTINGS, CHOSEN_SETTINGS, PASSPHRASE, WALLET];

/// Returns whether a file has the name of a backup that a node made or was brought.
pub fn is_backup(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(BACKUP_PREFIX) && name.ends_with(BACKUP_EXTENSION))
}
