//! A node whose place a backup takes, of another wallet or an older one of its own: it tells of the money of before until its files
//! are put back, or its books know of it.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use axum::{Json, Router, routing::any};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind, AlertSeverity, BackupRequest, ReplacedNode},
};
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::{
    calls::{cost, expect_served, fixed_owner},
    command::farthing,
    upstream::serve,
    wait::eventually,
    world::{FUNDS, Setup, World},
};
use farthing_values::Address;
use serde_json::json;
use tokio::sync::Notify;

const PASSPHRASE: &str = "four other random words";

async fn told(node: &NodeProcess) -> Result<Option<Alert>> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().find(|alert| alert.kind == AlertKind::MoneyLeft))
}

/// Brings the owner a backup of a new wallet, which has never run beside it. Returns that wallet, and the backup's name.
async fn bring_another(world: &World) -> Result<(Address, String)> {
    let folder = tempfile::tempdir()?;
    let mut other = NodeProcess::start(&world.chain, NodeOptions::new(folder.path().join("other"))).await?;
    let wallet = other.status().await?.address.0;
    let request = BackupRequest { passphrase: PASSPHRASE.to_owned() };
    let made = other.control().tell(endpoint::CreateBackup, &request).await?;
    other.stop().await?;
    let backups = world.owner.data_dir().join("backups");
    std::fs::create_dir_all(&backups)?;
    std::fs::copy(&made.path, backups.join(&made.name))?;
    Ok((wallet, made.name))
}

/// Has the owner restore that backup in its own place, for which it restarts.
async fn restore(world: &World, name: &str) -> Result<()> {
    let request = BackupRequest { passphrase: PASSPHRASE.to_owned() };
    let restoring = world.owner.control().tell(endpoint::RestoreBackup.of(name), &request).await?;
    ensure!(restoring.left.is_some(), "{restoring:?}");
    Ok(())
}

async fn wait_for(world: &World, wallet: Address) -> Result<()> {
    eventually("the other node runs in its place", async || {
        let status = world.owner.control().ask(endpoint::Status).await;
        Ok(status.is_ok_and(|status| status.address.0 == wallet))
    })
    .await
}

