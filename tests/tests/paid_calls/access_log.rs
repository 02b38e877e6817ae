//! The log that programs read: JSON from the first byte, one line for each call on both sides, and nothing of what was asked.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use farthing_tests::{
    calls::{expect_free, expect_served, with},
    command,
    wait::eventually,
    world::{Answer, PRICE, Setup, World},
};
use serde_json::{Value, json};

/// What a caller must not find in any log.
const PRIVATE: &str = "hunter2";

fn in_json() -> Setup {
    Setup { arguments: ["--log-format", "json"].map(str::to_owned).to_vec(), ..Setup::default() }
}

/// The lines of a node's log; the last one may still be on its way.
fn lines(node: &NodeProcess) -> Result<Vec<Value>> {
    let log = node.log();
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))).collect()
}

/// The lines of the access log, each call's under its id.
fn accesses(node: &NodeProcess) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut accesses = BTreeMap::<String, Vec<Value>>::new();
    for mut line in lines(node)?.into_iter().filter(|line| line["target"] == "access") {
        ensure!(line["level"] == "INFO", "{line}");
        let fields = line["fields"].take();
        let call_id = fields["call_id"].as_str().with_context(|| format!("no call id: {fields}"))?;
        accesses.entry(call_id.to_owned()).or_default().push(fields);
    }
    Ok(accesses)
}

#[tokio::test]
async fn each_call_has_one_line_on_both_sides_that_says_how_it_ended_and_nothing_that_was_asked() -> Result<()>
{
    let world = World::with(in_json()).await?;
    let service = world.api.id.to_string();
    let (owner, consumer) = (world.owner_wallet.to_string(), world.consumer_wallet.to_string());
    // The copies of the first call come before the owner has read its channel, and have their lines as well.
    expect_served(&world.get("/ok").await?)?;
    let asked = with(world.body("GET", "/ok"), "params", json!({ "password": PRIVATE }));
    let bought = world.call(&asked).await?;
    expect_served(&bought)?;
    let posted =
        world.call(&with(world.body("POST", "/echo"), "body", json!({ "password": PRIVATE }))).await?;
    expect_served(&posted)?;
    let declined = world.get("/status/404").await?;
    ensure!(declined.status == 404, "{declined:?}");
    let failed = world.get("/status/500").await?;
    expect_free("an error of the service", &failed, 502, "upstream-failed")?;
    let unknown = world.get(&format!("/{PRIVATE}")).await?;
    expect_free("no such path", &unknown, 404, "unknown-path")?;
    let again = with(asked, "call_id", bought.header("x-farthing-call-id"));
    expect_served(&world.call(&again).await?)?;

    let price = PRICE.to_string();
    let expected = [
        (&bought, "/ok", vec![("charged", Some(200), price.as_str()), ("repeated", Some(200), "0.00")]),
        (&posted, "/echo", vec![("charged", Some(200), price.as_str())]),
        (&declined, "/status/{status}", vec![("free", Some(404), "0.00")]),
        (&failed, "/status/{status}", vec![("failed", Some(500), "0.00")]),
    ];
    for (node, side, peer) in [(&world.consumer, "consumer", owner), (&world.owner, "owner", consumer)] {
        eventually("every call has its lines", async || {
            let ends = accesses(node)?;
            let found = |answer: &Answer| ends.get(answer.header("x-farthing-call-id")).map_or(0, Vec::len);
            Ok(expected.iter().all(|&(answer, _, ref expected)| found(answer) >= expected.len()))
        })
        .await
        .with_context(|| node.log())?;
        let ends = accesses(node)?;
        for (answer, path, expected) in &expected {
            let call_id = answer.header("x-farthing-call-id");
            let found = ends.get(call_id).with_context(|| format!("{side}: {call_id} is not in {ends:?}"))?;
            ensure!(found.len() == expected.len(), "{side}: {found:?}");
            for (line, (outcome, status, charged)) in found.iter().zip(expected) {
                ensure!(line["side"] == side && line["peer"] == peer, "{side}: {line}");
                ensure!(line["service"] == service && line["path"] == *path, "{side}: {line}");
                ensure!(line["outcome"] == *outcome && line["charged"] == *charged, "{side}: {line}");
                ensure!(line["status"].as_u64() == *status && line["ms"].is_number(), "{side}: {line}");
            }
        }
        ensure!(!node.log().contains(PRIVATE), "{side}: {}", node.log());
        ensure!(!node.log().contains(&world.secret), "{side}: the secret is in the log");
    }
    let kept_back = accesses(&world.consumer)?.remove(unknown.header("x-farthing-call-id"));
    let line = kept_back.as_deref().and_then(<[Value]>::first).context("no line")?;
    ensure!(line["outcome"] == "not_sent" && line["path"].is_null(), "{line}");

    // The owner finds the failed call by the same id.
    let told = lines(&world.owner)?;
    let told = told.iter().find(|line| line["fields"]["message"] == "the upstream gave no answer");
    let told = &told.context("the owner is not told")?["fields"];
    ensure!(told["call_id"] == failed.header("x-farthing-call-id"), "{told}");
    ensure!(told["service"] == service && told["operation"] == "GET /status/{status}", "{told}");
    Ok(())
}

#[tokio::test]
async fn a_log_for_programs_is_json_from_the_first_byte_to_the_last_and_keeps_the_setup_code() -> Result<()> {
    let mut world = World::with(in_json()).await?;
    let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
    let code = console.setup_code.context("the console was set up already")?;
    let mut running = None;
    eventually("the start is told", async || {
        running = lines(&world.consumer)?
            .into_iter()
            .find(|line| line["fields"]["message"] == "Farthing is running");
        Ok(running.is_some())
    })
    .await?;
    let fields = &running.context("no line of the start")?["fields"];
    ensure!(fields["wallet"] == world.consumer_wallet.to_string(), "{fields}");
    // A first user is led to it, by a command that only the folder's owner can give.
    let set_up = fields["set_up"].as_str().context("nothing says how to set up")?;
    ensure!(set_up.starts_with("farthing console url --data "), "{set_up}");
    ensure!(!world.consumer.log().contains(&code), "the setup code is in the log");

    world.consumer.stop().await?;
    let log = world.consumer.log();
    ensure!(log.starts_with('{') && log.ends_with("}\n"), "{log}");
    let last = lines(&world.consumer)?;
    ensure!(
        last.iter()
            .any(|line| line["fields"]["message"].as_str().is_some_and(|text| text.starts_with("Stopping"))),
        "{log}"
    );
    // A start that fails is told in the same form.
    let options = ["run", "--log-format", "json", "--set", "gateway.listen=nowhere"];
    let failed = command::run(&world.consumer.data_dir().display().to_string(), &options).await?;
    ensure!(failed.code != 0 && failed.out.is_empty(), "{failed:?}");
    for line in failed.err.lines() {
        serde_json::from_str::<Value>(line).with_context(|| format!("no JSON: {line}"))?;
    }
    failed.error()?;
    Ok(())
}

#[tokio::test]
async fn the_access_log_can_be_turned_off_alone() -> Result<()> {
    let mut world = World::with(in_json()).await?;
    let quiet = ("FARTHING_LOG".to_owned(), "farthing=info,access=off".to_owned());
    world.consumer.restart_until_ready(vec![quiet]).await?;
    world.wait_until_met().await?;
    expect_served(&world.get("/ok").await?)?;
    let log = world.consumer.log();
    ensure!(!log.contains("\"target\":\"access\""), "{log}");
    ensure!(log.contains("depositing into the channel"), "the rest of the log is there: {log}");
    Ok(())
}
