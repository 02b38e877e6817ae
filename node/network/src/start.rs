//! Putting the parts together: key, store, servers, swarm, listeners; then the swarm's task runs.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv6Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use libp2p::{Multiaddr, TransportError, core::transport::ListenerId, swarm::SwarmEvent};
use tokio::{
    net::TcpSocket,
    sync::{mpsc, watch},
};

use crate::{
    NetworkConfig, NetworkError, NetworkHandle, NetworkStatus,
    addresses::{self, AddressUse},
    admission::Admission,
    agreement::{Agreement, AgreementServer},
    behaviour::{self, Accepts, Crowd, NodeBehaviourEvent, NodeSwarm},
    bootstrap::Bootstrap,
    call::{CallServer, InboundCall, KeptStreams},
    command::Command,
    directory::{self, DirectoryServer, Notary},
    gossip::{GossipVerdict, InboundListing, JUDGED_MAX, Judge, Topics},
    handle::Calls,
    identity,
    info::{InboundInfo, InfoServer},
    innermost,
    outbound::TrustedAddresses,
    partners::Partners,
    publisher::Publisher,
    reachability::{Prober, ReachServer},
    records::{Records, SharedRecords},
    relay::Relays,
    rendezvous::{Agenda, Rendezvous},
    report::Reporter,
    saved::{Saved, SharedBook},
    status::Counters,
    streams::Accept,
    swarm::{COMMANDS_MAX, DirectoryDriver, Errands, Parts, SwarmTask},
    sync::{InboundSync, SessionGate, SyncServer},
    usage::Usage,
};

/// Questions waiting for the node.
const QUESTIONS_MAX: usize = 64;
/// Gossiped listings waiting for the node, of 4 KiB at most.
const LISTINGS_MAX: usize = 64;
/// A node that is being restarted may hold its port for a moment.
const PORT_FREE_WITHIN: Duration = Duration::from_secs(1);
const PORT_LOOKED_AT_EVERY: Duration = Duration::from_millis(50);
/// Binding a port is immediate; a listener that says nothing for this long is broken.
const LISTEN_DEADLINE: Duration = Duration::from_secs(5);
/// Without an IPv6 address on any interface, as in most containers, the wildcard has nothing to say.
const LISTEN_IPV6_DEADLINE: Duration = Duration::from_millis(500);

/// Starts the network.
#[derive(Debug)]
pub struct Network;

/// Requests of other nodes to this one. The queues end when the network stops.
#[derive(Debug)]
pub struct Inbound {
    /// Has a place for every call that is admitted.
    pub calls: mpsc::Receiver<InboundCall>,
    pub info: mpsc::Receiver<InboundInfo>,
    /// Has a place for every session that is admitted. Dropped when nobody synchronises.
    pub syncs: mpsc::Receiver<InboundSync>,
    /// Listings that neighbours tell of.
    pub listings: mpsc::Receiver<InboundListing>,
}

