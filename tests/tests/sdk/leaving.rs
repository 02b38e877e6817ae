//! Nodes that say a word or two about a call, and then are gone: what a client may tell of its cost afterwards.

use std::process::Stdio;

use anyhow::{Context, Result};
use farthing_testnet::program;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// A name, and whether the call is known to be free once that node is gone.
const NODES: [(&str, bool); 8] = [
    ("leaving-undecided", false),
    ("leaving-not-stored", false),
    ("leaving-dead", false),
    ("leaving-paid", false),
    ("leaving-no-room", false),
    ("leaving-dead-no-room", false),
    ("leaving-decided", true),
    ("leaving-free", true),
];

/// The nodes, for one program: each serves one call of two attempts. They end with this value.
pub struct Leaving {
    /// `name=address`, with blanks between.
    pub urls: String,
    _nodes: Child,
}

impl Leaving {
    /// Starts them in a program of their own, which links the gateway that they speak as.
    pub async fn start() -> Result<Self> {
        let mut nodes = Command::new(program("farthing-peers")?)
            .arg("leaving")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(nodes.stdout.take().context("no output")?).lines();
        let urls = lines.next_line().await?.context("farthing-peers does not say where its nodes are")?;
        Ok(Self { urls, _nodes: nodes })
    }
}

/// The lines of a program that called each of them, with one repetition.
pub fn expected() -> impl Iterator<Item = String> {
    NODES.into_iter().map(|(name, is_free)| format!("{name} {}", if is_free { "false" } else { "null" }))
}
