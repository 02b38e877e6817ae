//! The data folder's contents that belong together: lock, wallet, ledger, consumer secrets.
//!
//! Where there is no wallet yet the ledger is made first: a crash between the two leaves an empty ledger, which
//! the next start takes, and never a wallet without one. An empty ledger beside the wallet of a node would
//! forget what was promised and earned, and is never made. The wallet of another program has promised nothing here until a
//! ledger is made beside it, and from then on says so itself.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use farthing_config::Config;
use farthing_ledger::{Ledger, OpenError, OpenMode};
use farthing_os::{file_names, lock::DataFolder};
use farthing_protocol::wire::NetworkName;
use farthing_wallet::{OpenedWallet, Wallet, lock_folder};

use crate::{
    backup,
    secret::file::{SecretFile, StoredSecrets},
};

/// A locked data folder, of which it is decided whether its ledger is there or has to be made.
#[derive(Debug)]
pub struct LockedHome {
    lock: DataFolder,
    mode: OpenMode,
}

impl LockedHome {
    /// Locks the folder, and makes it where it is missing; nothing else is made in it.
    ///
    /// # Errors
    /// What keeps a node from it, with what to do; [`OpenError::Missing`] where the ledger of its wallet is lost.
    pub fn lock(data_dir: &Path) -> anyhow::Result<Self> {
        let lock = lock_folder(data_dir)?;
        let mode = ledger_mode(data_dir)?;
        Ok(Self { lock, mode })
    }
}

/// An opened data folder.
#[derive(Debug)]
pub struct Home {
    pub lock: DataFolder,
    pub opened: OpenedWallet,
    pub ledger: Ledger,
    pub secret_file: SecretFile,
    pub secrets: StoredSecrets,
}

impl Home {
    /// Opens the folder, or makes what a first start makes. Protecting a passphrase takes a second of one core
    /// by design: call it outside of async tasks.
    ///
    /// # Errors
    /// What is missing or broken, with what to do.
    pub fn open(config: &Config, locked: LockedHome) -> anyhow::Result<Self> {
        let LockedHome { lock, mode } = locked;
        let data_dir = lock.path();
        backup::remove_leftovers(data_dir)?;
        if mode == OpenMode::Create && Wallet::exists(data_dir) {
            let folder = data_dir.display();
            tracing::warn!(
                %folder,
                "this wallet was brought here, and its ledger begins now: make sure that no other node runs with it"
            );
        }
        let ledger =
            Ledger::open(&data_dir.join(file_names::LEDGER), mode).context("the ledger cannot be opened")?;
        let is_used =
            || anyhow::Ok(!ledger.payee_channels()?.is_empty() || !ledger.payer_channels()?.is_empty());
        ensure!(
            mode == OpenMode::Existing || !is_used()?,
            "{} has the channels of a wallet that is missing; restore wallet.json, or move the folder away to start \
             again",
            data_dir.join(file_names::LEDGER).display()
        );
        let opened = Wallet::open_or_create(data_dir, config.wallet.passphrase.as_ref())?;
        // Before anything is promised with it. It may be a file that nobody can write to.
        if let Err(error) = Wallet::note_use(data_dir).map_err(anyhow::Error::from) {
            tracing::warn!(
                error = format!("{error:#}"),
                "the wallet's file is not marked as used by a node: if you restore it, restore the ledger too"
            );
        }
        let secret_file = SecretFile::in_folder(data_dir);
        let secrets = secret_file.load_or_create()?;
        Ok(Self { lock, opened, ledger, secret_file, secrets })
    }
}

/// The files and folders of which any tells that a node has run on the folder. Earlier programs wrote it into no wallet.
const LEFT_BY_NODES: [&str; 6] = [
    file_names::LEDGER,
    file_names::SECRETS,
    file_names::CHOSEN_SETTINGS,
    file_names::CONSOLE,
    file_names::NETWORKS,
    file_names::BACKUPS,
];

/// Decides whether a start opens a ledger or makes one. It makes one for a new wallet, and for one that another program may have
/// written, as long as no node has used it or run on the folder. An empty file is no ledger.
fn ledger_mode(data_dir: &Path) -> Result<OpenMode, OpenError> {
    let ledger = data_dir.join(file_names::LEDGER);
    let has_wallet = Wallet::exists(data_dir);
    let is_empty = ledger.metadata().is_ok_and(|file| file.len() == 0);
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    if has_wallet && !is_empty && is_there(&ledger) {
        return Ok(OpenMode::Existing);
    }
    let is_left = LEFT_BY_NODES.iter().any(|name| is_there(&data_dir.join(name)));
    let is_new = !has_wallet || (Wallet::is_brought(data_dir) && !is_left);
    if is_new { Ok(OpenMode::Create) } else { Err(OpenError::Missing { path: ledger }) }
}

