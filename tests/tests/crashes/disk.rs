//! A full disk: what cannot be stored is not answered, and after room was made everything adds up.
//!
//! The node's data folder becomes a small file system of its own. Where this user may not mount one, the tests
//! say so and end.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind, AlertSeverity, Api, ApiState, OperationFile, ServiceFile},
};
use farthing_os::file_names;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    command::farthing,
    nodes::bytes_of,
    tell::tell,
    wait::eventually,
    world::{Answer, FUNDS, PRICE, World},
};
use farthing_values::{Method, limits};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Lasting, agreed_spent, body_with_id, spent, tail, until_all_is_well, until_answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_whose_disk_is_full_promises_nothing_and_recovers() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let Some(disk) = SmallDisk::under(&mut world.consumer).await? else { return Ok(()) };
    until_found(world).await?;
    disk.fill()?;
    let (body, answer) = call_until_refused(world).await?;
    ensure!(answer.problem() == "ledger-closed", "{answer:?}");
    ensure!(answer.charged() != json!(true), "{answer:?}");
    // Nothing leaves the node any more, and it says why.
    let hits = world.upstream.hits();
    let refused = world.get("/ok").await?;
    ensure!(refused.status == StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    ensure!(refused.problem() == "ledger-closed" && refused.charged() == false, "{refused:?}");
    ensure!(world.upstream.hits() == hits);
    let friend = world.owner_wallet.to_string();
    let sent =
        farthing(&world.consumer, &["wallet", "send", &friend, "--usdc", "0.01", "--yes", "--json"]).await?;
    let told = sent.ends_with(1)?.error()?;
    ensure!(told["code"] == "failure" && told.to_string().contains("nothing was sent"), "{told}");
    says_what_is_wrong(&world.consumer).await?;

    disk.make_room_for(&mut world.consumer).await?;
    until_all_is_well(world, &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_owner_never_got_is_free_though_its_promise_cannot_be_stored() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let Some(disk) = SmallDisk::under(&mut world.consumer).await? else { return Ok(()) };
    until_found(world).await?;
    // The books are compared and the service is known, so that the next call is promised before it is sent.
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    world.owner.stop().await?;
    disk.fill()?;
    eventually("a promise cannot be stored", async || {
        let answer = world.get("/ok").await?;
        ensure!(answer.charged() == false, "nobody got it: {answer:?}");
        Ok(answer.problem() == "ledger-closed")
    })
    .await?;

    world.owner.restart_until_ready(Vec::new()).await?;
    disk.make_room_for(&mut world.consumer).await?;
    until_found(world).await?;
    until_all_is_well(world, &world.body("GET", "/ok")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn charges_of_promises_that_were_lost_are_taken_over_while_new_calls_run() -> Result<()> {
    const AT_ONCE: usize = 8;
    /// Restarts until the disk fails at the right moment; mostly none is needed.
    const ATTEMPTS_MAX: usize = 6;
    let world = &mut Lasting::warm().await?.world;
    let Some(disk) = SmallDisk::under(&mut world.consumer).await? else { return Ok(()) };
    until_found(world).await?;
    disk.fill()?;
    // The calls are sent while their promises fail to be stored: the owner serves and charges them, and the
    // consumer's ledger will never have heard of them.
    let mut attempt = 0;
    loop {
        // Another number of calls meets the full disk at another moment.
        let bodies: Vec<_> = (0..AT_ONCE + 3 * attempt).map(|_| world.body("GET", "/slow/300")).collect();
        let answers = futures::future::try_join_all(bodies.iter().map(|body| world.call(body))).await?;
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status != StatusCode::OK).collect();
        ensure!(refused.iter().all(|answer| answer.problem() == "ledger-closed"), "{refused:?}");
        if refused.iter().any(|answer| answer.charged().is_null()) {
            break;
        }
        if !refused.is_empty() {
            attempt += 1;
            if attempt > ATTEMPTS_MAX {
                tell("\n  SKIPPED: a full disk while promises were stored, because it never failed then.\n");
                // The books are compared before their disk goes.
                disk.make_room_for(&mut world.consumer).await?;
                until_found(world).await?;
                agreed_spent(world).await?;
                world.settle_and_check(FUNDS).await?;
                return Ok(());
            }
            // It failed while a receipt was stored, and the ledger is closed: another promise is not lost now.
            disk.make_room_for(&mut world.consumer).await?;
            until_found(world).await?;
            world.wait_until_decided().await?;
            disk.fill()?;
        }
    }
    let before = spent(&world.owner).await?;
    ensure!(before > spent(&world.consumer).await?, "the owner charged calls the consumer does not know");

    disk.make_room_for(&mut world.consumer).await?;
    let body = world.body("GET", "/ok");
    until_found(world).await?;
    let answers = futures::future::try_join_all([(); AT_ONCE].map(|()| world.call(&body))).await?;
    ensure!(
        answers.iter().all(|answer| answer.status == StatusCode::OK),
        "{answers:?}\n{}",
        tail(&world.consumer)
    );
    eventually("the consumer has taken over what it forgot", async || {
        Ok(spent(&world.owner).await? == spent(&world.consumer).await?)
    })
    .await
    .context(tail(&world.consumer))?;
    let spent = agreed_spent(world).await?;
    ensure!(spent == before.saturating_add(PRICE.saturating_mul(AT_ONCE as u64)), "{spent} after {before}");
    world.settle_for(spent).await
}

/// Waits until the consumer is connected to its owner again, without a call: one that does not reach the owner says
/// nothing about a disk.
async fn until_found(world: &World) -> Result<()> {
    eventually("the owner is found again", async || Ok(world.consumer.status().await?.peers > 0)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_disk_is_full_answers_nothing_and_recovers() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let Some(disk) = SmallDisk::under(&mut world.owner).await? else { return Ok(()) };
    until_found(world).await?;
    disk.fill()?;
    let (body, answer) = call_until_refused(world).await?;
    ensure!(["undecided", "owner-unavailable"].contains(&answer.problem().as_str()), "{answer:?}");
    ensure!(answer.charged() != json!(true), "{answer:?}");
    let hits = world.upstream.hits();
    let refused = world.get("/ok").await?;
    ensure!(refused.status == StatusCode::SERVICE_UNAVAILABLE && refused.charged() == false, "{refused:?}");
    ensure!(world.upstream.hits() == hits, "an owner that cannot record a call does not serve it");
    says_what_is_wrong(&world.owner).await?;

    disk.make_room_for(&mut world.owner).await?;
    until_answered(world, &body).await?;
    let spent = agreed_spent(world).await?;
    ensure!(spent >= PRICE.saturating_mul(2));
    world.settle_for(spent).await
}

/// Calls with ids of their own until one is not answered.
async fn call_until_refused(world: &World) -> Result<(Value, Answer)> {
    // A ledger grows in steps, so a full disk shows after some calls.
    for n in 0..400 {
        let body = body_with_id(world, "GET", "/ok", &format!("full {n}"));
        let answer = world.call(&body).await?;
        if answer.status != StatusCode::OK {
            return Ok((body, answer));
        }
    }
    anyhow::bail!("the disk is full and every call is answered")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_catalog_has_no_disk_says_so_and_sells_on() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let networks = world.owner.data_dir().join(file_names::NETWORKS);
    let Some(disk) = SmallDisk::at(&mut world.owner, networks).await? else { return Ok(()) };
    until_found(world).await?;
    disk.fill()?;
    let mut number = 0;
    let unpublished = loop {
        ensure!(number < limits::LISTINGS_PER_OWNER_MAX, "the disk is full and every listing is stored");
        let api = publish(world, number).await?;
        if api.state != ApiState::Published {
            break api;
        }
        number += 1;
    };
    ensure!(
        unpublished.state == ApiState::Unpublished && unpublished.unpublished.is_some(),
        "{unpublished:?}"
    );
    ensure!(does_catalog_store_nothing(&world.owner).await?);
    let listed = farthing(&world.owner, &["api", "list"]).await?.ok()?;
    ensure!(listed.out.contains("is not published yet"), "{listed:?}");
    let doctor = world.owner.control().ask(endpoint::Doctor).await?;
    let catalog = doctor.checks.iter().filter(|check| check.name.starts_with("catalog")).collect::<Vec<_>>();
    ensure!(catalog.len() == 1 && !catalog[0].good && catalog[0].next.is_some(), "{catalog:?}");
    let health = world.owner.control().ask_any_status(endpoint::Health).await?;
    ensure!(health.ready, "it buys and sells: {health:?}");
    let answer = world.get("/ok").await?;
    ensure!(answer.status == StatusCode::OK, "{answer:?}");

    std::fs::remove_file(&disk.filler)?;
    eventually("the node publishes it by itself", async || {
        let apis = world.owner.control().ask(endpoint::Apis).await?;
        Ok(apis.iter().all(|api| api.state == ApiState::Published && api.unpublished.is_none()))
    })
    .await?;
    ensure!(!does_catalog_store_nothing(&world.owner).await?);
    eventually("others have it", async || {
        let health = world.owner.control().ask(endpoint::ApiHealth.of(unpublished.id.0)).await?;
        Ok(health.current > 0)
    })
    .await?;
    ensure!(!world.owner.log().contains("panicked"), "{}", tail(&world.owner));
    let spent = agreed_spent(world).await?;
    world.settle_for(spent).await
}

/// Publishes one more service, whose listing the owner's catalog has to store.
async fn publish(world: &World, number: usize) -> Result<Api> {
    let ok = OperationFile::named(Method::Get, "/ok".to_owned());
    let file = ServiceFile {
        name: format!("Service {number}"),
        // As long as a listing may have it: few of them need more room than the file has.
        summary: "漢".repeat(limits::LISTING_SUMMARY_CHARS_MAX),
        upstream: world.upstream.url(),
        operations: vec![ok],
        ..ServiceFile::priced(PRICE)
    };
    world.publish(&file).await
}

/// The same alert is a warning if only the search index cannot be written.
async fn does_catalog_store_nothing(node: &NodeProcess) -> Result<bool> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    let is_it =
        |alert: &Alert| alert.kind == AlertKind::CatalogFailed && alert.severity == AlertSeverity::Error;
    Ok(alerts.iter().any(is_it))
}

async fn says_what_is_wrong(node: &NodeProcess) -> Result<()> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    ensure!(alerts.iter().any(|alert| alert.kind == AlertKind::DiskLow), "{alerts:?}");
    let health = node.control().ask_any_status(endpoint::Health).await?;
    ensure!(
        !health.ready && health.waiting_for.iter().any(|text| text.starts_with("ledger: ")),
        "{health:?}"
    );
    let doctor = node.control().ask(endpoint::Doctor).await?;
    let ledger =
        doctor.checks.iter().find(|check| check.name == "ledger").context("no check of the ledger")?;
    let disk = doctor.checks.iter().find(|check| check.name == "disk").context("no check of the disk")?;
    ensure!(disk.detail.contains("MiB free") && disk.next.is_some(), "{disk:?}");
    ensure!(!ledger.good, "{ledger:?}");
    ensure!(
        ledger.next.as_ref().is_some_and(|next| next.to_lowercase().contains("disk space")),
        "{ledger:?}"
    );
    ensure!(!node.log().contains("panicked"), "{}", tail(node));
    Ok(())
}

/// A file system of a few MiB in place of a folder, unmounted when dropped.
struct SmallDisk {
    folder: PathBuf,
    filler: PathBuf,
}

impl SmallDisk {
    /// One with the whole data folder; `None` where this user may not mount.
    async fn under(node: &mut NodeProcess) -> Result<Option<Self>> {
        let folder = node.data_dir().to_owned();
        Self::at(node, folder).await
    }

    /// The same with one folder in the node's data folder.
    async fn at(node: &mut NodeProcess, folder: PathBuf) -> Result<Option<Self>> {
        let aside = node.data_dir().with_extension("aside");
        node.stop().await?;
        std::fs::rename(&folder, &aside)?;
        std::fs::create_dir(&folder)?;
        let size = bytes_of(&aside)? + 4 * 1024 * 1024;
        let mounted =
            run("mount", &["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "tmpfs", text(&folder)?]);
        if let Err(error) = mounted {
            tell(&format!(
                "\n  SKIPPED: a full disk, because mounting a small one needs root ({error:#}).\n"
            ));
            return Ok(None);
        }
        let disk = Self { filler: folder.join("filler"), folder };
        // Holes stay holes, so that the next page written is a page the disk does not have.
        run("cp", &["-a", "--sparse=always", &format!("{}/.", text(&aside)?), text(&disk.folder)?])?;
        node.restart_until_ready(Vec::new()).await?;
        Ok(Some(disk))
    }

    fn fill(&self) -> Result<()> {
        let mut filler = File::create(&self.filler)?;
        for chunk in [64 * 1024, 4 * 1024, 512] {
            while filler.write_all(&vec![1; chunk]).is_ok() {}
        }
        Ok(())
    }

    /// Makes room, and starts the node again.
    async fn make_room_for(&self, node: &mut NodeProcess) -> Result<()> {
        std::fs::remove_file(&self.filler)?;
        node.restart_until_ready(Vec::new()).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the node may still have files open there.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let done = Command::new(program).args(arguments).output()?;
    ensure!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(())
}
