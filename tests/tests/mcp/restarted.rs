//! An agent that goes before it has the answer, and asks again: it pays once for the same call, and again for a new answer.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use farthing_control::types::{OperationFile, ServiceFile};
use farthing_testnet::program;
use farthing_tests::{
    command::farthing,
    upstream::Gate,
    world::{PRICE, World},
};
use farthing_values::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    select,
};

use super::confirmed::asks_over_http;

/// A service whose owner holds its answers until the gate opens. Returns its id.
async fn publish_held(world: &World, gate: &Gate) -> Result<String> {
    let held =
        OperationFile { timeout_secs: Some(120), ..OperationFile::named(Method::Get, "/held".to_owned()) };
    let file = ServiceFile {
        name: "Held".to_owned(),
        upstream: gate.url(),
        operations: vec![held],
        ..ServiceFile::priced(PRICE)
    };
    Ok(world.publish(&file).await?.id.to_string())
}

/// The call of that service, without an id.
fn held_call(service: &str) -> Value {
    let arguments = json!({ "service": service, "method": "GET", "path": "/held", "max_price": "0.002" });
    json!({ "name": "call_service", "arguments": arguments })
}

/// The id of the call that an agent bought.
fn bought(result: &Value) -> Result<String> {
    let bought = &result["structuredContent"];
    ensure!(bought["body"] == json!({ "held": "no more" }), "{result}");
    Ok(bought["call_id"].as_str().context("no call id")?.to_owned())
}

/// One run of `farthing mcp`, and the agent's end of it.
struct Conversation {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Conversation {
    async fn begin(world: &World) -> Result<Self> {
        let mut command = Command::new(program("farthing")?);
        command.args(["mcp", "--data"]).arg(world.consumer.data_dir());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = process.stdin.take().context("no standard input")?;
        let output = BufReader::new(process.stdout.take().context("no standard output")?).lines();
        let mut begun = Self { process, input, output };
        let client = json!({ "name": "a", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        begun.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await?;
        begun.answer().await?;
        begun.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(begun)
    }

    async fn say(&mut self, message: &Value) -> Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(())
    }

    async fn answer(&mut self) -> Result<Value> {
        read(&mut self.output).await
    }

    /// Asks for the held call.
    async fn ask(&mut self, service: &str) -> Result<()> {
        let params = held_call(service);
        self.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await
    }

    /// Buys a call. Returns its id.
    async fn buys(&mut self, service: &str) -> Result<String> {
        self.ask(service).await?;
        bought(&self.answer().await?["result"])
    }
}

async fn read(output: &mut Lines<BufReader<ChildStdout>>) -> Result<Value> {
    let line = output.next_line().await?.context("no answer")?;
    Ok(serde_json::from_str(&line)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_program_starts_again_pays_once_for_a_call_whose_answer_was_lost() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    let service = publish_held(&world, &gate).await?;

    let mut lost = Conversation::begin(&world).await?;
    lost.ask(&service).await?;
    gate.asked().await?;
    lost.process.kill().await?;
    gate.open();
    world.wait_until_decided().await?;

    let mut restarted = Conversation::begin(&world).await?;
    let first = restarted.buys(&service).await?;
    assert_eq!(gate.count(), 1, "the answer of the lost call");
    assert_eq!(world.consumer.status().await?.spent_today.0, PRICE);

    // The agent has that answer: the same request is a new call, in this process and in the next.
    let second = restarted.buys(&service).await?;
    let third = Conversation::begin(&world).await?.buys(&service).await?;
    ensure!(first != second && second != third, "{first} {second} {third}");
    assert_eq!(gate.count(), 3);
    world.settle_for(PRICE.saturating_mul(3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_after_the_agent_closed_its_end_is_paid_once() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    let service = publish_held(&world, &gate).await?;
    let mut left = Conversation::begin(&world).await?;
    left.ask(&service).await?;
    gate.asked().await?;
    // The end of the input is behind it: once this is answered, the end is read.
    left.say(&json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await?;
    let Conversation { mut process, input, mut output } = left;
    drop(input);
    assert_eq!(read(&mut output).await?["id"], 3);
    gate.open();
    let unheard = bought(&read(&mut output).await?["result"])?;
    process.wait().await?;

    let mut restarted = Conversation::begin(&world).await?;
    assert_eq!(restarted.buys(&service).await?, unheard);
    assert_eq!(gate.count(), 1);
    assert_eq!(world.consumer.status().await?.spent_today.0, PRICE);
    assert_ne!(restarted.buys(&service).await?, unheard, "the agent has that answer");
    world.settle_for(PRICE.saturating_mul(2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_written_is_paid_once() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    let service = publish_held(&world, &gate).await?;
    let mut deaf = Conversation::begin(&world).await?;
    deaf.ask(&service).await?;
    gate.asked().await?;
    let Conversation { process: _running, input: _open, output } = deaf;
    drop(output);
    gate.open();
    world.wait_until_decided().await?;

    Conversation::begin(&world).await?.buys(&service).await?;
    assert_eq!(gate.count(), 1);
    world.settle_for(PRICE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_connection_breaks_before_the_answer_pays_once_at_the_nodes_port() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    let service = publish_held(&world, &gate).await?;
    let node = &world.consumer;
    farthing(node, &["secret", "create", "agent"]).await?.ok()?;
    let secret = farthing(node, &["secret", "show", "agent"]).await?.ok()?.out;
    let secret = secret.trim();
    select! {
        told = asks_over_http(node, secret, "tools/call", held_call(&service)) => bail!("not held: {told:?}"),
        asked = gate.asked() => asked?,
    }
    // The node has seen the end of that connection before it serves a later one.
    asks_over_http(node, secret, "tools/list", json!({})).await?;
    gate.open();
    world.wait_until_decided().await?;

    let first = bought(&asks_over_http(node, secret, "tools/call", held_call(&service)).await?)?;
    assert_eq!(gate.count(), 1);
    let second = bought(&asks_over_http(node, secret, "tools/call", held_call(&service)).await?)?;
    assert_ne!(first, second, "the agent has that answer");
    world.settle_for(PRICE.saturating_mul(2)).await
}
