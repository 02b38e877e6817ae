//! Backups, and the way back from one.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Backup {
    /// Write wallet, settings, secrets and ledger into one file that a passphrase opens
    Create {
        /// Put it there; in the data folder's `backups` unless given
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// Backups in the data folder
    List,
    /// Open a backup and check everything in it; needs no node
    Verify {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// Make the node of a backup in the folder named with --data, which must hold none
    Restore {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
}

/// Never on the command line itself, where every process of the machine reads it.
#[derive(Debug, Args)]
pub struct PassphraseFile {
    /// File with the passphrase of the backup; - for standard input
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: PathBuf,
}
