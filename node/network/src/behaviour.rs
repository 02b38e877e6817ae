//! The swarm: transports, and the behaviours that share its connections.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use farthing_protocol::wire::NetworkName;
use libp2p::{
    PeerId, StreamProtocol, Swarm, Transport as _,
    connection_limits::{self, ConnectionLimits},
    core::{transport::timeout::TransportTimeout, upgrade::Version},
    identify,
    identity::Keypair,
    mdns, memory_connection_limits, ping, quic,
    swarm::{self, NetworkBehaviour, behaviour::toggle::Toggle},
    yamux,
};

use crate::{
    NetworkConfig, NetworkError, NetworkLimits, gate, gossip, handshakes, keep,
    listed::ListedBehaviour,
    memory_limit,
    names::{self, Led},
    outbound::{self, TrustedAddresses},
    partners::Partners,
    portmap,
    relay::{self, PunchBehaviour, RelayClientBehaviour, RelayServerBehaviour},
    status::Counters,
    streams::{Accept, StreamsBehaviour},
    traffic,
    usage::Usage,
};

/// The one bound of a handshake, over whatever transport. Over a slow line it takes a second or two.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(6);
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const IDENTIFY_INTERVAL: Duration = Duration::from_secs(3600);
/// Connections of one peer that are being closed because a newer one came.
const CLOSING_PER_PEER_MAX: u32 = 2;
/// Connections and handshakes that are being closed because others came.
const CLOSING_MAX: u32 = 32;
/// Streams of one connection, open or being negotiated.
const STREAMS_MAX: usize = 256;
/// QUIC windows per stream and connection. Bodies are read in pieces, so more would only be memory.
const QUIC_STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const QUIC_CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Everything that happens on a connection. Limits and the gate come first: what they deny, the others
/// never see.
#[derive(NetworkBehaviour)]
pub(crate) struct NodeBehaviour {
    pub(crate) limits: connection_limits::Behaviour,
    pub(crate) memory: Toggle<memory_connection_limits::Behaviour>,
    pub(crate) gate: gate::GateBehaviour,
    pub(crate) keep: keep::KeepAliveBehaviour,
    pub(crate) identify: names::IdentifyBehaviour,
    pub(crate) ping: ping::Behaviour,
    pub(crate) directory: StreamsBehaviour,
    pub(crate) call: StreamsBehaviour,
    pub(crate) call_stream: StreamsBehaviour,
    pub(crate) info: StreamsBehaviour,
    pub(crate) sync: StreamsBehaviour,
    pub(crate) shard_sync: StreamsBehaviour,
    pub(crate) agreement: StreamsBehaviour,
    pub(crate) gossip: Toggle<gossip::GossipBehaviour>,
    pub(crate) reach: StreamsBehaviour,
    pub(crate) portmap: Toggle<portmap::PortMappingBehaviour>,
    pub(crate) relay: RelayServerBehaviour,
    pub(crate) relay_client: RelayClientBehaviour,
    pub(crate) punch: PunchBehaviour,
    pub(crate) mdns: Toggle<mdns::tokio::Behaviour>,
}

/// The swarm of a node.
pub(crate) type NodeSwarm = Swarm<ListedBehaviour<NodeBehaviour>>;

/// The handlers of the streams that peers open, by protocol.
pub(crate) struct Accepts {
    pub(crate) directory: Accept,
    pub(crate) call: Accept,
    pub(crate) call_stream: Accept,
    pub(crate) info: Accept,
    pub(crate) sync: Accept,
    pub(crate) shard_sync: Accept,
    pub(crate) agreement: Accept,
    pub(crate) reach: Accept,
}

/// Whom connections belong to, which of them do something, and whose addresses are vouched for.
pub(crate) struct Crowd {
    pub(crate) partners: Partners,
    pub(crate) usage: Usage,
    pub(crate) vouched: TrustedAddresses,
}

