//! A line that stalls in the middle of a call, and delivers what it held when nobody waits for it any more.

use anyhow::{Context, Result, ensure};
use farthing_tests::{
    calls::{cost, expect_served, with},
    world::{Setup, World},
};
use serde_json::json;

/// The copy that was held comes when its caller has been told that the call failed and costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_is_not_charged_for_a_copy_that_a_stalled_line_delivers_after_it_was_told_the_end()
-> Result<()> {
    let world = World::with(Setup { has_line: true, ..Setup::default() }).await?;
    let line = world.line.as_ref().context("no line")?;
    expect_served(&world.get("/ok").await?)?;
    world.upstream.fail(true);
    line.hold(true);
    let told = world.call(&with(world.body("GET", "/ok"), "call_id", "held")).await?;
    ensure!(told.problem() == "upstream-failed" && told.charged() == json!(false), "{told:?}");
    world.upstream.fail(false);
    let hits = world.upstream.hits();
    line.hold(false);
    line.delivered().await?;
    for _ in 0..10 {
        expect_served(&world.get("/ok").await?)?;
    }
    assert_eq!(world.upstream.hits() - hits, 10, "the copy that was held is not served");
    world.settle_for(cost(11)).await
}
