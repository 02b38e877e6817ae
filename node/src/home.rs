//! The data folder's contents that belong together: lock, wallet, ledger, consumer secrets.
//!
//! Where there is no wallet yet the ledger is made first: a crash between the two leaves an empty ledger, which
//! the next start takes, and never a wallet without one. An empty ledger beside the wallet of a node would
//! forget what was promised and earned, and is never made. The wallet of another program has promised nothing here.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use farthing_config::Config;
use farthing_ledger::{Ledger, OpenError, OpenMode};
use farthing_os::{file_names, lock::DataFolder};
use farthing_protocol::wire::NetworkName;
use farthing_wallet::{Opened, Wallet, lock_folder};

use crate::{
    backup,
    secret::file::{SecretFile, StoredSecrets},
};

/// An opened data folder.
#[derive(Debug)]
pub struct Home {
    pub lock: DataFolder,
    pub opened: Opened,
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
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let data_dir = &config.node.data_dir;
        let lock = lock_folder(data_dir)?;
        backup::remove_leftovers(data_dir)?;
        let mode = ledger_mode(data_dir)?;
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
            "{} holds the channels of a wallet that is not there; restore wallet.json, or move the folder away to start anew",
            data_dir.join(file_names::LEDGER).display()
        );
        let opened = Wallet::open_or_create(data_dir, config.wallet.passphrase.as_ref())?;
        let secret_file = SecretFile::in_folder(data_dir);
        let secrets = secret_file.load_or_create()?;
        Ok(Self { lock, opened, ledger, secret_file, secrets })
    }
}

/// Decides whether a start opens a ledger or makes one. It makes one for a new wallet, and for one that another program may have
/// written, as long as no node has run on the folder: its secrets would be there.
///
/// # Errors
/// [`OpenError::Missing`]: the ledger of this wallet is lost.
pub fn ledger_mode(data_dir: &Path) -> Result<OpenMode, OpenError> {
    let [ledger, secrets] = [file_names::LEDGER, file_names::SECRETS].map(|name| data_dir.join(name));
    let has_wallet = Wallet::exists(data_dir);
    if has_wallet && ledger.symlink_metadata().is_ok() {
        return Ok(OpenMode::Existing);
    }
    let is_new = !has_wallet || (Wallet::is_brought(data_dir) && secrets.symlink_metadata().is_err());
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
                "this node is new to the network; what it knows of others is kept until it returns to them"
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
            tracing::info!(%former, %folder, "a network's name has its chain in it now, and so has its folder");
        }
        Err(error) => {
            tracing::warn!(%former, %folder, %error, "the folder of this network cannot be renamed; a new one is begun");
        }
    }
}

/// Networks named in one line of the log.
const OTHERS_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

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