/// Builds the swarm. It listens nowhere and knows nobody yet.
pub(crate) fn build(
    config: &NetworkConfig,
    keypair: &Keypair,
    topics: &gossip::Topics,
    accept: Accepts,
    counters: Arc<Counters>,
    crowd: Crowd,
) -> Result<NodeSwarm, NetworkError> {
    let Crowd { partners, usage, vouched } = crowd;
    let own = keypair.public().to_peer_id();
    let led = Led::default();
    let (circuits, relay_client) =
        relay::circuits(keypair, yamux_config(), led.clone()).map_err(|_| NetworkError::Key)?;
    let network = &config.network;
    let streams = |name: String, accept: Accept| {
        protocol(network, name).map(|protocol| StreamsBehaviour::new(protocol, accept, usage.clone()))
    };
    let behaviour = NodeBehaviour {
        limits: connection_limits::Behaviour::new(connection_limits(&config.limits)),
        memory: memory_limit::connection_bytes_max()
            .map(memory_connection_limits::Behaviour::with_max_bytes)
            .into(),
        gate: gate::GateBehaviour::new(&config.limits, partners.clone(), usage.clone()),
        keep: keep::KeepAliveBehaviour::new(config.limits.connection_kept),
        identify: names::IdentifyBehaviour::new(identify_config(config, keypair), led.clone()),
        ping: ping::Behaviour::new(
            ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_TIMEOUT),
        ),
        directory: streams(network.kad_protocol(), accept.directory)?,
        call: streams(network.call_protocol(), accept.call)?.keeping(config.limits.connection_kept),
        call_stream: streams(network.call_stream_protocol(), accept.call_stream)?
            .keeping(config.limits.connection_kept)
            .taking_turns(),
        info: streams(network.info_protocol(), accept.info)?,
        sync: streams(network.sync_protocol(), accept.sync)?,
        shard_sync: streams(network.shard_sync_protocol(), accept.shard_sync)?,
        agreement: streams(network.agreement_protocol(), accept.agreement)?,
        gossip: gossip::behaviour(config, topics)?,
        reach: streams(network.reach_protocol(), accept.reach)?,
        portmap: config.reach.upnp.then(portmap::PortMappingBehaviour::default).into(),
        relay: RelayServerBehaviour::new(own, &config.relay, partners, usage, Arc::clone(&counters)),
        relay_client,
        punch: PunchBehaviour::new(own),
        mdns: neighbourhood(own, config.mdns),
    };
    let quic = quic_config(quic::Config::new(keypair));
    let transport = traffic::sockets(keypair, yamux_config(), quic, Arc::clone(&counters))
        .map_err(|_| NetworkError::Key)?;
    #[cfg(feature = "memory")]
    let transport = crate::memory::beside(transport, keypair, yamux_config(), config.allow_private, counters)
        .map_err(|_| NetworkError::Key)?;
    let transport = outbound::guarded(transport, vouched, led, config.allow_private)
        .map_err(|source| NetworkError::Resolver { source })?;
    // A relay itself is dialled as everybody else is, behind the check.
    let transport = circuits.or_transport(transport).map(|either, _| either.into_inner()).boxed();
    let swarm_config = swarm::Config::with_tokio_executor()
        .with_idle_connection_timeout(config.limits.contact_idle_max)
        .with_substream_upgrade_protocol_override(Version::V1Lazy)
        .with_max_negotiating_inbound_streams(STREAMS_MAX)
        .with_notify_handler_buffer_size(NonZeroUsize::new(32).expect("32 is not zero"));
    let transport = handshakes::bounded(transport, &config.limits);
    let transport = TransportTimeout::new(transport, CONNECTION_TIMEOUT).boxed();
    Ok(Swarm::new(transport, ListedBehaviour::of(behaviour), own, swarm_config))
}

fn protocol(network: &NetworkName, name: String) -> Result<StreamProtocol, NetworkError> {
    StreamProtocol::try_from_owned(name).map_err(|_| NetworkError::Network(network.to_string()))
}

fn connection_limits(limits: &NetworkLimits) -> ConnectionLimits {
    // So many of a peer may come through relays, and as many directly beside them.
    let per_peer_max = 2 * limits.connections_per_peer_max + CLOSING_PER_PEER_MAX;
    // The gate keeps to the limit by closing what does nothing, which takes a moment.
    ConnectionLimits::default()
        .with_max_established(Some(limits.connections_max + CLOSING_MAX))
        .with_max_established_per_peer(Some(per_peer_max))
        .with_max_pending_incoming(Some(limits.connections_pending_max + CLOSING_MAX))
        .with_max_pending_outgoing(Some(limits.connections_pending_max))
}

fn identify_config(config: &NetworkConfig, keypair: &Keypair) -> identify::Config {
    identify::Config::new(config.network.identify_version(), keypair.public())
        .with_agent_version(config.agent.clone())
        .with_interval(IDENTIFY_INTERVAL)
        .with_push_listen_addr_updates(true)
        .with_cache_size(0)
        // What a public node's interfaces are called concerns nobody; it shows what it announces.
        .with_hide_listen_addrs(!config.allow_private)
}

/// Looking around in the local network. A system without multicast does without.
fn neighbourhood(own: PeerId, wanted: bool) -> Toggle<mdns::tokio::Behaviour> {
    let start = || {
        mdns::tokio::Behaviour::new(mdns::Config::default(), own)
            .inspect_err(
                |error| tracing::warn!(%error, "this node does not look for nodes on the local network"),
            )
            .ok()
    };
    wanted.then(start).flatten().into()
}

fn yamux_config() -> yamux::Config {
    let mut config = yamux::Config::default();
    config.set_max_num_streams(STREAMS_MAX);
    config
}

fn quic_config(mut config: quic::Config) -> quic::Config {
    // By default, the library gives up before the bound of all transports does. So this value is never reached.
    config.handshake_timeout = 2 * CONNECTION_TIMEOUT;
    config.max_concurrent_stream_limit = u32::try_from(STREAMS_MAX).unwrap_or(u32::MAX);
    config.max_stream_data = QUIC_STREAM_WINDOW_BYTES;
    config.max_connection_data = QUIC_CONNECTION_WINDOW_BYTES;
    config
}
