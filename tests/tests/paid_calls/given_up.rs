//! Descriptions that memory gave up: what was bought with them is judged all the same, and calls that hold them take a bounded
//! memory.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Result, ensure};
use axum::{Router, extract::State, response::IntoResponse, routing::any};
use farthing_control::{
    endpoint,
    types::{Api, EditRequest, NewSecret, SecretLimits, ServiceFile, SourceFile, SourceKind, Text},
};
use farthing_tests::{
    calls::{cost, expect_free, expect_refused, expect_served, setting},
    nodes::{self, show},
    upstream::serve,
    wait::eventually,
    world::{Answer, PRICE, Setup, World},
};
use farthing_values::Usdc;
use futures::future::try_join;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    flagged::{counted, outlast},
    spending::send_with,
};

const GOOD: &str = r#"{"ok":true}"#;
const GARBAGE: &str = r#"{"nope":1}"#;
/// Choices of 20 values: they count as 970,000 of the million values that a description may have, and as 223 MB.
const CHOICES: u32 = 9_700;

/// An upstream that answers each request when it is let.
#[derive(Clone)]
struct Sluice {
    arrived: Arc<AtomicU64>,
    /// One for each answer; who came first is answered first.
    answers: Arc<Semaphore>,
    body: Arc<Mutex<&'static str>>,
}

impl Sluice {
    async fn start() -> Result<(Self, String)> {
        let sluice = Self {
            arrived: Arc::default(),
            answers: Arc::new(Semaphore::new(0)),
            body: Arc::new(Mutex::new(GARBAGE)),
        };
        let router = Router::new().route("/tides", any(answer)).with_state(sluice.clone());
        Ok((sluice, serve(router).await?))
    }

    /// One that lets every request through, to a good answer.
    async fn that_answers() -> Result<(Self, String)> {
        let (sluice, url) = Self::start().await?;
        *sluice.body.lock() = GOOD;
        sluice.let_answer(1_000);
        Ok((sluice, url))
    }

    fn let_answer(&self, requests: usize) {
        self.answers.add_permits(requests);
    }

    async fn wait_for(&self, requests: u64) -> Result<()> {
        eventually("the upstream has them", async || Ok(self.arrived.load(Ordering::SeqCst) == requests))
            .await
    }
}

async fn answer(State(sluice): State<Sluice>) -> impl IntoResponse {
    sluice.arrived.fetch_add(1, Ordering::SeqCst);
    if let Ok(permit) = sluice.answers.acquire().await {
        permit.forget();
    }
    ([("content-type", "application/json")], *sluice.body.lock())
}

/// An API whose one operation has this method and these parameters, and promises `ok`.
async fn sell(
    world: &World,
    upstream: &str,
    price: Usdc,
    (method, parameters): (&str, Value),
) -> Result<Api> {
    let promised =
        json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
    let operation = json!({
        "parameters": parameters,
        "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": promised } } } },
    });
    let text = json!({
        "openapi": "3.0.0",
        "info": { "title": "Tides", "version": "1" },
        "paths": { "/tides": { (method): operation } },
    });
    let source = SourceFile::given(SourceKind::Openapi, text.to_string(), "the test's own".to_owned());
    let file = ServiceFile {
        upstream: upstream.to_owned(),
        source: Some(source),
        writes: true,
        ..ServiceFile::priced(price)
    };
    world.publish(&file).await
}

/// A service whose description has no room beside two others of its kind.
async fn sell_large(world: &World, upstream: &str, price: Usdc) -> Result<Api> {
    let mut choice = vec![json!([]); 20];
    let choices: Vec<Value> = (0..CHOICES)
        .map(|number| {
            choice[0] = number.into();
            Value::from(choice.clone())
        })
        .collect();
    let parameters = json!([{ "name": "q", "in": "query", "schema": { "enum": choices } }]);
    sell(world, upstream, price, ("get", parameters)).await
}

/// An owner that waits for its upstream for longer than these tests do.
fn patient_owner() -> Setup {
    let limits = ["limits.upstream_first_byte_ms", "limits.upstream_total_ms"];
    Setup { owner_settings: limits.map(|limit| setting(limit, "120000")).concat(), ..Setup::default() }
}

