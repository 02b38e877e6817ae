//! A call that takes long: what its page says meanwhile, what *Stop waiting* and *Cancel* do, and that it is paid for once.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CallOutcome, LoggedCall, OperationFile, ServiceFile},
};
use farthing_tests::{
    calls::{expect_refused, expect_served, with},
    clock::Clock,
    upstream::Gate,
    wait::eventually,
    world::{FUNDS, PRICE, World},
};
use farthing_values::Method;
use serde_json::json;

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

/// A call of the sandbox and one of a program wait at once. Nothing here needs a script.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_counts_the_seconds_of_a_call_that_is_under_way_and_lets_its_browser_stop_waiting()
-> Result<()> {
    let world = World::start().await?;
    let (mut gate, mut sandbox) = held(&world).await?;
    let service = sandbox.address.split('/').nth(3).context("no service")?.to_owned();
    let programs = json!({ "api_id_public": service, "method": "GET", "path": "/held" });
    let programs = serde_json::from_value(programs)?;
    let control = world.consumer.control();
    let asks = control.tell_raw(endpoint::Call, &programs);
    let looks = async {
        gate.asked().await?;
        let under_way = control.ask(endpoint::Calls.with("limit", 1)).await?;
        let program = under_way.calls.first().context("no call")?.key.clone();
        let page = sandbox.browser.get(&format!("/panel/activity/{program}")).await?;
        let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"2\">";
        for told in ["data-elapsed=", refresh, ">Cancel call</button>", "id=\"live-call\" data-live"] {
            ensure!(page.body.contains(told), "{told}: {page:?}");
        }
        ensure!(!page.body.contains("Stop waiting"), "it is no call of this browser: {page:?}");
        let form = sandbox.form(OPERATION).await?;
        let place = place(&sandbox.press(&form, "live", &[]).await?)?;
        let call = place.split("call=").nth(1).context("no call")?.to_owned();
        let at = endpoint::Calls.with("call_id", call.as_str());
        let key = control.ask(at).await?.calls.first().context("no call")?.key.clone();
        let page = sandbox.browser.get(&format!("/panel/activity/{key}")).await?;
        let cancel = format!("{}/cancel", sandbox.address);
        for told in ["data-elapsed=", refresh, &format!("action=\"{cancel}\""), ">Stop waiting</button>"] {
            ensure!(page.body.contains(told), "{told}: {page:?}");
        }
        ensure!(
            sandbox.browser.get("/panel/activity").await?.body.contains(" so far"),
            "the list says how long"
        );
        sandbox.browser.thief().press(&cancel, &[("call", &call)]).await?;
        let page = sandbox.browser.get(&format!("/panel/activity/{key}")).await?;
        ensure!(page.body.contains("You stopped waiting") && !page.body.contains("Under way"), "{page:?}");
        gate.open();
        eventually("the page has the end, and looks no more", async || {
            let page = sandbox.browser.get(&format!("/panel/activity/{key}")).await?;
            Ok(page.body.contains(">Answered<") && !page.body.contains("http-equiv"))
        })
        .await
    };
    let (answer, looked) = tokio::join!(asks, looks);
    looked?;
    ensure!(answer?.status == 200, "the program has its answer");
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged.micros() == 2 * PRICE.micros(), "each was charged once: {charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_call_is_cancelled_on_its_page_and_the_program_hears_of_it_before_the_owner_answers()
-> Result<()> {
    let world = World::start().await?;
    let (mut gate, mut sandbox) = held(&world).await?;
    let service = sandbox.address.split('/').nth(3).context("no service")?.to_owned();
    let asked = json!({ "api_id_public": service, "method": "GET", "path": "/held" });
    let newest = async || -> Result<LoggedCall> {
        let log = world.consumer.control().ask(endpoint::Calls.with("limit", 1)).await?;
        log.calls.into_iter().next().context("no call")
    };
    let cancels = async {
        gate.asked().await?;
        let key = newest().await?.key;
        let (place, cancel) = (format!("/panel/activity/{key}"), format!("/panel/activity/{key}/cancel"));
        let list = sandbox.browser.get("/panel/activity").await?;
        ensure!(list.body.contains(&format!("action=\"{cancel}\"")), "{list:?}");
        let stolen = sandbox.browser.thief().press(&cancel, &[]).await?;
        ensure!(stolen.asks_for_password(), "a cookie alone cancels nothing: {stolen:?}");
        ensure!(newest().await?.outcome == CallOutcome::UnderWay);
        let sent = sandbox.browser.press(&cancel, &[]).await?;
        ensure!(sent.header("location") == format!("{place}?done=call-cancelled"), "{sent:?}");
        let page = sandbox.browser.get(&place).await?;
        ensure!(page.body.contains(">Undecided<") && !page.body.contains("Cancel call"), "{page:?}");
        let again = sandbox.browser.press(&cancel, &[]).await?;
        ensure!(again.status == 404, "nobody waits for it: {again:?}");
        anyhow::Ok(())
    };
    // The gate is closed until the program has its answer.
    let (answer, ()) = tokio::try_join!(world.call(&asked), cancels)?;
    expect_refused("a cancelled call", &answer, 409, "cancelled")?;
    let problem = newest().await?.problem.context("no problem")?;
    ensure!(problem.code.as_deref() == Some("cancelled"), "{problem:?}");
    ensure!(world.consumer.status().await?.spent_today.0 == PRICE, "limits count it while it is open");
    gate.open();
    eventually("its end is known", async || Ok(newest().await?.outcome == CallOutcome::Answered)).await?;
    let json = answer.json();
    let call_id = json["call_id"].as_str().context("no call id")?;
    expect_served(&world.call(&with(asked, "call_id", call_id)).await?)?;
    ensure!(gate.count() == 1, "the service was asked once");
    world.settle_for(PRICE).await
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
