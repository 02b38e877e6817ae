//! Nodes in a lab, what the owner among them sells, and the books of all of them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use farthing_control::{
    RawAnswer, endpoint,
    types::{Api, Audit, CallRequest, Channel, Charge, HEADER_CHARGED, PingRequest, Reach, Text},
};
use farthing_testnet::{LocalChain, NodeOptions, NodeProcess, anvil::Anvil};
use farthing_values::{Address, Method, Usdc};
use futures::future::try_join_all;

use crate::{
    agreement,
    dht::Dht,
    lab::{
        HomeRouter, Lab, Place,
        line::{Line, LongLine},
        router::PORT,
        script::Script,
    },
    portal::Portal,
    tell::tell,
    upstream::Upstream,
    world::{PRICE, service_file},
};

/// Nodes that all others begin with. Three, because three peers are asked whether a port is open.
const BOOTS: [Place; 3] = [Place::Boot(1), Place::Boot(2), Place::Boot(3)];
/// Where nodes inside reach the chain, and the owner its own server.
pub const CHAIN_PORT: u16 = 8545;
const UPSTREAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const FUNDS: Usdc = Usdc::from_micros(5_000_000);
/// The longest that anything may take when nothing else is said.
pub const PATIENCE: Duration = Duration::from_secs(150);

/// A network with an owner in it. Nodes end before the networks they are in.
#[derive(Debug)]
pub struct Market {
    pub owner: NodeProcess,
    pub consumers: Vec<Consumer>,
    pub upstream: Upstream,
    api: Api,
    owner_wallet: Address,
    home: HomeRouter,
    /// Where nodes listen.
    anywhere: IpAddr,
    boots: Vec<NodeProcess>,
    _dht: Vec<Dht>,
    _portals: [Portal; 2],
    chain: LocalChain,
    _line: Option<Line>,
    _upnp: Option<Script>,
    pub lab: Lab,
    _folder: tempfile::TempDir,
}

/// Somebody who buys.
#[derive(Debug)]
pub struct Consumer {
    pub place: Place,
    pub node: NodeProcess,
    wallet: Address,
}

