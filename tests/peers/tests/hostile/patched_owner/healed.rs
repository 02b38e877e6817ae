//! An owner that counts more than its payer: what a call explains is booked, and what nothing explains stops the channel.

use std::time::{Duration, Instant};

use farthing_control::{
    endpoint,
    types::{AlertKind, ChannelState},
};
use farthing_protocol::resolution::COPY_LIFETIME;
use farthing_tests::calls::{expect_free, on_a_fixed_port, posing_as_public};
use futures::future::try_join_all;

use super::*;

/// A call that arrives and is never answered, or is refused as its parameters say.
const LOST_OR_REFUSED: Answers =
    |_, request, _| request.params.contains_key("refusal").then(|| refusal_asked_for(request));

/// A call that its owner refuses; it has its payer look into what the owner counts.
pub(super) async fn refused_for_too_little(world: &World, id: &str) -> Result<()> {
    let body = with(world.body("GET", "/ok"), "params", json!({ "refusal": "insufficient_voucher" }));
    let answer = world.call(&with(body, "call_id", id)).await?;
    ensure!(answer.charged() == json!(false), "{id}: {answer:?}");
    Ok(())
}

async fn is_stopped_with_an_alert(world: &World) -> Result<bool> {
    let alerts = world.consumer.control().ask(endpoint::Alerts).await?;
    Ok(alerts.iter().any(|alert| alert.kind == AlertKind::ChannelStopped))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_charge_is_found_by_the_owners_total_and_a_total_that_no_call_explains_raises_an_alert()
-> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    // The real owner did not serve the late call.
    world.expect_differences(&["payee: forgotten calls of", "0.004 USDC paid, 0.002 earned"]);
    let state = || owner.state.lock();

    // By the owner's word the call never arrived, and then it did.
    state().denies = true;
    let lost = world.call(&with(world.body("GET", "/ok"), "call_id", "late")).await?;
    ensure!(lost.charged() == Value::Null, "{lost:?}");
    world.wait_until_decided().await?;
    assert_eq!(spent(&world).await?, PRICE);
    state().denies = false;
    owner.tell();
    let late = state().calls[&CallId::from_idempotency_key("late")].0.clone();
    let _ = owner.receipt(&late);

    refused_for_too_little(&world, "next").await?;
    eventually("the late charge is booked", async || Ok(spent(&world).await? == cost(2))).await?;
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty() && audit.adjustments == 0, "{audit:?}");
    ensure!(!is_stopped_with_an_alert(&world).await?, "the ledgers agree again");
    let spending = world.consumer.control().ask(endpoint::Spending).await?;
    assert_eq!(spending.spent_today.0, cost(2));

    // A charge for nothing.
    state().spent = cost(3);
    refused_for_too_little(&world, "another").await?;
    eventually("the disagreement raises an alert", async || is_stopped_with_an_alert(&world).await).await?;
    assert_eq!(spent(&world).await?, cost(2), "it is not paid");
    let next = world.get("/ok").await?;
    ensure!(next.problem() == "owner-distrusted", "{next:?}");
    Ok(())
}

