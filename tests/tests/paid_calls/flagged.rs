//! Services that sell garbage or fail: flagged by what this node bought of them itself, shown, told, and stopped where
//! a rule says so.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, extract::State, response::IntoResponse, routing::get};
use farthing_control::endpoint;
use farthing_control::types::{
    Alert, AlertKind, Api, CatalogService, FlagCause, FlagRule, ServiceFile, ServiceFlag, SourceFile,
    SourceKind,
};
use farthing_tests::{
    calls::{cost, expect_free, expect_served, setting},
    command::farthing,
    upstream::serve,
    wait::eventually,
    world::{Answer, PRICE, Setup, World},
};
use parking_lot::Mutex;
use reqwest::StatusCode;

const PLANETS: &str = r#"
openapi: 3.1.0
info: { title: Planets, version: "1" }
paths:
  /planet:
    get:
      responses: { "200": { description: One, content: { application/json: { schema: {
        type: object, required: [name, radius], properties: { name: { type: string }, radius: { type: number } } } } } } }
"#;

/// What an owner's server answers, and how often it did.
#[derive(Clone)]
struct Moody(Arc<Mutex<(StatusCode, &'static str, u64)>>);

const WELL: (StatusCode, &str) = (StatusCode::OK, r#"{"name":"Mars","radius":3389.5}"#);
const GARBAGE: [(StatusCode, &str); 4] = [
    (StatusCode::OK, "thank you for your money"),
    (StatusCode::OK, "[]"),
    (StatusCode::OK, "{}"),
    (StatusCode::OK, ""),
];
const AWAY: (StatusCode, &str) = (StatusCode::SERVICE_UNAVAILABLE, "away");

impl Moody {
    /// A server that describes itself and is well.
    async fn sold_in(world: &World) -> Result<(Self, Api)> {
        let moody = Self(Arc::new(Mutex::new((WELL.0, WELL.1, 0))));
        let router = Router::new().route("/planet", get(answer)).with_state(moody.clone());
        let source = SourceFile::given(SourceKind::Openapi, PLANETS.to_owned(), "the test's own".to_owned());
        let upstream = serve(router).await?;
        let file = ServiceFile { upstream, source: Some(source), ..ServiceFile::priced(PRICE) };
        Ok((moody, world.publish(&file).await?))
    }

    fn answers(&self, (status, body): (StatusCode, &'static str)) {
        let mut state = self.0.lock();
        (state.0, state.1) = (status, body);
    }

    fn hits(&self) -> u64 {
        self.0.lock().2
    }
}

async fn answer(State(moody): State<Moody>) -> impl IntoResponse {
    let mut state = moody.0.lock();
    state.2 += 1;
    (state.0, [("content-type", "application/json")], state.1)
}

async fn call(world: &World, api: &Api) -> Result<Answer> {
    world.call_of(api, "GET", "/planet").await
}

/// What the consumer's catalog says against the service.
async fn flag(world: &World, api: &Api) -> Result<Option<ServiceFlag>> {
    let at = endpoint::CatalogService.of(api.id);
    let shown: CatalogService = world.consumer.control().ask(at).await?;
    Ok(shown.hit.flag)
}

async fn alerts(world: &World) -> Result<Vec<Alert>> {
    let mut alerts = world.consumer.control().ask(endpoint::Alerts).await?;
    alerts.retain(|alert| alert.kind == AlertKind::ServiceFlagged);
    Ok(alerts)
}

/// A call is judged after its answer was handed on.
pub async fn counted(world: &World, api: &Api, failed: u32, broke: u32, of: u32) -> Result<ServiceFlag> {
    eventually("the calls are counted", async || {
        Ok(flag(world, api)
            .await?
            .is_some_and(|flag| (flag.failed, flag.broke, flag.of) == (failed, broke, of)))
    })
    .await?;
    flag(world, api).await?.context("it was flagged")
}

/// Makes a call that outlasts its caller's time. One that a busy machine has no time left to send has no part in anything, and is
/// made again.
pub async fn outlast(world: &World, api: &Api, path: &str) -> Result<()> {
    for _ in 0..5 {
        let answer = world.call_of(api, "POST", path).await?;
        let problem = answer.problem();
        if problem == "undecided" {
            return Ok(());
        }
        let is_unsent = ["channel-not-funded", "owner-unreachable"].contains(&problem.as_str());
        ensure!(is_unsent && answer.charged() == false, "{answer:?}");
    }
    bail!("no call is sent within its caller's time")
}

/// As after a power cut, but for what the node is storing: it counts a call first.
async fn restart(world: &mut World, environment: &[(&str, &str)]) -> Result<()> {
    world.wait_until_decided().await?;
    world.consumer.kill().await?;
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    world.consumer.restart_until_ready(environment.collect()).await
}

#[tokio::test]
async fn an_owner_that_sells_garbage_is_flagged_and_stopped_over_restarts_until_it_has_mended() -> Result<()>
{
    let consumer_settings = setting("spending.flagged", "stop");
    let mut world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    let (moody, api) = Moody::sold_in(&world).await?;
    let id = api.id.to_string();
    for _ in 0..2 {
        expect_served(&call(&world, &api).await?)?;
    }
    assert_eq!(flag(&world, &api).await?, None);

    // It is paid: the owner's word is that the service answered. Then it is flagged, with figures and words.
    for garbage in GARBAGE {
        moody.answers(garbage);
        let sold = call(&world, &api).await?;
        expect_served(&sold)?;
        assert_eq!((sold.header("x-farthing-charged"), &*sold.body), ("0.002", garbage.1.as_bytes()));
    }
    let flagged = counted(&world, &api, 0, 4, 6).await?;
    assert_eq!((flagged.cause, flagged.rule), (FlagCause::Breaks, FlagRule::Stop));
    let figures = "of its last 6 paid calls 4 broke its own description";
    ensure!(flagged.words.contains(figures), "{}", flagged.words);
    for command in
        [&["catalog", "show", &id][..], &["catalog", "search", "Planets"], &["spending", "flagged"]]
    {
        // Search has a service as soon as its index does.
        eventually("the command tells it", async || {
            Ok(farthing(&world.consumer, command).await?.ends_with(0)?.out.contains(figures))
        })
        .await
        .with_context(|| format!("{command:?}"))?;
    }
    let told = alerts(&world).await?;
    ensure!(told.len() == 1 && told[0].subject == id && told[0].cause.contains(figures), "{told:?}");

    // A stopped service gets no call and no money, also after a power cut.
    let refused = async |world: &World| -> Result<()> {
        let answer = call(world, &api).await?;
        expect_free("stopped", &answer, 402, "service-flagged")?;
        let detail = answer.json()["detail"].to_string();
        ensure!(detail.contains(figures) && detail.contains(&id), "{detail}");
        ensure!(answer.json()["next"].to_string().contains("spending flagged"), "no way out");
        ensure!(!answer.header("retry-after").is_empty(), "it does not say when it is tried again");
        Ok(())
    };
    moody.answers(WELL);
    refused(&world).await?;
    restart(&mut world, &[]).await?;
    refused(&world).await.context("after a restart")?;
    assert_eq!((moody.hits(), alerts(&world).await?.len()), (6, 1));
    expect_served(&world.get("/ok").await?).context("another service of the same owner")?;

    // The user's word goes before the setting, for this service.
    let ruled = async |world: &World, rule: &str| -> Result<()> {
        farthing(&world.consumer, &["spending", "flagged", &id, "--rule", rule]).await?.ends_with(0)?;
        Ok(())
    };
    ruled(&world, "warn").await?;
    moody.answers(GARBAGE[0]);
    expect_served(&call(&world, &api).await?)?;
    let flagged = counted(&world, &api, 0, 5, 7).await?;
    assert_eq!((flagged.rule, alerts(&world).await?.len()), (FlagRule::Warn, 0));
    ruled(&world, "setting").await?;
    expect_free("stopped again", &call(&world, &api).await?, 402, "service-flagged")?;

    // One call tries it after a time. Good answers in a row lift the flag.
    restart(&mut world, &[("FARTHING_SPENDING__FLAGGED_TRIAL_SECS", "1")]).await?;
    moody.answers(WELL);
    let mut served = 0;
    eventually("the flag is lifted", async || {
        let answer = call(&world, &api).await?;
        if answer.status == StatusCode::PAYMENT_REQUIRED {
            expect_free("before a trial", &answer, 402, "service-flagged")?;
        } else {
            expect_served(&answer)?;
            served += 1;
        }
        Ok(flag(&world, &api).await?.is_none())
    })
    .await?;
    ensure!((8..=9).contains(&served), "{served} good answers lifted it");
    assert_eq!(alerts(&world).await?, []);
    let listed = world.consumer.control().ask(endpoint::FlaggedServices).await?;
    assert_eq!(listed.services, []);
    let charged = moody.hits() + world.upstream.hits();
    world.settle_for(cost(charged)).await
}

#[tokio::test]
async fn a_service_that_fails_is_flagged_and_bought_all_the_same_unless_a_rule_says_otherwise() -> Result<()>
{
    let world = World::start().await?;
    let (moody, api) = Moody::sold_in(&world).await?;
    expect_served(&call(&world, &api).await?)?;
    moody.answers(AWAY);
    for _ in 0..6 {
        expect_free("away", &call(&world, &api).await?, 502, "upstream-failed")?;
    }
    let flagged = counted(&world, &api, 6, 0, 7).await?;
    assert_eq!((flagged.cause, flagged.rule), (FlagCause::Fails, FlagRule::Warn));
    ensure!(
        flagged.words.contains("6 failed; the last one: the service answered with status 503"),
        "{flagged:?}"
    );
    assert_eq!(alerts(&world).await?.len(), 1);

    farthing(&world.consumer, &["spending", "flagged", &api.id.to_string(), "--rule", "stop"])
        .await?
        .ends_with(0)?;
    expect_free("stopped", &call(&world, &api).await?, 402, "service-flagged")?;
    farthing(&world.consumer, &["spending", "flagged", &api.id.to_string(), "--rule", "setting"])
        .await?
        .ends_with(0)?;
    moody.answers(WELL);
    for _ in 0..8 {
        expect_served(&call(&world, &api).await?)?;
    }
    eventually("the flag is lifted", async || Ok(flag(&world, &api).await?.is_none())).await?;
    assert_eq!((moody.hits(), alerts(&world).await?.len()), (15, 0));
    world.settle_for(cost(9)).await
}

#[tokio::test]
async fn a_call_that_outlasts_its_callers_time_counts_by_its_end() -> Result<()> {
    let consumer_settings = setting("limits.call_total_ms", "3000");
    let owner_settings = setting("limits.upstream_first_byte_ms", "15000");
    let world = World::with(Setup { consumer_settings, owner_settings, ..Setup::default() }).await?;
    eventually("the first call is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    let six_outlast = async |path: &str| -> Result<()> {
        futures::future::try_join_all((0..6).map(|_| outlast(&world, &world.api, path))).await?;
        world.wait_until_decided().await
    };
    six_outlast("/slow/5000").await?;
    // Longer than its owner waits for it.
    six_outlast("/slow/30000").await?;
    let flagged = counted(&world, &world.api, 6, 0, 7).await?;
    ensure!(flagged.words.contains("after the call's time"), "{flagged:?}");
    // What answered late counts for nothing, also once everything of before is counted.
    eventually("the next call is served", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    counted(&world, &world.api, 6, 0, 8).await?;
    world.settle_for(cost(8)).await
}

#[tokio::test]
async fn neither_a_lost_connection_nor_what_a_caller_gets_wrong_flags_a_service() -> Result<()> {
    let mut world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    for _ in 0..8 {
        let declined = world.get("/status/404").await?;
        ensure!(declined.status == StatusCode::NOT_FOUND, "{declined:?}");
        expect_free("unknown", &world.get("/nowhere").await?, 404, "unknown-path")?;
    }
    // What is declined is free, and the description says nothing of it.
    let (moody, api) = Moody::sold_in(&world).await?;
    expect_served(&call(&world, &api).await?)?;
    moody.answers((StatusCode::NOT_FOUND, "none"));
    for _ in 0..8 {
        let declined = call(&world, &api).await?;
        ensure!(declined.status == StatusCode::NOT_FOUND, "{declined:?}");
    }
    world.owner.kill().await?;
    world.wait_until_owner_is_lost().await?;
    for _ in 0..8 {
        let lost = world.get("/ok").await?;
        ensure!(lost.status == StatusCode::BAD_GATEWAY, "{lost:?}");
    }
    let listed = world.consumer.control().ask(endpoint::FlaggedServices).await?;
    assert_eq!(listed.services, []);
    Ok(())
}