/// How to make a market.
#[derive(Debug, Default)]
pub struct Setup {
    /// Of the owner, as the environment takes them.
    pub owner: Vec<(&'static str, String)>,
    /// Of everybody.
    pub all: Vec<(&'static str, String)>,
    pub consumers: Vec<Place>,
    /// Nothing arrives at [`Place::Far`] without one.
    pub line: Option<LongLine>,
    /// Whether the owner's router speaks UPnP.
    pub upnp: bool,
    /// What stands before the owner.
    pub home: HomeRouter,
    /// Nobody begins with anybody: where the nodes to begin with would be, there is a DHT of others, and all know its entrance.
    pub are_strangers: bool,
}

impl Market {
    /// Starts everything and waits until the owner's service is published. `None` where there can be no lab.
    pub async fn open(setup: Setup) -> Result<Option<Self>> {
        let far = setup.line.map_or(Place::Far, |long| long.to);
        let Some(lab) = Lab::with_line_to(far)? else { return Ok(None) };
        let line = match setup.line {
            Some(long) => match lab.carry(long)? {
                None => return Ok(None),
                line => line,
            },
            None => None,
        };
        let upnp = match setup.upnp {
            true => match lab.speak_upnp()? {
                None => return Ok(None),
                upnp => upnp,
            },
            false => None,
        };
        lab.put_owner_behind(setup.home)?;
        let is_ipv6 = setup.home == HomeRouter::FirewallOfIpv6;
        let addresses = |place: Place| match place.ipv6().filter(|_| is_ipv6) {
            Some(ip) => addresses_at(ip).to_vec(),
            None => addresses(place),
        };
        let anywhere: IpAddr =
            if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let dht = match setup.are_strangers {
            true => match strange_dht(&lab).await? {
                Some(dht) => dht,
                None => return Ok(None),
            },
            false => Vec::new(),
        };
        let entrance: Vec<&str> = dht.iter().flat_map(|node| &node.addresses).map(String::as_str).collect();
        let known: &[Place] = if setup.are_strangers { &[] } else { &BOOTS };
        let folder = tempfile::tempdir()?;
        let (chain, upstream) = tokio::try_join!(LocalChain::start(), Upstream::start())?;
        let portal = |place, name: &str, listen, server| {
            let (launcher, socket) = (lab.launcher(place), folder.path().join(name));
            async move { Portal::open(&launcher, listen, &socket, server).await }
        };
        let chain_inside = SocketAddr::new(public(BOOTS[0])?.into(), CHAIN_PORT);
        let portals = [
            portal(BOOTS[0], "chain", chain_inside, address_of(&chain.rpc_url())?).await?,
            portal(Place::Owner, "upstream", UPSTREAM, address_of(&upstream.url())?).await?,
        ];

        // Its endpoint has a public address.
        let on_chain = vec![
            ("chain.preset".to_owned(), "custom".to_owned()),
            ("chain.kind".to_owned(), "testnet".to_owned()),
            ("chain.rpc_urls".to_owned(), format!("http://{chain_inside}")),
            ("chain.chain_id".to_owned(), Anvil::CHAIN_ID.to_string()),
            ("chain.token".to_owned(), chain.token.to_string()),
            ("chain.poll_interval_ms".to_owned(), "250".to_owned()),
        ];
        let start = |place: Place, settings: &[(&str, String)]| {
            let mut options = NodeOptions::new(folder.path().join(format!("{place:?}")))
                .bootstrap(known.iter().filter(|boot| **boot != place).flat_map(|boot| addresses(*boot)))
                .set("network.listen", &addresses_at(anywhere).join(","))
                .set("network.allow_private", &false)
                .set("network.rendezvous", &if entrance.is_empty() { "off" } else { "ipfs" })
                .set("network.rendezvous_entrance", &entrance.join(","));
            options.launcher = lab.launcher(place);
            for (key, value) in settings {
                options = options.set(key, value);
            }
            NodeProcess::start_on(on_chain.clone(), options)
        };
        let announced =
            |place| [&setup.all[..], &[("network.announce", addresses(place).join(","))]].concat();
        let boots = known.iter().map(|place| async move { start(*place, &announced(*place)).await });
        let boots = try_join_all(boots);
        let owned = [&setup.all[..], &setup.owner].concat();
        let consumers = setup.consumers.iter().map(|place| start(*place, &setup.all));
        let (boots, owner, nodes) =
            tokio::try_join!(boots, start(Place::Owner, &owned), try_join_all(consumers))?;

        let owner_wallet = owner.status().await?.address.0;
        chain.fund(owner_wallet, Usdc::ZERO).await?;
        let mut consumers = Vec::new();
        for (place, node) in setup.consumers.into_iter().zip(nodes) {
            let wallet = node.status().await?.address.0;
            chain.fund(wallet, FUNDS).await?;
            node.wait_until_ready().await?;
            node.wait_for_usdc(FUNDS).await?;
            consumers.push(Consumer { place, node, wallet });
        }
        owner.wait_until_ready().await?;
        let service = service_file(&format!("http://{UPSTREAM}"), Charge::Success);
        let api = owner.control().tell(endpoint::AddApi, &service).await?;
        Ok(Some(Self {
            owner,
            consumers,
            upstream,
            api,
            owner_wallet,
            home: setup.home,
            anywhere,
            boots,
            _dht: dht,
            _portals: portals,
            chain,
            _line: line,
            _upnp: upnp,
            lab,
            _folder: folder,
        }))
    }

    /// # Panics
    /// When nobody buys there.
    pub fn consumer(&self, place: Place) -> &Consumer {
        self.consumers.iter().find(|consumer| consumer.place == place).expect("the setup has this consumer")
    }

    pub fn nodes(&self) -> impl Iterator<Item = (Place, &NodeProcess)> {
        let consumers = self.consumers.iter().map(|consumer| (consumer.place, &consumer.node));
        [(Place::Owner, &self.owner)].into_iter().chain(BOOTS.into_iter().zip(&self.boots)).chain(consumers)
    }

    /// Starts a consumer's node again at another port, so that no router remembers anything of it.
    pub async fn move_consumer(&mut self, place: Place, port: u16) -> Result<()> {
        let mut consumers = self.consumers.iter_mut();
        let consumer = consumers.find(|consumer| consumer.place == place).context("nobody buys there")?;
        consumer.node.stop().await?;
        if self.home == HomeRouter::FiltersByAddress {
            self.lab.forget_written_to()?;
        }
        let listen = addresses_on(self.anywhere, port).join(",");
        consumer.node.restart(vec![("FARTHING_NETWORK__LISTEN".to_owned(), listen)]).await
    }

    /// Waits until two relays lead to the owner, and returns what it says of them.
    pub async fn wait_for_relays(&self, patience: Duration) -> Result<Reach> {
        let mut said = None;
        let waited = until("the owner has two relays", patience, async || {
            let reach = self.owner.control().ask(endpoint::Reached).await?;
            let relays = reach.relays.len();
            said = Some(reach);
            Ok(relays == 2)
        });
        waited.await.with_context(|| format!("{said:#?}"))?;
        said.context("nothing was said")
    }

    /// The relay through which the consumer is connected to the owner, and its wallet.
    pub async fn relay_to_owner(&self, consumer: &Consumer) -> Result<(Place, String)> {
        let way = self.way_to_owner(consumer).await?;
        for (place, node) in BOOTS.into_iter().zip(&self.boots) {
            if way.starts_with(&format!("/ip4/{}/", public(place)?)) && is_relayed(&way) {
                return Ok((place, node.status().await?.address.to_string()));
            }
        }
        bail!("{way} leads through no node to begin with")
    }

    /// `GET path` under a call id of the test's own.
    pub async fn call(&self, consumer: &Consumer, path: &str, call_id: &str) -> Result<RawAnswer> {
        let request = CallRequest {
            api_id_public: self.api.id,
            path: path.to_owned(),
            method: Text(Method::Get),
            params: BTreeMap::new(),
            body: None,
            body_base64: None,
            headers: BTreeMap::new(),
            max_price: None,
            call_id: Some(call_id.to_owned()),
        };
        Ok(consumer.node.control().tell_raw(endpoint::Call, &request).await?)
    }

    /// Calls until the call is served, always under the same id, and returns how long that took.
    pub async fn call_until_served(
        &self,
        consumer: &Consumer,
        path: &str,
        call_id: &str,
    ) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let answer = self.call(consumer, path, call_id).await?;
            if answer.status.is_success() {
                let charged = answer.headers.get(HEADER_CHARGED).and_then(|value| value.to_str().ok());
                ensure!(charged == Some(&PRICE.to_string()), "charged {charged:?}");
                return Ok(began.elapsed());
            }
            let said = String::from_utf8_lossy(&answer.body);
            ensure!(began.elapsed() < PATIENCE, "{:?} is not served: {said}", consumer.place);
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Where the consumer is connected to the owner.
    pub async fn way_to_owner(&self, consumer: &Consumer) -> Result<String> {
        self.way(consumer).await?.context("the consumer is not connected to the owner")
    }

    /// The same, if it is.
    pub async fn way(&self, consumer: &Consumer) -> Result<Option<String>> {
        let peers = consumer.node.control().ask(endpoint::Peers).await?;
        let owner = peers.into_iter().find(|peer| peer.wallet.0 == self.owner_wallet);
        Ok(owner.map(|peer| peer.address))
    }

    /// The time from the consumer to the owner and back.
    pub async fn round_trip(&self, consumer: &Consumer) -> Result<Duration> {
        let request = PingRequest { wallet: self.owner_wallet.into() };
        let pong = consumer.node.control().tell(endpoint::Ping, &request).await?;
        Ok(Duration::from_micros(pong.rtt_us))
    }

    /// Runs one case and says what it promised and how long it took.
    pub async fn case<T>(&self, promise: &str, case: impl Future<Output = Result<T>>) -> Result<T> {
        let began = Instant::now();
        let value = case.await.with_context(|| format!("{promise}\n{}", self.logs()))?;
        tell(&format!("  nat: {promise} ({} s)", began.elapsed().as_secs()));
        Ok(value)
    }

    /// The end of every log, with the time at which it is read.
    fn logs(&self) -> String {
        const LINES: usize = 60;
        let nodes = self.consumers.iter().map(|consumer| (consumer.place, &consumer.node));
        let tail = |(place, node): (Place, &NodeProcess)| {
            let log = node.log();
            let lines: Vec<&str> = log.lines().collect();
            format!("--- {place:?}\n{}\n", lines[lines.len().saturating_sub(LINES)..].join("\n"))
        };
        [(Place::Owner, &self.owner)].into_iter().chain(nodes).map(tail).collect()
    }

    /// Settles, closes every channel, and compares all books with the chain: `calls` were served and charged.
    pub async fn check_books(&self, calls: u64) -> Result<()> {
        let charged = Usdc::from_micros(PRICE.micros() * calls);
        ensure!(self.upstream.hits() == calls, "{} executions, {calls} calls", self.upstream.hits());
        for consumer in &self.consumers {
            until("every call is decided", PATIENCE, async || {
                Ok(audit(&consumer.node).await?.calls_undecided == 0)
            })
            .await?;
        }
        // After an outage the chain, too, has to be found again.
        let mut refused = String::new();
        let settled = until("the owner settles", PATIENCE, async || {
            let settled = self.owner.control().ask(endpoint::Settle).await;
            refused = settled.as_ref().map_or_else(ToString::to_string, |_| String::new());
            Ok(settled.is_ok())
        });
        settled.await.context(refused)?;
        let mut paid = Usdc::ZERO;
        for Consumer { node, wallet, .. } in &self.consumers {
            close_channels(node).await?;
            let left = self.chain.usdc_of(*wallet).await?;
            paid = FUNDS
                .checked_sub(left)
                .and_then(|loss| paid.checked_add(loss))
                .context("a consumer gained money")?;
            ensure!(audit(node).await?.violations.is_empty(), "{:?}", audit(node).await?.violations);
        }
        for consumer in &self.consumers {
            agreement::check(&[&self.owner, &consumer.node]).await?;
        }
        let gain = self.chain.usdc_of(self.owner_wallet).await?;
        let served = audit(&self.owner).await?;
        ensure!(served.violations.is_empty(), "{:?}", served.violations);
        ensure!(gain == paid && gain == charged, "owner +{gain}, consumers -{paid}, charged {charged}");
        Ok(())
    }
}

/// A DHT of others, one node in each place of those to begin with. `None` where it is not installed.
async fn strange_dht(lab: &Lab) -> Result<Option<Vec<Dht>>> {
    let mut dht: Vec<Dht> = Vec::new();
    for place in BOOTS {
        let known: Vec<String> = dht.iter().flat_map(|node| node.addresses.clone()).collect();
        let ip = public(place)?.to_string();
        let Some(node) = Dht::join(&lab.launcher(place), &ip, 1, &known).await? else { return Ok(None) };
        dht.push(node);
    }
    Ok(Some(dht))
}

/// Looks again and again until `holds`, and returns how long that took.
pub async fn until(
    what: &str,
    patience: Duration,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<Duration> {
    let began = Instant::now();
    while began.elapsed() < patience {
        if holds().await? {
            return Ok(began.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("it did not come true within {} s that {what}", patience.as_secs())
}

/// The nodes to begin with, over QUIC.
pub fn quic_boots() -> Vec<String> {
    BOOTS.iter().flat_map(|boot| addresses(*boot)).filter(|address| address.ends_with("quic-v1")).collect()
}

/// [`PORT`] of a public host, over both transports.
fn addresses(place: Place) -> Vec<String> {
    place.public().map(|ip| addresses_at(ip).to_vec()).unwrap_or_default()
}

/// [`PORT`] of an address, over both transports.
pub fn addresses_at(ip: impl Into<IpAddr>) -> [String; 2] {
    addresses_on(ip.into(), PORT)
}

fn addresses_on(ip: IpAddr, port: u16) -> [String; 2] {
    let family = if ip.is_ipv4() { "ip4" } else { "ip6" };
    [format!("/{family}/{ip}/tcp/{port}"), format!("/{family}/{ip}/udp/{port}/quic-v1")]
}

/// Whether a way to a node leads through a relay.
pub fn is_relayed(way: &str) -> bool {
    way.contains("/p2p-circuit")
}

/// Settings of everybody where nothing changes that has to be noticed: a first test soon, and others rarely.
pub fn tested_soon() -> Vec<(&'static str, String)> {
    vec![
        ("network.upnp", "false".to_owned()),
        ("network.reach_first_ms", "2000".to_owned()),
        ("network.reach_interval_secs", "20".to_owned()),
        ("network.reach_peer_interval_secs", "2".to_owned()),
    ]
}

fn public(place: Place) -> Result<Ipv4Addr> {
    place.public().with_context(|| format!("{place:?} has no public address"))
}

fn address_of(url: &str) -> Result<SocketAddr> {
    Ok(url.strip_prefix("http://").context("no http address")?.parse()?)
}

async fn audit(node: &NodeProcess) -> Result<Audit> {
    Ok(node.control().ask(endpoint::Audit).await?)
}

async fn close_channels(node: &NodeProcess) -> Result<()> {
    let channels = node.control().ask(endpoint::Channels).await?;
    for channel in channels.iter().filter(|channel| !channel.state.is_closed()) {
        let at = endpoint::CloseChannel.of(channel.id);
        let _: Channel = node.control().ask(at).await?;
    }
    until("the channels are closed", PATIENCE, async || {
        let channels = node.control().ask(endpoint::Channels).await?;
        Ok(channels.iter().all(|channel| channel.state.is_closed()))
    })
    .await
    .map(drop)
}
