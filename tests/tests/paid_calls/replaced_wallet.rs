//! A node whose place the backup of another wallet takes: it tells of the money of before until its files are put back.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind, AlertSeverity, BackupRequest},
};
use farthing_protocol::Address;
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    calls::{cost, expect_served, fixed_owner},
    command::farthing,
    wait::eventually,
    world::{FUNDS, World},
};

const PASSPHRASE: &str = "four other random words";

async fn told(node: &NodeProcess) -> Result<Option<Alert>> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().find(|alert| alert.kind == AlertKind::MoneyLeft))
}

/// Restores the node of a new wallet, which has never run beside it, in the owner's place. Returns that wallet.
async fn replace_the_owner(world: &World) -> Result<Address> {
    let folder = tempfile::tempdir()?;
    let mut other = NodeProcess::start(&world.chain, NodeOptions::new(folder.path().join("other"))).await?;
    let wallet = other.status().await?.address.0;
    let request = BackupRequest { passphrase: PASSPHRASE.to_owned() };
    let made = other.control().tell(endpoint::CreateBackup, &request).await?;
    other.stop().await?;
    let backups = world.owner.data_dir().join("backups");
    std::fs::create_dir_all(&backups)?;
    std::fs::copy(&made.path, backups.join(&made.name))?;
    let at = endpoint::RestoreBackup.of(&made.name);
    let restoring = world.owner.control().tell(at, &request).await?;
    ensure!(restoring.left.is_some(), "{restoring:?}");
    eventually("the other node runs in its place", async || {
        let status = world.owner.control().ask(endpoint::Status).await;
        Ok(status.is_ok_and(|status| status.address.0 == wallet))
    })
    .await?;
    Ok(wallet)
}

/// Moves every file below `from` to its place below `to`.
fn put_back(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            put_back(&entry.path(), &place)?;
        } else {
            std::fs::rename(entry.path(), place)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_a_replaced_wallet_has_in_channels_is_told_until_its_files_are_put_back() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    ensure!(told(&world.owner).await?.is_none(), "nothing was replaced");
    let other = replace_the_owner(&world).await?;

    let wallet = world.owner_wallet.to_string();
    let alert = told(&world.owner).await?.context("no alert")?;
    ensure!(alert.severity == AlertSeverity::Error && alert.subject == wallet, "{alert:?}");
    let earned = format!("{} USDC earned and not claimed", cost(1));
    ensure!(alert.cause.contains(&earned), "{alert:?}");
    let listed = farthing(&world.owner, &["alert", "list"]).await?;
    ensure!(listed.ends_with(0)?.out.contains("money-left"), "{listed:?}");
    ensure!(world.owner.log().contains(&earned), "the log does not say it");
    let replaced = world.owner.control().ask(endpoint::ReplacedNodes).await?;
    let kept = replaced.first().context("no files are kept")?;
    ensure!(alert.action.contains(&format!("`farthing backup forget {}`", kept.name)), "{alert:?}");

    // As by hand: the files of the node in its place are of no use to anybody.
    world.owner.stop().await?;
    put_back(Path::new(&kept.path), world.owner.data_dir())?;
    std::fs::remove_dir_all(&kept.path)?;
    world.owner.restart(Vec::new()).await?;
    world.owner.wait_until_ready().await?;
    let status = world.owner.status().await?;
    ensure!(status.address.0 == world.owner_wallet && status.address.0 != other, "{status:?}");
    ensure!(told(&world.owner).await?.is_none(), "its own wallet is told of by itself");
    eventually("it serves again", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(2));
    Ok(())
}
