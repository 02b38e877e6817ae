//! What the user allows while the node runs: the stop, the limits, and secrets with limits of their own.

use anyhow::{Context, Result, ensure};
use farthing_os::clock;
use farthing_tests::{
    calls::{cost, expect_free, expect_refused, expect_served, fixed_owner, setting, with},
    command::farthing,
    wait::eventually,
    world::{Answer, Setup, World},
};
use farthing_values::Usdc;
use reqwest::StatusCode;
use serde_json::Value;

#[tokio::test]
async fn stopped_spending_refuses_every_call_over_restarts_while_selling_and_settling_go_on() -> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    // Who only sells is not disturbed by its own stop.
    farthing(&world.owner, &["spending", "stop"]).await?.ends_with(0)?;
    expect_served(&world.get("/ok").await?)?;

    let stopped = farthing(&world.consumer, &["spending", "stop", "--json"]).await?;
    assert_eq!(stopped.ends_with(0)?.json()?["stopped"], "user");
    expect_free("stopped", &world.get("/ok").await?, 503, "spending-stopped")?;
    let by_command = ["call", &world.api.id.to_string(), "GET", "/ok"];
    farthing(&world.consumer, &by_command).await?.ends_with(5)?;
    let open = ["channel", "open", &world.api.id.to_string()];
    farthing(&world.consumer, &open).await?.ends_with(5)?;
    let status = farthing(&world.consumer, &["status"]).await?;
    ensure!(status.ends_with(0)?.out.contains("stopped"), "{status:?}");
    farthing(&world.owner, &["settle"]).await?.ends_with(0)?;

    world.consumer.restart_until_ready(Vec::new()).await?;
    expect_free("stopped before a restart", &world.get("/ok").await?, 503, "spending-stopped")?;
    let resumed = farthing(&world.consumer, &["spending", "resume", "--json"]).await?;
    assert_eq!(resumed.ends_with(0)?.json()?["stopped"], Value::Null);
    expect_served(&world.get("/ok").await?)?;

    assert_eq!(world.upstream.hits(), 2);
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_stop_of_the_configuration_is_not_lifted_by_a_command() -> Result<()> {
    let consumer_settings = setting("spending.enabled", "false");
    let world = World::with(Setup { consumer_settings, ..Setup::default() }).await?;
    expect_free("off", &world.get("/ok").await?, 503, "spending-stopped")?;
    let refused = farthing(&world.consumer, &["spending", "resume"]).await?;
    ensure!(refused.ends_with(1)?.err.contains("spending.enabled = true"), "{refused:?}");
    let shown = farthing(&world.consumer, &["spending", "show", "--json"]).await?;
    assert_eq!(shown.ends_with(0)?.json()?["stopped"], "configuration");
    assert_eq!(world.upstream.hits(), 0);
    world.settle_for(Usdc::ZERO).await
}

#[tokio::test]
async fn limits_change_while_the_node_runs_and_are_the_configurations_again_when_reset() -> Result<()> {
    let world = World::start().await?;
    let consumer = &world.consumer;
    expect_served(&world.get("/ok").await?)?;
    farthing(consumer, &["spending", "limits", "--per-call", "0.001"]).await?.ends_with(0)?;
    expect_free("above the new limit", &world.get("/ok").await?, 402, "over-limit")?;
    let raised = ["spending", "limits", "--per-call", "0.5", "--per-day", "0.004", "--json"];
    let raised = farthing(consumer, &raised).await?;
    let raised = raised.ends_with(0)?.json()?;
    assert_eq!(
        (&raised["limits"]["price_max"], &raised["limits"]["per_day"]),
        (&"0.50".into(), &"0.004".into())
    );
    assert_eq!(raised["spent_today"], "0.002");
    expect_served(&world.get("/ok").await?)?;
    expect_free("above the new day's limit", &world.get("/ok").await?, 402, "over-limit")?;
    let reset = farthing(consumer, &["spending", "limits", "--reset"]).await?;
    ensure!(!reset.ends_with(0)?.out.contains("configured"), "{reset:?}");
    expect_served(&world.get("/ok").await?)?;
    for wrong in [&["spending", "limits"][..], &["spending", "limits", "--per-call", "-1"], &["spending"]] {
        farthing(consumer, wrong).await?.ends_with(2)?;
    }
    world.settle_for(cost(3)).await
}

