//! Alerts of a whole node, and the webhook that is told of them.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use axum::{Router, extract::State, routing::post};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind},
};
use farthing_tests::{
    calls::{cost, expect_served},
    command::farthing,
    upstream::serve,
    wait::eventually,
    world::World,
};
use parking_lot::Mutex;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;
use tokio::process::Command;

use crate::names::Names;

/// What a webhook was told; while it refuses, it keeps nothing.
#[derive(Clone, Default)]
struct Heard {
    told: Arc<Mutex<Vec<Value>>>,
    /// The signature of the last message, and its body.
    last: Arc<Mutex<(Option<String>, String)>>,
    refused: Arc<Mutex<usize>>,
    refuses: Arc<Mutex<bool>>,
}

impl Heard {
    async fn listen(&self) -> Result<String> {
        let router = Router::new().route("/hook/{token}", post(hear)).with_state(self.clone());
        Ok(serve(router).await? + "/hook/very-secret-token")
    }

    /// Whether a message raised or cleared an alert of this kind.
    fn has(&self, list: &str, kind: &str) -> bool {
        let told = self.told.lock();
        told.iter()
            .any(|told| told[list].as_array().is_some_and(|list| list.iter().any(|one| one["kind"] == kind)))
    }
}

async fn hear(State(heard): State<Heard>, headers: HeaderMap, body: String) -> StatusCode {
    if *heard.refuses.lock() {
        *heard.refused.lock() += 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    heard.told.lock().push(serde_json::from_str(&body).unwrap_or_default());
    let signature = headers.get("x-farthing-signature").and_then(|value| value.to_str().ok());
    *heard.last.lock() = (signature.map(str::to_owned), body);
    StatusCode::OK
}

#[tokio::test]
async fn an_alert_is_listed_with_its_cause_and_the_webhook_is_told_when_it_comes_and_goes() -> Result<()> {
    let world = World::start().await?;
    let consumer = &world.consumer;
    // On a busy machine an alert about the chain or the network may come and go beside those that are made here. One about the disk
    // that the tests are on stays.
    let listed = async |kinds: &[&str]| {
        let mut seen = Vec::new();
        let all = eventually("these alerts alone are listed", async || {
            seen = consumer.control().ask(endpoint::Alerts).await?;
            seen.retain(|alert| alert.kind != AlertKind::DiskLow);
            let explained = |alert: &Alert| !alert.cause.is_empty() && !alert.action.is_empty();
            ensure!(seen.iter().all(explained), "{seen:?}");
            Ok(seen.iter().map(|alert| alert.kind.name()).eq(kinds.iter().copied()))
        })
        .await;
        all.with_context(|| format!("expected {kinds:?}, and these are listed: {seen:?}"))
    };
    expect_served(&world.get("/ok").await?)?;
    listed(&[]).await?;

    let heard = Heard::default();
    let webhook = heard.listen().await?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), format!("{webhook}\n"))?;
    let given = format!("@{}", file.path().display());
    let set = farthing(consumer, &["alert", "set", "--webhook", &given, "--usdc-below", "4"]).await?;
    ensure!(!set.ends_with(0)?.out.contains("very-secret-token"), "{set:?}");
    let tested = farthing(consumer, &["alert", "test"]).await?;
    tested.ends_with(0)?;
    ensure!(heard.told.lock().iter().any(|told| told["test"] == true));

    // The first message is not taken, and comes again with what holds by then.
    *heard.refuses.lock() = true;
    farthing(consumer, &["spending", "stop"]).await?.ends_with(0)?;
    listed(&["spending-stopped"]).await?;
    eventually("the webhook refuses", async || Ok(*heard.refused.lock() > 0)).await?;
    farthing(consumer, &["alert", "set", "--usdc-below", "1000"]).await?.ends_with(0)?;
    listed(&["spending-stopped", "usdc-low"]).await?;
    *heard.refuses.lock() = false;
    eventually("both are told", async || {
        Ok(heard.has("raised", "spending-stopped") && heard.has("raised", "usdc-low"))
    })
    .await?;
    farthing(consumer, &["spending", "resume"]).await?.ends_with(0)?;
    farthing(consumer, &["alert", "set", "--usdc-below", "0"]).await?.ends_with(0)?;
    eventually("both are gone", async || {
        Ok(heard.has("cleared", "spending-stopped") && heard.has("cleared", "usdc-low"))
    })
    .await?;
    eventually("the last message says that all is well", async || {
        let last = heard.told.lock().last().cloned().context("nothing was told")?;
        ensure!(last["wallet"] == world.consumer_wallet.to_string(), "{last}");
        let of_the_disk = AlertKind::DiskLow.name();
        let listed = last["alerts"].as_array().with_context(|| last.to_string())?;
        Ok(listed.iter().all(|alert| alert["kind"] == of_the_disk))
    })
    .await?;
    ensure!(!consumer.log().contains("very-secret-token"), "the log shows the webhook's address");

    for wrong in ["http://169.254.169.254/x", "ftp://example.org/x", "https://a:b@example.org/"] {
        let refused = farthing(consumer, &["alert", "set", "--webhook", wrong]).await?;
        ensure!(refused.ends_with(2)?.err.contains("`webhook`"), "{refused:?}");
    }
    farthing(consumer, &["alert", "set", "--no-webhook"]).await?.ends_with(0)?;
    farthing(consumer, &["alert", "test"]).await?.ends_with(1)?;
    farthing(consumer, &["alert", "set"]).await?.ends_with(2)?;
    world.settle_for(cost(1)).await
}

