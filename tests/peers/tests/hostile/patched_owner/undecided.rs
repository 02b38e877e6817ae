//! An owner that answers no call and tells no end: each call leaves it a good voucher, so their sum has a limit.

use farthing_control::types::{Alert, AlertKind, AlertSeverity};
use farthing_tests::calls::{expect_free, on_a_fixed_port, setting};
use futures::future::try_join_all;

use super::{claimed::claim_of, mislabelled::answer, *};

/// Calls that may be undecided: a price ten times is the least limit, whatever the setting says.
const CALLS_MAX: u64 = 10;
/// Calls at once, so that all of them pass the limit's half together, and leave the channel with enough.
const AT_ONCE: u64 = 6;

/// Nothing until it tells how calls ended; from then on it serves them.
const SILENT: Answers = |owner, request, _| {
    let tells = owner.state.lock().tells;
    if tells { answer(owner, request, 200, request.price) } else { None }
};

/// A channel that holds 20 calls and is topped up once less than 12 are left, and calls that are not waited for long.
fn settings() -> Vec<(String, String)> {
    let settings = [
        ("limits.call_total_ms", "3000"),
        ("spending.undecided_max", "0.01"),
        ("spending.deposit_min", "0.01"),
        ("spending.deposit_prices", "20"),
        ("spending.topup_prices", "12"),
        ("spending.topup_percent", "0"),
    ];
    settings.into_iter().flat_map(|(name, value)| setting(name, value)).collect()
}

/// A world whose first call was served, and the owner that took the real one's place then.
async fn silenced(consumer_settings: Vec<(String, String)>) -> Result<(World, Arc<Owner>, NetworkHandle)> {
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    serve_one(&world).await?;
    let (owner, network) = Owner::replaces(&mut world, SILENT).await?;
    Ok((world, owner, network))
}

/// So many calls at once that the owner leaves open.
async fn leave_open(world: &World, calls: u64) -> Result<()> {
    let body = world.body("GET", "/ok");
    for answer in try_join_all((0..calls).map(|_| world.call(&body))).await? {
        ensure!(answer.problem() == "undecided", "{answer:?}");
    }
    Ok(())
}

async fn alert(world: &World) -> Result<Option<Alert>> {
    let alerts = world.consumer.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().find(|alert| alert.kind == AlertKind::CallsUndecided))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_tells_no_end_gets_vouchers_up_to_a_limit_and_no_deposit_until_it_tells() -> Result<()>
{
    let (world, owner, _network) = silenced(settings()).await?;
    // The real owner served none of it, and sees the claim of this one.
    world.expect_differences(&["payee: forgotten calls of", "0.024 USDC paid, "]);
    let calls = || owner.state.lock().calls.len() as u64;
    let deposited = world.channel().await?.deposited.0;
    assert_eq!(deposited, cost(20));
    leave_open(&world, AT_ONCE).await?;
    // From here on the channel would be topped up.
    leave_open(&world, CALLS_MAX - AT_ONCE).await?;
    for _ in 0..3 {
        let refused = world.get("/ok").await?;
        expect_free("beyond the limit", &refused, 503, "calls-undecided")?;
        let detail = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
        let owner = world.owner_wallet.to_string();
        ensure!(detail.contains(&owner) && detail.contains("0.02 USDC"), "{detail}");
        ensure!(!refused.header("retry-after").is_empty(), "{refused:?}");
    }
    assert_eq!(calls(), CALLS_MAX);
    assert_eq!(world.channel().await?.deposited.0, deposited);
    let told = alert(&world).await?.context("no alert")?;
    let owner_is_named = told.subject == world.owner_wallet.to_string();
    ensure!(owner_is_named && told.severity == AlertSeverity::Warning, "{told:?}");
    ensure!(told.cause.contains("10 calls for 0.02 USDC"), "{told:?}");

    // It claims what it holds: calls explain that, but none was served.
    let best = {
        let state = owner.state.lock();
        let total = |request: &CallRequest| match request.payment {
            Payment::Channel { cumulative, .. } => cumulative,
            Payment::Free => Usdc::ZERO,
        };
        let requests = state.calls.values().map(|(request, _)| request.clone());
        requests.max_by_key(total).context("no call arrived")?
    };
    let (chain, row) = claim_of(&world, &best).await?;
    assert_eq!(row.amount, cost(1 + CALLS_MAX));
    chain.claim_many(vec![row]).await?;
    eventually("the claim is told of", async || {
        let told = alert(&world).await?;
        let is_claim = |told: Alert| {
            told.severity == AlertSeverity::Error && told.cause.contains("was paid 0.02 USDC for them")
        };
        Ok(told.is_some_and(is_claim))
    })
    .await?;

    owner.tell();
    world.wait_until_decided().await?;
    eventually("calls go on", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    eventually("its channel is filled again", async || Ok(world.channel().await?.deposited.0 > deposited))
        .await?;
    ensure!(alert(&world).await?.is_none(), "it has told");
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undecided_calls_count_over_a_restart_and_one_is_tried_then() -> Result<()> {
    // Where its owner finds it again.
    let (mut world, owner, _network) = silenced([settings(), on_a_fixed_port()?].concat()).await?;
    leave_open(&world, CALLS_MAX).await?;
    expect_free("beyond the limit", &world.get("/ok").await?, 503, "calls-undecided")?;
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("they count again", async || Ok(alert(&world).await?.is_some())).await?;
    let calls = || owner.state.lock().calls.len() as u64;
    assert_eq!(calls(), CALLS_MAX);
    eventually("one is tried", async || {
        let _ = world.get("/ok").await?;
        Ok(calls() > CALLS_MAX)
    })
    .await?;
    expect_free("the trial failed", &world.get("/ok").await?, 503, "calls-undecided")?;
    assert_eq!(calls(), CALLS_MAX + 1);
    owner.interrupts_all(&world).await?;
    assert_eq!(spent(&world).await?, PRICE);
    Ok(())
}
