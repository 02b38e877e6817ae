//! Descriptions that memory gave up, and that calls hold: they take a bounded memory.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Result, ensure};
use axum::{Router, extract::State, response::IntoResponse, routing::any};
use farthing_control::types::{Api, ServiceFile, SourceFile, SourceKind};
use farthing_protocol::Usdc;
use farthing_tests::{
    calls::{cost, expect_refused, expect_served, setting},
    nodes::show,
    wait::eventually,
    world::{FUNDS, Setup, World},
};
use futures::future::try_join;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore};

const GOOD: &str = r#"{"ok":true}"#;
/// Choices of 20 values: they count as 970,000 of the million values that a description may have, and as 223 MB.
const CHOICES: u32 = 9_700;

/// An upstream that answers each request when it is let.
#[derive(Clone)]
struct Sluice {
    arrived: Arc<AtomicU64>,
    /// One for each answer; who came first is answered first.
    answers: Arc<Semaphore>,
}

impl Sluice {
    async fn start() -> Result<(Self, String)> {
        let sluice = Self { arrived: Arc::default(), answers: Arc::new(Semaphore::new(0)) };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = Router::new().route("/tides", any(answer)).with_state(sluice.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
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
    ([("content-type", "application/json")], GOOD)
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
    let source = SourceFile {
        kind: SourceKind::Openapi,
        url: None,
        text: Some(text.to_string()),
        file: "the test's own".to_owned(),
    };
    let file = ServiceFile {
        upstream: upstream.to_owned(),
        source: Some(source),
        writes: true,
        ..ServiceFile::priced(price)
    };
    world.publish(&file).await
}

/// A free service whose description has no room beside two others of its kind.
async fn sell_large(world: &World, upstream: &str) -> Result<Api> {
    let mut choice = vec![json!([]); 20];
    let choices: Vec<Value> = (0..CHOICES)
        .map(|number| {
            choice[0] = number.into();
            Value::from(choice.clone())
        })
        .collect();
    let parameters = json!([{ "name": "q", "in": "query", "schema": { "enum": choices } }]);
    sell(world, upstream, Usdc::ZERO, ("get", parameters)).await
}

#[tokio::test]
async fn calls_that_hold_large_descriptions_have_more_of_them_wait_and_no_ordinary_service() -> Result<()> {
    let owner_settings = setting("limits.upstream_first_byte_ms", "25000");
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    let (sluice, url) = Sluice::start().await?;
    let mut large = Vec::new();
    for _ in 0..3 {
        large.push(sell_large(&world, &url).await?);
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
    assert_eq!(world.settle_and_check(FUNDS).await?, cost(2));
    Ok(())
}
