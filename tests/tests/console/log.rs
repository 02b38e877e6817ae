//! The log of calls: what reached the node is in it, whatever became of it, and a flood fills nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{CallOutcome, CallSide, LoggedCall, NewSecret, SecretLimits},
};
use farthing_testnet::NodeProcess;
use farthing_tests::{
    calls::{cost, expect_served, with},
    wait::eventually,
    world::World,
};
use farthing_values::Usdc;
use serde_json::json;

use crate::{
    pages::HTML_BYTES_MAX,
    support::{Browser, Node, Page, set_up},
};

async fn calls(node: &NodeProcess) -> Result<Vec<LoggedCall>> {
    Ok(node.control().ask(endpoint::Calls.with("limit", 500)).await?.calls)
}

/// How often each code is in the log of a node, and by how many calls more.
fn codes(calls: &[LoggedCall]) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for call in calls {
        let code = call.problem.as_ref().and_then(|problem| problem.code.clone());
        *codes.entry(code.unwrap_or_default()).or_default() += 1 + call.others;
    }
    codes
}

async fn page(browser: &mut Browser, path: &str) -> Result<Page> {
    let page = browser.get(path).await?;
    ensure!(page.status == 200, "{path}: {page:?}");
    ensure!(page.body.len() <= HTML_BYTES_MAX, "{path} has {} bytes", page.body.len());
    Ok(page)
}

