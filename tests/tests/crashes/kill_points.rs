//! The places of a call at which a node may die, one after the other, each followed by a restart.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::CallOutcome};
use farthing_tests::{
    wait::eventually,
    world::{PRICE, World},
};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{
    Lasting, agreed_spent, body_with_id, call_in_background, kill_at, tail, until_answered,
};

/// How a call whose node died must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Answered under its id, charged once.
    Bought,
    /// An interrupted call with effects: it may have run, is not run again and costs nothing.
    MayHaveRun,
}

/// Place, method of the call, its end, and how often the service may be asked (`None`: safe, as often as needed).
type Case = (&'static str, &'static str, End, Option<u64>);

/// Within a frame whose body takes several writes, and when all of it has left and the next frame has not begun.
const WITHIN_BODY: &str = "frame.within_body";
const AFTER_BODY: &str = "frame.after_body";
/// When the service was asked once more for the answer of a call that was charged before.
const AFTER_REPEAT: &str = "owner.after_repeat";

const OWNER: [Case; 14] = [
    ("owner.after_reserve", "GET", End::Bought, None),
    ("owner.after_reserve", "POST", End::Bought, Some(1)),
    ("owner.before_upstream", "GET", End::Bought, None),
    ("owner.before_upstream", "POST", End::MayHaveRun, Some(0)),
    ("owner.after_upstream", "GET", End::Bought, None),
    ("owner.after_upstream", "POST", End::MayHaveRun, Some(1)),
    ("owner.after_commit", "GET", End::Bought, None),
    ("owner.after_commit", "POST", End::Bought, Some(1)),
    ("owner.during_answer", "GET", End::Bought, None),
    ("owner.during_answer", "POST", End::Bought, Some(1)),
    (WITHIN_BODY, "GET", End::Bought, None),
    (WITHIN_BODY, "POST", End::Bought, Some(1)),
    (AFTER_BODY, "GET", End::Bought, None),
    (AFTER_BODY, "POST", End::Bought, Some(1)),
];

const CONSUMER: [Case; 8] = [
    ("consumer.after_reserve", "POST", End::Bought, Some(1)),
    ("consumer.after_promise", "POST", End::Bought, Some(1)),
    ("consumer.before_send", "POST", End::Bought, Some(1)),
    (WITHIN_BODY, "POST", End::Bought, Some(1)),
    (AFTER_BODY, "POST", End::Bought, Some(1)),
    ("consumer.after_answer", "POST", End::Bought, Some(1)),
    ("consumer.before_acknowledge", "POST", End::Bought, Some(1)),
    ("consumer.after_acknowledge", "POST", End::Bought, Some(1)),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_dies_anywhere_charges_a_call_once_or_not_at_all() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let mut charged = PRICE;
    for case in OWNER {
        let (point, method, end, _) = case;
        world.owner.restart_until_ready(kill_at(point)).await?;
        charged = charged.saturating_add(keep_a_stream(world, point, method).await?);
        let hits = world.upstream.hits();
        let body = body_at(world, point, method, &format!("{point} {method}"));
        let call = call_until_victim_dies(world, &body, Victim::Owner).await.context(point)?;
        world.owner.restart(Vec::new()).await?;
        let answer = call.await??;
        match end {
            // The consumer's node repeats the call by itself, under its id. An owner that has not seen the chain
            // again yet refuses it, free; the caller repeats it then.
            End::Bought => {
                let bought = answer.status == StatusCode::OK;
                ensure!(bought || answer.charged() == false, "{case:?}: {answer:?}");
                // Who is told that it was free repeats nothing: neither side counts it then.
                let counted = if bought { charged.saturating_add(PRICE) } else { charged };
                ensure!(agreed_spent(world).await? == counted, "{case:?}: {answer:?}");
                let again = until_answered(world, &body).await?;
                ensure!(
                    !bought || method == "GET" || again.body == answer.body,
                    "{case:?}: {answer:?} then {again:?}"
                );
            }
            End::MayHaveRun => {
                ensure!(!answer.problem().is_empty(), "{case:?}: {answer:?}");
                ensure!(answer.charged() == false, "{case:?}: {answer:?}");
                let problem = answer.json();
                let id = problem["call_id"].as_str().context("no call id")?;
                let call = world.consumer.control().ask(endpoint::ShowCall.of(id)).await?.call;
                let code = call.problem.as_ref().and_then(|problem| problem.code.as_deref());
                let is_told = call.outcome == CallOutcome::Failed && code == Some("may-have-run");
                ensure!(is_told, "{case:?}: {call:?}");
            }
        }
        charged = check(world, case, hits, charged).await?;
    }
    world.settle_for(charged).await
}

