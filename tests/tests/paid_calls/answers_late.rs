//! Answers that come nearly as late as a listing allows, with ten seconds to spare on a busy machine. Five minutes long: its name
//! has it begin among the first.

use anyhow::Result;
use farthing_control::types::{Charge, ServiceFile};
use farthing_tests::{
    calls::{cost, expect_served},
    world::{World, service_file},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_290_seconds_is_waited_for_and_paid() -> Result<()> {
    let world = World::start().await?;
    let usual = service_file(&world.upstream.url(), Charge::Success);
    let api = world.publish(&ServiceFile { timeout_secs: Some(300), ..usual }).await?;
    let in_time = world.call_of(&api, "GET", "/slow/290000").await?;
    expect_served(&in_time)?;
    assert_eq!(in_time.body, "at last");
    assert_eq!(in_time.header("x-farthing-charged"), "0.002");
    world.settle_for(cost(1)).await
}
