//! What a payer tries to get beyond what it pays for: the same call again and again, and effects without an answer.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use axum::{Router, routing::any};
use farthing_control::endpoint;
use farthing_tests::upstream::serve;
use tokio::sync::Semaphore;

/// More copies of a call than an owner serves calls of one payer at once.
const COPIES: usize = 80;
/// Far longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server whose answers wait, each until one is let go, and the count of what reached it.
async fn held_back() -> Result<(String, Arc<AtomicU64>, Arc<Semaphore>)> {
    let (hits, gate) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
    let (count, way) = (Arc::clone(&hits), Arc::clone(&gate));
    let answer = move || {
        count.fetch_add(1, Ordering::SeqCst);
        let way = Arc::clone(&way);
        async move {
            if let Ok(passed) = way.acquire().await {
                passed.forget();
            }
            "at last"
        }
    };
    Ok((serve(Router::new().route("/ok", any(answer))).await?, hits, gate))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_hear_busy_while_the_first_one_runs_add_neither_an_execution_nor_a_charge() -> Result<()>
{
    let (upstream, hits, gate) = held_back().await?;
    let world = World::with(Setup { upstream_url: Some(upstream), ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x59, cost(10)).await?;
    for (n, method) in [(1, Method::Get), (2, Method::Post)] {
        let call = CallRequest { method, deadline_ms: 60_000, ..payer.request(&format!("{n}"), cost(n)) };
        let (network, owner) = (payer.network.clone(), payer.owner);
        let message = CallMessage::Call(call.clone());
        let first = tokio::spawn(async move { network.call(owner, message, Bytes::new(), PATIENCE).await });
        eventually("the first copy runs", async || Ok(hits.load(Ordering::SeqCst) == n)).await?;
        // Each on a stream of its own: those that find a place wait for the first one's end, the others are refused.
        let copy = || payer.network.call(owner, CallMessage::Call(call.clone()), Bytes::new(), PATIENCE);
        let mut copies = stream::iter((0..COPIES).map(|_| copy())).buffer_unordered(COPIES);
        let (mut busy, mut receipts) = (0, Vec::new());
        while let Some(heard) = copies.next().await {
            match heard {
                Ok((CallReply::Refused(refusal), ..)) if refusal.code == RefusalCode::Busy => {
                    busy += 1;
                    if busy == 1 {
                        ensure!(!first.is_finished(), "nothing was let go yet");
                        gate.add_permits(1);
                    }
                }
                Ok((CallReply::Response(response), ..)) => receipts.push(response.receipt),
                // A stream too many.
                Err(CallFailure::NeverStarted(_) | CallFailure::Unknown(_)) => {}
                Ok((other, ..)) => bail!("{other:?}"),
            }
        }
        let (CallReply::Response(answer), ..) = first.await?? else { bail!("the first copy is not served") };
        assert_eq!(answer.receipt.charged, PRICE);
        ensure!(busy > 0 && !receipts.is_empty(), "{busy} heard busy, {} waited", receipts.len());
        ensure!(receipts.iter().all(|receipt| *receipt == answer.receipt), "{receipts:?}");
        println!("{method:?}: {busy} copies heard busy, {} had the answer of the first one", receipts.len());
        // Whoever heard it comes again.
        assert_eq!(payer.served(call.clone()).await?.receipt, answer.receipt);
        assert_eq!(hits.load(Ordering::SeqCst), n);
    }
    expect_charged(&world, 2).await
}

#[tokio::test]
async fn one_charge_buys_one_further_execution_and_none_after_a_restart() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x55, cost(10)).await?;
    // Answers of this size are not kept.
    let large =
        |id: &str, calls| CallRequest { path: "/large/1100000".to_owned(), ..payer.request(id, cost(calls)) };
    payer.served(payer.request("small", cost(1))).await?;
    payer.served(large("dearer", 2)).await?;
    let receipt = payer.served(large("large", 3)).await?.receipt;
    assert_eq!(payer.served(large("large", 3)).await?.receipt.charged, receipt.charged);
    for _ in 0..20 {
        assert_eq!(payer.receipt(large("large", 3)).await?, receipt);
    }
    assert_eq!(world.upstream.hits(), 4);

    let (control, id) = (world.owner.control(), world.api.id);
    control.ask(endpoint::PauseApi.of(id)).await?;
    payer.refused("paused", large("dearer", 2), RefusalCode::ServicePaused).await?;
    control.ask(endpoint::ResumeApi.of(id)).await?;
    let dearer = PriceRequest { price: cost(2).into(), operation: None };
    control.tell(endpoint::PriceApi.of(id), &dearer).await?;
    payer.receipt(large("dearer", 2)).await?;
    let cheaper = PriceRequest { price: PRICE.into(), operation: None };
    control.tell(endpoint::PriceApi.of(id), &cheaper).await?;
    assert_eq!(world.upstream.hits(), 4, "a pause and a higher price stop further executions");

    // A restart forgets the answers that were kept in memory, and no right that was used up.
    for is_first in [true, false] {
        world.owner.stop().await?;
        world.owner.restart_until_ready(Vec::new()).await?;
        payer.receipt(large("large", 3)).await?;
        let small = payer.request("small", cost(1));
        let other = CallRequest { path: "/status/200".to_owned(), ..small.clone() };
        payer.refused("another call of that id", other, RefusalCode::CallIdConflict).await?;
        if is_first {
            payer.served(small).await?;
        } else {
            payer.receipt(small).await?;
        }
        assert_eq!(world.upstream.hits(), 5);
    }
    expect_charged(&world, 3).await
}

