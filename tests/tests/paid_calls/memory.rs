//! One memory for all bodies: many callers, large answers, and readers that stop reading.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::{Router, body::Body, extract::Path, response::Response, routing::any};
use bytes::Bytes;
use farthing_control::{
    endpoint,
    types::{Charge, OperationFile, ServiceFile},
};
use farthing_testnet::{NodeProcess, demo::metrics};
use farthing_tests::{
    calls::{cost, expect_free, expect_served, setting, with},
    upstream::serve,
    wait::eventually,
    world::{Answer, FUNDS, Setup, World, service_file},
};
use farthing_values::Method;
use futures::{StreamExt, TryStreamExt, future::join_all, stream};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::random::{Random, seed};

/// The least that a node can be given.
const BODIES_MAX: u64 = 16 * 1024 * 1024;
/// Two of these leave less room than there has to be for any answer.
const HALF: usize = 8_360_000;

/// Answers all of a body but its last byte, which waits for the gate to open.
struct Gated {
    url: String,
    hits: Arc<AtomicU64>,
    open: watch::Sender<bool>,
}

impl Gated {
    async fn start() -> Result<Self> {
        let (open, gate) = watch::channel(false);
        let hits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&hits);
        let large = move |Path(bytes): Path<usize>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut gate = gate.clone();
            let first =
                (0..bytes - 1).step_by(64 * 1024).map(move |at| part(at, (64 * 1024).min(bytes - 1 - at)));
            let last = stream::once(async move {
                let _ = gate.wait_for(|open| *open).await;
                part(bytes - 1, 1)
            });
            let parts = stream::iter(first).chain(last).map(Ok::<_, std::io::Error>);
            async move { Response::new(Body::from_stream(parts)) }
        };
        let counted = Arc::clone(&hits);
        let ok = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "fine" }
        };
        let router = Router::new().route("/large/{bytes}", any(large)).route("/ok", any(ok));
        Ok(Self { url: serve(router).await?, hits, open })
    }

    fn hits(&self) -> u64 {
        self.hits.load(Ordering::SeqCst)
    }
}

/// Bytes that say where they belong.
fn part(at: usize, bytes: usize) -> Bytes {
    (at..at + bytes).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect()
}

fn expect_whole(answer: &Answer, bytes: usize) -> Result<()> {
    expect_served(answer)?;
    ensure!(answer.body == part(0, bytes), "{} of {bytes} bytes, or others", answer.body.len());
    Ok(())
}

/// What a node says of its bodies: held now, held at most, and what it may hold.
async fn bodies(node: &NodeProcess) -> Result<[u64; 3]> {
    let counts = metrics(node).await?;
    let value = |name: &str| counts.get(name).copied().with_context(|| format!("no {name} in {counts:?}"));
    Ok([
        value("farthing_bodies_bytes")?,
        value("farthing_bodies_bytes_most")?,
        value("farthing_bodies_bytes_max")?,
    ])
}

/// Nothing is left of what was held, and never was there more than may be.
async fn expect_given_back(world: &World) -> Result<()> {
    for (name, node) in [("owner", &world.owner), ("consumer", &world.consumer)] {
        let mut last = [0; 3];
        eventually("what was held is given back", async || {
            last = bodies(node).await?;
            Ok(last[0] == 0)
        })
        .await
        .with_context(|| format!("{name}: {last:?}"))?;
        let [_, most, max] = last;
        println!("{name}: {most} of {max} bytes at most");
        ensure!(most <= max, "{name} held {most} bytes and may hold {max}");
    }
    Ok(())
}

/// Calls whose answers the caller does not read.
struct Callers<'a> {
    world: &'a World,
    client: Client,
    url: String,
}

impl<'a> Callers<'a> {
    async fn new(world: &'a World) -> Result<Self> {
        let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
        Ok(Self { world, client: world.consumer.https_client()?, url })
    }

    async fn head(&self, body: &Value) -> Result<reqwest::Response> {
        let request = self.client.post(&self.url).bearer_auth(&self.world.secret);
        Ok(request.body(body.to_string()).send().await?)
    }
}

fn large(world: &World, id: &str, bytes: usize) -> Value {
    with(world.body("GET", &format!("/large/{bytes}")), "call_id", id)
}

/// Repeats a call with its id until it is served.
async fn at_last(world: &World, call: &Value) -> Result<Answer> {
    let mut last = None;
    eventually("the call is served", async || {
        let answer = world.call(call).await?;
        let is_served = answer.status.is_success();
        last = Some(answer);
        Ok(is_served)
    })
    .await
    .with_context(|| format!("{:?}", last.as_ref().map(Answer::json)))?;
    last.context("no answer")
}

