//! Channels that are closed and filled while callers buy on.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    calls::{cost, expect_served},
    command::farthing,
    wait::eventually,
    world::{FUNDS, World},
};
use futures::future;
use serde_json::json;

const CALLERS: usize = 8;
const ROUNDS: usize = 5;
/// Between the calls of one caller, so that the books stay short.
const PAUSE: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_around_a_close_are_answered_or_cost_nothing() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let is_over = AtomicBool::new(false);
    let callers = future::try_join_all((0..CALLERS).map(|_| buy_until(&world, &is_over)));
    let closes = async {
        let closed = close_and_fill(&world).await;
        is_over.store(true, Relaxed);
        closed
    };
    let (served, closed) = future::join(callers, closes).await;
    let served = 1 + served?.into_iter().sum::<u64>();
    closed?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(served), "what was charged was answered");
    Ok(())
}

/// Buys one call after the other; returns how many were answered.
async fn buy_until(world: &World, is_over: &AtomicBool) -> Result<u64> {
    let mut served = 0;
    while !is_over.load(Relaxed) {
        let answer = world.get("/ok").await?;
        if answer.status.is_success() {
            served += 1;
        } else {
            let is_free = answer.charged() == json!(false);
            ensure!(is_free && answer.problem() != "ledger-closed", "{} {:?}", answer.status, answer.body);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(served)
}

async fn close_and_fill(world: &World) -> Result<()> {
    for round in 0..ROUNDS {
        let (channel, service) = (world.channel().await?.id.to_string(), world.api.id.to_string());
        let close = ["channel", "close", &channel, "--yes"];
        let open = ["channel", "open", &service, "--deposit", "0.1"];
        // An owner that is busy asks to be asked again.
        for (what, command) in [("closed", &close[..]), ("filled", &open[..])] {
            let (what, mut last) = (format!("the channel is {what}, round {round}"), None);
            let done = eventually(&what, async || {
                let ran = farthing(&world.consumer, command).await?;
                let is_done = ran.code == 0;
                last = Some(ran);
                Ok(is_done)
            });
            done.await.with_context(|| format!("{last:?}"))?;
        }
    }
    Ok(())
}
