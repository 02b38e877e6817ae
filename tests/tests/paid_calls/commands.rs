//! The command line on running nodes: data on standard output, prose on standard error, codes for scripts.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use farthing_testnet::{NodeProcess, program};
use farthing_tests::{
    calls::cost,
    command::{farthing, run},
    world::World,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

#[tokio::test]
async fn commands_answer_on_standard_output_and_fail_with_the_documented_codes() -> Result<()> {
    let world = World::start().await?;
    let (owner, consumer) = (&world.owner, &world.consumer);
    let service = world.api.id.to_string();
    let call = ["call", &service, "GET"];
    let calling = |path: &'static str| [&call[..], &[path]].concat();

    let bought = farthing(consumer, &calling("/ok")).await?;
    bought.ends_with(0)?;
    assert_eq!(bought.out, "{\"n\":1}", "byte for byte");
    ensure!(bought.err.contains("charged 0.002 of 0.002 USDC"), "{bought:?}");
    let timed = farthing(consumer, &[&calling("/ok")[..], &["--timing", "-p", "a=b"]].concat()).await?;
    ensure!(timed.ends_with(0)?.err.contains("upstream;dur="), "{timed:?}");
    let typed = ["-H", "Content-Type: application/json", "-H", "accept=application/json"];
    let posted = ["call", &service, "post", "/echo", "--body", "{\"a\":1}"];
    let posted = farthing(consumer, &[&posted[..], &typed].concat()).await?;
    assert_eq!(posted.ends_with(0)?.out, "{\"a\":1}");

    let folder = tempfile::tempdir()?;
    let document = folder.path().join("api.json");
    let described = serde_json::json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" },
        "paths": { "/things": { "get": { "responses": { "200": { "description": "Fine" } } } } } });
    std::fs::write(&document, described.to_string())?;
    let document = document.display().to_string();
    // Every command in both forms: something for people, and JSON.
    let (wallet, other) = (world.consumer_wallet.to_string(), world.owner_wallet.to_string());
    for (node, arguments, shows) in [
        (consumer, &["status"][..], wallet.as_str()),
        (consumer, &["doctor"], "ok"),
        (consumer, &["audit"], "Violations"),
        (consumer, &["healthcheck"], "ready"),
        (consumer, &["version"], "Running node  0."),
        (consumer, &["wallet", "address"], &wallet),
        (consumer, &["wallet", "balance"], "USDC"),
        (consumer, &["channel", "list"], &other),
        (consumer, &["net", "peers"], &other),
        (consumer, &["net", "ping", &other], "ms"),
        (consumer, &["net", "lookup", &other], "record"),
        (owner, &["net", "reach"], "reachable"),
        (consumer, &["catalog", "search"], "SERVICE"),
        (consumer, &["config", "show"], "spending.price_max"),
        (consumer, &["config", "get", "node.data_dir"], "consumer"),
        (consumer, &["config", "show", "--origin"], "default"),
        (owner, &["api", "list"], &service),
        (owner, &["api", "show", &service[..8]], &service),
        (owner, &["channel", "list"], &wallet),
        (owner, &["settle"], "0.006"),
        (owner, &["settle", "now"], "nothing to claim"),
        (owner, &["api", "versions", &service], "published"),
        (consumer, &["catalog", "versions", &service], "published"),
        (consumer, &["catalog", "show", "test service"], &service),
        (consumer, &["catalog", "star", &service], &service),
        (consumer, &["catalog", "starred"], &service),
        (consumer, &["catalog", "unstar", &service], &service),
        (consumer, &["catalog", "name", &other, "Tides of Ann"], "Tides of Ann"),
        (consumer, &["catalog", "names"], "Tides of Ann"),
        (consumer, &["catalog", "show", &service], "(Tides of Ann)"),
        (owner, &["api", "show", "Test service"], &service),
        (consumer, &["api", "scan", &document], "/things"),
    ] {
        let text = farthing(node, arguments).await?;
        ensure!(text.ends_with(0)?.out.contains(shows), "{arguments:?} does not show {shows}: {text:?}");
        let json = farthing(node, &[arguments, &["--json"]].concat()).await?;
        json.ends_with(0)?.json().with_context(|| format!("{arguments:?}"))?;
        ensure!(
            !text.out.contains(&world.secret) && !json.out.contains(&world.secret),
            "{arguments:?} shows the secret"
        );
    }
    let starred = farthing(consumer, &["catalog", "starred", "--json"]).await?;
    assert_eq!(starred.ends_with(0)?.json()?, serde_json::json!([]), "the star is removed");
    farthing(consumer, &["catalog", "unname", &other]).await?.ends_with(0)?;
    let named = farthing(consumer, &["catalog", "names", "--json"]).await?;
    assert_eq!(named.ends_with(0)?.json()?, serde_json::json!([]), "the name is removed");

    let shown = farthing(consumer, &["secret", "show"]).await?;
    ensure!(shown.ends_with(0)?.out.trim() == world.secret, "another secret is shown");

    let declined = farthing(consumer, &calling("/status/404")).await?;
    ensure!(
        declined.code == 6 && declined.out == "said so",
        "a declined call still has an answer: {declined:?}"
    );
    let declined = farthing(consumer, &[&calling("/status/404")[..], &["--json"]].concat()).await?;
    let error = declined.error()?;
    ensure!(error["charged"] == false && error["call_id"].is_string(), "{declined:?}");

    assert_eq!(declined.json()?["status"], 404, "{declined:?}");
    assert_eq!(declined.json()?["body"], "said so", "{declined:?}");
    let bought = farthing(consumer, &["call", "test service", "GET", "/ok", "--json"]).await?;
    let told = bought.ends_with(0)?.json()?;
    for (member, value) in [
        ("status", serde_json::json!(200)),
        ("body", serde_json::json!({ "n": 6 })),
        ("charged", serde_json::json!("0.002")),
        ("price", serde_json::json!("0.002")),
        ("owner", serde_json::json!(other)),
        ("service", serde_json::json!(service)),
    ] {
        assert_eq!(told[member], value, "{member} in {told:#}");
    }
    ensure!(told["call_id"].is_string() && told["took_ms"].as_f64() > Some(0.0), "{told:#}");
    assert_eq!(told["headers"]["content-type"], "application/json");

    // What is asked about the channel shows that its beginning found it.
    let channels = farthing(consumer, &["channel", "list", "--json"]).await?.json()?;
    let beginning = channels[0]["id"].as_str().and_then(|id| id.get(..12)).context("no channel")?;
    let asked = farthing(consumer, &["channel", "close", beginning]).await?;
    ensure!(asked.ends_with(2)?.err.contains(&format!("Close the channel with {other}")), "{asked:?}");

    let empty = tempfile::tempdir()?;
    let nobody = run(&empty.path().display().to_string(), &["status"]).await?;
    nobody.ends_with(3)?;
    ensure!(nobody.err.contains("farthing run"), "{nobody:?}");
    let unhealthy = run(&empty.path().display().to_string(), &["healthcheck"]).await?;
    assert_eq!(unhealthy.code, 3);

    assert_eq!(world.upstream.hits(), 6);
    world.settle_for(cost(4)).await
}

