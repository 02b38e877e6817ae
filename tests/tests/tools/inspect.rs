//! `farthing bridge inspect`: what these tests judge comes from the program, as an owner would get it.

use std::{
    ffi::OsStr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::{ServiceProcess, program};
use serde_json::Value;
use tokio::{io::AsyncReadExt as _, process::Command};

use crate::kit::{Said, run};

/// What a registration took.
#[derive(Debug)]
pub struct Measured {
    pub report: Value,
    /// From the start of the program to the first byte of its report.
    pub elapsed: Duration,
    /// The most memory it had at once.
    pub memory_kib: u64,
}

/// Runs `farthing bridge inspect SOURCE …`.
pub async fn inspect(source: &OsStr, arguments: &[&str]) -> Result<Said> {
    run(command(source)?.args(arguments), b"").await
}

/// The same for what must work.
pub async fn inspected(source: &Path, arguments: &[&str]) -> Result<String> {
    let said = inspect(source.as_os_str(), arguments).await?;
    ensure!(said.code == 0, "inspect {} {arguments:?}: {}", source.display(), said.err);
    Ok(said.out)
}

/// The registration report, with what it cost.
pub async fn measured(source: &Path) -> Result<Measured> {
    let started = Instant::now();
    let mut command = command(source.as_os_str())?;
    let mut child =
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut stdout = child.stdout.take().context("no output")?;
    let mut report = vec![stdout.read_u8().await.context("no report")?];
    let elapsed = started.elapsed();
    // What is left of the report does not fit into the pipe, so the program waits for us.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id().context("it has ended")?))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak of memory")?;
    let memory_kib = peak.trim().trim_end_matches(" kB").parse()?;
    stdout.read_to_end(&mut report).await?;
    ensure!(child.wait().await?.success(), "the report failed");
    Ok(Measured { report: serde_json::from_slice(&report)?, elapsed, memory_kib })
}

/// Writes the schema that the exoplanets service publishes of itself.
pub async fn write_exoplanets(path: &Path) -> Result<()> {
    let service = ServiceProcess::start("exoplanets").await?;
    farthing_serve::tls::install_provider();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let schema = client.get(format!("{}/schema.graphql", service.url)).send().await?.error_for_status()?;
    Ok(std::fs::write(path, schema.bytes().await?)?)
}

fn command(source: &OsStr) -> Result<Command> {
    let mut command = Command::new(program("farthing")?);
    command.args(["bridge", "inspect"]).arg(source).env_clear();
    Ok(command)
}