impl Network {
    /// Binds every listening address and begins to look for peers. Must run inside a Tokio runtime.
    ///
    /// # Errors
    /// [`NetworkError`] when an address cannot be read or bound, or the key cannot be used.
    pub async fn start(config: NetworkConfig) -> Result<(NetworkHandle, Inbound), NetworkError> {
        let read = |usage, texts| addresses::parse_all(usage, texts, config.allow_private);
        let listen = read(AddressUse::Listen, &config.listen)?;
        let announce = read(AddressUse::Announce, &config.announce)?;
        let bootstrap = read(AddressUse::Bootstrap, &config.bootstrap)?;
        let entrance =
            config.rendezvous.as_ref().map(|meeting| read(AddressUse::Entrance, &meeting.entrance));
        let entrance = entrance.transpose()?;
        let vouched = TrustedAddresses::new(&bootstrap);
        let keypair = identity::keypair(&config.key)?;
        let own = config.key.address();

        let counters = Arc::new(Counters::default());
        let partners = Partners::default();
        let records = SharedRecords::new(Records::new(own, config.limits.records_max, partners.clone()));
        let book = SharedBook::default();
        let saved = open_saved(&config, &book, &records).await;
        let (reporter, reports) = Reporter::new();
        let (commands_in, commands) = mpsc::channel(COMMANDS_MAX);
        let parts = ServerParts {
            config: &config,
            partners: &partners,
            records: &records,
            reporter: &reporter,
            counters: &counters,
        };
        let agreement = parts.agreement();
        let Servers { accepts, admission, judge, judged, inbound } =
            parts.servers(commands_in.downgrade(), agreement.clone());
        let topics = Topics::new(&config.network);
        let usage = Usage::default();
        let calling =
            Admission::new(config.limits.outbound_calls_per_peer_max, config.limits.outbound_calls_max);
        let kept = Arc::new(KeptStreams::new(config.limits.stream_rest_max));
        let under_way = [admission, Arc::clone(&calling)];

        let mut swarm = behaviour::build(
            &config,
            &keypair,
            &topics,
            accepts,
            Arc::clone(&counters),
            Crowd { partners: partners.clone(), usage: usage.clone(), vouched: vouched.clone() },
        )?;
        let early = bind_all(&mut swarm, &listen).await?;

        let named_ports = addresses::named_ports(&listen);
        let ports = addresses::ports(&named_ports, swarm.listeners());
        let (status_in, status) = watch::channel(NetworkStatus { ports, ..NetworkStatus::default() });
        let publisher = Publisher::new(
            config.key.clone(),
            config.network.clone(),
            &config.agent,
            config.record_seq_start,
            RandomState::new().hash_one(()),
        );
        let notary = Notary::new(records.clone(), config.network.clone());
        let task = SwarmTask::new(Parts {
            swarm,
            directory: DirectoryDriver::new(directory::machine(&config, notary.clone()), notary),
            commands,
            reports,
            status: status_in,
            records: records.clone(),
            publisher,
            book,
            saved,
            topics,
            judge,
            judged,
            bootstrap: Bootstrap::new(own, bootstrap, Instant::now()),
            agreement,
            errands: config.rendezvous.as_ref().zip(entrance).map(|(meeting, entrance)| {
                let (network, allow_private) = (&config.network, config.allow_private);
                let agenda = Agenda::new(own, meeting, Instant::now());
                Errands::new(agenda, Rendezvous::new(entrance, network, keypair.clone(), own, allow_private))
            }),
            prober: Prober::new(config.reach.clone(), config.allow_private, announce, Instant::now()),
            relays: Relays::new(&config.reach, &config.relay, partners.clone()),
            uses_relays: config.relay.used,
            own_commands: commands_in.downgrade(),
            reach_deadline: config.reach.dial_deadline,
            under_way,
            kept: Arc::clone(&kept),
            counters: Arc::clone(&counters),
            own,
            network: config.network.clone(),
            named_ports,
            budget: config.budget.clone(),
            allow_private: config.allow_private,
            vouched,
            usage,
            connections_per_peer_max: config.limits.connections_per_peer_max as usize,
            drain_deadline: config.limits.drain_deadline,
        });
        tokio::spawn(task.run(early));
        let handle = NetworkHandle::new(
            commands_in,
            status,
            records,
            counters,
            Calls {
                calling,
                kept,
                partners,
                #[cfg(feature = "memory")]
                played: None,
            },
            reporter,
            &config,
        );
        Ok((handle, inbound))
    }
}

struct ServerParts<'a> {
    config: &'a NetworkConfig,
    partners: &'a Partners,
    records: &'a SharedRecords,
    reporter: &'a Reporter,
    counters: &'a Arc<Counters>,
}

/// The servers that answer other nodes, and the queues of what the node has to decide.
struct Servers {
    accepts: Accepts,
    /// Of calls to this node.
    admission: Arc<Admission>,
    judge: Judge,
    judged: mpsc::Receiver<GossipVerdict>,
    inbound: Inbound,
}

