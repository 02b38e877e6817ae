//! One visit to the DHT: a swarm that is opened for it, enters, asks or is listed, and is dropped.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, Transport,
    connection_limits::{self, ConnectionLimits},
    core::transport::timeout::TransportTimeout,
    identify,
    identity::Keypair,
    kad::{self, GetProvidersOk, QueryId, QueryResult, store::MemoryStore},
    quic,
    swarm::{self, ConnectionId, DialError, NetworkBehaviour, SwarmEvent, dial_opts::DialOpts},
    yamux,
};
use tokio::time::timeout_at;

use super::{Rendezvous, RendezvousNode, client::DhtClient, glimpses::Glimpses};
use crate::{
    BootstrapState, RendezvousEnd, addresses,
    names::Led,
    outbound::{self, TrustedAddresses},
    status::Counters,
    traffic,
};

const DHT_PROTOCOL: StreamProtocol = StreamProtocol::new("/ipfs/kad/1.0.0");
const IDENTIFY_VERSION: &str = "ipfs/0.1.0";
/// An entrance may be a name that leads to several addresses, one after the other.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);
const ENTER_WITHIN: Duration = Duration::from_secs(30);
const QUESTION_WITHIN: Duration = Duration::from_secs(120);
/// Of peers of the DHT, up to three of ten are gone: more questions at once than the usual three.
const QUESTIONS_AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).expect("8 is not zero");
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// An answer may name thousands of nodes; the usual 16 KiB hold some hundred of them.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Entries have no answer: the swarm stays until all have been on their way for so long, and no longer than that.
const ENTRIES_TRAVEL_FOR: Duration = Duration::from_secs(3);
const ENTRIES_TRAVEL_MAX: Duration = Duration::from_secs(20);
/// Addresses of the setting that are dialled.
const ENTRANCES_MAX: usize = 16;
const CONNECTIONS_MAX: u32 = 128;
const CONNECTIONS_PENDING_MAX: u32 = 32;
/// Nodes that are remembered of one answer, as chance has it, so that one that invents thousands does not stand for all; of all
/// answers, to choose from; and addresses of each.
const NAMED_PER_ANSWER_MAX: usize = 64;
const NAMED_MAX: usize = 2048;
const ADDRESSES_PER_ANSWER_MAX: usize = 8;
const ADDRESSES_MAX: usize = 64;
const GLIMPSES_WITHIN: Duration = Duration::from_secs(3);

/// The answers to one question.
pub(super) struct RendezvousAnswers {
    pub(super) named: Vec<RendezvousNode>,
    pub(super) seen: Vec<IpAddr>,
}

/// Asks who is listed, under a key that is thrown away.
pub(super) async fn ask(rendezvous: &Rendezvous) -> Result<RendezvousAnswers, RendezvousEnd> {
    let mut visit = Visit::enter(rendezvous, &Keypair::generate_ed25519()).await?;
    let query = visit.kademlia().get_providers(rendezvous.key.clone());
    if !visit.is_answered(query).await {
        return Err(RendezvousEnd::NoAnswer);
    }
    // Where private addresses count, a node knows its own.
    if !rendezvous.allow_private {
        visit.own_address_shows().await;
    }
    Ok(RendezvousAnswers { seen: visit.glimpses.agreed(), named: visit.named() })
}

/// Has the node listed under its own key with these addresses.
pub(super) async fn list(rendezvous: &Rendezvous, addresses: Vec<Multiaddr>) -> RendezvousEnd {
    let mut visit = match Visit::enter(rendezvous, &rendezvous.keypair).await {
        Ok(visit) => visit,
        Err(failed) => return failed,
    };
    for address in addresses {
        visit.swarm.add_external_address(address);
    }
    let Ok(query) = visit.kademlia().start_providing(rendezvous.key.clone()) else {
        return RendezvousEnd::NoAnswer;
    };
    if !visit.is_answered(query).await {
        return RendezvousEnd::NoAnswer;
    }
    visit.entries_arrive().await;
    RendezvousEnd::Listed
}

#[derive(NetworkBehaviour)]
struct DhtBehaviour {
    limits: connection_limits::Behaviour,
    identify: identify::Behaviour,
    kad: DhtClient,
}

type DhtEvent = SwarmEvent<DhtBehaviourEvent>;

struct Visit {
    swarm: Swarm<DhtBehaviour>,
    led: Led,
    /// The IPs of those that are connected.
    remotes: HashMap<PeerId, IpAddr>,
    glimpses: Glimpses,
    named: BTreeMap<PeerId, BTreeMap<Multiaddr, usize>>,
}

impl Visit {
    /// Opens the swarm, and waits until somebody is connected who belongs to the DHT.
    async fn enter(rendezvous: &Rendezvous, keypair: &Keypair) -> Result<Self, RendezvousEnd> {
        let no_entrance = |reason: String| RendezvousEnd::NoEntrance { reason };
        let led = Led::default();
        let swarm = open(rendezvous, keypair, led.clone()).map_err(no_entrance)?;
        let mut visit = Self {
            swarm,
            led,
            remotes: HashMap::new(),
            glimpses: Glimpses::default(),
            named: BTreeMap::new(),
        };
        visit.through(&rendezvous.entrance).await.map_err(no_entrance)?;
        Ok(visit)
    }

