//! `farthing mcp` that ends before its agent has the answer, and is started again: the agent pays once for the same call, and again
//! for a new answer.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use farthing_control::types::{OperationFile, ServiceFile};
use farthing_testnet::program;
use farthing_tests::{
    upstream::Gate,
    world::{PRICE, World},
};
use farthing_values::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

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
        let line = self.output.next_line().await?.context("no answer")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Asks for a call without an id.
    async fn ask(&mut self, service: &str) -> Result<()> {
        let arguments = json!({ "service": service, "method": "GET", "path": "/held", "max_price": "0.002" });
        let params = json!({ "name": "call_service", "arguments": arguments });
        self.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await
    }

    /// Buys a call. Returns its id.
    async fn buys(&mut self, service: &str) -> Result<String> {
        self.ask(service).await?;
        let told = self.answer().await?;
        let bought = &told["result"]["structuredContent"];
        ensure!(bought["body"] == json!({ "held": "no more" }), "{told}");
        Ok(bought["call_id"].as_str().context("no call id")?.to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_program_starts_again_pays_once_for_a_call_whose_answer_was_lost() -> Result<()> {
    let (world, mut gate) = (World::start().await?, Gate::start().await?);
    let held =
        OperationFile { timeout_secs: Some(120), ..OperationFile::named(Method::Get, "/held".to_owned()) };
    let file = ServiceFile {
        name: "Held".to_owned(),
        upstream: gate.url(),
        operations: vec![held],
        ..ServiceFile::priced(PRICE)
    };
    let service = world.publish(&file).await?.id.to_string();

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
