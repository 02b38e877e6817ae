//! What is committed is what the sources compile to, and what stands on the chain.

use std::{path::Path, process::Command};

use alloy::primitives::Bytes;
use anyhow::{Context as _, Result};
use farthing_contract_tests::{Chain, PayChannels, pay_channels_address};

#[test]
fn the_committed_artifacts_are_what_the_pinned_compiler_makes_of_the_sources() -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.mjs");
    let output =
        Command::new("node").arg(&script).arg("--check").output().context("node is not installed")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[tokio::test]
async fn the_code_on_the_chain_is_the_artifacts_to_the_byte() -> Result<()> {
    let chain = Chain::start().await?;
    assert_eq!(chain.channels, pay_channels_address());
    let code: Bytes = chain.request("eth_getCode", (chain.channels, "latest")).await?;
    assert_eq!(code, PayChannels::DEPLOYED_BYTECODE, "so its hash is the same on every chain");
    Ok(())
}
