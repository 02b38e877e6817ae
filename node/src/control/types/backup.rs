//! Backups that lie in the data folder.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `farthing backup create`
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Opens the backup; at least 10 characters. It is kept nowhere.
    pub passphrase: String,
}

impl fmt::Debug for BackupRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackupRequest(…)")
    }
}

/// A backup in the data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backup {
    pub name: String,
    /// On the node's machine.
    pub path: String,
    pub bytes: u64,
}
