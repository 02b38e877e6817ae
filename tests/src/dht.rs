//! Somebody else's DHT: js-libp2p's, from npm, as processes of this machine. `make tools-deps` installs it.

use std::{env, path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use farthing_testnet::launched;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdin},
};

use crate::tell::tell;

/// Nodes of the DHT in one process, which ends when this value is dropped.
#[derive(Debug)]
pub struct Dht {
    _child: Child,
    _stdin: ChildStdin,
    /// Where each listens, with its peer id.
    pub addresses: Vec<String>,
}

impl Dht {
    /// A DHT of three nodes on loopback. `None`, and a loud word, where it is not installed.
    pub async fn start() -> Result<Option<Self>> {
        Self::join(&[], "127.0.0.1", 3, &[]).await
    }

    /// So many nodes that listen at `ip`, started by the words of `launcher`, and know the entrances.
    pub async fn join(
        launcher: &[String],
        ip: &str,
        count: usize,
        entrances: &[String],
    ) -> Result<Option<Self>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
        if !is_installed(&folder)? {
            return Ok(None);
        }
        let mut child = launched(launcher, Path::new("node"))
            .arg(folder.join("dht.mjs"))
            .args([ip, &count.to_string()])
            .args(entrances)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("node cannot be started")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut said).await?;
        let addresses: Vec<String> =
            serde_json::from_str(&said).with_context(|| format!("the DHT says {said:?}"))?;
        ensure!(addresses.len() == count, "{addresses:?}");
        Ok(Some(Self { _child: child, _stdin: stdin, addresses }))
    }
}

fn is_installed(folder: &Path) -> Result<bool> {
    let part = folder.join("node_modules/libp2p/package.json");
    if part.exists() {
        return Ok(true);
    }
    let missing = format!("{} is missing: run `make tools-deps`", part.display());
    ensure!(env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a test with somebody else's DHT, because {missing}\n"));
    Ok(false)
}
