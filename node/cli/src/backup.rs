//! `farthing backup`: made by the running node; verified and restored without one.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use farthing_control::{
    endpoint,
    types::{AutomaticBackups, AutomaticBackupsRequest, BackupRequest, ReplacedNode},
};
use farthing_node::backup::{self, BackupError, BackupSummary};
use farthing_os::{clock, files, lock::DataFolderError, secret::SecretText, shell::word};
use farthing_wallet::lock_folder;
use serde::Serialize;

use super::{
    Context,
    failure::{Exit, Failure},
    input, on_the_side,
    output::{pairs, table},
};

#[derive(Debug, Subcommand)]
pub enum Backup {
    /// Write the wallet, settings, secrets, certificate authority and ledger into one file, encrypted with a passphrase
    Create {
        /// File to write; by default one in the data folder's `backups`
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// List the backups in the data folder
    List,
    /// Daily backups; the node makes them but cannot open them
    #[command(subcommand)]
    Auto(Auto),
    /// List replaced nodes; restoring a backup keeps the files of the node it replaces
    Replaced,
    /// Permanently delete the files of a replaced node, including its wallet
    Forget {
        /// Name from `farthing backup replaced`
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Open a backup and check its contents; works without a running node
    Verify {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
    /// Restore a backup into the folder named with --data, which must not contain a node
    Restore {
        file: PathBuf,
        #[command(flatten)]
        passphrase: PassphraseFile,
    },
}

#[derive(Debug, Subcommand)]
pub enum Auto {
    /// Turn daily backups on, or change them; options you leave out stay as they are
    On {
        /// File with the passphrase for new backups; - for standard input. Required the first time
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
        /// Number of backups to keep, 1 to 365; 14 by default
        #[arg(long, value_name = "NUMBER")]
        keep: Option<u32>,
    },
    /// Turn daily backups off; existing backups stay
    Off,
    /// Show whether daily backups are on, the newest and the next backup, and any problem
    Status,
    /// Create a backup now
    Now,
}

/// Never on the command line itself, where every process of the machine reads it.
#[derive(Debug, Args)]
pub struct PassphraseFile {
    /// File with the passphrase of the backup; - for standard input
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: PathBuf,
}

/// A passphrase, not a document.
const PASSPHRASE_BYTES_MAX: u64 = 4_096;

pub(super) async fn backup(context: &Context, verb: Backup) -> Result<(), Failure> {
    match verb {
        Backup::Create { to, passphrase } => create(context, to, &passphrase).await,
        Backup::List => {
            let all = context.node()?.ask(endpoint::Backups).await?;
            if all.is_empty() {
                context.output.prose("No backups yet; create one with `farthing backup create`.");
            }
            context.output.data(&all, |all| {
                table(["BYTES", "FILE"], all.iter().map(|one| [one.bytes.to_string(), one.path.clone()]))
            })
        }
        Backup::Auto(verb) => automatic(context, verb).await,
        Backup::Replaced => {
            let all = context.node()?.ask(endpoint::ReplacedNodes).await?;
            if all.is_empty() {
                context.output.prose("Nothing was replaced.");
            }
            context.output.data(&all, |all| replaced(all))
        }
        Backup::Forget { name, yes } => forget(context, &name, yes).await,
        Backup::Verify { file, passphrase } => {
            let (bytes, passphrase) = (read(&file)?, read_passphrase(&passphrase)?);
            let data_dir = farthing_config::load(&context.sources())?.config.node.data_dir;
            let facts = on_the_side(move || verify(&bytes, &passphrase, &data_dir)).await?;
            context.output.data(&ShownBackup::from(&facts), ShownBackup::text)?;
            if facts.violations == 0 {
                return Ok(());
            }
            let what = format!("invariants are violated: {}", facts.violations);
            Err(Failure::told(Exit::Failure, what).next("restore an earlier backup if you have one"))
        }
        Backup::Restore { file, passphrase } => restore(context, &file, &passphrase).await,
    }
}

async fn create(context: &Context, to: Option<PathBuf>, passphrase: &PassphraseFile) -> Result<(), Failure> {
    let passphrase = read_passphrase(passphrase)?.expose().to_owned();
    if let Some(to) = to.as_ref().filter(|to| to.exists()) {
        return Err(
            Failure::usage(format!("{} already exists", to.display())).next("choose another file name")
        );
    }
    let mut made = context.node()?.tell(endpoint::CreateBackup, &BackupRequest { passphrase }).await?;
    if let Some(to) = to {
        let bytes = read(Path::new(&made.path))?;
        files::create_named(&to, &bytes).map_err(|error| {
            Failure::new(Exit::Failure, format!("{} cannot be written ({error})", to.display()))
                .next(format!("the backup is at {}", made.path))
        })?;
        made.path = to.display().to_string();
    }
    context.output.prose(
        "Keep it on another machine and the passphrase somewhere else: nothing else opens the backup.",
    );
    context.output.data(&made, |made| made.path.clone())
}

async fn automatic(context: &Context, verb: Auto) -> Result<(), Failure> {
    let node = context.node()?;
    let request = match verb {
        Auto::Status => {
            let standing = node.ask(endpoint::AutomaticBackups).await?;
            return context.output.data(&standing, standing_text);
        }
        Auto::Now => {
            let made = node.ask(endpoint::MakeAutomaticBackup).await?;
            return context.output.data(&made, |made| made.path.clone());
        }
        Auto::Off => AutomaticBackupsRequest { on: false, passphrase: None, keep: None },
        Auto::On { passphrase_file, keep } => {
            let passphrase =
                passphrase_file.map(|file| read_passphrase(&PassphraseFile { passphrase_file: file }));
            let passphrase = passphrase.transpose()?.map(|passphrase| passphrase.expose().to_owned());
            AutomaticBackupsRequest { on: true, passphrase, keep }
        }
    };
    let standing = node.tell(endpoint::SetAutomaticBackups, &request).await?;
    if standing.on {
        context.output.prose(
            "Copy the backups to another machine and keep the passphrase somewhere else: the node does not have it, \
             and nothing else opens them.",
        );
    }
    context.output.data(&standing, standing_text)
}

fn standing_text(standing: &AutomaticBackups) -> String {
    let time = |secs: Option<u64>| secs.map_or_else(|| "-".to_owned(), clock::timestamp);
    let newest = standing.newest.as_ref();
    pairs([
        ("Daily", if standing.on { "on" } else { "off" }.to_owned()),
        ("Kept", standing.keep.to_string()),
        ("Folder", standing.folder.clone()),
        ("Newest", time(newest.map(|newest| newest.written_secs))),
        ("File", newest.map_or_else(|| "-".to_owned(), |newest| newest.name.clone())),
        ("Next", time(standing.next_secs)),
        ("Problem", standing.problem.clone().unwrap_or_else(|| "-".to_owned())),
    ])
}

fn replaced(all: &[ReplacedNode]) -> String {
    let row = |one: &ReplacedNode| {
        let wallet = one.wallet.clone().unwrap_or_else(|| "-".to_owned());
        [one.name.clone(), clock::timestamp(one.replaced_secs), one.bytes.to_string(), wallet]
    };
    table(["NAME", "REPLACED", "BYTES", "WALLET"], all.iter().map(row))
}

async fn forget(context: &Context, name: &str, yes: bool) -> Result<(), Failure> {
    let node = context.node()?;
    let all = node.ask(endpoint::ReplacedNodes).await?;
    let own = node.ask(endpoint::Status).await?.address.to_string();
    if let Some(found) = all.iter().find(|found| found.name == name)
        && !yes
    {
        context.output.confirm(&question(found, &own))?;
    }
    let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let gone = node.ask(endpoint::RemoveReplacedNode.of(name)).await?;
    if let Some(told) = told(&gone, &own) {
        context.output.prose(&told);
    }
    context.output.data(&gone, |gone| replaced(std::slice::from_ref(gone)))
}

/// Asks about the wallet that goes with the files of a replaced node; `own` is that of the node that runs.
fn question(found: &ReplacedNode, own: &str) -> String {
    let wallet = found.wallet.as_deref().unwrap_or("that could not be read");
    let lost = had(found, own).unwrap_or_default();
    format!("Permanently remove {} and the wallet {wallet} in it?{lost}", found.name)
}

/// Tells what went.
fn told(gone: &ReplacedNode, own: &str) -> Option<String> {
    let had = had(gone, own)?;
    let what = if is_of(gone, own) { "Its vouchers are" } else { "Its wallet is" };
    Some(format!("{what} removed from this machine.{had}"))
}

fn is_of(found: &ReplacedNode, own: &str) -> bool {
    found.wallet.as_deref() == Some(own)
}

/// Tells what goes with the files of a replaced node: the better vouchers of `own`, or another wallet with all that it has.
fn had(found: &ReplacedNode, own: &str) -> Option<String> {
    found.wallet.as_ref()?;
    if is_of(found, own) {
        let left = found.left.as_ref().filter(|left| !left.unclaimed.0.is_zero())?;
        return Some(format!(
            " It is this node's wallet. When it was replaced, it had {} USDC earned and not claimed. The part that \
             this node does not know about is lost with these files, unless the payers come back.",
            left.unclaimed
        ));
    }
    let sums = found.left.as_ref().map(|left| format!(" When it was replaced, it had {}.", left.sums()));
    Some(format!(
        " It is not this node's wallet. Without its phrase or a backup, nobody can reach the money it holds, has \
         earned or has in channels.{}",
        sums.unwrap_or_default()
    ))
}

/// With or without a node that runs on the folder, which is looked through before anything is written there.
fn verify(bytes: &[u8], passphrase: &SecretText, data_dir: &Path) -> Result<BackupSummary, BackupError> {
    // A node may start meanwhile.
    let looked_through = lock_folder(data_dir).map(drop);
    match looked_through {
        Ok(()) | Err(DataFolderError::InUse { .. }) => backup::verify(bytes, passphrase, data_dir),
        Err(error) => Err(error.into()),
    }
}

async fn restore(context: &Context, file: &Path, passphrase: &PassphraseFile) -> Result<(), Failure> {
    let (bytes, passphrase) = (read(file)?, read_passphrase(passphrase)?);
    // The settings of the backup are in the backup: the folder alone is asked for.
    let data_dir = farthing_config::load(&context.sources())?.config.node.data_dir;
    let folder = data_dir.clone();
    let facts = on_the_side(move || backup::restore(&bytes, &passphrase, &folder)).await?;
    context.output.prose(&format!(
        "Restored. Make sure that the old node no longer runs. Start this one with `farthing run --data {}`, check \
         `farthing channel list`, then allow buying again with `farthing spending resume`. All secrets are new \
         (`farthing secret show`). Limits and daily backups are as they were in the backup.",
        word(&data_dir)
    ));
    context.output.data(&ShownBackup::from(&facts), ShownBackup::text)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| input::unreadable(path.display(), &error))
}

fn read_passphrase(file: &PassphraseFile) -> Result<SecretText, Failure> {
    let text = input::text(&file.passphrase_file, PASSPHRASE_BYTES_MAX)?;
    Ok(SecretText::new(text.trim_end_matches(['\n', '\r'])))
}

/// As it is told.
#[derive(Serialize)]
struct ShownBackup {
    made: String,
    wallet: String,
    files: Vec<String>,
    channels: usize,
    /// Channels whose signatures were not verified.
    unverified: usize,
    violations: u64,
}

impl From<&BackupSummary> for ShownBackup {
    fn from(facts: &BackupSummary) -> Self {
        Self {
            made: clock::timestamp(facts.made_secs),
            wallet: facts.wallet.clone(),
            files: facts.files.clone(),
            channels: facts.channels,
            unverified: facts.unverified,
            violations: facts.violations,
        }
    }
}

impl ShownBackup {
    fn text(&self) -> String {
        pairs([
            ("Created", self.made.clone()),
            ("Wallet", self.wallet.clone()),
            ("Files", self.files.join(" ")),
            ("Channels", self.channels.to_string()),
            ("Unverified", self.unverified.to_string()),
            ("Violations", self.violations.to_string()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use farthing_control::types::{Eth, Text, WalletBalance};
    use farthing_protocol::{Address, Usdc};

    use super::*;

    fn replaced(left: Option<WalletBalance>) -> ReplacedNode {
        ReplacedNode {
            name: "replaced-x".to_owned(),
            path: String::new(),
            bytes: 1,
            replaced_secs: 1,
            wallet: Some("0xA".to_owned()),
            left,
        }
    }

    #[test]
    fn the_question_and_the_answer_name_what_goes_with_the_files() {
        let usdc = |micros| Text(Usdc::from_micros(micros));
        let left = WalletBalance {
            address: Text(Address::ZERO),
            usdc: Some(usdc(322_000)),
            eth: Some(Text(Eth { wei: 1_000_000_000_000_000 })),
            in_channels: usdc(40_000),
            unclaimed: usdc(94_000),
            stale: None,
        };
        let found = replaced(Some(left));
        let told = had(&found, "0xB").unwrap();
        assert!(question(&found, "0xB").ends_with(&told), "{told}");
        let sums = "0.04 USDC in channels, 0.094 USDC earned and not claimed, and 0.322 USDC and 0.001 ETH in the wallet";
        assert!(told.ends_with(&format!(" When it was replaced, it had {sums}.")), "{told}");
        assert_eq!(
            super::told(&found, "0xB").unwrap(),
            format!("Its wallet is removed from this machine.{told}")
        );

        let told = had(&found, "0xA").unwrap();
        assert!(
            told.contains("it had 0.094 USDC earned and not claimed. The part that this node does not know"),
            "{told}"
        );
        assert!(question(&found, "0xA").ends_with(&told), "{told}");
        assert_eq!(
            super::told(&found, "0xA").unwrap(),
            format!("Its vouchers are removed from this machine.{told}")
        );
        let none = found.left.clone().map(|left| WalletBalance { unclaimed: usdc(0), ..left });
        assert_eq!(
            had(&ReplacedNode { left: none, ..found }, "0xA"),
            None,
            "the rest is this node's as well"
        );
    }

    #[test]
    fn the_question_says_that_money_goes_with_a_wallet_that_is_not_the_nodes() {
        let found = replaced(None);
        assert_eq!(question(&found, "0xA"), "Permanently remove replaced-x and the wallet 0xA in it?");
        let asked = question(&found, "0xB");
        assert!(asked.contains("wallet 0xA in it? It is not this node's wallet"), "{asked}");
        let unread = question(&ReplacedNode { wallet: None, ..found }, "0xB");
        assert_eq!(unread, "Permanently remove replaced-x and the wallet that could not be read in it?");
    }
}
