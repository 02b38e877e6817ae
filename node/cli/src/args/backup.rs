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
    /// A backup every day, which the node makes and cannot open
    #[command(subcommand)]
    Auto(Auto),
    /// Nodes that a restored one took the place of, whose files are kept
    Replaced,
    /// Remove the files of a replaced node, its wallet too, for good
    Forget {
        /// As `farthing backup replaced` has it
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
    /// Make the node of a backup in the folder named with --data, which must hold none
    Restore {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
}

#[derive(Debug, Subcommand)]
pub enum Auto {
    /// Turn it on, or change it; what is not named stays
    On {
        /// File with the passphrase that opens the backups from now on; - for standard input. Needed the first time
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
        /// So many are kept, 1 to 365; 14 unless it was set
        #[arg(long, value_name = "NUMBER")]
        keep: Option<u32>,
    },
    /// Turn it off; the backups that are there stay
    Off,
    /// Whether it is on, the newest, the next, and what is wrong
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
