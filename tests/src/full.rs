//! A full node: what the console's pages are measured and judged with.

use std::{env, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_testnet::program;
use farthing_values::{Address, CallId};
use tokio::process::Command;

pub const LISTINGS: usize = 5_000;
const CALLS_DEFAULT: u64 = 100_000;
/// One call follows another: 100,000 are a fortnight, and a million four and a half months.
pub const BETWEEN_CALLS_SECS: u64 = 12;

/// What `network.name` must be of a node that is filled.
pub const NETWORK: &str = "local-full";

/// Calls that a full node has bought: as many as `FARTHING_FULL_CALLS` says, 100,000 without it.
pub fn calls() -> Result<u64> {
    let Ok(text) = env::var("FARTHING_FULL_CALLS") else { return Ok(CALLS_DEFAULT) };
    let calls = text.parse::<u64>().context("FARTHING_FULL_CALLS is no number")?;
    ensure!(
        (CALLS_DEFAULT..=2_000_000).contains(&calls),
        "FARTHING_FULL_CALLS is from {CALLS_DEFAULT} to 2000000"
    );
    Ok(calls)
}

/// The id of a call of such a node; the oldest has number 0.
#[must_use]
pub fn call_id(number: u64) -> CallId {
    CallId::from_idempotency_key(&number.to_string())
}

/// Fills the stores of a node that has run once and does not run now. Its `network.name` is [`NETWORK`]. The program
/// `farthing-peers` does it, so that whoever asks links no store.
pub async fn fill(data_dir: &Path, wallet: Address, calls: u64) -> Result<()> {
    let mut filling = Command::new(program("farthing-peers")?);
    filling.arg("fill").arg(data_dir).args([wallet.to_string(), calls.to_string()]);
    let ended = filling.kill_on_drop(true).status().await?;
    ensure!(ended.success(), "farthing-peers: {ended}");
    Ok(())
}
