//! A node of before in one network with a node of this workspace, both ways round, and on one folder with it.
//!
//! A variable names its program: the last release, or a build that speaks `call/1` alone. It has to know the settings of a
//! world, and its control socket has to answer what a world asks.

use std::{env, path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::{
    calls::{cost, expect_served, with},
    command::run,
    tell::tell,
    world::{Build, FUNDS, Setup, World},
};
use futures::future::try_join_all;
use serde_json::json;

const PROGRAM: &str = "FARTHING_EARLIER_PROGRAM";
/// One after the other, and then at once.
const CALLS: u64 = 3;
const AT_ONCE: u64 = 16;
const LARGE_BYTES: usize = 1024 * 1024;
/// A start that is refused ends long before; one that is not would run for ever.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// The earlier build; says so when none is named.
fn earlier() -> Result<Option<Build>> {
    let Some(program) = env::var_os(PROGRAM).map(PathBuf::from) else {
        tell(&format!("\n  SKIPPED: a node of before that buys and sells, because {PROGRAM} names none\n"));
        return Ok(None);
    };
    ensure!(program.is_file(), "{PROGRAM}: {} is no program", program.display());
    Ok(Some(Build { launcher: Vec::new(), program: Some(program) }))
}

/// Calls one after the other, many at once, and a large one; then both close what they had.
async fn trade(world: &World) -> Result<()> {
    world.wait_until_met().await?;
    for _ in 0..CALLS {
        expect_served(&world.get("/ok").await?)?;
    }
    for answer in try_join_all((0..AT_ONCE).map(|_| world.get("/ok"))).await? {
        expect_served(&answer)?;
    }
    let large = with(world.body("POST", "/echo"), "body", json!({ "text": "m".repeat(LARGE_BYTES) }));
    let answer = world.call(&large).await?;
    expect_served(&answer)?;
    ensure!(answer.json() == large["body"], "another answer than what was sent");
    let (calls, hits) = (CALLS + AT_ONCE + 1, world.upstream.hits());
    ensure!(hits == calls, "{hits} requests of {calls} calls");
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == cost(calls), "{charged} for {calls} calls");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_before_sells_to_one_of_today() -> Result<()> {
    let Some(owner_build) = earlier()? else { return Ok(()) };
    trade(&World::with(Setup { owner_build, ..Setup::default() }).await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_before_buys_from_one_of_today() -> Result<()> {
    let Some(consumer_build) = earlier()? else { return Ok(()) };
    trade(&World::with(Setup { consumer_build, ..Setup::default() }).await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_a_node_of_before_is_shared_with_no_other_program_and_goes_on_with_todays() -> Result<()>
{
    let Some(Build { program, .. }) = earlier()? else { return Ok(()) };
    let (chain, folder) = (LocalChain::start().await?, tempfile::tempdir()?);
    let today = NodeOptions::new(folder.path().join("node"));
    let mut before = NodeProcess::start(&chain, NodeOptions { program, ..today.clone() }).await?;
    let wallet = before.status().await?.address.0;
    let data = before.data_dir().display().to_string();
    let (token, url) =
        (format!("chain.token={}", chain.token), format!("chain.rpc_urls={}", chain.rpc_url()));
    let arguments = ["run", "--set", "chain.preset=local", "--set", &token, "--set", &url];
    let beside = tokio::time::timeout(ENDS_WITHIN, run(&data, &arguments)).await??;
    ensure!(beside.code != 0 && beside.err.contains("is in use by another node"), "{beside:?}");
    ensure!(!before.has_ended(), "the node that was there has ended: {}", before.log());
    before.stop().await?;
    let mut upgraded = NodeProcess::start(&chain, today).await?;
    let kept = upgraded.status().await?.address.0;
    ensure!(kept == wallet, "the folder of {wallet} has the wallet {kept} now");
    upgraded.stop().await
}
