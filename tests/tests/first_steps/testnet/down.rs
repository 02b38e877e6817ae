//! `farthing testnet up` and `down`: a person leaves a network running, and ends it from another terminal.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use farthing_testnet::program;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// A chain, three nodes and two services start, beside other tests.
const UP_WITHIN: Duration = Duration::from_secs(240);
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// A command whose temporary files are in `folder`: networks of other tests are none of ours.
fn testnet(folder: &Path, verb: &str) -> Result<Command> {
    let mut command = Command::new(program("farthing")?);
    command.args(["testnet", verb]).env("TMPDIR", folder).stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

#[tokio::test]
async fn what_was_left_running_is_stopped_from_another_terminal_and_nothing_is_left_of_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let unused = testnet(folder.path(), "up")?.args(["--data", "mine"]).output().await?;
    let said = String::from_utf8_lossy(&unused.stderr).into_owned();
    ensure!(unused.status.code() == Some(2) && said.contains("does not take --data"), "{said}");

    let none = testnet(folder.path(), "down")?.output().await?;
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    ensure!(none.status.success() && said.contains("No test network of yours runs"), "{said}");

    let mut up = testnet(folder.path(), "up")?.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(up.stdout.take().context("no output")?).lines();
    let mut told = String::new();
    let is_up = async {
        while let Some(line) = lines.next_line().await? {
            told.push_str(&line);
            told.push('\n');
            if line.contains("testnet down") {
                return anyhow::Ok(());
            }
        }
        anyhow::bail!("it ended")
    };
    tokio::time::timeout(UP_WITHIN, is_up).await?.with_context(|| told.clone())?;
    ensure!(told.contains("/panel") && told.contains("Ctrl-C"), "{told}");
    ensure!(told.contains("tls/ca.pem") && told.contains("SHA-256"), "{told}");

    let down = testnet(folder.path(), "down")?.output().await?;
    let said = String::from_utf8_lossy(&down.stderr).into_owned();
    ensure!(down.status.success() && said.contains("has stopped"), "{said}");
    let ended = tokio::time::timeout(ENDED_WITHIN, up.wait()).await??;
    ensure!(ended.success(), "{ended}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path())?.filter_map(Result::ok).map(|one| one.path()).collect();
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn whoever_has_the_program_alone_is_told_what_it_can_do() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let alone = folder.path().join("bin");
    std::fs::create_dir(&alone)?;
    let alone = alone.join("farthing");
    std::fs::copy(program("farthing")?, &alone)?;
    // Whether or not somebody has it already, such as a node of this machine's user.
    let _in_use = std::net::TcpListener::bind(("127.0.0.1", 3000));
    for verb in ["demo", "up"] {
        let ran = Command::new(&alone).args(["testnet", verb]).env("TMPDIR", folder.path()).output().await?;
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        ensure!(ran.status.code() == Some(1), "{verb}: {}: {said}", ran.status);
        ensure!(said.contains("earthquakes is not beside this program"), "{verb}: {said}");
        ensure!(said.contains("`farthing init --chain base-sepolia`"), "{verb}: {said}");
        ensure!(ran.stdout.is_empty(), "{verb} has begun: {}", String::from_utf8_lossy(&ran.stdout));
    }
    Ok(())
}
