//! Wallets of the nodes under test.
//!
//! A node protects a new wallet with a second of work and 256 MiB, and spends the same at each start: half of the time that
//! tests of whole nodes took. These files are what a node makes, phrase and all, with the least work that scrypt knows. What
//! a node makes by itself is for the tests of the first start.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use farthing_testnet::NodeOptions;

/// One on each line; they were made for tests alone.
const WALLETS: &str = include_str!("wallets.jsonl");
const PASSPHRASE: &str = "tests";

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Options for a node in `data_dir`, which gets a wallet unless it has one.
///
/// # Errors
/// When the files cannot be written.
pub fn node_in(data_dir: impl AsRef<Path>) -> io::Result<NodeOptions> {
    let data_dir = data_dir.as_ref();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    if !data_dir.join("wallet.json").exists() {
        let wallet = WALLETS.lines().cycle().nth(NEXT.fetch_add(1, Ordering::Relaxed) % 64);
        write(&data_dir.join("wallet.passphrase"), PASSPHRASE)?;
        write(&data_dir.join("wallet.json"), wallet.unwrap_or_default())?;
    }
    Ok(NodeOptions::new(data_dir))
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::File::options().write(true).create_new(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}
