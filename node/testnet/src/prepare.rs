//! `farthing testnet prepare`: makes a market of nodes that something else started, such as
//! `deploy/compose.testnet.yaml`.
//!
//! Look at what is missing, mend it, look again, until nothing is; then keep looking, so that a chain or a node
//! that lost its data is served anew. Nothing is remembered between two looks: chain and nodes are asked each
//! time, so parts may start in any order, and this one may be ended and started again at any moment.

use std::{
    fmt, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use farthing_chain::{
    deploy::{Deployer, dev_account, first_contract_of},
    pay_channels_address,
};
use farthing_control::{
    ControlClient, endpoint,
    types::{Api, ApiState, PingRequest, Pong, ServiceFile, Status},
};
use farthing_values::{Address, Usdc};
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

use super::{
    anvil::Anvil,
    demo::{
        offers::{earthquakes, planets},
        recent_earthquakes,
    },
    rpc,
};

/// The consumer's container, found by its labels: `docker compose` and `docker-compose` name containers differently,
/// and the older one cannot copy files.
const CONSUMER_CONTAINER: &str = "docker ps --quiet --filter label=com.docker.compose.project=farthing-testnet \\
  --filter label=com.docker.compose.service=consumer";

/// Folders of the nodes; what each of them does is decided by its name.
const BOOTSTRAP: &str = "bootstrap";
const NEIGHBOUR: &str = "neighbour";
const EARTHQUAKE_OWNER: &str = "earthquake-owner";
const PLANET_OWNER: &str = "planet-owner";
const CONSUMER: &str = "consumer";

/// A wallet that buys or sells is given this much when it has less than a tenth of it.
const GAS_MONEY_WEI: u128 = 1_000_000_000_000_000_000;
/// So is the consumer's wallet with test USDC: enough for thousands of calls.
const FUNDS: Usdc = Usdc::from_micros(10_000_000);

const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_EVERY_WHEN_READY: Duration = Duration::from_secs(10);
/// A chain or node that takes longer for one question is not there.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Publishing reads the service's description from its server first.
const MENDED_WITHIN: Duration = Duration::from_secs(60);
/// The time after which the program says again what is still missing.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// The places where the parts of the network are.
#[derive(Debug, Clone)]
pub struct Market {
    /// JSON-RPC of an anvil chain.
    pub rpc_url: String,
    /// Folder of the nodes' data folders.
    pub nodes: PathBuf,
    /// Server of the earthquake service, as its owner's node reaches it.
    pub earthquakes_url: String,
    /// Server of the planet service, as its owner's node reaches it.
    pub planets_url: String,
    /// The consumer's gateway, as people reach it: for the lines to paste.
    pub gateway_url: String,
    /// The consumer's console, as people reach it: for the lines to paste.
    pub panel_url: String,
}

/// Something without which nobody can buy or sell.
#[derive(Debug)]
enum Missing {
    Contracts,
    Gas {
        wallet: Address,
    },
    Usdc {
        wallet: Address,
    },
    Service {
        owner: &'static str,
        file: Box<ServiceFile>,
    },
    /// Comes by itself: a container that is still starting.
    Patience(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contracts => f.write_str("the contracts are not deployed"),
            Self::Gas { wallet } => write!(f, "{wallet} has no ETH for gas"),
            Self::Usdc { wallet } => write!(f, "{wallet} has no test USDC"),
            Self::Service { owner, file } => write!(f, "{owner} does not offer “{}”", file.name),
            Self::Patience(what) => f.write_str(what),
        }
    }
}

/// Prepares `market` and keeps it so until a signal. Says once, with lines to paste, that everything is there.
pub async fn prepare(market: &Market) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        never = market.keep_prepared() => match never {},
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Looks once and changes nothing: for health checks.
pub async fn check(market: &Market) -> anyhow::Result<()> {
    let missing = market.look().await;
    ensure!(missing.is_empty(), "not ready yet:{}", lines(&missing));
    Ok(())
}

/// Checks that an HTTP server answers at `url`, whatever it says: for health checks of containers without tools.
pub async fn probe(url: &str) -> anyhow::Result<()> {
    farthing_serve::tls::install_provider();
    let is_http = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    ensure!(is_http, "`{url}` is not the address of an HTTP server; write it like http://host:port/path");
    let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN / 2).build()?;
    client.get(url).send().await.map_err(|error| anyhow::anyhow!("{url} {}", why_no_answer(&error)))?;
    Ok(())
}

