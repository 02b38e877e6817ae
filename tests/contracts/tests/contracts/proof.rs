//! Histories of the contract in forge, which plays thousands of steps in seconds.
//!
//! `tests/contracts/proof` has their steps and invariants. `make contract-proof` plays more of them, and proves the
//! rules of single calls.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::random::seed;

/// What forge says if it played all that the settings of the proof ask for.
const PLAYED: &str = "(runs: 4, calls: 4000, reverts: 0)";

#[test]
fn four_thousand_steps_with_hostile_tokens_keep_every_invariant_in_forge() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proof");
    let Some(forge) = forge(&folder) else {
        // `eprintln` would be captured. `make test` does not install forge, so its absence is no failure.
        let _ = writeln!(
            io::stderr(),
            "\n  SKIPPED: histories of the contract in forge, because forge is missing: run `make forge-deps`\n"
        );
        return Ok(());
    };
    let seed = seed().to_string();
    let output = Command::new(forge)
        .args(["test", "--fuzz-seed", &seed])
        .env_remove("FOUNDRY_PROFILE")
        .current_dir(&folder)
        .output()
        .context("forge does not start")?;
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "seed {seed}:\n{said}\n{complaints}");
    ensure!(said.contains(PLAYED), "forge did not play all histories:\n{said}");
    Ok(())
}

/// The program of this machine's platform; npm installs no other.
fn forge(folder: &Path) -> Option<PathBuf> {
    let builds = fs::read_dir(folder.join("node_modules/@foundry-rs")).ok()?;
    builds.flatten().map(|build| build.path().join("bin/forge")).find(|program| program.is_file())
}
