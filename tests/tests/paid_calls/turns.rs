//! A secret that can pay for nothing and asks for a lot: who has another one waits for little of that.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Charge, NewSecret, OperationFile, SecretLimits, ServiceFile, Text},
};
use farthing_tests::{
    calls::setting,
    nodes,
    wait::eventually,
    world::{Setup, World, service_file},
};
use farthing_values::{Method, ServiceId, Usdc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Several times the look-ups that a node makes at once.
const FLOOD: usize = 200;
/// Blanks after each request, by which the node tells how many of them it holds.
const BLANKS: usize = 100_000;

async fn world() -> Result<World> {
    let consumer_settings =
        [setting("gateway.connections_max", "600"), setting("gateway.connections_per_ip_max", "600")]
            .concat();
    World::with(Setup { consumer_settings, has_line: true, ..Setup::default() }).await
}

fn get(id: ServiceId, path: &str) -> Value {
    json!({ "api_id_public": id.to_string(), "path": path, "method": "GET" })
}

/// An id that no service has.
fn nobodys(number: usize) -> ServiceId {
    ServiceId::from_bytes((number as u128).to_be_bytes())
}

/// Calls that were all sent at once with a secret without money; they are given up when dropped.
struct Flood {
    ended: Arc<AtomicUsize>,
    _asking: JoinSet<()>,
}

impl Flood {
    /// Begins the calls, and waits until the node has most of them.
    async fn begin(world: &World, calls: impl Iterator<Item = Value>) -> Result<Self> {
        let limits = SecretLimits { per_day: Some(Text(Usdc::ZERO)), ..SecretLimits::default() };
        let poor = NewSecret { name: "poor".to_owned(), limits };
        let poor = world.consumer.control().tell(endpoint::CreateSecret, &poor).await?.secret;
        let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
        let client = world.consumer.https_client()?;
        let (ended, mut asking) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        for call in calls {
            let text = format!("{call}{}", " ".repeat(BLANKS));
            let (request, ended) = (client.post(&url).bearer_auth(&poor).body(text), Arc::clone(&ended));
            asking.spawn(async move {
                if let Ok(answer) = request.send().await {
                    let _ = answer.bytes().await;
                }
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        let flood = Self { ended, _asking: asking };
        eventually("most of the flood waits", async || {
            let held = nodes::counted(&world.consumer, "farthing_bodies_bytes").await?;
            Ok(held >= (FLOOD * 3 / 4 * BLANKS) as u64)
        })
        .await?;
        Ok(flood)
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

/// Makes a call with another secret while the flood waits. Returns its status, and how many of the flood were answered meanwhile.
async fn beside(world: &World, flood: &Flood, call: &Value) -> Result<(u16, usize)> {
    let before = flood.ended();
    let answer = world.call(call).await?;
    let meanwhile = flood.ended() - before;
    println!("{meanwhile} of the flood were answered meanwhile, {before} before");
    Ok((answer.status.as_u16(), meanwhile))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_nobody_has_are_looked_up_for_one_secret_beside_those_for_another() -> Result<()> {
    let world = world().await?;
    world.wait_until_owner_is_met().await?;
    let line = world.line.as_ref().context("no line")?;
    line.hold(true);
    let flood = Flood::begin(&world, (0..FLOOD).map(|number| get(nobodys(number), "/ok"))).await?;
    let (status, meanwhile) = beside(&world, &flood, &get(nobodys(FLOOD), "/ok")).await?;
    // Two rounds of those at once at the most, and three if it waited for all.
    ensure!(status == 404 && meanwhile < FLOOD / 2, "{status}, and it waited for {meanwhile} of the flood");
    drop(flood);
    line.hold(false);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_document_is_written_for_one_secret_before_most_of_those_for_another() -> Result<()> {
    let world = world().await?;
    let operation = |number| OperationFile {
        summary: "what it does and what it is good for ".repeat(6),
        ..OperationFile::named(Method::Get, format!("/of/{number}/{{first}}/{{second}}"))
    };
    let operations = (0..1_000).map(operation).collect();
    let file = ServiceFile { operations, ..service_file(&world.upstream.url(), Charge::Success) };
    let large = get(world.publish(&file).await?.id.0, "/openapi.json");
    let small = get(world.api.id.0, "/openapi.json");
    for document in [&large, &small] {
        eventually("it is written", async || Ok(world.call(document).await?.status.is_success())).await?;
    }
    let flood = Flood::begin(&world, (0..FLOOD).map(|_| large.clone())).await?;
    let (status, meanwhile) = beside(&world, &flood, &small).await?;
    // Those that were written before may still be on their way.
    ensure!(status == 200 && meanwhile < 30, "{status}, and it waited for {meanwhile} of the flood");
    Ok(())
}