#[tokio::test]
async fn every_failure_has_its_code_its_next_step_and_with_json_one_object() -> Result<()> {
    const NOBODY: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
    const NOTHING: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
    let no_channel = format!("0x{}", "11".repeat(32));
    let world = World::start().await?;
    let (owner, consumer) = (&world.owner, &world.consumer);
    let (service, own) = (world.api.id.to_string(), world.consumer_wallet.to_string());
    for (node, arguments, code, name) in [
        (consumer, &["nonsense"][..], 2, "usage"),
        (consumer, &["call", "No such service", "GET", "/ok"], 1, "failure"),
        (consumer, &["call", "", "GET", "/ok"], 2, "usage"),
        (consumer, &["call", &service, "GET", "/ok", "-p", "broken"], 2, "usage"),
        (consumer, &["call", &service, "GET", "/ok", "-p", "a=1", "-p", "a=2"], 2, "usage"),
        (consumer, &["call", &service, "GET", "/okk"], 2, "unknown-path"),
        (consumer, &["call", &service, "DELETE", "/ok"], 2, "method-not-allowed"),
        (consumer, &["call", NOTHING, "GET", "/ok"], 1, "unknown-service"),
        (consumer, &["call", &service, "GET", "/ok", "--max-price", "0.001"], 5, "price-above-cap"),
        (consumer, &["call", &service, "GET", "/status/500"], 6, "upstream-failed"),
        (consumer, &["net", "ping", &own], 2, "usage"),
        (consumer, &["net", "ping", NOBODY], 3, "unreachable"),
        (consumer, &["net", "ping", "0x12"], 2, "usage"),
        (consumer, &["catalog", "show", NOTHING], 1, "failure"),
        (consumer, &["catalog", "show", "7"], 1, "failure"),
        (consumer, &["catalog", "openapi", NOTHING], 1, "failure"),
        (consumer, &["catalog", "sample", NOTHING], 1, "failure"),
        (consumer, &["catalog", "sample", &service, "GET /ok"], 1, "failure"),
        (consumer, &["catalog", "sample", &service, "/ok"], 2, "usage"),
        (consumer, &["catalog", "search", "--limit", "0"], 2, "usage"),
        (consumer, &["channel", "open", NOTHING], 1, "unknown-service"),
        (consumer, &["channel", "close", &no_channel], 1, "failure"),
        (consumer, &["channel", "close", "0x00"], 2, "usage"),
        (consumer, &["channel", "close", "0x1111", "--yes"], 1, "failure"),
        (consumer, &["wallet", "send", NOBODY, "--usdc", "1000000", "--yes"], 5, "payment-refused"),
        (consumer, &["wallet", "send", NOBODY, "--usdc", "1"], 2, "usage"),
        (owner, &["api", "show", NOTHING], 1, "failure"),
        (owner, &["api", "show", "ffffffffffff"], 1, "failure"),
        (owner, &["api", "show", "fff"], 1, "failure"),
        (owner, &["api", "price", NOTHING, "0.01"], 1, "failure"),
        (owner, &["api", "remove", NOTHING], 1, "failure"),
        // What ends something, shows the wallet's words or resumes what was stopped is asked about, and here is no terminal.
        (owner, &["api", "remove", &service], 2, "usage"),
        (consumer, &["secret", "rotate"], 2, "usage"),
        (consumer, &["secret", "revoke", "default"], 2, "usage"),
        (consumer, &["console", "reset-password"], 2, "usage"),
        (consumer, &["wallet", "export"], 2, "usage"),
        (consumer, &["channel", "resume", &no_channel], 1, "failure"),
        (owner, &["api", "price", &service, "0.01", "--operation", "GET /nothing"], 2, "usage"),
        (owner, &["api", "price", &service, "1.000001"], 2, "usage"),
        (owner, &["api", "add", "--from", "/nowhere.toml"], 2, "usage"),
        (owner, &["config", "show", "--set", "nothing.at=all"], 2, "usage"),
        (owner, &["config", "get", "spending.per_dya"], 1, "failure"),
    ] {
        let told = farthing(node, arguments).await?;
        told.ends_with(code).with_context(|| format!("{arguments:?}"))?;
        let json = farthing(node, &[arguments, &["--json"]].concat()).await?;
        json.ends_with(code)?;
        let error = json.error().with_context(|| format!("{arguments:?}"))?;
        ensure!(error["code"] == name, "{arguments:?}: {error:#}");
    }
    // A dollar a call is asked about from the first micro above it, and `--yes` answers.
    farthing(owner, &["api", "price", &service, "1"]).await?.ends_with(0)?;
    farthing(owner, &["api", "price", &service, "1000000", "--yes"]).await?.ends_with(0)?;
    world.settle_for(cost(0)).await
}