/// The folder of what was learned of one network: its peers, records and listings. Each network has its own, so
/// that they are there again when a node that was on another one for a while returns.
pub fn network_folder(data_dir: &Path, network: &NetworkName) -> PathBuf {
    let networks = data_dir.join(file_names::NETWORKS);
    let folder = networks.join(network.as_str());
    if let (Some(chosen), Some(_)) = network.parts() {
        // A folder that has a chain in its name is another network's, of this version.
        if NetworkName::new(chosen).is_ok_and(|former| former.parts().1.is_none()) {
            adopt(&networks.join(chosen), &folder);
        }
    }
    if !folder.exists() {
        let names = std::fs::read_dir(&networks).into_iter().flatten().flatten().take(OTHERS_SHOWN_MAX);
        let others: Vec<String> = names.map(|name| name.file_name().to_string_lossy().into_owned()).collect();
        if !others.is_empty() {
            tracing::info!(
                %network,
                others = others.join(", "),
                "this node is new to this network; its records of the earlier network are kept"
            );
        }
    }
    folder
}

/// Reads which chains, by number, the node of this folder was on.
pub fn chains(data_dir: &Path) -> BTreeSet<u64> {
    let folders = std::fs::read_dir(data_dir.join(file_names::NETWORKS)).into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let networks = names.filter_map(|name| NetworkName::new(name).ok());
    networks.filter_map(|network| network.parts().1).collect()
}

/// Earlier versions named the folder as the network was called, without the chain. Peers and content in it are of use
/// still; listings and records are signed for the earlier name, and learned again.
fn adopt(former: &Path, folder: &Path) {
    if folder.exists() || !former.is_dir() {
        return;
    }
    let renamed = std::fs::rename(former, folder);
    let catalog = folder.join("catalog.redb");
    let (former, folder) = (former.display(), folder.display());
    match renamed {
        Ok(()) => {
            // If it stays, the catalog finds it to be of another network, and puts it aside with a warning.
            let _ = std::fs::remove_file(catalog);
            tracing::info!(%former, %folder, "a network's name and its folder now include the chain");
        }
        Err(error) => {
            tracing::warn!(%former, %folder, %error, "the folder of this network cannot be renamed; a new one is made");
        }
    }
}

/// Networks named in one line of the log.
const OTHERS_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use farthing_os::secret::SecretText;

    use super::*;

    #[test]
    fn a_ledger_is_made_for_a_new_wallet_and_for_one_that_no_node_has_used() {
        let made = tempfile::tempdir().unwrap();
        let words = SecretText::new(format!("{}about", "abandon ".repeat(11)));
        Wallet::import(made.path(), &words, None).unwrap();
        let used = std::fs::read_to_string(made.path().join("wallet.json")).unwrap();
        let others = used.replace("x-farthing", "x-other");
        let mode = |files: &[(&str, &str)]| {
            let data = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(data.path().join(name), text).unwrap();
            }
            ledger_mode(data.path()).ok()
        };
        let (used, others) = (("wallet.json", used.as_str()), ("wallet.json", others.as_str()));
        assert_eq!(mode(&[]), Some(OpenMode::Create));
        assert_eq!(mode(&[used]), None, "all but the wallet is lost");
        assert_eq!(mode(&[others]), Some(OpenMode::Create));
        for prepared in ["farthing.toml", "wallet.passphrase", "lock"] {
            assert_eq!(mode(&[others, (prepared, "")]), Some(OpenMode::Create), "{prepared}");
        }
        for left in ["secrets.toml", "settings.toml", "console.json", "networks", "backups"] {
            assert_eq!(mode(&[others, (left, "")]), None, "{left}");
        }
        for wallet in [used, others] {
            assert_eq!(mode(&[wallet, ("ledger.redb", "")]), None, "an empty file is no ledger");
            assert_eq!(mode(&[wallet, ("ledger.redb", "any")]), Some(OpenMode::Existing));
        }
    }

    #[test]
    fn a_folder_named_without_the_chain_is_taken_over_unless_it_is_another_networks() {
        let data = tempfile::tempdir().unwrap();
        let networks = data.path().join("networks");
        for name in ["lab", "31337", "lab-8453"] {
            std::fs::create_dir_all(networks.join(name)).unwrap();
            std::fs::write(networks.join(name).join("network.redb"), name).unwrap();
        }
        let folder =
            |chosen| network_folder(data.path(), &NetworkName::on_chain(Some(chosen), 84_532).unwrap());
        for (chosen, holds) in [("lab", Some("lab")), ("31337", None), ("lab-8453", None), ("new", None)] {
            let held = std::fs::read_to_string(folder(chosen).join("network.redb")).ok();
            assert_eq!(held.as_deref(), holds, "{chosen}");
        }
        assert!(!networks.join("lab").exists() && networks.join("31337").exists());
        assert!(networks.join("lab-8453").exists());
        // "31337" is a chain's number, and names without one tell of no chain.
        std::fs::create_dir(networks.join("former")).unwrap();
        assert_eq!(chains(data.path()), BTreeSet::from([8_453, 31_337, 84_532]));
        assert!(chains(&data.path().join("none")).is_empty());
        // Once there is one of the full name, it is the one.
        std::fs::create_dir_all(networks.join("lab")).unwrap();
        assert!(folder("lab").join("network.redb").exists() && networks.join("lab").exists());
    }
}