/// The addresses of the calls that a page of the log lists.
fn listed(page: &Page) -> Vec<String> {
    let links = page.body.split("href=\"/panel/activity/").skip(1);
    links.filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_was_refused_is_in_the_log_with_its_code_and_its_next_step() -> Result<()> {
    let world = World::start().await?;
    let good = world.body("GET", "/ok");
    expect_served(&world.get("/ok").await?)?;
    let unknown = with(good.clone(), "api_id_public", "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b");
    world.post("{", |request| request).await?;
    world.call(&unknown).await?;
    world.call(&with(good.clone(), "max_price", "0.000001")).await?;
    world.get("/nothing-there").await?;
    for _ in 0..3 {
        let wrong = |request: reqwest::RequestBuilder| request.header("authorization", "Bearer wrong");
        ensure!(world.post("{}", wrong).await?.status == 401);
    }
    let control = world.consumer.control();
    let log = control.ask(endpoint::Calls.with("limit", 500).with("outcome", "refused")).await?;
    let told: Vec<_> = codes(&log.calls).into_iter().collect();
    let expected = ["malformed", "price-above-cap", "unknown-path", "unknown-service"];
    assert_eq!(told, expected.map(|code| (code.to_owned(), 1)), "{log:#?}");
    assert_eq!(log.wrong_secrets, 3, "counted, and in no row");

    let mut browser = set_up(&world.consumer).await?;
    let list = page(&mut browser, "/panel/activity").await?;
    ensure!(list.body.contains("3 calls came without a valid secret"), "{list:?}");
    ensure!(list.body.contains("<bdi>Unknown service</bdi>"), "of a call that cannot be read: {list:?}");
    for call in &log.calls {
        let problem = call.problem.as_ref().context("a problem")?;
        ensure!(call.outcome == CallOutcome::Refused && call.side == CallSide::Bought, "{call:?}");
        ensure!(call.secret.as_deref() == Some("default") && !problem.next.is_empty(), "{call:?}");
        ensure!(call.took_us.is_some() && call.status.is_some(), "{call:?}");
        ensure!(call.charged.is_none_or(|charged| charged.0 == Usdc::ZERO), "{call:?}");
        let one = page(&mut browser, &format!("/panel/activity/{}", call.key)).await?;
        ensure!(one.body.contains("<strong>Next:</strong>"), "{one:?}");
        ensure!(one.body.contains(problem.code.as_deref().unwrap_or_default()), "{one:?}");
    }
    ensure!(listed(&list).len() == 5, "with the one that was answered: {list:?}");
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_call_is_once_in_the_log_of_both_nodes_with_its_time_and_a_receipt_that_verifies() -> Result<()>
{
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    let bought = calls(&world.consumer).await?;
    ensure!(bought.len() == 1 && bought[0].outcome == CallOutcome::Answered, "{bought:#?}");
    let served = calls(&world.owner).await?;
    ensure!(served.len() == 1 && served[0].side == CallSide::Served, "{served:#?}");
    assert_eq!((bought[0].call_id, bought[0].charged), (served[0].call_id, served[0].charged));

    for (node, call) in [(&world.consumer, &bought[0]), (&world.owner, &served[0])] {
        let mut browser = set_up(node).await?;
        let list = page(&mut browser, "/panel/activity").await?;
        ensure!(!list.body.contains("<td class=\"number\">–</td>"), "it took some time: {list:?}");
        let address = format!("/panel/activity/{}", call.key);
        let plain = page(&mut browser, &address).await?;
        ensure!(plain.body.contains("Verify receipt") && !plain.body.contains(">Valid<"), "{plain:?}");
        let verified = page(&mut browser, &format!("{address}?verify=1")).await?;
        ensure!(verified.body.contains("<span class=\"good\">Valid</span>"), "{verified:?}");
        // The call id alone leads to it, too.
        let id = call.call_id.context("a call id")?;
        ensure!(page(&mut browser, &format!("/panel/activity/{id}")).await?.body.contains("GET /ok"));
        ensure!(browser.get("/panel/activity/refused-99").await?.status == 404);
        ensure!(browser.get("/panel/activity/nothing").await?.status == 400);
    }
    let one = world.consumer.control().ask(endpoint::ShowCall.of(&bought[0].key)).await?;
    let parts: u64 = one.parts.iter().map(|part| part.took_us).sum();
    assert_eq!(Some(parts), bought[0].took_us, "the parts are the whole");
    // The owner's record has the time of its server, which is a part of the whole.
    let one = world.owner.control().ask(endpoint::ShowCall.of(&served[0].key)).await?;
    let [server] = &one.parts[..] else { anyhow::bail!("{one:#?}") };
    ensure!(Some(server.took_us) == served[0].took_us && served[0].took_us <= bought[0].took_us, "{one:#?}");
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_owner_refuses_stands_once_with_the_buyer_and_in_the_log_of_the_owner() -> Result<()>
{
    let world = World::start().await?;
    expect_served(&world.get("/ok").await?)?;
    world.owner.control().ask(endpoint::PauseApi.of(world.api.id)).await?;
    ensure!(world.get("/ok").await?.problem() == "owner-unavailable");
    world.wait_until_decided().await?;
    let bought = calls(&world.consumer).await?;
    ensure!(bought.len() == 2, "the ledger has it, and its note adds to that: {bought:#?}");
    let refused = bought.iter().find(|call| call.outcome == CallOutcome::Refused).context("refused")?;
    let problem = refused.problem.as_ref().context("a problem")?;
    assert_eq!(problem.code.as_deref(), Some("owner-unavailable"));
    let at_owner = calls(&world.owner).await?;
    let refused: Vec<_> = at_owner.iter().filter(|call| call.outcome == CallOutcome::Refused).collect();
    ensure!(!refused.is_empty(), "{at_owner:#?}");
    for call in refused {
        let code = call.problem.as_ref().and_then(|problem| problem.code.as_deref());
        ensure!(
            code == Some("service_paused") && call.peer.map(|peer| peer.0) == Some(world.consumer_wallet)
        );
        ensure!(
            call.operation == "GET /ok" && call.service.map(|id| id.0) == Some(world.api.id.0),
            "{call:?}"
        );
    }
    world.settle_for(cost(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_pages_lead_through_the_same_calls_by_plain_links() -> Result<()> {
    let world = World::start().await?;
    for _ in 0..3 {
        expect_served(&world.get("/ok").await?)?;
    }
    let control = world.consumer.control();
    let secret = NewSecret { name: "dashboard".to_owned(), limits: SecretLimits::default() };
    let secret = control.tell(endpoint::CreateSecret, &secret).await?.secret;
    let client = world.consumer.https_client()?;
    let url = format!("{}/internal/call", world.consumer.status().await?.gateway_url);
    for _ in 0..52 {
        let answer = client.post(&url).bearer_auth(&secret).body("[]").send().await?;
        ensure!(answer.status() == 400);
    }
    world.wait_until_decided().await?;
    let all = calls(&world.consumer).await?;
    ensure!(all.len() == 55, "{}", all.len());

    let mut browser = set_up(&world.consumer).await?;
    let (mut address, mut found) = ("/panel/activity".to_owned(), Vec::new());
    loop {
        let list = page(&mut browser, &address).await?;
        ensure!(list.body.contains("id=\"live-activity\"") == (address == "/panel/activity"), "{address}");
        found.extend(listed(&list));
        let Some(next) = list.body.split("rel=\"next\" href=\"").nth(1) else { break };
        address = next.split('"').next().unwrap_or_default().replace("&#38;", "&").replace("&amp;", "&");
    }
    let keys: Vec<_> = all.iter().map(|call| call.key.clone()).collect();
    assert_eq!(found, keys, "each call once, in the order of the log");

    let id = all.iter().find_map(|call| call.call_id).context("a call id")?;
    let service = world.api.id;
    for (filter, count) in [
        ("outcome=answered".to_owned(), 3),
        ("secret=default".to_owned(), 3),
        ("side=served".to_owned(), 0),
        ("to=2020-01-01".to_owned(), 0),
        ("from=2020-01-01&outcome=answered&side=bought".to_owned(), 3),
        (format!("call_id={id}"), 1),
        (format!("service={service}"), 3),
        ("secret=dashboard&outcome=answered".to_owned(), 0),
    ] {
        let list = page(&mut browser, &format!("/panel/activity?{filter}")).await?;
        ensure!(listed(&list).len() == count, "{filter}: {:?}", listed(&list));
        let active = format!("Filters <span class=\"count\">{} active</span>", filter.split('&').count());
        ensure!(list.body.contains(&active), "{filter}: {list:?}");
    }
    let wrong = browser.get("/panel/activity?call_id=seven").await?;
    ensure!(wrong.status == 422 && wrong.body.contains("call_id"), "{wrong:?}");
    world.settle_for(cost(3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_calls_takes_few_rows_and_is_counted_whole_over_a_restart() -> Result<()> {
    const FLOOD: u64 = 2_000;
    let (mut node, mut browser) = Node::opened().await?;
    let client = node.process.https_client()?;
    let url = format!("{}/internal/call", node.process.status().await?.gateway_url);
    let secret = node.process.secret().await?;
    for _ in 0..FLOOD {
        let answer = client.post(&url).bearer_auth(&secret).body("no call").send().await?;
        ensure!(answer.status() == 400);
    }
    // What a stranger may put into a path and a service: bounded, and shown without the signs that turn what is around them.
    let path = format!("/aaa\u{202e}😀{}", "a".repeat(8_000));
    let service = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    let long = json!({ "api_id_public": service, "method": "GET", "path": path }).to_string();
    let answer = client.post(&url).bearer_auth(&secret).body(long).send().await?;
    ensure!(answer.status() != 200);
    let log = calls(&node.process).await?;
    ensure!(log.len() < 300, "{} rows", log.len());
    assert_eq!(codes(&log)["malformed"], FLOOD);
    ensure!(log.iter().all(|call| call.operation.len() < 600), "texts are bounded");
    let list = page(&mut browser, "/panel/activity").await?;
    ensure!(list.body.contains("more like it") || log.len() > 60, "{list:?}");
    let one = log.iter().find(|call| call.operation.starts_with("GET /aaa")).context("the long path")?;
    let one = page(&mut browser, &format!("/panel/activity/{}", one.key)).await?;
    ensure!(!one.body.contains('\u{202e}') && !list.body.contains('\u{202e}'));

    node.restart(&mut browser).await?;
    eventually("the log is there again", async || {
        Ok(codes(&calls(&node.process).await?).get("malformed") == Some(&FLOOD))
    })
    .await
}