    /// Dials the whole entrance at once. The error is one line.
    async fn through(&mut self, entrance: &[Multiaddr]) -> Result<(), String> {
        let mut tried: HashMap<ConnectionId, &Multiaddr> = HashMap::new();
        let mut reason = "no entrance is configured".to_owned();
        for (address, options) in dials(entrance) {
            let connection = options.connection_id();
            match self.swarm.dial(options) {
                Ok(()) => {
                    tried.insert(connection, address);
                }
                Err(error) => reason = what_came_of(address, &error),
            }
        }
        let deadline = Instant::now() + ENTER_WITHIN;
        let mut is_somebody_there = false;
        loop {
            if tried.is_empty() && !is_somebody_there {
                return Err(reason);
            }
            match self.event_before(deadline).await {
                Some(SwarmEvent::Behaviour(DhtBehaviourEvent::Kad(kad::Event::RoutingUpdated {
                    ..
                }))) => {
                    return Ok(());
                }
                Some(SwarmEvent::ConnectionEstablished { connection_id, .. }) => {
                    tried.remove(&connection_id);
                    is_somebody_there = true;
                    reason = "the entrance answered, but it is not a node of the DHT".to_owned();
                }
                Some(SwarmEvent::OutgoingConnectionError { connection_id, error, .. }) => {
                    if let Some(address) = tried.remove(&connection_id)
                        && !is_somebody_there
                    {
                        reason = what_came_of(address, &error);
                    }
                }
                Some(SwarmEvent::ConnectionClosed { num_established: 0, .. }) => {
                    is_somebody_there = self.swarm.connected_peers().next().is_some();
                }
                Some(_) => {}
                None if is_somebody_there => return Err(reason),
                None => return Err("nobody answers at the entrance".to_owned()),
            }
        }
    }

    /// Takes what comes until the question has ended; false when nobody answered it.
    async fn is_answered(&mut self, query: QueryId) -> bool {
        let deadline = Instant::now() + QUESTION_WITHIN + ANSWER_WITHIN;
        while let Some(event) = self.event_before(deadline).await {
            let SwarmEvent::Behaviour(DhtBehaviourEvent::Kad(kad::Event::OutboundQueryProgressed {
                id,
                result,
                stats,
                step,
            })) = event
            else {
                continue;
            };
            if id != query {
                continue;
            }
            match result {
                QueryResult::GetProviders(Ok(GetProvidersOk::FoundProviders { providers, .. })) => {
                    providers.into_iter().take(NAMED_PER_ANSWER_MAX).for_each(|peer| self.note_named(peer));
                }
                // Nobody was told anything.
                QueryResult::StartProviding(Err(_)) => return false,
                _ => {}
            }
            if step.last {
                return stats.num_successes() > 0;
            }
        }
        !self.named.is_empty()
    }

    /// Remembers who is named, and how many answers gave each address.
    fn note_named(&mut self, peer: PeerId) {
        if self.named.len() >= NAMED_MAX && !self.named.contains_key(&peer) {
            return;
        }
        let addresses = self.swarm.behaviour_mut().kad.addresses_of(peer);
        let known = self.named.entry(peer).or_default();
        for address in addresses.into_iter().take(ADDRESSES_PER_ANSWER_MAX) {
            if known.len() < ADDRESSES_MAX || known.contains_key(&address) {
                *known.entry(address).or_default() += 1;
            }
        }
    }

    /// Everybody who is named, with the addresses that most answers gave first: an entry is kept by twenty nodes, and one of
    /// them that lies about it is one.
    fn named(self) -> Vec<RendezvousNode> {
        let introduced = |(peer, known): (PeerId, BTreeMap<Multiaddr, usize>)| {
            let mut known: Vec<(Multiaddr, usize)> = known.into_iter().collect();
            known.sort_by_key(|(_, answers)| Reverse(*answers));
            RendezvousNode { peer, addresses: known.into_iter().map(|(address, _)| address).collect() }
        };
        self.named.into_iter().map(introduced).collect()
    }

    /// Waits until nobody is being dialled any more to be given an entry, and the last entries had their time.
    async fn entries_arrive(&mut self) {
        let longest = Instant::now() + ENTRIES_TRAVEL_MAX;
        let mut until = Instant::now() + ENTRIES_TRAVEL_FOR;
        while self.event_before(until.min(longest)).await.is_some() {
            if self.swarm.network_info().connection_counters().num_pending() > 0 {
                until = Instant::now() + ENTRIES_TRAVEL_FOR;
            }
        }
    }

    /// Waits until those that are connected have said where they see this node, as they do in a moment.
    async fn own_address_shows(&mut self) {
        let deadline = Instant::now() + GLIMPSES_WITHIN;
        while self.glimpses.agreed().is_empty() && self.event_before(deadline).await.is_some() {}
    }