/// Books that count all that the best voucher promises.
const ALL_THAT_WAS_SIGNED: Books = |owner, books| {
    let state = owner.state.lock();
    let promised = state.calls.values().filter_map(|(request, _)| match request.payment {
        Payment::Channel { cumulative, signature, .. } => Some((cumulative, signature)),
        _ => None,
    });
    let (best, best_signature) = promised.max_by_key(|(cumulative, _)| *cumulative)?;
    Some(CallReply::Channel(ChannelSync { spent: best, best, best_signature, ..books }))
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_refused_is_not_paid_after_its_buyer_was_stopped_and_started() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    refused_for_too_little(&world, "refused").await?;
    owner.state.lock().books = Some(ALL_THAT_WAS_SIGNED);
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("the disagreement raises an alert", async || is_stopped_with_an_alert(&world).await).await?;
    assert_eq!(spent(&world).await?, PRICE, "it is not paid");
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty() && audit.adjustments == 0, "{audit:?}");
    ensure!(world.get("/ok").await?.problem() == "owner-distrusted");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_keeps_its_buyer_from_ending_until_that_is_killed_makes_no_crash_of_it() -> Result<()> {
    // Where its owner finds it again.
    let consumer_settings = on_a_fixed_port()?;
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    let state = || owner.state.lock();
    let held = async {
        let _ = world.get("/ok").await;
        std::future::pending::<Result<()>>().await
    };
    let ends = async {
        eventually("the call is held", async || Ok(state().calls.len() == 1)).await?;
        refused_for_too_little(&world, "refused").await?;
        state().books = Some(ALL_THAT_WAS_SIGNED);
        world.consumer.ask_to_stop()?;
        // It is killed before its time for that call is over, and when it may promise nothing more.
        eventually("it promises nothing more", async || {
            Ok(world.consumer.log().contains("promises no further payment"))
        })
        .await
    };
    tokio::select! { ended = held => ended, ended = ends => ended }?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    eventually("the disagreement raises an alert", async || is_stopped_with_an_alert(&world).await).await?;
    assert_eq!(spent(&world).await?, PRICE, "nothing is put down to a crash");
    owner.tell();
    world.wait_until_decided().await?;
    world.expect_differences(&["payee: forgotten calls of", "0.004 USDC paid, 0.002 earned"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_an_owner_that_shows_its_books_slowly_wait_for_one_question() -> Result<()> {
    let mut world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    // From then on the books are not compared any more but for a reason.
    tokio::time::sleep(COPY_LIFETIME).await;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    let state = || owner.state.lock();
    state().is_slow = true;

    let together = ["one", "two", "three", "four", "five", "six"];
    try_join_all(together.iter().map(|id| refused_for_too_little(&world, id))).await?;
    // Whoever would ask after them stands before this one.
    state().is_slow = false;
    refused_for_too_little(&world, "alone").await?;
    assert_eq!(state().times_asked, 2, "one question for all that wait, and one for the last");

    // After a start nothing is promised before the books were seen.
    state().is_slow = true;
    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    try_join_all(together.iter().map(|id| refused_for_too_little(&world, id))).await?;
    let asked = state().times_asked - 2;
    ensure!(asked <= together.len() / 2, "{asked} questions");
    assert_eq!(spent(&world).await?, cost(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_slow_to_show_its_books_holds_up_no_caller_beyond_its_time() -> Result<()> {
    // Where its owner finds it again.
    let consumer_settings = on_a_fixed_port()?;
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    let asked = {
        let mut state = owner.state.lock();
        state.is_slow = true;
        state.times_asked
    };
    world.consumer.stop().await?;
    // Each question may take ten seconds.
    world.consumer.restart(vec![("FARTHING_LIMITS__CALL_TOTAL_MS".to_owned(), "1000".to_owned())]).await?;
    eventually("its books are asked for", async || Ok(owner.state.lock().times_asked > asked)).await?;
    let begun = Instant::now();
    let told = world.get("/ok").await?;
    let waited = begun.elapsed();
    expect_free("its time is over", &told, 502, "owner-unreachable")?;
    ensure!(
        told.json()["detail"].as_str().is_some_and(|why| why.contains("slow to show its ledger")),
        "{told:?}"
    );
    ensure!(waited < Duration::from_secs(8), "it waited for {waited:?}");
    Ok(())
}

/// More than was ever signed, and nothing, by turns.
const BY_TURNS: Books = |owner, books| {
    let is_asked_again = owner.state.lock().times_asked.is_multiple_of(2);
    Some(if is_asked_again { busy() } else { CallReply::Channel(ChannelSync { spent: cost(9), ..books }) })
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_accuses_itself_by_turns_is_left_when_it_lasts_and_looked_at_by_one_task() -> Result<()>
{
    let (owner_settings, consumer_settings) = (posing_as_public(), posing_as_public());
    let mut world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    // From then on the books are not compared any more but for a reason.
    tokio::time::sleep(COPY_LIFETIME).await;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, LOST_OR_REFUSED).await?;
    owner.state.lock().books = Some(BY_TURNS);
    let begun = Instant::now();
    for id in 0..10 {
        refused_for_too_little(&world, &format!("call {id}")).await?;
    }
    // It was reached, and says that it is busy.
    eventually("a call is told why nothing is promised", async || {
        let told = world.get("/ok").await?;
        ensure!(told.problem() == "owner-unreachable", "{told:?}");
        let told = String::from_utf8_lossy(&told.body).into_owned();
        ensure!(told.contains("until its ledger agrees with yours"), "{told}");
        Ok(told.contains("the owner's node refuses it (busy): later"))
    })
    .await?;
    let asked = owner.state.lock().times_asked;
    ensure!(asked >= 10, "the calls asked {asked} times for its books");
    let state = async || -> Result<ChannelState> { Ok(world.channel().await?.state) };
    ensure!(state().await? == ChannelState::Open, "not at once");
    while state().await? == ChannelState::Open {
        ensure!(begun.elapsed() < Duration::from_secs(240), "it is never left");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Those that one task asks in that time: with one for each accusation there would be five times as many.
    let looked = owner.state.lock().times_asked - asked;
    ensure!(looked <= 10, "it was asked {looked} times without a call");
    Ok(())
}