/// A consumer with two served answers of so many bytes, which nobody reads.
async fn with_two_unread(bytes: usize) -> Result<(Gated, World, [reqwest::Response; 2])> {
    let consumer_settings = setting("limits.bodies_bytes_max", &BODIES_MAX.to_string());
    let upstream = Gated::start().await?;
    upstream.open.send_replace(true);
    let upstream_url = Some(upstream.url.clone());
    let world = World::with(Setup { consumer_settings, upstream_url, ..Setup::default() }).await?;
    let callers = Callers::new(&world).await?;
    let unread = [
        callers.head(&large(&world, "first", bytes)).await?,
        callers.head(&large(&world, "second", bytes)).await?,
    ];
    ensure!(unread.iter().all(|answer| answer.status().is_success()), "{unread:?}");
    Ok((upstream, world, unread))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_whose_callers_do_not_read_buys_nothing_that_it_cannot_hold() -> Result<()> {
    let (upstream, world, unread) = with_two_unread(HALF).await?;
    let [held, ..] = bodies(&world.consumer).await?;
    ensure!(held >= 2 * HALF as u64, "{held} bytes are held");

    // Whoever comes now is refused before anything is sent, in words, and free.
    let before = upstream.hits();
    let calls: Vec<Value> = (0..6)
        .map(|n| large(&world, &format!("refused {n}"), 100_000))
        .chain([world.body("GET", "/ok")])
        .collect();
    for refused in join_all(calls.iter().map(|call| world.call(call))).await {
        let refused = refused?;
        expect_free("without room", &refused, 429, "owner-busy")?;
        ensure!(refused.json()["detail"].to_string().contains("no memory left"), "{:?}", refused.json());
    }
    assert_eq!(upstream.hits(), before, "nothing was asked for");
    let audit = world.consumer.control().ask(endpoint::Audit).await?;
    ensure!(audit.calls_undecided == 0, "{audit:?}");

    // The ones that wait are delivered whole, and honest calls go on.
    for answer in unread {
        ensure!(answer.bytes().await? == part(0, HALF), "the answer is another");
    }
    for n in 0..3 {
        expect_whole(&at_last(&world, &large(&world, &format!("refused {n}"), 100_000)).await?, 100_000)?;
    }
    for _ in 0..5 {
        expect_served(&at_last(&world, &with(world.body("GET", "/ok"), "call_id", "honest")).await?)?;
    }
    expect_given_back(&world).await?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(2 + 3 + 1), "each that was served, once");
    Ok(())
}

/// Sixteen times what a node may hold, each way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_with_a_mebibyte_each_way_are_served_once_each_whatever_there_is_room_for() -> Result<()> {
    const CALLERS: usize = 256;
    let settings = [
        setting("gateway.connections_max", "600"),
        setting("gateway.connections_per_ip_max", "600"),
        setting("limits.bodies_bytes_max", &BODIES_MAX.to_string()),
    ]
    .concat();
    let (owner_settings, consumer_settings) = (settings.clone(), settings);
    let world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
    let text = "m".repeat(1024 * 1024 - 100);
    let calls = stream::iter(0..CALLERS).map(|number| {
        let mut call = with(world.body("POST", "/echo"), "call_id", format!("caller {number}"));
        call["body"] = json!({ "number": number, "text": text });
        call
    });
    let asked = calls.map(async |call| {
        let answer = at_last(&world, &call).await?;
        expect_served(&answer)?;
        ensure!(answer.json() == call["body"], "another answer than {}", call["call_id"]);
        anyhow::Ok(())
    });
    asked.buffer_unordered(CALLERS).try_collect::<()>().await?;
    assert_eq!(world.upstream.hits(), CALLERS as u64, "each took effect once");
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(CALLERS as u64));
    expect_given_back(&world).await
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_were_paid_and_find_no_room_are_fetched_again_for_the_same_money() -> Result<()> {
    const BYTES: usize = 6_000_000;
    let (upstream, world, unread) = with_two_unread(BYTES).await?;
    // There is room to begin with one more, and not for all of it. The caller is not told that it was free.
    let call = large(&world, "third", BYTES);
    let lost = world.call(&call).await?;
    println!("an answer without room: {} {}", lost.status, lost.json());
    ensure!(!lost.status.is_success() && lost.charged() != json!(false), "{lost:?}");
    // An owner serves it once more at most, so it is not asked for before there is room.
    let before = upstream.hits();
    for _ in 0..3 {
        let again = world.call(&call).await?;
        ensure!(!again.status.is_success() && again.charged() != json!(false), "{again:?}");
        ensure!(again.json()["detail"].to_string().contains("no memory left"), "{}", again.json());
    }
    assert_eq!(upstream.hits(), before, "the answer is not fetched to be thrown away");
    let [held, ..] = bodies(&world.consumer).await?;
    ensure!(held <= BODIES_MAX, "{held}");
    for answer in unread {
        ensure!(answer.bytes().await? == part(0, BYTES), "the answer is another");
    }
    expect_whole(&at_last(&world, &call).await?, BYTES)?;
    expect_given_back(&world).await?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(3), "each once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_asks_no_upstream_for_what_it_cannot_hold() -> Result<()> {
    // One payer holds no more than it leaves free.
    const QUARTER: usize = HALF / 2;
    let mut owner_settings = setting("limits.bodies_bytes_max", &BODIES_MAX.to_string());
    owner_settings.extend(setting("limits.upstream_idle_ms", "120000"));
    owner_settings.extend(setting("limits.upstream_total_ms", "120000"));
    let upstream = Gated::start().await?;
    let upstream_url = Some(upstream.url.clone());
    let world = World::with(Setup { owner_settings, upstream_url, ..Setup::default() }).await?;
    // The channel is there before the clocks of the calls below run.
    expect_served(&world.get("/ok").await?)?;
    let calls = [large(&world, "first", QUARTER), large(&world, "second", QUARTER)];
    let (first, second, refused) = tokio::join!(world.call(&calls[0]), world.call(&calls[1]), async {
        eventually("the owner holds both", async || {
            Ok(bodies(&world.owner).await?[0] >= 2 * QUARTER as u64 - 2)
        })
        .await?;
        let before = upstream.hits();
        let mut refused = Vec::new();
        for n in 0..3 {
            refused.push(world.call(&large(&world, &format!("refused {n}"), 100_000)).await?);
        }
        ensure!(upstream.hits() == before, "the upstream was asked for what its payer cannot hold");
        upstream.open.send_replace(true);
        anyhow::Ok(refused)
    });
    for refused in refused? {
        expect_free("without room", &refused, 429, "owner-busy")?;
    }
    for answer in [first?, second?] {
        expect_whole(&answer, QUARTER)?;
    }
    expect_whole(&at_last(&world, &large(&world, "refused 0", 100_000)).await?, 100_000)?;
    expect_given_back(&world).await?;
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(1 + 2 + 1), "each that was served, once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn free_documents_count_as_bodies_and_are_refused_where_they_find_no_room() -> Result<()> {
    let consumer_settings = setting("limits.bodies_bytes_max", &BODIES_MAX.to_string());
    let world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    let summary = "what it does and what it is good for ".repeat(6);
    let operation = |number| OperationFile {
        summary: summary.clone(),
        ..OperationFile::named(Method::Get, format!("/of/{number}/{{first}}/{{second}}"))
    };
    let operations = (0..2_000).map(operation).collect();
    let file = ServiceFile { operations, ..service_file(&world.upstream.url(), Charge::Success) };
    let large = world.owner.control().tell(endpoint::AddApi, &file).await?;
    let client = world.consumer.https_client()?;
    let gateway = world.consumer.status().await?.gateway_url;
    let asked = async |id: String| {
        let url = format!("{gateway}/services/{id}/openapi.json");
        let answer = client.get(url).bearer_auth(&world.secret).send().await?;
        anyhow::Ok((answer.status().as_u16(), answer.text().await?))
    };
    let (status, small) = asked(world.api.id.to_string()).await?;
    ensure!(status == 200, "{status} {small}");
    let [_, most, _] = bodies(&world.consumer).await?;
    ensure!(most >= small.len() as u64, "{most} counted of {} bytes", small.len());
    let (status, told) = asked(large.id.to_string()).await?;
    ensure!(status == 503 && told.contains("room"), "{status} {}", told.get(..300).unwrap_or(&told));
    let (status, _) = asked(world.api.id.to_string()).await?;
    ensure!(status == 200, "{status}");
    expect_given_back(&world).await
}

