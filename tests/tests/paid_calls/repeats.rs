//! One call id, one execution, one charge: in sequence, at once, over restarts, and after failures.

use std::{
    fs::OpenOptions,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use axum::{Router, http::StatusCode, routing::any};
use farthing_control::types::Charge;
use farthing_testnet::program;
use farthing_tests::{
    calls::{cost, expect_free, expect_served, fixed_owner, with},
    command::{Ran, farthing},
    upstream::serve,
    wait::eventually,
    world::{Answer, PRICE, World, service_file},
};
use serde_json::json;
use tokio::process::Command;

/// Orders a call whose answer goes to a disk without room.
async fn call_without_room(world: &World, service: &str) -> Result<Ran> {
    let full = OpenOptions::new().write(true).open("/dev/full")?;
    let started = Command::new(program("farthing")?)
        .args(["call", service, "GET", "/ok", "--json", "--data"])
        .arg(world.consumer.data_dir())
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    Ran::of(started.wait_with_output().await?)
}

#[tokio::test]
async fn an_answer_that_finds_no_room_on_the_disk_is_had_again_for_nothing() -> Result<()> {
    let world = World::start().await?;
    let service = world.api.id.to_string();
    let lost = call_without_room(&world, &service).await?;
    let error = lost.error()?;
    ensure!(lost.code == 1 && error["charged"] == true, "{lost:?}");
    let id = error["call_id"].as_str().context("no id to repeat it with")?;
    ensure!(error["next"].as_str().is_some_and(|next| next.contains(id)), "{error:#}");
    let again = farthing(&world.consumer, &["call", &service, "GET", "/ok", "--call-id", id]).await?.ok()?;
    ensure!(!again.out.is_empty() && world.upstream.hits() == 1, "{again:?}");
    world.settle_for(PRICE).await
}

/// The same bytes for the same money.
fn expect_same(first: &Answer, again: &Answer) -> Result<()> {
    expect_served(again)?;
    ensure!(first.body == again.body, "{:?} and {:?}", first.body, again.body);
    for name in ["content-type", "x-farthing-call-id", "x-farthing-charged", "x-farthing-receipt"] {
        ensure!(
            first.header(name) == again.header(name),
            "{name}: {} and {}",
            first.header(name),
            again.header(name)
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_repeated_call_id_is_answered_again_and_charged_once() -> Result<()> {
    let world = World::start().await?;
    for (id, method) in [("a get", "GET"), ("a post", "POST")] {
        let before = world.upstream.hits();
        let call = with(world.body(method, "/ok"), "call_id", id);
        let first = world.call(&call).await?;
        expect_served(&first)?;
        for _ in 0..3 {
            expect_same(&first, &world.call(&call).await?)?;
        }
        let plain = world.body(method, "/ok").to_string();
        expect_same(&first, &world.post(plain, |request| request.header("idempotency-key", id)).await?)?;
        assert_eq!(world.upstream.hits(), before + 1, "{id}");

        for (what, other) in [
            (
                "another path",
                with(call.clone(), "path", if method == "GET" { "/status/200" } else { "/echo" }),
            ),
            ("other parameters", with(call.clone(), "params", json!({"a": "b"}))),
            ("another method", with(call.clone(), "method", if method == "GET" { "POST" } else { "GET" })),
            ("other headers", with(call.clone(), "headers", json!({"accept": "text/csv"}))),
        ] {
            expect_free(&format!("{id}, {what}"), &world.call(&other).await?, 409, "call-id-conflict")?;
        }
        assert_eq!(world.upstream.hits(), before + 1, "{id}");
    }
    let post = with(with(world.body("POST", "/echo"), "call_id", "echoed"), "body", json!({"a": 1}));
    expect_served(&world.call(&post).await?)?;
    let other = with(post.clone(), "body", json!({"a": 2}));
    expect_free("another body", &world.call(&other).await?, 409, "call-id-conflict")?;
    assert_eq!(world.call(&post).await?.json(), json!({"a": 1}));
    assert_eq!(world.upstream.hits(), 3);
    world.settle_for(cost(3)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_parallel_calls_with_one_id_are_one_call() -> Result<()> {
    let world = World::start().await?;
    for (n, path) in ["/ok", "/slow/300"].into_iter().enumerate() {
        let call = with(world.body("GET", path), "call_id", path);
        let answers = futures::future::join_all((0..16).map(|_| world.call(&call))).await;
        let answers = answers.into_iter().collect::<Result<Vec<_>>>()?;
        for answer in &answers {
            expect_same(&answers[0], answer)?;
        }
        assert_eq!(world.upstream.hits(), n as u64 + 1);
    }
    // Two calls that disagree about one id: one of them is served, the other is told.
    let calls = [json!({"n": "1"}), json!({"n": "2"})]
        .map(|params| with(with(world.body("GET", "/ok"), "call_id", "contested"), "params", params));
    let (one, two) = futures::try_join!(world.call(&calls[0]), world.call(&calls[1]))?;
    let (served, refused) = if one.status.is_success() { (one, two) } else { (two, one) };
    expect_served(&served)?;
    expect_free("the other", &refused, 409, "call-id-conflict")?;
    assert_eq!(world.upstream.hits(), 3);
    world.settle_for(cost(3)).await
}

#[tokio::test]
async fn a_call_id_is_remembered_over_a_restart_of_either_node() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let get = with(world.body("GET", "/ok"), "call_id", "get");
    let post = with(world.body("POST", "/ok"), "call_id", "post");
    let (got, posted) = (world.call(&get).await?, world.call(&post).await?);
    expect_served(&got)?;
    expect_served(&posted)?;
    world.wait_until_decided().await?;

    world.consumer.stop().await?;
    world.consumer.restart_until_ready(Vec::new()).await?;
    expect_same(&got, &world.call(&get).await?)?;
    expect_same(&posted, &world.call(&post).await?)?;
    let other = with(get.clone(), "params", json!({"a": "b"}));
    expect_free("after the restart", &world.call(&other).await?, 409, "call-id-conflict")?;
    assert_eq!(world.upstream.hits(), 2, "the owner kept both answers");

    world.owner.stop().await?;
    world.owner.restart(Vec::new()).await?;
    eventually("the owner answers again", async || Ok(world.call(&post).await?.status.is_success())).await?;
    expect_same(&posted, &world.call(&post).await?)?;
    assert_eq!(world.upstream.hits(), 2, "the answer of a POST comes from the ledger");
    for _ in 0..3 {
        let again = world.call(&get).await?;
        expect_served(&again)?;
        assert_eq!(again.header("x-farthing-charged"), "0.002", "what it cost then");
        assert_eq!(again.json()["n"], json!(3), "a GET is asked once more, and its answer kept");
    }
    expect_free("after both restarts", &world.call(&other).await?, 409, "call-id-conflict")?;
    assert_eq!(world.upstream.hits(), 3);
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_repeat_that_ends_otherwise_is_not_passed_off_as_the_answer_that_was_bought() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let get = with(world.body("GET", "/ok"), "call_id", "get");
    expect_served(&world.call(&get).await?)?;
    world.wait_until_decided().await?;
    world.owner.stop().await?;
    world.owner.restart(Vec::new()).await?;
    eventually("the owner answers again", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    // The answer is not kept any more, so the service is asked once more.
    world.upstream.fail(true);
    let again = world.call(&get).await?;
    ensure!(again.problem() == "answer-no-longer-kept" && again.charged() == true, "{again:?}");
    world.upstream.fail(false);
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn after_an_uncharged_failure_the_same_id_may_succeed_and_is_charged_once() -> Result<()> {
    let world = World::start().await?;
    let hits = Arc::new(AtomicU64::new(0));
    let api = world.publish(&service_file(&failing_twice(Arc::clone(&hits)).await?, Charge::Success)).await?;
    let get =
        json!({ "api_id_public": api.id.to_string(), "path": "/ok", "method": "GET", "call_id": "get" });
    for _ in 0..2 {
        expect_free("it fails", &world.call(&get).await?, 502, "upstream-failed")?;
    }
    let first = world.call(&get).await?;
    expect_served(&first)?;
    expect_same(&first, &world.call(&get).await?)?;
    assert_eq!(hits.load(Ordering::SeqCst), 3);

    // A POST that failed may have had its effect: the same id never runs it again.
    let post = with(with(world.body("POST", "/ok"), "api_id_public", api.id.to_string()), "call_id", "post");
    hits.store(0, Ordering::SeqCst);
    for _ in 0..3 {
        expect_free("it failed", &world.call(&post).await?, 502, "upstream-failed")?;
    }
    assert_eq!(hits.load(Ordering::SeqCst), 1);

    // Nor does the id of a refused call stay taken.
    let dear = with(with(world.body("GET", "/ok"), "call_id", "refused"), "max_price", "0.001");
    expect_free("too dear", &world.call(&dear).await?, 402, "price-above-cap")?;
    expect_served(&world.call(&with(dear, "max_price", "0.002")).await?)?;
    assert_eq!(world.upstream.hits(), 1);
    world.settle_for(PRICE.checked_add(PRICE).unwrap_or_default()).await
}

/// A server whose first two answers are errors.
async fn failing_twice(hits: Arc<AtomicU64>) -> Result<String> {
    let answer = move || {
        let n = hits.fetch_add(1, Ordering::SeqCst);
        async move { if n < 2 { (StatusCode::BAD_GATEWAY, "not yet") } else { (StatusCode::OK, "now") } }
    };
    serve(Router::new().route("/ok", any(answer))).await
}