#[tokio::test]
async fn a_named_secret_buys_what_it_is_made_for_up_to_its_caps_and_until_it_is_revoked() -> Result<()> {
    let world = World::start().await?;
    let consumer = &world.consumer;
    let (service, nothing) = (world.api.id.to_string(), "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b");
    let create = |name: &'static str, more: Vec<String>| async move {
        let arguments: Vec<&str> =
            ["secret", "create", name].into_iter().chain(more.iter().map(String::as_str)).collect();
        let made = farthing(consumer, &arguments).await?;
        anyhow::Ok(made.ends_with(0)?.out.trim().to_owned())
    };
    let capped =
        create("capped", vec!["--per-day".into(), "0.004".into(), "--service".into(), service]).await?;
    let elsewhere = create("elsewhere", vec!["--service".into(), nothing.into()]).await?;
    let thrifty = create("thrifty", vec!["--per-call".into(), "0.001".into()]).await?;

    expect_served(&call_with(&world, &capped).await?)?;
    expect_served(&call_with(&world, &capped).await?)?;
    expect_free("its day's budget", &call_with(&world, &capped).await?, 402, "over-limit")?;
    expect_free("its cap per call", &call_with(&world, &thrifty).await?, 402, "over-limit")?;
    expect_refused("another service", &call_with(&world, &elsewhere).await?, 403, "secret-not-scoped")?;
    expect_served(&world.get("/ok").await?).context("the default secret has its own budget")?;

    // What is changed holds for the next call.
    farthing(consumer, &["secret", "limit", "capped", "--per-day", "0.006"]).await?.ends_with(0)?;
    expect_served(&call_with(&world, &capped).await?)?;
    farthing(consumer, &["secret", "limit", "elsewhere", "--reset"]).await?.ends_with(0)?;
    expect_served(&call_with(&world, &elsewhere).await?)?;
    // What was charged is not called free where its repeat is refused.
    let charged = with(world.body("GET", "/ok"), "call_id", "00000000-0000-4000-8000-000000000013");
    expect_served(&send_with(&world, &elsewhere, &charged).await?)?;
    // What one secret bought is no other's, but for the node's own.
    let others = send_with(&world, &capped, &charged).await?;
    expect_free("another's", &others, 409, "call-id-conflict")?;
    let detail = others.json()["detail"].to_string();
    ensure!(detail.contains("another consumer secret") && !detail.contains("elsewhere"), "{detail}");
    expect_served(&world.call(&charged).await?)?;
    farthing(consumer, &["secret", "limit", "elsewhere", "--service", nothing]).await?.ends_with(0)?;
    expect_refused("a repeat", &send_with(&world, &elsewhere, &charged).await?, 403, "secret-not-scoped")?;
    farthing(consumer, &["secret", "limit", "elsewhere", "--reset"]).await?.ends_with(0)?;
    let fresh = farthing(consumer, &["secret", "rotate", "elsewhere", "--yes"]).await?;
    let fresh = fresh.ends_with(0)?.out.trim().to_owned();
    expect_refused("rotated", &call_with(&world, &elsewhere).await?, 401, "unauthorized")?;
    expect_served(&call_with(&world, &fresh).await?)?;
    let shown = farthing(consumer, &["secret", "show", "elsewhere"]).await?;
    ensure!(shown.ends_with(0)?.out.trim() == fresh, "another secret is shown");
    farthing(consumer, &["secret", "revoke", "elsewhere", "--yes"]).await?.ends_with(0)?;
    expect_refused("revoked", &call_with(&world, &fresh).await?, 401, "unauthorized")?;
    // Whoever gets its name later gets none of its answers.
    let revoked = clock::now_secs();
    eventually("the second is over", async || Ok(clock::now_secs() > revoked)).await?;
    let heir = create("elsewhere", vec![]).await?;
    expect_free("its heir", &send_with(&world, &heir, &charged).await?, 409, "call-id-conflict")?;
    farthing(consumer, &["secret", "revoke", "elsewhere", "--yes"]).await?.ends_with(0)?;

    let listed = farthing(consumer, &["secret", "list", "--json"]).await?;
    let all = listed.ends_with(0)?.json()?;
    let names: Vec<&Value> = all.as_array().context("a list")?.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default", "capped", "thrifty"]);
    assert_eq!((&all[0]["spent_today"], &all[1]["spent_today"]), (&"0.002".into(), &"0.006".into()));
    assert_eq!(all[1]["limits"]["per_day"], "0.006");
    ensure!(all[1]["last_used_secs"].is_u64() && all[2]["last_used_secs"].is_u64(), "{all:#}");
    let text = farthing(consumer, &["secret", "list"]).await?;
    for secret in [&capped, &thrifty, &world.secret] {
        ensure!(!listed.out.contains(secret) && !text.out.contains(secret), "a list shows a secret");
    }
    for (wrong, code) in [
        (&["secret", "revoke", "default", "--yes"][..], 1),
        (&["secret", "revoke", "nobody"], 1),
        (&["secret", "limit", "nobody", "--reset"], 1),
        (&["secret", "create", "capped"], 1),
        (&["secret", "create", "a b"], 2),
        (&["secret", "create", "default"], 1),
        (&["secret", "show", "../x"], 1),
    ] {
        farthing(consumer, wrong).await?.ends_with(code).with_context(|| format!("{wrong:?}"))?;
    }
    world.settle_for(cost(7)).await
}

/// `GET /ok` with another secret than the world's.
async fn call_with(world: &World, secret: &str) -> Result<Answer> {
    send_with(world, secret, &world.body("GET", "/ok")).await
}

pub(crate) async fn send_with(world: &World, secret: &str, body: &Value) -> Result<Answer> {
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    let request = world.client().post(url).bearer_auth(secret).body(body.to_string());
    let response = request.send().await?;
    let (status, headers): (StatusCode, _) = (response.status(), response.headers().clone());
    Ok(Answer { status, headers, body: response.bytes().await? })
}

#[tokio::test]
async fn a_stop_while_a_channel_is_being_opened_holds_for_the_call_that_opens_it() -> Result<()> {
    let world = World::start().await?;
    world.mine_by_hand().await?;
    let call = world.get("/ok");
    let stop = async {
        world.wait_for_pending().await?;
        farthing(&world.consumer, &["spending", "stop"]).await?.ends_with(0)?;
        world.mine_at_once().await
    };
    let (answer, ()) = tokio::try_join!(call, stop)?;
    expect_free("stopped meanwhile", &answer, 503, "spending-stopped")?;
    assert_eq!(world.upstream.hits(), 0);

    farthing(&world.consumer, &["spending", "resume"]).await?.ends_with(0)?;
    expect_served(&world.get("/ok").await?)?;
    world.settle_for(cost(1)).await
}