#[tokio::test]
async fn a_webhook_whose_name_leads_closer_than_when_it_was_set_is_not_told_over_restarts_either()
-> Result<()> {
    let names = Names::new().await?;
    let mut world = World::start().await?;
    world.consumer.restart(names.environment()).await?;
    let heard = Heard::default();
    let port = heard
        .listen()
        .await?
        .split('/')
        .nth(2)
        .and_then(|host| host.split(':').nth(1))
        .context("no port")?
        .to_owned();
    let hook = format!("http://hook.test:{port}/hook/very-secret-token");
    let told = || heard.told.lock().len();
    for (whence, told_first) in [("127.0.0.1", true), ("fd12:3456:789a::1", false)] {
        names.lead(&[("hook.test", whence)])?;
        farthing(&world.consumer, &["alert", "set", "--webhook", &hook]).await?.ends_with(0)?;
        // Another level leaves the webhook what it is.
        names.lead(&[("hook.test", "127.0.0.1")])?;
        farthing(&world.consumer, &["alert", "set", "--usdc-below", "0"]).await?.ends_with(0)?;
        for round in ["before", "after"] {
            let before = told();
            let tested = farthing(&world.consumer, &["alert", "test"]).await?;
            ensure!((told() > before) == told_first, "{whence}, {round} a restart: {tested:?}");
            let is_refused = tested.code != 0 && tested.err.contains("leads to another address");
            ensure!(told_first != is_refused, "{whence}, {round} a restart: {tested:?}");
            world.consumer.restart(names.environment()).await?;
        }
    }
    names.lead(&[("hook.test", "169.254.169.254")])?;
    let refused = farthing(&world.consumer, &["alert", "set", "--webhook", &hook]).await?;
    ensure!(refused.ends_with(2)?.err.contains("must not lead"), "{refused:?}");
    Ok(())
}

/// Asks the check that the documents show.
async fn documented_check(secret: &str, signature: &str, body: &str) -> Result<String> {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/command-line.md");
    let text = std::fs::read_to_string(documents)?;
    let shown = text.split("```python\n").find(|part| part.contains("def is_from_my_node"));
    let shown = shown.and_then(|part| part.split("```").next()).context("no check is shown")?;
    let program =
        format!("{shown}\nimport sys\nprint(is_from_my_node(*sys.argv[1:3], sys.argv[3].encode()))");
    let output = Command::new("python3").args(["-c", &program, secret, signature, body]).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[tokio::test]
async fn a_webhook_that_checks_signatures_as_documented_takes_this_nodes_messages_and_no_others() -> Result<()>
{
    let mut world = World::start().await?;
    let heard = Heard::default();
    let webhook = heard.listen().await?;
    farthing(&world.consumer, &["alert", "set", "--webhook", &webhook]).await?.ends_with(0)?;
    let told = async |world: &World| -> Result<(Option<String>, String)> {
        farthing(&world.consumer, &["alert", "test"]).await?.ends_with(0)?;
        Ok(heard.last.lock().clone())
    };
    ensure!(told(&world).await?.0.is_none(), "there is no secret yet");
    let made = farthing(&world.consumer, &["alert", "secret"]).await?;
    let secret = made.ends_with(0)?.out.trim().to_owned();
    for round in ["before", "after"] {
        let (signature, body) = told(&world).await?;
        let signature = signature.context("it is not signed")?;
        let older = signature.replacen("t=1", "t=0", 1);
        let longer = format!("{body} ");
        for (secret, signature, body, taken) in [
            (secret.as_str(), &signature, &body, "True"),
            ("farthing_wh_another", &signature, &body, "False"),
            (secret.as_str(), &older, &body, "False"),
            (secret.as_str(), &signature, &longer, "False"),
        ] {
            let said = documented_check(secret, signature, body).await?;
            ensure!(said == taken, "{round} a restart: {signature} is taken: {said}");
        }
        world.consumer.restart(Vec::new()).await?;
    }
    let levels = farthing(&world.consumer, &["alert", "levels", "--json"]).await?;
    ensure!(levels.ends_with(0)?.json()?["signed"] == true && !levels.out.contains(&secret), "{levels:?}");
    ensure!(!world.consumer.log().contains(&secret), "the log shows the secret");

    // There is nobody to ask.
    let asked = farthing(&world.consumer, &["alert", "secret"]).await?;
    ensure!(asked.ends_with(2)?.err.contains("--yes"), "{asked:?}");
    let renewed = farthing(&world.consumer, &["alert", "secret", "--yes"]).await?;
    let renewed = renewed.ends_with(0)?.out.trim().to_owned();
    let (signature, body) = told(&world).await?;
    let signature = signature.context("it is not signed")?;
    for (secret, taken) in [(&renewed, "True"), (&secret, "False")] {
        ensure!(documented_check(secret, &signature, &body).await? == taken, "{taken}: {signature}");
    }
    Ok(())
}
