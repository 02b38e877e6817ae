//! A node built for arm64 among nodes of this machine: it joins, sells to one, finds what one sells, and buys it.
//!
//! An emulator runs it, with the C library that comes with Debian's cross compiler. `deploy/test/arm64-test.sh` builds
//! the program and names it.

use std::{env, fs, io::Read as _, path::PathBuf};

use anyhow::{Context, Result, ensure};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    calls::{cost, expect_served},
    nodes::{only, search, words},
    tell::tell,
    wait::eventually,
    world::{Build, FUNDS, Setup, World},
};

const PROGRAM: &str = "FARTHING_ARM64_PROGRAM";
const EMULATOR: [&str; 3] = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"];
/// Where the head of an ELF file says for which machine it is, and what it says of arm64 (`EM_AARCH64`).
const MACHINE: usize = 18;
const ARM64: [u8; 2] = [183, 0];
const CALLS: u64 = 3;

/// The arm64 node; says so when none was built.
fn arm64() -> Result<Option<Build>> {
    let Some(program) = env::var_os(PROGRAM).map(PathBuf::from) else {
        tell(&format!(
            "\n  SKIPPED: an arm64 node that buys and sells, because {PROGRAM} names none: make arm64-test builds it\n"
        ));
        return Ok(None);
    };
    let mut head = [0; MACHINE + ARM64.len()];
    let file = fs::File::open(&program).with_context(|| program.display().to_string());
    file?.read_exact(&mut head)?;
    let is_arm64 = head.starts_with(b"\x7fELF") && head.ends_with(&ARM64);
    ensure!(is_arm64, "{PROGRAM}: {} is no program for arm64", program.display());
    Ok(Some(Build { launcher: EMULATOR.map(str::to_owned).to_vec(), program: Some(program) }))
}

fn is_emulated(node: &NodeProcess) -> Result<bool> {
    let pid = node.pid().context("the node has ended")?;
    let command = fs::read(format!("/proc/{pid}/cmdline"))?;
    Ok(command.starts_with(EMULATOR[0].as_bytes()))
}

/// The consumer meets the owner, finds its service, buys, and both close what they had.
async fn trade(world: &World) -> Result<()> {
    world.wait_until_met().await?;
    let query = words("Test service");
    eventually("the service is found", async || Ok(search(&world.consumer, &query).await?.total > 0)).await?;
    let page = search(&world.consumer, &query).await?;
    ensure!(only(&page)?.id == world.api.id, "another service is found: {page:?}");
    for _ in 0..CALLS {
        expect_served(&world.get("/ok").await?)?;
    }
    ensure!(world.upstream.hits() == CALLS, "{} requests of {CALLS} calls", world.upstream.hits());
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == cost(CALLS), "{charged} for {CALLS} calls");
    Ok(())
}

#[tokio::test]
async fn an_arm64_node_sells_and_claims_what_it_is_owed() -> Result<()> {
    let Some(owner_build) = arm64()? else { return Ok(()) };
    let world = World::with(Setup { owner_build, ..Setup::default() }).await?;
    ensure!(is_emulated(&world.owner)? && !is_emulated(&world.consumer)?, "the owner is not the arm64 node");
    trade(&world).await
}

#[tokio::test]
async fn an_arm64_node_finds_a_service_buys_and_closes_its_channel() -> Result<()> {
    let Some(consumer_build) = arm64()? else { return Ok(()) };
    let world = World::with(Setup { consumer_build, ..Setup::default() }).await?;
    ensure!(
        is_emulated(&world.consumer)? && !is_emulated(&world.owner)?,
        "the consumer is not the arm64 node"
    );
    trade(&world).await
}
