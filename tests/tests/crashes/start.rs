//! Data folders a node must not start on: each is refused in one message that says what to do.

use std::{
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::{NodeOptions, NodeProcess, program};
use farthing_tests::{command::run, tell::tell, wait::eventually};
use tokio::process::Command;

/// Makes what a first start makes.
const INIT: [&str; 3] = ["init", "--chain", "base-sepolia"];

/// A chain nobody answers for: the tests here end before it matters.
fn chain() -> Vec<(String, String)> {
    [
        ("chain.preset", "local"),
        ("chain.rpc_urls", "http://127.0.0.1:9"),
        ("chain.chain_id", "31337"),
        ("chain.token", "0x0000000000000000000000000000000000000001"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .to_vec()
}

/// A start that is expected to fail.
async fn refused(folder: &Path) -> Result<String> {
    refused_at(folder, "127.0.0.1:0").await
}

/// The program, about to run on a folder, with a gateway that listens there.
fn command_at(folder: &Path, gateway: &str) -> Result<Command> {
    let mut command = Command::new(program("farthing")?);
    command.args(["run", "--new", "--data"]).arg(folder).stdin(Stdio::null()).kill_on_drop(true);
    command
        .env("FARTHING_GATEWAY__LISTEN", gateway)
        .env("FARTHING_PANEL__LISTEN", "127.0.0.1:0")
        .env("FARTHING_NETWORK__LISTEN", "/ip4/127.0.0.1/tcp/0");
    for (key, value) in chain() {
        command.env(format!("FARTHING_{}", key.replace('.', "__").to_uppercase()), value);
    }
    Ok(command)
}

/// The same with a gateway that listens there.
async fn refused_at(folder: &Path, gateway: &str) -> Result<String> {
    let mut command = command_at(folder, gateway)?;
    let run = tokio::time::timeout(std::time::Duration::from_secs(30), command.output());
    let Output { status, stderr, .. } = run.await??;
    let said = String::from_utf8_lossy(&stderr).into_owned();
    ensure!(!status.success(), "it started: {said}");
    ensure!(!said.contains("panicked"), "{said}");
    Ok(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_named_from_where_the_node_started_is_found_from_everywhere() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Links may lead to it, and what is shown is what the system calls it.
    let here = folder.path().canonicalize()?;
    let mut command = command_at(Path::new("r2"), "127.0.0.1:0")?;
    command.current_dir(&here).stdout(Stdio::null()).stderr(Stdio::null());
    let mut node = command.spawn()?;
    let data = here.join("r2");
    let elsewhere = data.display().to_string();
    eventually("it runs", async || {
        ensure!(node.try_wait()?.is_none(), "the node ended");
        Ok(run(&elsewhere, &["status"]).await?.code == 0)
    })
    .await?;
    let passphrase = here.join("passphrase");
    std::fs::write(&passphrase, "four random words here\n")?;
    let (passphrase, to) = (passphrase.display().to_string(), here.join("node.backup").display().to_string());
    let create = ["backup", "create", "--to", &to, "--passphrase-file", &passphrase];
    run(&elsewhere, &create).await?.ends_with(0)?;
    let listed = run(&elsewhere, &["backup", "list", "--json"]).await?;
    let listed = listed.ends_with(0)?.json()?;
    let path = listed[0]["path"].as_str().unwrap_or_default();
    ensure!(Path::new(path).starts_with(&data) && Path::new(path).is_file(), "{listed}");
    node.kill().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_in_use_or_damaged_is_refused_with_what_to_do() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node");
    let mut node = NodeProcess::start_on(chain(), NodeOptions::new(&data)).await?;
    let pid = std::fs::read_to_string(data.join("lock"))?;

    // Its ports are taken as well, which would be the lesser advice.
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let said = refused_at(&data, &taken.local_addr()?.to_string()).await?;
    ensure!(said.contains("is in use by another node") && said.contains(pid.trim()), "{said}");
    ensure!(!node.has_ended(), "the first node goes on");
    node.stop().await?;

    let (ledger, aside) = (data.join("ledger.redb"), folder.path().join("ledger.aside"));
    std::fs::rename(&ledger, &aside)?;
    for left in [None, Some("")] {
        if let Some(text) = left {
            std::fs::write(&ledger, text)?;
        }
        let said = refused(&data).await?;
        ensure!(said.contains("is missing") && said.contains("restore a backup"), "{left:?}: {said}");
        let found = std::fs::read_to_string(&ledger).ok();
        ensure!(found.as_deref() == left, "an empty ledger was made beside a used wallet");
    }

    std::fs::write(&ledger, "not a ledger")?;
    let said = refused(&data).await?;
    ensure!(said.contains("ledger"), "{said}");
    ensure!(std::fs::read(&ledger)? == b"not a ledger", "a file that is no ledger is left as it was");
    std::fs::rename(&aside, &ledger)?;

    let wallet = data.join("wallet.json");
    let whole = std::fs::read(&wallet)?;
    for damaged in [&b"{"[..], b"", &whole[..whole.len() / 2]] {
        std::fs::write(&wallet, damaged)?;
        let said = refused(&data).await?;
        ensure!(said.contains("wallet.json cannot be used"), "{said}");
        ensure!(std::fs::read(&wallet)? == damaged, "a wallet that cannot be read is left as it was");
    }
    std::fs::write(&wallet, &whole)?;
    node.restart(Vec::new()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_has_the_settings_read_again_and_ends_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node");
    std::fs::create_dir(&data)?;
    let settings = |text: &str| std::fs::write(data.join("farthing.toml"), text);
    settings("[log]\nfilter = \"off\"\n[spending]\nper_day = \"2\"\n")?;
    let mut node = NodeProcess::start_on(chain(), NodeOptions::new(&data)).await?;
    ensure!(!node.log().contains("INFO"), "{}", node.log());

    settings("[spending]\nper_day = \"3\"\n[limits]\ncalls_max = 7\n")?;
    node.ask_to_read_again()?;
    // What the log tells is itself read again.
    let logged = |node: &NodeProcess, line: &str| node.log().lines().any(|found| found.contains(line));
    eventually("the settings are read again", async || Ok(logged(&node, "the settings were read again")))
        .await?;
    eventually("a setting waits", async || Ok(logged(&node, "limits.calls_max"))).await?;
    ensure!(node.log().contains("spending.per_day, log.filter"), "{}", node.log());
    ensure!(node.log().contains("farthing restart"), "{}", node.log());
    let shown = async |name: &str| -> Result<String> {
        let settings = node.control().ask(endpoint::Config).await?;
        Ok(settings.into_iter().find(|setting| setting.name == name).context("no such setting")?.value)
    };
    assert_eq!(
        (shown("spending.per_day").await?, shown("limits.calls_max").await?),
        ("3".into(), "64".into())
    );
    let spending = node.control().ask(endpoint::Spending).await?;
    ensure!(spending.limits.per_day.to_string() == "3.00", "{spending:?}");

    settings("[spending]\nper_dya = \"4\"\n")?;
    node.ask_to_read_again()?;
    eventually("what is wrong is told", async || Ok(logged(&node, "the earlier ones stay in use"))).await?;
    ensure!(node.log().contains("did you mean spending.per_day"), "{}", node.log());
    assert_eq!(shown("spending.per_day").await?, "3");

    settings("[spending]\nenabled = false\n")?;
    node.ask_to_read_again()?;
    eventually("nothing is bought", async || Ok(!node.status().await?.spending)).await?;
    ensure!(!node.has_ended(), "a hangup ended the node");
    node.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_folder_is_refused_with_the_command_that_helps() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mount = |arguments: &[&str]| {
        std::process::Command::new("mount")
            .args(arguments)
            .arg(folder.path())
            .status()
            .is_ok_and(|s| s.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "ro,size=64k", "tmpfs"]) {
        tell("\n  SKIPPED: a read-only data folder, because mounting one needs root.\n");
        return Ok(());
    }
    let said = refused(folder.path()).await;
    std::process::Command::new("umount").arg(folder.path()).status()?;
    let said = said?;
    ensure!(said.contains("is not writable") && said.contains("mount -o remount,rw"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_place_of_the_folder_is_left_alone_and_a_folder_that_is_not_there_is_made() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("notes");
    std::fs::write(&file, "dear diary")?;
    for (data, told) in [(file.clone(), "names a file"), (file.join("node"), "leads through a file")] {
        let said = refused(&data).await?;
        ensure!(
            said.contains("--data") && said.contains(told) && said.contains("must be a folder"),
            "{said}"
        );
        let asked = run(&data.display().to_string(), &["status"]).await?;
        ensure!(asked.ends_with(2)?.err.contains(told), "{asked:?}");
    }
    ensure!(std::fs::read_to_string(&file)? == "dear diary", "the file was written to");

    let missing = folder.path().join("not/there/yet");
    let asked = run(&missing.display().to_string(), &["status"]).await?;
    ensure!(asked.ends_with(3)?.err.contains("farthing run"), "{asked:?}");
    ensure!(!folder.path().join("not").exists(), "a question made a folder");
    run(&missing.display().to_string(), &INIT).await?.ends_with(0)?;
    ensure!(missing.join("wallet.json").exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_folder_is_refused_and_serves_once_there_is_room() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs"])
        .arg(folder.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        tell("\n  SKIPPED: a full data folder, because mounting a small one needs root.\n");
        return Ok(());
    }
    let tried = full_and_then_not(folder.path()).await;
    std::process::Command::new("umount").arg("-l").arg(folder.path()).status()?;
    tried
}

async fn full_and_then_not(folder: &Path) -> Result<()> {
    // What else is in a folder without a wallet is refused before it is seen to be full.
    let filler = folder.join("node.log");
    let mut file = std::fs::File::create(&filler)?;
    for chunk in [1 << 20, 4_096, 512] {
        while file.write_all(&vec![1; chunk]).is_ok() {}
    }
    let said = refused(folder).await?;
    ensure!(said.contains("is full") && said.contains("free some disk space"), "{said}");
    // Its room is free once nobody has it open.
    drop(file);
    std::fs::remove_file(&filler)?;
    run(&folder.display().to_string(), &INIT).await?.ends_with(0).map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_setting_ends_the_program_with_the_code_after_which_the_system_service_stays_down()
-> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node").display().to_string();
    for wrong in ["network.listen=/foo", "network.announce=/ip4/0.0.0.0/tcp/0", "chain.preset=local"] {
        // A chain that is not there is no wrong setting; one without a token is.
        let arguments = ["run", "--set", "chain.rpc_urls=http://127.0.0.1:9", "--set", wrong];
        let ended =
            tokio::time::timeout(std::time::Duration::from_secs(30), run(&data, &arguments)).await??;
        ensure!(ended.code == 2, "{wrong}: {ended:?}");
        let setting = wrong.split('=').next().unwrap_or_default();
        let section = setting.split('.').next().unwrap_or_default();
        ensure!(ended.err.contains(&format!("{section}.")), "{wrong} is not named: {ended:?}");
    }
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/farthing.service");
    let unit = std::fs::read_to_string(unit)?;
    ensure!(unit.lines().any(|line| line == "RestartPreventExitStatus=2 4"), "{unit}");
    Ok(())
}
