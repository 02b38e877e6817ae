//! What is measured: one consumer, owners of the same service, and two TLS proxies before it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use farthing_control::{endpoint, types::Api};
use farthing_protocol::Usdc;
use farthing_testnet::{
    NodeOptions, NodeProcess,
    demo::{Demo, Setup, earthquakes, metrics, recent_earthquakes},
};
use farthing_tests::proxies::Proxies;
use hyper::Request;
use serde::Serialize;

use crate::{counts::messages_of, load::Target};

/// Beside the demo's own owner of earthquakes.
const MORE_OWNERS: usize = 7;
const PROXIES: usize = 2;

/// How a caller comes to the service's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The service itself.
    Direct,
    /// Through two TLS proxies in a row: what a user would run instead.
    Proxied,
    /// Bought from one owner.
    Paid,
    /// The same by a script of the consumer's machine, which asks without TLS.
    PaidPlain,
    /// Bought from eight owners in turn.
    PaidOfEight,
}

pub struct Market {
    pub demo: Demo,
    more: Vec<(NodeProcess, Api)>,
    /// None where nginx is not installed.
    proxies: Option<Proxies>,
}

/// What both sides counted together.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub commits: u64,
    pub signatures: u64,
}

impl Market {
    /// Starts all of it in `folder`, with eight owners.
    pub async fn open(folder: &Path) -> Result<Self> {
        let mut market = Self::of(folder, None).await?;
        for number in 1..=MORE_OWNERS {
            market.more.push(another_owner(&market.demo, folder.join(format!("owner {number}"))).await?);
        }
        let proxies = Proxies::start(folder, &market.demo.earthquakes.service.url, PROXIES);
        if let Err(error) = &proxies {
            println!("(the two proxies are not measured, because nginx is not installed: {error:#})");
        }
        market.proxies = proxies.ok();
        Ok(market)
    }

    /// Starts one consumer and one owner in `folder`, with another `farthing` than this workspace's if one is named.
    pub async fn of(folder: &Path, program: Option<PathBuf>) -> Result<Self> {
        let mut settings = settings();
        // Builds of before do not know it.
        if program.is_none() {
            settings.push(("gateway.plain".to_owned(), "127.0.0.1:0".to_owned()));
        }
        let setup = Setup {
            funds: Usdc::from_micros(100_000_000_000),
            gateway_port: 0,
            panel_port: 0,
            settings,
            program,
        };
        Ok(Self { demo: Demo::start(folder, setup).await?, more: Vec::new(), proxies: None })
    }

    /// The ways that this machine can measure.
    pub fn ways(&self) -> Vec<Way> {
        let proxied = self.proxies.is_some().then_some(Way::Proxied);
        let paid = [Way::Paid, Way::PaidPlain, Way::PaidOfEight];
        [Way::Direct].into_iter().chain(proxied).chain(paid).collect()
    }

    pub fn targets(&self, way: Way) -> Result<Vec<Target>> {
        let service = &self.demo.earthquakes.service.url;
        let owner = &self.demo.earthquakes.api;
        match way {
            Way::Direct => Ok(vec![Target::new(get(service)?, None)?]),
            Way::Proxied => {
                let proxies = self.proxies.as_ref().context("no proxies run")?;
                Ok(vec![Target::new(get(proxies.url())?, Some(proxies.authority()))?])
            }
            Way::Paid => Ok(vec![self.paid(owner)?]),
            Way::PaidPlain => Ok(vec![self.call(&self.plain_url()?, None, owner)?]),
            Way::PaidOfEight => [owner]
                .into_iter()
                .chain(self.more.iter().map(|(_, api)| api))
                .map(|api| self.paid(api))
                .collect(),
        }
    }

    fn paid(&self, api: &Api) -> Result<Target> {
        let url = format!("{}/internal/call", self.demo.gateway_url);
        self.call(&url, Some(&self.demo.consumer.ca_file()), api)
    }