impl ServerParts<'_> {
    fn agreement(&self) -> Agreement {
        let NetworkConfig { limits, network, .. } = self.config;
        Agreement::new(
            self.records.clone(),
            network.clone(),
            Arc::clone(self.counters),
            self.reporter.clone(),
            limits.clone(),
        )
    }

    fn session_gate(&self) -> SessionGate {
        SessionGate::new(self.config.limits.clone(), self.partners.clone(), self.reporter.clone())
    }

    fn servers(&self, commands: mpsc::WeakSender<Command>, agreement: Agreement) -> Servers {
        let NetworkConfig { limits, network, budget, .. } = self.config;
        let (calls_in, calls) = mpsc::channel(limits.inbound_calls_max);
        let call_server = CallServer::new(
            calls_in,
            limits.clone(),
            budget,
            self.partners.clone(),
            self.reporter.clone(),
            Arc::clone(self.counters),
        );
        let (questions_in, info) = mpsc::channel(QUESTIONS_MAX);
        let info_server = InfoServer::new(
            self.records.clone(),
            network.clone(),
            questions_in,
            budget,
            self.partners.clone(),
            self.reporter.clone(),
            Arc::clone(self.counters),
        );
        let directory_server = DirectoryServer::new(
            commands.clone(),
            self.partners.clone(),
            self.reporter.clone(),
            Arc::clone(self.counters),
        );
        let reach_server = ReachServer::new(
            &self.config.reach,
            self.config.allow_private,
            commands,
            self.partners.clone(),
            self.reporter.clone(),
            Arc::clone(self.counters),
        );
        let (syncs_in, syncs) = mpsc::channel(limits.inbound_syncs_max);
        let sync_server = SyncServer::new(syncs_in, self.session_gate());
        let agreement_server = AgreementServer::new(agreement, self.session_gate());
        let (listings_in, listings) = mpsc::channel(LISTINGS_MAX);
        let (judged_in, judged) = mpsc::channel(JUDGED_MAX);
        let judge = Judge::new(
            self.records.clone(),
            network.clone(),
            Arc::clone(self.counters),
            self.reporter.clone(),
            listings_in,
            judged_in,
        );
        let admission = Arc::clone(call_server.admission());
        let call: Accept = Arc::new(move |peer, stream| call_server.accept(peer, stream));
        let sync: Accept = Arc::new(move |peer, stream| sync_server.accept(peer, stream));
        let accepts = Accepts {
            directory: Arc::new(move |peer, stream| directory_server.accept(peer, stream)),
            call: Arc::clone(&call),
            call_stream: call,
            info: Arc::new(move |peer, stream| info_server.accept(peer, stream)),
            sync: Arc::clone(&sync),
            shard_sync: sync,
            agreement: Arc::new(move |peer, stream| agreement_server.accept(peer, stream)),
            reach: Arc::new(move |peer, stream| reach_server.accept(peer, stream)),
        };
        Servers { accepts, admission, judge, judged, inbound: Inbound { calls, info, syncs, listings } }
    }
}

/// Reads who was known before, off the runtime's threads.
async fn open_saved(config: &NetworkConfig, book: &SharedBook, records: &SharedRecords) -> Option<Saved> {
    let dir = config.state_dir.clone()?;
    let (network, book, records) = (config.network.clone(), book.clone(), records.clone());
    let opening = tokio::task::spawn_blocking(move || Saved::open(&dir, &network, &book, &records));
    opening.await.ok().flatten()
}

/// Events of the swarm while its addresses were being bound; connections may come in from the first one on.
type Early = Vec<SwarmEvent<NodeBehaviourEvent>>;

