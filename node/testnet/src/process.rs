//! Nodes and services as child processes, on free ports of the loopback interface.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use farthing_control::{ControlClient, endpoint, types::Status};
use farthing_os::file_names;
use farthing_values::Usdc;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStderr, Command},
};

use super::{anvil::Anvil, chain::LocalChain};

/// The longest time that anything may take to come up: many times what it takes, also for a node in an emulator.
const UP_WITHIN: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const STOP_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    pub data_dir: PathBuf,
    /// Multiaddresses to join through.
    pub bootstrap: Vec<String>,
    pub gateway_port: u16,
    pub panel_port: u16,
    /// Further settings: `section.key` and value, as the environment takes them.
    pub settings: Vec<(String, String)>,
    pub environment: Vec<(String, String)>,
    /// Further arguments of `farthing run`.
    pub arguments: Vec<String>,
    /// Words before the program's name, for instance `ip netns exec lab`. They must become the program, as
    /// `exec` does, so that ending the process ends the node.
    pub launcher: Vec<String>,
    /// The `farthing` that runs; the one of this workspace when it is none.
    pub program: Option<PathBuf>,
}

impl NodeOptions {
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), ..Self::default() }
    }

    #[must_use]
    pub fn bootstrap(mut self, addresses: impl IntoIterator<Item = String>) -> Self {
        self.bootstrap.extend(addresses);
        self
    }

    #[must_use]
    pub fn set(mut self, key: &str, value: &impl ToString) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }
}

#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    options: NodeOptions,
    chain: Vec<(String, String)>,
    control: ControlClient,
}

impl NodeProcess {
    /// Starts a node on `chain` and waits until it answers on its control socket.
    pub async fn start(chain: &LocalChain, options: NodeOptions) -> anyhow::Result<Self> {
        let chain = vec![
            ("chain.preset".to_owned(), "local".to_owned()),
            ("chain.rpc_urls".to_owned(), chain.rpc_url()),
            ("chain.chain_id".to_owned(), Anvil::CHAIN_ID.to_string()),
            ("chain.token".to_owned(), chain.token.to_string()),
            ("chain.poll_interval_ms".to_owned(), "100".to_owned()),
        ];
        Self::start_on(chain, options).await
    }

    /// The same with the chain's settings given.
    pub async fn start_on(chain: Vec<(String, String)>, options: NodeOptions) -> anyhow::Result<Self> {
        let child = spawn(&chain, &options)?;
        let control = ControlClient::in_folder(&options.data_dir);
        let mut node = Self { child, options, chain, control };
        node.wait_until_up().await?;
        Ok(node)
    }

    pub const fn control(&self) -> &ControlClient {
        &self.control
    }

    pub fn data_dir(&self) -> &Path {
        &self.options.data_dir
    }

    pub async fn status(&self) -> anyhow::Result<Status> {
        Ok(self.control.ask(endpoint::Status).await?)
    }

    /// The secret of port 3000.
    pub async fn secret(&self) -> anyhow::Result<String> {
        Ok(self.control.ask(endpoint::Secret).await?.secret)
    }

