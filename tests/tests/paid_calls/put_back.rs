//! A disk that is put back to an earlier state, without the word of a backup that this was done.

use std::path::Path;

use anyhow::{Context, Result};
use farthing_control::{
    endpoint,
    types::{Api, PriceRequest},
};
use farthing_protocol::Usdc;
use farthing_tests::{wait::eventually, world::World};

use crate::support::{expect_served, fixed_owner};

#[tokio::test]
async fn an_owner_whose_disk_is_put_back_offers_its_services_above_the_versions_that_it_lost() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    let files = ["ledger.redb", "networks"].map(|name| world.owner.data_dir().join(name));
    for is_catalog_lost in [false, true] {
        let lost = if is_catalog_lost { &files[..] } else { &files[..1] };
        world.owner.stop().await?;
        let snapshot = tempfile::tempdir()?;
        for path in lost {
            copy(path, &snapshot.path().join(path.file_name().context("a name")?))?;
        }
        world.owner.restart(Vec::new()).await?;
        // Until then it has said goodbye.
        eventually("the owner is back", async || Ok(world.get("/ok").await?.status.is_success())).await?;
        for micros in [1_000, 1_500] {
            let at = endpoint::PriceApi.of(world.api.id);
            let price = PriceRequest { price: Usdc::from_micros(micros).into(), operation: None };
            let _: Api = world.owner.control().tell(at, &price).await?;
            expect_served(&world.get("/ok").await?)?;
        }
        world.wait_until_decided().await?;
        world.owner.stop().await?;
        for path in lost {
            copy(&snapshot.path().join(path.file_name().context("a name")?), path)?;
        }
        world.owner.restart(Vec::new()).await?;
        world.owner.wait_until_ready().await?;
        eventually("it is served again", async || {
            let answer = world.get("/ok").await?;
            Ok(answer.status.is_success() && answer.header("x-farthing-charged") == "0.002")
        })
        .await?;
    }
    Ok(())
}

/// A file, or a folder with its files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if from.exists() {
        std::fs::copy(from, to)?;
    }
    Ok(())
}
