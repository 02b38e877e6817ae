//! `farthing wallet export` and `import`: the wallet itself, from and to its owner. Neither needs a node.

use std::path::Path;

use farthing_config::{self as config, Config};
use farthing_ledger::{Ledger, OpenMode};
use farthing_node::backup::BackupError;
use farthing_os::{file_names, secret::SecretText};
use farthing_wallet::{Wallet, lock_folder};
use serde::Serialize;

use crate::{
    Context,
    failure::{Exit, Failure},
    input, on_the_side,
    output::pairs,
};

/// 24 words, not a document.
const PHRASE_BYTES_MAX: u64 = 1_024;

#[derive(Serialize)]
struct Exported {
    address: String,
    phrase: String,
}

pub(super) async fn export(context: &Context, keystore: bool, yes: bool) -> Result<(), Failure> {
    let config = config::load(&context.sources())?.config;
    let data_dir = config.node.data_dir.clone();
    if !Wallet::exists(&data_dir) {
        let what = format!("there is no wallet in {}", data_dir.display());
        return Err(Failure::new(Exit::Failure, what).next("name its folder with --data"));
    }
    if keystore {
        // Encrypted, as it lies there: other wallets read it with its passphrase.
        let path = data_dir.join(file_names::WALLET);
        let json = std::fs::read_to_string(&path).map_err(|error| {
            Failure::new(Exit::Failure, format!("{} cannot be read ({error})", path.display()))
                .next("check its owner")
        })?;
        return context.output.text(&json);
    }
    if !yes {
        context.output.confirm("Anyone who reads the phrase can take the wallet's money. Show it?")?;
    }
    let opened = on_the_side(move || -> anyhow::Result<_> {
        Ok(Wallet::open_or_create(&config.node.data_dir, config.wallet.passphrase.as_ref())?)
    })
    .await?;
    let Some(phrase) = opened.wallet.phrase() else {
        return Err(Failure::new(
            Exit::Failure,
            "this wallet has no phrase because it came from a keystore file",
        )
        .next("`farthing wallet export --keystore` prints its file"));
    };
    let exported =
        Exported { address: opened.wallet.address().to_string(), phrase: phrase.expose().to_owned() };
    context.output.data(&exported, |exported| exported.phrase.clone())
}

#[derive(Serialize)]
struct Imported {
    address: String,
    data_dir: String,
}

pub(super) async fn import(context: &Context, file: &Path) -> Result<(), Failure> {
    let text = input::text(file, PHRASE_BYTES_MAX)?;
    let phrase = SecretText::new(text.split_whitespace().collect::<Vec<_>>().join(" "));
    let config = config::load(&context.sources())?.config;
    let imported = on_the_side(move || make(&config, &phrase)).await?;
    context.output.data(&imported, |imported| {
        pairs([("Wallet", imported.address.clone()), ("Folder", imported.data_dir.clone())])
    })?;
    context.output.prose(
        "The node finds the wallet's channels on the chain and asks their owners what was promised. Make sure that no \
         other node runs with this wallet.",
    );
    Ok(())
}

/// The ledger first, as at every first start: a wallet without one is never left behind.
fn make(config: &Config, phrase: &SecretText) -> anyhow::Result<Imported> {
    let data_dir = &config.node.data_dir;
    let _lock = lock_folder(data_dir)?;
    let ledger = data_dir.join(file_names::LEDGER);
    let own = [data_dir.join(file_names::WALLET), ledger.clone()];
    if let Some(path) = own.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(BackupError::InUse { path }.into());
    }
    Wallet::check_phrase(phrase)?;
    drop(Ledger::open(&ledger, OpenMode::Create)?);
    let opened = Wallet::import(data_dir, phrase, config.wallet.passphrase.as_ref())?;
    Ok(Imported { address: opened.wallet.address().to_string(), data_dir: data_dir.display().to_string() })
}
