//! `farthing calls`: the log of calls at the command line, with filters, as a table and for programs.

use anyhow::{Context, Result, ensure};
use farthing_testnet::demo::metrics;
use farthing_tests::{
    calls::{cost, expect_free, expect_served, with},
    command::farthing,
    wait::eventually,
    world::World,
};
use serde_json::Value;

#[tokio::test]
async fn the_command_line_lists_calls_that_were_answered_failed_and_refused_and_shows_each() -> Result<()> {
    let world = World::start().await?;
    let (owner, consumer) = (&world.owner, &world.consumer);
    expect_served(&world.get("/ok").await?)?;
    ensure!(world.get("/status/500").await?.problem() == "upstream-failed");
    let dear = with(world.body("GET", "/ok"), "max_price", "0.000001");
    ensure!(world.call(&dear).await?.problem() == "price-above-cap");
    world.wait_until_decided().await?;

    let list = |node, arguments: Vec<&'static str>| async move {
        let told = farthing(node, &[&["calls", "--json"][..], &arguments].concat()).await?;
        let list = told.ends_with(0).with_context(|| format!("{arguments:?}"))?.json()?;
        anyhow::Ok(list.as_array().context("a list")?.clone())
    };
    let outcomes = |calls: &[Value]| -> Vec<String> {
        let mut outcomes: Vec<String> =
            calls.iter().map(|call| call["outcome"].as_str().unwrap_or_default().to_owned()).collect();
        outcomes.sort();
        outcomes
    };
    let all = list(consumer, vec![]).await?;
    assert_eq!(outcomes(&all), ["answered", "failed", "refused"]);
    for (outcome, code, status) in [("failed", "upstream-failed", 502), ("refused", "price-above-cap", 402)] {
        let found = list(consumer, vec!["--outcome", outcome]).await?;
        ensure!(found.len() == 1 && found[0]["problem"]["code"] == code, "{found:#?}");
        ensure!(found[0]["status"] == status && found[0]["took_us"].is_u64(), "{found:#?}");
        ensure!(found[0]["problem"]["next"].as_str().is_some_and(|next| !next.is_empty()), "{found:#?}");
    }
    assert_eq!(outcomes(&list(owner, vec!["--side", "served"]).await?), ["answered", "failed"]);
    assert_eq!(list(consumer, vec!["--side", "served"]).await?.len(), 0);
    assert_eq!(list(consumer, vec!["--secret", "default", "--limit", "2"]).await?, all[..2]);
    assert_eq!(list(consumer, vec!["--to", "2020-01-01"]).await?.len(), 0);

    let answered = all.iter().find(|call| call["outcome"] == "answered").context("one answered")?;
    let id = answered["call_id"].as_str().context("an id")?;
    let one = farthing(consumer, &["calls", id, "--verify", "--json"]).await?;
    let one = one.ends_with(0)?.json()?;
    assert_eq!((&one["verdict"]["holds"], &one["call"]["key"]), (&true.into(), &answered["key"]));
    let shown = farthing(consumer, &["calls", id]).await?.ok()?.out;
    ensure!(shown.contains(" USDC\n") && shown.contains("\nReceipt "), "{shown}");
    for missing in ["Problem", "Verdict", "Explorer"] {
        ensure!(!shown.contains(missing), "{missing} has nothing to say: {shown}");
    }
    let told = farthing(consumer, &["calls"]).await?;
    ensure!(told.ends_with(0)?.out.contains("price-above-cap"), "{told:?}");
    for (wrong, code) in [
        (&["calls", "--side", "sold"][..], 2),
        (&["calls", "--from", "yesterday"], 2),
        (&["calls", "refused-99"], 1),
        (&["calls", "no-call"], 2),
        (&["calls", "--verify"], 2),
    ] {
        farthing(consumer, wrong).await?.ends_with(code).with_context(|| format!("{wrong:?}"))?;
    }
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_its_channel_is_listed_and_can_be_cancelled_and_is_never_sent() -> Result<()> {
    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    let world = World::start().await?;
    let consumer = &world.consumer;
    world.mine_by_hand().await?;
    let first = with(world.body("GET", "/ok"), "call_id", ID);
    let cancels = async {
        world.wait_for_pending().await?;
        let told = farthing(consumer, &["calls", "--outcome", "under-way", "--json"]).await?;
        let list = told.ends_with(0)?.json()?;
        let listed = list.as_array().context("a list")?;
        ensure!(listed.len() == 1 && listed[0]["call_id"] == ID, "{list:#}");
        ensure!(listed[0]["operation"] == "GET /ok" && listed[0]["secret"] == "default", "{list:#}");
        let told = farthing(consumer, &["calls", "--id", ID, "--json"]).await?;
        ensure!(told.ends_with(0)?.json()? == list, "found by its id: {told:?}");
        let shown = farthing(consumer, &["calls", ID]).await?.ok()?.out;
        ensure!(shown.contains(" s so far\n"), "{shown}");
        let told = farthing(consumer, &["calls", ID, "--cancel"]).await?;
        ensure!(told.ends_with(0)?.out.contains("you are not charged"), "{told:?}");
        farthing(consumer, &["calls", "refused-99", "--cancel"])
            .await?
            .fails(1, &["`farthing calls refused-99`"])?;
        farthing(consumer, &["calls", ID, "--cancel"]).await?.fails(1, &["waits for a call", ID])
    };
    let (answer, _) = tokio::try_join!(world.call(&first), cancels)?;
    expect_free("a cancelled call", &answer, 409, "cancelled")?;
    world.mine_at_once().await?;
    let not_sent = "farthing_calls_total{side=\"consumer\",outcome=\"not_sent\"}";
    eventually("its task has ended", async || {
        Ok(metrics(consumer).await?.get(not_sent).is_some_and(|count| *count == 1))
    })
    .await?;
    let one = farthing(consumer, &["calls", ID, "--json"]).await?.ends_with(0)?.json()?;
    let call = &one["call"];
    ensure!(call["outcome"] == "refused" && call["problem"]["code"] == "cancelled", "{one:#}");
    ensure!(call["key"].as_str().is_some_and(|key| key.starts_with("refused-")), "not promised: {one:#}");
    expect_served(&world.get("/ok").await?)?;
    ensure!(world.upstream.hits() == 1, "the channel is there, and the call was not sent");
    world.settle_for(cost(1)).await
}
