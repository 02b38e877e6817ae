//! Many calls at once: each charged exactly once, whatever waits, runs low or tops up.

use anyhow::{Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    calls::{cost, expect_served, setting},
    world::{Answer, Setup, World},
};
use farthing_values::Usdc;
use futures::{StreamExt, TryStreamExt, stream};

/// `count` calls of `path`, `at_once` of them in flight.
async fn burst(world: &World, path: &str, count: usize, at_once: usize) -> Result<Vec<Answer>> {
    stream::iter(0..count).map(|_| world.get(path)).buffer_unordered(at_once).try_collect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_are_each_charged_once() -> Result<()> {
    let world = World::start().await?;
    let answers = burst(&world, "/ok", 200, 32).await?;
    let mut numbers = Vec::new();
    for answer in &answers {
        expect_served(answer)?;
        assert_eq!(answer.header("x-farthing-charged"), "0.002");
        numbers.extend(answer.json()["n"].as_u64());
    }
    numbers.sort_unstable();
    ensure!(numbers.iter().copied().eq(1..=200), "each execution has one buyer: {numbers:?}");
    world.settle_for(cost(200)).await
}

/// An owner takes 64 calls of one wallet at once, and refuses further ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_beyond_the_places_of_an_owner_wait_and_none_is_refused() -> Result<()> {
    let room = ["gateway.connections_max", "gateway.connections_per_ip_max"].map(|name| setting(name, "400"));
    let world = World::with(Setup { consumer_settings: room.concat(), ..Setup::default() }).await?;
    for answer in burst(&world, "/slow/20", 400, 200).await? {
        expect_served(&answer)?;
    }
    assert_eq!(world.upstream.hits(), 400);
    world.settle_for(cost(400)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_a_payers_share_wait_their_turn() -> Result<()> {
    let two_at_once = setting("limits.calls_per_payer_max", "2");
    let world = World::with(Setup { owner_settings: two_at_once, ..Setup::default() }).await?;
    for answer in burst(&world, "/slow/50", 40, 24).await? {
        expect_served(&answer)?;
    }
    assert_eq!(world.upstream.hits(), 40);
    world.settle_for(cost(40)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_runs_low_is_topped_up_while_calls_go_on() -> Result<()> {
    // A deposit carries five calls, and sixteen run at once: every few calls one has to wait for the chain.
    let small = [
        setting("spending.deposit_prices", "2"),
        setting("spending.deposit_min", "0.004"),
        setting("spending.deposit_max", "0.01"),
        setting("spending.topup_prices", "2"),
    ];
    let world = World::with(Setup { consumer_settings: small.concat(), ..Setup::default() }).await?;
    for answer in burst(&world, "/ok", 100, 16).await? {
        expect_served(&answer)?;
    }
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    ensure!(channels[0].deposited.0 >= cost(100), "{channels:?}");
    assert_eq!(world.upstream.hits(), 100);
    world.settle_for(cost(100)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_top_up_rule_a_used_up_channel_is_still_filled_again() -> Result<()> {
    let never_early = [
        setting("spending.deposit_prices", "1"),
        setting("spending.deposit_min", "0.000001"),
        setting("spending.topup_prices", "0"),
        setting("spending.topup_percent", "0"),
    ];
    let world = World::with(Setup { consumer_settings: never_early.concat(), ..Setup::default() }).await?;
    for _ in 0..8 {
        expect_served(&world.get("/ok").await?)?;
    }
    world.settle_for(cost(8)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_wallet_empties_under_load_the_rest_is_refused_and_the_sums_are_exact() -> Result<()> {
    let funds = cost(25);
    let small = [setting("spending.deposit_prices", "5"), setting("spending.deposit_min", "0.004")].concat();
    let world = World::with(Setup { funds, consumer_settings: small, ..Setup::default() }).await?;
    let answers = burst(&world, "/ok", 60, 12).await?;
    let (served, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status.is_success());
    for answer in &refused {
        ensure!(answer.status == 402, "{}: {:?}", answer.status, answer.body);
        let problem = answer.problem();
        ensure!(["insufficient-funds", "channel-low"].contains(&problem.as_str()), "{problem}");
    }
    assert_eq!((served.len(), refused.len()), (25, 35), "25 calls' money buys 25 calls");
    assert_eq!(world.upstream.hits(), 25);
    assert_eq!(world.settle_and_check(funds).await?, cost(25));
    assert_eq!(world.chain.usdc_of(world.consumer_wallet).await?, Usdc::ZERO);
    Ok(())
}
