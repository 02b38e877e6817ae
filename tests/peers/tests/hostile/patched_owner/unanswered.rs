//! An owner that signs receipts for calls whose answers never arrive: it breaks off the stream or lets the call's time pass,
//! and says that it served the call when it is asked. A network that breaks off does the same to an honest owner, which gives
//! the answer then. The same of calls that run beyond their callers' time.

use farthing_tests::calls::{expect_free, on_a_fixed_port, setting};

use super::{healed::refused_for_too_little, mislabelled::kept_answer, *};

/// Bad ends that flag a service, where they are half of all.
const BAD_CALLS: u64 = 6;

/// Breaks off the first copy, and has nothing but the receipt for the next; nothing at all while it denies that calls came.
const BREAKS_OFF: Answers = |owner, request, copies| {
    if request.params.contains_key("refusal") {
        return Some(refusal_asked_for(request));
    }
    let denies = owner.state.lock().denies;
    (copies > 1 && !denies).then(|| owner.receipt(request))
};

/// The same on the way of an honest owner's answer.
pub(super) const BROKEN_OFF: Answers =
    |owner, request, copies| (copies > 1).then(|| kept_answer(owner, request));

/// Breaks off every copy, so that the call's time passes.
const SILENT: Answers = |_, _, _| None;

/// The call runs until its caller's time is up.
const RUNNING: Answers = |_, _, _| Some(CallReply::Status(CallStatus::Running));

/// How long calls last that their owner never ends.
const SOON_OVER_MS: &str = "3000";

/// A flagged service is stopped, and the owner finds the node again after a restart.
fn settings() -> Result<Vec<(String, String)>> {
    Ok([setting("spending.flagged", "stop"), on_a_fixed_port()?].concat())
}

/// A world whose first call was served, and the owner that took the real one's place then. It ends calls in time.
async fn replaced(answers: Answers) -> Result<(World, Arc<Owner>, NetworkHandle)> {
    replaced_with(answers, settings()?).await
}

/// The same with calls that are over soon, by an owner that tells how they ended when it is asked afterwards.
async fn replaced_by_a_late_one(answers: Answers) -> Result<(World, Arc<Owner>, NetworkHandle)> {
    replaced_with(answers, [settings()?, setting("limits.call_total_ms", SOON_OVER_MS)].concat()).await
}

async fn replaced_with(
    answers: Answers,
    consumer_settings: Vec<(String, String)>,
) -> Result<(World, Arc<Owner>, NetworkHandle)> {
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    serve_one(&world).await?;
    let (owner, network) = Owner::replaces(&mut world, answers).await?;
    world.expect_differences(&["X1: "]);
    owner.tell();
    Ok((world, owner, network))
}

/// Starts the consumer again and waits until it has compared the books with this owner. Otherwise it compares them with the real
/// one, at the end, which takes over the calls that it does not know.
async fn restart(world: &mut World, owner: &Owner) -> Result<()> {
    world.consumer.stop().await?;
    let asked = owner.state.lock().times_asked;
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("the books are compared", async || Ok(owner.state.lock().times_asked > asked)).await
}

async fn is_flagged(world: &World) -> Result<bool> {
    let listed = world.consumer.control().ask(endpoint::FlaggedServices).await?;
    Ok(!listed.services.is_empty())
}

