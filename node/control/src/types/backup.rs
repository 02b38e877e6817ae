//! Backups that lie in the data folder, and the wallet's phrase.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WalletBalance;

/// The oldest go first; whoever wants to keep one puts it elsewhere, which is the point of it.
pub const BACKUPS_KEPT_MAX: usize = 31;

/// `farthing backup create`, and what opens a backup that is checked or restored.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Opens the backup; at least 10 characters for a new one. It is kept nowhere.
    pub passphrase: String,
}

/// A backup in the data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backup {
    pub name: String,
    /// On the node's machine.
    pub path: String,
    pub bytes: u64,
    /// The time at which the file was written, in seconds since the Unix epoch.
    #[serde(default)]
    pub written_secs: u64,
}

/// Backups that the node makes every day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AutomaticBackups {
    pub on: bool,
    /// So many of them are kept.
    pub keep: u32,
    /// On the node's machine.
    pub folder: String,
    /// The newest that is there.
    pub newest: Option<Backup>,
    /// The time at which the next is due, in seconds since the Unix epoch; `None` while they are off.
    pub next_secs: Option<u64>,
    /// The reason that the newest attempt failed.
    pub problem: Option<String>,
    /// Seconds since the Unix epoch.
    pub failing_since_secs: Option<u64>,
}

/// `farthing backup auto`; members that are left out stay as they are.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutomaticBackupsRequest {
    pub on: bool,
    /// Opens the backups from now on; at least 10 characters, and needed to turn them on. It is kept nowhere: the node
    /// keeps what closes backups, and opens none.
    pub passphrase: Option<String>,
    /// 1 to 365; 14 unless it was set.
    pub keep: Option<u32>,
}

/// A node that a restored one took the place of; its files are kept in a folder of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplacedNode {
    pub name: String,
    /// On the node's machine.
    pub path: String,
    pub bytes: u64,
    /// Seconds since the Unix epoch.
    pub replaced_secs: u64,
    /// Its wallet, which may hold money.
    pub wallet: Option<String>,
    /// The money of that wallet at the end of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<WalletBalance>,
}

/// The facts that a backup states about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupFacts {
    /// Seconds since the Unix epoch.
    pub made_secs: u64,
    pub wallet: String,
    pub files: Vec<String>,
    /// On which its node pays, and on which it is paid.
    pub channels: usize,
    /// Channels whose signatures were not verified: of a contract that their node has not noted, as earlier programs did not.
    #[serde(default)]
    pub unverified: usize,
    /// Invariants of its ledger that do not hold.
    pub violations: u64,
}

/// The node that a backup makes in place of the present one, from the restart on that follows at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Restoring {
    #[serde(flatten)]
    pub facts: BackupFacts,
    /// The folder that keeps the files of the present node, on the node's machine.
    pub kept_in: String,
    /// The money of the present node. Where the backup is of another wallet, nobody follows its channels from then on; where it
    /// is of the same, the restored node knows of what was earned and not claimed no more than the backup does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<WalletBalance>,
}

/// The means to get the wallet back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WalletBackup {
    /// The time at which its owner showed that the phrase is written down, in seconds since the Unix epoch.
    pub written_down_secs: Option<u64>,
    /// The time at which the newest backup in the data folder was made, in seconds since the Unix epoch.
    pub newest_backup_secs: Option<u64>,
}

/// Show the wallet's backup phrase.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Phrase {
    pub address: String,
    /// 24 English words (BIP-39).
    pub phrase: String,
}

impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phrase({})", self.address)
    }
}

/// Some words of the phrase by their number from 1 on, to show that they are written down.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PhraseCheck {
    pub words: BTreeMap<usize, String>,
}
