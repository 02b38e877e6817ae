//! An agent without a model: a script that an official client of the protocol carries out (`tests/tools/scripted.mjs`).

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use farthing_testnet::{NodeProcess, program};
use farthing_tests::{command::fed, tell::tell};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

/// Far longer than any script takes.
const DEADLINE: Duration = Duration::from_secs(180);

/// An official client of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// `@modelcontextprotocol/sdk` on npm: the versions before 2026-07-28.
    NpmBefore,
    /// `@modelcontextprotocol/client` on npm: version 2026-07-28.
    Npm,
    /// `mcp` on PyPI: version 2026-07-28.
    Python,
    /// LangChain, as `docs/agents.md` connects it.
    LangChain,
    /// LlamaIndex, as `docs/agents.md` connects it.
    LlamaIndex,
}

impl Client {
    const fn script(self) -> &'static str {
        match self {
            Self::NpmBefore => "mcp.mjs",
            Self::Npm => "mcp2.mjs",
            Self::Python => "mcp_client.py",
            Self::LangChain | Self::LlamaIndex => "framework.py",
        }
    }

    /// The name that a document has for a framework.
    const fn framework(self) -> Option<&'static str> {
        match self {
            Self::LangChain => Some("LangChain"),
            Self::LlamaIndex => Some("LlamaIndex"),
            Self::NpmBefore | Self::Npm | Self::Python => None,
        }
    }

    /// The file that is there when the client is installed.
    const fn part(self) -> &'static str {
        match self {
            Self::NpmBefore => "node_modules/@modelcontextprotocol/sdk/package.json",
            Self::Npm => "node_modules/@modelcontextprotocol/client/package.json",
            Self::Python => ".venv/.installed",
            Self::LangChain => "langchain/.venv/.installed",
            Self::LlamaIndex => "llamaindex/.venv/.installed",
        }
    }
}

/// The folder of the tools, if this part of it is installed. `None`, and a loud word, where it is not.
pub fn tools_with(part: &str) -> Result<Option<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
    let part = folder.join(part);
    if part.exists() {
        return Ok(Some(folder));
    }
    let missing = format!("{} is missing: run `make tools-deps`", part.display());
    ensure!(env::var_os("CI").is_none(), "{missing}");
    tell(&format!("\n  SKIPPED: a test with an agent, because {missing}\n"));
    Ok(None)
}

/// An installed client.
#[derive(Debug)]
pub struct Agent {
    folder: PathBuf,
    client: Client,
}

/// An agent that buys with a secret of a node.
#[derive(Debug, Clone, Copy)]
pub struct Instructed<'a> {
    agent: &'a Agent,
    node: &'a NodeProcess,
    door: Door<'a>,
    /// The user's answer to every question; without one the agent's program cannot ask.
    user: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
enum Door<'a> {
    /// `farthing mcp`, with the name of the secret.
    Stdio(&'a str),
    /// The node's port, with the secret itself.
    Http(&'a str),
}

/// What the program said.
#[derive(Debug, Deserialize)]
pub struct Said {
    /// The version of the protocol, if the client tells it.
    pub version: Option<String>,
    pub server: Value,
    pub instructions: String,
    pub tools: Vec<Value>,
    results: Vec<Value>,
    pub questions: Vec<String>,
}

impl Agent {
    /// The client of the versions before 2026-07-28. `None`, and a loud word, where it is not installed.
    pub fn find() -> Result<Option<Self>> {
        Self::with(Client::NpmBefore)
    }

    /// The same with another client.
    pub fn with(client: Client) -> Result<Option<Self>> {
        Ok(tools_with(client.part())?.map(|folder| Self { folder, client }))
    }

    fn command(&self) -> Command {
        let python = |of: &str| Command::new(self.folder.join(of).join(".venv/bin/python"));
        let mut command = match self.client {
            Client::NpmBefore | Client::Npm => Command::new("node"),
            Client::Python => python(""),
            Client::LangChain => python("langchain"),
            Client::LlamaIndex => python("llamaindex"),
        };
        command.arg(self.folder.join(self.client.script())).args(self.client.framework());
        command
    }

    pub fn of_secret<'a>(&'a self, node: &'a NodeProcess, secret: &'a str) -> Instructed<'a> {
        Instructed { agent: self, node, door: Door::Stdio(secret), user: None }
    }

    /// The same at the node's port, which wants the secret itself.
    pub fn over_http<'a>(&'a self, node: &'a NodeProcess, secret: &'a str) -> Instructed<'a> {
        Instructed { agent: self, node, door: Door::Http(secret), user: None }
    }
}

impl Instructed<'_> {
    #[must_use]
    pub fn whose_user_says(mut self, answer: &'static str) -> Self {
        self.user = Some(answer);
        self
    }

    /// Does the steps in order.
    pub async fn does(&self, steps: &[Value]) -> Result<Said> {
        let mut command = self.agent.command();
        match self.door {
            Door::Stdio(name) => {
                command.arg(program("farthing")?).args(["mcp", "--secret", name, "--data"]);
                command.arg(self.node.data_dir());
            }
            Door::Http(secret) => {
                let url = format!("{}/mcp", self.node.status().await?.gateway_url);
                command.arg(url).env("FARTHING_SECRET", secret).env("NO_PROXY", "localhost,127.0.0.1");
                command.env("FARTHING_DATA", self.node.data_dir());
                for trusted in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
                    command.env(trusted, self.node.ca_file());
                }
            }
        }
        let script = json!({ "steps": steps, "user": self.user }).to_string();
        let done = fed(&mut command, script.as_bytes());
        let output = tokio::time::timeout(DEADLINE, done).await.context("the agent hangs")??;
        let err = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the agent failed: {err}");
        serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON: {err}"))
    }
}

impl Said {
    /// The data of a step that went well.
    pub fn data(&self, step: usize) -> Result<&Value> {
        let result = self.result(step)?;
        ensure!(
            result["isError"] != true && result["structuredContent"].is_object(),
            "step {step}: {result}"
        );
        Ok(&result["structuredContent"])
    }

    /// The error of a step that failed.
    pub fn error(&self, step: usize) -> Result<&Value> {
        let result = self.result(step)?;
        ensure!(result["isError"] == true, "step {step}: {result}");
        Ok(&result["structuredContent"]["error"])
    }

    /// What the client said of a step that the protocol refused.
    pub fn refused(&self, step: usize) -> &str {
        self.results.get(step).and_then(|result| result["refused"].as_str()).unwrap_or_default()
    }

    fn result(&self, step: usize) -> Result<&Value> {
        self.results.get(step).with_context(|| format!("there is no step {step}"))
    }
}
