//! A way out of a network namespace: a program in it takes TCP connections and passes each on over a Unix
//! socket, which namespaces share, to a server outside.
//!
//! So a test and its chain and upstream stay where they are, whatever networks its nodes live in.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::{launched, program};
use tokio::{
    io::{AsyncBufReadExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    process::Child,
    task::JoinHandle,
};

const OPENS_WITHIN: Duration = Duration::from_secs(20);
/// What the program says once it listens.
pub const LISTENING: &str = "listening on ";

/// An open portal; it closes when this value is dropped.
#[derive(Debug)]
pub struct Portal {
    _inside: Child,
    outside: JoinHandle<()>,
}

impl Portal {
    /// Whoever connects to `listen`, there where `launcher` starts programs, speaks with `server` here.
    pub async fn open(
        launcher: &[String],
        listen: SocketAddr,
        socket: &Path,
        server: SocketAddr,
    ) -> Result<Self> {
        let outside = UnixListener::bind(socket).with_context(|| format!("{}", socket.display()))?;
        let outside = tokio::spawn(pass_in(outside, server));
        let mut inside = launched(launcher, &program("farthing-portal")?)
            .arg(listen.to_string())
            .arg(socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the portal cannot be started")?;
        let mut lines = BufReader::new(inside.stdout.take().context("no output")?).lines();
        let line = tokio::time::timeout(OPENS_WITHIN, lines.next_line()).await??.unwrap_or_default();
        ensure!(line.starts_with(LISTENING), "the portal at {listen} did not open");
        Ok(Self { _inside: inside, outside })
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        self.outside.abort();
    }
}

async fn pass_in(listener: UnixListener, server: SocketAddr) {
    while let Ok((mut from, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut to) = TcpStream::connect(server).await {
                // Either side may go whenever it likes; both learn of it from the closed connection.
                let _ = copy_bidirectional(&mut from, &mut to).await;
            }
        });
    }
}

/// The program's part: listens, says so, and passes on until it is ended.
pub async fn pass_out(listen: SocketAddr, socket: PathBuf) -> Result<()> {
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    println!("{LISTENING}{}", listener.local_addr()?);
    loop {
        let (mut from, _) = listener.accept().await?;
        let socket = socket.clone();
        tokio::spawn(async move {
            if let Ok(mut to) = UnixStream::connect(&socket).await {
                let _ = copy_bidirectional(&mut from, &mut to).await;
            }
        });
    }
}
