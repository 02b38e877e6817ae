//! One owner, one consumer, one chain and one upstream, as processes, with the money counted.
//!
//! A test starts a [`World`] and does its worst. A world that is dropped compares the books of its nodes, call by call,
//! and holds them against the contract (invariants M2, M3, O1–O6, C1–C4, X1); [`World::settle_and_check`] also brings
//! everything to the chain, where both wallets must agree to the last micro (M4).

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{Api, Channel, ChannelRole, Charge, OperationFile, ServiceFile},
};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_values::{Address, Method, Usdc};
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use crate::{agreement, liar::Liar, line::Line, upstream::Upstream, wait::eventually};

mod blocks;
mod ended;

use ended::Ending;
pub use ended::tail;

pub const PRICE: Usdc = Usdc::from_micros(2_000);
pub const FUNDS: Usdc = Usdc::from_micros(5_000_000);

/// What a test works with.
#[derive(Debug)]
pub struct World {
    pub chain: LocalChain,
    pub owner: NodeProcess,
    pub consumer: NodeProcess,
    pub upstream: Upstream,
    pub api: Api,
    pub owner_wallet: Address,
    pub consumer_wallet: Address,
    pub secret: String,
    /// See [`Setup::has_line`].
    pub line: Option<Line>,
    client: reqwest::Client,
    ending: Ending,
    _folder: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        ended::at_last(&mut self.ending, [&mut self.owner, &mut self.consumer]);
    }
}

/// An answer of port 3000.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: bytes::Bytes,
}

impl Answer {
    /// The body as JSON, `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Last part of the problem's type, empty for an answer of the service.
    pub fn problem(&self) -> String {
        let is_problem = self.header("content-type").starts_with("application/problem+json");
        let kind = self.json()["type"].as_str().unwrap_or_default().to_owned();
        if is_problem { kind.rsplit(':').next().unwrap_or_default().to_owned() } else { String::new() }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// `charged` of a problem.
    pub fn charged(&self) -> Value {
        self.json()["charged"].clone()
    }
}

/// Another build of the node than this workspace's, as [`NodeOptions`] takes it. The default is this workspace's own.
#[derive(Debug, Clone, Default)]
pub struct Build {
    /// Words before the program's name.
    pub launcher: Vec<String>,
    pub program: Option<PathBuf>,
}

impl Build {
    fn run_by(self, options: &mut NodeOptions) {
        options.launcher = self.launcher;
        options.program = self.program;
    }
}

/// How to make a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// USDC the consumer starts with.
    pub funds: Usdc,
    pub owner_settings: Vec<(String, String)>,
    pub consumer_settings: Vec<(String, String)>,
    /// Arguments of both nodes.
    pub arguments: Vec<String>,
    pub charge: Charge,
    /// Another upstream than the test's own.
    pub upstream_url: Option<String>,
    /// What stands between a node and the chain.
    pub owner_endpoint: Option<Arc<Liar>>,
    pub consumer_endpoint: Option<Arc<Liar>>,
    /// The consumer knows the owner by a line that can stall, and not by its own address.
    pub has_line: bool,
    /// Nobody tells the consumer of the owner: the settings of both say how they meet.
    pub are_strangers: bool,
    pub owner_build: Build,
    pub consumer_build: Build,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            funds: FUNDS,
            owner_settings: Vec::new(),
            consumer_settings: Vec::new(),
            arguments: Vec::new(),
            charge: Charge::Success,
            upstream_url: None,
            owner_endpoint: None,
            consumer_endpoint: None,
            has_line: false,
            are_strangers: false,
            owner_build: Build::default(),
            consumer_build: Build::default(),
        }
    }
}