/// A world whose owner waits longer for its upstream than its consumer for an owner, and a first call that opened the channel.
async fn impatient(rule: &str) -> Result<World> {
    let consumer_settings = [
        setting("limits.call_total_ms", "3000"),
        setting("spending.flagged", rule),
        setting("spending.flagged_trial_secs", "1"),
    ];
    let consumer_settings = consumer_settings.concat();
    let world = World::with(Setup { consumer_settings, ..patient_owner() }).await?;
    eventually("the first call is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    Ok(world)
}

async fn post(world: &World, api: &Api) -> Result<Answer> {
    world.call_of(api, "POST", "/tides").await
}

/// The consumer's catalog has the new version, and the next call takes it.
async fn list_anew(world: &World, api: &Api) -> Result<()> {
    let version = async || show(&world.consumer, api.id.0).await.map_or(0, |shown| shown.hit.version);
    let before = version().await;
    let edit = EditRequest { summary: Some(format!("After version {before}")), ..EditRequest::default() };
    world.owner.control().tell(endpoint::EditApi.of(api.id), &edit).await?;
    eventually("the new version is there", async || Ok(version().await > before)).await
}

#[tokio::test]
async fn late_charges_flag_and_stop_a_service_whose_owner_lists_a_new_version_before_each_call() -> Result<()>
{
    let world = impatient("stop").await?;
    let (sluice, url) = Sluice::start().await?;
    let api = sell(&world, &url, PRICE, ("post", json!([]))).await?;
    for call in 0..5 {
        list_anew(&world, &api).await?;
        outlast(&world, &api, "/tides").await?;
        // The one before, whose version is in use no more.
        sluice.let_answer(usize::from(call > 0));
    }
    sluice.let_answer(1);
    let flagged = counted(&world, &api, 0, 5, 5).await?;
    ensure!(flagged.words.contains("broke its own description"), "{flagged:?}");

    // A trial counts likewise, and nothing else is bought meanwhile. A call that is refused lets go of the version as well.
    for (body, broke, of) in [(GARBAGE, 6, 6), (GOOD, 6, 7)] {
        *sluice.body.lock() = body;
        eventually("a trial is made", async || Ok(post(&world, &api).await?.problem() == "undecided"))
            .await?;
        list_anew(&world, &api).await?;
        expect_free("beside a trial", &post(&world, &api).await?, 402, "service-flagged")?;
        sluice.let_answer(1);
        counted(&world, &api, 0, broke, of).await?;
    }
    world.wait_until_decided().await?;
    world.settle_for(cost(1 + 7)).await
}

#[tokio::test]
async fn late_charges_flag_a_service_that_large_ones_displaced_from_memory() -> Result<()> {
    let world = impatient("warn").await?;
    let (sluice, url) = Sluice::start().await?;
    let (_open, open_url) = Sluice::that_answers().await?;
    let api = sell(&world, &url, PRICE, ("post", json!([]))).await?;
    let large = sell_large(&world, &open_url, PRICE).await?;
    for _ in 0..4 {
        outlast(&world, &api, "/tides").await?;
        // Reading it takes longer than its first call has.
        eventually("the large one is bought", async || {
            Ok(world.call_of(&large, "GET", "/tides").await?.status.is_success())
        })
        .await?;
        sluice.let_answer(1);
        world.wait_until_decided().await?;
    }
    counted(&world, &api, 0, 4, 4).await?;
    world.settle_for(cost(1 + 4 + 4)).await
}

#[tokio::test]
async fn calls_that_hold_large_descriptions_have_more_of_them_wait_and_no_ordinary_service() -> Result<()> {
    // Reading a large description takes seconds, and both are read before any is answered.
    let consumer_settings = setting("limits.call_total_ms", "120000");
    let world = World::with(Setup { consumer_settings, ..patient_owner() }).await?;
    expect_served(&world.get("/ok").await?)?;
    let (sluice, url) = Sluice::start().await?;
    let mut large = Vec::new();
    for _ in 0..3 {
        large.push(sell_large(&world, &url, Usdc::ZERO).await?);
    }
    let get = |number: usize| world.call_of(&large[number], "GET", "/tides");
    eventually("the consumer knows them", async || {
        for api in &large {
            if show(&world.consumer, api.id.0).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;

    let held = try_join(get(0), get(1));
    let meanwhile = async {
        sluice.wait_for(2).await?;
        let refused = get(2).await?;
        expect_refused("no room for its description", &refused, 503, "no-room")?;
        ensure!(!refused.header("retry-after").is_empty(), "it does not say when to come back");
        let shown = show(&world.consumer, large[2].id.0).await?;
        ensure!(
            shown.details_missing.is_some_and(|why| why.contains("memory")),
            "it is shown, but not its details"
        );
        expect_served(&world.get("/ok").await?)?;
        sluice.wait_for(2).await?;
        sluice.let_answer(3);
        anyhow::Ok(())
    };
    let ((first, second), ()) = try_join(held, meanwhile).await?;
    for answer in [first, second] {
        expect_served(&answer)?;
    }
    expect_served(&get(2).await?)?;
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_secret_without_money_pushes_no_service_out_of_memory_that_was_paid_for() -> Result<()> {
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    let (_open, url) = Sluice::that_answers().await?;
    let limits = SecretLimits { per_day: Some(Text(Usdc::ZERO)), ..SecretLimits::default() };
    let poor = NewSecret { name: "poor".to_owned(), limits };
    let poor = world.consumer.control().tell(endpoint::CreateSecret, &poor).await?.secret;
    let read = async || nodes::counted(&world.consumer, "farthing_descriptions_read_total").await;

    let honest = sell_large(&world, &url, PRICE).await?;
    eventually("the honest one is bought", async || {
        Ok(world.call_of(&honest, "GET", "/tides").await?.status.is_success())
    })
    .await?;
    let before = read().await?;
    for (price, told) in [(PRICE, "over-limit"), (Usdc::ZERO, ""), (PRICE, "over-limit")] {
        let stranger = sell_large(&world, &url, price).await?;
        let call = json!({ "api_id_public": stranger.id.to_string(), "path": "/tides", "method": "GET" });
        eventually("it is read for nothing", async || {
            let answer = send_with(&world, &poor, &call).await?;
            let waits = ["unknown-service", "no-room"].contains(&&*answer.problem());
            ensure!(waits || answer.problem() == told, "{answer:?}");
            Ok(!waits)
        })
        .await?;
    }
    let after = read().await?;
    ensure!(after >= before + 3, "{after} read, after {before}: the strangers' were to be read");
    expect_served(&world.call_of(&honest, "GET", "/tides").await?)?;
    assert_eq!(read().await?, after, "the honest one was read again");
    world.settle_for(cost(1 + 2)).await
}
