//! An owner whose answers say one thing by their status and another by their receipt, or charge another sum when they are
//! given again.

use std::collections::BTreeMap;

use farthing_protocol::{CallResponse, call::response_hash};
use farthing_tests::calls::expect_free;

use super::*;

/// An answer without a body, charged as it is told to be.
pub(super) fn answer(owner: &Owner, request: &CallRequest, status: u16, charged: Usdc) -> Option<CallReply> {
    let mut state = owner.state.lock();
    state.spent = state.spent.saturating_add(charged);
    let receipt = Receipt {
        channel: owner.channel.id,
        call_id: request.call_id,
        request_hash: request.request_hash(&[]),
        response_hash: [0; 32],
        outcome: Outcome::Answered.code(),
        charged,
        spent_total: state.spent,
        time_secs: 1,
    };
    Some(response(owner, receipt, status))
}

/// The answer of a call that was charged, with the receipt that it has however often it is given.
pub(super) fn kept_answer(owner: &Owner, request: &CallRequest) -> CallReply {
    match owner.receipt(request) {
        CallReply::Status(CallStatus::Done { receipt, .. }) => response(owner, receipt, 200),
        other => other,
    }
}

/// An answer without a body, and its receipt.
fn response(owner: &Owner, receipt: Receipt, status: u16) -> CallReply {
    let headers = BTreeMap::new();
    let receipt = Receipt { response_hash: response_hash(status, &headers, &[]), ..receipt };
    CallReply::Response(CallResponse {
        call_id: receipt.call_id,
        status,
        headers,
        body_bytes: 0,
        receipt,
        signature: receipt.sign(&owner.domain, &owner.key),
        outcome: Outcome::Answered,
        owner_us: 0,
        upstream_us: 0,
    })
}

/// The status is in the path: `/status/404`.
fn charged_failure(owner: &Owner, request: &CallRequest, _: usize) -> Option<CallReply> {
    answer(owner, request, request.path.rsplit('/').next()?.parse().ok()?, request.price)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_calls_itself_an_answer_is_found_out_at_once() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, charged_failure).await?;
    let first = world.get("/status/404").await?;
    ensure!(first.problem() == "bad-answer" && first.status == 502, "{first:?}");
    for path in ["/status/500", "/status/404", "/status/0"] {
        let next = world.get(path).await?;
        expect_free(path, &next, 502, "owner-distrusted")?;
    }
    owner.interrupts_all(&world).await?;
    assert_eq!(spent(&world).await?, PRICE, "the first call alone");
    Ok(())
}

/// The second copy says that the call cost less than the first one did.
fn cheaper_again(owner: &Owner, request: &CallRequest, copies: usize) -> Option<CallReply> {
    answer(owner, request, 200, if copies == 1 { request.price } else { Usdc::ZERO })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_given_again_for_another_sum_is_not_handed_on() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (_owner, _network) = Owner::replaces(&mut world, cheaper_again).await?;
    // The real owner did not serve it.
    world.expect_differences(&["payee: forgotten calls of", "0.004 USDC paid, 0.002 earned"]);
    let call = with(world.body("GET", "/ok"), "call_id", "again");
    expect_served(&world.call(&call).await?)?;
    world.wait_until_decided().await?;
    let again = world.call(&call).await?;
    ensure!(again.problem() == "bad-answer" && again.status == 502, "{again:?}");
    assert_eq!(again.charged(), true, "it was, the first time");
    assert_eq!(spent(&world).await?, cost(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_is_free_is_not_charged_because_its_owner_tells_it_late() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _network) = Owner::replaces(&mut world, |_, _, _| None).await?;
    let call = with(world.body("GET", "/ok"), "call_id", "late");
    let first = world.call(&call).await?;
    ensure!(first.problem() == "undecided", "{first:?}");
    owner.state.lock().outcome = Some(Outcome::Declined);
    owner.tell();
    eventually(
        "its owner is found out",
        async || Ok(world.get("/ok").await?.problem() == "owner-distrusted"),
    )
    .await?;
    owner.interrupts_all(&world).await?;
    assert_eq!(spent(&world).await?, PRICE, "the first call alone");
    Ok(())
}

/// It has the call, and nothing but its receipt for every further copy.
fn receipt_alone(owner: &Owner, request: &CallRequest, copies: usize) -> Option<CallReply> {
    let running = CallReply::Status(CallStatus::Running);
    Some(if copies == 1 { running } else { owner.receipt(request) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_charges_calls_and_keeps_their_answers_is_flagged() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (_owner, _network) = Owner::replaces(&mut world, receipt_alone).await?;
    // The real owner served none of them.
    world.expect_differences(&["payee: forgotten calls of", "0.022 USDC paid, 0.002 earned"]);
    for n in 0..10 {
        let answer = world.get("/ok").await?;
        ensure!(answer.problem() == "answer-no-longer-kept" && answer.charged() == true, "{n}: {answer:?}");
    }
    eventually("its service is flagged", async || {
        let shown = world.consumer.control().ask(endpoint::CatalogService.of(world.api.id)).await?;
        Ok(shown.hit.flag.is_some_and(|flag| flag.failed > 0))
    })
    .await
}