    /// The next event, noted where it shows how this node is seen.
    async fn event_before(&mut self, deadline: Instant) -> Option<DhtEvent> {
        let event = timeout_at(deadline.into(), self.swarm.select_next_some()).await.ok()?;
        match &event {
            SwarmEvent::ConnectionEstablished { peer_id, endpoint, .. } => {
                let remote = self.led.reached(peer_id, endpoint.get_remote_address());
                if let Some(ip) = addresses::ip(&remote) {
                    self.remotes.insert(*peer_id, ip);
                }
            }
            SwarmEvent::Behaviour(DhtBehaviourEvent::Identify(identify::Event::Received {
                peer_id,
                info,
                ..
            })) => {
                if let (Some(own), Some(observer)) =
                    (addresses::ip(&info.observed_addr), self.remotes.get(peer_id))
                {
                    self.glimpses.note(own, *observer);
                }
            }
            _ => {}
        }
        Some(event)
    }

    fn kademlia(&mut self) -> &mut kad::Behaviour<MemoryStore> {
        self.swarm.behaviour_mut().kad.kademlia()
    }
}

/// A swarm that listens nowhere, and dials public addresses alone, and the entrance. The error is one line.
fn open(rendezvous: &Rendezvous, keypair: &Keypair, led: Led) -> Result<Swarm<DhtBehaviour>, String> {
    let own = keypair.public().to_peer_id();
    let entrance: Arc<[Multiaddr]> = rendezvous.entrance.clone().into();
    let limits = ConnectionLimits::default()
        .with_max_established(Some(CONNECTIONS_MAX))
        .with_max_pending_outgoing(Some(CONNECTIONS_PENDING_MAX))
        .with_max_established_per_peer(Some(1));
    let behaviour = DhtBehaviour {
        limits: connection_limits::Behaviour::new(limits),
        identify: identify::Behaviour::new(
            identify::Config::new(IDENTIFY_VERSION.to_owned(), keypair.public()).with_cache_size(0),
        ),
        kad: DhtClient::new(kademlia(own), Arc::clone(&entrance), rendezvous.allow_private),
    };
    // What passes here is not the network's traffic, and is not counted as such.
    let counters = Arc::new(Counters::default());
    let sockets = traffic::sockets(keypair, yamux::Config::default(), quic::Config::new(keypair), counters)
        .map_err(|_| "the node's key cannot be used there".to_owned())?;
    let guarded = outbound::guarded(sockets, TrustedAddresses::new(&entrance), led, rendezvous.allow_private)
        .map_err(|_| "the system's name resolver cannot be used".to_owned())?;
    let transport = TransportTimeout::new(guarded, CONNECTION_TIMEOUT).boxed();
    let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(QUESTION_WITHIN);
    Ok(Swarm::new(transport, behaviour, own, config))
}

/// A client: it keeps nothing for others, and its questions end.
fn kademlia(own: PeerId) -> kad::Behaviour<MemoryStore> {
    let mut config = kad::Config::new(DHT_PROTOCOL);
    config
        .set_query_timeout(QUESTION_WITHIN)
        .set_parallelism(QUESTIONS_AT_ONCE)
        .set_substreams_timeout(ANSWER_WITHIN)
        .set_max_packet_size(ANSWER_BYTES_MAX)
        .set_record_filtering(kad::StoreInserts::FilterBoth)
        .set_caching(kad::Caching::Disabled)
        .set_replication_interval(None)
        .set_publication_interval(None)
        .set_provider_publication_interval(None)
        .set_periodic_bootstrap_interval(None);
    let mut kademlia = kad::Behaviour::with_config(own, MemoryStore::new(own), config);
    kademlia.set_mode(Some(kad::Mode::Client));
    kademlia
}

/// One dial for each peer of the entrance, and the first of its addresses.
fn dials(entrance: &[Multiaddr]) -> Vec<(&Multiaddr, DialOpts)> {
    let mut named: Vec<(PeerId, Vec<&Multiaddr>)> = Vec::new();
    let mut dials = Vec::new();
    for address in entrance.iter().take(ENTRANCES_MAX) {
        let Some(peer) = addresses::peer(address) else {
            dials.push((address, DialOpts::unknown_peer_id().address(address.clone()).build()));
            continue;
        };
        match named.iter_mut().find(|(other, _)| *other == peer) {
            Some((_, known)) => known.push(address),
            None => named.push((peer, vec![address])),
        }
    }
    for (peer, known) in named {
        let bare = known.iter().map(|address| addresses::without_peer(address)).collect();
        let first = known.first().copied();
        dials.extend(first.map(|first| (first, DialOpts::peer_id(peer).addresses(bare).build())));
    }
    dials
}

/// `/ip4/… refuses the connection`
fn what_came_of(address: &Multiaddr, error: &DialError) -> String {
    match BootstrapState::of(error, None) {
        Some(state) if !matches!(error, DialError::WrongPeerId { .. }) => format!("{address} {state}"),
        _ => format!("{address} answers with another peer id"),
    }
}
