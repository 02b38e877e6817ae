//! Backups, and the way back from one.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Backup {
    /// Write wallet, settings, secrets, certificate authority and ledger into one file that a passphrase opens
    Create {
        /// File to write; by default one in the data folder's `backups`
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// List the backups in the data folder
    List,
    /// Daily backups, which the node makes and cannot open
    #[command(subcommand)]
    Auto(Auto),
    /// List replaced nodes, whose files were kept when a backup was restored
    Replaced,
    /// Delete the files of a replaced node for good, with its wallet
    Forget {
        /// Its name, as `farthing backup replaced` shows it
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Open a backup and check everything in it; needs no node
    Verify {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// Restore the node of a backup into the folder named with --data, which must not hold a node
    Restore {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
}

#[derive(Debug, Subcommand)]
pub enum Auto {
    /// Turn daily backups on, or change them; anything you do not name stays
    On {
        /// File with the passphrase that opens the backups from now on; - for standard input. Needed the first time
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
        /// Number of backups to keep, 1 to 365; 14 by default
        #[arg(long, value_name = "NUMBER")]
        keep: Option<u32>,
    },
    /// Turn daily backups off; existing backups stay
    Off,
    /// Show whether they are on, the newest and the next one, and any problem
    Status,
    /// Make one now
    Now,
}

/// Never on the command line itself, where every process of the machine reads it.
#[derive(Debug, Args)]
pub struct PassphraseFile {
    /// File with the passphrase of the backup; - for standard input
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: PathBuf,
}