/// Makes calls that end so, one after the other. Then no call is made any more, and no more is paid, over a restart too.
async fn expect_stopped_after(
    world: &mut World,
    owner: &Owner,
    (calls, problem): (u64, &str),
    paid: Usdc,
) -> Result<()> {
    for n in 0..calls {
        ensure!(!is_flagged(world).await?, "it is flagged after {n}");
        let answer = world.get("/ok").await?;
        ensure!(answer.problem() == problem, "{n}: {answer:?}");
        world.wait_until_decided().await?;
    }
    // What a call's end counts is known a moment after its end.
    eventually("it is flagged", async || is_flagged(world).await).await?;
    let arrived = owner.state.lock().calls.len();
    expect_free("once it is flagged", &world.get("/ok").await?, 402, "service-flagged")?;
    restart(world, owner).await?;
    expect_free("after a restart", &world.get("/ok").await?, 402, "service-flagged")?;
    assert_eq!(spent(world).await?, paid);
    assert_eq!(owner.state.lock().calls.len(), arrived);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_breaks_calls_off_and_signs_that_it_served_them_is_flagged_and_stopped() -> Result<()> {
    let (mut world, owner, _network) = replaced(BREAKS_OFF).await?;
    let calls = (BAD_CALLS, "answer-no-longer-kept");
    expect_stopped_after(&mut world, &owner, calls, cost(1 + BAD_CALLS)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_answers_nothing_and_signs_that_it_did_when_it_is_asked_is_flagged_and_stopped()
-> Result<()> {
    let (mut world, owner, _network) = replaced_by_a_late_one(SILENT).await?;
    expect_stopped_after(&mut world, &owner, (BAD_CALLS, "undecided"), cost(1 + BAD_CALLS)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_charged_after_its_owner_said_that_it_never_came_counts_as_well() -> Result<()> {
    let (mut world, owner, _network) = replaced(BREAKS_OFF).await?;
    owner.state.lock().denies = true;
    let denied = world.call(&with(world.body("GET", "/ok"), "call_id", "denied")).await?;
    ensure!(denied.charged() == Value::Null, "{denied:?}");
    world.wait_until_decided().await?;
    assert_eq!(spent(&world).await?, PRICE);
    owner.state.lock().denies = false;
    let request = owner.state.lock().calls[&CallId::from_idempotency_key("denied")].0.clone();
    let _ = owner.receipt(&request);
    refused_for_too_little(&world, "refused").await?;
    eventually("the charge is booked", async || Ok(spent(&world).await? == cost(2))).await?;
    expect_stopped_after(&mut world, &owner, (BAD_CALLS - 1, "answer-no-longer-kept"), cost(1 + BAD_CALLS))
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_a_network_loses_and_their_owner_gives_again_flag_nobody() -> Result<()> {
    let (mut world, owner, _network) = replaced(BROKEN_OFF).await?;
    for _ in 0..=BAD_CALLS {
        expect_served(&world.get("/ok").await?)?;
    }
    // What was to be counted is stored then.
    restart(&mut world, &owner).await?;
    world.wait_until_owner_is_met().await?;
    expect_served(&world.get("/ok").await?)?;
    ensure!(!is_flagged(&world).await?, "it is flagged");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_lets_calls_run_and_has_nothing_but_receipts_is_flagged_and_stopped() -> Result<()> {
    let (mut world, owner, _network) = replaced_by_a_late_one(RUNNING).await?;
    expect_stopped_after(&mut world, &owner, (BAD_CALLS, "undecided"), cost(1 + BAD_CALLS)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_lets_calls_run_and_never_ends_them_is_flagged_and_stopped_although_it_charges_nothing()
-> Result<()> {
    let (mut world, owner, _network) = replaced_by_a_late_one(RUNNING).await?;
    owner.state.lock().interrupts = true;
    // What it charges nothing for, the books of before do not lack.
    world.expect_differences(&[]);
    expect_stopped_after(&mut world, &owner, (BAD_CALLS, "undecided"), PRICE).await
}

/// As the answers of an honest owner to calls with effects, which run on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_calls_that_run_beyond_their_callers_time_flag_nobody() -> Result<()> {
    expect_late_answers_flag_nobody(RUNNING).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_come_after_a_calls_time_flag_nobody() -> Result<()> {
    expect_late_answers_flag_nobody(SILENT).await
}

async fn expect_late_answers_flag_nobody(answers: Answers) -> Result<()> {
    let (mut world, owner, _network) = replaced_by_a_late_one(answers).await?;
    owner.state.lock().keeps_answers = true;
    for n in 0..=BAD_CALLS {
        let answer = world.get("/ok").await?;
        ensure!(answer.problem() == "undecided", "{n}: {answer:?}");
        world.wait_until_decided().await?;
    }
    assert_eq!(spent(&world).await?, cost(2 + BAD_CALLS));
    restart(&mut world, &owner).await?;
    ensure!(!is_flagged(&world).await?, "it is flagged");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_one_break_lost_count_once_and_those_that_a_crash_left_open_do_not_count() -> Result<()>
{
    let (mut world, owner, _network) = replaced_by_a_late_one(SILENT).await?;
    let body = world.body("GET", "/ok");
    let together = futures::future::try_join_all((0..2 * BAD_CALLS).map(|_| world.call(&body))).await?;
    for answer in together {
        ensure!(answer.problem() == "undecided", "{answer:?}");
    }
    world.wait_until_decided().await?;
    owner.state.lock().tells = false;
    for n in 0..BAD_CALLS {
        let answer = world.get("/ok").await?;
        ensure!(answer.problem() == "undecided", "{n}: {answer:?}");
    }
    world.consumer.kill().await?;
    owner.tell();
    world.consumer.restart_until_ready(Vec::new()).await?;
    world.wait_until_decided().await?;
    restart(&mut world, &owner).await?;
    ensure!(!is_flagged(&world).await?, "it is flagged");
    assert_eq!(spent(&world).await?, cost(1 + 3 * BAD_CALLS));
    Ok(())
}
