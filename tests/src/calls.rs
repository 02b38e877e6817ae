//! What tests of paid calls ask for: amounts, answers, ports, and backups.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
};

use anyhow::{Result, bail, ensure};
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_values::Usdc;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::{
    command::{farthing, run},
    world::{Answer, PRICE, Setup, World},
};

/// The price of `calls` calls.
pub fn cost(calls: u64) -> Usdc {
    Usdc::from_micros(PRICE.micros() * calls)
}

/// `body` with `field` set to `value`.
pub fn with(mut body: Value, field: &str, value: impl Into<Value>) -> Value {
    body[field] = value.into();
    body
}

/// Says what came when the answer is not the service's own.
pub fn expect_served(answer: &Answer) -> Result<()> {
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status.is_success(), "{}: {}", answer.status, text.chars().take(400).collect::<String>());
    Ok(())
}

/// Checks an answer that is a problem: its status, its type, that it cost nothing, and that it says what to do.
pub fn expect_free(what: &str, answer: &Answer, status: u16, problem: &str) -> Result<()> {
    expect_problem(what, answer, status, problem, Some(false))
}

/// As [`expect_free`], of what is refused before its call id is looked at: an earlier call of it may have been charged.
pub fn expect_refused(what: &str, answer: &Answer, status: u16, problem: &str) -> Result<()> {
    expect_problem(what, answer, status, problem, None)
}

fn expect_problem(
    what: &str,
    answer: &Answer,
    status: u16,
    problem: &str,
    charged: Option<bool>,
) -> Result<()> {
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == status, "{what}: {} and not {status}: {text}", answer.status);
    ensure!(answer.problem() == problem, "{what}: `{}` and not `{problem}`: {text}", answer.problem());
    ensure!(answer.charged() == json!(charged), "{what}: charged: {text}");
    ensure!(
        answer.json()["next"].as_str().is_some_and(|next| !next.is_empty()),
        "{what}: no next step: {text}"
    );
    Ok(())
}

/// Settings that listen on a fixed port, so that a restarted node is where it was.
pub fn on_a_fixed_port() -> Result<Vec<(String, String)>> {
    let port = free_port()?;
    let listen = format!("/ip4/127.0.0.1/tcp/{port},/ip4/127.0.0.1/udp/{port}/quic-v1");
    Ok(setting("network.listen", &listen))
}

/// The ports that [`free_port`] has given, until this process ends: while a node restarts, it does not listen on its own.
static RESERVED: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// A port that nobody has, that the system hands out to nobody, and that no other test is given.
pub fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // Below the range that the system hands out to others.
        let port = 10_000 + port % 20_000;
        if let Ok(reserved) = reserve(port)
            && UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        {
            RESERVED.lock().push(reserved);
            return Ok(port);
        }
    }
    bail!("no port is free")
}

/// Takes a port without listening on it. Alone at first, so that two tests do not take the same one; from then on, whoever
/// allows the reuse of addresses, as servers do, may listen there.
fn reserve(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

/// One setting, as [`Setup`] takes them.
pub fn setting(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), value.to_owned())]
}

/// Settings by which the tests' chain poses as a public one: on a chain of one's own nobody lies, and what it shows is
/// believed at once.
pub fn posing_as_public() -> Vec<(String, String)> {
    [setting("chain.preset", "custom"), setting("chain.kind", "testnet")].concat()
}

/// A world whose owner keeps its address over restarts.
pub fn fixed_owner() -> Result<Setup> {
    Ok(Setup { owner_settings: on_a_fixed_port()?, ..Setup::default() })
}

const PASSPHRASE: &str = "four random words here\n";

/// Makes a backup of a node in a folder, which outlives the world.
pub async fn back_up(node: &NodeProcess, folder: &Path) -> Result<()> {
    let [file, passphrase] = backup_files(folder);
    std::fs::write(&passphrase, PASSPHRASE)?;
    let create = ["backup", "create", "--to", &file, "--passphrase-file", &passphrase];
    farthing(node, &create).await?.ends_with(0).map(drop)
}

/// The owner is lost, and made again from the backup in that folder, with the settings that it had.
pub async fn restore_owner(world: &mut World, folder: &Path) -> Result<()> {
    world.owner.kill().await?;
    let mut options = NodeOptions::new(restore(folder).await?);
    options.settings = world.owner.settings().to_vec();
    world.owner = NodeProcess::start(&world.chain, options).await?;
    world.owner.wait_until_ready().await
}

/// Restores the backup in that folder; returns where the node lies.
pub async fn restore(folder: &Path) -> Result<String> {
    let [file, passphrase] = backup_files(folder);
    let elsewhere = folder.join("restored").display().to_string();
    run(&elsewhere, &["backup", "restore", &file, "--passphrase-file", &passphrase]).await?.ends_with(0)?;
    Ok(elsewhere)
}

fn backup_files(folder: &Path) -> [String; 2] {
    ["node.backup", "passphrase"].map(|name| folder.join(name).display().to_string())
}