impl World {
    /// A world with a funded consumer.
    pub async fn start() -> Result<Self> {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let chain = LocalChain::start().await?;
        let upstream = Upstream::start().await?;
        let mut options = NodeOptions::new(folder.path().join("owner"));
        // Tests count in single calls; what is too small for an owner is for the tests that ask.
        options.settings = vec![("settlement.channel_min".to_owned(), "0.000001".to_owned())];
        let before = |endpoint: &Arc<Liar>| endpoint.stand_before(chain.rpc_url());
        options.settings.extend(setup.owner_settings);
        options.settings.extend(setup.owner_endpoint.as_ref().map(before));
        options.arguments.clone_from(&setup.arguments);
        setup.owner_build.run_by(&mut options);
        let owner = NodeProcess::start(&chain, options).await?;
        let address = owner.loopback_address().await?;
        let line = if setup.has_line { Some(Line::to(&address).await?) } else { None };
        let known = line.as_ref().map_or(address, |line| line.address().to_owned());
        let known = (!setup.are_strangers).then_some(known);
        let mut options = NodeOptions::new(folder.path().join("consumer")).bootstrap(known);
        options.settings = setup.consumer_settings;
        options.arguments = setup.arguments;
        options.settings.extend(setup.consumer_endpoint.as_ref().map(before));
        setup.consumer_build.run_by(&mut options);
        let consumer = NodeProcess::start(&chain, options).await?;
        let owner_wallet = owner.status().await?.address.0;
        let consumer_wallet = consumer.status().await?.address.0;
        chain.fund(owner_wallet, Usdc::ZERO).await?;
        if !setup.funds.is_zero() {
            chain.fund(consumer_wallet, setup.funds).await?;
        }
        owner.wait_until_ready().await?;
        consumer.wait_until_ready().await?;
        if !setup.funds.is_zero() {
            consumer.wait_for_usdc(setup.funds).await?;
        }
        // No readiness waits for peers, and nobody else would tell the consumer of the service.
        if !setup.are_strangers {
            until_connected(&consumer, owner_wallet).await.context("the consumer's to the owner's")?;
        }
        let url = setup.upstream_url.unwrap_or_else(|| upstream.url());
        let api = owner.control().tell(endpoint::AddApi, &service_file(&url, setup.charge)).await?;
        let secret = consumer.secret().await?;
        let client = consumer.https_client()?;
        Ok(Self {
            chain,
            owner,
            consumer,
            upstream,
            api,
            owner_wallet,
            consumer_wallet,
            secret,
            line,
            client,
            ending: Ending::default(),
            _folder: folder,
        })
    }

    /// The body of a plain call.
    pub fn body(&self, method: &str, path: &str) -> Value {
        json!({ "api_id_public": self.api.id.to_string(), "path": path, "method": method })
    }