    fn call(&self, url: &str, authority: Option<&Path>, api: &Api) -> Result<Target> {
        let request = Request::post(url)
            .header("authorization", format!("Bearer {}", self.demo.secret))
            .header("content-type", "application/json")
            .body(recent_earthquakes(api).to_string().into())?;
        Target::new(request, authority)
    }

    /// Where the consumer's node takes calls without TLS, as it says when it has started.
    fn plain_url(&self) -> Result<String> {
        let log = self.demo.consumer.log();
        let url = log.lines().find_map(|line| line.trim().strip_prefix("Plain "));
        Ok(url.context("the consumer names no address without TLS")?.trim().to_owned())
    }

    /// The processes between a caller and the service, by what they are.
    pub fn processes(&self, way: Way) -> Vec<(&'static str, Vec<u32>)> {
        let consumer = self.demo.consumer.pid().into_iter().collect();
        let owner = self.demo.earthquakes.node.pid();
        let others = self.more.iter().filter_map(|(node, _)| node.pid());
        match way {
            Way::Direct => Vec::new(),
            Way::Proxied => {
                vec![("proxies", self.proxies.as_ref().map(Proxies::processes).unwrap_or_default())]
            }
            Way::Paid | Way::PaidPlain => {
                vec![("consumer", consumer), ("owner", owner.into_iter().collect())]
            }
            Way::PaidOfEight => {
                vec![("consumer", consumer), ("owner", owner.into_iter().chain(others).collect())]
            }
        }
    }

    pub fn service(&self) -> Option<u32> {
        self.demo.earthquakes.service.pid()
    }

    pub async fn counters(&self) -> Result<Counters> {
        let nodes = [&self.demo.consumer, &self.demo.earthquakes.node];
        let mut sum = Counters { commits: 0, signatures: 0 };
        for node in nodes.into_iter().chain(self.more.iter().map(|(node, _)| node)) {
            let told = metrics(node).await?;
            let of = |name: &str| told.get(name).copied().with_context(|| format!("no metric {name}"));
            sum.commits += of("farthing_ledger_commits_total")?;
            sum.signatures += of("farthing_signatures_total")?;
        }
        Ok(sum)
    }

    /// Messages that the consumer and the first owner have sent each other, as far as they speak TCP.
    pub async fn messages(&self) -> Result<Option<u64>> {
        let address = self.demo.earthquakes.node.loopback_address().await?;
        let port = address.split('/').find_map(|part| part.parse::<u16>().ok());
        Ok(messages_of(port.context("an address without a port")?))
    }

    pub async fn close(self) -> Result<()> {
        for (mut node, _) in self.more {
            node.stop().await?;
        }
        self.demo.stop().await
    }
}

/// Starts a further owner of the same earthquakes: a node with a wallet of its own that joins through the first.
async fn another_owner(demo: &Demo, folder: PathBuf) -> Result<(NodeProcess, Api)> {
    let first = &demo.earthquakes;
    let mut options = NodeOptions::new(folder).bootstrap([first.node.loopback_address().await?]);
    options.settings = settings();
    let node = NodeProcess::start(&demo.chain, options).await?;
    demo.chain.fund(node.status().await?.address.0, Usdc::ZERO).await?;
    node.wait_until_ready().await?;
    let api = node.control().tell(endpoint::AddApi, &earthquakes(&first.service.url)).await?;
    Ok((node, api))
}

/// Of all nodes: limits that no load of the bench reaches.
fn settings() -> Vec<(String, String)> {
    [
        ("spending.per_day", "100000"),
        ("spending.per_secret_day", "100000"),
        ("spending.deposit_prices", "50000"),
        ("spending.deposit_max", "1000"),
        ("gateway.connections_per_ip_max", "512"),
        ("gateway.connections_max", "512"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn get(base: &str) -> Result<Request<http_body_util::Full<bytes::Bytes>>> {
    Ok(Request::get(format!("{base}{}", crate::rows::path_and_query())).body(bytes::Bytes::new().into())?)
}
