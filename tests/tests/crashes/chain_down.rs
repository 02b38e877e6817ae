//! A chain that refuses, hangs, fails or is slow: nothing is lost, and everything resumes by itself.

use farthing_control::endpoint;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    chain_proxy::{Mood, Proxy},
    wait::eventually,
};
use reqwest::StatusCode;

use crate::support::{Lasting, agreed_spent, tail, until_all_is_well, until_answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_without_its_chain_says_so_and_recovers_by_itself() -> Result<()> {
    let world = &mut Lasting::start().await?.world;
    let proxy = Proxy::before(&world.chain.rpc_url()).await?;
    let environment = vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), proxy.url())];
    for mood in [Mood::Refuse, Mood::Hang, Mood::Fail] {
        proxy.set(mood);
        world.consumer.restart(environment.clone()).await?;
        let health = world.consumer.control().ask_any_status(endpoint::Health).await?;
        ensure!(
            !health.ready && health.waiting_for.iter().any(|text| text.starts_with("chain: ")),
            "{health:?}"
        );
        // The owner may have to be found again; until then the call fails before it comes to the chain.
        eventually("an unopened channel is refused for the chain's sake", async || {
            let answer = world.get("/ok").await?;
            ensure!(answer.charged() == false, "{mood:?}: {answer:?}");
            Ok(answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.problem() == "chain-unreachable")
        })
        .await
        .with_context(|| format!("{mood:?}"))?;
        proxy.set(Mood::Pass);
        world.consumer.wait_until_ready().await.with_context(|| format!("{mood:?}"))?;
    }
    until_all_is_well(world, &world.body("GET", "/ok")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_channel_carries_calls_whatever_the_chain_does() -> Result<()> {
    const SLOW: Duration = Duration::from_secs(3);
    let world = &mut Lasting::warm().await?.world;
    let proxy = Proxy::before(&world.chain.rpc_url()).await?;
    let environment = vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), proxy.url())];
    world.owner.restart(environment.clone()).await?;
    world.consumer.restart(environment).await?;
    world.owner.wait_until_ready().await?;
    world.consumer.wait_until_ready().await?;
    let body = world.body("GET", "/ok");
    until_answered(world, &body).await?;
    for mood in [Mood::Delay(SLOW), Mood::Refuse, Mood::Hang, Mood::Fail] {
        proxy.set(mood);
        for _ in 0..5 {
            let started = Instant::now();
            let answer = world.get("/ok").await?;
            ensure!(answer.status == StatusCode::OK, "{mood:?}: {answer:?}\n{}", tail(&world.owner));
            // One question to the chain on its path would take longer, whether the answer is slow or given up.
            ensure!(started.elapsed() < SLOW, "{mood:?}: {:?}", started.elapsed());
        }
    }
    proxy.set(Mood::Pass);
    let spent = agreed_spent(world).await?;
    world.owner.wait_until_ready().await?;
    world.consumer.wait_until_ready().await?;
    world.settle_for(spent).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_without_a_fresh_view_of_the_chain_takes_on_no_new_value() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let proxy = Proxy::before(&world.chain.rpc_url()).await?;
    proxy.set(Mood::Refuse);
    world.owner.restart(vec![("FARTHING_CHAIN__RPC_URLS".to_owned(), proxy.url())]).await?;
    let hits = world.upstream.hits();
    eventually("the owner says that it cannot see the chain", async || {
        let answer = world.get("/ok").await?;
        ensure!(answer.charged() == false, "{answer:?}");
        Ok(answer.problem() == "owner-unavailable"
            && answer.json()["detail"].as_str().is_some_and(|d| d.contains("chain")))
    })
    .await
    .with_context(|| tail(&world.owner))?;
    ensure!(world.upstream.hits() == hits, "nothing is served on a view of nothing");
    proxy.set(Mood::Pass);
    until_all_is_well(world, &world.body("GET", "/ok")).await
}