#[tokio::test]
async fn a_deadline_of_a_millisecond_makes_neither_an_effect_nor_an_answer_free() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x56, cost(10)).await?;
    let hasty = |id: &str, method, path: &str, calls| CallRequest {
        method,
        path: path.to_owned(),
        deadline_ms: 1,
        ..payer.request(id, cost(calls))
    };
    let post = hasty("post", Method::Post, "/slow/400", 1);
    let first = payer.send(post.clone()).await?;
    ensure!(matches!(first, Reply::Status(CallStatus::Running)), "the answer is shortened: {first:?}");
    eventually("the effect is charged", async || {
        match payer.ask(CallMessage::Status(post.call_id)).await? {
            Reply::Served(response) => Ok(response.receipt.charged == PRICE),
            Reply::Status(CallStatus::Running) => Ok(false),
            other => bail!("{other:?}"),
        }
    })
    .await?;
    // Far longer than its deadline, and far less than the second that any call has.
    let get = payer.served(hasty("get", Method::Get, "/slow/50", 2)).await?;
    assert_eq!((get.status, get.receipt.charged), (200, PRICE));
    expect_paid(&world, 2).await
}

#[tokio::test]
async fn what_became_of_a_call_with_effects_is_told_with_its_answer_after_a_restart() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let payer = Payer::join(&world, 0x57, cost(10)).await?;
    let post = CallRequest { method: Method::Post, ..payer.request("post", cost(1)) };
    let bought = payer.served(post.clone()).await?;
    ensure!(bought.body_bytes > 0, "{bought:?}");
    world.owner.stop().await?;
    world.owner.restart_until_ready(Vec::new()).await?;
    match payer.ask(CallMessage::Status(post.call_id)).await? {
        Reply::Served(told) => {
            assert_eq!((told.receipt, told.body_bytes), (bought.receipt, bought.body_bytes));
        }
        other => bail!("the receipt alone: {other:?}"),
    }
    expect_charged(&world, 1).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_on_one_voucher_are_served_once() -> Result<()> {
    let world = World::start().await?;
    let payer = Payer::join(&world, 0x51, cost(100)).await?;
    for round in 1..=2 {
        // Each call alone would be paid; together they share one promise.
        let requests = (0..40).map(|n| payer.request(&format!("{round}/{n}"), cost(round)));
        let replies = futures::future::try_join_all(requests.map(|request| payer.send(request))).await?;
        let mut served = 0;
        for reply in &replies {
            match reply {
                Reply::Served(response) => {
                    assert_eq!(
                        (response.receipt.charged, response.receipt.spent_total),
                        (PRICE, cost(round))
                    );
                    served += 1;
                }
                Reply::Refused(refusal) => assert_eq!(refusal.code, RefusalCode::InsufficientVoucher),
                Reply::Status(status) => bail!("{status:?}"),
            }
        }
        assert_eq!(served, 1, "round {round}");
    }
    // One voucher with headroom for five carries five, in any order.
    let requests = (0..20).map(|n| payer.request(&format!("five/{n}"), cost(7)));
    let replies = futures::future::try_join_all(requests.map(|request| payer.send(request))).await?;
    assert_eq!(replies.iter().filter(|reply| matches!(reply, Reply::Served(_))).count(), 5);
    expect_paid(&world, 7).await
}
