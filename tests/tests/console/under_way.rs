//! A call that takes long: what its page says meanwhile, what *Cancel* does, and that it is paid for once.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CallOutcome, OperationFile, ServiceFile},
};
use farthing_tests::{
    clock::Clock,
    upstream::Gate,
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use farthing_values::Method;

use crate::{
    sandbox::{Sandbox, is_under_way},
    support::Page,
};

const OPERATION: &str = "GET /held";

/// A sandbox of a service whose answers wait for a gate.
async fn held(world: &World) -> Result<(Gate, Sandbox)> {
    let gate = Gate::start().await?;
    let slow =
        OperationFile { timeout_secs: Some(120), ..OperationFile::named(Method::Get, "/held".to_owned()) };
    let file = ServiceFile {
        name: "Held".to_owned(),
        upstream: gate.url(),
        operations: vec![slow],
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let sandbox = Sandbox::open_at(world, &api.id.to_string()).await?;
    Ok((gate, sandbox))
}

/// The page that a press leads to.
fn place(sent: &Page) -> Result<String> {
    ensure!(sent.status == 303, "{sent:?}");
    Ok(sent.header("location").trim_end_matches("#answer").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_has_a_page_that_looks_again_by_itself_and_is_paid_once() -> Result<()> {
    let world = World::start().await?;
    let (mut gate, mut sandbox) = held(&world).await?;
    let form = sandbox.form(OPERATION).await?;
    let place = place(&sandbox.press(&form, "live", &[]).await?)?;
    let page = sandbox.browser.get(&place).await?;
    for told in [
        "<strong class=\"undecided\">Under way</strong>",
        "data-elapsed=",
        "of 120 s at most",
        "class=\"placeholder\"",
        "<noscript><meta http-equiv=\"refresh\" content=\"2; url=/panel/catalog/",
        "This does not cancel the call",
    ] {
        ensure!(page.body.contains(told), "{told}: {page:?}");
    }
    gate.asked().await?;
    // Whoever presses again waits for the same call.
    let again = sandbox.press(&form, "live", &[]).await?;
    ensure!(again.header("location").starts_with(&place), "{again:?}");
    gate.open();
    eventually("the page has the answer", async || Ok(!is_under_way(&sandbox.browser.get(&place).await?)))
        .await?;
    let page = sandbox.browser.get(&place).await?;
    ensure!(page.body.contains(&format!("You were charged {PRICE} USDC.")), "{page:?}");
    ensure!(page.body.contains(">Answered</strong>") && !page.body.contains("http-equiv"), "{page:?}");
    ensure!(gate.count() == 1, "the service was asked once");
    world.settle_for(PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_is_settled_by_the_node_and_paid_once() -> Result<()> {
    let world = World::start().await?;
    let (mut gate, mut sandbox) = held(&world).await?;
    let form = sandbox.form(OPERATION).await?;
    let place = place(&sandbox.press(&form, "live", &[]).await?)?;
    gate.asked().await?;
    let call = place.split("call=").nth(1).context("no call")?.to_owned();
    let cancel = format!("{}/cancel", sandbox.address);
    // It changes nothing of the node, so it needs no key.
    let mut plain = sandbox.browser.thief();
    let page = plain.press(&cancel, &[("call", &call)]).await?;
    ensure!(page.status == 303 && page.header("location").starts_with(&place), "{page:?}");
    let page = sandbox.browser.get(&place).await?;
    for told in ["<strong class=\"undecided\">Undecided</strong>", "You stopped waiting", "never twice"] {
        ensure!(page.body.contains(told), "{told}: {page:?}");
    }
    ensure!(!page.body.contains("http-equiv") && !page.body.contains("about-cancel"), "{page:?}");
    gate.open();
    let charged = format!("You were charged {PRICE} USDC.");
    eventually("the page says how it ended", async || {
        Ok(sandbox.browser.get(&place).await?.body.contains(&charged))
    })
    .await?;
    ensure!(world.settle_and_check(FUNDS).await? == PRICE, "it was charged once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_under_way_says_so_however_far_the_clock_jumps_ahead() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let clock = Clock::ahead(folder.path(), 0).await?;
    let mut world = World::start().await?;
    world.consumer.restart_until_ready(clock.environment()).await?;
    let (mut gate, mut sandbox) = held(&world).await?;
    let form = sandbox.form(OPERATION).await?;
    place(&sandbox.press(&form, "live", &[]).await?)?;
    gate.asked().await?;
    let newest = async || -> Result<CallOutcome> {
        let log = world.consumer.control().ask(endpoint::Calls.with("limit", 1)).await?;
        Ok(log.calls.first().context("no call")?.outcome)
    };
    clock.set(3_600)?;
    let outcome = newest().await?;
    ensure!(outcome == CallOutcome::UnderWay, "{outcome:?} an hour ahead");
    clock.set(0)?;
    gate.open();
    eventually("the call ends", async || Ok(newest().await? == CallOutcome::Answered)).await?;
    world.settle_for(PRICE).await
}