/// The cause in words that help whoever reads a health check.
fn why_no_answer(error: &reqwest::Error) -> String {
    let words = anyhow::Chain::new(error).last().map_or_else(String::new, ToString::to_string);
    let is_refusal = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let mut causes = anyhow::Chain::new(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    if error.is_timeout() {
        format!("does not answer within {} s", (ANSWER_WITHIN / 2).as_secs())
    } else if causes.any(is_refusal) {
        "refuses the connection: nothing listens there yet".to_owned()
    } else if error.is_connect() {
        format!("cannot be reached ({words}); check host and port")
    } else {
        format!("answers, but is not an HTTP server ({words})")
    }
}

impl Market {
    async fn keep_prepared(&self) -> std::convert::Infallible {
        let mut was_ready = false;
        let mut said_at: Option<Instant> = None;
        loop {
            let missing = self.look().await;
            let is_ready = missing.is_empty();
            if is_ready && !was_ready {
                match self.what_to_paste().await {
                    Ok(text) => say(&text),
                    Err(error) => {
                        say(&format!(
                            "Everything is ready, but the commands to paste are missing: {error:#}"
                        ));
                    }
                }
            } else if !is_ready && said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) {
                said_at = Some(Instant::now());
                say(&format!("Still missing:{}", lines(&missing)));
            }
            for what in &missing {
                let mending = tokio::time::timeout(MENDED_WITHIN, self.mend(what));
                if let Err(error) = mending.await.map_err(anyhow::Error::from).flatten() {
                    say(&format!("Not fixed yet: {what}: {error:#}"));
                }
            }
            was_ready = is_ready;
            tokio::time::sleep(if is_ready { LOOK_EVERY_WHEN_READY } else { LOOK_EVERY }).await;
        }
    }

    /// Everything that is missing now, in the order in which it can be mended.
    async fn look(&self) -> Vec<Missing> {
        match bounded(self.contracts_are_there()).await {
            Ok(true) => {}
            Ok(false) => return vec![Missing::Contracts],
            Err(error) => return vec![Missing::Patience(format!("chain: {error:#}"))],
        }
        let mut missing = Vec::new();
        for name in [BOOTSTRAP, NEIGHBOUR, EARTHQUAKE_OWNER, PLANET_OWNER, CONSUMER] {
            match bounded(self.look_at(name)).await {
                Ok(found) => missing.extend(found),
                Err(error) => missing.push(Missing::Patience(format!("{name}: {error:#}"))),
            }
        }
        if missing.is_empty() {
            for owner in [EARTHQUAKE_OWNER, PLANET_OWNER] {
                if let Err(error) = bounded(self.consumer_finds(owner)).await {
                    missing.push(Missing::Patience(format!("{CONSUMER} does not find {owner}: {error:#}")));
                }
            }
        }
        missing
    }

    /// The way to the owner's node, and what it offers.
    async fn consumer_finds(&self, owner: &str) -> anyhow::Result<()> {
        let (consumer, api) = (self.node(CONSUMER), self.service(owner).await?);
        let Status { address: wallet, .. } = self.node(owner).ask(endpoint::Status).await?;
        let _: Pong = consumer.tell(endpoint::Ping, &PingRequest { wallet }).await?;
        consumer.ask(endpoint::CatalogService.of(api.id)).await?;
        Ok(())
    }

    async fn contracts_are_there(&self) -> anyhow::Result<bool> {
        Ok(rpc::has_code(&self.rpc_url, token()?).await?
            && rpc::has_code(&self.rpc_url, pay_channels_address()).await?)
    }

    async fn look_at(&self, name: &'static str) -> anyhow::Result<Vec<Missing>> {
        let node = self.node(name);
        let status = node.ask(endpoint::Status).await?;
        let wallet = status.address.0;
        let mut missing = Vec::new();
        let offer = self.offer(name);
        if (offer.is_some() || name == CONSUMER)
            && rpc::eth_of(&self.rpc_url, wallet).await? < GAS_MONEY_WEI / 10
        {
            missing.push(Missing::Gas { wallet });
        }
        if let Some(file) = offer {
            let offered = node.ask(endpoint::Apis).await?;
            if !offered.iter().any(|api| api.name == file.name && api.state != ApiState::Removed) {
                missing.push(Missing::Service { owner: name, file: Box::new(file) });
            }
        }
        if name == CONSUMER {
            let low = Usdc::from_micros(FUNDS.micros() / 10);
            if rpc::usdc_of(&self.rpc_url, token()?, wallet).await? < low {
                missing.push(Missing::Usdc { wallet });
            } else if status.balance.usdc.is_none_or(|seen| seen.0 < low) {
                missing.push(Missing::Patience(format!("{name}: its node has not seen its USDC yet")));
            }
        }
        let health = node.ask_any_status(endpoint::Health).await?;
        if !health.ready {
            missing.push(Missing::Patience(format!("{name}: {}", health.waiting_for.join("; "))));
        }
        Ok(missing)
    }

    async fn mend(&self, missing: &Missing) -> anyhow::Result<()> {
        match missing {
            Missing::Contracts => {
                let deployer = self.deployer().await?;
                if !rpc::has_code(&self.rpc_url, token()?).await? {
                    let made = deployer.test_usdc("USD Coin", deployer.address()).await?;
                    ensure!(made == token()?, "this chain was used for something else; start a new chain");
                }
                deployer.pay_channels().await?;
            }
            Missing::Gas { wallet } => self.deployer().await?.fund_eth(*wallet, GAS_MONEY_WEI).await?,
            Missing::Usdc { wallet } => self.deployer().await?.mint(token()?, *wallet, FUNDS).await?,
            Missing::Service { owner, file } => {
                let api = self.node(owner).within(MENDED_WITHIN).tell(endpoint::AddApi, file).await?;
                say(&format!(
                    "{owner} publishes “{}” for {} USDC a call, as {}.",
                    api.name, api.price, api.id
                ));
            }
            Missing::Patience(_) => {}
        }
        Ok(())
    }

    /// Returns what the node of this name sells.
    fn offer(&self, name: &str) -> Option<ServiceFile> {
        match name {
            EARTHQUAKE_OWNER => Some(earthquakes(&self.earthquakes_url)),
            PLANET_OWNER => Some(planets(&self.planets_url)),
            _ => None,
        }
    }

    fn node(&self, name: &str) -> ControlClient {
        ControlClient::in_folder(&self.nodes.join(name)).within(ANSWER_WITHIN)
    }

    async fn deployer(&self) -> anyhow::Result<Deployer> {
        Ok(Deployer::connect(&self.rpc_url, Anvil::CHAIN_ID, dev_account(0)?).await?)
    }

    async fn service(&self, owner: &str) -> anyhow::Result<Api> {
        let offered = self.node(owner).ask(endpoint::Apis).await?;
        let name = self.offer(owner).context("sells nothing")?.name;
        offered.into_iter().find(|api| api.name == name).with_context(|| format!("{owner}: no “{name}”"))
    }

    async fn what_to_paste(&self) -> anyhow::Result<String> {
        let (quakes, planets) = (self.service(EARTHQUAKE_OWNER).await?, self.service(PLANET_OWNER).await?);
        let (url, body) = (&self.gateway_url, recent_earthquakes(&quakes));
        let console = &self.panel_url;
        let curl = "curl --cacert farthing-ca.pem -H \"Authorization: Bearer $secret\"";
        Ok(format!(
            "Everything is up. The consumer's gateway has a certificate and a secret:\n\n\
             consumer=$({CONSUMER_CONTAINER})\n\
             docker cp \"$consumer:/data/tls/ca.pem\" farthing-ca.pem\n\
             secret=$(docker exec \"$consumer\" farthing secret show)\n\n\
             Then buy:\n\n\
             {curl} \\\n  '{url}/internal/call' \\\n  -d '{body}'\n\n\
             {curl} \\\n  '{url}/services/{}/planets?discoveryMethod=Transit&limit=5'\n\n\
             The consumer's console is at {console}; its set-up code:\n\n\
             docker exec \"$consumer\" farthing console url",
            planets.id
        ))
    }
}

/// The test USDC's address, which the nodes' settings name before it is deployed.
fn token() -> anyhow::Result<Address> {
    Ok(first_contract_of(dev_account(0)?.address()))
}

async fn bounded<T>(question: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(ANSWER_WITHIN, question).await.context("no answer in time")?
}

fn lines(missing: &[Missing]) -> String {
    missing.iter().map(|what| format!("\n  {what}")).collect()
}

#[expect(clippy::print_stdout, reason = "what is missing and what to paste is this command's output")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compose_file_names_the_token_that_is_deployed() {
        let compose = include_str!("../../../deploy/compose.testnet.yaml");
        let token = token().unwrap().to_string();
        assert!(compose.contains(&format!("FARTHING_CHAIN__TOKEN: \"{token}\"")), "{token}");
    }
}