    /// The authority that signed port 3000's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.options.data_dir.join(file_names::TLS).join(file_names::CA)
    }

    /// A client of port 3000 that trusts this node's authority and nothing else.
    pub fn https_client(&self) -> anyhow::Result<reqwest::Client> {
        farthing_serve::tls::install_provider();
        let pem = std::fs::read(self.ca_file()).context("the node's certificate authority")?;
        let ca = reqwest::Certificate::from_pem(&pem)?;
        Ok(reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build()?)
    }

    /// Returns the address at which this machine's other nodes reach it over TCP.
    pub async fn loopback_address(&self) -> anyhow::Result<String> {
        let status = self.status().await?;
        let tcp = status.addresses.iter().find(|a| a.starts_with("/ip4/127.0.0.1/tcp/"));
        tcp.cloned().with_context(|| format!("no loopback address among {:?}", status.addresses))
    }

    /// The further settings that it was started with.
    pub fn settings(&self) -> &[(String, String)] {
        &self.options.settings
    }

    /// Waits until the node can buy and sell.
    pub async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let mut waiting_for = Vec::new();
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            match self.control.ask_any_status(endpoint::Health).await {
                Ok(health) if health.ready => return Ok(()),
                Ok(health) => waiting_for = health.waiting_for,
                Err(error) => waiting_for = vec![error.to_string()],
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("{} is not ready: {}", self.options.data_dir.display(), waiting_for.join("; "))
    }

    /// Waits until the wallet's balance shows at least this much.
    pub async fn wait_for_usdc(&self, at_least: Usdc) -> anyhow::Result<()> {
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            let balance = self.control.ask(endpoint::Wallet).await?;
            if balance.usdc.is_some_and(|usdc| usdc.0 >= at_least)
                && balance.eth.is_some_and(|eth| eth.0.wei > 0)
            {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("{at_least} USDC did not arrive at {}", self.options.data_dir.display())
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for the process to end by itself.
    pub async fn wait_until_ended(&mut self) -> anyhow::Result<()> {
        tokio::time::timeout(STOP_WITHIN, self.child.wait())
            .await
            .context("the node did not stop in time")??;
        Ok(())
    }

    /// Ends the process as a power cut would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the node could not be killed")
    }

    /// Asks the node to end (SIGTERM), and waits for nothing.
    pub fn ask_to_stop(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::TERM)
    }

    /// Asks the node to read its settings again (SIGHUP), and waits for nothing.
    pub fn ask_to_read_again(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::HUP)
    }

    /// Has the process do nothing any more (SIGSTOP): its connections stay open, and nobody answers on them.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::STOP)
    }

    /// Has a frozen process go on (SIGCONT).
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::CONT)
    }

    fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let id = self.child.id().context("the process has ended already")?;
        let pid = rustix::process::Pid::from_raw(i32::try_from(id)?).context("no such process")?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Asks the node to end (SIGTERM) and waits for it.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.ask_to_stop()?;
        self.wait_until_ended().await
    }

    /// Starts the node again on the same data, with other environment variables; one that still runs is killed first.
    pub async fn restart(&mut self, environment: Vec<(String, String)>) -> anyhow::Result<()> {
        if !self.has_ended() {
            self.kill().await?;
        }
        self.options.environment = environment;
        self.child = spawn(&self.chain, &self.options)?;
        self.wait_until_up().await
    }

    /// The same, and waits until it can buy and sell.
    pub async fn restart_until_ready(&mut self, environment: Vec<(String, String)>) -> anyhow::Result<()> {
        self.restart(environment).await?;
        self.wait_until_ready().await
    }

    /// Reads what the node has written to its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(log_file(&self.options.data_dir)).unwrap_or_default()
    }

    async fn wait_until_up(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            ensure!(!self.has_ended(), "the node ended while starting:\n{}", self.log());
            if self.control.ask(endpoint::Status).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        bail!("the node did not start in time:\n{}", self.log())
    }
}

