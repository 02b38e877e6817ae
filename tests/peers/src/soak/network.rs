//! The nodes of a soak: owners with a server each, consumers with money, every node behind a proxy to the chain.
//!
//! Ports are chosen before a node starts and stay its own, so that it is found where it was when it is killed and starts again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use farthing_control::{
    endpoint,
    types::{Charge, ServiceFile},
};
use farthing_protocol::{Address, ServiceId, Usdc};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess};
use farthing_tests::{
    calls::free_port,
    chain_proxy::Proxy,
    upstream::Upstream,
    world::{service_file, tail},
};

use super::{load::Gate, plan::Plan};

/// More than any soak spends.
const FUNDS: Usdc = Usdc::from_micros(1_000_000_000);
/// Nodes that everybody begins with.
const BOOTS: usize = 3;
/// Every so many nodes there is an index node; the others keep a few shards.
const INDEX_EVERY: usize = 3;
/// Of all nodes. The owner claims often and whatever a claim costs, so that channels are claimed on and filled up all the time.
const SETTINGS: [(&str, &str); 6] = [
    ("chain.poll_interval_ms", "1000"),
    ("spending.per_day", "100000"),
    ("spending.per_secret_day", "100000"),
    ("settlement.interval_secs", "15"),
    ("settlement.claim_min", "0.05"),
    ("settlement.claim_gas_factor", "0"),
];

/// What an owner has beside its node.
#[derive(Debug)]
pub struct Sells {
    pub service: ServiceId,
    pub upstream: Upstream,
}

/// One node and what is around it.
#[derive(Debug)]
pub struct Member {
    pub name: String,
    pub node: NodeProcess,
    pub wallet: Address,
    /// Where other nodes reach it, with its identity.
    pub address: String,
    pub panel_port: u16,
    /// The only way from this node to the chain.
    pub chain: Proxy,
    /// `None` for a consumer.
    pub sells: Option<Sells>,
    /// Ended by the soak, and to be started again.
    pub is_down: bool,
    pub restarts: u32,
}

impl Member {
    pub fn funds(&self) -> Usdc {
        if self.sells.is_some() { Usdc::ZERO } else { FUNDS }
    }

    pub fn data(&self) -> &Path {
        self.node.data_dir()
    }

    /// Ends the process as a power cut would.
    pub async fn kill(&mut self) -> Result<()> {
        self.is_down = true;
        self.node.kill().await
    }

    /// Starts the node again on the same data.
    pub async fn start_again(&mut self) -> Result<()> {
        self.node.restart(Vec::new()).await.with_context(|| format!("{} starts again", self.name))?;
        self.is_down = false;
        self.restarts += 1;
        Ok(())
    }

    /// The process id, unless the soak has ended the node.
    pub fn process(&mut self) -> Result<Option<u32>> {
        if self.is_down {
            return Ok(None);
        }
        let has_ended = self.node.has_ended();
        let process = self.node.pid().filter(|_| !has_ended);
        process.with_context(|| format!("{} has ended by itself:\n{}", self.name, tail(&self.node))).map(Some)
    }
}

/// All nodes on one chain. They end before their folders.
#[derive(Debug)]
pub struct Network {
    pub members: Vec<Member>,
    pub chain: LocalChain,
    folder: tempfile::TempDir,
}

impl Network {
    /// Starts all nodes, funds them, and has every owner publish its service.
    pub async fn start(plan: &Plan) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let chain = LocalChain::start().await?;
        let ports = (0..plan.nodes()).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
        let mut network = Self { members: Vec::new(), chain, folder };
        for number in 0..plan.nodes() {
            let name = match number.checked_sub(plan.owners) {
                None => format!("owner-{}", number + 1),
                Some(number) => format!("consumer-{}", number + 1),
            };
            let data = network.folder.path().join(&name);
            let member = network.join(name, data, number, &ports).await?;
            network.members.push(member);
        }
        for (number, member) in network.members.iter_mut().enumerate() {
            network.chain.fund(member.wallet, if number < plan.owners { Usdc::ZERO } else { FUNDS }).await?;
            member.node.wait_until_ready().await?;
            if number < plan.owners {
                member.sells = Some(publish(&member.name, &member.node).await?);
            } else {
                member.node.wait_for_usdc(FUNDS).await?;
            }
        }
        Ok(network)
    }

    async fn join(&self, name: String, data: PathBuf, number: usize, ports: &[u16]) -> Result<Member> {
        let at = |port: &u16| format!("/ip4/127.0.0.1/tcp/{port}");
        let port = ports.get(number).context("a port for each node")?;
        let others = ports.iter().take(BOOTS).filter(|other| *other != port);
        let chain = Proxy::before(&self.chain.rpc_url()).await?;
        let mut options = NodeOptions::new(data)
            .bootstrap(others.map(at))
            .set("network.listen", &format!("{},/ip4/127.0.0.1/udp/{port}/quic-v1", at(port)))
            .set("chain.rpc_urls", &chain.url())
            .set("catalog.shards", &if number.is_multiple_of(INDEX_EVERY) { "all" } else { "4" });
        for (key, value) in SETTINGS {
            options = options.set(key, &value);
        }
        (options.gateway_port, options.panel_port) = (free_port()?, free_port()?);
        let panel_port = options.panel_port;
        let node = NodeProcess::start(&self.chain, options).await?;
        let (status, address) = (node.status().await?, node.loopback_address().await?);
        Ok(Member {
            name,
            node,
            wallet: status.address.0,
            address,
            panel_port,
            chain,
            sells: None,
            is_down: false,
            restarts: 0,
        })
    }

    pub fn consumers(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.sells.is_none())
    }

    pub fn owners(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.sells.is_some())
    }

    pub fn nodes(&self) -> Vec<&NodeProcess> {
        self.members.iter().map(|member| &member.node).collect()
    }

    /// The ways of scripts into every consumer's node.
    pub async fn gates(&self) -> Result<Vec<Gate>> {
        let services: Vec<ServiceId> =
            self.owners().filter_map(|owner| owner.sells.as_ref()).map(|sells| sells.service).collect();
        let mut gates = Vec::new();
        for Member { name, node, .. } in self.consumers() {
            gates.push(Gate {
                name: name.clone(),
                url: format!("{}/internal/call", node.status().await?.gateway_url),
                secret: node.secret().await?,
                client: node.https_client()?,
                services: services.clone(),
            });
        }
        Ok(gates)
    }

    /// Waits until every node can buy and sell.
    pub async fn wait_until_ready(&self) -> Result<()> {
        for member in &self.members {
            member.node.wait_until_ready().await?;
        }
        Ok(())
    }

    /// Stops all nodes in good order.
    pub async fn stop(&mut self) -> Result<()> {
        for Member { name, node, .. } in &mut self.members {
            node.stop().await.with_context(|| format!("{name} stops"))?;
        }
        Ok(())
    }
}

async fn publish(name: &str, node: &NodeProcess) -> Result<Sells> {
    let upstream = Upstream::start().await?;
    let file =
        ServiceFile { name: format!("Tides of {name}"), ..service_file(&upstream.url(), Charge::Success) };
    let service = node.control().tell(endpoint::AddApi, &file).await?.id.0;
    Ok(Sells { service, upstream })
}
