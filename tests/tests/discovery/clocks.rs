//! A node whose clock is wrong says so, and what it published is taken once the clock is right.

use anyhow::{Context, Result, ensure};
use farthing_control::types::AlertKind;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    clock::Clock,
    command::farthing,
    nodes::{Nodes, all_find, offer, publish, words},
    wait::eventually,
};

const UPSTREAM: &str = "http://127.0.0.1:9";

/// Waits until doctor, status and alerts of a node say this of its clock.
async fn says_of_its_clock(node: &NodeProcess, said: &str) -> Result<()> {
    let mut doctor = String::new();
    eventually("doctor says that the clock is wrong", async || {
        doctor = farthing(node, &["doctor"]).await?.out;
        let line = doctor.lines().find(|line| line.contains("clock:")).unwrap_or_default();
        let is_told = line.starts_with("FAIL") && line.contains(said);
        Ok(is_told && doctor.contains("set this machine's clock"))
    })
    .await
    .with_context(|| format!("{doctor}\n{}", node.log()))?;
    let alerts = node.status().await?.alerts;
    ensure!(
        alerts.iter().any(|alert| alert.kind == AlertKind::ClockOff && alert.cause.contains(said)),
        "{alerts:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_an_hour_ahead_is_told_and_what_it_dated_is_taken_once_it_is_right() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut nodes = Nodes::new()?;
    let right = nodes.join(&[]).await?;
    let clock = Clock::ahead(folder.path(), 3600).await?;
    let mut wrong = nodes.join_with(&[&right], clock.environment()).await?;
    let api = publish(&wrong, &offer("Future weather", UPSTREAM)).await?;
    says_of_its_clock(&wrong, " minutes ahead of the connected node's").await?;
    let told = farthing(&wrong, &["api", "price", &api.id.to_string(), "0.003"]).await?;
    ensure!(told.code == 0 && told.err.contains(" minutes ahead of the connected node's"), "{told:?}");
    all_find(std::slice::from_ref(&right), &words("weather"), 0).await?;

    wrong.restart(Vec::new()).await?;
    all_find(std::slice::from_ref(&right), &words("weather"), 1).await?;
    eventually("nobody speaks of the clock any more", async || {
        let doctor = farthing(&wrong, &["doctor"]).await?.out;
        Ok(doctor.lines().any(|line| line.starts_with("ok") && line.contains("clock:")))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_behind_is_told_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut nodes = Nodes::new()?;
    let right = nodes.join(&[]).await?;
    let clock = Clock::ahead(folder.path(), -3600).await?;
    let wrong = nodes.join_with(&[&right], clock.environment()).await?;
    says_of_its_clock(&wrong, "minutes behind the connected node's").await
}