fn spawn(chain: &[(String, String)], options: &NodeOptions) -> anyhow::Result<Child> {
    std::fs::create_dir_all(&options.data_dir)?;
    let log = std::fs::File::options().create(true).append(true).open(log_file(&options.data_dir))?;
    let program = options.program.clone().map_or_else(|| program("farthing"), Ok)?;
    let mut command = launched(&options.launcher, &program);
    command.arg("run").arg("--data").arg(&options.data_dir).args(&options.arguments);
    match options.program {
        None => command.arg("--new"),
        // A build of before knows no `--new`. Each makes a wallet without where it has a container to itself.
        Some(_) => command.env("FARTHING_CONTAINER", "true"),
    };
    let fixed = [
        ("gateway.listen".to_owned(), format!("127.0.0.1:{}", options.gateway_port)),
        ("panel.listen".to_owned(), format!("127.0.0.1:{}", options.panel_port)),
        ("network.listen".to_owned(), "/ip4/127.0.0.1/tcp/0,/ip4/127.0.0.1/udp/0/quic-v1".to_owned()),
        ("network.allow_private".to_owned(), "true".to_owned()),
        ("network.bootstrap".to_owned(), options.bootstrap.join(",")),
    ];
    for (key, value) in fixed.iter().chain(chain).chain(&options.settings) {
        if !value.is_empty() {
            command.env(environment_name(key), value);
        }
    }
    command
        // As the unit and the image of a release have it.
        .env("MALLOC_ARENA_MAX", "2")
        .envs(options.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true);
    command.spawn().context("the node could not be started")
}

/// `program`, started by `launcher` when that is not empty.
pub fn launched(launcher: &[String], program: &Path) -> Command {
    let mut words = launcher.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or(program.as_os_str()));
    command.args(words);
    command
}

/// `section.key` → `FARTHING_SECTION__KEY`
fn environment_name(key: &str) -> String {
    format!("FARTHING_{}", key.replace('.', "__").to_uppercase())
}

fn log_file(data_dir: &Path) -> PathBuf {
    data_dir.join(file_names::LOG)
}

/// A demo service in a process of its own.
#[derive(Debug)]
pub struct ServiceProcess {
    child: Child,
    pub url: String,
    /// The newest lines of its log.
    log: Arc<Mutex<VecDeque<String>>>,
}

impl ServiceProcess {
    /// Starts `name` on a free port.
    pub async fn start(name: &str) -> anyhow::Result<Self> {
        Self::start_on(name, 0, []).await
    }

    /// Starts `name` on a port of this machine, where 0 takes a free one, with more arguments.
    pub async fn start_on(
        name: &str,
        port: u16,
        arguments: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        let mut child = Command::new(program(name)?)
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(arguments.into_iter().flat_map(|(flag, value)| [flag.into(), value]))
            .stdin(Stdio::null())
            .env("RUST_LOG", "info,graphql=debug")
            .env("NO_COLOR", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} could not be started"))?;
        let log = follow(child.stderr.take().context("no log")?);
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let line = tokio::time::timeout(UP_WITHIN, lines.next_line()).await??;
        let line = line.with_context(|| format!("{name} ended while starting"))?;
        let url =
            line.strip_prefix("listening on ").with_context(|| format!("{name} says: {line}"))?.to_owned();
        Ok(Self { child, url, log })
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for `mark` in the log, and returns what follows it in the newest line that has it.
    pub async fn last_line_with(&self, mark: &str) -> Option<String> {
        let until = tokio::time::Instant::now() + UP_WITHIN;
        while tokio::time::Instant::now() < until {
            if let Some(rest) = self.logged(mark) {
                return Some(rest);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }

    fn logged(&self, mark: &str) -> Option<String> {
        let log = self.log.lock();
        log.iter().rev().find_map(|line| line.split_once(mark)).map(|(_, rest)| rest.to_owned())
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Ends the service at once.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the service could not be killed")
    }
}

/// Keeps the newest lines of what a child writes, so that it never waits for a reader.
fn follow(log: ChildStderr) -> Arc<Mutex<VecDeque<String>>> {
    const LINES_KEPT: usize = 200;
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let writer = kept.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(log).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = writer.lock();
            if kept.len() == LINES_KEPT {
                kept.pop_front();
            }
            kept.push_back(line);
        }
    });
    kept
}

/// A program of this workspace: beside the running one, or one folder up when that is a test.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
        .with_context(|| {
            format!(
                "{name} is not beside this program: it comes only with the source, where `cargo build --workspace` \
                 builds it. Without the source, start on a public network with test money: `farthing init --chain \
                 base-sepolia`"
            )
        })
}