/// Puts the owner's files back, as by hand: those of the node in its place are of no use to anybody. Then it serves again.
async fn put_the_owner_back(world: &mut World, kept: &ReplacedNode) -> Result<()> {
    world.owner.stop().await?;
    put_back(Path::new(&kept.path), world.owner.data_dir())?;
    std::fs::remove_dir_all(&kept.path)?;
    world.owner.restart_until_ready(Vec::new()).await?;
    let status = world.owner.status().await?;
    ensure!(status.address.0 == world.owner_wallet, "{status:?}");
    ensure!(told(&world.owner).await?.is_none(), "its own wallet is told of by itself");
    eventually("it serves again", async || Ok(world.get("/ok").await?.status.is_success())).await
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
    world.buy(1).await?;
    ensure!(told(&world.owner).await?.is_none(), "nothing was replaced");
    let (other, name) = bring_another(&world).await?;
    restore(&world, &name).await?;
    wait_for(&world, other).await?;

    let wallet = world.owner_wallet.to_string();
    let alert = told(&world.owner).await?.context("no alert")?;
    ensure!(alert.severity == AlertSeverity::Error && alert.subject == wallet, "{alert:?}");
    let earned = format!("{} USDC earned and not claimed", cost(1));
    ensure!(alert.cause.contains(&earned), "{alert:?}");
    let listed = farthing(&world.owner, &["alert", "list"]).await?;
    ensure!(listed.ends_with(0)?.out.contains("money-left"), "{listed:?}");
    let doctor = farthing(&world.owner, &["doctor"]).await?;
    let line = doctor.out.lines().find(|line| line.starts_with("FAIL  money-left: "));
    ensure!(doctor.code == 1 && line.is_some_and(|line| line.contains(&earned)), "{doctor:?}");
    ensure!(world.owner.log().contains(&earned), "the log does not say it");
    let replaced = world.owner.control().ask(endpoint::ReplacedNodes).await?;
    let kept = replaced.first().context("no files are kept")?;
    ensure!(alert.action.contains(&format!("`farthing backup forget {}`", kept.name)), "{alert:?}");

    put_the_owner_back(&mut world, kept).await?;
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn what_a_replaced_wallet_earns_until_its_node_ends_is_told_and_named_before_it_goes() -> Result<()> {
    let (arrived, answers) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let held = (arrived.clone(), answers.clone());
    let answer_later = move || {
        let (arrived, answers) = held.clone();
        async move {
            arrived.notify_one();
            answers.notified().await;
            Json(json!({}))
        }
    };
    let router = Router::new()
        .route("/ok", any(|| async { Json(json!({})) }))
        .route("/slow/{millis}", any(answer_later));
    let upstream_url = Some(serve(router).await?);
    let mut world = World::with(Setup { upstream_url, ..fixed_owner()? }).await?;
    world.buy(1).await?;
    farthing(&world.owner, &["settle", "now"]).await?.ends_with(0)?;
    world.owner.wait_for_usdc(cost(1)).await?;
    let (other, name) = bring_another(&world).await?;

    // A call is under way while everything is made ready, and ends while the node does.
    let replace = async {
        arrived.notified().await;
        restore(&world, &name).await?;
        answers.notify_one();
        wait_for(&world, other).await
    };
    let (answer, ()) = futures::try_join!(world.get("/slow/1"), replace)?;
    expect_served(&answer)?;

    let replaced = world.owner.control().ask(endpoint::ReplacedNodes).await?;
    let kept = replaced.first().context("no files are kept")?;
    let left = kept.left.as_ref().context("nothing is noted")?;
    ensure!(left.unclaimed.0 == cost(1), "as it was when the backup was made ready: {left:?}");
    ensure!(left.usdc.is_some_and(|usdc| usdc.0 == cost(1)), "what was claimed: {left:?}");
    let alert = told(&world.owner).await?.context("no alert")?;
    ensure!(alert.severity == AlertSeverity::Error && alert.cause.contains(&left.sums()), "{alert:?}");
    // There is nobody to ask.
    let asked = farthing(&world.owner, &["backup", "forget", &kept.name]).await?;
    ensure!(asked.code != 0 && asked.err.contains(&left.sums()), "{asked:?}");

    // `--yes` says what went with it.
    let copy = Path::new(&kept.path).with_file_name("replaced-2026-01-02T030405Z");
    std::fs::create_dir(&copy)?;
    for file in ["wallet.json", "left.json"] {
        std::fs::copy(Path::new(&kept.path).join(file), copy.join(file))?;
    }
    let forget = ["backup", "forget", "replaced-2026-01-02T030405Z", "--yes"];
    let gone = farthing(&world.owner, &forget).await?;
    ensure!(gone.ends_with(0)?.err.contains(&left.sums()) && !copy.exists(), "{gone:?}");
    ensure!(told(&world.owner).await?.is_some(), "the other folder is there");

    put_the_owner_back(&mut world, kept).await?;
    world.settle_for(cost(3)).await
}

#[tokio::test]
async fn better_vouchers_that_an_older_backup_replaces_are_told_until_their_payer_is_back() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.buy(1).await?;
    let request = BackupRequest { passphrase: PASSPHRASE.to_owned() };
    let made = world.owner.control().tell(endpoint::CreateBackup, &request).await?;
    world.buy(2).await?;
    world.consumer.kill().await?;
    restore(&world, &made.name).await?;
    eventually("the restored node runs", async || {
        let status = world.owner.control().ask(endpoint::Status).await;
        Ok(status.is_ok_and(|status| !status.spending))
    })
    .await?;

    let beyond = format!("{} USDC earned and not claimed", cost(2));
    let alert = told(&world.owner).await?.context("no alert")?;
    ensure!(alert.severity == AlertSeverity::Error && alert.cause.contains(&beyond), "{alert:?}");
    ensure!(alert.subject == world.owner_wallet.to_string(), "{alert:?}");
    let replaced = world.owner.control().ask(endpoint::ReplacedNodes).await?;
    let kept = replaced.first().context("no files are kept")?;
    // There is nobody to ask.
    let asked = farthing(&world.owner, &["backup", "forget", &kept.name]).await?;
    let had = format!("it had {} USDC earned and not claimed", cost(3));
    ensure!(asked.code != 0 && asked.err.contains(&had), "{asked:?}");

    world.owner.wait_until_ready().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("the restored node serves", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    ensure!(told(&world.owner).await?.is_none(), "its payer has shown the newest receipt");
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(4));
    ensure!(told(&world.owner).await?.is_none(), "what is claimed is known");
    Ok(())
}