/// Listens on every address. A system without IPv6 does without the wildcards that come with the defaults.
async fn bind_all(swarm: &mut NodeSwarm, listen: &[Multiaddr]) -> Result<Early, NetworkError> {
    let mut early = Early::new();
    // Of all addresses before the first is bound: several of one port are one node's own.
    for address in listen {
        let is_free = tokio::time::timeout(PORT_FREE_WITHIN, port_is_free(address)).await;
        is_free.map_err(|_| NetworkError::Listen {
            address: address.to_string(),
            source: io::ErrorKind::AddrInUse.into(),
        })?;
    }
    for address in listen {
        match bind(swarm, address, &mut early).await {
            Ok(()) => {}
            // The port is ours; the listener says so as soon as an interface gets an address.
            Err(NetworkError::Listen { source, .. })
                if is_ipv6_wildcard(address) && source.kind() == io::ErrorKind::TimedOut =>
            {
                tracing::info!(%address, "no interface has an IPv6 address yet; listening as soon as one has");
            }
            Err(NetworkError::Listen { source, .. }) if is_missing_ipv6(address, &source) => {
                tracing::info!(%address, "this system has no IPv6; not listening there");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(early)
}

fn is_missing_ipv6(address: &Multiaddr, error: &io::Error) -> bool {
    /// `EAFNOSUPPORT` on Linux.
    const ADDRESS_FAMILY_NOT_SUPPORTED: i32 = 97;
    let is_missing = error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(ADDRESS_FAMILY_NOT_SUPPORTED);
    is_ipv6_wildcard(address) && is_missing
}

fn is_ipv6_wildcard(address: &Multiaddr) -> bool {
    addresses::ip(address).is_some_and(|ip| ip.is_ipv6() && ip.is_unspecified())
}

/// Waits until nobody listens on a TCP port. The library shares its ports with whoever shares as well (`SO_REUSEPORT`,
/// so that it can dial from them): a second node would start, and each would get half of the connections. The system
/// refuses a socket that does not share.
async fn port_is_free(address: &Multiaddr) {
    while is_listened_on(address) {
        tokio::time::sleep(PORT_LOOKED_AT_EVERY).await;
    }
}

fn is_listened_on(address: &Multiaddr) -> bool {
    let Some(socket_address) = addresses::tcp(address).filter(|address| address.port() != 0) else {
        return false;
    };
    let bound = match socket_address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        // The wildcard would stand for IPv4 too; whoever listens there also listens on the loopback.
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
    .and_then(|socket| {
        // Connections of a node that has just ended linger; only a listener is in the way then.
        socket.set_reuseaddr(true)?;
        socket.bind(match socket_address {
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
            other => other,
        })
    });
    // Everything else is for the library to say.
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Listens on one address and waits until the system has confirmed it.
async fn bind(swarm: &mut NodeSwarm, address: &Multiaddr, early: &mut Early) -> Result<(), NetworkError> {
    let failed = |source| NetworkError::Listen { address: address.to_string(), source: said_once(source) };
    let listener = swarm.listen_on(address.clone()).map_err(|error| match error {
        TransportError::Other(source) => failed(source),
        TransportError::MultiaddrNotSupported(_) => {
            failed(io::Error::new(io::ErrorKind::Unsupported, "neither TCP nor QUIC on an IP address"))
        }
    })?;
    let deadline = if is_ipv6_wildcard(address) { LISTEN_IPV6_DEADLINE } else { LISTEN_DEADLINE };
    let confirmed = tokio::time::timeout(deadline, confirmation(swarm, listener, early));
    confirmed.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)
}

/// The system's own error, by its number in the words: the library wraps it in others, which repeat its words and do not
/// hand it out.
fn said_once(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    let words = innermost(&error);
    let number = words.rsplit_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
    let code = number.and_then(|(code, _)| code.parse().ok());
    code.map_or(error, io::Error::from_raw_os_error)
}

async fn confirmation(swarm: &mut NodeSwarm, listener: ListenerId, early: &mut Early) -> io::Result<()> {
    use futures::StreamExt as _;
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::NewListenAddr { listener_id, .. } if listener_id == listener => return Ok(()),
            SwarmEvent::ListenerClosed { listener_id, reason, .. } if listener_id == listener => {
                return reason.and(Err(io::ErrorKind::AddrNotAvailable.into()));
            }
            SwarmEvent::ListenerError { listener_id, error } if listener_id == listener => return Err(error),
            event => early.push(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_said_once() {
        let wrapped = io::Error::other(io::Error::other("Cannot assign requested address (os error 99)"));
        let said = said_once(wrapped);
        assert_eq!((said.kind(), said.raw_os_error()), (io::ErrorKind::AddrNotAvailable, Some(99)));
        assert_eq!(said_once(io::Error::other("something else")).to_string(), "something else");
    }
}