    /// `GET path` through port 3000.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.call(&self.body("GET", path)).await
    }

    /// A call with this body through port 3000.
    pub async fn call(&self, body: &Value) -> Result<Answer> {
        self.post(body.to_string(), |request| request).await
    }

    /// Any request to `/internal/call`; `edit` may change what is sent beside the body.
    pub async fn post(
        &self,
        body: impl Into<reqwest::Body>,
        edit: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<Answer> {
        let url = format!("{}/internal/call", self.consumer.status().await?.gateway_url);
        let request = self.client.post(url).bearer_auth(&self.secret).body(body);
        let response = edit(request).send().await?;
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await?,
        })
    }

    /// Publishes a further service of the owner; its calls are made with [`World::call_of`].
    pub async fn publish(&self, file: &ServiceFile) -> Result<Api> {
        Ok(self.owner.control().tell(endpoint::AddApi, file).await?)
    }

    /// `method path` of any service through port 3000.
    pub async fn call_of(&self, api: &Api, method: &str, path: &str) -> Result<Answer> {
        self.call(&json!({ "api_id_public": api.id.to_string(), "path": path, "method": method })).await
    }

    /// A client that trusts the consumer's authority.
    pub const fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Buys so many calls, one after the other, and waits until no call of the consumer is undecided.
    pub async fn buy(&self, calls: u64) -> Result<()> {
        for _ in 0..calls {
            let answer = self.get("/ok").await?;
            ensure!(answer.status.is_success(), "{}: {:?}", answer.status, answer.body);
        }
        self.wait_until_decided().await
    }

    /// Returns the consumer's first channel, as a rule its only one.
    pub async fn channel(&self) -> Result<Channel> {
        let channels = self.consumer.control().ask(endpoint::Channels).await?;
        channels.into_iter().next().context("the consumer has no channel")
    }

    /// Waits until no call of the consumer is undecided.
    pub async fn wait_until_decided(&self) -> Result<()> {
        eventually("every call is decided", async || {
            let audit = self.consumer.control().ask(endpoint::Audit.with("offline", true)).await?;
            Ok(audit.calls_undecided == 0)
        })
        .await
    }

    /// Waits until the nodes are connected. Each restart takes new ports: what restarts before the other knows where it is
    /// now is not found again.
    pub async fn wait_until_met(&self) -> Result<()> {
        until_connected(&self.owner, self.consumer_wallet).await.context("the owner's to the consumer's")?;
        self.wait_until_owner_is_met().await
    }

    /// Waits until the consumer is connected to its owner, which may be another program than the real one.
    pub async fn wait_until_owner_is_met(&self) -> Result<()> {
        until_connected(&self.consumer, self.owner_wallet).await.context("the consumer's to the owner's")
    }

    /// Waits until the consumer has lost its owner, whose program has ended. What is sent while the connection seems to be there
    /// is lost on the way, and nobody can tell that it was not served.
    pub async fn wait_until_owner_is_lost(&self) -> Result<()> {
        eventually("the consumer's node has lost the owner's", async || {
            let peers = self.consumer.control().ask(endpoint::Peers).await?;
            Ok(peers.iter().all(|peer| peer.wallet.0 != self.owner_wallet))
        })
        .await
    }

    /// A node of this world is made to lie: at the end the books differ in this, each difference has one of these words,
    /// and none of the words is missing.
    pub fn expect_differences(&self, words: &[&str]) {
        self.ending.differing(words);
    }

    /// As [`World::settle_and_check`], with a consumer that was given [`FUNDS`]: so much was charged in all.
    pub async fn settle_for(&self, charged: Usdc) -> Result<()> {
        let found = self.settle_and_check(FUNDS).await?;
        ensure!(found == charged, "{found} was charged, and not {charged}");
        Ok(())
    }

    /// Settles, closes the channel, and checks both ledgers and the chain against each other. Returns what was
    /// charged in all.
    pub async fn settle_and_check(&self, funds: Usdc) -> Result<Usdc> {
        // Whatever fails from here on is told by itself.
        self.ending.compared();
        self.wait_until_decided().await?;
        self.owner.control().ask(endpoint::Settle).await?;
        let channels = self.consumer.control().ask(endpoint::Channels).await?;
        let open = channels.iter().find(|channel| channel.deposited.0 > channel.claimed.0);
        if let Some(channel) = open {
            let at = endpoint::CloseChannel.of(channel.id);
            let _: Channel = self.consumer.control().ask(at).await?;
            agreement::until_closed(&self.consumer).await.with_context(|| {
                format!("owner's log:\n{}\nconsumer's log:\n{}", self.owner.log(), self.consumer.log())
            })?;
        }
        agreement::check(&[&self.owner, &self.consumer]).await?;
        let owned = self.owner.control().ask(endpoint::Channels).await?;
        let earned = owned.iter().filter(|channel| channel.role == ChannelRole::Payee);
        let earned = earned.fold(Usdc::ZERO, |sum, channel| sum.saturating_add(channel.spent.0));
        let gain = self.chain.usdc_of(self.owner_wallet).await?;
        let left = self.chain.usdc_of(self.consumer_wallet).await?;
        let loss = funds.checked_sub(left).context("the consumer gained money")?;
        ensure!(gain == loss && gain == earned, "M4: owner +{gain}, consumer -{loss}, charged {earned}");
        for node in [&self.owner, &self.consumer] {
            let audit = node.control().ask(endpoint::Audit).await?;
            ensure!(audit.violations.is_empty(), "violations: {:?}", audit.violations);
        }
        Ok(gain)
    }
}

async fn until_connected(node: &NodeProcess, wallet: Address) -> Result<()> {
    eventually("one node is connected to the other", async || {
        let peers = node.control().ask(endpoint::Peers).await?;
        Ok(peers.iter().any(|peer| peer.wallet.0 == wallet))
    })
    .await
}

/// Every path of [`Upstream`], GET and POST.
pub fn service_file(upstream: &str, charge: Charge) -> ServiceFile {
    let paths = [
        "/ok",
        "/echo",
        "/status/{status}",
        "/slow/{millis}",
        "/large/{bytes}",
        "/html",
        "/redirect",
        "/raw",
    ];
    let operation = |method: Method, path: &str| OperationFile {
        body: method == Method::Post,
        any_params: path == "/ok",
        ..OperationFile::named(method, path.to_owned())
    };
    let gets = paths.iter().map(|path| operation(Method::Get, path));
    let posts = ["/ok", "/echo", "/slow/{millis}"].iter().map(|path| operation(Method::Post, path));
    ServiceFile {
        name: "Test service".to_owned(),
        upstream: upstream.to_owned(),
        charge,
        operations: gets.chain(posts).collect(),
        ..ServiceFile::priced(PRICE)
    }
}