#[tokio::test]
async fn a_channel_that_is_not_stopped_is_not_resumed_and_the_command_says_what_to_do() -> Result<()> {
    let world = World::start().await?;
    world.buy(1).await?;
    let channel = world.channel().await?.id.to_string();
    for arguments in [&["channel", "resume", &channel][..], &["channel", "resume", &channel, "--yes"]] {
        let told = farthing(&world.consumer, arguments).await?;
        told.fails(1, &["is not stopped, so there is nothing to resume", "Buy from its owner as usual"])?;
    }
    world.buy(1).await?;
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn an_owner_tests_an_operation_as_a_caller_would_use_it_and_for_nothing() -> Result<()> {
    let world = World::start().await?;
    let (owner, service) = (&world.owner, world.api.id.to_string());
    let first = farthing(owner, &["api", "test", &service, "--json"]).await?;
    let told = first.ends_with(0)?.json()?;
    for (member, value) in [
        ("operation", serde_json::json!("GET /ok")),
        ("answered", serde_json::json!(true)),
        ("status", serde_json::json!(200)),
        ("media_type", serde_json::json!("application/json")),
        ("bytes", serde_json::json!(7)),
        ("price", serde_json::json!("0.002")),
        ("would_charge", serde_json::json!("0.002")),
    ] {
        assert_eq!(told[member], value, "{member} in {told:#}");
    }
    let declined = ["api", "test", "test service", "GET /status/{status}", "-p", "status=404"];
    let declined = farthing(owner, &declined).await?;
    let out = &declined.ends_with(0)?.out;
    ensure!(out.contains("404") && out.contains("0.00 of 0.002 USDC") && out.contains("said so"), "{out}");
    let posted = farthing(owner, &["api", "test", &service, "POST /echo", "--body", "{\"a\":1}"]).await?;
    ensure!(posted.ends_with(0)?.out.contains("{\"a\":1}"), "{posted:?}");
    assert_eq!(world.upstream.hits(), 3);
    let failed = farthing(owner, &["api", "test", &service, "GET /status/500", "--json"]).await?;
    ensure!(failed.code == 6 && failed.error()?["code"] == "upstream", "{failed:?}");
    assert_eq!(failed.json()?["would_charge"], "0.00");
    farthing(owner, &["api", "test", &service, "GET /nothing"]).await?.ends_with(2)?;
    assert_eq!(world.upstream.hits(), 4, "what does not fit reaches no server");
    world.settle_for(cost(0)).await
}

#[tokio::test]
async fn the_newest_lines_of_the_log_are_shown_and_followed() -> Result<()> {
    let world = World::start().await?;
    let consumer = &world.consumer;
    // The first call to an owner fills a channel, and says so.
    let service = world.api.id.to_string();
    farthing(consumer, &["call", &service, "GET", "/ok"]).await?.ends_with(0)?;
    let deposited = "the deposit is sent";
    let text = farthing(consumer, &["logs", "--level", "info"]).await?;
    // Between the two this node asks itself whether calls are logged, and they are left out here.
    for kept in ["depositing into the channel", deposited] {
        ensure!(text.ends_with(0)?.out.lines().any(|line| line.contains(kept)), "{kept}: {text:?}");
    }
    ensure!(!text.ends_with(0)?.out.contains(&service), "{text:?}");
    let json = farthing(consumer, &["logs", "--json"]).await?;
    let lines: Vec<serde_json::Value> =
        json.ends_with(0)?.out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let line = lines.iter().find(|line| line["message"] == deposited).context("not among the lines")?;
    assert_eq!(line["level"], "info");
    assert_eq!(line["fields"]["nonce"], 0, "{line:#}");
    let heavy = farthing(consumer, &["logs", "--level", "error"]).await?;
    ensure!(!heavy.ends_with(0)?.out.contains(deposited), "{heavy:?}");

    let mut following = Command::new(program("farthing")?)
        .args(["logs", "--follow", "--json", "--lines", "0", "--data"])
        .arg(consumer.data_dir())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(following.stdout.take().context("no output")?).lines();
    let line = tokio::select! {
        line = lines.next_line() => line?.context("it ended")?,
        ended = stop_and_resume(consumer) => return ended,
    };
    ensure!(line.contains("spending"), "{line}");
    let (node, command) = (threads(consumer.pid())?, threads(following.id())?);
    let writes_calls = |names: &[String]| names.iter().any(|name| name == "log");
    ensure!(writes_calls(&node) && !writes_calls(&command), "a node alone logs calls: {node:?}, {command:?}");
    drop(following);
    world.settle_for(cost(1)).await
}

/// The names of a process's threads.
fn threads(process: Option<u32>) -> Result<Vec<String>> {
    let process = process.context("it ended")?;
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))?.flatten();
    // One that has just ended is gone.
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    Ok(names.map(|name| name.trim_end().to_owned()).collect())
}

