//! A full node: what the console's pages are measured and judged with.

use std::path::Path;

use anyhow::{Result, ensure};
use farthing_protocol::Address;
use farthing_testnet::program;
use tokio::process::Command;

pub const LISTINGS: usize = 5_000;
pub const CALLS: u64 = 100_000;

/// What `network.name` must be of a node that is filled.
pub const NETWORK: &str = "local-full";

/// Fills the stores of a node that has run once and does not run now. Its `network.name` is [`NETWORK`]. The program
/// `farthing-fill` does it, so that whoever asks links no store.
pub async fn fill(data_dir: &Path, wallet: Address) -> Result<()> {
    let mut filling = Command::new(program("farthing-fill")?);
    let ended = filling.arg(data_dir).arg(wallet.to_string()).kill_on_drop(true).status().await?;
    ensure!(ended.success(), "farthing-fill: {ended}");
    Ok(())
}