/// Callers that go away at any moment: before they sent all, while they wait, while they read.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_callers_break_off_gives_its_memory_back() -> Result<()> {
    let settings = setting("limits.bodies_bytes_max", &BODIES_MAX.to_string());
    let setup = Setup { owner_settings: settings.clone(), consumer_settings: settings, ..Setup::default() };
    let world = World::with(setup).await?;
    expect_served(&world.get("/ok").await?)?;
    let mut random = Random::new(seed());
    let callers = Callers::new(&world).await?;
    for _ in 0..4 {
        let plans: Vec<(u64, u64, u64)> = (0..24)
            .map(|_| (random.u64_below(4), random.u64_below(400), random.u64_below(3_000_000) + 1))
            .collect();
        join_all(plans.into_iter().map(|plan| break_off(&callers, plan))).await;
    }
    // Some may be undecided for a while; recovery asks for them.
    world.wait_until_decided().await?;
    expect_given_back(&world).await?;
    expect_served(&world.get("/ok").await?)?;
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

async fn break_off(callers: &Callers<'_>, (what, millis, bytes): (u64, u64, u64)) {
    let world = callers.world;
    let text = "x".repeat(usize::try_from(bytes).unwrap_or_default());
    let patience = Duration::from_millis(millis);
    let call = match what {
        0 => world.body("GET", &format!("/large/{bytes}")),
        1 => world.body("GET", &format!("/slow/{millis}")),
        _ => with(world.body("POST", "/echo"), "body", json!(text)),
    };
    let text = Bytes::from(call.to_string());
    let body = if what == 3 {
        // Its second half never comes.
        let half = text.slice(..text.len() / 2);
        reqwest::Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>(half)]).chain(stream::pending()))
    } else {
        text.into()
    };
    let request = callers.client.post(&callers.url).bearer_auth(&world.secret).body(body);
    let asking = async {
        let mut answer = request.send().await.ok()?;
        let _first = answer.chunk().await;
        tokio::time::sleep(patience).await;
        Some(())
    };
    // Dropped at a moment of its own.
    let _ = tokio::time::timeout(patience, asking).await;
}