/// Lines for the log of a node, until nobody wants more.
async fn stop_and_resume(node: &NodeProcess) -> Result<()> {
    loop {
        farthing(node, &["spending", "stop"]).await?.ends_with(0)?;
        farthing(node, &["spending", "resume"]).await?.ends_with(0)?;
    }
}

#[tokio::test]
async fn the_authority_is_compared_and_trusted_by_what_tls_prints() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("node").display().to_string();
    run(&data, &["tls", "fingerprint"]).await?.ends_with(1)?;
    run(&data, &["init", "--chain", "base-sepolia"]).await?.ends_with(0)?;
    let fingerprint = run(&data, &["tls", "fingerprint"]).await?;
    let fingerprint = fingerprint.ends_with(0)?.out.trim();
    assert_eq!((fingerprint.len(), fingerprint.matches(':').count()), (95, 31));
    let trust = run(&data, &["tls", "trust", "--json"]).await?;
    let trust = trust.ends_with(0)?.json()?;
    assert_eq!(trust["sha256"], fingerprint);
    ensure!(std::fs::read_to_string(trust["file"].as_str().context("file")?)?.contains("BEGIN CERTIFICATE"));
    let off = ["--set", "gateway.tls=off", "--set", "gateway.listen=127.0.0.1:0"];
    run(&data, &[&["tls", "trust"][..], &off].concat()).await?.ends_with(1)?;
    Ok(())
}