/// What a call cost whose owner died at a place and came back with a service that fails. The owner's one place that is not among
/// them is `owner.after_sign_away`: no close is signed while a call runs on its channel, and none runs on it afterwards, so
/// that a service which fails then is asked for nothing that somebody waits for.
const THEN_FAILING: [(&str, &str, bool); 15] = [
    ("owner.after_reserve", "GET", false),
    ("owner.after_reserve", "POST", false),
    ("owner.before_upstream", "GET", false),
    ("owner.before_upstream", "POST", false),
    ("owner.after_upstream", "GET", false),
    ("owner.after_upstream", "POST", false),
    ("owner.after_commit", "GET", true),
    ("owner.after_commit", "POST", true),
    ("owner.during_answer", "GET", true),
    ("owner.during_answer", "POST", true),
    (WITHIN_BODY, "GET", true),
    (WITHIN_BODY, "POST", true),
    (AFTER_BODY, "GET", true),
    (AFTER_BODY, "POST", true),
    (AFTER_REPEAT, "GET", true),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_never_told_that_a_charged_call_was_free_when_its_owner_died_and_the_service_fails()
-> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let mut charged = PRICE;
    for case in THEN_FAILING {
        let (point, method, is_charged) = case;
        world.upstream.fail(false);
        let body = body_at(world, point, method, &format!("then failing {point} {method}"));
        if point == AFTER_REPEAT {
            until_answered(world, &body).await?;
        }
        world.owner.restart_until_ready(kill_at(point)).await?;
        charged = charged.saturating_add(keep_a_stream(world, point, method).await?);
        let call = call_until_victim_dies(world, &body, Victim::Owner).await.context(point)?;
        world.upstream.fail(true);
        world.owner.restart(Vec::new()).await?;
        let answer = call.await??;
        // The id is not sent again: the books come together by themselves.
        let agreed = agreed_spent(world).await.with_context(|| format!("{case:?}: {answer:?}"))?;
        charged = charged.saturating_add(if is_charged { PRICE } else { Usdc::ZERO });
        ensure!(agreed == charged, "{case:?}: {agreed} charged, {charged} expected; {answer:?}");
        let told = if answer.status == StatusCode::OK { json!(true) } else { answer.charged() };
        ensure!(told != json!(!is_charged), "{case:?}: the caller was told {told}: {answer:?}");
    }
    world.upstream.fail(false);
    until_answered(world, &body_with_id(world, "GET", "/ok", "afterwards")).await?;
    let expected = charged.saturating_add(PRICE);
    world.settle_for(expected).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_dies_anywhere_pays_a_call_once_and_gets_its_answer() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let mut charged = PRICE;
    for case in CONSUMER {
        let (point, method, ..) = case;
        world.consumer.restart_until_ready(kill_at(point)).await?;
        charged = charged.saturating_add(keep_a_stream(world, point, method).await?);
        let hits = world.upstream.hits();
        let body = body_at(world, point, method, &format!("{point} {method}"));
        drop(call_until_victim_dies(world, &body, Victim::Consumer).await.context(point)?);
        world.consumer.restart(Vec::new()).await?;
        until_answered(world, &body).await.context(point)?;
        charged = check(world, case, hits, charged).await?;
    }
    world.settle_for(charged).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_dies_while_it_serves_the_one_repeat_of_a_call_never_serves_it_again() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    let body = body_with_id(world, "GET", "/ok", "repeated");
    until_answered(world, &body).await?;
    let hits = world.upstream.hits();
    // A restart forgets the answer, which is kept in memory alone.
    world.owner.restart_until_ready(kill_at(AFTER_REPEAT)).await?;
    let call = call_until_victim_dies(world, &body, Victim::Owner).await?;
    world.owner.restart(Vec::new()).await?;
    drop(call.await??);
    let mut last = None;
    let told = eventually("the caller is told that the answer is gone", async || {
        let answer = world.call(&body).await?;
        let is_told = answer.problem() == "answer-no-longer-kept";
        ensure!(answer.charged() == json!(true), "{answer:?}");
        last = Some(answer);
        Ok(is_told)
    });
    told.await.with_context(|| format!("{last:?}"))?;
    ensure!(world.upstream.hits() == hits + 1, "asked {} times more", world.upstream.hits() - hits);
    ensure!(agreed_spent(world).await? == PRICE.saturating_mul(2));
    world.settle_for(PRICE.saturating_mul(2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn either_node_killed_while_the_service_works_leaves_one_charge_and_one_answer() -> Result<()> {
    let world = &mut Lasting::warm().await?.world;
    for (n, victim) in [Victim::Owner, Victim::Consumer].into_iter().enumerate() {
        let hits = world.upstream.hits();
        let body = body_with_id(world, "GET", "/slow/1500", &format!("slow {victim:?}"));
        let call = call_in_background(world, &body).await?;
        let upstream = world.upstream.clone();
        eventually("the service is asked", async || Ok(upstream.hits() > hits)).await?;
        let node = if victim == Victim::Owner { &mut world.owner } else { &mut world.consumer };
        node.restart(Vec::new()).await?;
        let answer = until_answered(world, &body).await?;
        ensure!(answer.body == "at last", "{answer:?}");
        drop(call);
        let expected = PRICE.saturating_mul(n as u64 + 2);
        ensure!(agreed_spent(world).await? == expected, "{victim:?}");
    }
    world.settle_for(PRICE.saturating_mul(3)).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Owner,
    Consumer,
}

/// Has the call that reaches a place within or between frames go over a stream that carried another one before, and says
/// what that one cost. All other places are reached by any call.
async fn keep_a_stream(world: &World, point: &str, method: &str) -> Result<Usdc> {
    if ![WITHIN_BODY, AFTER_BODY].contains(&point) {
        return Ok(Usdc::ZERO);
    }
    let before = body_with_id(world, "GET", "/ok", &format!("before {point} {method}"));
    until_answered(world, &before).await?;
    Ok(PRICE)
}

/// A call that reaches the place.
fn body_at(world: &World, point: &str, method: &str, id: &str) -> serde_json::Value {
    match (point, method) {
        (WITHIN_BODY | AFTER_BODY, "GET") => body_with_id(world, method, "/large/200000", id),
        (WITHIN_BODY | AFTER_BODY, _) => {
            let mut body = body_with_id(world, method, "/echo", id);
            body["body"] = json!({ "text": "m".repeat(200_000) });
            body
        }
        _ => body_with_id(world, method, "/ok", id),
    }
}

/// Makes the call that ends the victim. A node that was just restarted may have to be found again first.
async fn call_until_victim_dies(
    world: &mut World,
    body: &serde_json::Value,
    victim: Victim,
) -> Result<tokio::task::JoinHandle<Result<farthing_tests::world::Answer>>> {
    let mut last = None;
    for _ in 0..100 {
        let call = call_in_background(world, body).await?;
        let node = if victim == Victim::Owner { &mut world.owner } else { &mut world.consumer };
        loop {
            if node.has_ended() {
                return Ok(call);
            }
            if call.is_finished() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        // The answer may be faster than the death that follows it.
        let answer = call.await?;
        if tokio::time::timeout(std::time::Duration::from_secs(1), node.wait_until_ended()).await.is_ok() {
            return Ok(tokio::spawn(async move { answer }));
        }
        last = Some(answer);
    }
    anyhow::bail!("the place was not reached; last answer: {last:?}")
}

/// Books agree, with one price more or none, and the service was not asked more often than it may be.
async fn check(world: &World, case: Case, hits: u64, charged: Usdc) -> Result<Usdc> {
    let (_, _, end, hits_max) = case;
    let price = if end == End::Bought { PRICE } else { Usdc::ZERO };
    let expected = charged.saturating_add(price);
    let agreed = agreed_spent(world).await.with_context(|| format!("{case:?}"))?;
    ensure!(agreed == expected, "{case:?}: {agreed} charged, {expected} expected\n{}", tail(&world.consumer));
    let asked = world.upstream.hits() - hits;
    ensure!(hits_max.is_none_or(|max| asked == max), "{case:?}: the service was asked {asked} times");
    Ok(expected)
}
